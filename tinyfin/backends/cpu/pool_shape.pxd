"""What a pooling kernel is given, and which elements its windows cover."""
from libc.stdint cimport INT64_MIN, int64_t

from tinyfin.backends.cpu.gemm_loops cimport tf_gemm_kind
from tinyfin.backends.cpu.pool_loops cimport tf_pool_line, tf_pool_sum
from tinyfin.backends.cpu.spatial cimport Planes
from tinyfin.core.abi cimport tf_view


cdef struct Pool:
    Planes x                          # the larger side: input, or result of a gradient
    Planes y                          # the windows' side
    int64_t kernel[3]
    int64_t stride[3]
    int64_t pad[3]
    int64_t dil[3]
    int64_t divisor                   # of means; INT64_MIN: what a window counts
    bint include_pad, adaptive
    const tf_gemm_kind *kind          # accumulators of means and gradients
    const tf_pool_sum *sum
    const tf_view *indices
    int64_t *places                   # flat places, of max pooling
    int64_t *reach                    # of the taps of the last axis
    int64_t planes
    int failed
    int64_t bad


cdef inline void window(const Pool *q, int a, int64_t o, int64_t *first,
                        int64_t *last) noexcept nogil:
    """Elements [first, last), a dilation apart, that window o covers along axis a."""
    cdef int64_t start
    if q.adaptive:
        first[0] = o * q.x.size[a] // q.y.size[a]
        last[0] = ((o + 1) * q.x.size[a] + q.y.size[a] - 1) // q.y.size[a]
        return
    start = o * q.stride[a] - q.pad[a]
    last[0] = min(start + q.dil[a] * (q.kernel[a] - 1) + 1, q.x.size[a])
    if start < 0:
        start += (-start + q.dil[a] - 1) // q.dil[a] * q.dil[a]
    first[0] = start


cdef inline void line_of(const Pool *q, tf_pool_line *p) noexcept nogil:
    """All windows of an output line; an adaptive one is set for each window (one_window)."""
    p.n, p.k, p.stride, p.pad, p.dil = q.y.size[2], q.kernel[2], q.stride[2], q.pad[2], q.dil[2]
    p.step, p.reach = q.x.step[2], q.reach


cdef inline void one_window(const Pool *q, int64_t o, tf_pool_line *p) noexcept nogil:
    """Window o alone, as the first of a line."""
    cdef int64_t first, last
    window(q, 2, o, &first, &last)
    p.n, p.k, p.stride, p.pad, p.dil, p.reach = 1, last - first, 1, -first, 1, NULL


cdef inline void set_reach(const Pool *q, int64_t *reach) noexcept nogil:
    """For each tap of the last axis, the windows that have it inside the line."""
    cdef int64_t r, under, room, stride = q.stride[2]
    for r in range(q.kernel[2]):
        under = q.pad[2] - r * q.dil[2]
        room = q.x.size[2] - 1 + under
        reach[2 * r] = (under + stride - 1) // stride if under > 0 else 0
        reach[2 * r + 1] = 0 if room < 0 else min(room // stride + 1, q.y.size[2])
