"""Elementwise rows and copies: N-d iteration over any strides around dense inner loops.

Operands that are not dense, or not of the computing dtype, pass through blocks in L1.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memset

from tinyfin.backends.cpu.cast_loops cimport tf_cast_table
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport collapse

cdef extern from "loops.h" nogil:
    ctypedef void (*tf_loop)(void *out, const void *const *inputs, int64_t n, const double *f) noexcept nogil

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
    AROUND = 1 << 24    # the same, of a result beside its inputs
    SHORT = 48          # inner axes below this are gathered across rows

cdef const char *ZERO = b"\0\0\0\0\0\0\0\0"
cdef int LOG2[9]
LOG2[1], LOG2[2], LOG2[4], LOG2[8] = 0, 1, 2, 3

cdef enum:              # how a row of an operand reaches the loop
    IN_PLACE, ONE_VALUE, BY_BLOCKS

cdef enum:              # how rows that are short together do: dense; all the same; of one value each; otherwise
    JOINED, REPEATED, SPREAD, LOOSE

ctypedef struct Operand:
    char *data
    int64_t strides[8]     # in bytes
    int item, dtype, way, across

cdef extern from *:
    """
    /* What passes through L1, at the start of a line: vectors that straddle two are slow. */
    typedef struct {
      char raw[512 * 8], work[5 * 512 * 8];
      char *filled[5]; /* where the value that fills block i came from */
    } __attribute__((aligned(64))) tf_blocks;
    """
    ctypedef struct Blocks "tf_blocks":
        char raw[BLOCK * 8]
        char work[MAXOPS * BLOCK * 8]
        char *filled[MAXOPS]

ctypedef struct Job:
    int ndim, nops, compute, loop_out
    bint flat              # rows are long enough to be walked one by one
    int64_t joined         # rows that pass through L1 together; 0: they are not joined
    bint direct            # every operand can be used in place
    bint around            # the result goes to memory past the caches
    int64_t shape[8]
    int64_t size, chunk
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
    if (compute == TF_F16 or compute == TF_BF16) and INT[<size_t>call.ctx & 0xffff][compute] != NULL:
        loop = INT[<size_t>call.ctx & 0xffff][compute]      # the bits tell
    elif compute == TF_F16 or compute == TF_BF16:
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
        job.chunk = 16 * CHUNK if job.around else CHUNK     # few fences
        if job.joined:
            job.chunk -= job.chunk % job.shape[job.ndim - 1]
        parallel_for((job.size + job.chunk - 1) // job.chunk, <double>job.size * 0.15, run_task, &job)
    return TF_OK


cdef void prepare(Job *job, const tf_view *const *inputs, int n, const tf_view *out) noexcept nogil:
    """Operands with byte strides over the output's shape, axes merged where all allow it."""
    cdef int64_t *strides[5]
    cdef const tf_view *v
    cdef int i, k, lead
    cdef int64_t step
    cdef bint in_place = False
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
    job.flat = job.shape[job.ndim - 1] >= SHORT or job.ndim == 1
    job.direct = job.flat
    for i in range(n + 1):
        step = job.ops[i].strides[job.ndim - 1]
        if step == 0 and i:
            job.ops[i].way = ONE_VALUE
        elif step == job.ops[i].item and job.ops[i].dtype == (job.compute if i else job.loop_out):
            job.ops[i].way = IN_PLACE
        else:
            job.ops[i].way = BY_BLOCKS
        job.direct = job.direct and job.ops[i].way == IN_PLACE
        in_place = in_place or (i and job.ops[i].data == out.data)
    job.joined = rows_to_join(job)
    job.around = not in_place and (job.flat or job.joined) and job.size * job.ops[0].item >= AROUND and \
        job.ops[0].strides[job.ndim - 1] == job.ops[0].item


cdef int64_t rows_to_join(Job *job) noexcept nogil:
    """How many rows pass through L1 together: where they are short, follow one another in the result. Every row by itself would cost more than its elements."""
    cdef int nd = job.ndim, i
    cdef int64_t inner = job.shape[nd - 1], row, step
    cdef Operand *o
    if nd < 2 or inner > BLOCK // 2 or inner * job.shape[nd - 2] < BLOCK // 2:
        return 0
    for i in range(job.nops):
        o = &job.ops[i]
        row, step = o.strides[nd - 2], o.strides[nd - 1]
        if step == o.item and row == inner * step:
            o.across = JOINED
        elif step == 0 and i:
            o.across = SPREAD
        elif row == 0 and i:
            o.across = REPEATED
        else:
            o.across = LOOSE
            if job.direct:
                return 0
    return BLOCK // inner if job.ops[0].across == JOINED else 0


