"""Matrix products of any strides, batched and broadcast; linear layers.

Tiles depend on the shape alone, and each gives every element the same one chain over k. In normal mode,
devices that multiply matrices of halves by themselves do so, in their own order of sums, and chains of few
elements are cut into parts that are computed at once and added.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tinyfin.backends.gpu.axes cimport *
from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.moves cimport copied
from tinyfin.backends.gpu.reduce cimport join_parts
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.gpu.modules import shader

cdef enum:
    NARROW = 8                # columns up to which tiles are tall
    WAVE = 132                # work groups that a large device runs at once
    KINDS = 6
    SMALL = 0                 # kinds of tiles
    COOPERATIVE_KINDS = 3
    COOPERATIVE_LEAST = 16    # rows, columns and depth from which halves take matrices of hardware
    MOST_PARTS = 64           # that a chain is cut into
    LEAST_PART = 64           # steps of a part
    STARTED = 32              # steps that starting a tile takes the time of
    PAIRED = 1 << 20          # steps from which on another program for pairs is worth its making
    JOINED = 700000           # what joining parts takes, in steps of a work group; and each element of each part

cdef int SMALL_F32 = shader("matmul_small_f32")
cdef int SMALL_INT = shader("matmul_small_int")
cdef int SMALL_I64 = shader("matmul_small_i64")
cdef int SMALL_F64 = shader("matmul_small_f64")
cdef int DIRECT_F32 = shader("matmul_direct_f32")
cdef int DIRECT_INT = shader("matmul_direct_int")
cdef int DIRECT_F64 = shader("matmul_direct_f64")
cdef int TILED = shader("matmul_f32")
cdef int COOPERATIVE = shader("matmul_cooperative_half_f32")
cdef int COOPERATIVE_BF16 = shader("matmul_cooperative_bfloat_f32")

cdef struct Tile:
    int64_t rows, cols
    int depth
    double speed              # of a full one, where 1 is the fastest

cdef Tile[KINDS] TILES = [Tile(16, 16, 16, 0.10), Tile(64, 64, 16, 0.72), Tile(64, 128, 16, 0.85),
                          Tile(128, 64, 16, 0.88), Tile(128, 128, 16, 0.96), Tile(128, 256, 8, 1.0)]
# through OpenGL, as measured there
cdef Tile[KINDS] OPENGL_TILES = [Tile(16, 16, 16, 0.22), Tile(64, 64, 16, 0.67), Tile(64, 128, 16, 0.94),
                                 Tile(128, 64, 16, 0.72), Tile(128, 128, 8, 0.94), Tile(128, 256, 8, 1.0)]
cdef Tile[COOPERATIVE_KINDS] COOPERATIVE_TILES = [Tile(64, 64, 32, 0.45), Tile(128, 128, 32, 0.80),
                                                  Tile(128, 256, 32, 1.0)]
cdef int ONLY = -1            # the kind that is always taken
cdef int ONLY_COOPERATIVE = -1
cdef int ONLY_PARTS = 0


def only_tiles(int kind=-1, int cooperative=-1, int parts=0):
    """Takes one kind of tiles for all products of floats, for measuring and testing; -1 chooses by the shape.

    kind: place in TILES. cooperative: place in COOPERATIVE_TILES; -2 takes none of them. parts: of each chain, where
    they divide it; 0 chooses by the shape.
    """
    global ONLY, ONLY_COOPERATIVE, ONLY_PARTS
    if not -1 <= kind < KINDS or not -2 <= cooperative < COOPERATIVE_KINDS or not 0 <= parts <= MOST_PARTS:
        raise ValueError(f"only_tiles: kind is {kind}, cooperative {cooperative}, parts {parts}, expected -1 to "
                         f"{KINDS - 1}, -2 to {COOPERATIVE_KINDS - 1} and 0 to {MOST_PARTS}")
    ONLY, ONLY_COOPERATIVE, ONLY_PARTS = kind, cooperative, parts


cdef struct Product:
    # out[i, j] = sum of a[i, q] * b[q, j]; strides in elements
    int64_t m, n, k, a_row, a_k, b_k, b_col, out_row, out_col, bias_row, bias_col
    int dtype
    const tf_view *a
    const tf_view *b
    const tf_view *out
    const tf_view *bias       # NULL: none
    tf_call *call
    Axes batch                # operands a and b; out is dense


cdef void swap(Product *q) noexcept nogil:
    """The transposed product: columns become rows."""
    cdef int d
    q.a, q.b = q.b, q.a
    q.m, q.n = q.n, q.m
    q.a_row, q.a_k, q.b_k, q.b_col = q.b_col, q.b_k, q.a_k, q.a_row
    q.out_row, q.out_col = q.out_col, q.out_row
    q.bias_row, q.bias_col = q.bias_col, q.bias_row
    for d in range(q.batch.ndim):
        q.batch.strides[0][d], q.batch.strides[1][d] = q.batch.strides[1][d], q.batch.strides[0][d]


cdef void simplify(Product *q) noexcept nogil:
    """Batch axes that continue A's rows over one B become rows."""
    cdef Axes *batch = &q.batch
    cdef int d, nd = 0
    for d in range(batch.ndim):
        if batch.shape[d] != 1:
            batch.shape[nd] = batch.shape[d]
            batch.strides[0][nd], batch.strides[1][nd] = batch.strides[0][d], batch.strides[1][d]
            nd += 1
    while nd and batch.strides[1][nd - 1] == 0 and (q.m == 1 or batch.strides[0][nd - 1] == q.m * q.a_row):
        nd -= 1
        if q.m == 1:
            q.a_row = batch.strides[0][nd]
        q.m *= batch.shape[nd]
        batch.count //= batch.shape[nd]
    batch.ndim = nd


