"""Elementwise rows: N-d iteration over any strides around dense inner loops.

Operands that are not dense, or not of the computing dtype, pass through blocks in L1.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memset

from tinyfin.backends.cpu.cast_loops cimport tf_cast_table
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push, team_size
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport collapse

ctypedef tf_loop tf_loop_row[10]

cdef const tf_cast_table *C = <const tf_cast_table *>isa_table(b"cast")
cdef const tf_loop_row *F32 = <const tf_loop_row *>isa_table(b"elementwise_f32")
cdef const tf_loop_row *F64 = <const tf_loop_row *>isa_table(b"elementwise_f64")
cdef const tf_loop_row *INT = <const tf_loop_row *>isa_table(b"elementwise_int")

cdef const char *ZERO = b"\0\0\0\0\0\0\0\0"


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
    cdef int64_t slabs
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
    job.loop, job.f, job.compute = loop, at.f, compute
    prepare(&job, inputs, n, out)
    job.slab = rows_of_slab(&job)
    if job.slab:
        i = job.ndim - 2
        slabs = job.size // (job.shape[i] * job.shape[i + 1]) * ((job.shape[i] - 1) // job.slab + 1)
        parallel_for(slabs, <double>job.size * 0.5, slab_task, &job)
        if job.refused:
            call.detail[0] = job.refused
            return TF_ENOMEM
    elif job.size <= DIRECT:
        run_range(&job, 0, job.size)
    else:
        job.chunk = 16 * CHUNK if job.around else CHUNK     # few fences
        if job.joined:
            job.chunk -= job.chunk % job.inner
        parallel_for((job.size + job.chunk - 1) // job.chunk, <double>job.size * 0.15, run_task, &job)
    return TF_OK


cdef void prepare(Job *job, const tf_view *const *inputs, int n, const tf_view *out) noexcept nogil:
    """Operands with byte strides over the output's shape, axes merged where all allow it."""
    cdef int64_t *strides[5]
    cdef const tf_view *v
    cdef int i, k, lead
    cdef int64_t step
    cdef bint in_place = False
    job.size, job.nops = out.size, n + 1
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
    job.joined, job.refused = rows_to_join(job), 0
    job.around = not in_place and (job.flat or job.joined) and job.size * job.ops[0].item >= AROUND * team_size() and \
        job.ops[0].strides[job.ndim - 1] == job.ops[0].item


cdef int64_t rows_to_join(Job *job) noexcept nogil:
    """How many rows, of some last axes, pass through L1 together: where they are short and follow one another in the
    result. Every row by itself would cost more than its elements."""
    cdef int axis = job.ndim - 1, i
    cdef int64_t inner = job.shape[axis]
    cdef Operand *o
    while axis > 1 and inner * job.shape[axis - 1] <= BLOCK // 2:
        axis -= 1
        inner *= job.shape[axis]
    job.axis, job.inner = axis - 1, inner
    if axis < 1 or inner > BLOCK // 2 or inner * job.shape[axis - 1] < BLOCK // 2:
        return 0
    for i in range(job.nops):
        o = &job.ops[i]
        o.across = LOOSE
        if follow(job, o, o.item):
            o.across = JOINED
        elif i and follow(job, o, 0):
            o.across = SPREAD
        elif i and o.strides[job.axis] == 0:
            o.across = REPEATED
        elif job.direct:
            return 0
    return BLOCK // inner if job.ops[0].across == JOINED else 0


cdef bint follow(const Job *job, const Operand *o, int64_t step) noexcept nogil:
    """Whether elements of rows are `step` apart, and so are rows, unless their elements are one."""
    cdef int k
    cdef int64_t want = step
    for k in range(job.ndim - 1, job.axis, -1):
        if o.strides[k] != want:
            return False
        want *= job.shape[k]
    return step == 0 or o.strides[job.axis] == want


cdef void run_task(int64_t i, void *ctx) noexcept nogil:
    cdef Job *job = <Job *>ctx
    run_range(job, i * job.chunk, min((i + 1) * job.chunk, job.size))


cdef inline bint is_turned(const Job *job, int i) noexcept nogil:
    """Whether an input is dense along the last axis but one, and far from it along the last."""
    cdef const Operand *o = &job.ops[i]
    cdef int64_t far = o.strides[job.ndim - 1]
    return o.strides[job.ndim - 2] == o.item and (far > LINE or far < -LINE)


