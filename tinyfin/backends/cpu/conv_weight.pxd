"""The gradient of convolutions' weights."""
from tinyfin.core.abi cimport *


cdef int conv_grad_weight(const tf_view *const *inputs, int n, tf_view *const *outputs,
                          const tf_attrs *at, tf_call *call) noexcept nogil
