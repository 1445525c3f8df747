"""Means of windows, and their gradients, over one, two or three axes.

Missing axes come first, with size one. A window's elements are added in row-major order, an element's shares in rising
order of its windows. A task has 16 planes of the leading axes side by side; or one, where lines of many windows have
enough to do side by side, or planes are few. Any strides.
"""
from libc.stdint cimport INT64_MIN, int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.gemm_loops cimport tf_gemm_kind
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.pool_loops cimport *
from tinyfin.backends.cpu.pool_shape cimport *
from tinyfin.backends.cpu.spatial cimport *
from tinyfin.backends.cpu.threads cimport scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    KEPT_BYTES = 1 << 18     # of lines that a task keeps, where they are not too long
    LINE_BYTES = 1 << 22     # of the longest line of 16 planes
    MANY = 100               # windows of a line that are worth taking side by side
    FEW = 8                  # planes that are not
    FLUSHED = 64             # places of a result that are written together
    WORK = 1 << 14           # additions of a part of 16 large planes

cdef const tf_pool_table *TABLE = <const tf_pool_table *>isa_table(b"pool")


cdef struct Means:
    Pool q                            # first: tasks are given a pointer to it
    const tf_pool_tile *loops
    Planes *from_                     # the side that is read
    Planes *to
    bint grad
    int64_t *counts                   # of windows along the last axis
    int64_t *reach                    # what each place of a line of the result reads along it
    int64_t s0, s1                    # lines that are kept: those of a window, or as many as there is room for
    int64_t parts, part               # of the lines of the result, each with so many


cdef int64_t counted(const Pool *q, int a, int64_t o) noexcept nogil:
    """How many places along axis a count for the mean of window o."""
    cdef int64_t first, last, start
    if q.adaptive or not q.include_pad:
        window(q, a, o, &first, &last)
        return last - first
    start = o * q.stride[a] - q.pad[a]
    return min(start + q.kernel[a], q.x.size[a] + q.pad[a]) - start


cdef void counts_of(const Pool *q, int64_t *counts) noexcept nogil:
    """Along the last axis."""
    cdef int64_t o
    for o in range(q.y.size[2]):
        counts[o] = 1 if q.divisor != INT64_MIN else counted(q, 2, o)


cdef int64_t factor(const Pool *q, int64_t o0, int64_t o1) noexcept nogil:
    if q.divisor != INT64_MIN:
        return q.divisor
    return counted(q, 0, o0) * counted(q, 1, o1)


# ---- a plane alone

cdef void dense(const tf_gemm_kind *kind, const Planes *p, const char *x, char *to) noexcept nogil:
    """A plane as dense accumulators."""
    cdef int64_t i, j
    for i in range(p.size[0]):
        for j in range(p.size[1]):
            kind.widen(p.v.dtype, x + (i * p.step[0] + j * p.step[1]) * tf_itemsize[p.v.dtype],
                       p.step[2], p.size[2],
                       to + (i * p.size[1] + j) * p.size[2] * kind.itemsize)


cdef bint wide(const Pool *q) noexcept nogil:
    """Whether windows are wider than they are many, or not of one size: they are taken one by one."""
    return q.adaptive or q.kernel[2] > q.y.size[2]


cdef void sum_rows(const Means *s, char *x, int64_t o0, int64_t o1, char *line) noexcept nogil:
    """Sums of one output line's windows, or its shares onto elements of x. Copies are dense."""
    cdef const Pool *q = &s.q
    cdef tf_pool_line p
    cdef int64_t a0, a1, b0, b1, a, b, o, item = q.kind.itemsize
    cdef int64_t s0 = q.x.step[0], s1 = q.x.step[1]
    cdef char *at
    line_of(q, &p)
    if not own(q):
        s0, s1, p.step = q.x.size[1] * q.x.size[2], q.x.size[2], 1
    window(q, 0, o0, &a0, &a1)
    window(q, 1, o1, &b0, &b1)
    for a in range(a0, a1):
        for b in range(b0, b1):
            at = x + (a * s0 + b * s1) * item
            if not s.grad and wide(q):
                q.sum.wide(at, p.step, s.reach, q.y.size[2], line)
            elif not s.grad:
                q.sum.add(&p, at, line)
            elif not wide(q):
                q.sum.spread(&p, line, at)
            else:
                for o in range(q.y.size[2]):
                    one_window(q, o, &p)
                    q.sum.spread(&p, line + o * item, at)