cdef int64_t rows_of_slab(const Job *job) noexcept nogil:
    """Rows whose turned inputs are turned round before the loop runs over them, as many as stay in cache; 0: none are.
    One row by itself would take one element of each line of memory."""
    cdef int nd = job.ndim, i
    cdef int64_t bytes = 0
    if nd < 2 or job.joined or job.shape[nd - 2] < LINE // 4:
        return 0
    for i in range(1, job.nops):
        if is_turned(job, i):
            bytes += job.shape[nd - 1] * job.ops[i].item
    if bytes == 0 or bytes > SLAB // (LINE // 4):
        return 0
    return min(job.shape[nd - 2], max(<int64_t>LINE // 4, min(<int64_t>LINE, SLAB // 8 // bytes)))


cdef void slab_task(int64_t t, void *ctx) noexcept nogil:
    cdef Job *job = <Job *>ctx
    cdef Job part = job[0]
    cdef int nd = job.ndim, i, k
    cdef int64_t rows = job.shape[nd - 2], cols = job.shape[nd - 1], bands = (rows - 1) // job.slab + 1
    cdef int64_t row = t % bands * job.slab, start = (t // bands * rows + row) * cols
    cdef int64_t index[8]
    cdef size_t bytes = 0
    cdef char *to
    cdef char *buffer
    cdef Operand *o
    rows = min(job.slab, rows - row)
    for i in range(1, job.nops):
        if is_turned(job, i):
            bytes += rows * cols * job.ops[i].item
    buffer = to = <char *>scratch_push(bytes)
    if buffer == NULL:
        job.refused = bytes
        return
    place_at(job, start, index)
    for i in range(1, job.nops):
        if is_turned(job, i):
            o = &part.ops[i]
            C.tile[log2_of(o.item)](locate(o, index, nd), o.item, o.strides[nd - 1], to, cols * o.item, o.item, rows, cols, 0)
            for k in range(nd):
                o.strides[k] = 0
            o.strides[nd - 2], o.strides[nd - 1] = cols * o.item, o.item
            o.data = to - row * cols * o.item
            o.way = IN_PLACE if o.dtype == job.compute else BY_BLOCKS
            to += rows * cols * o.item
    run_range(&part, start, start + rows * cols)
    scratch_pop(bytes)


cdef void run_range(Job *job, int64_t start, int64_t stop) noexcept nogil:
    """Elements [start, stop) in row-major order of the output."""
    cdef int64_t index[8]
    cdef Blocks blocks
    cdef int nd = job.ndim, i
    cdef int64_t pos = start, run
    place_at(job, start, index)
    for i in range(job.nops):
        blocks.filled[i] = NULL
    while pos < stop:
        if job.joined:
            run = min(min(job.joined, job.shape[job.axis] - index[job.axis]) * job.inner, stop - pos)
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
            C.move[log2_of(o.item)](result, o.item, at[0], o.strides[nd - 1], m)
        at[0] += m * o.strides[nd - 1]
        done += m


cdef void run_joined(Job *job, const int64_t *index, int64_t run, Blocks *b) noexcept nogil:
    """`run` elements, at most a block, of whole rows along one axis."""
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
    cdef int nd = job.ndim, size = log2_of(tf_itemsize[job.compute])
    cdef int64_t inner = job.inner, n = run, step = o.strides[job.axis]
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
        gather(job, o, index, n, raw)
    elif o.across == SPREAD:
        n = run // inner
        C.move[log2_of(o.item)](p, step, raw, o.item, n)
    elif o.strides[nd - 1] == o.item and job.axis == nd - 2:
        C.rows(p, step, raw, run // inner, inner * o.item)
    elif job.axis == nd - 2:
        C.tile[log2_of(o.item)](p, step, o.strides[nd - 1], raw, inner * o.item, o.item, run // inner, inner, 0)
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


cdef const void *dense(Job *job, const Operand *o, const char *p, int64_t n, char *raw, char *work,
                       char **filled) noexcept nogil:
    """n elements of an input along the last axis, side by side and of the computing dtype, in a block."""
    cdef int64_t step = o.strides[job.ndim - 1]
    if o.way == ONE_VALUE:
        if filled[0] != p:
            C.cast[o.dtype][job.compute](p, work, 1)
            C.move[log2_of(tf_itemsize[job.compute])](work, 0, work, tf_itemsize[job.compute],
                                                      min(job.shape[job.ndim - 1], <int64_t>BLOCK))
            filled[0] = <char *>p
        return work
    if step != o.item:
        C.move[log2_of(o.item)](p, step, work if o.dtype == job.compute else raw, o.item, n)
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
        C.move[log2_of(o.item)](locate(o, at, nd), o.strides[nd - 1], dst, o.item, m)
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
        C.move[log2_of(o.item)](src, o.item, locate(o, at, nd), o.strides[nd - 1], m)
        src += m * o.item
        run -= m
        advance(job, at, m)


KERNELS = {"elementwise": kernel_capsule(elementwise)}
