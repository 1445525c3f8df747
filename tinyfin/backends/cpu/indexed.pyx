"""Indices (int64 or int32, any strides) in runs of at most RUN, range checks, and writes at
offsets.

Additions happen in rising order of the calls and within a run. float16 and bfloat16 are added in
float32 and rounded once, when the target is closed; integers wrap around, bool is or.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from tinyfin.backends.cpu.cast_loops cimport tf_cast_table
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport (
    Axes, bits, copy_items, gather_run, offset, push)
from tinyfin.backends.cpu.reduced cimport TF_ACC_F32, TF_ACC_F64, TF_ACC_I64, tf_reduce_table
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *

cdef enum:
    PART = 1 << 15      # indices that one task checks

cdef const tf_cast_table *MOVES = <const tf_cast_table *>isa_table(b"cast")
cdef const tf_reduce_table *CONVERT = <const tf_reduce_table *>isa_table(b"reduce")


cdef const int64_t *index_run(const tf_view *index, int64_t place, int64_t step, int64_t n,
                              int64_t *buffer) noexcept nogil:
    """n indices, `step` elements apart, from the element offset `place` on; in place where they can
    be."""
    cdef const int32_t *narrow
    cdef const int64_t *wide
    cdef int64_t i
    if index.dtype == TF_I32:
        narrow = <const int32_t *>index.data + place
        for i in range(n):
            buffer[i] = narrow[i * step]
        return buffer
    wide = <const int64_t *>index.data + place
    if step == 1:
        return wide
    for i in range(n):
        buffer[i] = wide[i * step]
    return buffer


cdef struct Check:
    const tf_view *index
    Axes a
    int64_t low, high
    int64_t *wrong          # per task: place of the first index out of range, or -1
    bint direct


cdef int64_t index_at(const Check *c, int64_t place) noexcept nogil:
    """One index by its place in row-major order."""
    cdef int64_t off = offset(&c.a, 0, place)
    if c.index.dtype == TF_I32:
        return (<const int32_t *>c.index.data)[off]
    return (<const int64_t *>c.index.data)[off]


cdef int64_t first_outside(const int64_t *index, int64_t n, int64_t low, int64_t high) noexcept nogil:
    """Place of the first index that is not in low .. high - 1, or n."""
    cdef int64_t i
    for i in range(0, n, 256):
        if MOVES.outside(index + i, min(256, n - i), low, high):
            while low <= index[i] < high:
                i += 1
            return i
    return n


cdef void check_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Check *c = <const Check *>ctx
    cdef int64_t raw[RUN]
    cdef int64_t wide[RUN]
    cdef tf_view run
    cdef int64_t at = t * PART, end = min(c.index.size, (t + 1) * PART), n, bad
    cdef const int64_t *p
    run.dtype, run.data = c.index.dtype, <char *>raw
    c.wrong[t] = -1
    while at < end:
        n = min(<int64_t>RUN, end - at)
        if c.direct:
            p = <const int64_t *>c.index.data + at
        else:
            gather_run(<char *>raw, c.index.data, &c.a, at, n, tf_itemsize[c.index.dtype])
            p = index_run(&run, 0, 1, n, wide)
        bad = first_outside(p, n, c.low, c.high)
        if bad < n:
            c.wrong[t] = at + bad
            return
        at += n


cdef int check_index(const tf_view *index, int64_t low, int64_t high, int dim,
                     tf_call *call) noexcept nogil:
    """TF_EINDEX where an index is not in low .. high - 1; the first such is named."""
    cdef Check c
    cdef int64_t parts = (index.size + PART - 1) // PART, t
    cdef int64_t one
    cdef int k, rc = TF_OK
    c.index, c.low, c.high, c.a.nd = index, low, high, 0
    c.direct = index.dtype == TF_I64 and index.flags & TF_CONTIGUOUS
    for k in range(index.ndim):
        push(&c.a, index.shape[k], index.strides[k], 0, 0)
    c.wrong = &one if parts <= 1 else <int64_t *>scratch_push(8 * parts)
    if c.wrong == NULL:
        call.detail[0] = 8 * parts
        return TF_ENOMEM
    parallel_for(parts, 0.7 * <double>index.size, check_task, &c)
    for t in range(parts):
        if c.wrong[t] >= 0:
            call.detail[0], call.detail[1], call.detail[2] = index_at(&c, c.wrong[t]), high, dim
            rc = TF_EINDEX
            break
    if parts > 1:
        scratch_pop(8 * parts)
    return rc


cdef void pick_typed(bits *y, int64_t ystep, const bits *x, const int64_t *at,
                     int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        y[i * ystep] = x[at[i]]


cdef void pick(char *y, int64_t ystep, const char *x, const int64_t *at, int64_t n,
               int item) noexcept nogil:
    """y[i] = x[at[i]]."""
    if item == 4:
        pick_typed(<uint32_t *>y, ystep, <const uint32_t *>x, at, n)
    elif item == 8:
        pick_typed(<uint64_t *>y, ystep, <const uint64_t *>x, at, n)
    elif item == 2:
        pick_typed(<uint16_t *>y, ystep, <const uint16_t *>x, at, n)
    else:
        pick_typed(<uint8_t *>y, ystep, <const uint8_t *>x, at, n)


cdef void place_typed(bits *y, const int64_t *at, const bits *v, int64_t vstep,
                      int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        y[at[i]] = v[i * vstep]


cdef void place_at(char *y, const int64_t *at, const char *v, int64_t vstep, int64_t n,
                   int item) noexcept nogil:
    """y[at[i]] = v[i], in rising order of i."""
    if item == 4:
        place_typed(<uint32_t *>y, at, <const uint32_t *>v, vstep, n)
    elif item == 8:
        place_typed(<uint64_t *>y, at, <const uint64_t *>v, vstep, n)
    elif item == 2:
        place_typed(<uint16_t *>y, at, <const uint16_t *>v, vstep, n)
    else:
        place_typed(<uint8_t *>y, at, <const uint8_t *>v, vstep, n)


# ---- adding

cdef int open_target(Target *t, tf_view *y, tf_call *call) noexcept nogil:
    t.y, t.dtype, t.result, t.bytes = y.data, y.dtype, y, 0
    t.acc = TF_ACC_F64 if y.dtype == TF_F64 else (TF_ACC_F32 if y.dtype >= TF_F16 else TF_ACC_I64)
    if y.dtype == TF_F16 or y.dtype == TF_BF16:
        t.bytes, t.dtype = y.size * sizeof(float), TF_F32
        t.y = <char *>scratch_push(t.bytes)
        if t.y == NULL:
            call.detail[0] = t.bytes
            return TF_ENOMEM
        CONVERT.load[TF_ACC_F32][y.dtype](t.y, y.data, y.size)
    return TF_OK


cdef void close_target(Target *t) noexcept nogil:
    if t.bytes:
        CONVERT.store[t.result.dtype](t.result.data, t.y, t.result.size)
        scratch_pop(t.bytes)


cdef const void *addends(const Target *t, const char *v, int64_t vstep, int dtype, double alpha,
                         int64_t n,
                         void *raw, void *wide) noexcept nogil:
    """n values as the target's accumulators, times alpha; raw and wide hold n of 8 bytes."""
    cdef int64_t i
    if vstep != 1:
        copy_items(<char *>raw, 1, v, vstep, n, tf_itemsize[dtype])
        v = <const char *>raw
    elif alpha == 1 and dtype == t.dtype and t.dtype >= TF_F32:
        return v
    CONVERT.load[t.acc][dtype](wide, v, n)
    if alpha == 1:
        return wide
    if t.acc == TF_ACC_F32:
        for i in range(n):
            (<float *>wide)[i] *= <float>alpha
    elif t.acc == TF_ACC_F64:
        for i in range(n):
            (<double *>wide)[i] *= alpha
    else:
        for i in range(n):
            (<uint64_t *>wide)[i] *= <uint64_t><int64_t>alpha
    return wide


