"""What a pooling kernel is given, which elements its windows cover, and how its tasks are run."""
from libc.stdint cimport INT64_MIN, int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.gemm cimport gemm_kind
from tinyfin.backends.cpu.gemm_loops cimport tf_gemm_kind
from tinyfin.backends.cpu.pool_loops cimport tf_pool_line, tf_pool_sum
from tinyfin.backends.cpu.spatial cimport Planes, flat, planes_of, three, volume
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push, tf_task
from tinyfin.core.abi cimport *

cdef enum:
    NO_MEMORY = 1
    BAD_INDEX = 2


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


cdef inline bint own(const Pool *q) noexcept nogil:
    return q.x.v.dtype == TF_F32 or q.x.v.dtype == TF_F64


cdef inline void plain(Pool *q, int dtype) noexcept nogil:
    """Windows of one element."""
    cdef int a
    for a in range(3):
        q.kernel[a] = q.stride[a] = q.dil[a] = 1
        q.pad[a] = 0
    q.kind = gemm_kind(dtype)
    q.divisor, q.include_pad, q.adaptive = INT64_MIN, False, False


cdef inline bint floats(const tf_view *v) noexcept nogil:
    return TF_F16 <= v.dtype <= TF_F64


cdef inline void cut(Pool *q) noexcept nogil:
    """Taps that reach nothing go, and a stride that is never taken: it may be any."""
    cdef int a
    for a in range(3):
        q.kernel[a] = max(min(q.kernel[a], (q.x.size[a] + 2 * q.pad[a] - 1) // q.dil[a] + 1), 1)
        if q.y.size[a] == 1:
            q.stride[a] = 1


cdef inline void windows(Pool *q, const tf_attrs *at, int nd, int dtype) noexcept nogil:
    """kernel, stride, padding."""
    plain(q, dtype)
    three(&at.i[0], nd, 1, q.kernel)
    three(&at.i[3], nd, 1, q.stride)
    three(&at.i[6], nd, 0, q.pad)


cdef inline void fit(Pool *q) noexcept nogil:
    """Adaptive windows; where sizes divide they are ordinary ones."""
    cdef int a
    q.adaptive = False
    for a in range(3):
        q.adaptive = q.adaptive or q.x.size[a] % q.y.size[a] != 0
    if not q.adaptive:
        for a in range(3):
            q.kernel[a] = q.stride[a] = q.x.size[a] // q.y.size[a]


cdef inline bint sides(Pool *q, const tf_view *x, tf_view *y, int nd, bint grad) noexcept nogil:
    """Both sides' planes; x is what is read. False where the result is empty or zero already."""
    if y.size == 0:
        return False
    if x.size == 0:
        memset(y.data, 0, y.size * tf_itemsize[y.dtype])
        return False
    planes_of(&q.y if grad else &q.x, x, nd)
    flat(&q.x if grad else &q.y, y, nd)
    return True


cdef inline int run(Pool *q, tf_task task, int64_t tasks, double cost, tf_call *call) noexcept nogil:
    """`cost`: nanoseconds for one addition in each plane."""
    cdef int64_t bytes = q.kernel[2] * 16
    q.failed = 0
    q.reach = <int64_t *>scratch_push(bytes)
    if q.reach == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    set_reach(q, q.reach)
    parallel_for(tasks, cost * (volume(q.x.size) + volume(q.y.size) * volume(q.kernel)), task, q)
    scratch_pop(bytes)
    if q.failed == BAD_INDEX:
        call.detail[0], call.detail[1] = q.bad, volume(q.x.size)
        call.detail[2] = q.x.v.ndim - q.x.nd
        return TF_EINDEX
    if q.failed:
        call.detail[0] = volume(q.x.size) * 8
        return TF_ENOMEM
    return TF_OK
