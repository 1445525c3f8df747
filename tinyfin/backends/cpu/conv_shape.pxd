"""Geometry of convolutions: sizes, padded copies, columns of a product as runs of positions.

One, two and three spatial dimensions are treated as three; those that are missing come first and
have size one. `Shape` describes y = conv(x, w) for all three products made of x, w and y.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.gemm cimport gemm_kind
from tinyfin.backends.cpu.gemm_loops cimport tf_fill, tf_gemm_kind
from tinyfin.backends.cpu.spatial cimport *
from tinyfin.core.abi cimport *


cdef struct Shape:
    const tf_gemm_kind *kind
    int dtype
    bint own                          # elements are accumulators
    int64_t n, c, o, groups, cg, og   # images, channels of x and of y, also per group
    int64_t size[3]                   # spatial sizes of x
    int64_t kernel[3]
    int64_t out[3]                    # spatial sizes of y
    int64_t stride[3]
    int64_t pad[3]
    int64_t dil[3]
    int64_t area, taps, places        # elements of a plane of x, of w, of y


cdef struct Columns:
    # columns j = (image, position) of a product, in row-major order
    int64_t count[4]                  # images, then positions in each dimension
    int64_t src[4]                    # elements from one to the next in the source; src[3] == 1
    int64_t dst[4]                    # and in the result
    int64_t base                      # of the first column in the result


cdef inline void describe(Shape *s, int nd, int dtype, const int64_t *size, const int64_t *kernel,
                          const int64_t *out, const tf_attrs *at) noexcept nogil:
    """Spatial sizes, and the attributes stride, padding, dilation, groups.

    A step that is never taken gets a value that leaves all places in reach: with one output the
    stride may have any, with one tap the dilation.
    """
    cdef int d
    s.kind, s.dtype = gemm_kind(dtype), dtype
    s.own = dtype == TF_F32 or dtype == TF_F64
    three(size, nd, 1, s.size)
    three(kernel, nd, 1, s.kernel)
    three(out, nd, 1, s.out)
    three(&at.i[0], nd, 1, s.stride)
    three(&at.i[3], nd, 0, s.pad)
    three(&at.i[6], nd, 1, s.dil)
    s.groups = at.i[9]
    for d in range(3):
        if s.kernel[d] == 1:
            s.dil[d] = 1
        if s.out[d] == 1:
            s.stride[d] = min(s.stride[d], s.dil[d] * (s.kernel[d] - 1) + 1)
    s.area, s.taps, s.places = volume(s.size), volume(s.kernel), volume(s.out)


cdef inline void channels(Shape *s, int64_t n, int64_t c, int64_t o) noexcept nogil:
    s.n, s.c, s.o, s.cg, s.og = n, c, o, c // s.groups, o // s.groups


cdef inline void columns(Columns *c, const int64_t *count, const int64_t *src) noexcept nogil:
    """Positions of one image, with their steps in the source; dst is there already. Merges axes."""
    cdef int d
    for d in range(3):
        c.count[1 + d], c.src[1 + d] = count[d], src[d]
    c.src[3] = 1
    for d in range(2, 0, -1):
        if c.src[d] == c.count[3] and c.dst[d] == c.count[3] * c.dst[3]:
            c.count[3] *= c.count[d]
            c.count[d] = 1
        elif c.count[d] != 1:
            break


cdef inline int64_t total(const Columns *c) noexcept nogil:
    return c.count[0] * c.count[1] * c.count[2] * c.count[3]


cdef inline int runs_of(const Columns *c, int64_t j, int64_t n, int64_t *src,
                        int64_t *dst) noexcept nogil:
    """Columns j to j + n as runs: (start, length) pairs in the source, starts in the result."""
    cdef int64_t t3 = j % c.count[3], t2, t1, t0, some
    cdef int r = 0
    j //= c.count[3]
    t2 = j % c.count[2]
    j //= c.count[2]
    t1 = j % c.count[1]
    t0 = j // c.count[1]
    while n > 0:
        some = min(n, c.count[3] - t3)
        src[2 * r] = t0 * c.src[0] + t1 * c.src[1] + t2 * c.src[2] + t3
        src[2 * r + 1] = some
        dst[r] = c.base + t0 * c.dst[0] + t1 * c.dst[1] + t2 * c.dst[2] + t3 * c.dst[3]
        r += 1
        n -= some
        t3 = 0
        t2 += 1
        if t2 == c.count[2]:
            t2 = 0
            t1 += 1
            if t1 == c.count[1]:
                t1 = 0
                t0 += 1
    return r


# Padded copies. With a stride, positions of x that lie a whole number of strides apart become
# neighbours: a plane is split into phases, each tap reads one of them, and columns are dense. Only
# phases that a tap reads are there, so a large stride costs nothing.

cdef struct Phases:
    int64_t used[3]                   # phases per dimension: tap r reads phase r mod used
    int64_t size[3]                   # positions of one phase
    int64_t step[3]                   # elements from one output position to the next
    int64_t plane                     # elements of all phases


cdef inline int64_t gcd(int64_t a, int64_t b) noexcept nogil:
    while b:
        a, b = b, a % b
    return a


cdef inline void phases_of(const Shape *s, Phases *f) noexcept nogil:
    """Tap r reads places that are r * dilation mod stride, which comes again with some period."""
    cdef int d
    for d in range(3):
        f.used[d] = min(s.kernel[d], s.stride[d] // gcd(s.stride[d], s.dil[d]))
        f.size[d] = s.out[d] + (s.kernel[d] - 1) * s.dil[d] // s.stride[d]
    f.step[0], f.step[1], f.step[2] = f.size[1] * f.size[2], f.size[2], 1
    f.plane = volume(f.used) * volume(f.size)


cdef inline bint pointwise(const Shape *s, const Phases *f) noexcept nogil:
    """Whether y's positions are x's, so that planes are columns already: a stride with padding may give as many."""
    return s.taps == 1 and f.plane == s.places == s.area and not s.pad[0] | s.pad[1] | s.pad[2]


cdef inline int64_t tap_offset(const Shape *s, const Phases *f, int64_t tap) noexcept nogil:
    """Where in a plane the tap reads for output position zero."""
    cdef int64_t r[3]
    cdef int64_t phase = 0, at = 0
    cdef int d
    r[2] = tap % s.kernel[2]
    r[1] = tap // s.kernel[2] % s.kernel[1]
    r[0] = tap // s.kernel[2] // s.kernel[1]
    for d in range(3):
        phase = phase * f.used[d] + r[d] % f.used[d]
        at = at * f.size[d] + r[d] * s.dil[d] // s.stride[d]
    return phase * volume(f.size) + at


cdef inline int64_t phase_start(const Shape *s, int d, int64_t phase) noexcept nogil:
    """The place in x, or in its padding, of a phase's first position."""
    return (phase * s.dil[d] % s.stride[d] if phase else 0) - s.pad[d]


