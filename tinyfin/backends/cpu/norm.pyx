"""Softmax, layer norm, RMS norm: one pass over memory, sums in canonical order.

Any strides. Half precision is widened to float, computed, and rounded once.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, offsets, push, span
from tinyfin.backends.cpu.norm_loops cimport *
from tinyfin.backends.cpu.rows cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    NEIGHBOURS = 16     # lanes of one task
    TASKS = 4           # tasks of a block of rows: TF_SUM_LANES / NEIGHBOURS

cdef const tf_norm_table *TABLE = <const tf_norm_table *>isa_table(b"norm")


# ---- softmax along one axis

cdef struct Soft:
    Lines l                     # operands: x (the result, for gradients), g, y
    int64_t per                 # rows of a task
    int kind
    bint narrow                 # the result is rounded to a half type: so are its inputs first
    size_t refused              # scratch bytes that were not granted


cdef void soft_round(Soft *s, char *x, int64_t n) noexcept nogil:
    """x as it would be after a cast to the result's type."""
    cdef int dtype = s.l.ops[2].dtype
    cdef char half[512]
    cdef int64_t i, m
    for i in range(0, n, 256):
        m = min(n - i, 256)
        s.l.loops.store[dtype](half, x + i * s.l.size, m, 1)
        s.l.loops.load[dtype](x + i * s.l.size, half, m, 1)


