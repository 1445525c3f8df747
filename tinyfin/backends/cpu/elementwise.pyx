"""Elementwise rows and copies: N-d iteration over any strides around dense inner loops.

Operands that are not dense, or not of the computing dtype, pass through blocks in L1.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memset

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport collapse

cdef extern from "loops.h" nogil:
    ctypedef void (*tf_loop)(void *out, const void *const *inputs, int64_t n, const double *f) noexcept nogil

cdef extern from "cast_loops.h" nogil:
    ctypedef void (*tf_cast)(const void *src, void *dst, int64_t n) noexcept nogil
    ctypedef void (*tf_move)(const char *src, int64_t sstep, char *dst, int64_t dstep, int64_t n) noexcept nogil
    ctypedef void (*tf_tile)(const char *src, int64_t s0, int64_t s1, char *dst, int64_t d0, int64_t d1,
                             int64_t n0, int64_t n1, int around) noexcept nogil
    ctypedef struct tf_cast_table:
        tf_cast cast[10][10]
        tf_move move[4]
        tf_tile tile[4]

ctypedef tf_loop tf_loop_row[10]

cdef const tf_cast_table *C = <const tf_cast_table *>isa_table(b"cast")
cdef const tf_loop_row *F32 = <const tf_loop_row *>isa_table(b"elementwise_f32")
cdef const tf_loop_row *F64 = <const tf_loop_row *>isa_table(b"elementwise_f64")
cdef const tf_loop_row *INT = <const tf_loop_row *>isa_table(b"elementwise_int")

cdef enum:
    MAXOPS = 5          # output and up to four inputs
    BLOCK = 512         # elements that pass through L1 at a time
    CHUNK = 1 << 13     # elements of one task
    DIRECT = 1 << 15    # elements that are never shared
    TURN = 1 << 12      # elements of a task that turns axes round
    BAND = 64           # of the axis that the source is dense along, where the other one is long
    UNCACHED = 1 << 23  # bytes of a result that caches need not hold
    SHORT = 48          # inner axes below this are gathered across rows

cdef const char *ZERO = b"\0\0\0\0\0\0\0\0"
cdef int LOG2[9]
LOG2[1], LOG2[2], LOG2[4], LOG2[8] = 0, 1, 2, 3

ctypedef struct Operand:
    char *data
    int64_t strides[8]     # in bytes
    int item, dtype

ctypedef struct Job:
    int ndim, nops, compute, loop_out, direct
    int64_t shape[8]
    int64_t size
    Operand ops[5]         # ops[0] is the output
    tf_loop loop
    const double *f


cdef tf_loop find_loop(size_t number, int compute) noexcept nogil:
    """The row's loop; bit 16 of its number says that the row divides by its second argument."""
    number &= 0xffff
    if compute == TF_F32 or compute == TF_F16 or compute == TF_BF16:
        return F32[number][TF_F32]
    if compute == TF_F64:
        return F64[number][TF_F64]
    return INT[number][compute]


