"""Rows of strided tensors as dense rows, or columns of tiles, of the computing type."""
from libc.stdint cimport int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.lines cimport Axes, offset, push
from tinyfin.backends.cpu.norm_loops cimport TF_TILE, tf_norm_loops
from tinyfin.core.abi cimport *

cdef enum:
    GRAIN = 1 << 14     # elements of one task
    SHORT = 24          # rows below this are computed 16 at a time, as columns of a tile
    GROUP = 64          # rows that are loaded into tiles together


cdef struct Operand:
    # one tensor of a walk: its first element, and how to read or write it
    char *data
    int dtype, item
    bint direct      # dense rows of the computing type: no copy is needed


cdef inline int compute_type(int dtype) noexcept nogil:
    """0 for float arithmetic, 1 for double."""
    return 1 if dtype == TF_F64 else 0


cdef inline Operand operand(const tf_view *v, bint dense, int wide) noexcept nogil:
    """`dense`: rows lie side by side; `wide`: compute_type of the call."""
    cdef Operand o
    o.data, o.dtype, o.item = v.data, v.dtype, tf_itemsize[v.dtype]
    o.direct = dense and v.dtype == (TF_F64 if wide else TF_F32)
    return o


cdef inline int64_t run_length(const Axes *a, int64_t place, int64_t stop) noexcept nogil:
    """How many places from `place` on, up to `stop`, step along the last axis alone."""
    cdef int64_t run
    if a.nd == 0:
        return 1
    run = a.shape[a.nd - 1] - place % a.shape[a.nd - 1]
    return run if run < stop - place else stop - place


cdef inline int64_t last_step(const Axes *a, int k) noexcept nogil:
    """Elements from one place to the next along the last axis."""
    return a.s[k][a.nd - 1] if a.nd else 0


cdef inline void gather(const tf_norm_loops *loops, const Operand *x, int64_t base,
                        const Axes *along, int k, int64_t first, int64_t n, int size,
                        char *to) noexcept nogil:
    """Elements first .. first + n of a row, in row-major order of its axes, to dense numbers."""
    cdef int64_t done = 0, run
    while done < n:
        run = run_length(along, first + done, first + n)
        loops.load[x.dtype](to + done * size,
                            x.data + (base + offset(along, k, first + done)) * x.item,
                            run, last_step(along, k))
        done += run


cdef inline void scatter(const tf_norm_loops *loops, const Operand *y, int64_t base,
                         const Axes *along, int k, int64_t first, int64_t n, int size,
                         const char *src) noexcept nogil:
    """The way back."""
    cdef int64_t done = 0, run
    while done < n:
        run = run_length(along, first + done, first + n)
        loops.store[y.dtype](y.data + (base + offset(along, k, first + done)) * y.item,
                             src + done * size, run, last_step(along, k))
        done += run


cdef inline const char *dense_numbers(const tf_norm_loops *loops, const tf_view *v, int wide,
                                      char *buffer) noexcept nogil:
    """All elements of a small tensor as dense numbers of the computing type; NULL if absent."""
    cdef Operand o
    cdef Axes axes
    cdef int k
    if v.flags & TF_ABSENT:
        return NULL
    o = operand(v, (v.flags & TF_CONTIGUOUS) != 0, wide)
    if o.direct:
        return v.data
    axes.nd = 0
    for k in range(v.ndim):
        push(&axes, v.shape[k], v.strides[k], 0, 0)
    gather(loops, &o, 0, &axes, 0, 0, v.size, 8 if wide else 4, buffer)
    return buffer


cdef struct Lines:
    # rows along one axis of up to three tensors that are walked together
    const tf_norm_loops *loops
    Axes rows
    Operand ops[3]
    int64_t step[3]     # along the axis
    int64_t n, count    # length of a row, rows
    int size            # bytes of a number of the computing type


cdef inline bint by_columns(const Lines *s, int operands) noexcept nogil:
    """Whether tiles serve better than rows: rows are neither dense nor one number, or short."""
    cdef int k
    for k in range(operands):
        if s.n > 1 and s.step[k] != 1 and s.step[k] != 0:
            return True
    return s.n < SHORT and s.count >= 4


cdef inline int64_t tile_bytes(const Lines *s) noexcept nogil:
    return s.n * TF_TILE * s.size


cdef inline int group_of(const Lines *s) noexcept nogil:
    """Rows that are loaded together; long ones would not stay in cache."""
    return GROUP if s.n <= 4096 else TF_TILE


cdef inline void load_columns(const Lines *s, int k, int64_t row, int cols,
                              char *to) noexcept nogil:
    """Rows row .. row + cols of operand k as columns of tiles."""
    cdef int64_t run, tile = tile_bytes(s)
    cdef int c = 0, limit = cols
    cdef const Operand *o = &s.ops[k]
    if cols % TF_TILE:
        memset(to + cols // TF_TILE * tile, 0, tile)
    while c < cols:
        run = run_length(&s.rows, row + c, row + cols)
        if c or run < cols:                       # pieces stay within one tile
            limit = min(cols, (c // TF_TILE + 1) * TF_TILE)
        run = min(run, limit - c)
        s.loops.load_tile[o.dtype](to + c // TF_TILE * tile + c % TF_TILE * s.size,
                                   o.data + offset(&s.rows, k, row + c) * o.item, s.n, <int>run,
                                   s.step[k], last_step(&s.rows, k))
        c += <int>run


cdef inline void store_columns(const Lines *s, int k, int64_t row, int cols,
                               const char *src) noexcept nogil:
    """The way back."""
    cdef int64_t run, tile = tile_bytes(s)
    cdef int c = 0, limit = cols
    cdef const Operand *o = &s.ops[k]
    while c < cols:
        run = run_length(&s.rows, row + c, row + cols)
        if c or run < cols:
            limit = min(cols, (c // TF_TILE + 1) * TF_TILE)
        run = min(run, limit - c)
        s.loops.store_tile[o.dtype](o.data + offset(&s.rows, k, row + c) * o.item,
                                    src + c // TF_TILE * tile + c % TF_TILE * s.size, s.n, <int>run,
                                    s.step[k], last_step(&s.rows, k))
        c += <int>run
