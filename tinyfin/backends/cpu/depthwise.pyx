"""Convolutions with one channel per group, and the gradients of their inputs, plane by plane.

A task copies some lines of a plane among zeros, where they stay in cache, and computes the rows that read them. Chains
are those of conv.pyx; in the gradient zeros beside g take part, so weights must be finite.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.conv_job cimport *
from tinyfin.backends.cpu.conv_shape cimport *
from tinyfin.backends.cpu.depthwise_loops cimport *
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.spatial cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *

cdef enum:
    NEAR = 8192              # elements of a copy that stay in the nearest cache
    ROWS = 24                # rows of results that are computed together, and twice as many, end with a band
    WORK = 1 << 17           # multiply-adds of a task, where planes are small
    AHEAD = 1 << 14          # bytes of the next plane that are called while one is computed
    FAR = 256                # steps that tables are made for
    MANY = 2                 # results per channel up to which lines are read from the copy for each

cdef const tf_depthwise_table *TABLE = <const tf_depthwise_table *>isa_table(b"depthwise")


cdef struct Work:
    const Shape *s
    const tf_depthwise_kind *kind
    const tf_view *from_              # x, or g
    tf_view *to                       # y, or the gradient of x
    int64_t xs[3]                     # strides of places of from_
    const char *w                     # accumulators
    int64_t w_plane                   # elements between kernels
    const char *bias                  # accumulators, or NULL
    int64_t band, bands               # rows of `to` in a task, and how many such make a plane
    int64_t some                      # planes of a task
    int failed


cdef bint single(const Shape *s) noexcept nogil:
    return (s.cg == 1 and s.og <= MANY and s.size[0] == 1 and s.kernel[0] == 1 and s.out[0] == 1 and s.pad[0] == 0
            and max(s.stride[1], s.stride[2]) <= FAR and max(s.dil[1], s.dil[2]) <= FAR)


cdef bint depthwise_pays(const Shape *s) noexcept nogil:
    return single(s)


cdef bint depthwise_input_pays(const Shape *s) noexcept nogil:
    return single(s) and (s.stride[1] == 1 or s.dil[1] == 1) and (s.stride[2] == 1 or s.dil[2] == 1)


cdef void cut(Work *q, int64_t rows, int64_t each) noexcept nogil:
    """Bands of rows, each of which needs `each` more elements of a copy."""
    q.band = min(rows, max(<int64_t>ROWS, NEAR // max(each, 1) // ROWS * ROWS))
    q.bands = (rows + q.band - 1) // q.band
    q.some = max(<int64_t>1, WORK // (q.s.og * q.s.taps * q.s.places // q.bands + 1))


cdef char *apart(const Shape *s, const char *w, int64_t pitch, char *to) noexcept nogil:
    """Kernels whose rows are pitch elements apart."""
    cdef int64_t item = s.kind.itemsize, row
    for row in range(s.o * s.kernel[1]):
        memcpy(to + row * pitch * item, w + row * s.kernel[2] * item, s.kernel[2] * item)
    return to


cdef int run(Work *q, const tf_view *from_, const tf_view *w, const tf_view *bias, tf_view *to, tf_call *call,
             void (*task)(int64_t t, void *ctx) noexcept nogil, bint gradient) noexcept nogil:
    """All tasks, with weights and bias as accumulators."""
    cdef const Shape *s = q.s
    cdef int64_t item = s.kind.itemsize, pitch = s.kernel[2]
    cdef double cost = s.n * s.o * (s.kind.fma_ns * 2 * s.taps * s.places + 0.2 * s.area)
    cdef Room r
    cdef char *room
    cdef int rc = TF_OK
    if not gradient:
        pitch = tf_pitch(s.kernel[2], stride_of(s))
    if enter(&r, (w.size + s.o * (s.kernel[1] * pitch + 1)) * item, call):
        return TF_ENOMEM
    q.kind = &TABLE.kind[s.dtype == TF_F64]
    q.from_, q.to, q.w, q.bias, q.failed, q.w_plane = from_, to, w.data, NULL, 0, s.kernel[1] * pitch
    three(&from_.strides[2], from_.ndim - 2, 0, q.xs)
    if not (s.own and w.flags & TF_CONTIGUOUS):
        room = carve(&r.next, w.size * item)
        spread(w, s, room)
        q.w = room
    if pitch != s.kernel[2]:
        q.w = apart(s, q.w, pitch, carve(&r.next, s.o * q.w_plane * item))
    if bias != NULL:
        room = carve(&r.next, s.o * item)
        s.kind.widen(s.dtype, bias.data, bias.strides[0], s.o, room)
        q.bias = room
    if gradient and not finite(q.w, w.size, s.dtype == TF_F64):
        rc = TF_EUNSUPPORTED
    else:
        parallel_for((s.n * s.c + q.some - 1) // q.some * q.bands, cost, task, q)
        if q.failed:
            rc = TF_ENOMEM
    scratch_pop(r.bytes)
    return rc


cdef int64_t stride_of(const Shape *s) noexcept nogil:
    """Lines from one row of results to the next that are computed together; with both stride and dilation, none are."""
    return s.stride[1] if s.dil[1] == 1 else 1


cdef int64_t lines_of(const Shape *s, const Phases *f, int64_t *line, int64_t *col) noexcept nogil:
    """Where lines and columns of taps lie in the copy; returns how far rows are apart that share lines."""
    cdef int64_t rows = f.used[2] * volume(f.size), t, i, n = s.out[1] - 1 + s.kernel[1]
    for i in range(s.kernel[2]):
        col[i] = i % f.used[2] * volume(f.size) + i * s.dil[2] // s.stride[2]
    if s.stride[1] == 1:
        for t in range(n):
            line[t] = t * s.dil[1] * f.size[2]
        return s.dil[1]
    if s.dil[1] == 1:
        for t in range(s.out[1] + (s.kernel[1] - 1) // s.stride[1]):
            for i in range(s.stride[1]):
                line[t * s.stride[1] + i] = i * rows + t * f.size[2]
        return 1
    for i in range(s.kernel[1]):
        line[i] = i % f.used[1] * rows + i * s.dil[1] // s.stride[1] * f.size[2]
    return s.out[1]


cdef const char *plane(const Work *q, int64_t i, int64_t channels) noexcept nogil:
    """Plane i of what is read, of so many channels."""
    cdef const tf_view *v = q.from_
    return v.data + (i // channels * v.strides[0] + i % channels * v.strides[1]) * tf_itemsize[v.dtype]


cdef void forward_task(int64_t t, void *ctx) noexcept nogil:
    """A band of all results of some channels."""
    cdef Work *q = <Work *>ctx
    cdef Shape s = q.s[0]
    cdef Phases f
    cdef Phase ready[READY + 2]
    cdef tf_depthwise p
    cdef int64_t band = t % q.bands * q.band, first = t // q.bands * q.some, c, item = s.kind.itemsize
    cdef int64_t lines, step, bytes
    cdef int64_t soon = min(s.area * tf_itemsize[s.dtype], <int64_t>AHEAD)
    cdef char *copy
    cdef char *acc
    s.out[1] = min(q.band, s.out[1] - band)
    s.pad[1] -= band * s.stride[1]
    phases_of(&s, &f)
    lines = (s.out[1] + s.kernel[1]) * s.stride[1]
    bytes = (lines + s.kernel[2]) * 8 + (f.plane + SLACK + (0 if s.own else s.out[1] * s.out[2])) * item
    copy = <char *>scratch_push(bytes)
    if copy == NULL:
        q.failed = 1
        return
    acc = copy + (f.plane + SLACK) * item
    p.line = <int64_t *>(acc + (0 if s.own else s.out[1] * s.out[2] * item))
    p.col = p.line + lines
    step = lines_of(&s, &f, <int64_t *>p.line, <int64_t *>p.col)
    p.rows, p.cols, p.stride, p.n = s.kernel[1], s.kernel[2], stride_of(&s), s.out[2]
    p.y_row, p.load = step * s.out[2], 0
    for c in range(first, min(first + q.some, s.n * s.c)):
        fill_next(&s, &f, plane(q, c, s.c), q.xs, copy, ready, c == first)
        if q.bands == 1 and c + 1 < s.n * s.c:
            tf_soon(plane(q, c + 1, s.c), soon)
        results(q, &s, &f, &p, c, band, step, copy, acc)
    scratch_pop(bytes)


cdef void results(const Work *q, const Shape *s, const Phases *f, tf_depthwise *p, int64_t c, int64_t band, int64_t step,
                  const char *copy, char *acc) noexcept nogil:
    """Results of a plane's channel."""
    cdef int64_t item = s.kind.itemsize, o, i
    cdef char *y
    for o in range(s.og):
        p.w = q.w + (c % s.c * s.og + o) * q.w_plane * item
        p.bias = q.bias + (c % s.c * s.og + o) * item if q.bias != NULL else NULL
        y = q.to.data + ((c * s.og + o) * s.places + band * s.out[2]) * tf_itemsize[s.dtype]
        for i in range(min(step, s.out[1])):
            q.kind.rows(p, copy + i * f.size[2] * item, (s.out[1] - i + step - 1) // step,
                        (y if s.own else acc) + i * s.out[2] * item)
        if not s.own:
            s.kind.narrow(s.dtype, acc, s.out[1] * s.out[2], y, 1)


