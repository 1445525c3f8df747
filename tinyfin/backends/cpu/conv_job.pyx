"""The engine of convolutions: a result's rows are products of w's rows and columns of a source.

Columns are never stored: panels are packed from runs of one padded copy, or tiles read the copy
itself where few rows share a column.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tinyfin.backends.cpu.conv_shape cimport *
from tinyfin.backends.cpu.gemm cimport *
from tinyfin.backends.cpu.gemm_loops cimport *
from tinyfin.backends.cpu.spatial cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *

cdef enum:
    COPY = 1 << 22           # elements of a copy; more images come in later chunks
    MANY = 4                 # groups from which each is one task
    WORK = 1 << 17           # multiply-adds of a task of lines
    LINE_ROWS = 64           # rows up to which columns are not packed
    POINT_ROWS = 128         # channels of a task of points
    POINT_DEPTH = 128        # chain elements for which all of them are visited
    RUNS = 64                # columns of a tile, at most
    TILE_BYTES = 4096


cdef struct Group:
    const Job *q
    const char *src
    const char *w
    char *y
    const char *bias


cdef void group_of(const Job *q, int64_t g, Group *one) noexcept nogil:
    cdef int64_t item = q.s.kind.itemsize
    one.q = q
    one.src = q.src + g * q.src_group * item
    one.w = q.w + g * q.w_group * tf_itemsize[q.w_dtype]
    one.y = q.y + g * q.y_group * tf_itemsize[q.s.dtype]
    one.bias = q.bias + g * q.m * item if q.bias != NULL else NULL


cdef void pack_w(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                 void *dst) noexcept nogil:
    """Rows of w as panels of A."""
    cdef const Group *one = <const Group *>p.owner
    cdef const Job *q = one.q
    cdef int64_t mr = p.kind.mr, done = 0
    cdef const char *w = one.w + first * q.w_step * tf_itemsize[q.w_dtype]
    if q.w_off == NULL:
        p.kind.pack(q.w_dtype, w + k0 * tf_itemsize[q.w_dtype], q.w_step, 1, count, k, dst, 0)
        return
    while done < count:
        p.kind.pack_at(w + done * q.w_step * p.kind.itemsize, q.w_step, q.w_off + k0,
                       min(mr, count - done), k,
                       <char *>dst + done * k * p.kind.itemsize)
        done += mr


cdef void pack_columns(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                       void *dst) noexcept nogil:
    """Columns as panels of B."""
    cdef const Group *one = <const Group *>p.owner
    cdef int64_t src[2 * RUNS]
    cdef int64_t places[RUNS]
    cdef int64_t nr = p.kind.nr, done = 0
    cdef int n
    while done < count:
        n = runs_of(&one.q.cols, first + done, min(nr, count - done), src, places)
        p.kind.pack_runs(one.src, one.q.off + k0, k, src, n,
                         <char *>dst + done * k * p.kind.itemsize)
        done += nr


cdef void store(const Group *one, int64_t i, int64_t rows, const int64_t *runs,
                const int64_t *places, int n,
                const void *acc, int64_t ld) noexcept nogil:
    """Rows of a tile, whose columns are n runs: bias, then the result's dtype and places."""
    cdef const Job *q = one.q
    cdef tf_put to
    to.y = one.y + i * q.y_row * tf_itemsize[q.s.dtype]
    to.bias = one.bias + i * q.s.kind.itemsize if one.bias != NULL else NULL
    to.y_row, to.step, to.dtype = q.y_row, q.cols.dst[3], q.s.dtype
    q.s.kind.put(&to, acc, ld, rows, runs, places, n)


cdef void finish(const gemm *p, int64_t i, int64_t rows, int64_t j, int64_t cols, void *acc,
                 int64_t ld) noexcept nogil:
    cdef const Group *one = <const Group *>p.owner
    cdef int64_t src[2 * RUNS]
    cdef int64_t dst[RUNS]
    cdef int n = runs_of(&one.q.cols, j, cols, src, dst)
    store(one, i, rows, src, dst, n, acc, ld)


cdef int one_group(const Job *q, int64_t g, bint alone) noexcept nogil:
    cdef int64_t detail[4]
    cdef Group one
    cdef gemm p
    group_of(q, g, &one)
    p.kind, p.m, p.n, p.k, p.resume = q.s.kind, q.m, total(&q.cols), q.k, False
    p.pack_a, p.pack_b, p.finish, p.owner = pack_w, pack_columns, finish, &one
    p.c, p.ldc = NULL, 0
    return gemm_run(&p, alone, detail)


cdef void group_task(int64_t g, void *ctx) noexcept nogil:
    cdef Job *q = <Job *>ctx
    if one_group(q, g, True):
        q.failed = 1


# Lines: where a panel of columns would serve a few tiles only, tiles read the copy itself.

cdef int64_t panel_bytes(const Job *q) noexcept nogil:
    cdef int64_t mr = q.s.kind.mr
    return (q.m + mr - 1) // mr * mr * q.k * q.s.kind.itemsize


