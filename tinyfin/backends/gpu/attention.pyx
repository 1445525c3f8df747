"""Scaled dot-product attention, tile by tile: no buffer of queries x keys, backward neither.

q is (..., heads, queries, width), k and v (..., heads of keys, keys, width); any strides. The order of operations
is that of backends/cpu/attention_loops.h. float64 takes the bodies of one row whatever the shape.
"""
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t

from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.table cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport collapse

from tinyfin.backends.gpu.modules import shader

cdef enum:
    Q = 0                            # operands of the table in attention.glsl
    K, V, MASK, G, OUT, LSE, OPERANDS
    HEAD = 64                        # words of the table
    NO_MASK = 255
    SLICE = 1024                     # columns of one work group, in the bodies that take one row
    FEW = 16                         # rows below which those bodies run
    FEWEST = 16                      # tiles below which they run too

cdef int[2] ROW = [shader("attention_row_f32"), shader("attention_row_f64")]
cdef int TILE = shader("attention_tile_f32")
cdef int[2] DELTA = [shader("attention_delta_f32"), shader("attention_delta_f64")]
cdef int GRAD_TILE = shader("attention_grad_tile_f32")
cdef int[2] GRAD_ROW = [shader("attention_grad_row_f32"), shader("attention_grad_row_f64")]
cdef int TABLE_MODULE = shader("table")


cdef struct Job:
    const tf_view *x[OPERANDS]       # NULL where there is none
    const tf_view *where
    tf_call *call
    int64_t row[OPERANDS]            # strides of the last two axes
    int64_t step[OPERANDS]
    int64_t queries, keys, width, columns, group, heads
    int dtype, mask
    bint causal, doubled
    double scale
    Table table
    uint64_t aux, aux_bytes


cdef inline int64_t stride_at(const tf_view *v, int from_end) noexcept nogil:
    """Stride of an axis counted from the end; 0 where v is broadcast."""
    cdef int k = v.ndim - from_end
    return v.strides[k] if k >= 0 and v.shape[k] != 1 else 0


