"""Sums, products, means and variances over any axes, in the canonical order (docs/design:
numerics).

Inputs have any strides, results are row-major. A row that lies along memory is summed block by
block; results that lie side by side are summed together, 64 lanes for each; other rows are gathered
first. All roads add the same numbers in the same order. Halves are widened to float32, integers to
int64.
"""
from libc.math cimport NAN, sqrt, sqrtf
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.copy cimport NO_ROOM, lies_across, straightened
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport copy_items, fill_items, offset
from tinyfin.backends.cpu.reduced cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    SUM, PROD, MEAN, VAR, STD, COUNT, SQUARES   # what a row asks of this family
    SHORT = 32                             # blocks of a row that one task sums alone
    TASK = 1 << 15                         # elements of a task of many small results
    WHOLE_BYTES = 1 << 14                  # columns of a task where rows follow one another
    CUT = 128                              # columns of a task where they do not

cdef const tf_reduce_table *LOOPS = <const tf_reduce_table *>isa_table(b"reduce")
cdef int ACC_SIZE[3]
ACC_SIZE[TF_ACC_F32], ACC_SIZE[TF_ACC_F64], ACC_SIZE[TF_ACC_I64] = 4, 8, 8


cdef struct Lanes:
    Reduced r
    int what, op, acc, size                # the row, lane operation, accumulator and its bytes
    int xd, yd
    bint native, truth, narrow             # read in place; read as 0 or 1; round to yd first
    char *y
    char *partial                          # sums of blocks, where a result has several tasks
    char *means                            # one per result, for the second pass of a variance
    bint first_pass                        # of a variance by two passes over memory
    double correction
    int64_t blocks, group, cut, cuts, outer
    const char *source                     # partial sums as the columns of the next level
    int64_t count                          # how many rows of them
    bint failed


cdef inline int64_t block_len(const Lanes *s, int64_t b) noexcept nogil:
    return min(<int64_t>TF_BLOCK, s.r.n - b * TF_BLOCK)


cdef const char *widened(const Lanes *s, const char *p, int64_t n, char *spare,
                         char *wide) noexcept nogil:
    """n neighbouring elements as accumulators; `spare` may hold them on entry."""
    if s.native:
        return p
    if s.truth:
        if s.xd == TF_I64 or s.xd == TF_F64:
            LOOPS.keys[TF_KEY_ANY][s.xd](wide, p, n)
        else:
            LOOPS.keys[TF_KEY_ANY][s.xd](spare + 8 * TF_BLOCK, p, n)
            LOOPS.load[TF_ACC_I64][TF_I32](wide, spare + 8 * TF_BLOCK, n)
        return wide
    LOOPS.load[s.acc][s.xd](wide, p, n)
    if s.narrow:
        LOOPS.store[s.yd](spare, wide, n)
        LOOPS.load[s.acc][s.yd](wide, spare, n)
    return wide


cdef void row_block_value(const Lanes *s, int64_t base, int64_t b, const char *mean,
                          char *value) noexcept nogil:
    """The canonical value of block b of a row, or of its squared distances from the mean."""
    cdef char spare[12 * TF_BLOCK]
    cdef char wide[8 * TF_BLOCK]
    cdef int64_t n = block_len(s, b)
    cdef const char *p = row_block(&s.r, base, b * TF_BLOCK, n, spare)
    p = widened(s, p, n, spare, wide)
    if mean != NULL:
        LOOPS.block_squares[s.acc](value, p, mean, n)
    else:
        LOOPS.block[s.op][s.acc](value, p, n)