ctypedef fused cell:
    float
    double
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef void add_cells(cell *y, const int64_t *at, int64_t first, int64_t ystep, const void *v,
                    int64_t n) noexcept nogil:
    """At offsets, or where there are none at first, first + ystep, ..."""
    cdef const float *f = <const float *>v
    cdef const double *d = <const double *>v
    cdef const uint64_t *u = <const uint64_t *>v
    cdef int64_t i
    if at != NULL:
        for i in range(n):
            if cell is float:
                y[at[i]] += f[i]
            elif cell is double:
                y[at[i]] += d[i]
            else:
                y[at[i]] += <cell>u[i]
    elif ystep == 1:
        y += first
        for i in range(n):
            if cell is float:
                y[i] += f[i]
            elif cell is double:
                y[i] += d[i]
            else:
                y[i] += <cell>u[i]
    else:
        for i in range(n):
            if cell is float:
                y[first + i * ystep] += f[i]
            elif cell is double:
                y[first + i * ystep] += d[i]
            else:
                y[first + i * ystep] += <cell>u[i]


cdef void add_bools(uint8_t *y, const int64_t *at, int64_t first, int64_t ystep, const int64_t *v,
                    int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if v[i]:
            y[at[i] if at != NULL else first + i * ystep] = 1


cdef void add(const Target *t, const int64_t *at, int64_t first, int64_t ystep, const void *v,
              int64_t n) noexcept nogil:
    if t.dtype == TF_F32:
        add_cells(<float *>t.y, at, first, ystep, v, n)
    elif t.dtype == TF_F64:
        add_cells(<double *>t.y, at, first, ystep, v, n)
    elif t.dtype == TF_I64:
        add_cells(<uint64_t *>t.y, at, first, ystep, v, n)
    elif t.dtype == TF_I32:
        add_cells(<uint32_t *>t.y, at, first, ystep, v, n)
    elif t.dtype == TF_I16:
        add_cells(<uint16_t *>t.y, at, first, ystep, v, n)
    elif t.dtype == TF_BOOL:
        add_bools(<uint8_t *>t.y, at, first, ystep, <const int64_t *>v, n)
    else:
        add_cells(<uint8_t *>t.y, at, first, ystep, v, n)


cdef void add_at(const Target *t, const int64_t *at, const void *v, int64_t n) noexcept nogil:
    """Accumulators to offsets, in rising order."""
    add(t, at, 0, 0, v, n)


cdef void add_run(const Target *t, int64_t at, int64_t ystep, const void *v,
                  int64_t n) noexcept nogil:
    """Accumulators to evenly spaced elements."""
    add(t, NULL, at, ystep, v, n)