cdef void mean_task(int64_t plane, void *ctx) noexcept nogil:
    cdef Means *s = <Means *>ctx
    cdef Pool *q = &s.q
    cdef const tf_gemm_kind *kind = q.kind
    cdef int64_t n = q.y.size[2], o0, o1, item = kind.itemsize, size = tf_itemsize[q.y.v.dtype]
    cdef size_t bytes = n * item + (0 if own(q) else volume(q.x.size) * item)
    cdef char *line = <char *>scratch_push(bytes)
    cdef char *x = plane_at(&q.x, plane)
    cdef char *y = result_at(&q.y, plane)
    if line == NULL:
        q.failed = NO_MEMORY
        return
    if not own(q):
        dense(kind, &q.x, x, line + n * item)
        x = line + n * item
    for o0 in range(q.y.size[0]):
        for o1 in range(q.y.size[1]):
            q.sum.begin(line, n)
            sum_rows(s, x, o0, o1, line)
            q.sum.divide(line, s.counts, factor(q, o0, o1), n)
            kind.narrow(q.y.v.dtype, line, n, y, 1)
            y += n * size
    scratch_pop(bytes)


cdef void share_task(int64_t plane, void *ctx) noexcept nogil:
    """The gradient: every element sums the shares of its windows, in rising order."""
    cdef Means *s = <Means *>ctx
    cdef Pool *q = &s.q
    cdef const tf_gemm_kind *kind = q.kind
    cdef int64_t n = q.y.size[2], o0, o1, item = kind.itemsize, area = volume(q.x.size)
    cdef size_t bytes = n * item + (0 if own(q) else area * item)
    cdef char *line = <char *>scratch_push(bytes)
    cdef char *x = result_at(&q.x, plane)
    cdef const char *g = plane_at(&q.y, plane)
    if line == NULL:
        q.failed = NO_MEMORY
        return
    if not own(q):
        x = line + n * item
    memset(x, 0, area * item)
    for o0 in range(q.y.size[0]):
        for o1 in range(q.y.size[1]):
            kind.widen(q.y.v.dtype, g + (o0 * q.y.step[0] + o1 * q.y.step[1])
                       * tf_itemsize[q.y.v.dtype], q.y.step[2], n,
                       line)
            q.sum.divide(line, s.counts, factor(q, o0, o1), n)
            sum_rows(s, x, o0, o1, line)
    if not own(q):
        kind.narrow(q.x.v.dtype, x, area, result_at(&q.x, plane), 1)
    scratch_pop(bytes)


# ---- 16 planes side by side

cdef struct Kept:
    # lines of 16 planes, as tiles, and the places of a result not written yet
    const char *x[TF_PLANES]
    char *y[TF_PLANES]
    const char *wide[TF_PLANES]       # room for lines of another type
    int planes
    int64_t size                      # bytes of a line
    char *lines
    int64_t *held                     # which line a place has
    const void **rows
    char *out