cdef void panel_task(int64_t g, void *ctx) noexcept nogil:
    cdef const Job *q = <const Job *>ctx
    cdef int64_t i = 0, rows = tf_even_rows(q.m, q.s.kind.mr)
    cdef char *to = q.panels + g * panel_bytes(q)
    cdef Group one
    cdef gemm p
    group_of(q, g, &one)
    p.kind, p.owner = q.s.kind, &one
    while i < q.m:
        pack_w(&p, i, min(rows, q.m - i), 0, q.k, to)
        to += q.s.kind.mr * q.k * q.s.kind.itemsize
        i += rows


cdef void one_line(const Group *one, const char *panels, const int64_t *src,
                   int64_t dst) noexcept nogil:
    """All rows of a run of columns whose results need a dtype, a bias or places apart."""
    cdef const Job *q = one.q
    cdef const tf_gemm_kind *kind = q.s.kind
    cdef int64_t i, at = 0, item = kind.itemsize, place, rows = tf_even_rows(q.m, kind.mr), some
    cdef char acc[TILE_BYTES]
    cdef int64_t run[2]
    run[0] = 0
    while at < src[1]:
        run[1], place = min(kind.nr, src[1] - at), dst + at * q.cols.dst[3]
        i = 0
        while i < q.m:
            some = min(rows, q.m - i)
            kind.tile_at(q.k, panels + i // rows * kind.mr * q.k * item, one.src + (src[0] + at) * item, q.off, acc,
                         kind.nr, <int>some, <int>run[1], 0)
            store(one, i, some, run, &place, 1, acc, kind.nr)
            i += rows
        at += run[1]


cdef void line_task(int64_t t, void *ctx) noexcept nogil:
    """Some lines of one group, as many at once as lie evenly spaced."""
    cdef const Job *q = <const Job *>ctx
    cdef const Columns *c = &q.cols
    cdef int64_t all = c.count[0] * c.count[1] * c.count[2], parts = (all + q.lines - 1) // q.lines
    cdef int64_t n = c.count[3]
    cdef int64_t g = t // parts, i = t % parts * q.lines, stop = min(i + q.lines, all), some
    cdef int64_t item = q.s.kind.itemsize
    cdef bint direct = q.s.own and c.dst[3] == 1 and q.bias == NULL
    cdef const char *panels = q.panels + g * panel_bytes(q)
    cdef int64_t src[2]
    cdef int64_t dst
    cdef Group one
    group_of(q, g, &one)
    while i < stop:
        some = min(stop - i, c.count[2] - i % c.count[2]) if direct else 1
        runs_of(c, i * n, n, src, &dst)
        if direct:
            q.s.kind.lines(q.k, panels, q.m, one.src + src[0] * item, q.off, n, some, c.src[2],
                           one.y + dst * item,
                           q.y_row, c.dst[2])
        else:
            one_line(&one, panels, src, dst)
        i += some


