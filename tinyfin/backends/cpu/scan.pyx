"""Running sums, products, extrema and linear recurrences along one axis.

Inputs have any strides, results are row-major. A line is computed in rising order, one element
after the other, in float32 for halves and int64 for integers; lines are independent, so they are
what is split. Lines along memory go four at a time (four chains hide the latency of one), others
side by side.
"""
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, bits, copy_items, offsets, push
from tinyfin.backends.cpu.reduced cimport (
    TF_ACC_F32, TF_ACC_F64, TF_ACC_I64, TF_KEY_MAX, TF_KEY_MIN, tf_reduce_table)
from tinyfin.backends.cpu.threads cimport parallel_for
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

ctypedef fused number:
    float
    double
    uint64_t            # integers wrap around

cdef enum:
    SUM, PROD, LINEAR, MAX, MIN
    PART = 512          # elements of a line or columns of a row in hand at a time
    CUT = 128           # columns of a task
    TASK = 1 << 15      # elements of a task

cdef const tf_reduce_table *LOOPS = <const tf_reduce_table *>isa_table(b"reduce")


cdef struct Scan:
    Axes a              # the other axes: x, y, a of the recurrence
    const char *x
    const char *f       # factors of the recurrence, or NULL
    char *y
    int64_t *where      # second result of MAX and MIN
    int what, xd, yd, fd, acc
    int64_t n, lines, xs, ys, fs, group, cuts
    bint xplain, fplain, yplain     # of the accumulator's type and without gaps along the line


cdef void step(int what, number *c, const number *x, const number *f, int64_t n) noexcept nogil:
    """The next element of n lines."""
    cdef int64_t i
    if what == SUM:
        for i in range(n):
            c[i] += x[i]
    elif what == PROD:
        for i in range(n):
            c[i] *= x[i]
    else:
        for i in range(n):
            c[i] = f[i] * c[i] + x[i]


cdef void walk_four(int what, number **y, const number **x, const number **f, number *carry,
                    int64_t n) noexcept nogil:
    """n elements of four lines."""
    cdef number c0 = carry[0], c1 = carry[1], c2 = carry[2], c3 = carry[3]
    cdef number *y0 = y[0]
    cdef number *y1 = y[1]
    cdef number *y2 = y[2]
    cdef number *y3 = y[3]
    cdef const number *x0 = x[0]
    cdef const number *x1 = x[1]
    cdef const number *x2 = x[2]
    cdef const number *x3 = x[3]
    cdef int64_t i
    if what == SUM:
        for i in range(n):
            c0 += x0[i]
            c1 += x1[i]
            c2 += x2[i]
            c3 += x3[i]
            y0[i], y1[i], y2[i], y3[i] = c0, c1, c2, c3
    elif what == PROD:
        for i in range(n):
            c0 *= x0[i]
            c1 *= x1[i]
            c2 *= x2[i]
            c3 *= x3[i]
            y0[i], y1[i], y2[i], y3[i] = c0, c1, c2, c3
    else:
        for i in range(n):
            c0 = f[0][i] * c0 + x0[i]
            c1 = f[1][i] * c1 + x1[i]
            c2 = f[2][i] * c2 + x2[i]
            c3 = f[3][i] * c3 + x3[i]
            y0[i], y1[i], y2[i], y3[i] = c0, c1, c2, c3
    carry[0], carry[1], carry[2], carry[3] = c0, c1, c2, c3


cdef void walk_lines(number *unit, const Scan *s, int64_t first, int count) noexcept nogil:
    """Up to four lines along memory, part by part; `unit` says the type and what a line begins
    with."""
    cdef number xs[4][PART]
    cdef number fs[4][PART]
    cdef number ys[4][PART]
    cdef const number *x[4]
    cdef const number *f[4]
    cdef number *y[4]
    cdef number carry[4]
    cdef int64_t raw[PART]
    cdef int64_t off[4][3]
    cdef int64_t at = 0, n
    cdef int k, yi = tf_itemsize[s.yd]
    for k in range(4):
        carry[k] = unit[0]
        offsets(&s.a, first + min(k, count - 1), off[k])   # lines past the last repeat it, unstored
    while at < s.n:
        n = 1 if at == 0 and s.what == LINEAR else min(<int64_t>PART, s.n - at)
        for k in range(4):
            x[k] = <const number *>part(s, s.x, s.xd, off[k][0], s.xs, at, n, s.xplain, raw, xs[k])
            f[k] = <const number *>part(s, s.f, s.fd, off[k][2], s.fs, at, n, s.fplain, raw, fs[k])
            y[k] = <number *>(s.y + (off[k][1] + at) * yi) if s.yplain and k < count else ys[k]
        walk_four(SUM if at == 0 and s.what == LINEAR else s.what, y,   # a recurrence begins with x
                  x, f, carry, n)
        for k in range(count):
            if not s.yplain:
                LOOPS.store[s.yd](s.y + (off[k][1] + at) * yi, ys[k], n)
        at += n


