"""Winograd's form of convolutions with kernels of 3 x 3, or of several such sheets: a quarter of the multiplications.

Results come in tiles of m x m from (m + 2) x (m + 2) elements each of the source. Blocks of tiles are
transformed, multiplied with the transformed kernels as (m + 2)^2 matrix products over the channels, and
transformed back. A number of a product is one chain over (sheet of the kernel, channel) in rising order, so neither
blocks nor threads show in a result. Each group is a convolution of its own.

The gradient of the source is the same convolution of the other side, its kernels turned round. The
gradient of the kernels takes both sides' tiles transformed, and sums their products over all tiles
in rising order before it transforms back.
Sources with a NaN or an infinity are left to the direct form: here one would spread over its tile.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.conv_job cimport carve
from tinyfin.backends.cpu.conv_shape cimport Shape
from tinyfin.backends.cpu.gemm cimport up
from tinyfin.backends.cpu.gemm_loops cimport tf_gemm_kind, tf_product
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.spatial cimport three, volume
from tinyfin.backends.cpu.threads cimport for_each, parallel_for, scratch_pop, scratch_push
from tinyfin.backends.cpu.winograd_loops cimport *
from tinyfin.core.abi cimport *

cdef enum:
    BLOCK = 1 << 19          # bytes of transformed tiles and products of a block: a near cache's share
    SHARED = 1 << 21         # and of one that all threads work at
    WIDEST = 8               # double vectors of tiles of a block, at most
    MANY = 4                 # blocks, or groups, from which each is one task

cdef const tf_winograd_table *TABLE = <const tf_winograd_table *>isa_table(b"winograd")


cdef struct Plan:
    const tf_winograd_kind *kind
    const tf_gemm_kind *gemm
    int64_t groups, rows, channels    # of each group: channels of the result and of the source
    int64_t sheets, depth             # of a kernel; of all channels
    int64_t sheet_gap                 # places between those of the source that a kernel reads
    int64_t item, numbers             # bytes of an element; numbers of a transformed tile
    int64_t high, down, across, tiles  # sheets of a result; tiles of one, and of all images
    int64_t block, blocks             # tiles of a block; blocks of a group
    tf_tile_block geometry, g_geometry    # of the source, and of the gradient of results
    const char *x
    const char *w
    const char *bias
    const char *g
    char *y
    int64_t x_step, y_step, w_row, w_depth, bias_step, g_step    # elements between channels
    int64_t w_group, w_sheet          # and between groups and sheets
    int64_t taps[9]
    char *u                           # kernels of all groups: [numbers][rows][u_row]
    int64_t u_row
    int failed, bad


cdef struct Block:
    Plan *q
    tf_tile_block b, g
    int64_t number, group
    char *u                           # kernels of the group, or sums of their gradient
    char *v                           # tiles of the source: [numbers][depth][row]
    char *p                           # products, or tiles of the gradient: [numbers][rows][row]


cdef int64_t apart(const Plan *q, int64_t rows, int64_t row) noexcept nogil:
    """Elements between numbers of a tile. Numbers are written side by side: a line of memory more keeps
    them out of one another's sets of the cache."""
    return rows * row + 64 // q.item


cdef const int64_t *result_size(const Shape *s, bint gradient) noexcept nogil:
    return &s.size[0] if gradient else &s.out[0]


cdef int64_t tiles_of(const int64_t *size, int64_t m) noexcept nogil:
    return up(size[1], m) * up(size[2], m)


cdef int size_of(const int64_t *size) noexcept nogil:
    """The tiles that take fewer multiplications; of equals the larger."""
    return TF_WINOGRAD_4 if 36 * tiles_of(size, 4) <= 16 * tiles_of(size, 2) else TF_WINOGRAD_2


cdef bint takes_form(const Shape *s) noexcept nogil:
    cdef int d
    for d in range(1, 3):
        if s.kernel[d] != 3 or s.stride[d] != 1 or s.dil[d] != 1:
            return False
    return s.own and s.stride[0] == 1