cdef inline void inside(const Shape *s, const Phases *f, int d, int64_t shift, int64_t *first,
                        int64_t *last) noexcept nogil:
    """Positions first to last of a phase of dimension d, which starts at `shift`, lie inside x."""
    cdef int64_t stride = s.stride[d]
    first[0] = min((-shift + stride - 1) // stride, f.size[d]) if shift < 0 else 0
    last[0] = max(first[0], min(f.size[d], (s.size[d] - shift + stride - 1) // stride))


cdef struct Phase:
    # where one lies in x: places and elements of its first position, positions that lie inside, rows of them
    int64_t at[3]
    int64_t first[3]
    int64_t last[3]
    tf_fill row


cdef inline void phase_of(const Shape *s, const Phases *f, const int64_t *phase, const int64_t *xs, Phase *p) noexcept nogil:
    cdef int d
    for d in range(3):
        p.at[d] = phase_start(s, d, phase[d])
        inside(s, f, d, p.at[d], &p.first[d], &p.last[d])
        p.at[d] += p.first[d] * s.stride[d]
    if p.first[1] == p.last[1] or p.first[2] == p.last[2]:
        p.last[0] = p.first[0]
    p.row.before, p.row.n, p.row.after = p.first[2], p.last[2] - p.first[2], f.size[2] - p.last[2]
    p.row.step, p.row.row, p.row.dtype = s.stride[2] * xs[2], s.stride[1] * xs[1], s.dtype


cdef inline void zero(char *to, int64_t before, int64_t all, int64_t after) noexcept nogil:
    """The first and the last of some bytes."""
    if before:
        memset(to, 0, before)
    if after:
        memset(to + all - after, 0, after)


cdef inline void fill_phase(const Shape *s, const Phases *f, const Phase *p, const Phase *other, const char *x,
                            const int64_t *xs, char *to, char *beside, bint first) noexcept nogil:
    """One phase of a plane: zeros where it lies outside x. If there is another, whose rows are the odd elements where
    this one's are the even ones, that too."""
    cdef int64_t row = f.size[2] * s.kind.itemsize, sheet = f.size[1] * row, before = p.first[1] * row, q0
    cdef int64_t after = (f.size[1] - p.last[1]) * row
    cdef const char *from_
    for q0 in range(f.size[0]):
        if p.first[0] <= q0 < p.last[0]:
            from_ = x + ((p.at[0] + (q0 - p.first[0]) * s.stride[0]) * xs[0] + p.at[1] * xs[1] + p.at[2] * xs[2]) \
                * tf_itemsize[s.dtype]
            if first:
                zero(to, before, sheet, after)
            if first and other != NULL:
                zero(beside, before, sheet, after)
            if other != NULL:
                s.kind.fill_halves(&p.row, &other.row, from_, p.last[1] - p.first[1], to + before, beside + before)
            else:
                s.kind.fill(&p.row, from_, p.last[1] - p.first[1], to + before)
        elif first:
            zero(to, sheet, sheet, 0)
            if other != NULL:
                zero(beside, sheet, sheet, 0)
        to += sheet
        beside += sheet


cdef enum:
    READY = 16                        # phases that are kept from one plane to the next


cdef inline void fill_next(const Shape *s, const Phases *f, const char *x, const int64_t *xs, char *to,
                           Phase *ready, bint first) noexcept nogil:
    """The same for one plane after the other: where this is not the first one in `to`, whole rows of zeros are there,
    and phases are ready, with room for two more."""
    cdef int64_t phase[3]
    cdef int64_t bytes = volume(f.size) * s.kind.itemsize
    cdef bint known = not first and volume(f.used) <= READY
    cdef Phase *p = ready
    cdef int i
    for phase[0] in range(f.used[0]):
        for phase[1] in range(f.used[1]):
            if f.used[2] == 2 and s.stride[2] == 2 and s.own and xs[2] == 1:
                for i in range(0 if known else 2):
                    phase[2] = i
                    phase_of(s, f, phase, xs, &p[i])
                if p[0].row.n > 0 and p[1].row.n > 0 and p[0].at[2] + p[1].at[2] == 1:
                    i = p[0].at[2] == 1
                    fill_phase(s, f, &p[i], &p[1 - i], x, xs, to + i * bytes, to + (1 - i) * bytes, first)
                    to += 2 * bytes
                    p += 2 if p - ready < READY else 0
                    continue
            for phase[2] in range(f.used[2]):
                if not known:
                    phase_of(s, f, phase, xs, p)
                fill_phase(s, f, p, NULL, x, xs, to, NULL, first)
                to += bytes
                p += p - ready < READY


cdef inline void fill_plane(const Shape *s, const Phases *f, const char *x, const int64_t *xs,
                            char *to) noexcept nogil:
    """The copy of one plane of x, whose strides are xs."""
    cdef Phase some[READY + 2]
    fill_next(s, f, x, xs, to, some, True)