cdef const void *part(const Scan *s, const char *x, int dtype, int64_t base, int64_t step,
                      int64_t at,
                      int64_t n, bint plain, void *raw, void *wide) noexcept nogil:
    """Elements at .. at + n - 1 of a line as accumulators."""
    cdef int item = tf_itemsize[dtype]
    cdef const char *p
    if x == NULL:
        return NULL
    p = x + (base + at * step) * item
    if plain:
        return p
    if step != 1:
        copy_items(<char *>raw, 1, p, step, n, item)
        p = <const char *>raw
    LOOPS.load[s.acc][dtype](wide, p, n)
    return wide


cdef void line_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Scan *s = <const Scan *>ctx
    cdef int64_t at = t * s.group, end = min(s.lines, (t + 1) * s.group)
    cdef int count
    cdef float f32 = unit_of(s.what)
    cdef double f64 = unit_of(s.what)
    cdef uint64_t i64 = s.what == PROD
    while at < end:
        count = <int>min(<int64_t>4, end - at)
        if s.acc == TF_ACC_F32:
            walk_lines(&f32, s, at, count)
        elif s.acc == TF_ACC_F64:
            walk_lines(&f64, s, at, count)
        else:
            walk_lines(&i64, s, at, count)
        at += 4


cdef inline double unit_of(int what) noexcept nogil:
    """The exact identity, so that a line's first result is its first element."""
    return 1.0 if what == PROD else -0.0


cdef void columns(number *unit, const Scan *s, int64_t place, int64_t w) noexcept nogil:
    """w lines side by side, from a place of the other axes on."""
    cdef number c[CUT]
    cdef number xs[CUT]
    cdef number fs[CUT]
    cdef int64_t raw[CUT]
    cdef int64_t off[3]
    cdef int64_t i, xa = s.a.s[0][s.a.nd - 1], fa = s.a.s[2][s.a.nd - 1]
    cdef const number *x
    cdef const number *f
    offsets(&s.a, place, off)
    for i in range(w):
        c[i] = unit[0]
    for i in range(s.n):
        x = <const number *>part(s, s.x, s.xd, off[0] + i * s.xs, xa, 0, w, s.xplain, raw, xs)
        f = <const number *>part(s, s.f, s.fd, off[2] + i * s.fs, fa, 0, w, s.fplain, raw, fs)
        step(SUM if i == 0 and s.what == LINEAR else s.what, c, x, f, w)
        LOOPS.store[s.yd](s.y + (off[1] + i * s.ys) * tf_itemsize[s.yd], c, w)


