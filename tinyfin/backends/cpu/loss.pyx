"""Negative log-likelihood and cross entropy of class labels, and checks of values.

Losses are numbered in row-major order of the labels; their sums are canonical. Any strides.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, offset, offsets, push, span
from tinyfin.backends.cpu.norm_loops cimport *
from tinyfin.backends.cpu.rows cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    NONE = 0                # reductions, in the order of the rows' choices
    MEAN = 1
    SUM = 2

cdef const tf_norm_table *TABLE = <const tf_norm_table *>isa_table(b"norm")


cdef struct Job:
    Lines l                 # operands: x (log-probabilities or logits), labels, gradient of x
    const tf_view *weight   # one number per class, or absent
    const tf_view *cotangent
    const tf_view *total
    char *loss              # reduction none: losses, in row-major order
    int loss_type
    char *shift             # cross entropy: of each row
    char *log
    char *sums              # of the losses of each block, then of the weights
    int64_t ignore, per, blocks, limit
    int reduction, wide
    size_t refused


cdef inline int64_t label_at(const Job *s, int64_t row) noexcept nogil:
    cdef const Operand *o = &s.l.ops[1]
    cdef int64_t at = offset(&s.l.rows, 1, row)
    return (<const int64_t *>o.data)[at] if o.dtype == TF_I64 else (<const uint8_t *>o.data)[at]


cdef inline double load_number(const Job *s, const char *data, int dtype,
                               int64_t at) noexcept nogil:
    """One number as the computing type sees it; doubles hold floats exactly."""
    cdef float f
    cdef double d
    if s.wide:
        s.l.loops.load[dtype](&d, data + at * tf_itemsize[dtype], 1, 1)
        return d
    s.l.loops.load[dtype](&f, data + at * tf_itemsize[dtype], 1, 1)
    return f


cdef inline void put(const Job *s, char *to, int64_t at, double value) noexcept nogil:
    if s.wide:
        (<double *>to)[at] = value
    else:
        (<float *>to)[at] = <float>value


cdef inline double get(const Job *s, const char *src, int64_t at) noexcept nogil:
    return (<const double *>src)[at] if s.wide else (<const float *>src)[at]


cdef inline double product(const Job *s, double a, double b) noexcept nogil:
    """a * b, rounded to the computing type."""
    return a * b if s.wide else <double>(<float>a * <float>b)


cdef inline double weight_of(const Job *s, int64_t label) noexcept nogil:
    if s.weight.flags & TF_ABSENT:
        return 1.0
    return load_number(s, s.weight.data, s.weight.dtype, label * s.weight.strides[0])


cdef int start(Job *s, const tf_view *x, const tf_view *target, const tf_view *y,
               const tf_view *weight, int reduction, int64_t ignore) noexcept nogil:
    """Sets up the walk; the axis of classes is the second, or the only one."""
    cdef int dim = 0 if x.ndim == 1 else 1, k, t = 0
    s.wide = compute_type(x.dtype)
    s.l.loops, s.l.size, s.refused = &TABLE.of[s.wide], 8 if s.wide else 4, 0
    s.l.n, s.l.rows.nd = x.shape[dim], 0
    s.l.step[0], s.l.step[1], s.l.step[2] = x.strides[dim], 0, y.strides[dim]
    for k in range(x.ndim):
        if k != dim:
            push(&s.l.rows, x.shape[k], x.strides[k], target.strides[t], y.strides[k])
            t += 1
    s.l.count = span(&s.l.rows)
    s.l.ops[0] = operand(x, s.l.n == 1 or s.l.step[0] == 1, s.wide)
    s.l.ops[1] = operand(target, True, s.wide)
    s.l.ops[2] = operand(y, True, s.wide)
    s.weight, s.reduction, s.ignore = weight, reduction, ignore
    s.blocks, s.limit = (s.l.count + TF_BLOCK - 1) // TF_BLOCK, s.l.n
    return dim


cdef int check_labels(const Job *s, int dim, tf_call *call) noexcept nogil:
    cdef int64_t row, label
    for row in range(s.l.count):
        label = label_at(s, row)
        if (label < 0 or label >= s.l.n) and label != s.ignore:
            call.detail[0], call.detail[1], call.detail[2] = label, s.l.n, dim
            return TF_EINDEX
    return TF_OK


cdef void loss_block(int64_t block, void *ctx) noexcept nogil:
    """Losses of 2048 rows, and their sums."""
    cdef Job *s = <Job *>ctx
    cdef char losses[TF_BLOCK * 8]
    cdef char weights[TF_BLOCK * 8]
    cdef int64_t first = block * TF_BLOCK, n = min(s.l.count - first, TF_BLOCK), i, label, at
    cdef double v, w
    for i in range(n):
        label = label_at(s, first + i)
        v = w = 0.0
        if label != s.ignore:
            at = offset(&s.l.rows, 0, first + i) + label * s.l.step[0]
            v, w = load_number(s, s.l.ops[0].data, s.l.ops[0].dtype, at), weight_of(s, label)
            if s.shift != NULL:
                v = v - get(s, s.shift, first + i)
                v = (v if s.wide else <float>v) - get(s, s.log, first + i)
                v = v if s.wide else <float>v
            v = product(s, -v, w)
        put(s, losses, i, v)
        put(s, weights, i, w)
    if s.loss != NULL:
        s.l.loops.store[s.loss_type](s.loss + first * tf_itemsize[s.loss_type], losses, n, 1)
    s.l.loops.sum(s.sums + block * s.l.size, losses, n)
    s.l.loops.sum(s.sums + (s.blocks + block) * s.l.size, weights, n)


cdef int finish_loss(Job *s, tf_view *loss, tf_view *total, tf_call *call) noexcept nogil:
    """Losses, their sum or weighted mean, and the sum of the weights."""
    cdef size_t bytes = 2 * max(s.blocks, 1) * s.l.size
    cdef char result[8]
    cdef char weights[8]
    s.sums = <char *>scratch_push(bytes)
    if s.sums == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.loss, s.loss_type = loss.data if s.reduction == NONE else NULL, loss.dtype
    parallel_for(s.blocks, s.l.count * 8.0, loss_block, s)
    s.l.loops.sum(result, s.sums, s.blocks)
    s.l.loops.sum(weights, s.sums + s.blocks * s.l.size, s.blocks)
    scratch_pop(bytes)
    s.l.loops.store[total.dtype](total.data, weights, 1, 1)
    if s.reduction == MEAN:
        if s.wide:
            (<double *>result)[0] /= (<double *>weights)[0]
        else:
            (<float *>result)[0] /= (<float *>weights)[0]
    if s.reduction != NONE:
        s.l.loops.store[loss.dtype](loss.data, result, 1, 1)
    return TF_OK


cdef int nll_loss(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept nogil:
    """(log-probabilities, labels, weight? -> loss, total weight)"""
    cdef Job s
    cdef int dim = start(&s, inputs[0], inputs[1], inputs[0], inputs[2], <int>at.i[0], at.i[1])
    if check_labels(&s, dim, call):
        return TF_EINDEX
    s.shift = s.log = NULL
    return finish_loss(&s, outputs[0], outputs[1], call)


# ---- cross entropy of logits

cdef void lse_rows(int64_t task, void *ctx) noexcept nogil:
    cdef Job *s = <Job *>ctx
    cdef Operand *x = &s.l.ops[0]
    cdef int64_t row = task * s.per, stop = min(row + s.per, s.l.count)
    cdef size_t bytes = 0 if x.direct else s.l.n * s.l.size
    cdef char *buffer = <char *>scratch_push(bytes) if bytes else NULL
    cdef tf_lse_rows a
    if bytes and buffer == NULL:
        s.refused = bytes
        return
    a.n, a.rows, a.xstep = s.l.n, 1, last_step(&s.l.rows, 0)
    while row < stop:
        a.shift, a.log = s.shift + row * s.l.size, s.log + row * s.l.size
        a.x = x.data + offset(&s.l.rows, 0, row) * x.item
        if x.direct:
            a.rows = run_length(&s.l.rows, row, stop)
        else:
            s.l.loops.load[x.dtype](buffer, <const char *>a.x, s.l.n, s.l.step[0])
            a.x = buffer
        s.l.loops.lse(&a)
        row += a.rows
    if bytes:
        scratch_pop(bytes)


cdef void lse_tiles(int64_t task, void *ctx) noexcept nogil:
    cdef Job *s = <Job *>ctx
    cdef int64_t row = task * s.per, stop = min(row + s.per, s.l.count), tile = tile_bytes(&s.l)
    cdef int group = group_of(&s.l), cols, t, c
    cdef size_t bytes = (group // TF_TILE + 1) * tile
    cdef char *x = <char *>scratch_push(bytes)
    cdef double shift[TF_TILE]      # room for either type
    cdef double logs[TF_TILE]
    cdef tf_lse_rows a
    if x == NULL:
        s.refused = bytes
        return
    a.n, a.rows, a.xstep, a.shift, a.log = s.l.n, 1, 0, shift, logs
    while row < stop:
        cols = <int>min(stop - row, group)
        load_columns(&s.l, 0, row, cols, x)
        for t in range((cols + TF_TILE - 1) // TF_TILE):
            a.x = x + t * tile
            s.l.loops.lse_tile(&a, x + group // TF_TILE * tile)
            for c in range(min(cols - t * TF_TILE, TF_TILE)):
                put(s, s.shift, row + t * TF_TILE + c, get(s, <char *>shift, c))
                put(s, s.log, row + t * TF_TILE + c, get(s, <char *>logs, c))
        row += cols
    scratch_pop(bytes)


cdef int cross_entropy(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call) noexcept nogil:
    """(logits, labels, weight? -> loss, total weight, largest logit, log of the sum of exp)"""
    cdef Job s
    cdef int dim = start(&s, inputs[0], inputs[1], inputs[0], inputs[2], <int>at.i[0], at.i[1])
    cdef bint columns = by_columns(&s.l, 1)
    if check_labels(&s, dim, call):
        return TF_EINDEX
    s.shift, s.log = outputs[2].data, outputs[3].data
    s.per = max(GRAIN // max(s.l.n, 1), 1)
    if columns:
        s.per = max(s.per // GROUP, 1) * GROUP
    parallel_for((s.l.count + s.per - 1) // s.per, s.l.count * s.l.n * (1.0 if columns else 0.6),
                 lse_tiles if columns else lse_rows, &s)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return finish_loss(&s, outputs[0], outputs[1], call)


# ---- gradients

cdef double row_gradient(const Job *s, int64_t row, int64_t label, double whole) noexcept nogil:
    """What flows to the log-probability of the label; 0 for ignored rows."""
    cdef int64_t at = 0, left = row
    cdef int k
    cdef double g = whole
    if label == s.ignore:
        return 0.0
    if s.reduction == NONE:
        for k in range(s.cotangent.ndim - 1, -1, -1):
            at += left % s.cotangent.shape[k] * s.cotangent.strides[k]
            left //= s.cotangent.shape[k]
        g = -load_number(s, s.cotangent.data, s.cotangent.dtype, at)
    return product(s, g, weight_of(s, label))


cdef double whole_gradient(const Job *s) noexcept nogil:
    """-g, or -(g / total weight) for the mean; per row for reduction none."""
    cdef double g, total
    if s.reduction == NONE:
        return 0.0
    g = load_number(s, s.cotangent.data, s.cotangent.dtype, 0)
    if s.reduction == MEAN:
        total = load_number(s, s.total.data, s.total.dtype, 0)
        g = g / total if s.wide else <double>(<float>g / <float>total)
    return -g


cdef int nll_loss_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call) noexcept nogil:
    """(g, labels, weight?, total weight -> gx), reduction, ignore_index, shape"""
    cdef Job s
    cdef tf_view *y = outputs[0]
    cdef int64_t row, label
    cdef double whole, v
    cdef float f
    cdef int dim = start(&s, y, inputs[1], y, inputs[2], <int>at.i[0], at.i[1])
    if check_labels(&s, dim, call):
        return TF_EINDEX
    s.cotangent, s.total = inputs[0], inputs[3]
    memset(y.data, 0, y.size * tf_itemsize[y.dtype])
    whole = whole_gradient(&s)
    for row in range(s.l.count):
        label = label_at(&s, row)
        if label == s.ignore:
            continue
        v = row_gradient(&s, row, label, whole)
        f = <float>v
        s.l.loops.store[y.dtype](
            y.data + (offset(&s.l.rows, 2, row) + label * s.l.step[2]) * s.l.ops[2].item,
            <const void *>&v if s.wide else <const void *>&f, 1, 1)
    return TF_OK


cdef void ce_rows(int64_t task, void *ctx) noexcept nogil:
    cdef Job *s = <Job *>ctx
    cdef Operand *x = &s.l.ops[0]
    cdef Operand *y = &s.l.ops[2]
    cdef int64_t row, label
    cdef int64_t off[3]
    cdef bint direct = x.direct and y.direct
    cdef size_t bytes = 0 if direct else s.l.n * s.l.size
    cdef char *buffer = <char *>scratch_push(bytes) if bytes else NULL
    cdef char g[8]
    cdef double whole = whole_gradient(s)
    cdef tf_ce_rows a
    if bytes and buffer == NULL:
        s.refused = bytes
        return
    a.n, a.rows, a.xstep, a.ystep, a.g, a.label = s.l.n, 1, 0, 0, g, &label
    for row in range(task * s.per, min((task + 1) * s.per, s.l.count)):
        offsets(&s.l.rows, row, off)
        label = label_at(s, row)
        put(s, g, 0, row_gradient(s, row, label, whole))
        label = -1 if label == s.ignore else label
        a.shift, a.log = s.shift + row * s.l.size, s.log + row * s.l.size
        a.x, a.y = x.data + off[0] * x.item, y.data + off[2] * y.item
        if direct:
            s.l.loops.ce_grad(&a)
        else:
            s.l.loops.load[x.dtype](buffer, <const char *>a.x, s.l.n, s.l.step[0])
            a.x = a.y = buffer
            s.l.loops.ce_grad(&a)
            s.l.loops.store[y.dtype](y.data + off[2] * y.item, buffer, s.l.n, 1)
    if bytes:
        scratch_pop(bytes)


cdef void ce_tiles(int64_t task, void *ctx) noexcept nogil:
    cdef Job *s = <Job *>ctx
    cdef int64_t row = task * s.per, stop = min(row + s.per, s.l.count), tile = tile_bytes(&s.l), at
    cdef int group = group_of(&s.l), cols, t, c
    cdef size_t bytes = 2 * (group // TF_TILE) * tile
    cdef char *x = <char *>scratch_push(bytes)
    cdef char *y = x + group // TF_TILE * tile
    cdef double shift[TF_TILE]      # room for either type
    cdef double logs[TF_TILE]
    cdef double g[TF_TILE]
    cdef int64_t labels[TF_TILE]
    cdef double whole = whole_gradient(s)
    cdef tf_ce_rows a
    if x == NULL:
        s.refused = bytes
        return
    a.n, a.rows, a.xstep, a.ystep = s.l.n, 1, 0, 0
    a.shift, a.log, a.g, a.label = shift, logs, g, labels
    while row < stop:
        cols = <int>min(stop - row, group)
        load_columns(&s.l, 0, row, cols, x)
        for t in range((cols + TF_TILE - 1) // TF_TILE):
            for c in range(TF_TILE):
                at = row + t * TF_TILE + c
                labels[c] = label_at(s, at) if at < row + cols else s.ignore
                put(s, <char *>g, c, row_gradient(s, at, labels[c], whole))
                labels[c] = -1 if labels[c] == s.ignore else labels[c]
                put(s, <char *>shift, c, get(s, s.shift, at) if at < row + cols else 0.0)
                put(s, <char *>logs, c, get(s, s.log, at) if at < row + cols else 0.0)
            a.x, a.y = x + t * tile, y + t * tile
            s.l.loops.ce_grad_tile(&a)
        store_columns(&s.l, 2, row, cols, y)
        row += cols
    scratch_pop(bytes)


cdef int cross_entropy_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                            const tf_attrs *at, tf_call *call) noexcept nogil:
    """(g, logits, labels, weight?, total weight, largest logit, log of the sum -> gx)"""
    cdef Job s
    cdef int dim = start(&s, inputs[1], inputs[2], outputs[0], inputs[3], <int>at.i[0], at.i[1])
    cdef bint columns = s.l.n > 1 and (s.l.step[0] != 1 or s.l.step[2] != 1)
    cdef size_t bytes = 2 * s.l.count * s.l.size
    cdef char *buffer
    columns = columns or (s.l.n < SHORT and s.l.count >= 4)
    if s.l.n == 0 or s.l.count == 0:
        return TF_OK
    if check_labels(&s, dim, call):
        return TF_EINDEX
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.cotangent, s.total = inputs[0], inputs[4]
    s.shift = <char *>dense_numbers(s.l.loops, inputs[5], s.wide, buffer)
    s.log = <char *>dense_numbers(s.l.loops, inputs[6], s.wide, buffer + s.l.count * s.l.size)
    s.per = max(GRAIN // s.l.n, 1)
    if columns:
        s.per = max(s.per // GROUP, 1) * GROUP
    parallel_for((s.l.count + s.per - 1) // s.per,
                 s.l.count * (s.l.n * (1.0 if columns else 0.6) + 20),
                 ce_tiles if columns else ce_rows, &s)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


# ---- checks

cdef int check_values(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept nogil:
    """variant 0: all elements lie in [0, 1]; 1: none is NaN. Gives True. argument: how errors call x."""
    cdef const tf_view *x = inputs[0]
    cdef int k
    cdef size_t variant = <size_t>call.ctx
    cdef const tf_norm_loops *loops = &TABLE.of[1]
    cdef Operand o = operand(x, True, 1)
    cdef Axes axes
    cdef double block[256]
    cdef double v
    cdef int64_t i, j, m
    axes.nd = 0
    for k in range(x.ndim):
        push(&axes, x.shape[k], x.strides[k], 0, 0)
    for i in range(0, x.size, 256):
        m = min(x.size - i, 256)
        gather(loops, &o, 0, &axes, 0, i, m, 8, <char *>block)
        for j in range(m):
            v = block[j]
            if (v != v) if variant else not (0.0 <= v <= 1.0):
                call.detail[0], call.detail[2] = at.i[0], variant
                memcpy(&call.detail[1], &v, sizeof(v))
                return TF_EVALUE
    (<uint8_t *>outputs[0].data)[0] = 1
    return TF_OK


cdef object CHECK = kernel_capsule(check_values)
KERNELS = {
    "nll_loss": kernel_capsule(nll_loss), "nll_loss_grad": kernel_capsule(nll_loss_grad),
    "cross_entropy": kernel_capsule(cross_entropy),
    "cross_entropy_grad": kernel_capsule(cross_entropy_grad),
    "check_unit_interval": (CHECK, 0), "check_not_nan": (CHECK, 1),
}
