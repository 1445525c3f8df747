"""Winograd's form of convolutions with kernels of 3 x 3, for normal mode."""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.conv_shape cimport Shape
from tinyfin.core.abi cimport *

cdef bint winograd_pays(const Shape *s, bint gradient) noexcept nogil
cdef int winograd(const Shape *s, bint gradient, const tf_view *from_, const tf_view *w,
                  const tf_view *bias, tf_view *to) noexcept nogil
cdef bint winograd_weight_pays(const Shape *s) noexcept nogil
cdef int winograd_weight(const Shape *s, const tf_view *g, const tf_view *x, tf_view *w) noexcept nogil