cdef void run_task(int64_t i, void *ctx) noexcept nogil:
    cdef Job *job = <Job *>ctx
    run_range(job, i * job.chunk, min((i + 1) * job.chunk, job.size))


cdef void run_range(Job *job, int64_t start, int64_t stop) noexcept nogil:
    """Elements [start, stop) in row-major order of the output."""
    cdef int64_t index[8]
    cdef Blocks blocks
    cdef int nd = job.ndim, i, k
    cdef int64_t pos = start, run, rest = start
    for k in range(nd - 1, -1, -1):
        index[k] = rest % job.shape[k]
        rest //= job.shape[k]
    for i in range(job.nops):
        blocks.filled[i] = NULL
    while pos < stop:
        if job.joined:
            run = min(min(job.joined, job.shape[nd - 2] - index[nd - 2]) * job.shape[nd - 1], stop - pos)
            run_joined(job, index, run, &blocks)
        elif job.flat:
            run = min(job.shape[nd - 1] - index[nd - 1], stop - pos)
            run_row(job, index, run, &blocks)
        else:
            run = min(<int64_t>BLOCK, stop - pos)
            run_block(job, index, run, &blocks)
        pos += run
        advance(job, index, run)
    if job.around:
        C.fence()


cdef void run_row(Job *job, const int64_t *index, int64_t run, Blocks *b) noexcept nogil:
    """`run` elements along the last axis."""
    cdef const void *ptrs[4]
    cdef char *at[MAXOPS]
    cdef int nd = job.ndim, i
    cdef int64_t done = 0, m = run if job.direct and not job.around else BLOCK
    cdef Operand *o
    cdef char *result
    cdef char *raw = b.raw
    cdef char *work = b.work
    for i in range(job.nops):
        at[i] = locate(&job.ops[i], index, nd)
    while done < run:
        m = min(m, run - done)
        for i in range(1, job.nops):
            o = &job.ops[i]
            ptrs[i - 1] = at[i] if o.way == IN_PLACE else dense(job, o, at[i], m, raw, work_of(b, i), &b.filled[i])
            at[i] += m * o.strides[nd - 1]
        o = &job.ops[0]
        result = work if job.around or o.way != IN_PLACE else at[0]
        job.loop(result, ptrs, m, job.f)
        if o.dtype != job.loop_out:
            result = raw if job.around or o.strides[nd - 1] != o.item else at[0]
            C.cast[job.loop_out][o.dtype](work, result, m)
        if job.around:
            C.stream(at[0], result, m * o.item)
        elif result != at[0]:
            C.move[LOG2[o.item]](result, o.item, at[0], o.strides[nd - 1], m)
        at[0] += m * o.strides[nd - 1]
        done += m


cdef void run_joined(Job *job, const int64_t *index, int64_t run, Blocks *b) noexcept nogil:
    """`run` elements, at most a block, of whole rows of one plane."""
    cdef const void *ptrs[4]
    cdef int nd = job.ndim, i
    cdef Operand *o = &job.ops[0]
    cdef char *at = locate(o, index, nd)
    cdef char *raw = b.raw
    cdef char *work = b.work
    cdef char *result = work if job.around or o.dtype != job.loop_out else at
    for i in range(1, job.nops):
        ptrs[i - 1] = joined(job, &job.ops[i], index, run, b, i)
    job.loop(result, ptrs, run, job.f)
    if o.dtype != job.loop_out:
        result = raw if job.around else at
        C.cast[job.loop_out][o.dtype](work, result, run)
    if job.around:
        C.stream(at, result, run * o.item)


