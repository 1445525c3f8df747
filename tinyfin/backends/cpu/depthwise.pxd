"""Convolutions with one channel per group, and the gradients of their inputs, plane by plane."""
from tinyfin.backends.cpu.conv_shape cimport Shape
from tinyfin.core.abi cimport *

cdef bint depthwise_pays(const Shape *s) noexcept nogil
cdef int depthwise(const Shape *s, const tf_view *x, const tf_view *w, const tf_view *bias, tf_view *y,
                   tf_call *call) noexcept nogil
cdef bint depthwise_input_pays(const Shape *s) noexcept nogil
cdef int depthwise_input(const Shape *s, const tf_view *g, const tf_view *w, tf_view *x, tf_call *call) noexcept nogil