cdef inline bint closer(int64_t a, int64_t b) noexcept nogil:
    """Whether steps of `a` are shorter than those of `b`."""
    return (a if a >= 0 else -a) < (b if b >= 0 else -b)


cdef void operands(Product *q, tf_launch *l) noexcept nogil:
    write(l, q.out)
    read(l, q.a)
    read(l, q.b)
    if q.bias != NULL:
        read(l, q.bias)
    else:
        number(l, 0)


cdef void words(Product *q, tf_launch *l) noexcept nogil:
    cdef int64_t[12] values = [q.m, q.n, q.k, q.a_row, q.a_k, q.b_k, q.b_col, q.out_row, q.out_col,
                               q.bias_row, q.bias_col, q.batch.count]
    cdef int i
    for i in range(12):
        word(l, values[i])
    shape_words(l, &q.batch)
    stride_words(l, &q.batch, 0)
    stride_words(l, &q.batch, 1)


cdef inline int64_t tiles(const Product *q, int64_t rows, int64_t cols) noexcept nogil:
    return (q.m + rows - 1) // rows * ((q.n + cols - 1) // cols) * q.batch.count


cdef int small(Product *q) noexcept:
    """Tiles of 16 x 16; 32 x 8 where there are few columns, or few rows."""
    cdef tf_launch l
    cdef int64_t rows = 16, cols = 16, depth = 16
    if min(q.m, q.n) <= NARROW:
        rows, cols, depth = 32, 8, 64
        if tf_itemsize[q.dtype] == 8:
            depth = 32
        if q.m < q.n:
            swap(q)
    begin(&l, SMALL_F64 if q.dtype == TF_F64 else SMALL_F32 if q.dtype >= TF_F16 else SMALL_I64
          if q.dtype == TF_I64 else SMALL_INT, q.call)
    operands(q, &l)
    words(q, &l)
    constant(&l, 0, q.dtype)
    constant(&l, 1, rows)
    constant(&l, 2, cols)
    constant(&l, 3, depth)
    constant(&l, 4, closer(q.a_row, q.a_k))
    constant(&l, 5, closer(q.b_col, q.b_k))
    spread(&l, tiles(q, rows, cols))
    return launch(&l, q.out, q.call)


