"""Work splitting and scratch memory of all CPU kernels."""
from libc.stdint cimport int64_t

ctypedef void (*tf_task)(int64_t i, void *ctx) noexcept nogil

cdef void parallel_for(int64_t n, double cost_ns, tf_task fn, void *ctx) noexcept nogil
cdef int team_size() noexcept nogil
cdef void *scratch_push(size_t bytes) noexcept nogil
cdef void scratch_pop(size_t bytes) noexcept nogil


cdef inline void for_each(int64_t n, double cost_ns, tf_task fn, void *ctx, bint alone) noexcept nogil:
    """parallel_for, or all on the calling thread, which is inside a task already."""
    cdef int64_t i
    if alone:
        for i in range(n):
            fn(i, ctx)
    else:
        parallel_for(n, cost_ns, fn, ctx)