cdef double form_cost(const Shape *s, const int64_t *size) noexcept nogil:
    """Multiply-adds of this form, where each channel's transforms are worth a few for each number, and each
    kernel's some hundreds: by the shape alone. Less than a whole vector of tiles takes as long as one."""
    cdef bint large = size_of(size) == TF_WINOGRAD_4
    cdef double tiles = up(s.n * size[0] * tiles_of(size, 4 if large else 2), 16) * 16, sheets = s.kernel[0]
    return (36.0 if large else 16.0) * tiles * (sheets * s.c * s.og + 14 * sheets * s.c + 10 * s.o) \
        + 600.0 * sheets * s.c * s.og


cdef double direct_cost(const Shape *s, const int64_t *size) noexcept nogil:
    return 1.0 * s.taps * s.n * volume(size) * s.c * s.og


cdef bint winograd_pays(const Shape *s, bint gradient) noexcept nogil:
    """Whether this form is faster than the direct one."""
    cdef const int64_t *size = result_size(s, gradient)
    if not takes_form(s) or (gradient and (s.pad[1] > 2 or s.pad[2] > 2)):
        return False
    return form_cost(s, size) < 0.8 * direct_cost(s, size)


cdef bint winograd_weight_pays(const Shape *s) noexcept nogil:
    """Threads wait for one another here, and the source's tiles are packed once more."""
    return takes_form(s) and form_cost(s, s.out) < 0.72 * direct_cost(s, s.out)


# Parts of a block, each a task where one block has to occupy all threads.

cdef char *room_of(Block *k, int64_t *bytes) noexcept nogil:
    cdef char *room
    bytes[0] = k.q.kind.room(&k.b) * k.q.item
    room = <char *>scratch_push(bytes[0])
    if room == NULL:
        k.q.failed = 1
    return room


cdef void source_task(int64_t i, void *ctx) noexcept nogil:
    """A channel for one sheet of the kernel."""
    cdef Block *k = <Block *>ctx
    cdef Plan *q = k.q
    cdef tf_tile_block b = k.b
    cdef int64_t bytes, c = k.group * q.channels + i % q.channels
    cdef char *room = room_of(k, &bytes)
    if room != NULL:
        b.pad[0] -= i // q.channels * q.sheet_gap
        q.kind.source(&b, q.x + c * q.x_step * q.item, room, k.v + i * b.row * q.item, apart(q, q.depth, b.row))
        scratch_pop(bytes)


cdef void product_task(int64_t i, void *ctx) noexcept nogil:
    cdef Block *k = <Block *>ctx
    cdef Plan *q = k.q
    cdef tf_product p
    p.m, p.n, p.k = q.rows, k.b.row - q.gemm.lanes, q.depth
    p.a, p.ar, p.ac = k.u + i * apart(q, q.rows, q.u_row) * q.item, q.u_row, 1
    p.b, p.br, p.bc = k.v + i * apart(q, q.depth, k.b.row) * q.item, k.b.row, 1
    p.c, p.ldc = k.p + i * apart(q, q.rows, k.b.row) * q.item, k.b.row
    p.panel, p.load = NULL, 0
    q.gemm.product(&p)


cdef void result_task(int64_t o, void *ctx) noexcept nogil:
    cdef Block *k = <Block *>ctx
    cdef Plan *q = k.q
    cdef int64_t bytes, all = k.group * q.rows + o
    cdef char *room = room_of(k, &bytes)
    if room == NULL:
        return
    if not q.kind.result(&k.b, k.p + o * k.b.row * q.item, apart(q, q.rows, k.b.row),
                         q.bias + all * q.bias_step * q.item if q.bias != NULL else NULL, room,
                         q.y + all * q.y_step * q.item):
        q.bad = 1
    scratch_pop(bytes)