cdef int depthwise(const Shape *s, const tf_view *x, const tf_view *w, const tf_view *bias, tf_view *y,
                   tf_call *call) noexcept nogil:
    """y has elements."""
    cdef Work q
    cdef Phases f
    q.s = s
    phases_of(s, &f)
    cut(&q, s.out[1], min(s.stride[1], f.used[1]) * f.used[2] * f.size[2])
    return run(&q, x, w, bias, y, call, forward_task, False)


# Gradient of x. Rows a stride or a dilation apart are reached by the same lines of g, each one tap later. Columns a stride
# apart lie one after the other in g. These are classes, whose results are those of a convolution without strides.

cdef struct Side:
    # a dimension of the gradient for one class
    int64_t count, first, apart       # positions, and the place of the first in the copy; places from one to the next
    int64_t tap, taps


cdef void side(const Shape *s, int d, int64_t position, int64_t end, int64_t step, int64_t low,
               Side *c) noexcept nogil:
    """The class of `position`, a step apart, which ends before `end`; the copy begins with place `low` of g."""
    c.tap = (position + s.pad[d]) % s.stride[d]
    c.taps = max(<int64_t>0, (s.kernel[d] - c.tap + s.stride[d] - 1) // s.stride[d])
    c.count = max(<int64_t>0, (end - position + step - 1) // step)
    c.first, c.apart = (position + s.pad[d]) // s.stride[d] - low, s.dil[d]


cdef int64_t place(const Shape *s, int d, int64_t position) noexcept nogil:
    """The highest place of g that a position reads, if its first tap does."""
    return (position + s.pad[d]) // s.stride[d]


cdef int64_t reach(const Shape *s, int d) noexcept nogil:
    return (s.kernel[d] - 1) * s.dil[d] // s.stride[d]


cdef struct Band:
    # rows first to end of the gradient of one plane
    int64_t first, end
    int64_t low[2]                    # the copy begins there in g
    int64_t width                     # of the copy
    char *copy
    char *w
    int64_t *line
    int64_t *col
    Side *rows                        # classes
    Side *cols
    char *acc                         # results of a class of columns side by side: places, rows
    int64_t acc_row, acc_class


cdef void classes(const Work *q, const Band *b, const char *w, char *x, int load) noexcept nogil:
    """What one plane of g adds to the band; x: its rows, unless results go to acc."""
    cdef const Shape *s = q.s
    cdef tf_depthwise p
    cdef const Side *r
    cdef const Side *c
    cdef int64_t item = s.kind.itemsize, rows = max(s.stride[1], s.dil[1]), i, j, u, v, to_row
    cdef const char *from_
    cdef char *to
    p.line, p.col, p.w, p.bias, p.load, p.stride = b.line, b.col, b.w, NULL, load, 1
    to_row = b.acc_row if b.acc != NULL else s.size[2]
    p.y_row = -rows * to_row
    for i in range(min(rows, b.end - b.first)):
        r = &b.rows[i]
        for j in range(s.stride[2]):
            c = &b.cols[j]
            to = (b.acc + j * b.acc_class if b.acc != NULL else x) + i * to_row * item
            if r.taps == 0 or c.taps == 0 or c.count == 0:
                for u in range(0 if load else r.count):
                    memset(to + u * rows * to_row * item, 0, c.count * item)
                continue
            for u in range(r.taps):
                for v in range(c.taps):
                    copy_item(w + ((r.tap + u * s.stride[1]) * s.kernel[2] + c.tap + v * s.stride[2]) * item,
                              b.w + (u * tf_pitch(c.taps, 1) + v) * item, item)
            # rows of g fall as taps rise: the last row of results is the first
            p.rows, p.cols, p.n = r.taps, c.taps, c.count
            from_ = b.copy + ((r.first + (r.count - 1) * r.apart) * b.width + c.first) * item
            q.kind.rows(&p, from_, r.count, to + (r.count - 1) * rows * to_row * item)


cdef inline void copy_item(const char *a, char *b, int64_t item) noexcept nogil:
    if item == 8:
        (<double *>b)[0] = (<const double *>a)[0]
    else:
        (<float *>b)[0] = (<const float *>a)[0]


cdef void put_classes(const Work *q, const Band *b, char *x) noexcept nogil:
    """Columns of all classes to their places."""
    cdef const Shape *s = q.s
    cdef int64_t size = tf_itemsize[s.dtype], row = b.acc_row * s.kind.itemsize, u, j
    cdef const char *acc
    for u in range(b.end - b.first):
        acc = b.acc + u * row
        if s.own and s.stride[2] == 2:
            q.kind.turns(acc, acc + b.acc_class, s.size[2], x)
        else:
            for j in range(min(s.stride[2], s.size[2])):
                s.kind.narrow(s.dtype, acc + j * b.acc_class, (s.size[2] - j + s.stride[2] - 1) // s.stride[2],
                              x + j * size, s.stride[2])
        x += s.size[2] * size


cdef void input_task(int64_t t, void *ctx) noexcept nogil:
    """A band of the gradient of some channels."""
    cdef Work *q = <Work *>ctx
    cdef const Shape *s = q.s
    cdef Shape part = s[0]            # of the copy of g
    cdef Phases f
    cdef Phase ready[READY + 2]
    cdef Band b
    cdef int64_t first = t // q.bands * q.some, c, item = s.kind.itemsize
    cdef int64_t size = tf_itemsize[s.dtype], all, lines, bytes, kernel, rows, acc = 0, o, d
    cdef int64_t soon = min(s.places * size, <int64_t>AHEAD)
    cdef char *x
    b.first = t % q.bands * q.band
    b.end = min(b.first + q.band, s.size[1])
    for d in range(1, 3):
        b.low[d - 1] = place(s, d, b.first if d == 1 else 0) - reach(s, d)
        part.size[d], part.pad[d], part.kernel[d], part.stride[d], part.dil[d] = s.out[d], -b.low[d - 1], 1, 1, 1
        part.out[d] = place(s, d, (b.end if d == 1 else s.size[2]) - 1) - b.low[d - 1] + 1
    phases_of(&part, &f)
    b.width, b.acc_row = f.size[2], (s.size[2] + s.stride[2] - 1) // s.stride[2]
    b.acc_class = (b.end - b.first) * b.acc_row * item
    if not s.own or s.stride[2] != 1:
        acc = s.stride[2] * b.acc_class + SLACK * item
    lines = s.kernel[1] + b.end - b.first
    all = (f.plane + SLACK) * item
    kernel = s.kernel[1] * max(<int64_t>TF_BACK, s.kernel[2]) * item
    rows = max(s.stride[1], s.dil[1])
    bytes = all + acc + kernel + (lines + s.kernel[2]) * 8 + (rows + s.stride[2]) * sizeof(Side)
    b.copy = <char *>scratch_push(bytes)
    if b.copy == NULL:
        q.failed = 1
        return
    b.w = b.copy + all
    b.line = <int64_t *>(b.w + kernel)
    b.col = b.line + lines
    b.rows = <Side *>(b.col + s.kernel[2])
    b.cols = b.rows + rows
    b.acc = <char *>(b.cols + s.stride[2]) if acc else NULL
    for o in range(lines):
        b.line[o] = -o * s.dil[1] * b.width
    for o in range(s.kernel[2]):
        b.col[o] = -o * s.dil[2]
    for o in range(rows):
        side(s, 1, b.first + o, b.end, rows, b.low[0], &b.rows[o])
    for o in range(s.stride[2]):
        side(s, 2, o, s.size[2], s.stride[2], b.low[1], &b.cols[o])
    for c in range(first, min(first + q.some, s.n * s.c)):
        x = q.to.data + (c * s.area + b.first * s.size[2]) * size
        for o in range(s.og):
            fill_next(&part, &f, plane(q, c * s.og + o, s.o), q.xs, b.copy, ready, c == first and o == 0)
            if q.bands == 1 and c * s.og + o + 1 < s.n * s.o:
                tf_soon(plane(q, c * s.og + o + 1, s.o), soon)
            classes(q, &b, q.w + (c % s.c * s.og + o) * s.taps * item, x, o > 0)
        if acc:
            put_classes(q, &b, x)
    scratch_pop(bytes)


cdef int depthwise_input(const Shape *s, const tf_view *g, const tf_view *w, tf_view *x, tf_call *call) noexcept nogil:
    """g and x have elements. TF_EUNSUPPORTED: a weight is not finite."""
    cdef Work q
    q.s = s
    cut(&q, s.size[1], (s.out[2] + reach(s, 2)) // s.stride[1] + (s.size[2] if s.stride[2] > 1 or not s.own else 0))
    return run(&q, g, w, NULL, x, call, input_task, True)
