"""Batch norm: a channel is a row whose elements run over all axes but the second.

Any strides. Half precision is widened to float, computed, and rounded once; sums are canonical.
"""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, offset, offsets, push, span
from tinyfin.backends.cpu.norm_loops cimport *
from tinyfin.backends.cpu.rows cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    BLOCK = 2048        # block of the canonical sum

cdef const tf_norm_table *TABLE = <const tf_norm_table *>isa_table(b"norm")


cdef struct Batch:
    const tf_norm_loops *loops
    Axes along                  # elements of a channel: x, g, y
    int64_t step[3]             # from channel to channel
    Operand ops[3]
    int64_t n, channels, blocks
    int group, size             # channels of a task: one, or 16 where they are neighbours in memory
    double eps
    char *mean
    char *var
    char *sum_g
    char *sum_gx
    const char *w
    const char *b
    size_t refused


cdef void batch_axes(Batch *s, const tf_view *x, const tf_view *g, const tf_view *y, int wide) noexcept nogil:
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
    s.blocks = (s.n + BLOCK - 1) // BLOCK
    s.group = TF_TILE if s.step[0] == 1 and last_step(&s.along, 0) != 1 else 1


cdef const char *batch_fetch(Batch *s, int k, int64_t channel, int cols, int64_t block, char *buffer) noexcept nogil:
    """One block of each channel as rows of BLOCK numbers; in place where it lies there."""
    cdef int64_t first = block * BLOCK, len = min(s.n - first, BLOCK), i, m, base
    cdef int c
    if cols == 1 and s.ops[k].direct and run_length(&s.along, first, s.n) >= len:
        return s.ops[k].data + (channel * s.step[k] + offset(&s.along, k, first)) * s.size
    for i in range(0, len, 256):
        m = min(len - i, 256)
        for c in range(cols):
            base = (channel + c) * s.step[k]
            gather(s.loops, &s.ops[k], base, &s.along, k, first + i, m, s.size,
                   buffer + (c * BLOCK + i) * s.size)
    return buffer


cdef void batch_put(Batch *s, int64_t channel, int cols, int64_t block, const char *buffer) noexcept nogil:
    cdef int64_t first = block * BLOCK, len = min(s.n - first, BLOCK), i, m
    cdef int c
    for i in range(0, len, 256):
        m = min(len - i, 256)
        for c in range(cols):
            scatter(s.loops, &s.ops[2], (channel + c) * s.step[2], &s.along, 2, first + i, m, s.size,
                    buffer + (c * BLOCK + i) * s.size)


cdef tf_channel batch_channel(Batch *s, int64_t channel) noexcept nogil:
    cdef tf_channel c
    cdef int64_t at = channel * s.size
    c.mean, c.var, c.count, c.eps = s.mean + at, s.var + at, s.n, s.eps
    c.w = s.w + at if s.w != NULL else NULL
    c.b = s.b + at if s.b != NULL else NULL
    c.sum_g, c.sum_gx = s.sum_g + at, s.sum_gx + at
    return c


cdef void batch_statistic(Batch *s, char *to, int64_t channel, int cols, char *sums, char *buffer,
                          bint centred, bint loaded) noexcept nogil:
    """Mean of the elements, or of the squared differences from `mean`, of each channel."""
    cdef const char *x = buffer
    cdef int64_t b, len
    cdef int c
    for b in range(s.blocks):
        len = min(s.n - b * BLOCK, BLOCK)
        if not loaded:
            x = batch_fetch(s, 0, channel, cols, b, buffer)
        for c in range(cols):
            if centred:
                s.loops.sqdiff(sums + (c * s.blocks + b) * s.size, x + c * BLOCK * s.size,
                               s.mean + (channel + c) * s.size, len)
            else:
                s.loops.sum(sums + (c * s.blocks + b) * s.size, x + c * BLOCK * s.size, len)
    for c in range(cols):
        s.loops.sum(to + (channel + c) * s.size, sums + c * s.blocks * s.size, s.blocks)
    s.loops.divide(to + channel * s.size, s.n, cols)


cdef void batch_apply(Batch *s, int64_t channel, int cols, char *buffer, bint loaded, bint grad) noexcept nogil:
    """The elementwise part: through a buffer, or run by run where everything is in place."""
    cdef int64_t b, len, at, run
    cdef int64_t off[3]
    cdef int c
    cdef const char *x = buffer
    cdef const char *g = buffer + s.group * BLOCK * s.size
    cdef tf_channel one = batch_channel(s, channel)
    if cols == 1 and s.ops[0].direct and s.ops[2].direct and (not grad or s.ops[1].direct):
        at = 0
        while at < s.n:
            run = run_length(&s.along, at, s.n)
            offsets(&s.along, at, off)
            x = s.ops[0].data + (channel * s.step[0] + off[0]) * s.size
            g = s.ops[1].data + (channel * s.step[1] + off[1]) * s.size
            if grad:
                s.loops.channel_grad(s.ops[2].data + (channel * s.step[2] + off[2]) * s.size, g, x, &one, run)
            else:
                s.loops.channel(s.ops[2].data + (channel * s.step[2] + off[2]) * s.size, x, &one, run)
            at += run
        return
    for b in range(s.blocks):
        len = min(s.n - b * BLOCK, BLOCK)
        if not loaded:
            x = batch_fetch(s, 0, channel, cols, b, buffer)
            if grad:
                g = batch_fetch(s, 1, channel, cols, b, buffer + s.group * BLOCK * s.size)
        for c in range(cols):
            at = c * BLOCK * s.size
            one = batch_channel(s, channel + c)
            if grad:
                s.loops.channel_grad(buffer + at, g + at, x + at, &one, len)
            else:
                s.loops.channel(buffer + at, x + at, &one, len)
        batch_put(s, channel, cols, b, buffer)


