"""Group norm: a row is the channels of a group of a sample, with a mean and rstd of its own; weights go by channel.

Any strides. Half precision is widened to float, computed, and rounded once; sums are canonical.
"""
from libc.math cimport sqrt, sqrtf
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, push
from tinyfin.backends.cpu.norm_loops cimport *
from tinyfin.backends.cpu.rows cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    LEAST = 64          # places of a channel from which it is a run of its own
    CHUNK = 16          # channels of a task

cdef const tf_norm_table *TABLE = <const tf_norm_table *>isa_table(b"norm")


cdef struct Group:
    const tf_norm_loops *loops
    Axes places[3]              # of a channel: x, g, y; operand 0 of each
    Axes rows[3]                # of a group: its channels, then their places
    Operand ops[3]
    int64_t sample[3]           # steps
    int64_t channel[3]
    int64_t run, n              # places of a channel; numbers of a row
    int64_t samples, groups, channels, per
    int size
    double eps
    bint direct, runs           # rows are read and written in place; channel by channel
    const char *w
    const char *b
    char *mean
    char *rstd
    char *sum_g                 # by channel and block: gradients of bias and weight
    char *sum_gx
    int64_t blocks
    size_t refused


cdef void group_axes(Group *s, const tf_view *x, const tf_view *g, const tf_view *y, int64_t groups, int wide) noexcept nogil:
    cdef const tf_view *views[3]
    cdef bint dense
    cdef int k, d
    views[0], views[1], views[2] = x, g, y
    s.loops, s.size, s.refused, s.direct, s.run = &TABLE.of[wide], 8 if wide else 4, 0, True, 1
    s.samples, s.channels, s.groups = x.shape[0], x.shape[1], groups
    for d in range(2, x.ndim):
        s.run *= x.shape[d]
    s.n, s.runs = s.channels // groups * s.run, s.run >= LEAST
    s.per = max(GRAIN // max(s.n, 1), 1)
    for k in range(3):
        s.sample[k], s.channel[k] = views[k].strides[0], views[k].strides[1]
        s.places[k].nd = s.rows[k].nd = 0
        push(&s.rows[k], s.channels // groups, s.channel[k], 0, 0)
        for d in range(2, x.ndim):
            push(&s.places[k], x.shape[d], views[k].strides[d], 0, 0)
            push(&s.rows[k], x.shape[d], views[k].strides[d], 0, 0)
        dense = s.rows[k].nd == 0 or (s.rows[k].nd == 1 and s.rows[k].s[0][0] == 1)
        s.ops[k] = operand(views[k], dense, wide)
        s.direct = s.direct and s.ops[k].direct


cdef const char *row_at(const Group *s, int k, int64_t row, char *buffer) noexcept nogil:
    """A row of operand k as dense numbers; in place where it lies there."""
    cdef int64_t base = (row // s.groups * s.sample[k]
                         + row % s.groups * (s.channels // s.groups) * s.channel[k])
    if s.ops[k].direct:
        return s.ops[k].data + base * s.size
    gather(s.loops, &s.ops[k], base, &s.rows[k], 0, 0, s.n, s.size, buffer)
    return buffer


cdef void put_row(const Group *s, int64_t row, const char *src) noexcept nogil:
    if not s.ops[2].direct:
        s.loops.store[s.ops[2].dtype](s.ops[2].data + row * s.n * s.ops[2].item, src, s.n, 1)


cdef inline const char *number(const Group *s, const char *v, int64_t i) noexcept nogil:
    return v + i * s.size if v != NULL else NULL


cdef void inverse_root(const Group *s, char *v) noexcept nogil:
    if s.size == 4:
        (<float *>v)[0] = 1 / sqrtf((<float *>v)[0] + <float>s.eps)
    else:
        (<double *>v)[0] = 1 / sqrt((<double *>v)[0] + s.eps)


cdef void whole_row(const Group *s, int64_t row, tf_norm_rows *a) noexcept nogil:
    """A row whose weights are given number by number."""
    cdef int64_t first = row % s.groups * s.n
    a.w, a.b, a.n, a.eps, a.rows, a.step = number(s, s.w, first), number(s, s.b, first), s.n, s.eps, 1, 1
    a.mean, a.rstd, a.gw, a.gb = s.mean + row * s.size, s.rstd + row * s.size, NULL, NULL
    a.xstep = a.gstep = a.ystep = 0


cdef void channel_of(const Group *s, int64_t row, int64_t channel, tf_channel *c) noexcept nogil:
    """A channel of a group, counted from the group's first."""
    cdef int64_t at = row % s.groups * (s.channels // s.groups) + channel
    c.mean, c.rstd, c.count, c.eps = s.mean + row * s.size, s.rstd + row * s.size, s.n, s.eps
    c.w, c.b = number(s, s.w, at), number(s, s.b, at)


cdef void forward_rows(int64_t task, void *ctx) noexcept nogil:
    cdef Group *s = <Group *>ctx
    cdef int64_t row, i, step = s.run * s.size
    cdef size_t bytes = 0 if s.direct else s.n * s.size
    cdef char *buffer = <char *>scratch_push(bytes)
    cdef const char *x
    cdef char *y
    cdef char *mean
    cdef char *rstd
    cdef tf_channel c
    cdef tf_norm_rows a
    if buffer == NULL:
        s.refused = bytes
        return
    for row in range(task * s.per, min((task + 1) * s.per, s.samples * s.groups)):
        x = row_at(s, 0, row, buffer)
        y = s.ops[2].data + row * s.n * s.size if s.ops[2].direct else buffer
        if s.runs:
            mean, rstd = s.mean + row * s.size, s.rstd + row * s.size
            s.loops.sum(mean, x, s.n)
            s.loops.divide(mean, s.n, 1)
            s.loops.sqdiff(rstd, x, mean, s.n)
            s.loops.divide(rstd, s.n, 1)
            inverse_root(s, rstd)
            for i in range(s.channels // s.groups):
                channel_of(s, row, i, &c)
                s.loops.channel(y + i * step, x + i * step, &c, s.run)
        else:
            whole_row(s, row, &a)
            a.x, a.y = x, y
            s.loops.norm(&a)
        put_row(s, row, y)
    scratch_pop(bytes)


cdef void row_sums(const Group *s, int64_t row, const char *x, const char *g, char *sums, tf_channel *c) noexcept nogil:
    """Sums of g w and of g w xhat over a row: block by block, whose channels have weights of their own."""
    cdef char products[8 * TF_BLOCK]
    cdef int64_t b, i, n, done, run, blocks = (s.n + TF_BLOCK - 1) // TF_BLOCK
    cdef const char *h
    for b in range(blocks):
        done, n = 0, min(s.n - b * TF_BLOCK, <int64_t>TF_BLOCK)
        h = g + b * TF_BLOCK * s.size
        while s.w != NULL and done < n:
            i = b * TF_BLOCK + done
            run = min(n - done, s.run - i % s.run)
            channel_of(s, row, i // s.run, c)
            s.loops.scaled(products + done * s.size, g + i * s.size, c.w, run)
            h = products
            done += run
        channel_of(s, row, 0, c)
        s.loops.sum(sums + b * s.size, h, n)
        s.loops.xhat(sums + (blocks + b) * s.size, h, x + b * TF_BLOCK * s.size, c, n)
    s.loops.sum(sums, sums, blocks)
    s.loops.sum(sums + s.size, sums + blocks * s.size, blocks)


cdef void backward_rows(int64_t task, void *ctx) noexcept nogil:
    cdef Group *s = <Group *>ctx
    cdef int64_t row, i, step = s.run * s.size, blocks = (s.n + TF_BLOCK - 1) // TF_BLOCK
    cdef size_t bytes = (2 * blocks + 1 + (0 if s.direct else 2 * s.n)) * s.size
    cdef char *sums = <char *>scratch_push(bytes)
    cdef char *buffer = sums + (2 * blocks + 1) * s.size
    cdef const char *x
    cdef const char *g
    cdef char *y
    cdef tf_channel c
    cdef tf_norm_rows a
    if sums == NULL:
        s.refused = bytes
        return
    for row in range(task * s.per, min((task + 1) * s.per, s.samples * s.groups)):
        x, g = row_at(s, 0, row, buffer), row_at(s, 1, row, buffer + s.n * s.size)
        y = s.ops[2].data + row * s.n * s.size if s.ops[2].direct else buffer
        if s.runs:
            row_sums(s, row, x, g, sums, &c)
            c.sum_g, c.sum_gx = sums, sums + s.size
            for i in range(s.channels // s.groups):
                channel_of(s, row, i, &c)
                s.loops.group_grad(y + i * step, g + i * step, x + i * step, &c, s.run)
        else:
            whole_row(s, row, &a)
            a.x, a.g, a.y = x, g, y
            s.loops.norm_grad(&a)
        put_row(s, row, y)
    scratch_pop(bytes)


# Gradients of weight and bias: sums of a channel over all samples.

cdef void gather_runs(const Group *s, int k, int64_t channel, int64_t sample, int64_t last, char *buffer) noexcept nogil:
    """A channel of some samples as dense numbers."""
    cdef int64_t i
    for i in range(sample, last):
        gather(s.loops, &s.ops[k], i * s.sample[k] + channel * s.channel[k], &s.places[k], 0, 0, s.run, s.size,
               buffer + (i - sample) * s.run * s.size)


cdef void block_sums(int64_t task, void *ctx) noexcept nogil:
    """A block of 2048 places of some neighbouring channels, which lie near one another in memory."""
    cdef Group *s = <Group *>ctx
    cdef int64_t chunks = (s.channels + CHUNK - 1) // CHUNK, b = task // chunks, channel
    cdef int64_t first = b * TF_BLOCK, n = min(s.samples * s.run - first, <int64_t>TF_BLOCK), sample = 0, group
    cdef int64_t most = 0 if s.direct else (TF_BLOCK // s.run + 2) * s.run
    cdef size_t bytes = (2 * TF_BLOCK + 2 * most) * s.size
    cdef char *terms = <char *>scratch_push(bytes)
    cdef char *products = terms + TF_BLOCK * s.size
    cdef char *x = products + TF_BLOCK * s.size
    cdef char *g = x + most * s.size
    cdef tf_channel_runs a
    if terms == NULL:
        s.refused = bytes
        return
    a.run, a.step, a.xstep, a.gstep = s.run, s.groups, s.sample[0], s.sample[1]
    if most:
        a.xstep, a.gstep, a.x, a.g, sample = s.run, s.run, x, g, first // s.run
    for channel in range(task % chunks * CHUNK, min((task % chunks + 1) * CHUNK, s.channels)):
        group = sample * s.groups + channel // (s.channels // s.groups)
        a.mean, a.rstd = s.mean + group * s.size, s.rstd + group * s.size
        if most:
            gather_runs(s, 0, channel, sample, (first + n - 1) // s.run + 1, x)
            gather_runs(s, 1, channel, sample, (first + n - 1) // s.run + 1, g)
        else:
            a.x = s.ops[0].data + channel * s.channel[0] * s.size
            a.g = s.ops[1].data + channel * s.channel[1] * s.size
        s.loops.shares(terms, products, &a, first - sample * s.run, n)
        s.loops.sum(s.sum_g + (channel * s.blocks + b) * s.size, terms, n)
        s.loops.sum(s.sum_gx + (channel * s.blocks + b) * s.size, products, n)
    scratch_pop(bytes)


cdef void weight_gradients(Group *s, tf_view *gw, tf_view *gb) noexcept nogil:
    cdef int64_t c, tasks = s.blocks * ((s.channels + CHUNK - 1) // CHUNK)
    parallel_for(tasks, s.channels * (s.samples * (s.run * 0.2 + 10) + 50), block_sums, s)
    for c in range(s.channels):
        s.loops.sum(s.sum_g + c * s.size, s.sum_g + c * s.blocks * s.size, s.blocks)
        s.loops.sum(s.sum_gx + c * s.size, s.sum_gx + c * s.blocks * s.size, s.blocks)
    s.loops.store[gw.dtype](gw.data, s.sum_gx, gw.size, 1)
    s.loops.store[gb.dtype](gb.data, s.sum_g, gb.size, 1)


# ---- kernels

cdef const char *weights(const Group *s, const tf_view *v, int wide, char *buffer) noexcept nogil:
    """One number for each channel, or, where channels are no runs, for each of their places."""
    cdef const char *w = dense_numbers(s.loops, v, wide, buffer)
    cdef char *to = buffer + s.channels * s.size
    cdef int64_t c
    if w == NULL or s.runs:
        return w
    for c in range(s.channels):
        s.loops.fill(to + c * s.run * s.size,
                     (<const float *>w)[c] if s.size == 4 else (<const double *>w)[c], s.run)
    return to


cdef int64_t weight_bytes(const Group *s) noexcept nogil:
    return s.channels * (1 if s.runs else 1 + s.run) * s.size


cdef int group_norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call) noexcept nogil:
    """(x, w?, b? -> y, mean, rstd); num_groups"""
    cdef Group s
    cdef int wide = compute_type(outputs[0].dtype)
    cdef int64_t rows
    cdef size_t bytes
    cdef char *buffer
    group_axes(&s, inputs[0], inputs[0], outputs[0], at.i[0], wide)
    rows = s.samples * s.groups
    bytes = 2 * weight_bytes(&s)
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.eps, s.mean, s.rstd = at.f[0], outputs[1].data, outputs[2].data
    s.w = weights(&s, inputs[1], wide, buffer)
    s.b = weights(&s, inputs[2], wide, buffer + weight_bytes(&s))
    parallel_for((rows + s.per - 1) // s.per, rows * (s.n * 0.35 + 10), forward_rows, &s)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


cdef int group_norm_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call) noexcept nogil:
    """(g, x, mean, rstd, w? -> gx, gw, gb); num_groups"""
    cdef Group s
    cdef int wide = compute_type(outputs[0].dtype)
    cdef int64_t rows, statistics
    cdef size_t bytes
    cdef char *buffer
    group_axes(&s, inputs[1], inputs[0], outputs[0], at.i[0], wide)
    rows = s.samples * s.groups
    statistics = rows * s.size
    s.blocks = (s.samples * s.run + TF_BLOCK - 1) // TF_BLOCK
    bytes = weight_bytes(&s) + 2 * statistics + 2 * s.channels * max(s.blocks, <int64_t>1) * s.size
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.eps, s.b = at.f[0], NULL
    s.w = weights(&s, inputs[4], wide, buffer)
    buffer += weight_bytes(&s)
    s.mean = <char *>dense_numbers(s.loops, inputs[2], wide, buffer)
    s.rstd = <char *>dense_numbers(s.loops, inputs[3], wide, buffer + statistics)
    s.sum_g = buffer + 2 * statistics
    s.sum_gx = s.sum_g + s.channels * max(s.blocks, <int64_t>1) * s.size
    parallel_for((rows + s.per - 1) // s.per, rows * (s.n * 0.45 + 20), backward_rows, &s)
    if outputs[1].size or outputs[2].size:
        weight_gradients(&s, outputs[1], outputs[2])
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


KERNELS = {"group_norm": kernel_capsule(group_norm), "group_norm_grad": kernel_capsule(group_norm_grad)}
