"""The gradient of convolutions' weights: chains run over (image, row, column) of y, and padding takes part.

Columns are (channel, tap). Three roads, whose chains are the same: products of packed panels; one channel per
group, where each lane is a group of its own; and few channels of g, which are the lanes of rows (channel, tap).
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.conv_job cimport *
from tinyfin.backends.cpu.conv_shape cimport *
from tinyfin.backends.cpu.gemm cimport *
from tinyfin.backends.cpu.gemm_loops cimport *
from tinyfin.backends.cpu.spatial cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.backends.cpu.winograd cimport winograd_weight, winograd_weight_pays
from tinyfin.core.abi cimport *


cdef enum:
    RUNS = 512                        # positions of y in a block of k, at most
    STRETCH = 8192                    # positions whose panels of g stay in cache
    BAND = 1 << 15                    # elements of a band of lanes, which stays in cache
    TAPS = 3                          # neighbouring taps that a row of a kernel has, for rows_task
    THREES = 8                        # of them in a task


cdef struct WeightGrad:
    const Shape *s
    Columns places                    # chain elements: in the copy of x (src) and in g (dst)
    const char *g
    const char *x
    const tf_view *gv                 # tensors, for channel_task
    const tf_view *xv
    int64_t band                      # rows of y that it takes at a time
    const int64_t *off                # of columns in the copy
    int64_t plane, g_row, g_step      # of the copy; between rows and last positions of g
    char *acc
    char *lanes                       # accumulators of channel_task, or NULL
    char *rows                        # of rows_task, (panel, column, channel), or NULL
    char *panels                      # of g, for a stretch of positions
    int64_t k0, k                     # the stretch
    bint resume
    int failed


cdef struct WeightGroup:
    const WeightGrad *q
    int64_t g


cdef void pack_g(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                 void *dst) noexcept nogil:
    """Channels of g as panels of A, run by run."""
    cdef const WeightGroup *one = <const WeightGroup *>p.owner
    cdef const WeightGrad *q = one.q
    cdef int64_t src[2 * TF_DEPTH]
    cdef int64_t at[TF_DEPTH]
    cdef int64_t done = 0, mr = p.kind.mr, row = one.g * q.s.og + first
    cdef int64_t size = tf_itemsize[q.s.dtype]
    cdef int n = runs_of(&q.places, k0, k, src, at), r
    cdef char *d = <char *>dst
    while done < count:
        for r in range(n):
            p.kind.pack(q.s.dtype, q.g + ((row + done) * q.g_row + at[r]) * size, q.g_row, q.g_step,
                        min(mr, count - done), src[2 * r + 1], d, 0)
            d += src[2 * r + 1] * mr * p.kind.itemsize
        done += mr


cdef void pack_x(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                 void *dst) noexcept nogil:
    """(channel, tap) columns as panels of B: squares of the copy, transposed."""
    cdef const WeightGroup *one = <const WeightGroup *>p.owner
    cdef const WeightGrad *q = one.q
    cdef int64_t src[2 * TF_DEPTH]
    cdef int64_t at[TF_DEPTH]
    cdef const void *rows[64]
    cdef int64_t done = 0, nr = p.kind.nr, item = p.kind.itemsize, i, some
    cdef int64_t group = one.g * q.s.cg * q.plane
    cdef int n = runs_of(&q.places, k0, k, src, at), r
    cdef char *d = <char *>dst
    while done < count:
        some = min(nr, count - done)
        for r in range(n):
            for i in range(some):
                rows[i] = q.x + (group + q.off[first + done + i] + src[2 * r]) * item
            p.kind.pack_rows(rows, some, src[2 * r + 1], d, 1, 1)
            d += src[2 * r + 1] * nr * item
        done += nr


cdef int weight_group(const WeightGrad *q, int64_t g, bint alone) noexcept nogil:
    cdef int64_t detail[4]
    cdef WeightGroup one
    cdef gemm p
    one.q, one.g = q, g
    p.kind, p.m, p.n, p.k = q.s.kind, q.s.og, q.s.cg * q.s.taps, total(&q.places)
    p.pack_a, p.pack_b, p.finish, p.owner, p.resume = pack_g, pack_x, NULL, &one, q.resume
    p.ldc = p.n
    p.c = q.acc + g * p.m * p.n * p.kind.itemsize
    return gemm_run(&p, alone, detail)


cdef void weight_task(int64_t g, void *ctx) noexcept nogil:
    cdef WeightGrad *q = <WeightGrad *>ctx
    if weight_group(q, g, True):
        q.failed = 1


cdef int64_t lane_bytes(const Shape *s) noexcept nogil:
    """Accumulators of channel_task, where it pays."""
    if s.cg != 1 or s.groups < s.kind.lanes // 2:
        return 0
    return (s.groups + s.kind.nr - 1) // s.kind.nr * s.kind.nr * s.og * s.taps * s.kind.itemsize


cdef struct Lanes:
    # a band of some channels: copies of planes of x, then places side by side with a lane for each channel
    Shape s                           # whose y is the band
    Phases f
    Columns places
    Phase ready[READY + 2]
    int64_t runs
    char *copies
    char *x
    char *g
    int64_t *off
    int64_t *src
    int64_t *at


cdef int64_t lanes_room(const Shape *s, Lanes *b, int64_t rows) noexcept nogil:
    """Bytes for bands of so many rows."""
    cdef int64_t item = s.kind.itemsize, nr = s.kind.nr
    b.s = s[0]
    b.s.out[1] = rows
    phases_of(&b.s, &b.f)
    return ((b.f.plane + SLACK) * 2 + volume(b.s.out)) * nr * item + (volume(b.s.out) * 3 + s.taps) * 8


cdef void lanes_at(const WeightGrad *q, Lanes *b, int64_t row, char *room) noexcept nogil:
    """The band from a row on: offsets of taps, runs of places."""
    cdef const Shape *s = q.s
    cdef int64_t item = s.kind.itemsize, nr = s.kind.nr, per, i
    b.s.out[1] = min(q.band, s.out[1] - row)
    b.s.pad[1] = s.pad[1] - row * s.stride[1]
    phases_of(&b.s, &b.f)
    per = volume(b.s.out)
    b.copies, b.x = room, room + (b.f.plane + SLACK) * nr * item
    b.g = b.x + (b.f.plane + SLACK) * nr * item
    b.off = <int64_t *>(b.g + per * nr * item)
    b.src, b.at = b.off + s.taps, b.off + s.taps + 2 * per
    for i in range(s.taps):
        b.off[i] = tap_offset(&b.s, &b.f, i)
    three(&q.gv.strides[2], q.gv.ndim - 2, 0, b.places.dst + 1)
    columns(&b.places, b.s.out, b.f.step)
    b.places.base = row * q.gv.strides[q.gv.ndim - 2] if q.gv.ndim > 3 else 0
    b.places.src[0], b.places.dst[0], b.places.count[0] = 0, 0, 1
    b.runs = runs_of(&b.places, 0, per, b.src, b.at)


cdef void lanes_of(const WeightGrad *q, Lanes *b, int64_t image, int64_t t, bint first) noexcept nogil:
    """A band of one image: chains of all taps go on."""
    cdef const Shape *s = q.s
    cdef const tf_gemm_kind *kind = s.kind
    cdef int64_t nr = kind.nr, item = kind.itemsize, channel = t * nr, some = min(nr, s.groups - channel), o, r
    cdef int64_t size = tf_itemsize[s.dtype]
    cdef int64_t xs[3]
    cdef const void *rows[64]
    cdef const char *g
    cdef char *d
    three(&q.xv.strides[2], q.xv.ndim - 2, 0, xs)
    for r in range(some):
        d = b.copies + r * b.f.plane * item
        fill_next(&b.s, &b.f, q.xv.data + (image * q.xv.strides[0] + (channel + r) * q.xv.strides[1]) * size, xs, d,
                  b.ready, first)
        rows[r] = d
    kind.pack_rows(rows, some, b.f.plane, b.x, 1, 1)
    for o in range(s.og):
        d = b.g
        g = q.g + (image * q.gv.strides[0] + (channel * s.og + o) * q.g_row) * size
        for r in range(b.runs):
            kind.pack(s.dtype, g + b.at[r] * size, s.og * q.g_row, q.g_step, some, b.src[2 * r + 1], d, 1)
            d += b.src[2 * r + 1] * nr * item
        kind.channelwise(b.g, b.x, b.off, s.taps, b.src, b.runs, q.lanes + (t * s.og + o) * s.taps * nr * item)


cdef void channel_task(int64_t t, void *ctx) noexcept nogil:
    """One channel per group: each lane takes a group, for nr groups and all images."""
    cdef WeightGrad *q = <WeightGrad *>ctx
    cdef const Shape *s = q.s
    cdef Lanes b
    cdef int64_t bytes = lanes_room(s, &b, q.band), image, row
    cdef char *room = <char *>scratch_push(bytes)
    cdef bint whole = q.band == s.out[1]
    if room == NULL:
        q.failed = 1
        return
    for image in range(s.n):
        row = 0
        while row < s.out[1]:
            if image == 0 or not whole:
                lanes_at(q, &b, row, room)
            lanes_of(q, &b, image, t, image == 0 or not whole)
            row += q.band
    scratch_pop(bytes)


cdef int weight_lanes(WeightGrad *q, const tf_view *g, const tf_view *x, tf_view *w, const Phases *f,
                      tf_call *call) noexcept nogil:
    """All groups of one channel, in bands that stay in cache."""
    cdef const Shape *s = q.s
    cdef int64_t item = s.kind.itemsize, each = f.plane // max(s.out[1], 1) * s.kind.nr
    cdef Room r
    if enter(&r, lane_bytes(s) + (0 if s.own else w.size * item), call):
        return TF_ENOMEM
    q.acc = w.data if s.own else carve(&r.next, w.size * item)
    q.lanes = carve(&r.next, lane_bytes(s))
    memset(q.lanes, 0, lane_bytes(s))
    q.gv, q.xv, q.g = g, x, g.data
    q.band = s.out[1]
    if s.out[0] == 1:                 # or bands would not be in the order of places
        q.band = min(s.out[1], max(BAND // max(each, 1), 2 * s.kernel[1]))
    parallel_for((s.groups + s.kind.nr - 1) // s.kind.nr, 1.0 * s.o * s.taps * s.n * s.places, channel_task, q)
    channels_out(q)
    if not s.own:
        s.kind.narrow(s.dtype, q.acc, w.size, w.data, 1)
    scratch_pop(r.bytes)
    return TF_ENOMEM if q.failed else TF_OK


cdef void channels_out(const WeightGrad *q) noexcept nogil:
    """Accumulators [block][o][tap][lane] as [group][o][tap]."""
    cdef const Shape *s = q.s
    cdef int64_t g, o, k, nr = s.kind.nr, item = s.kind.itemsize
    cdef char *to = q.acc
    for g in range(s.groups):
        for o in range(s.og):
            for k in range(s.taps):
                memcpy(to, q.lanes + (((g // nr * s.og + o) * s.taps + k) * nr + g % nr) * item,
                       item)
                to += item


cdef bint by_rows(const Shape *s) noexcept nogil:
    """Few channels of g, taps side by side in memory: panels of columns would be read too seldom."""
    return (s.groups == 1 and s.kernel[2] == TAPS and s.stride[2] == 1 and s.dil[2] == 1
            and s.og <= s.kind.nr + s.kind.nr // 2)


cdef int64_t row_bytes(const Shape *s) noexcept nogil:
    return up(s.og, s.kind.nr) * s.cg * s.taps * s.kind.nr * s.kind.itemsize if by_rows(s) else 0


cdef int64_t stretch_bytes(const Shape *s) noexcept nogil:
    return up(s.og, s.kind.nr) * STRETCH * s.kind.nr * s.kind.itemsize if by_rows(s) else 0


cdef void stretch_task(int64_t t, void *ctx) noexcept nogil:
    """Panels of g for some positions of the stretch."""
    cdef const WeightGrad *q = <const WeightGrad *>ctx
    cdef const tf_gemm_kind *kind = q.s.kind
    cdef int64_t src[2 * RUNS]
    cdef int64_t at[RUNS]
    cdef int64_t first = t * RUNS, k = min(<int64_t>RUNS, q.k - first), nr = kind.nr, b, done
    cdef int64_t size = tf_itemsize[q.s.dtype]
    cdef int n = runs_of(&q.places, q.k0 + first, k, src, at), r
    for b in range(up(q.s.og, nr)):
        done = b * STRETCH + first
        for r in range(n):
            kind.pack(q.s.dtype, q.g + (b * nr * q.g_row + at[r]) * size, q.g_row, q.g_step,
                      min(nr, q.s.og - b * nr), src[2 * r + 1], q.panels + done * nr * kind.itemsize, 1)
            done += src[2 * r + 1]


cdef void rows_task(int64_t t, void *ctx) noexcept nogil:
    """The stretch for some rows (channel, tap) and all channels of g."""
    cdef const WeightGrad *q = <const WeightGrad *>ctx
    cdef const tf_gemm_kind *kind = q.s.kind
    cdef int64_t src[2 * RUNS]
    cdef int64_t at[RUNS]
    cdef int64_t all = q.s.cg * q.s.taps, row = t * THREES * TAPS, nr = kind.nr, item = kind.itemsize, b, first = 0
    cdef int n
    while first < q.k:
        n = runs_of(&q.places, q.k0 + first, min(<int64_t>RUNS, q.k - first), src, at)
        for b in range(up(q.s.og, nr)):
            kind.tap_rows(q.panels + (b * STRETCH + first) * nr * item, min(nr, q.s.og - b * nr), q.x, q.off + row,
                          min(<int64_t>THREES, (all - row) // TAPS), src, n, q.rows + (b * all + row) * nr * item)
        first += RUNS


cdef void rows_of_all(WeightGrad *q) noexcept nogil:
    """All rows, stretch by stretch of the chunk's positions."""
    cdef const Shape *s = q.s
    cdef int64_t all = total(&q.places)
    q.k0 = 0
    while q.k0 < all:
        q.k = min(<int64_t>STRETCH, all - q.k0)
        parallel_for(up(q.k, RUNS), 0.3 * s.og * q.k, stretch_task, q)
        parallel_for(up(s.cg * s.taps, THREES * TAPS), s.kind.fma_ns * s.og * s.cg * s.taps * q.k, rows_task, q)
        q.k0 += q.k