cdef void batch_task(int64_t task, void *ctx) noexcept nogil:
    cdef Batch *s = <Batch *>ctx
    cdef int64_t channel = task * s.group
    cdef int cols = <int>min(s.channels - channel, s.group)
    cdef size_t bytes = (s.group * BLOCK + s.group * (s.blocks + 1)) * s.size
    cdef char *buffer = <char *>scratch_push(bytes)
    cdef char *sums = buffer + s.group * BLOCK * s.size
    cdef bint loaded = s.blocks == 1 and s.group > 1
    if buffer == NULL:
        s.refused = bytes
        return
    if loaded:
        batch_fetch(s, 0, channel, cols, 0, buffer)
    if s.sum_g == NULL:                          # statistics are wanted, not given
        batch_statistic(s, s.mean, channel, cols, sums, buffer, False, loaded)
        batch_statistic(s, s.var, channel, cols, sums, buffer, True, loaded)
    batch_apply(s, channel, cols, buffer, loaded, False)
    scratch_pop(bytes)


cdef void batch_grad_task(int64_t task, void *ctx) noexcept nogil:
    cdef Batch *s = <Batch *>ctx
    cdef int64_t channel = task * s.group, b, len, at
    cdef int cols = <int>min(s.channels - channel, s.group), c
    cdef size_t half = s.group * BLOCK * s.size, bytes = 2 * half + 2 * s.group * (s.blocks + 1) * s.size
    cdef char *buffer = <char *>scratch_push(bytes)
    cdef char *sums = buffer + 2 * half
    cdef char *products = sums + s.group * (s.blocks + 1) * s.size
    cdef const char *x
    cdef const char *g
    cdef tf_channel one
    if buffer == NULL:
        s.refused = bytes
        return
    for b in range(s.blocks):
        len = min(s.n - b * BLOCK, BLOCK)
        x = batch_fetch(s, 0, channel, cols, b, buffer)
        g = batch_fetch(s, 1, channel, cols, b, buffer + half)
        for c in range(cols):
            one = batch_channel(s, channel + c)
            at = (c * s.blocks + b) * s.size
            s.loops.sum(sums + at, g + c * BLOCK * s.size, len)
            s.loops.xhat(products + at, g + c * BLOCK * s.size, x + c * BLOCK * s.size, &one, len)
    for c in range(cols):
        at = c * s.blocks * s.size
        s.loops.sum(s.sum_g + (channel + c) * s.size, sums + at, s.blocks)
        s.loops.sum(s.sum_gx + (channel + c) * s.size, products + at, s.blocks)
    batch_apply(s, channel, cols, buffer, s.blocks == 1 and s.group > 1, True)
    scratch_pop(bytes)


cdef int batch_norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call) noexcept nogil:
    """variant 0: (x, w?, b? -> y, mean, var); 1: with given statistics (x, mean, var, w?, b? -> y)."""
    cdef Batch s
    cdef int given = <int><size_t>call.ctx, wide = compute_type(outputs[0].dtype)
    cdef int64_t tasks
    cdef size_t bytes
    cdef char *buffer
    batch_axes(&s, inputs[0], inputs[0], outputs[0], wide)
    bytes = 4 * s.channels * s.size
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.eps, s.sum_g, s.sum_gx = at.f[0], NULL, NULL
    s.w = dense_numbers(s.loops, inputs[3 if given else 1], wide, buffer)
    s.b = dense_numbers(s.loops, inputs[4 if given else 2], wide, buffer + s.channels * s.size)
    if given:
        s.mean = <char *>dense_numbers(s.loops, inputs[1], wide, buffer + 2 * s.channels * s.size)
        s.var = <char *>dense_numbers(s.loops, inputs[2], wide, buffer + 3 * s.channels * s.size)
        s.sum_g = buffer
    else:
        s.mean, s.var = outputs[1].data, outputs[2].data
    tasks = (s.channels + s.group - 1) // s.group
    parallel_for(tasks, s.channels * (s.n * 0.5 + 50), batch_task, &s)
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
    cdef size_t bytes
    cdef char *buffer
    batch_axes(&s, inputs[1], inputs[0], outputs[0], wide)
    bytes = 3 * s.channels * s.size
    buffer = <char *>scratch_push(bytes)
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.eps, s.mean, s.var, s.b = at.f[0], inputs[2].data, inputs[3].data, NULL
    s.w = dense_numbers(s.loops, inputs[4], wide, buffer)
    s.sum_g, s.sum_gx = buffer + s.channels * s.size, buffer + 2 * s.channels * s.size
    parallel_for((s.channels + s.group - 1) // s.group, s.channels * (s.n * 0.8 + 80), batch_grad_task, &s)
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