cdef void cut(const Plan *q, int64_t first, int64_t count, tf_tile_block *b,
              tf_tile_segment *to) noexcept nogil:
    """Tiles first to first + count as segments."""
    cdef int64_t each = q.down * q.across, m = q.kind.out, x, some
    cdef int64_t done = 0, n = 0
    while done < count:
        x = (first + done) % q.across
        some = min(count - done, q.across - x)
        to[n].count, to[n].first = some, done
        to[n].image, to[n].z = (first + done) // each // q.high, (first + done) // each % q.high
        to[n].y, to[n].x = (first + done) % each // q.across * m, x * m
        done += some
        n += 1
    b.segments, b.n, b.tiles = to, n, count
    b.row = (up(count, q.gemm.lanes) + 1) * q.gemm.lanes


cdef char *enter_block(Block *k, Plan *q, int64_t group, int64_t t, int64_t *bytes) noexcept nogil:
    """Block t of a group: its tiles, and room for both sides of the products."""
    cdef int64_t first = t * q.block, count = min(q.block, q.tiles - first)
    cdef int64_t row = (up(count, q.gemm.lanes) + 1) * q.gemm.lanes
    cdef int64_t v = q.numbers * apart(q, q.depth, row) * q.item
    cdef int64_t p = q.numbers * apart(q, q.rows, row) * q.item
    cdef int64_t segments = count * sizeof(tf_tile_segment)
    cdef char *room
    cdef char *next
    bytes[0] = segments + v + p + 3 * 64
    room = next = <char *>scratch_push(bytes[0])
    if room == NULL:
        q.failed = 1
        return NULL
    k.q, k.b, k.number, k.group = q, q.geometry, t, group
    cut(q, first, count, &k.b, <tf_tile_segment *>carve(&next, segments))
    k.v, k.p = carve(&next, v), carve(&next, p)
    return room


