"""Work splitting and scratch memory of all CPU kernels."""
from libc.stdint cimport int64_t

ctypedef void (*tf_task)(int64_t i, void *ctx) noexcept nogil

cdef void parallel_for(int64_t n, double cost_ns, tf_task fn, void *ctx) noexcept nogil
cdef void *scratch_push(size_t bytes) noexcept nogil
cdef void scratch_pop(size_t bytes) noexcept nogil
