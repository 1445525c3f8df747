"""Five loops around the tile: packed blocks, tasks of fixed size, accumulators that outlive blocks.

C is cut into areas, k into blocks; for each, panels of A and B are packed side by side and tiles of
C continue their chains. The order of tasks and the sizes of blocks never show in a result.
"""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.gemm_loops cimport *
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.threads cimport for_each, scratch_pop, scratch_push
from tinyfin.core.abi cimport *

cdef enum:
    AREA_ROWS = 1024     # rows of C per area, at most (rounded to tiles)
    AREA_COLS = 2048
    WIDE = 16            # from this many strips on, each strip's task packs its own B
    TILE_BYTES = 4096    # one tile of accumulators
    CUT = 1 << 19        # multiply-adds from which what is few tasks for its size becomes several
    PIECES = 8
    PACKED = 1 << 24     # multiply-adds from which panels that threads share pay where cores are distant
    NEAR = 1 << 20       # bytes of A up to which it may be read where it lies for each strip of B
    NARROW = 1024        # bytes from row to row of B up to which it is read where it lies
    PERIOD = 4096        # bytes after which addresses share their places in L1, and how many places there are
    WAYS = 8

cdef const tf_gemm_table *TABLE = <const tf_gemm_table *>isa_table(b"gemm")
cdef bint DUOS = TABLE.duos_work != NULL and TABLE.duos_work()


cdef struct Area:
    # a part of C and one block of k, as the tasks see it
    const gemm *p
    int64_t i, j, m, n, k0, k
    int64_t each                           # rows of a tile
    int64_t rows, cols, strips, tiles      # of one task; tasks across and down
    int64_t down                           # tasks down of products: one of all rows where B's strip is packed for them
    int64_t a_parts, b_parts               # tasks that pack A, and B, for all
    bint first, last, own                  # first or last block of k; tasks pack B themselves
    bint direct, bare                      # A, and B, are read where they lie
    bint by_rows                           # neighbouring tasks share rows of A, not columns of B
    char *a
    char *b
    char *acc
    int failed


cdef const tf_gemm_kind *gemm_kind(int dtype) noexcept nogil:
    """Tiles for the accumulators of a dtype."""
    if dtype == TF_F64:
        return &TABLE.kind[TF_GEMM_F64]
    if dtype >= TF_F16:
        return &TABLE.kind[TF_GEMM_F32]
    return &TABLE.kind[TF_GEMM_I64 if dtype == TF_I64 else TF_GEMM_I32]


cdef const tf_gemm_thin *gemm_thin(int dtype) noexcept nogil:
    """Products of few rows, which read elements of a dtype; NULL for small integers."""
    if dtype == TF_F16:
        return &TABLE.thin[TF_THIN_F16]
    if dtype == TF_BF16:
        return &TABLE.thin[TF_THIN_BF16]
    if dtype == TF_F32:
        return &TABLE.thin[TF_THIN_F32]
    if dtype == TF_F64:
        return &TABLE.thin[TF_THIN_F64]
    if dtype == TF_I32:
        return &TABLE.thin[TF_THIN_I32]
    return &TABLE.thin[TF_THIN_I64] if dtype == TF_I64 else NULL


cdef const tf_gemm_kind *pairs_kind() noexcept nogil:
    """Tiles for 8-bit integers into int32."""
    return &TABLE.kind[TF_GEMM_PAIRS]


cdef const tf_gemm_kind *duos_kind() noexcept nogil:
    """Tiles for bfloat16 by the processor's own instruction; NULL: it has none."""
    return &TABLE.kind[TF_GEMM_DUOS] if DUOS else NULL


cdef void pack_duos(const char *src, int64_t row, int64_t col, int64_t count, int64_t k, void *dst, int side,
                    tf_reach *reach) noexcept nogil:
    TABLE.pack_duos(src, row, col, count, k, dst, side, reach)


cdef bint duos_fit(const tf_reach *a, const tf_reach *b) noexcept nogil:
    return TABLE.duos_fit(a, b)


cdef void strided_a(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                    void *dst) noexcept nogil:
    p.kind.pack(p.dtype, p.a + (first * p.ar + k0 * p.ac) * tf_itemsize[p.dtype], p.ar, p.ac, count,
                k, dst, 0)


cdef void strided_b(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                    void *dst) noexcept nogil:
    p.kind.pack(p.dtype, p.b + (first * p.bc + k0 * p.br) * tf_itemsize[p.dtype], p.bc, p.br, count,
                k, dst, 1)


