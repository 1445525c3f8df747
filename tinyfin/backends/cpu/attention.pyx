"""Scaled dot-product attention, tile by tile: no buffer of queries x keys, backward neither.

q is (..., heads, queries, width), k and v (..., heads of keys, keys, width); any strides. The order
of operations stands in attention_loops.h; it depends on neither threads nor instruction set.
"""
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport INT64_MIN, int64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.attention_loops cimport *
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, offset, push, span
from tinyfin.backends.cpu.norm_loops cimport tf_norm_loops, tf_norm_table
from tinyfin.backends.cpu.rows cimport Operand, compute_type, dense_numbers, operand
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef const tf_attention_table *TABLE = <const tf_attention_table *>isa_table(b"attention")
cdef const tf_norm_table *MOVES = <const tf_norm_table *>isa_table(b"norm")


cdef struct Matrix:
    # a stack of matrices of which one is used at a time
    Operand o
    int64_t row, column     # strides
    int64_t group           # stride between query heads that share a key head
    int64_t width, padded   # columns; the same, rounded up to 16


cdef struct Job:
    const tf_attention_loops *loops
    const tf_norm_loops *moves
    Axes heads              # batch and key heads: q, k, v
    Axes more               # the same: mask, g, out
    Matrix q, k, v, mask, g, out
    int64_t queries, keys, group, blocks
    int size
    bint masked, chosen, causal
    double scale
    tf_view *y              # forward: out, log of the sum; backward: gradients of q, k, v
    tf_view *gk
    tf_view *gv
    char *lse
    size_t refused


cdef void set_matrix(Matrix *m, const tf_view *v, int wide) noexcept nogil:
    """Strides of the last two axes; axes of size one are broadcast."""
    cdef int last = v.ndim - 1
    m.row = v.strides[last - 1] if v.shape[last - 1] != 1 else 0
    m.column = v.strides[last] if v.shape[last] != 1 else 0
    m.width = v.shape[last]
    m.padded = (m.width + 15) // 16 * 16
    m.group = 0
    m.o = operand(v, m.padded == m.width and v.strides[last] == 1, wide)


cdef int64_t stride_at(const tf_view *v, int from_end) noexcept nogil:
    """Stride of an axis counted from the end; 0 where v is broadcast."""
    cdef int k = v.ndim - from_end
    return v.strides[k] if k >= 0 and v.shape[k] != 1 else 0


cdef void set_up(Job *s, const tf_view *q, const tf_view *k, const tf_view *v, const tf_view *mask,
                 const tf_view *g, const tf_view *out, const tf_attrs *at, int wide) noexcept nogil:
    cdef int i, e
    cdef int64_t size, group = 1
    s.loops, s.moves, s.size, s.refused = &TABLE.of[wide], &MOVES.of[wide], 8 if wide else 4, 0
    s.queries, s.keys = q.shape[q.ndim - 2], k.shape[k.ndim - 2]
    set_matrix(&s.q, q, wide)
    set_matrix(&s.k, k, wide)
    set_matrix(&s.v, v, wide)
    set_matrix(&s.g, g, wide)
    set_matrix(&s.out, out, wide)
    s.masked, s.causal = not mask.flags & TF_ABSENT, at.i[0] != 0
    s.chosen = s.masked and mask.dtype == TF_BOOL
    s.mask.row = s.mask.column = s.mask.group = 0
    if s.masked:
        s.mask.row, s.mask.column = stride_at(mask, 2), stride_at(mask, 1)
        s.mask.o = operand(mask, False, wide)
    s.scale = at.f[0] if at.i[1] else 1.0 / sqrt(<double>s.q.width)
    s.heads.nd = s.more.nd = 0
    for i in range(q.ndim - 2):
        e = q.ndim - i
        size, group = k.shape[i], 1
        if e == 3 and size:
            group = q.shape[i] // size
            s.q.group, s.g.group, s.out.group = q.strides[i], g.strides[i], out.strides[i]
            s.mask.group = stride_at(mask, 3) if s.masked else 0
        push(&s.heads, size, q.strides[i] * group, k.strides[i], v.strides[i])
        push(&s.more, size, stride_at(mask, e) * group if s.masked else 0, g.strides[i] * group,
             out.strides[i] * group)
    s.group, s.blocks = group, (s.queries + TF_QUERIES - 1) // TF_QUERIES