cdef void row_block_values(const Lanes *s, int64_t base, int64_t b, int64_t count, const char *mean,
                           char *values) noexcept nogil:
    """The same of blocks b .. b + count - 1: whole ones that lie in place one after the other, without coming
    back for each, which costs a fifth of the memory's speed."""
    cdef int64_t end = b + count, whole
    if s.native and mean == NULL and s.r.gone.nd == 1 and s.r.gone.s[0][0] == 1:
        whole = max(<int64_t>0, min(count, s.r.n // TF_BLOCK - b))
        LOOPS.block_rows[s.op][s.acc](values, s.r.x + (base + b * TF_BLOCK) * s.size, TF_BLOCK, whole, TF_BLOCK)
        b += whole
        values += whole * s.size
    while b < end:
        row_block_value(s, base, b, mean, values)
        b += 1
        values += s.size


cdef void row_value(const Lanes *s, int64_t base, const char *mean, char *value) noexcept nogil:
    """The canonical value of a row of at most SHORT blocks."""
    cdef char sums[8 * SHORT]
    if s.blocks == 1:
        row_block_value(s, base, 0, mean, value)
        return
    row_block_values(s, base, 0, s.blocks, mean, sums)
    LOOPS.block[s.op][s.acc](value, sums, s.blocks)


cdef void divide(const Lanes *s, char *v, int64_t n, double by) noexcept nogil:
    cdef int64_t i
    if s.acc == TF_ACC_F32:
        for i in range(n):
            (<float *>v)[i] /= <float>by
    else:
        for i in range(n):
            (<double *>v)[i] /= by


cdef void root(const Lanes *s, char *v, int64_t n) noexcept nogil:
    cdef int64_t i
    if s.acc == TF_ACC_F32:
        for i in range(n):
            (<float *>v)[i] = sqrtf((<float *>v)[i])
    else:
        for i in range(n):
            (<double *>v)[i] = sqrt((<double *>v)[i])


cdef void finish(const Lanes *s, int64_t o, int64_t n, char *v) noexcept nogil:
    """Results o .. o + n - 1 from the values of their rows."""
    if s.first_pass:
        divide(s, v, n, <double>s.r.n)
        memcpy(s.means + o * s.size, v, n * s.size)
        return
    if s.what == MEAN:
        divide(s, v, n, <double>s.r.n)
    elif s.what == VAR or s.what == STD:
        divide(s, v, n, max(<double>s.r.n - s.correction, 0.0))
        if s.what == STD:
            root(s, v, n)
    LOOPS.store[s.yd](s.y + o * tf_itemsize[s.yd], v, n)


# ---- a result's row at a time

cdef void rows_in_place(const Lanes *s, int64_t o, int64_t end) noexcept nogil:
    """Rows of one block each that lie along memory, run by run of the last kept axis."""
    cdef char values[8 * 256]
    cdef int64_t last = s.r.kept.shape[s.r.kept.nd - 1], run
    while o < end:
        run = min(min(<int64_t>256, end - o), last - o % last)
        LOOPS.block_rows[s.op][s.acc](values, s.r.x + offset(&s.r.kept, 0, o) * s.size,
                                      s.r.kept.s[0][s.r.kept.nd - 1], run, s.r.n)
        finish(s, o, run, values)
        o += run


cdef bint rows_follow(const Lanes *s) noexcept nogil:
    """Rows of one block each that lie one after the other, so that several can be widened together."""
    cdef const Axes *kept = &s.r.kept
    return (not s.native and s.blocks == 1 and s.what <= MEAN and 1 < s.r.n <= TF_BLOCK // 2
            and s.r.gone.nd == 1 and s.r.gone.s[0][0] == 1 and kept.nd == 1 and kept.s[0][0] == s.r.n)


cdef void rows_widened(const Lanes *s, int64_t o, int64_t end) noexcept nogil:
    cdef char spare[12 * TF_BLOCK]
    cdef char wide[8 * TF_BLOCK]
    cdef char values[4 * TF_BLOCK]      # n > 1
    cdef int64_t n = s.r.n, run
    while o < end:
        run = min(end - o, TF_BLOCK // n)
        LOOPS.block_rows[s.op][s.acc](values, widened(s, s.r.x + o * n * s.r.item, run * n, spare, wide), n, run, n)
        finish(s, o, run, values)
        o += run


cdef void short_rows(int64_t t, void *ctx) noexcept nogil:
    cdef const Lanes *s = <const Lanes *>ctx
    cdef int64_t o, base, end = min(s.r.outs, (t + 1) * s.group)
    cdef double value, mean, zero = 0
    if (s.native and s.blocks == 1 and s.r.gone.nd == 1 and s.r.gone.s[0][0] == 1
        and s.r.kept.nd and
            s.what <= MEAN):
        rows_in_place(s, t * s.group, end)
        return
    if rows_follow(s):
        rows_widened(s, t * s.group, end)
        return
    for o in range(t * s.group, end):
        base = offset(&s.r.kept, 0, o)
        row_value(s, base, <const char *>&zero if s.what == SQUARES else NULL, <char *>&value)
        if s.what == VAR or s.what == STD:
            mean = value
            divide(s, <char *>&mean, 1, <double>s.r.n)
            row_value(s, base, <char *>&mean, <char *>&value)
        finish(s, o, 1, <char *>&value)


cdef void long_row_blocks(int64_t t, void *ctx) noexcept nogil:
    """Some blocks of all rows; unit u is block u % blocks of row u // blocks."""
    cdef const Lanes *s = <const Lanes *>ctx
    cdef int64_t u = t * s.group, o, count, end = min(s.r.outs * s.blocks, (t + 1) * s.group)
    cdef const char *mean
    while u < end:
        o = u // s.blocks
        count = min(end - u, s.blocks - u % s.blocks)
        mean = s.means + o * s.size if s.means != NULL and not s.first_pass else NULL
        row_block_values(s, offset(&s.r.kept, 0, o), u % s.blocks, count, mean, s.partial + u * s.size)
        u += count


cdef void join_rows(const Lanes *s) noexcept nogil:
    """Values of rows from values of their blocks."""
    cdef int64_t o
    cdef char *p
    for o in range(s.r.outs):
        p = s.partial + o * s.blocks * s.size
        join_blocks(LOOPS, s.op, s.acc, p, s.blocks, s.size)
        finish(s, o, 1, p)


cdef void pass_over_rows(Lanes *s) noexcept nogil:
    cdef double cost = 0.15 * <double>s.r.n * <double>s.r.outs + 20.0 * <double>s.r.outs
    cdef int64_t units
    if s.r.gone.nd > 1 or not s.native:
        cost *= 4
    if s.blocks <= SHORT:
        s.group = max(<int64_t>1, TASK // s.r.n)
        parallel_for((s.r.outs + s.group - 1) // s.group, cost, short_rows, s)
        return
    s.group, units = TASK // TF_BLOCK, s.r.outs * s.blocks
    parallel_for((units + s.group - 1) // s.group, cost, long_row_blocks, s)
    join_rows(s)


# ---- results side by side

cdef void add_rows(const Lanes *s, char *lanes, int64_t w, int64_t base, int64_t o, int64_t first,
                   int64_t n) noexcept nogil:
    """Rows first .. first + n - 1 of a block that begins at a multiple of TF_BLOCK: w columns
    each."""
    cdef const Axes *g = &s.r.gone
    cdef int64_t across = s.r.kept.s[0][s.r.kept.nd - 1], along = g.s[0][g.nd - 1]
    cdef int64_t inner = g.shape[g.nd - 1], e = first, run, i
    cdef const char *p
    cdef bint plain = s.native and across == 1 and (s.means == NULL or s.first_pass)
    while e < first + n:
        run = min(first + n - e, inner - e % inner)
        p = s.r.x + (base + offset(g, 0, e)) * s.r.item
        if plain:
            LOOPS.rows[s.op][s.acc](lanes, w, p, along, e % TF_BLOCK, run)
        else:
            for i in range(run):
                add_one_row(s, lanes, w, p + i * along * s.r.item, across, o, (e + i) % TF_BLOCK)
        e += run


cdef void add_one_row(const Lanes *s, char *lanes, int64_t w, const char *p, int64_t across,
                      int64_t o,
                      int64_t i) noexcept nogil:
    """The same for one row that must be gathered, widened or squared; at most TF_BLOCK columns at a
    time."""
    cdef char spare[12 * TF_BLOCK]
    cdef char wide[8 * TF_BLOCK]
    cdef const char *q
    if across != 1:
        copy_items(spare, 1, p, across, w, s.r.item)
        p = spare
    q = widened(s, p, w, spare, wide)
    if s.means != NULL and not s.first_pass:
        LOOPS.square[s.acc](wide, q, s.means + o * s.size, w)
        q = wide
    LOOPS.rows[s.op][s.acc](lanes, w, q, w, i, 1)


cdef void columns(int64_t t, void *ctx) noexcept nogil:
    """Unit u is a block of a cut of the last kept axis at a place of the others."""
    cdef Lanes *s = <Lanes *>ctx
    cdef int64_t last = s.r.kept.shape[s.r.kept.nd - 1], units = s.outer * s.cuts * s.blocks
    cdef int64_t u, b, c, o, w
    cdef size_t bytes = TF_SUM_LANES * s.cut * s.size
    cdef char *lanes = <char *>scratch_push(bytes)
    if lanes == NULL:
        s.failed = True
        return
    for u in range(t * s.group, min(units, (t + 1) * s.group)):
        b, c = u % s.blocks, u // s.blocks % s.cuts
        o = u // s.blocks // s.cuts * last + c * s.cut
        w = min(s.cut, last - c * s.cut)
        add_rows(s, lanes, w, offset(&s.r.kept, 0, o), o, b * TF_BLOCK, block_len(s, b))
        LOOPS.fold[s.op][s.acc](lanes, w, min(<int64_t>TF_SUM_LANES, block_len(s, b)))
        if s.blocks == 1:
            finish(s, o, w, lanes)
        else:
            memcpy(s.partial + (b * s.r.outs + o) * s.size, lanes, w * s.size)
    scratch_pop(bytes)


cdef void join_columns(int64_t t, void *ctx) noexcept nogil:
    """All levels of the sums of blocks, for one cut of the results; a level overwrites what it has
    read."""
    cdef Lanes *s = <Lanes *>ctx
    cdef int64_t outs = s.r.outs, o = t * CUT, w = min(<int64_t>CUT,
                                                       outs - o), n = s.blocks, b, count, m
    cdef size_t bytes = TF_SUM_LANES * CUT * s.size
    cdef char *lanes = <char *>scratch_push(bytes)
    if lanes == NULL:
        s.failed = True
        return
    while n > 1:
        count = (n + TF_BLOCK - 1) // TF_BLOCK
        for b in range(count):
            m = min(<int64_t>TF_BLOCK, n - b * TF_BLOCK)
            LOOPS.rows[s.op][s.acc](lanes, w, s.partial + (b * TF_BLOCK * outs + o) * s.size, outs,
                                    0, m)
            LOOPS.fold[s.op][s.acc](lanes, w, min(<int64_t>TF_SUM_LANES, m))
            memcpy(s.partial + (b * outs + o) * s.size, lanes, w * s.size)
        n = count
    finish(s, o, w, s.partial + o * s.size)
    scratch_pop(bytes)


cdef void pass_over_columns(Lanes *s) noexcept nogil:
    cdef int64_t last = s.r.kept.shape[s.r.kept.nd - 1], most = CUT, units
    cdef double cost = 0.25 * <double>s.r.n * <double>s.r.outs
    if s.r.gone.s[0][s.r.gone.nd - 1] == last and s.r.kept.s[0][s.r.kept.nd - 1] == 1:
        most = min(<int64_t>TF_BLOCK if not s.native or s.means != NULL else WHOLE_BYTES // s.size,
                   <int64_t>(WHOLE_BYTES // s.size))
    s.outer = s.r.outs // last
    s.cuts = (last + most - 1) // most
    s.cut = ((last + s.cuts - 1) // s.cuts + 15) // 16 * 16
    s.cuts = (last + s.cut - 1) // s.cut
    units = s.outer * s.cuts * s.blocks
    s.group = max(<int64_t>1, TASK // (s.cut * min(s.r.n, <int64_t>TF_BLOCK)))
    parallel_for((units + s.group - 1) // s.group, cost, columns, s)
    if s.blocks > 1 and not s.failed:
        parallel_for((s.r.outs + CUT - 1) // CUT, 0.25 * <double>s.blocks * <double>s.r.outs,
                     join_columns, s)


# ---- the kernel

cdef void fill_empty(Lanes *s) noexcept nogil:
    """Results of no elements: 0, 1 or NaN."""
    cdef char value[8]
    cdef char one[8]
    cdef double v = 0.0 if s.what == SUM or s.what == COUNT or s.what == SQUARES else (1.0 if s.what == PROD else NAN)
    LOOPS.load[s.acc][TF_F64](value, &v, 1)
    LOOPS.store[s.yd](one, value, 1)
    fill_items(s.y, 1, one, s.r.outs, tf_itemsize[s.yd])


cdef void one_pass(Lanes *s, bint beside) noexcept nogil:
    if beside:
        pass_over_columns(s)
    else:
        pass_over_rows(s)


cdef int run_passes(Lanes *s, tf_call *call) noexcept nogil:
    """One pass over memory, or two for variances whose rows are long or lie side by side."""
    cdef bint beside = side_by_side(&s.r), two
    cdef int64_t partial = s.r.outs * s.blocks * s.size if s.blocks > (1 if beside
                                                                       else SHORT) else 0
    cdef int64_t means
    cdef char *scratch = NULL
    two = (s.what == VAR or s.what == STD) and (beside or s.blocks > SHORT)
    means = s.r.outs * s.size if two or s.what == SQUARES and (beside or s.blocks > SHORT) else 0
    if partial + means:
        scratch = <char *>scratch_push(partial + means)
        if scratch == NULL:
            call.detail[0] = partial + means
            return TF_ENOMEM
        s.partial = scratch
        s.means = scratch + partial if means else NULL
        if s.what == SQUARES:
            memset(scratch + partial, 0, means)     # squared distances from zero
    if two:
        s.first_pass = True
        one_pass(s, beside)
        s.first_pass = False
    if not s.failed:
        one_pass(s, beside)
    if scratch != NULL:
        scratch_pop(partial + means)
    call.detail[0] = TF_SUM_LANES * s.cut * s.size
    return TF_ENOMEM if s.failed else TF_OK


cdef int reduce_lanes(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at,
                      tf_call *call) noexcept nogil:
    cdef int rc
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef Lanes s
    s.what = <int><size_t>call.ctx
    if (s.what == SUM and x.dtype == TF_F32 and y.dtype == TF_F32 and y.size == 1 and
            x.flags & TF_CONTIGUOUS and 0 < x.size <= TF_BLOCK):
        LOOPS.block[TF_LANE_SUM][TF_ACC_F32](y.data, x.data, x.size)
        return TF_OK
    reduced(&s.r, x, mask_of(x, at.i))
    if is_slow(&s.r) and lies_across(x):
        rc = straightened(reduce_lanes, inputs, n, 0, outputs, at, call)
        if rc != NO_ROOM:
            return rc
    s.xd, s.yd, s.y = x.dtype, y.dtype, y.data
    s.acc = TF_ACC_F64 if s.yd == TF_F64 else (TF_ACC_F32 if s.yd >= TF_F16 else TF_ACC_I64)
    s.size, s.op = ACC_SIZE[s.acc], TF_LANE_PROD if s.what == PROD else TF_LANE_SUM
    s.truth = s.what == COUNT or s.yd == TF_BOOL
    s.native = not s.truth and s.xd == (TF_F32 if s.acc == TF_ACC_F32 else
                                        TF_F64 if s.acc == TF_ACC_F64 else TF_I64)
    s.narrow = (s.yd == TF_F16 or s.yd == TF_BF16) and s.xd != s.yd
    s.native = s.native and not s.narrow
    s.correction = at.f[0]
    s.partial = s.means = NULL
    s.first_pass = s.failed = False
    s.cut = 0
    s.blocks = (s.r.n + TF_BLOCK - 1) // TF_BLOCK
    if s.r.outs == 0:
        return TF_OK
    if s.r.n == 0:
        fill_empty(&s)
        return TF_OK
    return run_passes(&s, call)


KERNELS = {
    "reduce_sum": (kernel_capsule(reduce_lanes), SUM),
    "reduce_prod": (kernel_capsule(reduce_lanes), PROD),
    "reduce_mean": (kernel_capsule(reduce_lanes), MEAN),
    "reduce_var": (kernel_capsule(reduce_lanes), VAR),
    "reduce_std": (kernel_capsule(reduce_lanes), STD),
    "reduce_count_nonzero": (kernel_capsule(reduce_lanes), COUNT),
    "reduce_sum_of_squares": (kernel_capsule(reduce_lanes), SQUARES),
}
