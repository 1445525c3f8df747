"""Rows for the bodies with shaders/rows.glsl: how a work group shares them, and what it keeps of them."""
from libc.stdint cimport int64_t
from libc.string cimport memset

from tinyfin.backends.gpu.axes cimport Axes, axis, merged, no_axes
from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *

cdef enum:
    ALONG, SHORT, ACROSS            # layouts of rows.glsl
    GROUP = 256                     # invocations of a work group
    BLOCK = 2048                    # elements of a block
    FEW = 128                       # rows of so many at most are short
    MOST = 1 << 22                  # elements of a row across memory
    SCANTY = 256                    # more rows than this occupy a GPU as they are


cdef struct Rows:
    # rows of up to three operands, the first of them the one that is laid out for
    int64_t count, inner, n
    int64_t outer_step[3]
    int64_t inner_step[3]
    int64_t step[3]
    int layout, teams, split, keep  # constants of rows.glsl


cdef inline int64_t magnitude(int64_t n) noexcept nogil:
    return -n if n < 0 else n


cdef inline void lay_out(Rows *r) noexcept nogil:
    """By length, and by whether the next number in memory is of the same row; in registers where they suffice."""
    r.teams = r.split = 1
    if r.inner > 1 and r.n > 1 and r.n <= MOST and magnitude(r.inner_step[0]) < magnitude(r.step[0]):
        r.layout = ACROSS
        r.keep = 0 if r.n > 256 else 32 if r.n > 128 else 16 if r.n > 64 else 8
    elif r.n <= FEW:
        r.layout, r.keep = SHORT, 16 if r.n > 64 else 8
    else:
        r.layout, r.keep = ALONG, 8 if r.n <= 512 else 16
        if r.n > 4 * BLOCK:
            r.teams, r.keep = 4, 0
        elif r.n > 2 * BLOCK:
            r.teams, r.keep = 4, 32
        elif r.n > BLOCK:
            r.teams, r.split = 2, 2
        elif r.n > BLOCK // 2:
            r.split = 2


cdef inline void lay_out_read(Rows *r) noexcept nogil:
    """The same for bodies that keep nothing."""
    lay_out(r)
    if r.layout == ALONG and r.n <= BLOCK:
        r.teams = 1
    r.split, r.keep = 1, 0


cdef inline bint scanty(const Rows *r) noexcept nogil:
    """Whether there are so few rows, and so long ones, that several work groups share each: the same rule for all
    devices."""
    return r.n > 4 * BLOCK and 0 < r.count <= min(r.n // 128, <int64_t>SCANTY)


cdef inline void lay_out_blocks(Rows *r) noexcept nogil:
    """For rows of which teams of 64 take a block each."""
    r.layout, r.teams, r.split, r.keep = ALONG, 1, 1, 0


cdef inline int64_t lanes(const Rows *r) noexcept nogil:
    """Invocations of a row."""
    return 64 * r.teams * r.split if r.layout == ALONG else 8


cdef inline void no_steps(Rows *r, int64_t count) noexcept nogil:
    """Rows, of which the length is set, where there are no elements."""
    cdef int64_t n = r.n
    memset(r, 0, sizeof(Rows))
    r.count, r.n, r.inner = count, n, max(count, 1)
    lay_out(r)


cdef inline bint rows_along(Rows *r, int nops, const tf_view *const *views, int dim) noexcept nogil:
    """Rows along one axis; False where the others do not merge into two."""
    cdef Axes a
    cdef int k, d, ndim = views[0].ndim
    cdef int64_t s[4]
    no_axes(&a, nops)
    s[3] = 0
    for d in range(ndim):
        if d != dim:
            for k in range(3):
                s[k] = views[k].strides[d] if k < nops else 0
            axis(&a, views[0].shape[d], s[0], s[1], s[2])
    r.n = views[0].shape[dim] if ndim else 1
    if r.n == 0 or a.count == 0:
        no_steps(r, a.count)
        return True
    for k in range(3):
        r.step[k] = views[k].strides[dim] if ndim and k < nops else 0
    return rows_of(r, &a)


cdef inline bint rows_of(Rows *r, Axes *a) noexcept nogil:
    """The axes that are left as two, for rows of which length and steps are set."""
    cdef int k
    r.count = a.count
    if not merged(a) or a.ndim > 2:
        return False
    r.inner = a.shape[a.ndim - 1] if a.ndim else 1
    for k in range(3):
        r.inner_step[k] = a.strides[k][a.ndim - 1] if a.ndim and k < a.nops else 0
        r.outer_step[k] = a.strides[k][0] if a.ndim == 2 and k < a.nops else 0
    lay_out(r)
    return True


cdef inline int64_t groups_of(const Rows *r) noexcept nogil:
    """Work groups for all rows."""
    cdef int64_t each = GROUP // lanes(r)
    return (r.count + each - 1) // each


cdef inline void row_constants(tf_launch *l, int k, const Rows *r) noexcept nogil:
    """LAYOUT TEAMS SPLIT KEEP FULL, from constant k on"""
    constant(l, k, r.layout)
    constant(l, k + 1, r.teams)
    constant(l, k + 2, r.split)
    constant(l, k + 3, r.keep)
    constant(l, k + 4, r.n == r.keep * lanes(r))


cdef inline void row_words(tf_launch *l, const Rows *r) noexcept nogil:
    """rows; n; inner; outer_step[3]; inner_step[3]; step[3]"""
    cdef int k
    word(l, r.count)
    word(l, r.n)
    word(l, r.inner)
    for k in range(3):
        word(l, r.outer_step[k])
    for k in range(3):
        word(l, r.inner_step[k])
    for k in range(3):
        word(l, r.step[k])


cdef inline bint trailing_rows(Rows *r, int nops, const tf_view *const *views, int count) noexcept nogil:
    """Rows over the last `count` axes, of up to three operands; False where they do not merge."""
    cdef Axes rows, along
    cdef int k, d, ndim = views[0].ndim
    cdef int64_t s[4]
    s[3] = 0
    no_axes(&rows, nops)
    no_axes(&along, nops)
    for d in range(ndim):
        for k in range(3):
            s[k] = views[k].strides[d] if k < nops else 0
        axis(&along if d >= ndim - count else &rows, views[0].shape[d], s[0], s[1], s[2])
    r.n = along.count
    for k in range(3):
        r.step[k] = 1
    if r.n == 0 or rows.count == 0:
        no_steps(r, rows.count)
    else:
        if not merged(&along) or along.ndim > 1:
            return False
        for k in range(nops if along.ndim else 0):
            r.step[k] = along.strides[k][0]
        return rows_of(r, &rows)
    return True