cdef const char *fetch(Job *s, const Matrix *m, int64_t base, int64_t first, int64_t rows,
                       int64_t *ld, char *buffer) noexcept nogil:
    """Rows of a matrix, padded to 16 columns; in place where they lie there."""
    cdef int64_t r, step = m.padded * s.size
    if m.o.direct:
        ld[0] = m.row
        return m.o.data + (base + first * m.row) * s.size
    ld[0] = m.padded
    for r in range(rows):
        s.moves.load[m.o.dtype](buffer + r * step,
                                m.o.data + (base + (first + r) * m.row) * m.o.item,
                                m.width, m.column)
        memset(buffer + r * step + m.width * s.size, 0, (m.padded - m.width) * s.size)
    return buffer


cdef void fetch_mask(Job *s, int64_t base, int64_t query, int64_t queries, int64_t key,
                     int64_t keys, char *buffer) noexcept nogil:
    """The mask's numbers as a tile of keys x queries."""
    cdef int64_t j
    for j in range(keys):
        s.moves.load[s.mask.o.dtype](
            buffer + j * TF_QUERIES * s.size,
            s.mask.o.data + (base + query * s.mask.row + (key + j) * s.mask.column) * s.mask.o.item,
            queries, s.mask.row)


cdef inline void fill(Job *s, char *to, double value, int64_t n) noexcept nogil:
    s.moves.fill(to, value, n)


cdef inline int64_t key_stop(const Job *s, int64_t query, int64_t queries) noexcept nogil:
    """Keys beyond this are hidden from every query of the block."""
    return min(s.keys, query + queries) if s.causal else s.keys