cdef const void *joined(Job *job, Operand *o, const int64_t *index, int64_t run, Blocks *b, int i) noexcept nogil:
    """Elements of whole rows of an input, side by side and of the computing dtype."""
    cdef int nd = job.ndim, size = LOG2[tf_itemsize[job.compute]]
    cdef int64_t inner = job.shape[nd - 1], n = run
    cdef char *p = locate(o, index, nd)
    cdef char *work = work_of(b, i)
    cdef char *spare = b.work           # the result's, which is still free
    cdef char *raw = b.raw
    cdef bint same = o.dtype == job.compute
    if o.across == JOINED:
        if same:
            return p
        C.cast[o.dtype][job.compute](p, work, run)
        return work
    if same and o.across != SPREAD:
        raw = work
    if o.across == REPEATED:
        if b.filled[i] == p:
            return work
        b.filled[i] = p
        n = inner
        C.move[LOG2[o.item]](p, o.strides[nd - 1], raw, o.item, n)
    elif o.across == SPREAD:
        n = run // inner
        C.move[LOG2[o.item]](p, o.strides[nd - 2], raw, o.item, n)
    else:
        gather(job, o, index, run, raw)
    if not same:
        C.cast[o.dtype][job.compute](raw, spare if o.across == SPREAD else work, n)
    if o.across == SPREAD:
        C.spread[size](raw if same else spare, work, n, inner)
    while o.across == REPEATED and n < job.joined * inner:
        run = min(n, job.joined * inner - n)
        memcpy(work + (n << size), work, run << size)
        n += run
    return work


cdef void run_block(Job *job, const int64_t *index, int64_t run, Blocks *b) noexcept nogil:
    """`run` elements, at most a block, across short rows."""
    cdef const void *ptrs[4]
    cdef Operand *o
    cdef char *to
    cdef char *work
    cdef char *raw = b.raw
    cdef int i
    for i in range(1, job.nops):
        o = &job.ops[i]
        work = work_of(b, i)
        to = work if o.dtype == job.compute else raw
        gather(job, o, index, run, to)
        if o.dtype != job.compute:
            C.cast[o.dtype][job.compute](to, work, run)
        ptrs[i - 1] = work
    o = &job.ops[0]
    work = b.work
    job.loop(work, ptrs, run, job.f)
    if o.dtype != job.loop_out:
        C.cast[job.loop_out][o.dtype](work, raw, run)
    scatter(job, o, index, run, raw if o.dtype != job.loop_out else work)


cdef inline char *work_of(Blocks *b, int i) noexcept nogil:
    return b.work + i * (BLOCK * 8)


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


cdef const void *dense(Job *job, const Operand *o, const char *p, int64_t n, char *raw, char *work,
                       char **filled) noexcept nogil:
    """n elements of an input along the last axis, side by side and of the computing dtype, in a block."""
    cdef int64_t step = o.strides[job.ndim - 1]
    if o.way == ONE_VALUE:
        if filled[0] != p:
            C.cast[o.dtype][job.compute](p, work, 1)
            C.move[LOG2[tf_itemsize[job.compute]]](work, 0, work, tf_itemsize[job.compute],
                                                   min(job.shape[job.ndim - 1], <int64_t>BLOCK))
            filled[0] = <char *>p
        return work
    if step != o.item:
        C.move[LOG2[o.item]](p, step, work if o.dtype == job.compute else raw, o.item, n)
        p = raw
    if o.dtype != job.compute:
        C.cast[o.dtype][job.compute](p, work, n)
    return work


cdef bint has_zero(const tf_view *v, int compute) noexcept nogil:
    """Whether an element is 0 in the (integer) computing dtype."""
    cdef int64_t index[8]
    cdef char raw[BLOCK * 8]
    cdef char work[BLOCK * 8]
    cdef const tf_view *views[1]
    cdef int64_t pos = 0, run, i
    cdef int item = tf_itemsize[compute]
    cdef Job job
    views[0] = v
    job.compute = job.loop_out = compute
    prepare(&job, views, 1, v)
    memset(index, 0, sizeof(index))
    while pos < job.size:
        run = min(<int64_t>BLOCK, job.size - pos)
        gather(&job, &job.ops[1], index, run, raw)
        C.cast[v.dtype][compute](raw, work, run)
        for i in range(run):
            if memcmp(work + i * item, ZERO, item) == 0:
                return True
        pos += run
        advance(&job, index, run)
    return False


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
    cdef char block[BLOCK * 8]
    cdef int64_t m
    if n > CHUNK:
        n = CHUNK
    if not job.around:
        if s.dtype == d.dtype:
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
    elif nd > 1 and job.ops[0].strides[nd - 1] == job.ops[0].item and job.ops[1].strides[nd - 1] != 0 and \
            job.ops[1].strides[nd - 1] != job.ops[1].item:
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
