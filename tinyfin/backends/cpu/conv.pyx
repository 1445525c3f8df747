"""Convolutions in one, two and three dimensions, and their two gradients, as implicit products.

y: an element's chain runs over (channel, row, column) of the kernel; positions in the padding are
+0 and take part. gx: over (channel of y, row, column), of those taps that reach an output; in normal
mode others may take part with a zero, which changes nothing but the sign of what underflowed. The bias is
added after the chain. gw is in conv_weight.pyx.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.copy cimport NO_ROOM, lies_across, straightened
from tinyfin.backends.cpu.conv_job cimport *
from tinyfin.backends.cpu.conv_shape cimport *
from tinyfin.backends.cpu.conv_weight cimport conv_grad_weight
from tinyfin.backends.cpu.depthwise cimport *
from tinyfin.backends.cpu.gemm cimport *
from tinyfin.backends.cpu.gemm_loops cimport *
from tinyfin.backends.cpu.spatial cimport *
from tinyfin.backends.cpu.threads cimport scratch_pop
from tinyfin.backends.cpu.winograd cimport winograd, winograd_pays
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule


cdef void weights(Job *q, const tf_view *w, Room *r) noexcept nogil:
    """w where it lies, or a dense copy as accumulators."""
    cdef const Shape *s = q.s
    q.w, q.w_dtype = w.data, s.dtype
    if not w.flags & TF_CONTIGUOUS:
        q.w = carve(&r.next, w.size * s.kind.itemsize)
        q.w_dtype = TF_F64 if s.dtype == TF_F64 else TF_F32
        spread(w, s, <char *>q.w)


cdef int run_chunks(Job *q, Reading *p, const tf_view *x, tf_view *y, Room *r) noexcept nogil:
    """y in chunks of images."""
    cdef const Shape *s = q.s
    cdef int64_t i = 0
    cdef int rc = TF_OK
    q.cols.src[0], q.cols.dst[0] = p.image, s.o * s.places
    while i < s.n and rc == TF_OK:
        q.cols.count[0] = min(p.images, s.n - i)
        q.src = chunk(p, x, i, q.cols.count[0], r.next)
        q.y = y.data + i * s.o * s.places * tf_itemsize[s.dtype]
        rc = run_job(q)
        i += p.images
    return rc


cdef int forward(Job *q, const tf_view *x, const tf_view *w, const tf_view *bias, tf_view *y,
                 tf_call *call) noexcept nogil:
    """Tables, panels and bias of y; q knows the shape."""
    cdef const Shape *s = q.s
    cdef int64_t item = s.kind.itemsize, i, panels
    cdef int64_t step[3]
    cdef int64_t *off
    cdef bint plain, lines
    cdef Phases f
    cdef Reading p
    cdef Room r
    cdef int rc
    phases_of(s, &f)
    plain = pointwise(s, &f) and q.m > s.kind.mr
    plan(&p, s, &f, x, plain and readable(s, x), step)
    lines = not p.here and by_lines(s, q.m, s.out[2])
    panels = panel_bytes(q) * s.groups if lines else 0
    if enter(&r, q.k * 8 + (w.size + s.o) * item + panels + p.bytes, call):
        return TF_ENOMEM
    q.off = off = <int64_t *>carve(&r.next, q.k * 8)
    for i in range(q.k):
        off[i] = i // s.taps * p.plane + (0 if p.here else tap_offset(s, &f, i % s.taps))
    weights(q, w, &r)
    if bias != NULL:
        q.bias = carve(&r.next, s.o * item)
        s.kind.widen(s.dtype, bias.data, bias.strides[0], s.o, <void *>q.bias)
    if lines:
        q.panels = carve(&r.next, panels)
    dense_steps(s.out, q.cols.dst + 1)
    columns(&q.cols, s.out, p.step)
    q.src_group = s.cg * p.plane
    rc = run_chunks(q, &p, x, y, &r)
    scratch_pop(r.bytes)
    return rc


cdef int conv(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call) noexcept nogil:
    """x, w, bias?"""
    cdef int rc
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef const tf_view *bias = inputs[2] if n > 2 and not inputs[2].flags & TF_ABSENT else NULL
    cdef tf_view *y = outputs[0]
    cdef Shape s
    cdef Job q
    if not takes(x, w):
        return TF_EUNSUPPORTED
    if y.size == 0:
        return TF_OK
    describe(&s, x.ndim - 2, x.dtype, &x.shape[2], &w.shape[2], &y.shape[2], at)
    channels(&s, x.shape[0], x.shape[1], w.shape[0])
    if not call.mode & TF_DETERMINISTIC and winograd_pays(&s, False) \
            and winograd(&s, False, x, w, bias, y) == TF_OK:
        return TF_OK
    if depthwise_pays(&s):
        if lies_across(x):
            rc = straightened(conv, inputs, n, 0, outputs, at, call)
            if rc != NO_ROOM:
                return rc
        return depthwise(&s, x, w, bias, y, call)
    memset(&q, 0, sizeof(Job))
    q.s, q.m, q.k = &s, s.og, s.cg * s.taps
    q.w_step, q.w_group = q.k, s.og * q.k
    q.y_group, q.y_row = s.og * s.places, s.places
    return forward(&q, x, w, bias, y, call)


cdef enum:
    SQUARES = 64                      # taps up to which kernels are turned by squares


cdef void turn_squares(const tf_view *w, const Shape *s, char *to) noexcept nogil:
    """w, whose kernels are dense, as [channel of y][tap][channel of x]: some channels at a time are a panel."""
    cdef int64_t item = s.kind.itemsize, nr = s.kind.nr, row = s.taps * item, o, c, some, tap, r
    cdef char panel[SQUARES * 128]
    cdef const void *rows[64]
    cdef bint beyond
    for o in range(s.o):
        c = 0
        while c < s.cg:
            some = min(nr, s.cg - c)
            for r in range(some):
                rows[r] = w.data + o * w.strides[0] * item + (c + r) * w.strides[1] * item
            # past a kernel lie others, but for the last ones
            beyond = w.flags & TF_CONTIGUOUS and (o * s.cg + c + some) * s.taps + s.kind.lanes <= w.size
            s.kind.pack_rows(rows, some, s.taps, panel, 1, beyond)
            for tap in range(s.taps):
                memcpy(to + tap * s.cg * item + c * item, panel + tap * nr * item, some * item)
            c += some
        to += s.cg * row


cdef char *turned(const tf_view *w, const Shape *s, Room *r) noexcept nogil:
    """w as accumulators [channel of y][tap][channel of x]: panels are packed by dense moves."""
    cdef char *to = carve(&r.next, (w.size + SLACK) * s.kind.itemsize)
    cdef char *next = to
    cdef int64_t o, at
    cdef int64_t i[3]
    cdef int64_t ws[3]
    if s.own and s.taps <= SQUARES and places_dense(w):
        turn_squares(w, s, to)
        return to
    three(&w.strides[2], w.ndim - 2, 0, ws)
    for o in range(s.o):
        for i[0] in range(s.kernel[0]):
            for i[1] in range(s.kernel[1]):
                for i[2] in range(s.kernel[2]):
                    at = o * w.strides[0] + i[0] * ws[0] + i[1] * ws[1] + i[2] * ws[2]
                    s.kind.widen(s.dtype, w.data + at * tf_itemsize[s.dtype], w.strides[1], s.cg,
                                 next)
                    next += s.cg * s.kind.itemsize
    return to


cdef enum:
    LARGEST = 1 << 22                 # elements of a padded image of g


# Gradient of x. Positions of x that the same taps reach form a class: in each dimension an
# arithmetic progression. A class is a product without holes, whatever stride and padding are.

cdef struct Class:
    int64_t start, count              # positions start + t * stride
    int64_t tap, taps                 # first tap, and how many, a gap apart
    int64_t at                        # the output that tap reaches from the first position


cdef int64_t tap_gap(const Shape *s, int d) noexcept nogil:
    return s.stride[d] // gcd(s.stride[d], s.dil[d])


cdef int64_t class_at(const Shape *s, int d, int64_t residue, int64_t first, int64_t t,
                      Class *c) noexcept nogil:
    """The class of position residue + t * stride; returns the t where it ends."""
    cdef int64_t r = first, gap = tap_gap(s, d), at
    cdef int64_t next = (s.size[d] - residue + s.stride[d] - 1) // s.stride[d]
    c.start, c.taps = residue + t * s.stride[d], 0
    while r < s.kernel[d]:
        at = (residue + s.pad[d] - r * s.dil[d]) // s.stride[d] + t
        if 0 <= at < s.out[d]:
            if c.taps == 0:
                c.tap, c.at = r, at
            c.taps += 1
            next = min(next, t + s.out[d] - at)       # here the tap leaves
        elif at < 0:
            next = min(next, t - at)                  # here it comes in
        r += gap
    c.count = next - t
    return next


cdef inline int64_t first_tap(const Shape *s, int d, int64_t residue, int64_t tries) noexcept nogil:
    """The first of `tries` taps that reaches places of this residue, or `tries`."""
    cdef int64_t first = 0
    while first < tries and (residue + s.pad[d] - first * s.dil[d]) % s.stride[d]:
        first += 1
    return first


cdef int classes_of(const Shape *s, int d, Class *to) noexcept nogil:
    """Classes of dimension d that some tap reaches, 2 * kernel + residues at most."""
    cdef int64_t residue, first, t, stop, tries = min(tap_gap(s, d), s.kernel[d])
    cdef int n = 0
    for residue in range(min(s.stride[d], s.size[d])):
        first = first_tap(s, d, residue, tries)
        if first == tries:
            continue
        stop = (s.size[d] - residue + s.stride[d] - 1) // s.stride[d]
        t = 0
        while t < stop:
            t = class_at(s, d, residue, first, t, &to[n])
            n += to[n].taps > 0
    return n


cdef void class_job(Job *q, const Class *const *c, const int64_t *step, int64_t plane, int64_t *off,
                    int64_t *w_off) noexcept nogil:
    """Offsets and columns of one class; step and plane are those of g."""
    cdef const Shape *s = q.s
    cdef int64_t count[3]
    cdef int64_t x_step[3]
    cdef int64_t i[3]
    cdef int64_t gap[3]
    cdef int64_t o, at, tap, n = 0, each
    cdef int d
    dense_steps(s.size, x_step)
    q.cols.base = 0
    for d in range(3):
        count[d] = c[d].count
        q.cols.dst[1 + d] = x_step[d] * s.stride[d]
        q.cols.base += c[d].start * x_step[d]
        gap[d] = tap_gap(s, d)
    columns(&q.cols, count, step)
    for i[0] in range(c[0].taps):
        for i[1] in range(c[1].taps):
            for i[2] in range(c[2].taps):
                at, tap = 0, 0
                for d in range(3):
                    at += (c[d].at - i[d] * gap[d] * s.dil[d] // s.stride[d]) * step[d]
                    tap = tap * s.kernel[d] + c[d].tap + i[d] * gap[d]
                off[n], w_off[n] = at, tap * s.cg
                n += 1
    each, q.k = n, n * s.og
    for o in range(1, s.og):          # channels are as the first
        for tap in range(each):
            off[n], w_off[n] = off[tap] + o * plane, w_off[tap] + o * s.taps * s.cg
            n += 1


cdef struct Classes:
    Class *list[3]
    int count[3]


cdef int64_t class_bytes(const Shape *s, int d) noexcept nogil:
    return (2 * s.kernel[d] + min(s.stride[d], s.size[d])) * sizeof(Class)


cdef int run_classes(Job *q, const Classes *all, Reading *p, const tf_view *g, tf_view *x,
                     char *room) noexcept nogil:
    """gx in chunks of images, class by class."""
    cdef const Shape *s = q.s
    cdef const Class *c[3]
    cdef int64_t i = 0, j, n1 = all.count[1], n2 = all.count[2]
    cdef int rc = TF_OK
    q.cols.src[0], q.cols.dst[0] = p.image, s.c * s.area
    while i < s.n and rc == TF_OK:
        q.cols.count[0] = min(p.images, s.n - i)
        q.src = chunk(p, g, i, q.cols.count[0], room)
        q.y = x.data + i * s.c * s.area * tf_itemsize[s.dtype]
        for j in range(all.count[0] * n1 * n2):
            c[0] = &all.list[0][j // n2 // n1]
            c[1] = &all.list[1][j // n2 % n1]
            c[2] = &all.list[2][j % n2]
            class_job(q, c, p.step, p.plane, <int64_t *>q.off, <int64_t *>q.w_off)
            rc = rc or run_job(q)
        i += p.images
    return rc


# With zeros beside g, all positions of a residue are one class.

cdef int64_t lowest(const Shape *s, int d) noexcept nogil:
    """The first place of g, or of the zeros before it, that a tap reaches."""
    cdef int64_t at = s.pad[d] - (s.kernel[d] - 1) * s.dil[d]
    return at // s.stride[d] if at >= 0 else -((-at + s.stride[d] - 1) // s.stride[d])


cdef int whole_classes(const Shape *s, int d, Class *to) noexcept nogil:
    """Classes of dimension d in a copy of g that begins with the lowest place."""
    cdef int64_t residue, first, gap = tap_gap(s, d), tries = min(gap, s.kernel[d])
    cdef int n = 0
    for residue in range(min(s.stride[d], s.size[d])):
        first = first_tap(s, d, residue, tries)
        if first == tries:
            continue
        to[n].start, to[n].count = residue, (s.size[d] - residue + s.stride[d] - 1) // s.stride[d]
        to[n].tap, to[n].taps = first, (s.kernel[d] - first + gap - 1) // gap
        to[n].at = (residue + s.pad[d] - first * s.dil[d]) // s.stride[d] - lowest(s, d)
        n += 1
    return n


cdef bint padding_pays(const Shape *s) noexcept nogil:
    """Whether most taps reach an output, so that few products with zeros beside g are the least work, and images of g
    are not so large that a copy of one is much."""
    cdef double all = 1, reached = 1, here, image = s.o
    cdef int64_t r, first, last
    cdef int d
    if s.taps == 1:
        return False
    for d in range(3):
        here = 0
        if s.kernel[d] > 64 or s.stride[d] > s.kernel[d] or (s.stride[d] > 1 and s.dil[d] > 1):
            return False
        for r in range(s.kernel[d]):
            # outputs whose place of this tap lies inside x
            first = max(<int64_t>0, (s.pad[d] - r * s.dil[d] + s.stride[d] - 1) // s.stride[d])
            last = (s.size[d] - 1 + s.pad[d] - r * s.dil[d]) // s.stride[d] + 1
            here += max(<int64_t>0, min(s.out[d], last) - first)
        all *= <double>s.size[d] * s.kernel[d] / s.stride[d]
        reached *= here
        image *= s.size[d] // s.stride[d] + (s.kernel[d] - 1) * s.dil[d]
    return reached >= 0.7 * all and image <= LARGEST


cdef int backward(Job *q, const tf_view *g, const tf_view *w, tf_view *x, tf_call *call,
                  bint padded) noexcept nogil:
    """Tables, panels and classes of gx; x is zero already where no tap reaches; padded: with zeros beside g."""
    cdef const Shape *s = q.s
    cdef Shape flat = s[0]            # of the copy of g
    cdef int64_t item = s.kind.itemsize, k = s.og * s.taps, bytes = 0, panels
    cdef int64_t step[3]
    cdef bint lines = by_lines(s, q.m, s.size[2] // s.stride[2])
    cdef Classes all
    cdef Phases f
    cdef Reading p
    cdef Room r
    cdef int d, rc
    for d in range(3):
        flat.size[d], flat.stride[d], flat.kernel[d], flat.pad[d], flat.dil[d] = s.out[d], 1, 1, 0, 1
        if padded:
            flat.pad[d] = -lowest(s, d)
            flat.out[d] = (s.size[d] - 1 + s.pad[d]) // s.stride[d] - lowest(s, d) + 1
        bytes += class_bytes(s, d) + 64
    phases_of(&flat, &f)
    plan(&p, &flat, &f, g, readable(s, g) and not lines and not padded, step)
    panels = panel_bytes(q) * s.groups if lines else 0
    if enter(&r, bytes + k * 16 + (w.size + SLACK) * item + panels + p.bytes, call):
        return backward(q, g, w, x, call, False) if padded else TF_ENOMEM
    for d in range(3):
        all.list[d] = <Class *>carve(&r.next, class_bytes(s, d))
        all.count[d] = (whole_classes if padded else classes_of)(s, d, all.list[d])
    q.off = <int64_t *>carve(&r.next, k * 8)
    q.w_off = <int64_t *>carve(&r.next, k * 8)
    q.w, q.w_dtype = turned(w, s, &r), TF_F64 if s.dtype == TF_F64 else TF_F32
    if padded and not finite(q.w, w.size, q.w_dtype == TF_F64):
        scratch_pop(r.bytes)
        return backward(q, g, w, x, call, False)
    if lines:
        q.panels = carve(&r.next, panels)
    q.src_group = s.og * p.plane
    rc = run_classes(q, &all, &p, g, x, r.next)
    scratch_pop(r.bytes)
    return rc


cdef int conv_grad_input(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call) noexcept nogil:
    """g, w."""
    cdef const tf_view *g = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef tf_view *x = outputs[0]
    cdef Shape s
    cdef Job q
    cdef int rc
    if not takes(g, w):
        return TF_EUNSUPPORTED
    if x.size == 0 or g.size == 0:
        memset(x.data, 0, x.size * tf_itemsize[x.dtype])
        return TF_OK
    describe(&s, x.ndim - 2, x.dtype, &x.shape[2], &w.shape[2], &g.shape[2], at)
    channels(&s, x.shape[0], x.shape[1], g.shape[1])
    if not call.mode & TF_DETERMINISTIC and winograd_pays(&s, True) \
            and winograd(&s, True, g, w, NULL, x) == TF_OK:
        return TF_OK
    if not call.mode & TF_DETERMINISTIC and depthwise_input_pays(&s):
        rc = depthwise_input(&s, g, w, x, call)
        if rc != TF_EUNSUPPORTED:
            return rc
    memset(x.data, 0, x.size * tf_itemsize[x.dtype])
    memset(&q, 0, sizeof(Job))
    q.s, q.m, q.k = &s, s.cg, s.og * s.taps
    q.w_step, q.w_group = 1, s.og * s.cg * s.taps
    q.y_group, q.y_row = s.cg * s.area, s.area
    return backward(&q, g, w, x, call, not call.mode & TF_DETERMINISTIC and padding_pays(&s))


KERNELS = {
    "conv": kernel_capsule(conv), "conv_grad_input": kernel_capsule(conv_grad_input),
    "conv_grad_weight": kernel_capsule(conv_grad_weight),
}
