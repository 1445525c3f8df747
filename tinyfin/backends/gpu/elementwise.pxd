"""Copies for cimport: kernels of other families begin with them where an input is not dense."""
from tinyfin.core.abi cimport *


cdef int copy(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
              tf_call *call) noexcept with gil
cdef int dense(tf_view *v, list keep, tf_call *call) noexcept