cdef int fastest(const Product *q, const Tile *kinds, int n) noexcept nogil:
    """The tiles that are expected to take the least time: full waves of them."""
    cdef double cost, least = 0
    cdef int kind, best = 0
    for kind in range(n):
        cost = (tiles(q, kinds[kind].rows, kinds[kind].cols) + WAVE - 1) // WAVE
        cost *= kinds[kind].rows * kinds[kind].cols / kinds[kind].speed
        if kind == 0 or cost < least:
            best, least = kind, cost
    return best


cdef const Tile *tiles_of(const Product *q) noexcept nogil:
    """The kinds of tiles of the API."""
    return &OPENGL_TILES[0] if q.out.backend == TF_OPENGL else &TILES[0]


cdef int kind_of(const Product *q) noexcept nogil:
    """The kind of tiles for chains of floats."""
    if not TF_F16 <= q.dtype <= TF_F32 or min(q.m, q.n) <= NARROW:
        return SMALL
    return ONLY if ONLY >= 0 else fastest(q, tiles_of(q), KINDS)


cdef double cost_of(const Product *q, int kind, int64_t parts) noexcept nogil:
    """Steps of a work group until all parts of all tiles are done and joined."""
    cdef const Tile *tile = &tiles_of(q)[kind]
    cdef double waves = (tiles(q, tile.rows, tile.cols) * parts + WAVE - 1) // WAVE
    cdef double cost = waves * tile.rows * tile.cols / tile.speed * (q.k // parts + STARTED)
    return cost if parts == 1 else cost + JOINED + 0.6 * parts * q.m * q.n * q.batch.count


cdef int64_t parts_of(const Product *q, int *kind) noexcept nogil:
    """Into how many parts chains are cut, and with which tiles; a cut has to gain a sixth of the time."""
    cdef double cost, least
    cdef int64_t parts = 1, p
    cdef int one
    if q.dtype != TF_F32 or q.batch.ndim == WALKED or q.call.mode & TF_DETERMINISTIC:
        return 1
    if ONLY_PARTS:
        return ONLY_PARTS if q.k % ONLY_PARTS == 0 and q.k else 1
    if features(q.out) & IS_SOFTWARE or ONLY >= 0 or q.k < 2 * LEAST_PART:
        return 1
    if tiles(q, tiles_of(q)[kind[0]].rows, tiles_of(q)[kind[0]].cols) > 4 * WAVE:
        return 1                     # whole tiles occupy the device
    least = cost_of(q, kind[0], 1) / 1.2
    for p in range(2, min(MOST_PARTS, q.k // LEAST_PART) + 1):
        if q.k % p:
            continue
        for one in range(1 if min(q.m, q.n) > NARROW else KINDS, KINDS):
            cost = cost_of(q, one, p)
            if cost < least:
                least, parts, kind[0] = cost, p, one
    return parts


cdef bint cooperates(const Product *q) noexcept nogil:
    """Whether the device's own products of matrices are taken: by shape, dtype and mode."""
    cdef uint32_t needed = HAS_COOPERATIVE if q.dtype == TF_F16 else HAS_COOPERATIVE_BF16
    if q.call.mode & TF_DETERMINISTIC or not TF_F16 <= q.dtype < TF_F32 or ONLY_COOPERATIVE == -2:
        return False
    return min(q.m, q.n, q.k) >= COOPERATIVE_LEAST and features(q.out) & needed != 0


cdef uint32_t layout(const Product *q, int k, const tf_view *v, int64_t size, int64_t step, int64_t k_step,
                     int64_t many) noexcept nogil:
    """How a tile of operand k is loaded: along k or across it (1), several elements at once (2)."""
    cdef int64_t item = tf_itemsize[v.dtype], odd = address_of(v) // item
    cdef int d
    for d in range(q.batch.ndim):
        odd |= q.batch.strides[k][d]
    if address_of(v) % item == 0:
        if step == 1 and (odd | k_step | size) % many == 0:
            return 3
        if k_step == 1 and (odd | step | q.k) % many == 0:
            return 2
    return closer(step, k_step)


cdef inline uint32_t in_pairs(uint32_t layout) noexcept nogil:
    """A layout for which single elements are single elements, whichever lie closer."""
    return layout if layout > 1 else 0


cdef int direct(Product *q) noexcept:
    """Tiles of 32 x 64 without shared memory; in large products pairs are loaded where they lie so."""
    cdef tf_launch l
    cdef bint large = q.dtype == TF_F32 and q.out.backend == TF_VULKAN and q.out.size * q.k >= PAIRED
    begin(&l, DIRECT_F64 if q.dtype == TF_F64 else DIRECT_F32 if q.dtype >= TF_F16 else DIRECT_INT, q.call)
    operands(q, &l)
    words(q, &l)
    constant(&l, 0, q.dtype)
    if large:
        constant(&l, 1, in_pairs(layout(q, 0, q.a, q.m, q.a_row, q.a_k, 2)))
        constant(&l, 2, in_pairs(layout(q, 1, q.b, q.n, q.b_col, q.b_k, 2)))
    spread(&l, tiles(q, 32, 64))
    return launch(&l, q.out, q.call)


cdef int tiled(Product *q, const Tile *tile, int64_t many) noexcept:
    """Tiles of several results for each invocation; `many` elements at once are loaded where they lie so."""
    cdef tf_launch l
    cdef bint cooperative = many == 8
    begin(&l, TILED if not cooperative else COOPERATIVE if q.dtype == TF_F16 else COOPERATIVE_BF16, q.call)
    operands(q, &l)
    words(q, &l)
    constant(&l, 0, q.dtype)
    constant(&l, 1, tile.rows if cooperative else tile.rows // 64)
    constant(&l, 2, tile.cols if cooperative else tile.cols // 64)
    constant(&l, 3, layout(q, 0, q.a, q.m, q.a_row, q.a_k, many))
    constant(&l, 4, layout(q, 1, q.b, q.n, q.b_col, q.b_k, many))
    constant(&l, 5, q.n % many == 0 and address_of(q.out) & 15 == 0)
    if not cooperative:
        constant(&l, 6, tile.depth)
        constant(&l, 7, q.out.backend == TF_OPENGL or (features(q.out) & IS_SOFTWARE != 0
                                                       and tile.rows * tile.cols > 64 * 64))
    spread(&l, tiles(q, tile.rows, tile.cols))
    return launch(&l, q.out, q.call)


cdef int one_kind(Product *q, int kind) noexcept:
    return small(q) if kind == SMALL else tiled(q, &tiles_of(q)[kind], 4)


cdef int in_parts(Product *q, int kind, int64_t parts) noexcept:
    """Parts of the chains are a batch, whose results are added; so is the bias, as one part more."""
    cdef const tf_view *out = q.out
    cdef const tf_view *bias = q.bias
    cdef tf_view held = out[0], slot
    cdef Axes batch
    cdef int64_t all_parts = parts + (bias != NULL)
    cdef int d, rc
    cdef object memory
    try:
        memory = scratch(out, <uint64_t>(4 * all_parts * out.size))
        held.block, held.offset = <void *><uint64_t>memory.block, 0
    except BaseException as error:
        return failed(out, q.call, error)
    held.ndim, held.flags, held.size = 1, TF_CONTIGUOUS, all_parts * out.size
    held.shape[0], held.strides[0] = held.size, 1
    no_axes(&batch, 2)
    axis(&batch, parts, q.k // parts * q.a_k, q.k // parts * q.b_k)
    for d in range(q.batch.ndim):
        axis(&batch, q.batch.shape[d], q.batch.strides[0][d], q.batch.strides[1][d])
    if bias != NULL:
        slot = held
        slot.ndim, slot.size, slot.offset = 2, out.size, parts * out.size
        slot.shape[0], slot.shape[1], slot.strides[0], slot.strides[1] = out.size // q.n, q.n, q.n, 1
        rc = copied(bias, &slot, q.call)
        if rc != TF_OK:
            return rc
    q.out, q.bias, q.k, q.batch = &held, NULL, q.k // parts, batch
    rc = one_kind(q, kind)
    return rc if rc != TF_OK else join_parts(<uint64_t>held.block, all_parts, out, q.call)


cdef int run(Product *q) noexcept:
    cdef int kind
    cdef int64_t parts
    q.call.detail[0] = q.dtype
    if q.dtype > TF_F64 or (q.dtype == TF_I64 and not features(q.out) & HAS_INT64):
        return TF_EUNSUPPORTED
    if q.dtype == TF_F64 and not features(q.out) & HAS_FLOAT64:
        return TF_EUNSUPPORTED
    if not within_reach(q.a) or not within_reach(q.b) or not within_reach(q.out) or (
            q.bias != NULL and not within_reach(q.bias)):
        return TF_EUNSUPPORTED
    if q.out.size == 0:
        return TF_OK
    simplify(q)
    q.out_row, q.out_col = q.n, 1
    if not merged(&q.batch):
        return TF_EUNSUPPORTED
    if cooperates(q):
        kind = fastest(q, COOPERATIVE_TILES, COOPERATIVE_KINDS) if ONLY_COOPERATIVE < 0 else ONLY_COOPERATIVE
        return tiled(q, &COOPERATIVE_TILES[kind], 8)
    kind = kind_of(q)
    parts = parts_of(q, &kind)
    if parts > 1:
        return in_parts(q, kind, parts)
    if features(q.out) & IS_SOFTWARE and q.dtype != TF_I64 and ONLY < 0:
        return direct(q)
    return one_kind(q, kind)


cdef int matmul(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call) noexcept with gil:
    cdef const tf_view *a = inputs[0]
    cdef const tf_view *b = inputs[1]
    cdef Product q
    cdef int na = a.ndim - 2, nb = b.ndim - 2, nd = max(na, nb, 0), i, d
    cdef int64_t size, sa, sb
    q.a, q.b, q.out, q.bias, q.call, q.dtype = a, b, outputs[0], NULL, call, a.dtype
    q.bias_row = q.bias_col = 0
    q.k, q.a_k = a.shape[a.ndim - 1], a.strides[a.ndim - 1]
    q.m, q.a_row, q.n, q.b_col, q.b_k = 1, 0, 1, 0, b.strides[max(nb, 0)]
    if na >= 0:
        q.m, q.a_row = a.shape[na], a.strides[na]
    if nb >= 0:
        q.n, q.b_col = b.shape[nb + 1], b.strides[nb + 1]
    no_axes(&q.batch, 2)
    for i in range(nd):
        size, sa, sb = 1, 0, 0
        d = i - (nd - na)
        if d >= 0 and a.shape[d] != 1:
            size, sa = a.shape[d], a.strides[d]
        d = i - (nd - nb)
        if d >= 0 and b.shape[d] != 1:
            size, sb = b.shape[d], b.strides[d]
        axis(&q.batch, size, sa, sb)
    return run(&q)


cdef int linear(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call) noexcept with gil:
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef Product q
    cdef int i
    q.a, q.b, q.out, q.call, q.dtype = x, w, outputs[0], call, x.dtype
    q.bias = inputs[2] if n > 2 and not inputs[2].flags & TF_ABSENT else NULL
    q.bias_row, q.bias_col = 0, q.bias.strides[0] if q.bias != NULL else 0
    q.m, q.a_row, q.k, q.a_k = 1, 0, x.shape[x.ndim - 1], x.strides[x.ndim - 1]
    q.n, q.b_col, q.b_k = w.shape[0], w.strides[0], w.strides[1]
    no_axes(&q.batch, 2)
    for i in range(x.ndim - 1):
        axis(&q.batch, x.shape[i], x.strides[i], 0)
    return run(&q)


KERNELS = {"matmul": kernel_capsule(matmul), "linear": kernel_capsule(linear)}