cdef void rows_out(const WeightGrad *q) noexcept nogil:
    """Accumulators (panel, column, channel) as (channel, column)."""
    cdef int64_t all = q.s.cg * q.s.taps, nr = q.s.kind.nr, item = q.s.kind.itemsize, o, j
    for o in range(q.s.og):
        for j in range(all):
            memcpy(q.acc + (o * all + j) * item, q.rows + ((o // nr * all + j) * nr + o % nr) * item, item)


cdef int weight_groups(WeightGrad *q) noexcept nogil:
    """All groups, for the images of the chunk."""
    cdef const Shape *s = q.s
    cdef int64_t g
    cdef int rc
    if q.rows != NULL:
        rows_of_all(q)
        return TF_OK
    if s.groups >= 4:
        parallel_for(s.groups, s.kind.fma_ns * s.o * s.cg * s.taps * total(&q.places), weight_task,
                     q)
        return TF_ENOMEM if q.failed else TF_OK
    for g in range(s.groups):
        rc = weight_group(q, g, False)
        if rc:
            return rc
    return TF_OK


cdef int conv_grad_weight(const tf_view *const *inputs, int n, tf_view *const *outputs,
                          const tf_attrs *at, tf_call *call) noexcept nogil:
    """g, x."""
    cdef const tf_view *g = inputs[0]
    cdef const tf_view *x = inputs[1]
    cdef tf_view *w = outputs[0]
    cdef Shape s
    cdef Phases f
    cdef WeightGrad q
    if not takes(g, x):
        return TF_EUNSUPPORTED
    if w.size and g.size:
        describe(&s, x.ndim - 2, x.dtype, &x.shape[2], &w.shape[2], &g.shape[2], at)
        channels(&s, x.shape[0], x.shape[1], g.shape[1])
        if not call.mode & TF_DETERMINISTIC and winograd_weight_pays(&s) \
                and winograd_weight(&s, g, x, w) == TF_OK:
            return TF_OK
    memset(w.data, 0, w.size * tf_itemsize[w.dtype])
    if w.size == 0 or g.size == 0:
        return TF_OK
    phases_of(&s, &f)
    memset(&q, 0, sizeof(WeightGrad))
    q.s, q.plane, q.g_row, q.g_step = &s, f.plane, g.strides[1], g.strides[g.ndim - 1]
    if lane_bytes(&s):
        return weight_lanes(&q, g, x, w, &f, call)
    return weight_chunks(&q, g, x, w, &f, call)


cdef int weight_chunks(WeightGrad *q, const tf_view *g, const tf_view *x, tf_view *w,
                       const Phases *f,
                       tf_call *call) noexcept nogil:
    """gw in chunks of images: each goes on where the last one stopped."""
    cdef const Shape *s = q.s
    cdef int64_t images = chunk_of(s.n, s.c * f.plane), item = s.kind.itemsize, i
    cdef int64_t cols = s.cg * s.taps
    cdef int64_t *off
    cdef Copy copy
    cdef Room r
    cdef int rc = TF_OK
    if enter(&r, cols * 8 + (0 if s.own else w.size * item) + row_bytes(s)
             + stretch_bytes(s) + (images * s.c * f.plane + SLACK) * item,
             call):
        return TF_ENOMEM
    q.off = off = <int64_t *>carve(&r.next, cols * 8)
    for i in range(cols):
        off[i] = i // s.taps * f.plane + tap_offset(s, f, i % s.taps)
    q.acc = w.data if s.own else carve(&r.next, w.size * item)
    if by_rows(s):
        q.rows, q.panels = carve(&r.next, row_bytes(s)), carve(&r.next, stretch_bytes(s))
        memset(q.rows, 0, row_bytes(s))
    three(&g.strides[2], g.ndim - 2, 0, q.places.dst + 1)
    columns(&q.places, s.out, f.step)
    q.places.src[0], q.places.dst[0] = s.c * f.plane, g.strides[0]
    copy_of(&copy, s, f, x, r.next)
    q.x = copy.to
    i = 0
    while i < s.n and rc == TF_OK:
        q.places.count[0] = min(images, s.n - i)
        copy_images(&copy, i, q.places.count[0])
        q.g = g.data + i * g.strides[0] * tf_itemsize[s.dtype]
        rc = weight_groups(q)
        q.resume = True
        i += images
    if q.rows != NULL:
        rows_out(q)
    if not s.own:
        s.kind.narrow(s.dtype, q.acc, w.size, w.data, 1)
    scratch_pop(r.bytes)
    return rc
