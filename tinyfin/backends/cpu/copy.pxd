"""Copies for other kernels."""
from tinyfin.core.abi cimport *

cdef enum:
    NO_ROOM = -100

cdef int copy(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
              tf_call *call) noexcept nogil
cdef void copy_view(tf_view *y, const tf_view *x) noexcept nogil
cdef bint lies_across(const tf_view *x) noexcept nogil
cdef int straightened(tf_kernel kernel, const tf_view *const *inputs, int n, int which, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept nogil