cdef void soft_tiles(int64_t task, void *ctx) noexcept nogil:
    cdef Soft *s = <Soft *>ctx
    cdef int64_t row = task * s.per, stop = min(row + s.per, s.l.count), tile = tile_bytes(&s.l)
    cdef int group = group_of(&s.l), cols, t, tiles
    cdef size_t bytes = 3 * (group // TF_TILE) * tile
    cdef char *x = <char *>scratch_push(bytes)
    cdef char *g = x + (group // TF_TILE) * tile
    cdef char *y = g + (group // TF_TILE) * tile
    cdef tf_soft_rows a
    if x == NULL:
        s.refused = bytes
        return
    while row < stop:
        cols = <int>min(stop - row, group)
        tiles = (cols + TF_TILE - 1) // TF_TILE
        load_columns(&s.l, 0, row, cols, x)
        if s.narrow:
            soft_round(s, x, tiles * s.l.n * TF_TILE)
        if s.kind >= 2:
            load_columns(&s.l, 1, row, cols, g)
        for t in range(tiles):
            a.x, a.g, a.y, a.rows, a.n = x + t * tile, g + t * tile, y + t * tile, 1, s.l.n
            s.l.loops.soft_tile[s.kind](&a)
        store_columns(&s.l, 2, row, cols, y)
        row += cols
    scratch_pop(bytes)


cdef void soft_rows(int64_t task, void *ctx) noexcept nogil:
    """Rows whose elements lie side by side, in the computing type."""
    cdef Soft *s = <Soft *>ctx
    cdef int64_t row = task * s.per, stop = min(row + s.per, s.l.count), run
    cdef int64_t off[3]
    cdef int size = s.l.size
    cdef tf_soft_rows a
    a.n = s.l.n
    a.xstep, a.gstep = last_step(&s.l.rows, 0), last_step(&s.l.rows, 1)
    a.ystep = last_step(&s.l.rows, 2)
    while row < stop:
        run = run_length(&s.l.rows, row, stop)
        offsets(&s.l.rows, row, off)
        a.x, a.g = s.l.ops[0].data + off[0] * size, s.l.ops[1].data + off[1] * size
        a.y, a.rows = s.l.ops[2].data + off[2] * size, run
        s.l.loops.soft[s.kind](&a)
        row += run


cdef void soft_converted(int64_t task, void *ctx) noexcept nogil:
    """Rows of another type, or of one number."""
    cdef Soft *s = <Soft *>ctx
    cdef int64_t row, length = s.l.n * s.l.size
    cdef int64_t off[3]
    cdef int k
    cdef size_t bytes = 2 * length
    cdef char *buffer = <char *>scratch_push(bytes)
    cdef tf_soft_rows a
    if buffer == NULL:
        s.refused = bytes
        return
    a.x, a.g, a.y, a.rows, a.n = buffer, buffer + length, buffer, 1, s.l.n
    a.xstep = a.gstep = a.ystep = 0
    for row in range(task * s.per, min((task + 1) * s.per, s.l.count)):
        offsets(&s.l.rows, row, off)
        for k in range(2 if s.kind >= 2 else 1):
            s.l.loops.load[s.l.ops[k].dtype](buffer + k * length,
                                             s.l.ops[k].data + off[k] * s.l.ops[k].item, s.l.n,
                                             s.l.step[k])
        if s.narrow:
            soft_round(s, buffer, s.l.n)
        s.l.loops.soft[s.kind](&a)
        s.l.loops.store[s.l.ops[2].dtype](s.l.ops[2].data + off[2] * s.l.ops[2].item, buffer,
                                          s.l.n, 1)
    scratch_pop(bytes)


cdef int softmax(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call) noexcept nogil:
    """variant: 0 softmax, 1 log_softmax (x); 2, 3 their gradients (g, y)."""
    cdef Soft s
    cdef const tf_view *views[3]
    cdef int k, dim = <int>at.i[0], wide = compute_type(outputs[0].dtype)
    cdef bint direct = True, half = outputs[0].dtype == TF_F16 or outputs[0].dtype == TF_BF16
    s.kind, s.refused = <int><size_t>call.ctx, 0
    views[0] = inputs[1] if s.kind >= 2 else inputs[0]
    views[1], views[2] = inputs[0], outputs[0]
    if outputs[0].size == 0:
        return TF_OK
    s.l.n = views[2].shape[dim] if views[2].ndim else 1
    s.l.loops, s.l.size = &TABLE.of[wide], 8 if wide else 4
    s.narrow = half and views[0].dtype != views[2].dtype and s.kind < 2
    s.l.rows.nd = 0
    for k in range(views[2].ndim):
        if k != dim:
            push(&s.l.rows, views[2].shape[k], views[0].strides[k], views[1].strides[k],
                 views[2].strides[k])
    for k in range(3):
        s.l.step[k] = views[k].strides[dim] if views[2].ndim else 1
        s.l.ops[k] = operand(views[k], s.l.n == 1 or s.l.step[k] == 1, wide)
        direct = direct and s.l.ops[k].direct
    s.l.count = span(&s.l.rows)
    s.per = max(GRAIN // s.l.n, 1)
    if by_columns(&s.l, 3):
        s.per = max(s.per // GROUP, 1) * GROUP
        parallel_for((s.l.count + s.per - 1) // s.per, s.l.count * s.l.n * 1.2, soft_tiles, &s)
    else:
        parallel_for((s.l.count + s.per - 1) // s.per, s.l.count * s.l.n * 0.7,
                     soft_rows if direct else soft_converted, &s)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


# ---- layer norm and RMS norm

cdef struct Norm:
    const tf_norm_loops *loops
    Axes rows                   # x, g, y
    Axes along[2]               # the elements of a row of x, of g
    Operand x
    Operand g
    Operand y
    const char *w
    const char *b
    char *mean
    char *rstd
    char *partial               # gradients: sums over rows of g * xhat and of g, by lane
    int64_t n, count, per
    int size
    bint w_grad, b_grad
    double eps
    size_t refused


cdef bint norm_axes(Norm *s, const tf_view *x, const tf_view *g, const tf_view *y,
                    int ndim) noexcept nogil:
    """Cuts the trailing ndim axes off; whether the rows of x and g are dense."""
    cdef int k
    s.rows.nd = s.along[0].nd = s.along[1].nd = 0
    s.n = 1
    for k in range(x.ndim - ndim):
        push(&s.rows, x.shape[k], x.strides[k], g.strides[k], y.strides[k])
    for k in range(x.ndim - ndim, x.ndim):
        push(&s.along[0], x.shape[k], x.strides[k], 0, 0)
        push(&s.along[1], x.shape[k], g.strides[k], 0, 0)
        s.n *= x.shape[k]
    s.count = span(&s.rows)
    return dense_row(&s.along[0]) and dense_row(&s.along[1])


cdef bint dense_statistics(const tf_view *v, int wide) noexcept nogil:
    """Saved by the forward row, so nearly always."""
    return (v.flags & TF_CONTIGUOUS) != 0 and v.dtype == (TF_F64 if wide else TF_F32)


cdef bint dense_row(const Axes *a) noexcept nogil:
    return a.nd == 0 or (a.nd == 1 and a.s[0][0] == 1)


cdef void norm_rows(int64_t task, void *ctx) noexcept nogil:
    cdef Norm *s = <Norm *>ctx
    cdef int64_t row = task * s.per, stop = min(row + s.per, s.count), run
    cdef int64_t off[3]
    cdef bint direct = s.x.direct and s.y.direct
    cdef size_t bytes = 0 if direct else s.n * s.size
    cdef char *buffer = <char *>scratch_push(bytes) if bytes else NULL
    cdef tf_norm_rows a
    if bytes and buffer == NULL:
        s.refused = bytes
        return
    a.w, a.b, a.n, a.eps, a.step = s.w, s.b, s.n, s.eps, 1
    a.xstep, a.ystep = last_step(&s.rows, 0), last_step(&s.rows, 2)
    while row < stop:
        run = run_length(&s.rows, row, stop) if direct else 1
        offsets(&s.rows, row, off)
        a.rows = run
        a.mean, a.rstd = s.mean + row * s.size if s.mean != NULL else NULL, s.rstd + row * s.size
        if direct:
            a.x, a.y = s.x.data + off[0] * s.size, s.y.data + off[2] * s.size
            s.loops.norm(&a)
        else:
            gather(s.loops, &s.x, off[0], &s.along[0], 0, 0, s.n, s.size, buffer)
            a.x = a.y = buffer
            s.loops.norm(&a)
            s.loops.store[s.y.dtype](s.y.data + off[2] * s.y.item, buffer, s.n, 1)
        row += run
    if bytes:
        scratch_pop(bytes)


cdef int norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call) noexcept nogil:
    """variant 0: layer norm (x, w?, b? -> y, mean, rstd); 1: RMS norm (x, w? -> y, rstd)."""
    cdef Norm s
    cdef int wide = compute_type(outputs[0].dtype), rms = <int><size_t>call.ctx
    cdef bint dense = norm_axes(&s, inputs[0], inputs[0], outputs[0], <int>at.i[0])
    cdef size_t bytes
    cdef char *buffer
    s.loops, s.size, s.eps, s.refused = &TABLE.of[wide], 8 if wide else 4, at.f[0], 0
    if rms and not at.i[9]:
        s.eps = 2.220446049250313e-16 if wide else 1.1920928955078125e-07
    if s.count == 0:
        return TF_OK
    bytes = 2 * s.n * s.size
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.w = dense_numbers(s.loops, inputs[1], wide, buffer)
    s.b = NULL if rms else dense_numbers(s.loops, inputs[2], wide, buffer + s.n * s.size)
    s.x, s.y = operand(inputs[0], dense, wide), operand(outputs[0], True, wide)
    s.mean, s.rstd = NULL if rms else outputs[1].data, outputs[1 if rms else 2].data
    s.per = max(GRAIN // max(s.n, 1), 1)
    parallel_for((s.count + s.per - 1) // s.per, s.count * (s.n * 0.35 + 10), norm_rows, &s)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


# Gradients of w and b are canonical sums over rows: each lane has a row of sums. A task has 16
# neighbouring lanes of a block, so that the rows it reads come in runs and its sums stay in cache.

cdef inline int64_t sums_width(const Norm *s) noexcept nogil:
    """Numbers that a lane keeps."""
    return s.n * ((1 if s.w_grad else 0) + (1 if s.b_grad else 0))


cdef void norm_grad_row(Norm *s, int64_t row, char *sums, char *buffer) noexcept nogil:
    """One row; its shares are added to the sums of its lane."""
    cdef int64_t off[3]
    cdef tf_norm_rows a
    offsets(&s.rows, row, off)
    a.w, a.b, a.n, a.eps, a.step, a.rows = s.w, NULL, s.n, s.eps, 1, 1
    a.xstep = a.gstep = a.ystep = 0
    a.gw = sums if s.w_grad else NULL
    a.gb = sums + (s.n * s.size if s.w_grad else 0) if s.b_grad else NULL
    a.mean, a.rstd = s.mean + row * s.size if s.mean != NULL else NULL, s.rstd + row * s.size
    if buffer == NULL:
        a.x, a.g = s.x.data + off[0] * s.size, s.g.data + off[1] * s.size
        a.y = s.y.data + off[2] * s.size
        s.loops.norm_grad(&a)
        return
    gather(s.loops, &s.x, off[0], &s.along[0], 0, 0, s.n, s.size, buffer)
    gather(s.loops, &s.g, off[1], &s.along[1], 0, 0, s.n, s.size, buffer + s.n * s.size)
    a.x, a.y, a.g = buffer, buffer, buffer + s.n * s.size
    s.loops.norm_grad(&a)
    s.loops.store[s.y.dtype](s.y.data + off[2] * s.y.item, buffer, s.n, 1)


cdef void norm_grad_lanes(int64_t task, void *ctx) noexcept nogil:
    """16 lanes of one block of 2048 rows."""
    cdef Norm *s = <Norm *>ctx
    cdef int64_t base = task // TASKS * TF_BLOCK, lane = task % TASKS * NEIGHBOURS, row, i
    cdef int64_t step = sums_width(s) * s.size
    cdef size_t bytes = 0 if s.x.direct and s.g.direct and s.y.direct else 2 * s.n * s.size
    cdef char *buffer = <char *>scratch_push(bytes) if bytes else NULL
    cdef char *sums = s.partial + (task // TASKS * TF_SUM_LANES + lane) * step
    if bytes and buffer == NULL:
        s.refused = bytes
        return
    if base + lane < s.count:
        s.loops.fill(sums, -0.0, min(s.count - base - lane, NEIGHBOURS) * sums_width(s))
    row = base + lane
    while row < min(base + TF_BLOCK, s.count):
        for i in range(min(s.count - row, NEIGHBOURS)):
            norm_grad_row(s, row + i, sums + i * step, buffer)
        row += TF_SUM_LANES
    if bytes:
        scratch_pop(bytes)


cdef void add_rows(const tf_norm_loops *loops, char *rows, int64_t count, int64_t width,
                   int64_t step, int64_t used) noexcept nogil:
    """The first `used` of `count` rows, by halving: row j takes row j + count / 2, and so on."""
    cdef int64_t h = count // 2, j
    while h:
        for j in range(min(h, used - h)):
            loops.add(rows + j * step, rows + (j + h) * step, width)
        used = min(used, h)
        h //= 2


cdef void sum_rows(const tf_norm_loops *loops, char *rows, int64_t count, int64_t width,
                   int64_t step) noexcept nogil:
    """Canonical sum of rows of `width` numbers, `step` bytes apart, into the first."""
    cdef int64_t b, i, len
    cdef char *block
    while count > 1:
        for b in range((count + TF_BLOCK - 1) // TF_BLOCK):
            block = rows + b * TF_BLOCK * step
            len = min(count - b * TF_BLOCK, TF_BLOCK)
            for i in range(TF_SUM_LANES, len):
                loops.add(block + i % TF_SUM_LANES * step, block + i * step, width)
            add_rows(loops, block, TF_SUM_LANES, width, step, min(len, TF_SUM_LANES))
            if b:
                memcpy(rows + b * step, block, step)
        count = (count + TF_BLOCK - 1) // TF_BLOCK


cdef int norm_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call) noexcept nogil:
    """variant 0: (g, x, mean, rstd, w? -> gx, gw, gb); 1: (g, x, rstd, w? -> gx, gw)."""
    cdef Norm s
    cdef int rms = <int><size_t>call.ctx, rstd = 2 if rms else 3
    cdef int wide = compute_type(outputs[0].dtype)
    cdef int64_t blocks, b, width, step, lanes, statistics
    cdef size_t bytes
    cdef char *buffer
    cdef bint dense = norm_axes(&s, inputs[1], inputs[0], outputs[0], <int>at.i[0])
    s.loops, s.size, s.eps, s.refused = &TABLE.of[wide], 8 if wide else 4, at.f[0], 0
    s.w_grad, s.b_grad = outputs[1].size > 0, not rms and outputs[2].size > 0
    s.x, s.g = operand(inputs[1], dense, wide), operand(inputs[0], dense, wide)
    s.y = operand(outputs[0], True, wide)
    blocks = (s.count + TF_BLOCK - 1) // TF_BLOCK
    width = sums_width(&s)
    step = width * s.size
    lanes = (blocks - 1) * TF_SUM_LANES + min(s.count - (blocks - 1) * TF_BLOCK, TF_SUM_LANES) if blocks else 1
    statistics = 2 * s.count * s.size
    if dense_statistics(inputs[2], wide) and dense_statistics(inputs[rstd], wide):
        statistics = 0
    bytes = s.n * s.size + statistics + lanes * step
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.partial = buffer + s.n * s.size + statistics
    s.w = dense_numbers(s.loops, inputs[rstd + 1], wide, buffer)
    s.rstd = <char *>dense_numbers(s.loops, inputs[rstd], wide, buffer + s.n * s.size)
    s.mean = NULL if rms else <char *>dense_numbers(s.loops, inputs[2], wide,
                                                    buffer + (s.n + s.count) * s.size)
    parallel_for(blocks * TASKS, s.count * (s.n * 0.45 + 20), norm_grad_lanes, &s)
    for b in range(blocks if width else 0):
        add_rows(s.loops, s.partial + b * TF_SUM_LANES * step, TF_SUM_LANES, width, step,
                 min(s.count - b * TF_BLOCK, TF_SUM_LANES))
    sum_rows(s.loops, s.partial, blocks if width else 0, width, TF_SUM_LANES * step)
    if s.count == 0:
        s.loops.fill(s.partial, 0.0, width)
    if s.w_grad:
        s.loops.store[outputs[1].dtype](outputs[1].data, s.partial, s.n, 1)
    if s.b_grad:
        s.loops.store[outputs[2].dtype](outputs[2].data, s.partial + (width - s.n) * s.size, s.n, 1)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


cdef object SOFTMAX = kernel_capsule(softmax)
cdef object NORM = kernel_capsule(norm)
cdef object NORM_GRAD = kernel_capsule(norm_grad)
KERNELS = {
    "softmax": (SOFTMAX, 0), "log_softmax": (SOFTMAX, 1),
    "softmax_grad": (SOFTMAX, 2), "log_softmax_grad": (SOFTMAX, 3),
    "layer_norm": (NORM, 0), "rms_norm": (NORM, 1),
    "layer_norm_grad": (NORM_GRAD, 0), "rms_norm_grad": (NORM_GRAD, 1),
}
