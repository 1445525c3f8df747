"""Group norm: a row is the channels of a group of a sample, with a mean and rstd of its own; weights go by channel.

Any strides. Half precision is widened to float, computed, and rounded once; sums are canonical. Gradients
begin with sums over the places of each channel of each sample: those of weights and bias, and, where channels
have LEAST places or more, those of a group are sums of them.
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
    char *sum_g                 # over the places of each channel of each sample: of g and g xhat
    char *sum_gx
    bint wanted                 # gradients of weight or bias
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


cdef void channel_sums(const Group *s, int64_t row, const char *x, const char *g) noexcept nogil:
    """Sums of g and of g xhat over the places of each channel of a group."""
    cdef int64_t i, channels = s.channels // s.groups, step = s.run * s.size, at = row * channels * s.size
    cdef tf_channel c
    channel_of(s, row, 0, &c)
    for i in range(channels):
        s.loops.sum(s.sum_g + at + i * s.size, g + i * step, s.run)
        s.loops.xhat(s.sum_gx + at + i * s.size, g + i * step, x + i * step, &c, s.run)


cdef void total(const Group *s, int64_t row, const char *sums, char *terms, char *to) noexcept nogil:
    """The sum of a group's channels, each times its weight."""
    cdef int64_t i, channels = s.channels // s.groups
    cdef const char *w = number(s, s.w, row % s.groups * channels)
    sums += row * channels * s.size
    if w == NULL:
        s.loops.sum(to, sums, channels)
        return
    if s.size == 4:
        for i in range(channels):
            (<float *>terms)[i] = (<const float *>sums)[i] * (<const float *>w)[i]
    else:
        for i in range(channels):
            (<double *>terms)[i] = (<const double *>sums)[i] * (<const double *>w)[i]
    s.loops.sum(to, terms, channels)


cdef void backward_rows(int64_t task, void *ctx) noexcept nogil:
    cdef Group *s = <Group *>ctx
    cdef int64_t row, i, step = s.run * s.size, channels = s.channels // s.groups
    cdef size_t bytes = (channels + 2 + (0 if s.direct else 2 * s.n)) * s.size
    cdef char *sums = <char *>scratch_push(bytes)
    cdef char *terms = sums + 2 * s.size
    cdef char *buffer = terms + channels * s.size
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
        if s.runs or s.wanted:
            channel_sums(s, row, x, g)
        if s.runs:
            total(s, row, s.sum_g, terms, sums)
            total(s, row, s.sum_gx, terms, sums + s.size)
            for i in range(channels):
                channel_of(s, row, i, &c)
                c.sum_g, c.sum_gx = sums, sums + s.size
                s.loops.group_grad(y + i * step, g + i * step, x + i * step, &c, s.run)
        else:
            whole_row(s, row, &a)
            a.x, a.g, a.y = x, g, y
            s.loops.norm_grad(&a)
        put_row(s, row, y)
    scratch_pop(bytes)


cdef void sum_over_samples(int64_t task, void *ctx) noexcept nogil:
    """Gradients of weight and bias of some channels, in place of their sums in the first sample."""
    cdef Group *s = <Group *>ctx
    cdef int64_t channel
    cdef size_t bytes = s.samples * s.size
    cdef char *column = <char *>scratch_push(bytes)
    cdef char *sums
    cdef int k
    if column == NULL:
        s.refused = bytes
        return
    for channel in range(task * CHUNK, min((task + 1) * CHUNK, s.channels)):
        for k in range(2):
            sums = (s.sum_gx if k else s.sum_g) + channel * s.size
            s.loops.load[TF_F32 if s.size == 4 else TF_F64](column, sums, s.samples, s.channels)
            s.loops.sum(sums, column, s.samples)
    scratch_pop(bytes)


cdef void weight_gradients(Group *s, tf_view *gw, tf_view *gb) noexcept nogil:
    parallel_for((s.channels + CHUNK - 1) // CHUNK, s.channels * (s.samples * 2.0 + 40), sum_over_samples, s)
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
    cdef int64_t rows, statistics, sums
    cdef size_t bytes
    cdef char *buffer
    group_axes(&s, inputs[1], inputs[0], outputs[0], at.i[0], wide)
    rows = s.samples * s.groups
    statistics, sums = rows * s.size, max(s.samples, <int64_t>1) * s.channels * s.size
    bytes = weight_bytes(&s) + 2 * statistics + 2 * sums
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.eps, s.b, s.wanted = at.f[0], NULL, outputs[1].size or outputs[2].size
    s.w = weights(&s, inputs[4], wide, buffer)
    buffer += weight_bytes(&s)
    s.mean = <char *>dense_numbers(s.loops, inputs[2], wide, buffer)
    s.rstd = <char *>dense_numbers(s.loops, inputs[3], wide, buffer + statistics)
    s.sum_g = buffer + 2 * statistics
    s.sum_gx = s.sum_g + sums
    parallel_for((rows + s.per - 1) // s.per, rows * (s.n * 0.35 + 20), backward_rows, &s)
    if s.wanted:
        weight_gradients(&s, outputs[1], outputs[2])
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


KERNELS = {"group_norm": kernel_capsule(group_norm), "group_norm_grad": kernel_capsule(group_norm_grad)}