cdef void panels(const Area *s, int side, int64_t first, int64_t stop, char *dst) noexcept nogil:
    """Packs rows of A (side 0) or columns of B (1) from first to stop, the area's own count."""
    if side:
        s.p.pack_b(s.p, s.j + first, stop - first, s.k0, s.k, dst)
        return
    if s.each == s.p.kind.mr:
        s.p.pack_a(s.p, s.i + first, stop - first, s.k0, s.k, dst)
        return
    while first < stop:
        s.p.pack_a(s.p, s.i + first, min(s.each, stop - first), s.k0, s.k, dst)
        dst += s.p.kind.mr * s.k * s.p.kind.itemsize
        first += s.each


cdef void pack_task(int64_t t, void *ctx) noexcept nogil:
    """Panels for one task's rows, then, in later tasks, for one task's columns."""
    cdef const Area *s = <const Area *>ctx
    cdef int64_t depth = s.k * s.p.kind.itemsize
    if t < s.a_parts:
        panels(s, 0, t * s.rows, min((t + 1) * s.rows, s.m), s.a + t * s.rows // s.each * s.p.kind.mr * depth)
    else:
        t -= s.a_parts
        panels(s, 1, t * s.cols, min((t + 1) * s.cols, s.n), s.b + t * s.cols * depth)


cdef void tile_row(const Area *s, const char *b, int64_t i, int64_t rows, int64_t col,
                   int64_t stop) noexcept nogil:
    """Tiles of `rows` rows from row i of the area, columns col to stop; b holds their panels."""
    cdef const gemm *p = s.p
    cdef const tf_gemm_kind *kind = p.kind
    cdef int64_t nr = kind.nr, item = kind.itemsize, ld, cols
    cdef int64_t br = p.br if s.bare else nr, ahead = nr * item if s.bare else nr * s.k * item
    cdef char small[TILE_BYTES]
    cdef char *acc
    cdef const char *a = s.a + i // s.each * kind.mr * s.k * item
    if s.direct:
        a = p.a + ((s.i + i) * p.ar + s.k0 * p.ac) * item
    while col < stop:
        cols = min(nr, stop - col)
        if p.c != NULL:
            ld = p.ldc
            acc = p.c + ((s.i + i) * ld + s.j + col) * item
        elif s.acc != NULL:
            ld = s.strips * s.cols
            acc = s.acc + (i * ld + col) * item
        else:
            ld, acc = nr, small
        if s.direct:
            kind.tile_direct(s.k, a, p.ar, p.ac, b, br, acc, ld, <int>rows, <int>cols, not s.first)
        else:
            kind.tile(s.k, a, b, acc, ld, <int>rows, <int>cols, not s.first)
        if s.last and p.finish != NULL:
            p.finish(p, s.i + i, rows, s.j + col, cols, acc, ld)
        b += ahead
        col += nr


cdef void tile_task(int64_t t, void *ctx) noexcept nogil:
    """One strip of columns, or its part of one task's rows; strips lead, so B stays in cache."""
    cdef Area *s = <Area *>ctx
    cdef const gemm *p = s.p
    cdef int64_t strip = t % s.strips if s.by_rows else t // s.down
    cdef int64_t row = (t // s.strips if s.by_rows else t % s.down) * s.rows
    cdef int64_t last = s.m if s.down == 1 else min(row + s.rows, s.m)
    cdef int64_t col = strip * s.cols, stop = min(col + s.cols, s.n)
    cdef size_t bytes = s.cols * s.k * s.p.kind.itemsize
    cdef char *b
    if s.bare:
        b = <char *>p.b + (s.k0 * p.br + s.j + col) * p.kind.itemsize
    elif not s.own:
        b = s.b + strip * bytes
    else:
        b = <char *>scratch_push(bytes)
        if b == NULL:
            s.failed = 1
            return
        panels(s, 1, col, stop, b)
    while row < last:
        tile_row(s, b, row, min(s.each, last - row), col, stop)
        row += s.each
    if s.own and not s.bare:
        scratch_pop(bytes)


cdef void run_area(Area *s, bint alone) noexcept nogil:
    """All blocks of k of one area."""
    cdef const gemm *p = s.p
    cdef int64_t blocks = max(up(p.k, p.kind.kc), 1)
    cdef int64_t depth = up(p.k, blocks)
    s.k0 = 0
    while True:
        s.k = min(depth, p.k - s.k0)
        s.first, s.last = s.k0 == 0 and not p.resume, s.k0 + s.k >= p.k
        for_each(s.a_parts + s.b_parts, 0.3 * s.k * ((s.m if s.a_parts else 0) + (s.n if s.b_parts else 0)),
                 pack_task, s, alone)
        for_each(s.strips * s.down, p.kind.fma_ns * s.m * s.n * s.k, tile_task, s, alone)
        s.k0 += s.k
        if s.last:
            return


cdef bint spread(int64_t apart, int64_t rows) noexcept nogil:
    """Whether rows that are some bytes apart do not share their places in L1."""
    cdef int64_t places = 1
    while places < 64 and apart * places % PERIOD:
        places += 1
    return rows <= WAYS * places


cdef void cut(Area *s, int64_t m, int64_t n) noexcept nogil:
    """Chooses rows and columns of one task in areas of m rows and n columns: even parts, of a size that caches hold."""
    cdef const gemm *p = s.p
    cdef const tf_gemm_kind *kind = p.kind
    cdef int64_t across = n // kind.nr, down = m // kind.mr
    cdef int64_t width = kind.nc // kind.nr, tiles = up(m, kind.mc), height
    s.direct = p.pack_a == strided_a and accumulates(p.dtype) and p.ac == 1 and spread(p.ar * kind.itemsize, kind.mr)
    s.bare = s.direct and p.pack_b == strided_b and p.bc == 1 and p.br * kind.itemsize <= NARROW
    s.by_rows = m > 2 * n
    s.direct &= s.by_rows or p.n <= kind.nr or m * p.k * kind.itemsize <= NEAR
    s.bare &= s.direct
    if s.direct and not s.by_rows:
        tiles = 1
    height = up(down, tiles)
    if up(across, width) * tiles < PIECES and p.m * p.n * p.k >= CUT:
        if not s.by_rows:
            width = max(across // PIECES, 1)
            tiles = max(tiles, up(PIECES, up(across, width)))
        else:
            tiles = PIECES
        height = max(down // tiles, 1)
    s.each = tf_even_rows(p.m, kind.mr) if p.m <= m else kind.mr
    s.cols, s.rows = width * kind.nr, height * s.each
    s.own = s.direct and not s.by_rows or down <= height or n >= WIDE * s.cols


cdef int gemm_run(const gemm *p, bint alone, int64_t *detail) noexcept nogil:
    """C = A B with m, n > 0; `alone` keeps to the calling thread. Returns an error code."""
    cdef const tf_gemm_kind *kind = p.kind
    cdef Area s
    cdef int64_t depth = up(p.k, max(up(p.k, kind.kc), 1)), item = kind.itemsize
    cdef int64_t m = min(up(p.m, kind.mr), AREA_ROWS // kind.mr) * kind.mr
    cdef int64_t n = min(up(p.n, kind.nr), AREA_COLS // kind.nr) * kind.nr
    cdef int64_t a_bytes, b_bytes, c_bytes
    cdef char *room
    s.p, s.failed = p, 0
    cut(&s, m, n)
    if not (s.direct or s.own) and (p.pack_a == strided_a or kind == pairs_kind() or kind == duos_kind()):
        alone = alone or p.m * p.n * p.k < PACKED
    a_bytes = 0 if s.direct else m * depth * item
    b_bytes = 0 if s.own or s.bare else n * depth * item
    c_bytes = m * up(n, s.cols) * s.cols * item if p.c == NULL and p.k > depth else 0
    room = <char *>scratch_push(a_bytes + b_bytes + c_bytes + 192)
    if room == NULL:
        detail[0] = a_bytes + b_bytes + c_bytes
        return TF_ENOMEM
    s.a, s.b = room, room + ((a_bytes + 63) & ~63)
    s.acc = s.b + ((b_bytes + 63) & ~63) if c_bytes else NULL
    s.j = 0
    while s.j < p.n:
        s.n = min(n, p.n - s.j)
        s.strips = up(s.n, s.cols)
        s.i = 0
        while s.i < p.m:
            s.m = min(m, p.m - s.i)
            s.tiles = up(s.m, s.rows)
            s.down = 1 if s.own and not s.direct else s.tiles
            s.a_parts = 0 if s.direct else s.tiles
            s.b_parts = 0 if s.own or s.bare else s.strips
            run_area(&s, alone)
            s.i += s.m
        s.j += s.n
    scratch_pop(a_bytes + b_bytes + c_bytes + 192)
    if s.failed:
        detail[0] = s.cols * depth * item
        return TF_ENOMEM
    return TF_OK