cdef inline int64_t slices(int64_t columns) noexcept nogil:
    return max(<int64_t>1, (columns + SLICE - 1) // SLICE)


cdef int set_up(Job *s, const tf_view *q, const tf_view *k, const tf_view *v, const tf_view *mask, const tf_view *g,
                const tf_view *out, const tf_view *lse, const tf_attrs *at) noexcept nogil:
    """Strides of everything, batches and key heads merged where all operands allow."""
    cdef int64_t shape[8]
    cdef int64_t all_strides[OPERANDS][8]
    cdef int64_t sub[OPERANDS]
    cdef int64_t *strides[OPERANDS]
    cdef int64_t stride, size
    cdef int o, d, e, n = q.ndim - 2
    s.x[Q], s.x[K], s.x[V], s.x[MASK], s.x[G], s.x[OUT], s.x[LSE] = q, k, v, mask, g, out, lse
    if mask.flags & TF_ABSENT:
        s.x[MASK] = NULL
    s.dtype, s.doubled = q.dtype, is_double(q)
    s.mask = mask.dtype if s.x[MASK] != NULL else NO_MASK
    s.call.detail[0] = q.dtype
    if not computes(q):
        return TF_EUNSUPPORTED
    s.queries, s.keys, s.width, s.columns = q.shape[n], k.shape[n], q.shape[n + 1], v.shape[n + 1]
    s.causal, s.scale = at.i[0] != 0, at.f[0] if at.i[1] else 1.0 / sqrt(<double>s.width)
    s.group = s.heads = 1
    for d in range(n):
        size = k.shape[d]
        if d == n - 1 and size:
            s.group = q.shape[d] // size
        shape[d] = size
        s.heads *= q.shape[d]
    for o in range(OPERANDS):
        strides[o] = all_strides[o]
        s.row[o] = s.step[o] = sub[o] = 0
        for d in range(n):
            all_strides[o][d] = 0
        if s.x[o] == NULL:
            continue
        if not within_reach(s.x[o]):
            return TF_EUNSUPPORTED
        e = 0 if o == LSE else 1                                # axes behind the queries'
        s.row[o] = stride_at(s.x[o], 1 + e)
        s.step[o] = stride_at(s.x[o], 1) if e else 0
        for d in range(n):
            stride = stride_at(s.x[o], n - d + 1 + e)
            if d == n - 1 and o != K and o != V:
                sub[o] = stride
                stride *= s.group
            all_strides[o][d] = stride
    n = collapse(n, shape, strides, OPERANDS)
    s.table.n = 0
    entry(&s.table, n)
    entry(&s.table, s.heads)
    entry(&s.table, s.group)
    for d in range(n):
        entry(&s.table, shape[d])
    for o in range(OPERANDS):
        for d in range(n):
            entry(&s.table, all_strides[o][d])
    for o in range(OPERANDS):
        entry(&s.table, sub[o])
    size = max(s.queries, s.keys)
    if size >= <int64_t>1 << 30 or <double>s.heads * size * max(1, s.width, s.columns) >= 2147483648.0:
        return TF_EUNSUPPORTED       # places of results are counted with 32 bits, and so are work groups
    return TF_OK


cdef int put_aux(Job *s, object memory, uint64_t nbytes) noexcept:
    s.aux, s.aux_bytes = <uint64_t>memory.block, nbytes
    return put_table(&s.table, TABLE_MODULE, s.aux, s.where, s.call)


cdef void shape_words(tf_launch *l, const Job *s) noexcept nogil:
    """The words of all bodies that compute scores."""
    cdef int o
    word(l, s.queries)
    word(l, s.keys)
    word(l, s.width)
    word(l, s.columns)
    number_word(l, s.scale, s.doubled)
    for o in range(OUT):
        word(l, s.row[o])
    for o in range(OUT):
        word(l, s.step[o])


cdef void read_scores(tf_launch *l, const Job *s) noexcept nogil:
    """Operands q k v mask."""
    read(l, s.x[Q])
    read(l, s.x[K])
    read(l, s.x[V])
    if s.x[MASK] != NULL:
        read(l, s.x[MASK])
    else:
        number(l, 0)


cdef bint quads(const Job *s, int o, int64_t columns) noexcept nogil:
    """Whether rows of an operand are dense, begin at multiples of four elements and lie behind its first element."""
    cdef int d
    cdef bint fits = columns % 4 == 0 and (s.step[o] == 1 or columns == 0) and s.row[o] >= 0 and s.row[o] % 4 == 0
    for d in range(3 + <int>s.table.word[0], s.table.n):
        fits = fits and (not within(s, o, d) or s.table.word[d] >= 0 and s.table.word[d] % 4 == 0)
    return fits and address_of(s.x[o]) % (4 * tf_itemsize[s.dtype]) == 0


cdef inline bint within(const Job *s, int o, int d) noexcept nogil:
    """Whether word d of the table is a stride of operand o."""
    cdef int64_t n = s.table.word[0]
    return 3 + n * (1 + o) <= d < 3 + n * (2 + o) or d == 3 + 8 * n + o


cdef int64_t columns_of(int64_t width) noexcept nogil:
    """Vec4s of a row that an invocation of a tile keeps; eight of them have one row."""
    return 4 if width > 64 else 2 if width > 32 else 1


cdef int forward_tiles(Job *s, tf_view *const *outputs) noexcept:
    """Tiles of 64 queries."""
    cdef tf_launch l
    cdef int64_t columns = columns_of(s.columns)
    begin(&l, TILE, s.call)
    write(&l, outputs[0])
    write(&l, outputs[1])
    read_scores(&l, s)
    bytes_of(&l, s.aux, s.aux_bytes, False)
    shape_words(&l, s)
    constant(&l, 0, s.dtype)
    constant(&l, 1, s.mask)
    constant(&l, 2, s.causal)
    constant(&l, 3, quads(s, Q, s.width) and quads(s, K, s.width) and quads(s, V, s.columns)
             and address_of(outputs[0]) % (4 * tf_itemsize[s.dtype]) == 0)
    constant(&l, 4, columns)
    spread(&l, s.heads * ((s.queries + 63) // 64) * max(<int64_t>1, (s.columns + 32 * columns - 1) // (32 * columns)))
    return launch(&l, s.where, s.call)


cdef int attention(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call) noexcept with gil:
    """(q, k, v, mask? -> out, log of the sum of exp)"""
    cdef Job s
    cdef tf_launch l
    cdef object memory
    cdef int rc
    s.where, s.call = inputs[0], call
    rc = set_up(&s, inputs[0], inputs[1], inputs[2], inputs[3], NULL, NULL, NULL, at)
    if rc != TF_OK or outputs[1].size == 0:
        return rc
    try:
        memory = scratch(s.where, 4 * HEAD)
    except BaseException as error:
        return failed(s.where, call, error)
    rc = put_aux(&s, memory, 4 * HEAD)
    if rc != TF_OK:
        return rc
    if not s.doubled and s.queries >= FEW and s.width > 0 and s.heads * ((s.queries + 63) // 64) >= FEWEST:
        return forward_tiles(&s, outputs)
    begin(&l, ROW[s.doubled], call)
    write(&l, outputs[0])
    write(&l, outputs[1])
    read_scores(&l, &s)
    bytes_of(&l, s.aux, s.aux_bytes, False)
    shape_words(&l, &s)
    constant(&l, 0, s.dtype)
    constant(&l, 1, s.mask)
    constant(&l, 2, s.causal)
    spread(&l, s.heads * s.queries * slices(s.columns))
    return launch(&l, s.where, call)


# ---- gradients

cdef int deltas(Job *s) noexcept:
    """What each row of queries needs, into aux."""
    cdef tf_launch l
    cdef int64_t lines = s.heads * s.queries
    begin(&l, DELTA[s.doubled], s.call)
    bytes_of(&l, s.aux, s.aux_bytes, True)
    read(&l, s.x[G])
    read(&l, s.x[OUT])
    read(&l, s.x[LSE])
    word(&l, s.queries)
    word(&l, s.columns)
    word(&l, lines)
    word(&l, s.row[G])
    word(&l, s.row[OUT])
    word(&l, s.row[LSE])
    word(&l, s.step[G])
    word(&l, s.step[OUT])
    constant(&l, 0, s.dtype)
    spread(&l, (lines + 3) // 4)
    return launch(&l, s.where, s.call)


cdef int side(Job *s, int which, tf_view *one, tf_view *two) noexcept:
    """0: the gradient of q; 1: those of k and v."""
    cdef tf_launch l
    cdef int64_t rows_of = s.queries if which == 0 else s.keys, heads = s.heads if which == 0 else s.heads // s.group
    cdef int64_t widest = s.width if which == 0 else max(s.width, s.columns), columns
    cdef int64_t tiles = heads * ((rows_of + 63) // 64)
    if one.size == 0 and (two == NULL or two.size == 0):
        return TF_OK
    if not s.doubled and rows_of >= FEW and s.width > 0 and tiles >= FEWEST:
        columns = columns_of(widest)
        begin(&l, GRAD_TILE, s.call)
        constant(&l, 4, quads(s, Q, s.width) and quads(s, K, s.width) and quads(s, V, s.columns)
                 and quads(s, G, s.columns) and address_of(one) % (4 * tf_itemsize[s.dtype]) == 0
                 and (two == NULL or address_of(two) % (4 * tf_itemsize[s.dtype]) == 0))
        constant(&l, 5, columns)
        spread(&l, tiles * max(<int64_t>1, (widest + 32 * columns - 1) // (32 * columns)))
    else:
        begin(&l, GRAD_ROW[s.doubled], s.call)
        spread(&l, heads * rows_of * slices(widest))
    write(&l, one)
    if two != NULL:
        write(&l, two)
    else:
        number(&l, 0)
    read(&l, s.x[G])
    read_scores(&l, s)
    bytes_of(&l, s.aux, s.aux_bytes, False)
    shape_words(&l, s)
    constant(&l, 0, s.dtype)
    constant(&l, 1, s.mask)
    constant(&l, 2, s.causal)
    constant(&l, 3, which)
    return launch(&l, s.where, s.call)


cdef int attention_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                        const tf_attrs *at, tf_call *call) noexcept with gil:
    """(g, q, k, v, mask?, out, log of the sum -> gq, gk, gv)"""
    cdef Job s
    cdef object memory
    cdef uint64_t nbytes
    cdef int rc
    s.where, s.call = inputs[0], call
    rc = set_up(&s, inputs[1], inputs[2], inputs[3], inputs[4], inputs[0], inputs[5], inputs[6], at)
    if rc != TF_OK or outputs[0].size + outputs[1].size + outputs[2].size == 0:
        return rc
    nbytes = 4 * HEAD + (8 if s.doubled else 4) * <uint64_t>(2 * s.heads * s.queries)
    try:
        memory = scratch(s.where, nbytes)
    except BaseException as error:
        return failed(s.where, call, error)
    rc = put_aux(&s, memory, nbytes)
    if rc == TF_OK and s.heads * s.queries > 0:
        rc = deltas(&s)
    if rc == TF_OK:
        rc = side(&s, 0, outputs[0], NULL)
    if rc == TF_OK:
        rc = side(&s, 1, outputs[1], outputs[2])
    return rc


KERNELS = {"attention": kernel_capsule(attention), "attention_grad": kernel_capsule(attention_grad)}