cdef void block_of(Plan *q, int64_t t, bint alone) noexcept nogil:
    cdef Block k
    cdef int64_t bytes
    cdef double cost
    cdef char *room = enter_block(&k, q, t // q.blocks, t % q.blocks, &bytes)
    if room == NULL:
        return
    k.u = q.u + k.group * u_bytes(q)
    cost = q.gemm.fma_ns * q.numbers * k.b.row
    for_each(q.depth, 14 * cost * q.depth, source_task, &k, alone)
    if not q.failed:
        for_each(q.numbers, cost * q.rows * q.depth, product_task, &k, alone)
        for_each(q.rows, 10 * cost * q.rows, result_task, &k, alone)
    scratch_pop(bytes)


cdef void block_task(int64_t t, void *ctx) noexcept nogil:
    block_of(<Plan *>ctx, t, True)


cdef void kernel_task(int64_t o, void *ctx) noexcept nogil:
    """The transformed kernels of one channel of the result."""
    cdef Plan *q = <Plan *>ctx
    cdef int64_t group = o // q.rows, row = o % q.rows, i
    cdef const char *w = q.w + (group * q.w_group + row * q.w_row) * q.item
    cdef char *u = q.u + group * u_bytes(q) + row * q.u_row * q.item
    for i in range(q.sheets):
        q.kind.kernels(w + i * q.w_sheet * q.item, q.w_depth, q.taps, q.channels, u + i * q.channels * q.item,
                       apart(q, q.rows, q.u_row))


cdef int64_t u_bytes(const Plan *q) noexcept nogil:
    """Of the transformed kernels of a group."""
    return q.numbers * apart(q, q.rows, q.u_row) * q.item


cdef void begin(Plan *q, const Shape *s, const int64_t *size, int64_t rows, int64_t channels,
                int64_t budget) noexcept nogil:
    """What depends on the shape alone; tiles cover `size`."""
    cdef int64_t unit = 2 * s.kind.lanes
    memset(q, 0, sizeof(Plan))
    q.gemm, q.item, q.groups, q.rows, q.channels = s.kind, s.kind.itemsize, s.groups, rows, channels
    q.sheets, q.depth, q.sheet_gap = s.kernel[0], s.kernel[0] * channels, s.dil[0]
    q.kind = &TABLE.f64[size_of(size)] if s.dtype == TF_F64 else &TABLE.f32[size_of(size)]
    q.numbers = q.kind.in_ * q.kind.in_
    q.high, q.down, q.across = size[0], up(size[1], q.kind.out), up(size[2], q.kind.out)
    q.tiles = s.n * q.high * q.down * q.across
    q.block = min(WIDEST, max(1, budget // (q.numbers * (rows + q.depth) * q.item * unit))) * unit
    q.blocks = up(q.tiles, q.block)
    q.u_row = up(q.depth, q.gemm.lanes) * q.gemm.lanes


cdef void places_of(tf_tile_block *b, const tf_view *v) noexcept nogil:
    b.step[0] = v.strides[0]
    three(&v.shape[2], v.ndim - 2, 1, b.size)
    three(&v.strides[2], v.ndim - 2, 0, b.step + 1)
    memset(b.pad, 0, sizeof(b.pad))


cdef int winograd(const Shape *s, bint gradient, const tf_view *from_, const tf_view *w,
                  const tf_view *bias, tf_view *to) noexcept nogil:
    """y = conv(x, w) + bias, or gx from g and w. TF_EUNSUPPORTED: the direct form has to do it."""
    cdef const int64_t *size = result_size(s, gradient)
    cdef int64_t bytes, i
    cdef int64_t ws[3]
    cdef tf_tile_block *b
    cdef Plan q
    begin(&q, s, size, s.cg if gradient else s.og, s.og if gradient else s.cg, BLOCK)
    q.x, q.x_step = from_.data, from_.strides[1]
    q.y, q.y_step = to.data, volume(size)
    q.w, q.w_row, q.w_depth = w.data, w.strides[1 if gradient else 0], w.strides[0 if gradient else 1]
    three(&w.strides[2], w.ndim - 2, 0, ws)
    q.w_group, q.w_sheet = s.og * w.strides[0], -ws[0] if gradient else ws[0]
    if gradient:                      # sheets are turned round, too
        q.w += (s.kernel[0] - 1) * ws[0] * q.item
    for i in range(9):
        q.taps[8 - i if gradient else i] = i // 3 * ws[1] + i % 3 * ws[2]
    if bias != NULL:
        q.bias, q.bias_step = bias.data, bias.strides[0]
    b = &q.geometry
    places_of(b, from_)
    for i in range(3):
        b.pad[i] = (s.kernel[i] - 1) * s.dil[i] - s.pad[i] if gradient else s.pad[i]
    b.out[0], b.out[1], b.image = size[1], size[2], s.groups * q.rows * q.y_step
    bytes = s.groups * u_bytes(&q)
    q.u = <char *>scratch_push(bytes)
    if q.u == NULL:
        return TF_EUNSUPPORTED
    parallel_for(s.groups * q.rows, 20 * q.gemm.fma_ns * s.groups * q.rows * q.depth * q.numbers, kernel_task, &q)
    if s.groups * q.blocks >= MANY:
        parallel_for(s.groups * q.blocks, q.gemm.fma_ns * s.groups * q.numbers * q.tiles * q.rows * q.depth, block_task,
                     &q)
    else:
        for i in range(s.groups * q.blocks):
            block_of(&q, i, False)
    scratch_pop(bytes)
    return TF_EUNSUPPORTED if q.failed or q.bad else TF_OK


# The gradient of the kernels: all threads work at one block after the other, since sums go on from block to block; or each
# at a group of its own.

cdef void side_task(int64_t i, void *ctx) noexcept nogil:
    """A channel of the source, or of the gradient."""
    cdef Block *k = <Block *>ctx
    cdef Plan *q = k.q
    cdef int64_t bytes, all
    cdef char *room
    if i < q.depth:
        source_task(i, ctx)
        return
    i -= q.depth
    all = k.group * q.rows + i
    room = room_of(k, &bytes)
    if room != NULL:
        q.kind.gradient(&k.g, q.g + all * q.g_step * q.item, room, k.p + i * k.g.row * q.item,
                        apart(q, q.rows, k.g.row))
        scratch_pop(bytes)


cdef void sum_task(int64_t i, void *ctx) noexcept nogil:
    """One number's products of all kernels, added to those of earlier blocks."""
    cdef Block *k = <Block *>ctx
    cdef Plan *q = k.q
    cdef int64_t bytes = q.gemm.nr * k.b.tiles * q.item
    cdef tf_product p
    p.panel = scratch_push(bytes)
    if p.panel == NULL:
        q.failed = 1
        return
    p.m, p.n, p.k = q.rows, q.depth, k.b.tiles
    p.a, p.ar, p.ac = k.p + i * apart(q, q.rows, k.b.row) * q.item, k.b.row, 1
    p.b, p.br, p.bc = k.v + i * apart(q, q.depth, k.b.row) * q.item, 1, k.b.row
    p.c, p.ldc = k.u + i * apart(q, q.rows, q.u_row) * q.item, q.u_row
    p.load = k.number > 0
    q.gemm.product(&p)
    scratch_pop(bytes)


cdef void weight_task(int64_t o, void *ctx) noexcept nogil:
    """The gradient of one channel's kernels, sheet by sheet."""
    cdef Block *k = <Block *>ctx
    cdef Plan *q = k.q
    cdef int64_t i
    cdef char *w = q.y + (k.group * q.rows + o) * q.depth * 9 * q.item
    for i in range(q.sheets):
        if not q.kind.weights(k.u + (o * q.u_row + i * q.channels) * q.item, apart(q, q.rows, q.u_row), q.channels,
                              w + i * 9 * q.item, q.sheets * 9):
            q.bad = 1


cdef void weights_of(Plan *q, int64_t group, bint alone) noexcept nogil:
    """All blocks of a group."""
    cdef int64_t bytes, all = u_bytes(q), i
    cdef double cost = q.gemm.fma_ns * q.numbers
    cdef char *room
    cdef char *u = <char *>scratch_push(all)
    cdef Block k
    if u == NULL:
        q.failed = 1
        return
    for i in range(q.blocks):
        room = enter_block(&k, q, group, i, &bytes)
        if room == NULL:
            break
        k.g, k.u = q.g_geometry, u
        k.g.segments, k.g.n, k.g.tiles, k.g.row = k.b.segments, k.b.n, k.b.tiles, k.b.row
        for_each(q.depth + q.rows, 14 * cost * k.b.row * (q.depth + q.rows), side_task, &k, alone)
        if not q.failed:
            for_each(q.numbers, cost * k.b.row * q.rows * q.depth, sum_task, &k, alone)
        scratch_pop(bytes)
    if not q.failed:
        for_each(q.rows, 20 * cost * q.rows * q.depth, weight_task, &k, alone)
    scratch_pop(all)


cdef void group_task(int64_t group, void *ctx) noexcept nogil:
    weights_of(<Plan *>ctx, group, True)


cdef int winograd_weight(const Shape *s, const tf_view *g, const tf_view *x, tf_view *w) noexcept nogil:
    """gw from g and x. TF_EUNSUPPORTED: the direct form has to do it."""
    cdef int64_t i
    cdef Plan q
    begin(&q, s, s.out, s.og, s.cg, SHARED)
    q.x, q.x_step, q.g, q.g_step, q.y = x.data, x.strides[1], g.data, g.strides[1], w.data
    places_of(&q.geometry, x)
    places_of(&q.g_geometry, g)
    for i in range(3):
        q.geometry.pad[i] = s.pad[i]
    if s.groups >= MANY:
        parallel_for(s.groups, q.gemm.fma_ns * s.groups * q.numbers * q.tiles * q.rows * q.depth, group_task, &q)
    else:
        for i in range(s.groups):
            weights_of(&q, i, False)
    return TF_EUNSUPPORTED if q.failed or q.bad else TF_OK