cdef inline void along(const Means *s, int a, int64_t o, int64_t *first, int64_t *last) noexcept nogil:
    """What place o of the result reads along axis a: the elements of a window, or the windows of an element."""
    cdef const Pool *q = &s.q
    cdef int64_t at, least
    if not s.grad:
        window(q, a, o, first, last)
    elif q.adaptive:
        first[0] = o * q.y.size[a] // q.x.size[a]
        last[0] = ((o + 1) * q.y.size[a] + q.x.size[a] - 1) // q.x.size[a]
    else:
        at = o + q.pad[a]
        least = at - q.kernel[a] + 1
        first[0] = (least + q.stride[a] - 1) // q.stride[a] if least > 0 else 0
        last[0] = min(at // q.stride[a] + 1, q.y.size[a])


cdef void lift(const Means *s, Kept *k, int64_t at, int64_t step, int64_t n, char *to) noexcept nogil:
    """n places of the planes, `at` elements after their first, to a tile."""
    cdef const tf_gemm_kind *kind = s.q.kind
    cdef int dtype = s.from_.v.dtype, c
    cdef int64_t item = tf_itemsize[dtype], i = 0, some
    if own(&s.q):
        s.loops.lift(to, k.x, at * item, step, n)
        return
    while i < n:
        some = min(n - i, <int64_t>FLUSHED)
        for c in range(k.planes):
            kind.widen(dtype, k.x[c] + (at + i * step) * item, step, some, <char *>k.wide[c])
        s.loops.lift(to + i * TF_PLANES * kind.itemsize, k.wide, 0, 1, some)
        i += some


cdef void lower(const Means *s, Kept *k, int64_t at, int64_t n) noexcept nogil:
    """n places from `at` on of the result."""
    cdef const tf_gemm_kind *kind = s.q.kind
    cdef int dtype = s.to.v.dtype, c
    cdef int64_t item = tf_itemsize[dtype], i = 0, some
    if own(&s.q):
        s.loops.lower(k.y, at * item, k.planes, k.out, n)
        return
    while i < n:
        some = min(n - i, <int64_t>FLUSHED)
        s.loops.lower(<char **>k.wide, 0, k.planes, k.out + i * TF_PLANES * kind.itemsize, some)
        for c in range(k.planes):
            kind.narrow(dtype, k.wide[c], some, k.y[c] + (at + i) * item, 1)
        i += some


cdef void lift_all(const Means *s, Kept *k) noexcept nogil:
    """Planes that are kept whole; at once where their lines follow one another."""
    cdef const Planes *p = s.from_
    cdef int64_t a, b, line
    cdef bint follow = ((p.step[1] == p.size[2] * p.step[2] or p.size[1] == 1)
                        and (p.step[0] == p.size[1] * p.size[2] * p.step[2] or p.size[0] == 1))
    if follow:
        lift(s, k, 0, p.step[2], volume(p.size), k.lines)
    for a in range(p.size[0]):
        for b in range(p.size[1]):
            line = a * p.size[1] + b
            if not follow:
                lift(s, k, a * p.step[0] + b * p.step[1], p.step[2], p.size[2], k.lines + line * k.size)
            if s.grad:
                s.loops.share(k.lines + line * k.size, s.counts, factor(&s.q, a, b), p.size[2])
            k.held[line] = line


cdef const void *line_at(const Means *s, Kept *k, int64_t a, int64_t b) noexcept nogil:
    cdef const Planes *p = s.from_
    cdef int64_t place = a % s.s0 * s.s1 + b % s.s1, line = a * p.size[1] + b
    cdef char *at = k.lines + place * k.size
    if k.held[place] != line:
        lift(s, k, a * p.step[0] + b * p.step[1], p.step[2], p.size[2], at)
        if s.grad:
            s.loops.share(at, s.counts, factor(&s.q, a, b), p.size[2])
        k.held[place] = line
    return at


cdef void line_of_planes(const Means *s, Kept *k, int64_t o0, int64_t o1, char *acc) noexcept nogil:
    """One line of the result; lines it reads come in rising order, as many together as are kept."""
    cdef int64_t a, a1, b, b0, b1, i, some, n = s.to.size[2]
    along(s, 0, o0, &a, &a1)
    along(s, 1, o1, &b0, &b1)
    if s.grad:
        memset(acc, 0, n * TF_PLANES * s.q.kind.itemsize)
    else:
        s.q.sum.begin(acc, n * TF_PLANES)
    while a < a1:
        b = b0
        while b < b1:
            some = min(b1 - b, s.s1)
            for i in range(some):
                k.rows[i] = line_at(s, k, a, b + i)
            s.loops.join(acc, k.rows, some, s.reach, n)
            b += some
        a += 1
    if not s.grad:
        s.loops.share(acc, s.counts, factor(&s.q, o0, o1), n)


cdef void tile_task(int64_t t, void *ctx) noexcept nogil:
    cdef Means *s = <Means *>ctx
    cdef int64_t item = s.q.kind.itemsize, n = s.to.size[2], first = t // s.parts * TF_PLANES, lines = s.s0 * s.s1
    cdef int64_t line, last, filled = 0, row = TF_PLANES * item
    cdef size_t bytes
    cdef char *room
    cdef Kept k
    cdef int c
    k.size = s.from_.size[2] * row
    bytes = lines * (k.size + 8) + s.s1 * 8 + (n + FLUSHED) * row + (0 if own(&s.q) else FLUSHED * row)
    room = <char *>scratch_push(bytes)
    if room == NULL:
        s.q.failed = NO_MEMORY
        return
    k.planes = <int>min(<int64_t>TF_PLANES, s.q.planes - first)
    for c in range(TF_PLANES):                  # places beyond the last plane: any plane
        k.x[c] = plane_at(s.from_, first + min(c, k.planes - 1))
        k.y[c] = result_at(s.to, first + min(c, k.planes - 1))
    k.lines = room
    k.out = k.lines + lines * k.size
    k.wide[0] = k.out + (n + FLUSHED) * row
    for c in range(1, TF_PLANES):
        k.wide[c] = k.wide[0] + (c if c < k.planes else 0) * FLUSHED * item
    room = k.out + (n + FLUSHED) * row + (0 if own(&s.q) else FLUSHED * row)
    k.held, k.rows = <int64_t *>room, <const void **>(room + lines * 8)
    if lines == s.from_.size[0] * s.from_.size[1]:
        lift_all(s, &k)
    else:
        memset(k.held, 255, lines * 8)
    line = t % s.parts * s.part
    last = min(line + s.part, s.to.size[0] * s.to.size[1])
    while line < last:
        line_of_planes(s, &k, line // s.to.size[1], line % s.to.size[1], k.out + filled * row)
        filled += n
        line += 1
        if filled >= FLUSHED or line == last:
            lower(s, &k, line * n - filled, filled)
            filled = 0
    scratch_pop(bytes)


cdef int64_t widest(const Means *s, int a) noexcept nogil:
    """The most that a place of the result reads along an axis."""
    cdef int64_t o, first, last, most = 1
    for o in range(s.to.size[a]):
        along(s, a, o, &first, &last)
        most = max(most, last - first)
    return most


cdef bint side_by_side(const Means *s) noexcept nogil:
    cdef const Pool *q = &s.q
    if q.planes < FEW or max(q.x.size[2], q.y.size[2]) * TF_PLANES * q.kind.itemsize > LINE_BYTES:
        return False
    return wide(q) or q.y.size[2] < MANY or q.stride[2] > 4


cdef void cut_tiles(Means *s) noexcept nogil:
    """How many lines a task keeps, and how many of the result it makes."""
    cdef Pool *q = &s.q
    cdef int64_t line = s.from_.size[2] * TF_PLANES * q.kind.itemsize, lines = s.to.size[0] * s.to.size[1], work
    s.s0, s.s1, s.part = s.from_.size[0], s.from_.size[1], lines
    if s.s0 * s.s1 * line > KEPT_BYTES:
        s.s0, s.s1 = widest(s, 0), widest(s, 1)
        if s.s0 * s.s1 * line > KEPT_BYTES:
            s.s0, s.s1 = 1, max(<int64_t>1, min(s.s1, KEPT_BYTES // line))
        work = max(volume(q.x.size), volume(q.y.size) * volume(q.kernel)) // lines
        s.part = max(<int64_t>1, WORK // (work + 1))
    s.parts = (lines + s.part - 1) // s.part


# ---- families

cdef int run_means(Means *s, int64_t planes, bint grad, tf_call *call) noexcept nogil:
    cdef Pool *q = &s.q
    cdef int64_t o, bytes
    cdef bint tiles
    cdef int status
    cut(q)
    s.grad, s.loops, q.planes = grad, &TABLE.tile[q.sum == &TABLE.sum[1]], planes
    s.from_, s.to = (&q.y, &q.x) if grad else (&q.x, &q.y)
    tiles = side_by_side(s)
    bytes = (q.y.size[2] + 2 * s.to.size[2]) * 8
    s.counts = <int64_t *>scratch_push(bytes)
    if s.counts == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.reach = s.counts + q.y.size[2]
    counts_of(q, s.counts)
    for o in range(s.to.size[2] if tiles or not grad else 0):
        along(s, 2, o, s.reach + 2 * o, s.reach + 2 * o + 1)
    if tiles:
        cut_tiles(s)
        status = run(q, tile_task, (planes + TF_PLANES - 1) // TF_PLANES * s.parts, 0.2 * planes, call)
    else:
        status = run(q, share_task if grad else mean_task, planes, 0.5 * planes, call)
    scratch_pop(bytes)
    return status


cdef int avg(const tf_view *const *inputs, tf_view *const *outputs, const tf_attrs *at,
             tf_call *call,
             bint grad) noexcept nogil:
    """kernel, stride, padding, ceil_mode, count_include_pad, divisor, nd."""
    cdef Means s
    cdef Pool *q = &s.q
    cdef int nd = <int>at.i[12]
    if not floats(inputs[0]):
        return TF_EUNSUPPORTED
    windows(q, at, nd, inputs[0].dtype)
    q.sum = &TABLE.sum[inputs[0].dtype == TF_F64]
    q.include_pad, q.divisor = at.i[10] != 0, at.i[11]
    if not sides(q, inputs[0], outputs[0], nd, grad):
        return TF_OK
    return run_means(&s, count(inputs[0], nd), grad, call)


cdef int avg_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept nogil:
    return avg(inputs, outputs, at, call, False)


cdef int avg_pool_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call) noexcept nogil:
    return avg(inputs, outputs, at, call, True)


cdef int adaptive_avg(const tf_view *const *inputs, tf_view *const *outputs, const tf_attrs *at,
                      tf_call *call,
                      bint grad) noexcept nogil:
    """size, nd."""
    cdef Means s
    cdef Pool *q = &s.q
    cdef int nd = <int>at.i[3]
    if not floats(inputs[0]):
        return TF_EUNSUPPORTED
    plain(q, inputs[0].dtype)
    q.sum = &TABLE.sum[inputs[0].dtype == TF_F64]
    if not sides(q, inputs[0], outputs[0], nd, grad):
        return TF_OK
    fit(q)
    return run_means(&s, count(inputs[0], nd), grad, call)


cdef int adaptive_avg_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                           const tf_attrs *at, tf_call *call) noexcept nogil:
    return adaptive_avg(inputs, outputs, at, call, False)


cdef int adaptive_avg_pool_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                                const tf_attrs *at, tf_call *call) noexcept nogil:
    return adaptive_avg(inputs, outputs, at, call, True)


KERNELS = {
    "avg_pool": kernel_capsule(avg_pool), "avg_pool_grad": kernel_capsule(avg_pool_grad),
    "adaptive_avg_pool": kernel_capsule(adaptive_avg_pool),
    "adaptive_avg_pool_grad": kernel_capsule(adaptive_avg_pool_grad),
}