cdef int elementwise(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call) noexcept nogil:
    cdef const tf_view *out = outputs[0]
    cdef int compute = call.compute, i
    cdef tf_loop loop = find_loop(<size_t>call.ctx, compute)
    cdef const void *ptrs[4]
    cdef bint dense = out.flags & TF_CONTIGUOUS
    cdef Job job
    if loop == NULL:
        call.detail[0] = compute
        return TF_EUNSUPPORTED
    if out.size == 0:
        return TF_OK
    if compute < TF_F16 and <size_t>call.ctx >> 16 and has_zero(inputs[1], compute):
        return TF_EZERODIV
    if compute == TF_F16 or compute == TF_BF16:
        compute = TF_F32
    job.loop_out = TF_BOOL if out.dtype == TF_BOOL else compute
    if job.loop_out != out.dtype:
        dense = False
    for i in range(n):
        if not (inputs[i].flags & TF_CONTIGUOUS and inputs[i].dtype == compute and inputs[i].size == out.size):
            dense = False
            break
        ptrs[i] = inputs[i].data
    if dense and out.size <= DIRECT:
        loop(out.data, ptrs, out.size, at.f)
        return TF_OK
    job.loop, job.f, job.compute, job.nops = loop, at.f, compute, n + 1
    prepare(&job, inputs, n, out)
    if job.size <= DIRECT:
        run_range(&job, 0, job.size)
    else:
        parallel_for((job.size + CHUNK - 1) // CHUNK, <double>job.size * 0.15, run_task, &job)
    return TF_OK


cdef void prepare(Job *job, const tf_view *const *inputs, int n, const tf_view *out) noexcept nogil:
    """Operands with byte strides over the output's shape, axes merged where all allow it."""
    cdef int64_t *strides[5]
    cdef const tf_view *v
    cdef int i, k, lead
    job.size = out.size
    for k in range(out.ndim):
        job.shape[k] = out.shape[k]
    for i in range(n + 1):
        v = out if i == 0 else inputs[i - 1]
        job.ops[i].data, job.ops[i].dtype, job.ops[i].item = v.data, v.dtype, tf_itemsize[v.dtype]
        lead = out.ndim - v.ndim
        for k in range(out.ndim):
            if k < lead or (v.shape[k - lead] == 1 and out.shape[k] != 1):
                job.ops[i].strides[k] = 0
            else:
                job.ops[i].strides[k] = v.strides[k - lead] * job.ops[i].item
        strides[i] = job.ops[i].strides
    job.ndim = collapse(out.ndim, job.shape, strides, n + 1)
    if job.ndim == 0:
        job.ndim, job.shape[0] = 1, 1
        for i in range(n + 1):
            job.ops[i].strides[0] = job.ops[i].item
    job.direct = 1                            # every operand can be used in place
    for i in range(n + 1):
        if job.ops[i].strides[job.ndim - 1] != job.ops[i].item or \
                job.ops[i].dtype != (job.loop_out if i == 0 else job.compute):
            job.direct = 0


cdef void run_task(int64_t i, void *ctx) noexcept nogil:
    cdef Job *job = <Job *>ctx
    cdef int64_t stop = (i + 1) * CHUNK
    run_range(job, i * CHUNK, stop if stop < job.size else job.size)


cdef void run_range(Job *job, int64_t start, int64_t stop) noexcept nogil:
    """Elements [start, stop) in row-major order of the output."""
    cdef int64_t index[8]
    cdef char raw[BLOCK * 8]
    cdef char work[MAXOPS][BLOCK * 8]
    cdef char *filled[MAXOPS]
    cdef const void *ptrs[4]
    cdef char *p
    cdef char *target
    cdef int nd = job.ndim, i, k
    cdef int64_t inner = job.shape[nd - 1], pos = start, run, rest = start
    cdef bint flat = inner >= SHORT or nd == 1
    cdef Operand *o
    for k in range(nd - 1, -1, -1):
        index[k] = rest % job.shape[k]
        rest //= job.shape[k]
    for i in range(job.nops):
        filled[i] = NULL
    while pos < stop:
        run = inner - index[nd - 1]
        if not flat:
            run = BLOCK
        elif not job.direct and run > BLOCK:
            run = BLOCK
        if run > stop - pos:
            run = stop - pos
        for i in range(1, job.nops):
            ptrs[i - 1] = fetch(job, &job.ops[i], index, run, raw, work[i], &filled[i])
        o = &job.ops[0]
        p = locate(o, index, nd)
        if flat and o.strides[nd - 1] == o.item:
            if o.dtype == job.loop_out:
                job.loop(p, ptrs, run, job.f)
            else:
                job.loop(work[0], ptrs, run, job.f)
                C.cast[job.loop_out][o.dtype](work[0], p, run)
        else:
            job.loop(work[0], ptrs, run, job.f)
            target = work[0]
            if o.dtype != job.loop_out:
                C.cast[job.loop_out][o.dtype](work[0], raw, run)
                target = raw
            scatter(job, o, index, run, target)
        pos += run
        advance(job, index, run)


cdef inline char *locate(Operand *o, const int64_t *index, int nd) noexcept nogil:
    cdef char *p = o.data
    cdef int k
    for k in range(nd):
        p += index[k] * o.strides[k]
    return p


cdef inline void advance(Job *job, int64_t *index, int64_t run) noexcept nogil:
    cdef int k = job.ndim - 1
    index[k] += run
    while k > 0 and index[k] >= job.shape[k]:
        index[k - 1] += index[k] // job.shape[k]
        index[k] %= job.shape[k]
        k -= 1


cdef const void *fetch(Job *job, Operand *o, const int64_t *index, int64_t run, char *raw, char *work,
                       char **filled) noexcept nogil:
    """`run` elements of an input, dense and of the computing dtype: in place, or through a block."""
    cdef int nd = job.ndim
    cdef char *p = locate(o, index, nd)
    cdef int64_t step = o.strides[nd - 1]
    cdef bint flat = job.shape[nd - 1] >= SHORT or nd == 1
    cdef char *dst
    if flat and step == o.item and o.dtype == job.compute:
        return p
    if flat and step == 0:
        if filled[0] != p:
            fill(o, job.compute, p, work, min(job.shape[nd - 1], <int64_t>BLOCK))
            filled[0] = p
        return work
    dst = work if o.dtype == job.compute else raw
    if flat and step == o.item:
        dst = p
    elif flat:
        C.move[LOG2[o.item]](p, step, dst, o.item, run)
    else:
        gather(job, o, index, run, dst)
    if o.dtype != job.compute:
        C.cast[o.dtype][job.compute](dst, work, run)
    return work


cdef bint has_zero(const tf_view *v, int compute) noexcept nogil:
    """Whether an element is 0 in the (integer) computing dtype."""
    cdef int64_t index[8]
    cdef char raw[BLOCK * 8]
    cdef char work[BLOCK * 8]
    cdef char *filled = NULL
    cdef const char *p
    cdef const tf_view *views[1]
    cdef int64_t pos = 0, run, i
    cdef int item = tf_itemsize[compute]
    cdef Job job
    views[0] = v
    job.compute = job.loop_out = compute
    prepare(&job, views, 1, v)
    memset(index, 0, sizeof(index))
    while pos < job.size:
        run = job.shape[job.ndim - 1] - index[job.ndim - 1]
        if run > BLOCK or (job.shape[job.ndim - 1] < SHORT and job.ndim > 1):
            run = BLOCK
        if run > job.size - pos:
            run = job.size - pos
        p = <const char *>fetch(&job, &job.ops[1], index, run, raw, work, &filled)
        for i in range(run):
            if memcmp(p + i * item, ZERO, item) == 0:
                return True
        pos += run
        advance(&job, index, run)
    return False


cdef void fill(Operand *o, int compute, const char *p, char *work, int64_t n) noexcept nogil:
    """A block of one value."""
    cdef int item = tf_itemsize[compute]
    C.cast[o.dtype][compute](p, work, 1)
    C.move[LOG2[item]](work, 0, work, item, n)


cdef void gather(Job *job, Operand *o, const int64_t *index, int64_t run, char *dst) noexcept nogil:
    """`run` elements across short inner axes."""
    cdef int64_t at[8]
    cdef int64_t m
    cdef int nd = job.ndim
    memcpy(at, index, sizeof(at))
    while run > 0:
        m = job.shape[nd - 1] - at[nd - 1]
        if m > run:
            m = run
        C.move[LOG2[o.item]](locate(o, at, nd), o.strides[nd - 1], dst, o.item, m)
        dst += m * o.item
        run -= m
        advance(job, at, m)


cdef void scatter(Job *job, Operand *o, const int64_t *index, int64_t run, const char *src) noexcept nogil:
    """The inverse of gather."""
    cdef int64_t at[8]
    cdef int64_t m
    cdef int nd = job.ndim
    memcpy(at, index, sizeof(at))
    while run > 0:
        m = job.shape[nd - 1] - at[nd - 1]
        if m > run:
            m = run
        C.move[LOG2[o.item]](src, o.item, locate(o, at, nd), o.strides[nd - 1], m)
        src += m * o.item
        run -= m
        advance(job, at, m)


# ---- copies

cdef void copy_task(int64_t i, void *ctx) noexcept nogil:
    """A dense stretch: bytes, or a conversion."""
    cdef Job *job = <Job *>ctx
    cdef int64_t start = i * CHUNK, n = job.size - start
    cdef Operand *d = &job.ops[0]
    cdef Operand *s = &job.ops[1]
    if n > CHUNK:
        n = CHUNK
    if s.dtype == d.dtype:
        memcpy(d.data + start * d.item, s.data + start * s.item, n * d.item)
    else:
        C.cast[s.dtype][d.dtype](s.data + start * s.item, d.data + start * d.item, n)


cdef struct Turn:
    # a copy by parts of planes of the last two axes
    Job *job
    int64_t rows, cols                # of a part
    int64_t bands, strips             # parts of a plane
    int around, failed


cdef void turn_plan(Turn *t, Job *job) noexcept nogil:
    """The axis along which the source is dense becomes the last but one."""
    cdef int nd = job.ndim, k, o
    for k in range(nd - 2):
        if job.ops[1].strides[k] == job.ops[1].item:
            job.shape[k], job.shape[nd - 2] = job.shape[nd - 2], job.shape[k]
            for o in range(2):
                job.ops[o].strides[k], job.ops[o].strides[nd - 2] = job.ops[o].strides[nd - 2], job.ops[o].strides[k]
            break
    t.job, t.failed = job, 0
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
        C.tile[LOG2[to.item]](s, from_.strides[nd - 2], from_.strides[nd - 1],
                              d, to.strides[nd - 2], to.strides[nd - 1], rows, cols, t.around)
        return
    raw = <char *>scratch_push(rows * cols * from_.item)
    if raw == NULL:
        t.failed = 1
        return
    C.tile[LOG2[from_.item]](s, from_.strides[nd - 2], from_.strides[nd - 1],
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
        for r in range(m):
            memcpy(d + r * d_step, s + r * s_step, nbytes)
        left -= m
        index[nd - 2] += m - 1
        for k in range(nd - 2, -1, -1):
            index[k] += 1
            if index[k] < job.shape[k]:
                break
            index[k] = 0


cdef void range_task(int64_t i, void *ctx) noexcept nogil:
    copy_range(<Job *>ctx, i * CHUNK, (i + 1) * CHUNK)


cdef void copy_range(Job *job, int64_t start, int64_t stop) noexcept nogil:
    """Any strides and dtypes, block by block."""
    cdef char raw[BLOCK * 8]
    cdef char work[BLOCK * 8]
    cdef int64_t index[8]
    cdef int64_t rest = start, run
    cdef int k
    cdef Operand *d = &job.ops[0]
    cdef Operand *s = &job.ops[1]
    if stop > job.size:
        stop = job.size
    for k in range(job.ndim - 1, -1, -1):
        index[k] = rest % job.shape[k]
        rest //= job.shape[k]
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
    elif nd > 1 and job.ops[0].strides[nd - 1] == job.ops[0].item and job.ops[1].strides[nd - 1] != job.ops[1].item:
        turn_plan(&turn, &job)
        planes = turn.bands * turn.strips
        for k in range(nd - 2):
            planes *= job.shape[k]
        parallel_for(planes, <double>cost * 0.2, turn_task, &turn)
        return TF_ENOMEM if turn.failed else TF_OK
    elif x.dtype == y.dtype and nd > 1 and job.ops[0].strides[nd - 1] == job.ops[0].item and \
            job.ops[1].strides[nd - 1] == job.ops[1].item:
        parallel_for((job.size // job.shape[nd - 1] - 1) // runs_together(&job) + 1, <double>cost * 0.2, runs_task, &job)
    else:
        parallel_for((job.size + CHUNK - 1) // CHUNK, <double>cost * 0.2, range_task, &job)
    return TF_OK


KERNELS = {"elementwise": kernel_capsule(elementwise), "copy": kernel_capsule(copy)}
