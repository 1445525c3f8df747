"""Copies: of dense stretches, of rows, of axes in another order, of anything; with conversions."""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from tinyfin.backends.cpu.cast_loops cimport tf_cast_table
from tinyfin.backends.cpu.elementwise cimport *
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    TURN = 1 << 12      # elements of a task that turns axes round
    BAND = 64           # of the axis that the source is dense along, where the other one is long
    UNCACHED = 1 << 23  # bytes of a result that caches need not hold
    STRAIGHT = 1 << 26  # bytes of an input that is copied for a kernel, at most

cdef const tf_cast_table *C = <const tf_cast_table *>isa_table(b"cast")


cdef void copy_task(int64_t i, void *ctx) noexcept nogil:
    """A dense stretch: bytes, or a conversion."""
    cdef Job *job = <Job *>ctx
    cdef int64_t start = i * CHUNK, n = job.size - start
    cdef Operand *d = &job.ops[0]
    cdef Operand *s = &job.ops[1]
    cdef char block[BLOCK * 8]
    cdef int64_t m
    if n > CHUNK:
        n = CHUNK
    if not job.around:
        if s.dtype == d.dtype and job.size * d.item < UNCACHED:     # what memcpy does for long runs is slow to start
            C.rows(s.data + start * s.item, 0, d.data + start * d.item, 1, n * d.item)
        elif s.dtype == d.dtype:
            memcpy(d.data + start * d.item, s.data + start * s.item, n * d.item)
        else:
            C.cast[s.dtype][d.dtype](s.data + start * s.item, d.data + start * d.item, n)
        return
    if s.dtype == d.dtype:
        C.stream(d.data + start * d.item, s.data + start * s.item, n * d.item)
        n = 0
    while n > 0:
        m = min(n, <int64_t>BLOCK)
        C.cast[s.dtype][d.dtype](s.data + start * s.item, block, m)
        C.stream(d.data + start * d.item, block, m * d.item)
        start += m
        n -= m
    C.fence()


cdef struct Turn:
    # a copy by parts of planes of the last two axes
    Job *job
    int64_t rows, cols                # of a part
    int64_t bands, strips             # parts of a plane
    int around
    size_t refused