cdef void start_tile(Job *s, tf_attend *a, int64_t query, int64_t queries) noexcept nogil:
    a.scale, a.chosen, a.queries = s.scale, s.chosen, <int>((queries + 15) // 16 * 16)
    a.mask = NULL


cdef void scores(Job *s, tf_attend *a, int64_t more, int64_t query, int64_t queries, int64_t key,
                 const char *k, int64_t ldk, const char *qt, char *mask) noexcept nogil:
    """Products of one block of keys with the queries, and the mask's tile."""
    a.keys = <int>min(s.keys - key, TF_KEYS)
    a.diagonal = key - query if s.causal else INT64_MIN // 2
    fill(s, <char *>a.s, 0.0, a.keys * TF_QUERIES)
    s.loops.chain(a.s, TF_QUERIES, k, ldk, 1, qt, TF_QUERIES, a.keys, a.queries, s.k.width)
    if s.masked:
        fetch_mask(s, more, query, queries, key, a.keys, mask)
        a.mask = mask


cdef void forward_task(int64_t task, void *ctx) noexcept nogil:
    """One block of queries of one head."""
    cdef Job *s = <Job *>ctx
    cdef int64_t block = task % s.blocks, head = task // s.blocks, sub = head % s.group
    cdef int64_t place = head // s.group, query = block * TF_QUERIES
    cdef int64_t queries = min(s.queries - query, TF_QUERIES), tile = TF_KEYS * TF_QUERIES * s.size
    cdef int64_t bq = offset(&s.heads, 0, place) + sub * s.q.group, bk = offset(&s.heads, 1, place)
    cdef int64_t bv = offset(&s.heads, 2, place)
    cdef int64_t bm = offset(&s.more, 0, place) + sub * s.mask.group
    cdef int64_t key, ld, ldv, r, width = TF_QUERIES * s.size
    cdef size_t bytes = 2 * tile + width * (2 * s.q.padded + s.k.padded + 2 * s.v.padded + 4)
    cdef char *tiles = <char *>scratch_push(bytes)
    cdef char *qt = tiles + 2 * tile
    cdef char *rows = qt + width * s.q.padded
    cdef char *krows = rows + width * s.q.padded
    cdef char *vrows = krows + width * s.k.padded
    cdef char *acc = vrows + width * s.v.padded
    cdef const char *k
    cdef const char *v
    cdef tf_attend a
    if tiles == NULL:
        s.refused = bytes
        return
    if s.masked:                            # columns beyond the last query hold numbers, not noise
        memset(tiles + tile, 0, tile)
    a.s, a.m = tiles, acc + width * s.v.padded
    a.l, a.alpha = <char *>a.m + width, <char *>a.m + 2 * width
    start_tile(s, &a, query, queries)
    k = fetch(s, &s.q, bq, query, queries, &ld, rows)
    s.loops.transpose(qt, k, ld, queries, s.q.width, a.queries)
    fill(s, acc, 0.0, TF_QUERIES * s.v.padded)
    fill(s, <char *>a.m, -INFINITY, TF_QUERIES)
    fill(s, <char *>a.l, 0.0, TF_QUERIES)
    key = 0
    while key < key_stop(s, query, queries):
        k = fetch(s, &s.k, bk, key, min(s.keys - key, TF_KEYS), &ld, krows)
        v = fetch(s, &s.v, bv, key, min(s.keys - key, TF_KEYS), &ldv, vrows)
        scores(s, &a, bm, query, queries, key, k, ld, qt, tiles + tile)
        s.loops.forward(&a)
        s.loops.scale_rows(acc, s.v.padded, a.alpha, queries, s.v.padded)
        s.loops.chain(acc, s.v.padded, a.s, 1, TF_QUERIES, v, ldv, queries, s.v.padded, a.keys)
        key += TF_KEYS
    s.loops.finish(acc, s.v.padded, a.m, a.l, s.lse + (head * s.queries + query) * s.size, queries,
                   s.v.padded)
    for r in range(queries):
        s.moves.store[s.y.dtype](
            s.y.data + (head * s.queries + query + r) * s.v.width * tf_itemsize[s.y.dtype],
            acc + r * s.v.padded * s.size, s.v.width, 1)
    scratch_pop(bytes)


cdef int attention(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call) noexcept nogil:
    """(q, k, v, mask? -> out, log of the sum of exp)"""
    cdef Job s
    cdef int64_t heads
    set_up(&s, inputs[0], inputs[1], inputs[2], inputs[3], inputs[0], inputs[0], at,
           compute_type(outputs[0].dtype))
    heads = span(&s.heads) * s.group
    s.y, s.lse = outputs[0], outputs[1].data
    if outputs[1].size == 0:
        return TF_OK
    parallel_for(heads * s.blocks,
                 heads * s.queries * s.keys * (0.05 * (s.q.width + s.v.width) + 2.0),
                 forward_task, &s)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


# ---- gradients

cdef struct Work:
    # buffers of one task
    char *tiles     # s, dp, mask
    char *qt
    char *gt
    char *q
    char *g
    char *k
    char *v
    char *out
    char *gq
    char *gk
    char *gv
    char *lse       # of the block's queries, then delta


cdef void query_block(Job *s, Work *w, int64_t place, int64_t sub, int64_t block) noexcept nogil:
    """Adds what one block of queries gives to the gradients of the keys and values."""
    cdef int64_t head = place * s.group + sub, query = block * TF_QUERIES
    cdef int64_t queries = min(s.queries - query, TF_QUERIES), key, ldq, ldg, ldk, ldv, ldo, r
    cdef int64_t bk = offset(&s.heads, 1, place), bv = offset(&s.heads, 2, place)
    cdef int64_t bm = offset(&s.more, 0, place) + sub * s.mask.group
    cdef int64_t tile = TF_KEYS * TF_QUERIES * s.size
    cdef int64_t bq = offset(&s.heads, 0, place) + sub * s.q.group
    cdef int64_t bg = offset(&s.more, 1, place) + sub * s.g.group
    cdef int64_t bo = offset(&s.more, 2, place) + sub * s.out.group
    cdef const char *q = fetch(s, &s.q, bq, query, queries, &ldq, w.q)
    cdef const char *g = fetch(s, &s.g, bg, query, queries, &ldg, w.g)
    cdef const char *o = fetch(s, &s.out, bo, query, queries, &ldo, w.out)
    cdef const char *k
    cdef const char *v
    cdef tf_attend a
    a.s, a.dp, a.lse, a.delta = w.tiles, w.tiles + tile, w.lse, w.lse + TF_QUERIES * s.size
    start_tile(s, &a, query, queries)
    s.loops.transpose(w.qt, q, ldq, queries, s.q.width, a.queries)
    s.loops.transpose(w.gt, g, ldg, queries, s.v.width, a.queries)
    fill(s, w.lse, INFINITY, TF_QUERIES)
    fill(s, w.lse + TF_QUERIES * s.size, 0.0, TF_QUERIES)
    memcpy(w.lse, s.lse + (head * s.queries + query) * s.size, queries * s.size)
    s.loops.dots(w.lse + TF_QUERIES * s.size, g, ldg, o, ldo, queries, s.v.width)
    fill(s, w.gq, 0.0, TF_QUERIES * s.q.padded)
    key = 0
    while key < key_stop(s, query, queries):
        k = fetch(s, &s.k, bk, key, min(s.keys - key, TF_KEYS), &ldk, w.k)
        v = fetch(s, &s.v, bv, key, min(s.keys - key, TF_KEYS), &ldv, w.v)
        scores(s, &a, bm, query, queries, key, k, ldk, w.qt, w.tiles + 2 * tile)
        fill(s, <char *>a.dp, 0.0, a.keys * TF_QUERIES)
        s.loops.chain(a.dp, TF_QUERIES, v, ldv, 1, w.gt, TF_QUERIES, a.keys, a.queries, s.v.width)
        s.loops.backward(&a)
        s.loops.chain(w.gq, s.q.padded, a.dp, 1, TF_QUERIES, k, ldk, queries, s.q.padded, a.keys)
        s.loops.chain(w.gk + key * s.k.padded * s.size, s.k.padded, a.dp, TF_QUERIES, 1, q, ldq,
                      a.keys, s.k.padded, queries)
        s.loops.chain(w.gv + key * s.v.padded * s.size, s.v.padded, a.s, TF_QUERIES, 1, g, ldg,
                      a.keys, s.v.padded, queries)
        key += TF_KEYS
    for r in range(queries):
        s.moves.store[s.y.dtype](
            s.y.data + (head * s.queries + query + r) * s.q.width * tf_itemsize[s.y.dtype],
            w.gq + r * s.q.padded * s.size, s.q.width, 1)


cdef void store_rows(Job *s, tf_view *y, const Matrix *m, int64_t place,
                     const char *src) noexcept nogil:
    cdef int64_t r
    for r in range(s.keys):
        s.moves.store[y.dtype](y.data + (place * s.keys + r) * m.width * tf_itemsize[y.dtype],
                               src + r * m.padded * s.size, m.width, 1)


cdef void backward_task(int64_t place, void *ctx) noexcept nogil:
    """All queries that see one head of keys, in rising order."""
    cdef Job *s = <Job *>ctx
    cdef int64_t tile = TF_KEYS * TF_QUERIES * s.size, row = TF_QUERIES * s.size, sub, block
    cdef size_t bytes = 3 * tile + row * (4 * s.q.padded + 5 * s.v.padded + 2) + \
        s.keys * (s.k.padded + s.v.padded) * s.size
    cdef Work w
    w.tiles = <char *>scratch_push(bytes)
    if w.tiles == NULL:
        s.refused = bytes
        return
    if s.masked:
        memset(w.tiles + 2 * tile, 0, tile)
    w.qt = w.tiles + 3 * tile
    w.q = w.qt + row * s.q.padded
    w.k = w.q + row * s.q.padded
    w.gq = w.k + row * s.q.padded
    w.gt = w.gq + row * s.q.padded
    w.g = w.gt + row * s.v.padded
    w.v = w.g + row * s.v.padded
    w.out = w.v + row * s.v.padded
    w.lse = w.out + row * s.v.padded
    w.gk = w.lse + 2 * row
    w.gv = w.gk + s.keys * s.k.padded * s.size
    fill(s, w.gk, 0.0, s.keys * (s.k.padded + s.v.padded))
    for sub in range(s.group):
        for block in range(s.blocks):
            query_block(s, &w, place, sub, block)
    store_rows(s, s.gk, &s.k, place, w.gk)
    store_rows(s, s.gv, &s.v, place, w.gv)
    scratch_pop(bytes)


cdef int attention_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                        const tf_attrs *at, tf_call *call) noexcept nogil:
    """(g, q, k, v, mask?, out, log of the sum -> gq, gk, gv)"""
    cdef Job s
    cdef int wide = compute_type(outputs[0].dtype)
    cdef size_t bytes = inputs[6].size * 8
    cdef char *buffer = <char *>scratch_push(bytes)
    cdef int64_t places
    if buffer == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    set_up(&s, inputs[1], inputs[2], inputs[3], inputs[4], inputs[0], inputs[5], at, wide)
    s.y, s.gk, s.gv = outputs[0], outputs[1], outputs[2]
    s.lse = <char *>dense_numbers(s.moves, inputs[6], wide, buffer)
    places = span(&s.heads) if outputs[1].size or outputs[2].size or outputs[0].size else 0
    parallel_for(places,
                 places * s.group * s.queries * s.keys * (0.13 * (s.q.width + s.v.width) + 3.0),
                 backward_task, &s)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


KERNELS = {"attention": kernel_capsule(attention), "attention_grad": kernel_capsule(attention_grad)}