cdef bint by_lines(const Shape *s, int64_t m, int64_t n) noexcept nogil:
    """Whether few enough rows share the columns, in lines of n, that packing them does not pay."""
    cdef int64_t lanes = s.kind.lanes
    return m <= s.kind.mr or (m <= LINE_ROWS and (n + lanes - 1) // lanes * lanes * 3 <= n * 4)


# Points: a few columns, the edge of an input gradient. They become rows and w's rows columns, which
# lie dense in memory for each element of the chain, so that w is read once and not packed.

cdef bint by_points(const Job *q) noexcept nogil:
    return (q.w_off != NULL and q.w_step == 1 and q.m >= q.s.kind.nr
            and total(&q.cols) <= q.s.kind.mr)


cdef void point_rows(const Group *one, const char *panels, int64_t points, int64_t c, int64_t stop,
                     char *acc) noexcept nogil:
    """Accumulators [points][POINT_ROWS] of channels c to stop: w is read in blocks of the chain."""
    cdef const Job *q = one.q
    cdef const tf_gemm_kind *kind = q.s.kind
    cdef int64_t k0 = 0, k, i, j, item = kind.itemsize, mr = kind.mr, nr = kind.nr
    while k0 < q.k:
        k = min(<int64_t>POINT_DEPTH, q.k - k0)
        j = c
        while j < stop:
            i = 0
            while i < points:
                kind.tile_far(k, q.k - k0 - k, panels + (i * q.k + k0 * mr) * item,
                              one.w + j * item, q.w_off + k0, acc + (i * POINT_ROWS + j - c) * item,
                              POINT_ROWS, <int>min(mr, points - i), <int>min(nr, stop - j), k0 > 0)
                i += mr
            j += nr
        k0 += k


cdef void point_task(int64_t t, void *ctx) noexcept nogil:
    """The points of one group, for some channels."""
    cdef Job *q = <Job *>ctx
    cdef const tf_gemm_kind *kind = q.s.kind
    cdef int64_t strips = (q.m + POINT_ROWS - 1) // POINT_ROWS, mr = kind.mr, item = kind.itemsize
    cdef int64_t i
    cdef int64_t points = total(&q.cols), rows = (points + mr - 1) // mr * mr
    cdef int64_t bytes = rows * (q.k + POINT_ROWS) * item
    cdef int64_t c = t % strips * POINT_ROWS, stop = min(c + POINT_ROWS, q.m)
    cdef int64_t src[2 * RUNS]
    cdef int64_t at[RUNS]
    cdef int64_t dst[RUNS]
    cdef char *acc = <char *>scratch_push(bytes)
    cdef char *panels = acc + rows * POINT_ROWS * item
    cdef Group one
    if acc == NULL:
        q.failed = 1
        return
    group_of(q, t // strips, &one)
    for i in range(points):
        runs_of(&q.cols, i, 1, src, &dst[i])
        at[i] = src[0]
    for i in range(rows // mr):
        kind.pack_points(one.src, at + i * mr, q.off, min(mr, points - i * mr), q.k,
                         panels + i * mr * q.k * item)
    point_rows(&one, panels, points, c, stop, acc)
    for i in range(points):
        kind.narrow(q.s.dtype, acc + i * POINT_ROWS * item, stop - c,
                    one.y + (c * q.y_row + dst[i]) * tf_itemsize[q.s.dtype], q.y_row)
    scratch_pop(bytes)


cdef int run_job(Job *q) noexcept nogil:
    """All groups, for the images of the job's columns."""
    cdef int64_t groups = q.s.groups, all = q.cols.count[0] * q.cols.count[1] * q.cols.count[2], g
    cdef double cost = q.s.kind.fma_ns * q.m * q.k * total(&q.cols) * groups
    cdef int rc
    if total(&q.cols) == 0 or q.m == 0:
        return TF_OK
    if q.panels != NULL and by_lines(q.s, q.m, q.cols.count[3]):
        parallel_for(groups, 1.0 * q.m * q.k * groups, panel_task, q)
        q.lines = max(1, WORK // max(q.m * q.k * q.cols.count[3], 1))
        parallel_for(groups * ((all + q.lines - 1) // q.lines), 2 * cost, line_task, q)
        return TF_OK
    if by_points(q):
        parallel_for(groups * ((q.m + POINT_ROWS - 1) // POINT_ROWS), 2 * cost, point_task, q)
        return TF_ENOMEM if q.failed else TF_OK
    if groups >= MANY:
        parallel_for(groups, cost, group_task, q)
        return TF_ENOMEM if q.failed else TF_OK
    for g in range(groups):
        rc = one_group(q, g, False)
        if rc:
            return rc
    return TF_OK


# Copies of planes, several images at a time.

cdef void copy_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Copy *c = <const Copy *>ctx
    cdef int64_t image = t // c.channels, channel = t % c.channels
    if c.s.groups > 1:  # in the order in which groups are computed: by the same threads
        image, channel = t % c.images, t // c.images
    cdef const char *x = c.x + ((c.first + image) * c.xs[0] + channel * c.xs[1]) \
        * tf_itemsize[c.s.dtype]
    fill_plane(c.s, c.f, x, &c.xs[2],
               c.to + (image * c.channels + channel) * c.f.plane * c.s.kind.itemsize)


cdef void copy_images(Copy *c, int64_t first, int64_t images) noexcept nogil:
    c.first, c.images = first, images
    parallel_for(images * c.channels, 0.5 * images * c.channels * c.f.plane, copy_task, c)


cdef void copy_of(Copy *c, const Shape *s, const Phases *f, const tf_view *x,
                  char *to) noexcept nogil:
    c.s, c.f, c.x, c.channels, c.to = s, f, x.data, x.shape[1], to
    c.xs[0], c.xs[1] = x.strides[0], x.strides[1]
    three(&x.strides[2], x.ndim - 2, 0, &c.xs[2])


cdef int64_t chunk_of(int64_t images, int64_t each) noexcept nogil:
    """Images copied at a time."""
    return max(1, min(images, COPY // max(each, 1)))


cdef void spread(const tf_view *v, const Shape *s, char *to) noexcept nogil:
    """A dense copy of v as accumulators."""
    cdef int64_t i, rest, at, last = v.shape[v.ndim - 1]
    cdef int d
    for i in range(v.size // last if last else 0):
        rest, at = i, 0
        for d in range(v.ndim - 2, -1, -1):
            at += rest % v.shape[d] * v.strides[d]
            rest //= v.shape[d]
        s.kind.widen(s.dtype, v.data + at * tf_itemsize[s.dtype], v.strides[v.ndim - 1], last, to)
        to += last * s.kind.itemsize


cdef bint finite(const char *w, int64_t n, bint wide) noexcept nogil:
    """Whether zero times each accumulator is zero; in integers, which the compiler makes vectors of."""
    cdef uint64_t top = <uint64_t>0x7ff << 52, more = 0
    cdef uint32_t high = 0x7f800000, some = 0
    cdef int64_t i
    if wide:
        for i in range(n):
            more |= (<const uint64_t *>w)[i] & top == top
        return more == 0
    for i in range(n):
        some |= (<const uint32_t *>w)[i] & high == high
    return some == 0
