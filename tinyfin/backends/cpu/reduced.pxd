"""A reduction's axes: which stay, which go, and where an element of a result's row lies.

The reduced elements of one result are numbered in row-major order of the reduced axes.
"""
from libc.stdint cimport INT64_MIN, int64_t, uint8_t

from tinyfin.backends.cpu.lines cimport Axes, gather_run, offset, push
from tinyfin.core.abi cimport *
from tinyfin.core.layout cimport mask_of


ctypedef void (*convert_fn)(void *y, const void *x, int64_t n) noexcept nogil
ctypedef void (*pair_fn)(void *y, const void *a, const void *b, int64_t n) noexcept nogil
ctypedef void (*block_rows_fn)(void *y, const void *x, int64_t stride, int64_t rows,
                               int64_t n) noexcept nogil
ctypedef void (*rows_fn)(void *lanes, int64_t w, const void *x, int64_t stride, int64_t first,
                         int64_t n) noexcept nogil
ctypedef void (*fold_fn)(void *lanes, int64_t w, int64_t used) noexcept nogil
ctypedef int64_t (*best_fn)(const void *x, int64_t n) noexcept nogil
ctypedef int64_t (*find_fn)(const void *x, int64_t n, int64_t key) noexcept nogil
ctypedef void (*lift_fn)(void *best, void *where, const void *keys, int64_t i,
                         int64_t n) noexcept nogil

cdef extern from "reduce_loops.h" nogil:
    enum:
        TF_BLOCK, TF_SUM_LANES, TF_NUMERIC
        TF_LANE_SUM, TF_LANE_PROD
        TF_ACC_F32, TF_ACC_F64, TF_ACC_I64
        TF_KEY_MAX, TF_KEY_MIN, TF_KEY_ANY, TF_KEY_ALL

    ctypedef struct tf_reduce_table:
        convert_fn load[3][10]
        convert_fn store[10]
        convert_fn block[2][3]
        pair_fn dot[2]
        pair_fn block_squares[2]
        block_rows_fn block_rows[2][3]
        rows_fn rows[2][3]
        fold_fn fold[2][3]
        pair_fn square[2]
        best_fn best[4][10]
        find_fn find[4][10]
        convert_fn keys[4][10]
        convert_fn value[4][10]
        convert_fn lifted "raise"[4][10]
        lift_fn lift[2]


cdef struct Reduced:
    Axes kept, gone     # operand 0 is x
    int64_t outs, n     # results; elements of each
    const char *x
    int item


cdef inline unsigned int mask_of_one(const tf_view *x, int64_t dim) noexcept nogil:
    """The same for one axis, or INT64_MIN for all."""
    if dim == INT64_MIN or x.ndim == 0:
        return (1 << x.ndim) - 1
    return 1 << (dim + x.ndim if dim < 0 else dim)


cdef inline void reduced(Reduced *r, const tf_view *x, unsigned int mask) noexcept nogil:
    """Splits the axes of x by the mask."""
    cdef int k
    r.kept.nd = r.gone.nd = 0
    r.outs = r.n = 1
    for k in range(x.ndim):
        if mask >> k & 1:
            r.n *= x.shape[k]
            push(&r.gone, x.shape[k], x.strides[k], 0, 0)
        else:
            r.outs *= x.shape[k]
            push(&r.kept, x.shape[k], x.strides[k], 0, 0)
    r.x, r.item = x.data, tf_itemsize[x.dtype]


cdef inline bint side_by_side(const Reduced *r) noexcept nogil:
    """Whether walking results beside one another is better than walking each result's row.

    It is where they lie closer in memory than a row's elements, and for many short rows.
    """
    cdef int64_t across, along
    if r.kept.nd == 0 or r.gone.nd == 0:
        return False
    if r.n <= 8 and r.kept.shape[r.kept.nd - 1] >= 32:
        return True
    across, along = r.kept.s[0][r.kept.nd - 1], r.gone.s[0][r.gone.nd - 1]
    if across < 0:
        across = -across
    if along < 0:
        along = -along
    return across < along and r.kept.shape[r.kept.nd - 1] >= 8


cdef inline void join_blocks(const tf_reduce_table *loops, int op, int acc, char *values, int64_t n,
                             int64_t size) noexcept nogil:
    """The value of a row from those of its n blocks, level by level, in place of the first."""
    cdef int64_t b, count
    while n > 1:
        count = (n + TF_BLOCK - 1) // TF_BLOCK
        for b in range(count):
            loops.block[op][acc](values + b * size, values + b * TF_BLOCK * size,
                                 min(<int64_t>TF_BLOCK, n - b * TF_BLOCK))
        n = count


cdef inline bint is_slow(const Reduced *r) noexcept nogil:
    """Whether neither a row's elements nor results beside one another lie side by side in memory."""
    cdef const Axes *a = &r.kept if side_by_side(r) else &r.gone
    return a.nd > 0 and a.s[0][a.nd - 1] != 1


cdef inline const char *row_block(const Reduced *r, int64_t base, int64_t first, int64_t n,
                                  char *buffer) noexcept nogil:
    """n elements of a row from element `first`, side by side: in place, or gathered into the
    buffer."""
    if r.gone.nd == 0:
        return r.x + base * r.item
    if r.gone.nd == 1 and r.gone.s[0][0] == 1:
        return r.x + (base + first) * r.item
    gather_run(buffer, r.x + base * r.item, &r.gone, first, n, r.item)
    return buffer