cdef void turn_plan(Turn *t, Job *job) noexcept nogil:
    """The axis along which the source is dense becomes the last but one."""
    cdef int nd = job.ndim, k, o
    for k in range(nd - 2):
        if job.ops[1].strides[k] == job.ops[1].item:
            job.shape[k], job.shape[nd - 2] = job.shape[nd - 2], job.shape[k]
            for o in range(2):
                job.ops[o].strides[k], job.ops[o].strides[nd - 2] = job.ops[o].strides[nd - 2], job.ops[o].strides[k]
            break
    t.job, t.refused = job, 0
    t.rows = min(job.shape[nd - 2], max(<int64_t>BAND, TURN // job.shape[nd - 1] // BAND * BAND))
    t.cols = min(job.shape[nd - 1], max(<int64_t>BAND, TURN // t.rows // BAND * BAND))
    t.bands = (job.shape[nd - 2] + t.rows - 1) // t.rows
    t.strips = (job.shape[nd - 1] + t.cols - 1) // t.cols
    t.around = job.size * job.ops[0].item >= UNCACHED


cdef void turn_task(int64_t i, void *ctx) noexcept nogil:
    """One part; another dtype is made of a dense copy of it."""
    cdef Turn *t = <Turn *>ctx
    cdef Job *job = t.job
    cdef Operand *from_ = &job.ops[1]
    cdef Operand *to = &job.ops[0]
    cdef int nd = job.ndim, k
    cdef int64_t col = i % t.strips * t.cols, rest = i // t.strips, row = rest % t.bands * t.rows, r
    cdef int64_t rows = min(t.rows, job.shape[nd - 2] - row), cols = min(t.cols, job.shape[nd - 1] - col)
    cdef char *s = from_.data + row * from_.strides[nd - 2] + col * from_.strides[nd - 1]
    cdef char *d = to.data + row * to.strides[nd - 2] + col * to.strides[nd - 1]
    cdef char *raw
    rest //= t.bands
    for k in range(nd - 3, -1, -1):
        s += (rest % job.shape[k]) * from_.strides[k]
        d += (rest % job.shape[k]) * to.strides[k]
        rest //= job.shape[k]
    if from_.dtype == to.dtype:
        C.tile[log2_of(to.item)](s, from_.strides[nd - 2], from_.strides[nd - 1],
                                 d, to.strides[nd - 2], to.strides[nd - 1], rows, cols, t.around)
        return
    raw = <char *>scratch_push(rows * cols * from_.item)
    if raw == NULL:
        t.refused = rows * cols * from_.item
        return
    C.tile[log2_of(from_.item)](s, from_.strides[nd - 2], from_.strides[nd - 1],
                                raw, cols * from_.item, from_.item, rows, cols, 0)
    for r in range(rows):
        C.cast[from_.dtype][to.dtype](raw + r * cols * from_.item, d + r * to.strides[nd - 2], cols)
    scratch_pop(rows * cols * from_.item)


cdef inline int64_t runs_together(const Job *job) noexcept nogil:
    """Runs along the last axis that one task copies."""
    return max(1, CHUNK // job.shape[job.ndim - 1])


cdef void runs_task(int64_t i, void *ctx) noexcept nogil:
    """Some runs of the last axis, dense on both sides."""
    cdef Job *job = <Job *>ctx
    cdef int nd = job.ndim, k
    cdef int64_t n = job.shape[nd - 1], each = runs_together(job), first = i * each, rest = first, m, r
    cdef int64_t left = min(each, job.size // n - first)
    cdef int64_t d_step = job.ops[0].strides[nd - 2], s_step = job.ops[1].strides[nd - 2]
    cdef int64_t index[8]
    cdef char *d
    cdef const char *s
    cdef size_t nbytes = n * job.ops[0].item
    for k in range(nd - 2, -1, -1):
        index[k] = rest % job.shape[k]
        rest //= job.shape[k]
    while left > 0:
        d, s = locate(&job.ops[0], index, nd - 1), locate(&job.ops[1], index, nd - 1)
        m = min(left, job.shape[nd - 2] - index[nd - 2])
        if d_step == nbytes:
            C.rows(s, s_step, d, m, nbytes)
        else:
            for r in range(m):
                memcpy(d + r * d_step, s + r * s_step, nbytes)
        left -= m
        index[nd - 2] += m - 1
        for k in range(nd - 2, -1, -1):
            index[k] += 1
            if index[k] < job.shape[k]:
                break
            index[k] = 0


cdef void joined_task(int64_t i, void *ctx) noexcept nogil:
    """Copies of rows that are short together."""
    cdef Job *job = <Job *>ctx
    cdef int64_t start = i * job.chunk, stop = min(start + job.chunk, job.size), run
    cdef int64_t index[8]
    cdef Blocks blocks
    cdef Operand *o = &job.ops[0]
    blocks.filled[1] = NULL
    place_at(job, start, index)
    while start < stop:
        run = min(min(job.joined, job.shape[job.axis] - index[job.axis]) * job.inner, stop - start)
        memcpy(locate(o, index, job.ndim), joined(job, &job.ops[1], index, run, &blocks, 1), run * o.item)
        start += run
        advance(job, index, run)


cdef void range_task(int64_t i, void *ctx) noexcept nogil:
    copy_range(<Job *>ctx, i * CHUNK, (i + 1) * CHUNK)


cdef void copy_range(Job *job, int64_t start, int64_t stop) noexcept nogil:
    """Any strides and dtypes, block by block."""
    cdef char raw[BLOCK * 8]
    cdef char work[BLOCK * 8]
    cdef int64_t index[8]
    cdef int64_t run
    cdef Operand *d = &job.ops[0]
    cdef Operand *s = &job.ops[1]
    if stop > job.size:
        stop = job.size
    place_at(job, start, index)
    while start < stop:
        run = stop - start if stop - start < BLOCK else BLOCK
        gather(job, s, index, run, raw)
        if s.dtype != d.dtype:
            C.cast[s.dtype][d.dtype](raw, work, run)
            scatter(job, d, index, run, work)
        else:
            scatter(job, d, index, run, raw)
        start += run
        advance(job, index, run)


cdef int copy(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call) noexcept nogil:
    """Broadcasts, casts and copies one tensor."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef Job job
    cdef Turn turn
    cdef int64_t planes, cost
    cdef int nd
    if y.size == 0:
        return TF_OK
    job.loop_out = job.compute = y.dtype
    prepare(&job, inputs, 1, y)
    nd = job.ndim
    cost = job.size
    if nd == 1 and job.ops[0].strides[0] == job.ops[0].item and job.ops[1].strides[0] == job.ops[1].item:
        parallel_for((job.size + CHUNK - 1) // CHUNK, <double>cost * 0.1, copy_task, &job)
    elif nd > 1 and job.ops[0].strides[nd - 1] == job.ops[0].item and job.ops[1].strides[nd - 1] != 0 and \
            job.ops[1].strides[nd - 1] != job.ops[1].item:
        turn_plan(&turn, &job)
        planes = turn.bands * turn.strips
        for k in range(nd - 2):
            planes *= job.shape[k]
        parallel_for(planes, <double>cost * 0.2, turn_task, &turn)
        if turn.refused and call != NULL:
            call.detail[0] = turn.refused
        return TF_ENOMEM if turn.refused else TF_OK
    elif x.dtype == y.dtype and nd > 1 and job.ops[0].strides[nd - 1] == job.ops[0].item and \
            job.ops[1].strides[nd - 1] == job.ops[1].item:
        parallel_for((job.size // job.shape[nd - 1] - 1) // runs_together(&job) + 1, <double>cost * 0.2, runs_task, &job)
    elif job.joined:
        job.chunk = CHUNK - CHUNK % job.inner
        parallel_for((job.size + job.chunk - 1) // job.chunk, <double>cost * 0.1, joined_task, &job)
    else:
        parallel_for((job.size + CHUNK - 1) // CHUNK, <double>cost * 0.2, range_task, &job)
    return TF_OK


cdef void copy_view(tf_view *y, const tf_view *x) noexcept nogil:
    """x to y, of one shape and dtype; nothing where they are the same window."""
    cdef int k
    cdef bint same = y.data == x.data
    for k in range(y.ndim):
        same = same and (y.shape[k] == 1 or y.strides[k] == x.strides[k])
    if not same:
        copy(&x, 1, &y, NULL, NULL)


cdef bint lies_across(const tf_view *x) noexcept nogil:
    """Whether memory is dense along another axis than the last, so that a copy in order is soon made, and is not huge."""
    cdef int k, last = -1
    cdef bint dense = False
    if x.flags & TF_CONTIGUOUS or x.size < TURN or x.size * tf_itemsize[x.dtype] > STRAIGHT:
        return False
    for k in range(x.ndim):
        if x.shape[k] > 1:
            last = k
            if x.strides[k] == 0:
                return False
            dense = dense or (x.strides[k] == 1 and x.shape[k] >= 8)
    return dense and last >= 0 and x.strides[last] != 1


cdef int straightened(tf_kernel kernel, const tf_view *const *inputs, int n, int which, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept nogil:
    """A kernel with one of its inputs, at most four, copied in order; NO_ROOM, and nothing done, without memory."""
    cdef const tf_view *views[4]
    cdef tf_view dense = inputs[which][0]
    cdef tf_view *to = &dense
    cdef int64_t step = 1
    cdef size_t bytes = dense.size * tf_itemsize[dense.dtype]
    cdef int k, rc
    for k in range(n):
        views[k] = inputs[k]
    for k in range(dense.ndim - 1, -1, -1):
        dense.strides[k] = step
        step *= dense.shape[k]
    dense.flags |= TF_CONTIGUOUS
    dense.data = <char *>scratch_push(bytes)
    if dense.data == NULL:
        return NO_ROOM
    views[which] = &dense
    copy(inputs + which, 1, &to, NULL, NULL)
    rc = kernel(views, n, outputs, at, call)
    scratch_pop(bytes)
    return rc


KERNELS = {"copy": kernel_capsule(copy)}
