"""Batch norm: a channel is a row whose elements run over all axes but the second.

Any strides. Half precision is widened to float, computed, and rounded once; sums are canonical.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, offset, offsets, push, span
from tinyfin.backends.cpu.norm_loops cimport *
from tinyfin.backends.cpu.rows cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef const tf_norm_table *TABLE = <const tf_norm_table *>isa_table(b"norm")


cdef struct Batch:
    const tf_norm_loops *loops
    Axes along                  # elements of a channel: x, g, y
    int64_t step[3]             # from channel to channel
    Operand ops[3]
    int64_t n, channels, blocks
    int size
    double eps
    char *mean
    char *var
    char *sum_g
    char *sum_gx
    const char *w
    const char *b
    bint given                  # the statistics are given
    size_t refused


cdef bint batch_axes(Batch *s, const tf_view *x, const tf_view *g, const tf_view *y,
                     int wide) noexcept nogil:
    """Sets up the walk; whether neighbouring channels are neighbours in memory: then by tiles."""
    cdef const tf_view *views[3]
    cdef int k
    views[0], views[1], views[2] = x, g, y
    s.loops, s.size, s.refused, s.along.nd = &TABLE.of[wide], 8 if wide else 4, 0, 0
    for k in range(x.ndim):
        if k != 1:
            push(&s.along, x.shape[k], x.strides[k], g.strides[k], y.strides[k])
    for k in range(3):
        s.step[k] = views[k].strides[1]
        s.ops[k] = operand(views[k], last_step(&s.along, k) == 1 or s.along.nd == 0, wide)
    s.n, s.channels = span(&s.along), x.shape[1]
    s.blocks = (s.n + TF_BLOCK - 1) // TF_BLOCK
    return s.step[0] == 1 and last_step(&s.along, 0) != 1


cdef inline int64_t block_length(const Batch *s, int64_t block) noexcept nogil:
    return min(s.n - block * TF_BLOCK, TF_BLOCK)


# ---- channel by channel

cdef tf_channel channel_of(Batch *s, int64_t channel) noexcept nogil:
    cdef tf_channel c
    cdef int64_t at = channel * s.size
    c.mean, c.var, c.rstd, c.count, c.eps = s.mean + at, s.var + at, NULL, s.n, s.eps
    c.w = s.w + at if s.w != NULL else NULL
    c.b = s.b + at if s.b != NULL else NULL
    c.sum_g, c.sum_gx = s.sum_g + at, s.sum_gx + at
    return c


cdef const char *fetch(Batch *s, int k, int64_t channel, int64_t block,
                       char *buffer) noexcept nogil:
    """One block of a channel as dense numbers; in place where it lies there."""
    cdef int64_t first = block * TF_BLOCK, len = block_length(s, block), base = channel * s.step[k]
    if s.ops[k].direct and run_length(&s.along, first, first + len) == len:
        return s.ops[k].data + (base + offset(&s.along, k, first)) * s.size
    gather(s.loops, &s.ops[k], base, &s.along, k, first, len, s.size, buffer)
    return buffer


cdef void statistic(Batch *s, char *to, int64_t channel, char *sums, char *buffer,
                    bint centred) noexcept nogil:
    """Mean of the elements, or of the squared differences from `mean`, of one channel."""
    cdef const char *x
    cdef int64_t b
    for b in range(s.blocks):
        x = fetch(s, 0, channel, b, buffer)
        if centred:
            s.loops.sqdiff(sums + b * s.size, x, s.mean + channel * s.size, block_length(s, b))
        else:
            s.loops.sum(sums + b * s.size, x, block_length(s, b))
    s.loops.sum(to + channel * s.size, sums, s.blocks)
    s.loops.divide(to + channel * s.size, s.n, 1)


cdef void apply(Batch *s, int64_t channel, char *buffer, bint grad) noexcept nogil:
    """The elementwise part: run by run where all is in place, else through a buffer."""
    cdef int64_t at = 0, run
    cdef int64_t off[3]
    cdef const char *x
    cdef const char *g
    cdef char *y
    cdef tf_channel one = channel_of(s, channel)
    cdef bint direct = s.ops[0].direct and s.ops[2].direct and (not grad or s.ops[1].direct)
    while at < s.n:
        run = run_length(&s.along, at, s.n) if direct else block_length(s, at // TF_BLOCK)
        if direct:
            offsets(&s.along, at, off)
            x = s.ops[0].data + (channel * s.step[0] + off[0]) * s.size
            g = s.ops[1].data + (channel * s.step[1] + off[1]) * s.size
            y = s.ops[2].data + (channel * s.step[2] + off[2]) * s.size
        else:
            x = fetch(s, 0, channel, at // TF_BLOCK, buffer)
            g = fetch(s, 1, channel, at // TF_BLOCK, buffer + TF_BLOCK * s.size) if grad else NULL
            y = buffer
        if grad:
            s.loops.channel_grad(y, g, x, &one, run)
        else:
            s.loops.channel(y, x, &one, run)
        if not direct:
            scatter(s.loops, &s.ops[2], channel * s.step[2], &s.along, 2, at, run, s.size, buffer)
        at += run


cdef void forward_channel(int64_t channel, void *ctx) noexcept nogil:
    cdef Batch *s = <Batch *>ctx
    cdef size_t bytes = (TF_BLOCK + s.blocks) * s.size
    cdef char *buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        s.refused = bytes
        return
    if not s.given:
        statistic(s, s.mean, channel, buffer + TF_BLOCK * s.size, buffer, False)
        statistic(s, s.var, channel, buffer + TF_BLOCK * s.size, buffer, True)
    apply(s, channel, buffer, False)
    scratch_pop(bytes)


cdef void backward_channel(int64_t channel, void *ctx) noexcept nogil:
    cdef Batch *s = <Batch *>ctx
    cdef size_t bytes = 2 * (TF_BLOCK + s.blocks) * s.size
    cdef char *buffer = <char *>scratch_push(bytes)
    cdef char *sums = buffer + 2 * TF_BLOCK * s.size
    cdef char *products = sums + s.blocks * s.size
    cdef const char *x
    cdef const char *g
    cdef int64_t b
    cdef tf_channel one = channel_of(s, channel)
    if buffer == NULL:
        s.refused = bytes
        return
    for b in range(s.blocks):
        x = fetch(s, 0, channel, b, buffer)
        g = fetch(s, 1, channel, b, buffer + TF_BLOCK * s.size)
        s.loops.sum(sums + b * s.size, g, block_length(s, b))
        s.loops.xhat(products + b * s.size, g, x, &one, block_length(s, b))
    s.loops.sum(s.sum_g + channel * s.size, sums, s.blocks)
    s.loops.sum(s.sum_gx + channel * s.size, products, s.blocks)
    apply(s, channel, buffer, True)
    scratch_pop(bytes)


# ---- 16 neighbouring channels as a tile

cdef struct Sixteen:
    # their numbers, with room for either type and for 16 even at the end
    double mean[TF_TILE]
    double var[TF_TILE]
    double w[TF_TILE]
    double b[TF_TILE]
    double sum_g[TF_TILE]
    double sum_gx[TF_TILE]
    tf_channel c


cdef void take(Batch *s, Sixteen *t, int64_t channel, int cols) noexcept nogil:
    """Copies what is known of the channels, and points to the copies."""
    cdef int64_t at = channel * s.size, bytes = cols * s.size
    memset(t, 0, sizeof(Sixteen))
    if s.given:
        memcpy(t.mean, s.mean + at, bytes)
        memcpy(t.var, s.var + at, bytes)
    if s.w != NULL:
        memcpy(t.w, s.w + at, bytes)
    if s.b != NULL:
        memcpy(t.b, s.b + at, bytes)
    t.c.mean, t.c.var, t.c.sum_g, t.c.sum_gx = t.mean, t.var, t.sum_g, t.sum_gx
    t.c.w = &t.w[0] if s.w != NULL else NULL
    t.c.b = &t.b[0] if s.b != NULL else NULL
    t.c.count, t.c.eps = s.n, s.eps


cdef void fetch_tile(Batch *s, int k, int64_t channel, int cols, int64_t block,
                     char *to) noexcept nogil:
    cdef Operand *o = &s.ops[k]
    cdef int64_t first = block * TF_BLOCK, len = block_length(s, block), done = 0, run
    if cols < TF_TILE:
        memset(to, 0, len * TF_TILE * s.size)
    while done < len:
        run = run_length(&s.along, first + done, first + len)
        s.loops.load_tile[o.dtype](
            to + done * TF_TILE * s.size,
            o.data + (channel * s.step[k] + offset(&s.along, k, first + done)) * o.item,
            run, cols, last_step(&s.along, k), s.step[k])
        done += run


cdef void put_tile(Batch *s, int64_t channel, int cols, int64_t block,
                   const char *src) noexcept nogil:
    cdef Operand *o = &s.ops[2]
    cdef int64_t first = block * TF_BLOCK, len = block_length(s, block), done = 0, run
    while done < len:
        run = run_length(&s.along, first + done, first + len)
        s.loops.store_tile[o.dtype](
            o.data + (channel * s.step[2] + offset(&s.along, 2, first + done)) * o.item,
            src + done * TF_TILE * s.size, run, cols, last_step(&s.along, 2), s.step[2])
        done += run


cdef void forward_tile(int64_t task, void *ctx) noexcept nogil:
    cdef Batch *s = <Batch *>ctx
    cdef int64_t channel = task * TF_TILE, b, row = TF_TILE * s.size
    cdef int cols = <int>min(s.channels - channel, TF_TILE), stage
    cdef size_t bytes = (TF_BLOCK + s.blocks) * row
    cdef char *x = <char *>scratch_push(bytes)
    cdef char *sums = x + TF_BLOCK * row
    cdef bint loaded = False
    cdef double *to
    cdef Sixteen t
    if x == NULL:
        s.refused = bytes
        return
    take(s, &t, channel, cols)
    for stage in range(2 if s.given else 0, 3):         # mean, variance, result
        for b in range(s.blocks):
            if not loaded:
                fetch_tile(s, 0, channel, cols, b, x)
                loaded = s.blocks == 1
            if stage == 0:
                s.loops.sum_tile(sums + b * row, x, block_length(s, b))
            elif stage == 1:
                s.loops.sqdiff_tile(sums + b * row, x, t.mean, block_length(s, b))
            else:
                s.loops.channel_tile(x, x, &t.c, block_length(s, b))
                put_tile(s, channel, cols, b, x)
        if stage < 2:
            to = &t.mean[0] if stage == 0 else &t.var[0]
            s.loops.sum_tile(to, sums, s.blocks)
            s.loops.divide(to, s.n, TF_TILE)
    if not s.given:
        memcpy(s.mean + channel * s.size, t.mean, cols * s.size)
        memcpy(s.var + channel * s.size, t.var, cols * s.size)
    scratch_pop(bytes)


cdef void backward_tile(int64_t task, void *ctx) noexcept nogil:
    cdef Batch *s = <Batch *>ctx
    cdef int64_t channel = task * TF_TILE, b, row = TF_TILE * s.size
    cdef int cols = <int>min(s.channels - channel, TF_TILE), stage
    cdef size_t bytes = 2 * (TF_BLOCK + s.blocks) * row
    cdef char *x = <char *>scratch_push(bytes)
    cdef char *g = x + TF_BLOCK * row
    cdef char *sums = g + TF_BLOCK * row
    cdef char *products = sums + s.blocks * row
    cdef bint loaded = False
    cdef Sixteen t
    if x == NULL:
        s.refused = bytes
        return
    take(s, &t, channel, cols)
    for stage in range(2):                              # sums, result
        for b in range(s.blocks):
            if not loaded:
                fetch_tile(s, 0, channel, cols, b, x)
                fetch_tile(s, 1, channel, cols, b, g)
                loaded = s.blocks == 1
            if stage == 0:
                s.loops.sum_tile(sums + b * row, g, block_length(s, b))
                s.loops.xhat_tile(products + b * row, g, x, &t.c, block_length(s, b))
            else:
                s.loops.channel_grad_tile(x, g, x, &t.c, block_length(s, b))
                put_tile(s, channel, cols, b, x)
        if stage == 0:
            s.loops.sum_tile(t.sum_g, sums, s.blocks)
            s.loops.sum_tile(t.sum_gx, products, s.blocks)
    memcpy(s.sum_g + channel * s.size, t.sum_g, cols * s.size)
    memcpy(s.sum_gx + channel * s.size, t.sum_gx, cols * s.size)
    scratch_pop(bytes)


# ---- kernels

cdef int batch_norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call) noexcept nogil:
    """variant 0: (x, w?, b? -> y, mean, var); 1, statistics given: (x, mean, var, w?, b? -> y)."""
    cdef Batch s
    cdef int given = <int><size_t>call.ctx, wide = compute_type(outputs[0].dtype)
    cdef bint tiles = batch_axes(&s, inputs[0], inputs[0], outputs[0], wide)
    cdef size_t bytes
    cdef char *buffer
    bytes = 4 * s.channels * s.size
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.eps, s.sum_g, s.sum_gx, s.given = at.f[0], NULL, NULL, given
    s.w = dense_numbers(s.loops, inputs[3 if given else 1], wide, buffer)
    s.b = dense_numbers(s.loops, inputs[4 if given else 2], wide, buffer + s.channels * s.size)
    if given:
        s.mean = <char *>dense_numbers(s.loops, inputs[1], wide, buffer + 2 * s.channels * s.size)
        s.var = <char *>dense_numbers(s.loops, inputs[2], wide, buffer + 3 * s.channels * s.size)
    else:
        s.mean, s.var = outputs[1].data, outputs[2].data
    parallel_for((s.channels + TF_TILE - 1) // TF_TILE if tiles else s.channels,
                 s.channels * (s.n * 0.5 + 50), forward_tile if tiles else forward_channel, &s)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


cdef int batch_norm_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call) noexcept nogil:
    """(g, x, mean, var, w? -> gx, gw, gb)"""
    cdef Batch s
    cdef int wide = compute_type(outputs[0].dtype)
    cdef bint tiles = batch_axes(&s, inputs[1], inputs[0], outputs[0], wide)
    cdef size_t bytes
    cdef char *buffer
    bytes = 5 * s.channels * s.size
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.eps, s.b, s.given = at.f[0], NULL, True
    s.mean = <char *>dense_numbers(s.loops, inputs[2], wide, buffer + 3 * s.channels * s.size)
    s.var = <char *>dense_numbers(s.loops, inputs[3], wide, buffer + 4 * s.channels * s.size)
    s.w = dense_numbers(s.loops, inputs[4], wide, buffer)
    s.sum_g, s.sum_gx = buffer + s.channels * s.size, buffer + 2 * s.channels * s.size
    parallel_for((s.channels + TF_TILE - 1) // TF_TILE if tiles else s.channels,
                 s.channels * (s.n * 0.8 + 80), backward_tile if tiles else backward_channel, &s)
    s.loops.store[outputs[1].dtype](outputs[1].data, s.sum_gx, outputs[1].size, 1)
    s.loops.store[outputs[2].dtype](outputs[2].data, s.sum_g, outputs[2].size, 1)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


cdef object NORM = kernel_capsule(batch_norm)
KERNELS = {
    "batch_norm": (NORM, 0), "batch_norm_apply": (NORM, 1),
    "batch_norm_grad": kernel_capsule(batch_norm_grad),
}