cdef void column_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Scan *s = <const Scan *>ctx
    cdef int64_t last = s.a.shape[s.a.nd - 1], u, at
    cdef float f32 = unit_of(s.what)
    cdef double f64 = unit_of(s.what)
    cdef uint64_t i64 = s.what == PROD
    for u in range(t * s.group, min(s.lines // last * s.cuts, (t + 1) * s.group)):
        at = u % s.cuts * CUT
        if s.acc == TF_ACC_F32:
            columns(&f32, s, u // s.cuts * last + at, min(<int64_t>CUT, last - at))
        elif s.acc == TF_ACC_F64:
            columns(&f64, s, u // s.cuts * last + at, min(<int64_t>CUT, last - at))
        else:
            columns(&i64, s, u // s.cuts * last + at, min(<int64_t>CUT, last - at))


# ---- running extrema

cdef void take(bits *y, int64_t ys, const bits *x, int64_t xs, const int64_t *where, int64_t step,
               int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        y[i * ys] = x[where[i * step] * xs]


cdef void extremum_line(const Scan *s, int64_t line) noexcept nogil:
    """Greatest key so far; the last of equal ones counts, as in PyTorch. Values are then copied by
    place."""
    cdef int64_t keys[PART]
    cdef int64_t raw[PART]
    cdef int64_t off[3]
    cdef int64_t at = 0, n, i, best = INT64_MIN, where = 0, k
    cdef int item = tf_itemsize[s.xd], kind = TF_KEY_MAX if s.what == MAX else TF_KEY_MIN
    cdef bint wide = s.xd == TF_I64 or s.xd == TF_F64
    cdef const char *p
    cdef int64_t *w
    cdef char *y
    offsets(&s.a, line, off)
    w, y = s.where + off[1], s.y + off[1] * item
    while at < s.n:
        n = min(<int64_t>PART, s.n - at)
        copy_items(<char *>raw, 1, s.x + (off[0] + at * s.xs) * item, s.xs, n, item)
        LOOPS.keys[kind][s.xd](keys, raw, n)
        for i in range(n):
            k = keys[i] if wide else (<int32_t *>keys)[i]
            if k >= best:
                best, where = k, at + i
            w[(at + i) * s.ys] = where
        at += n
    p = s.x + off[0] * item
    if item == 4:
        take(<uint32_t *>y, s.ys, <const uint32_t *>p, s.xs, w, s.ys, s.n)
    elif item == 8:
        take(<uint64_t *>y, s.ys, <const uint64_t *>p, s.xs, w, s.ys, s.n)
    elif item == 2:
        take(<uint16_t *>y, s.ys, <const uint16_t *>p, s.xs, w, s.ys, s.n)
    else:
        take(<uint8_t *>y, s.ys, <const uint8_t *>p, s.xs, w, s.ys, s.n)


cdef void extremum_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Scan *s = <const Scan *>ctx
    cdef int64_t line
    for line in range(t * s.group, min(s.lines, (t + 1) * s.group)):
        extremum_line(s, line)


# ---- the kernel

cdef void describe(Scan *s, const tf_view *x, const tf_view *f, const tf_view *y,
                   int dim) noexcept nogil:
    cdef int k
    cdef int native
    s.acc = TF_ACC_F64 if y.dtype == TF_F64 else (TF_ACC_F32 if y.dtype >= TF_F16 else TF_ACC_I64)
    native = TF_F64 if s.acc == TF_ACC_F64 else (TF_F32 if s.acc == TF_ACC_F32 else TF_I64)
    s.a.nd, s.lines, s.n = 0, 1, x.shape[dim] if x.ndim else 1
    for k in range(x.ndim):
        if k != dim:
            s.lines *= x.shape[k]
            push(&s.a, x.shape[k], x.strides[k], y.strides[k], f.strides[k] if f != NULL else 0)
    s.xs = x.strides[dim] if x.ndim else 1
    s.ys = y.strides[dim] if x.ndim else 1
    s.fs = f.strides[dim] if f != NULL and x.ndim else 1
    s.x, s.y, s.f = x.data, y.data, f.data if f != NULL else NULL
    s.xd, s.yd, s.fd = x.dtype, y.dtype, f.dtype if f != NULL else y.dtype
    s.xplain, s.fplain, s.yplain = s.xd == native, s.fd == native, s.yd == native


cdef int scan(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
              tf_call *call) noexcept nogil:
    cdef const tf_view *x = inputs[n - 1]
    cdef Scan s
    cdef bint beside
    cdef double cost
    s.what = <int><size_t>call.ctx
    describe(&s, x, inputs[0] if s.what == LINEAR else NULL, outputs[0], <int>at.i[0])
    if x.size == 0:
        return TF_OK
    cost = 0.25 * <double>x.size
    s.group = max(<int64_t>4, TASK // s.n // 4 * 4)
    if s.what >= MAX:
        s.where = <int64_t *>outputs[1].data
        parallel_for((s.lines + s.group - 1) // s.group, 8 * cost, extremum_task, &s)
        return TF_OK
    beside = s.a.nd > 0 and s.a.s[1][s.a.nd - 1] == 1 and s.ys != 1
    if beside:
        s.xplain = s.xplain and s.a.s[0][s.a.nd - 1] == 1
        s.fplain = s.fplain and s.a.s[2][s.a.nd - 1] == 1
        s.cuts = (s.a.shape[s.a.nd - 1] + CUT - 1) // CUT
        s.group = max(<int64_t>1, TASK // (s.n * min(<int64_t>CUT, s.a.shape[s.a.nd - 1])))
        n = <int>((s.lines // s.a.shape[s.a.nd - 1] * s.cuts + s.group - 1) // s.group)
        parallel_for(n, cost, column_task, &s)
    else:
        s.xplain = s.xplain and s.xs == 1
        s.fplain = s.fplain and s.fs == 1
        parallel_for((s.lines + s.group - 1) // s.group, cost, line_task, &s)
    return TF_OK


KERNELS = {
    "cumsum": (kernel_capsule(scan), SUM),
    "cumprod": (kernel_capsule(scan), PROD),
    "linear_scan": (kernel_capsule(scan), LINEAR),
    "cummax": (kernel_capsule(scan), MAX),
    "cummin": (kernel_capsule(scan), MIN),
}
