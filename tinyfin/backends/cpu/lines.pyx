"""Copies, fills and range checks of strided elements, split over threads where they are large."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.threads cimport parallel_for

cdef enum:
    GRAIN = 1 << 15   # elements of one task


cdef void copy_typed(bits *y, int64_t ystep, const bits *x, int64_t xstep,
                     int64_t n) noexcept nogil:
    cdef int64_t i
    cdef bits v
    if ystep == 1 and xstep == 0:
        v = x[0]
        for i in range(n):
            y[i] = v
    elif ystep == 1:
        for i in range(n):
            y[i] = x[i * xstep]
    elif xstep == 1:
        for i in range(n):
            y[i * ystep] = x[i]
    else:
        for i in range(n):
            y[i * ystep] = x[i * xstep]


cdef void copy_items(char *y, int64_t ystep, const char *x, int64_t xstep, int64_t n,
                     int item) noexcept nogil:
    """n elements, each `step` elements further."""
    if n <= 0:
        return
    if ystep == 1 and xstep == 1:
        memcpy(y, x, n * item)
    elif item == 4:
        copy_typed(<uint32_t *>y, ystep, <const uint32_t *>x, xstep, n)
    elif item == 8:
        copy_typed(<uint64_t *>y, ystep, <const uint64_t *>x, xstep, n)
    elif item == 2:
        copy_typed(<uint16_t *>y, ystep, <const uint16_t *>x, xstep, n)
    else:
        copy_typed(<uint8_t *>y, ystep, <const uint8_t *>x, xstep, n)


cdef void fill_items(char *y, int64_t ystep, const char *value, int64_t n, int item) noexcept nogil:
    """The element at `value`, n times."""
    cdef uint64_t v = 0
    memcpy(&v, value, item)
    if ystep == 1 and (v == 0 or item == 1):
        memset(y, <int>(v & 255), n * item)
    else:
        copy_items(y, ystep, value, 0, n, item)


cdef void gather_run(char *y, const char *x, const Axes *a, int64_t place, int64_t n,
                     int item) noexcept nogil:
    """n elements of operand 0 from a place of its walk on, side by side in y."""
    cdef int last = a.nd - 1
    cdef int64_t run, done = 0
    if last < 0:
        memcpy(y, x, item)
        return
    while done < n:
        run = min(n - done, a.shape[last] - (place + done) % a.shape[last])
        copy_items(y + done * item, 1, x + offset(a, 0, place + done) * item, a.s[0][last], run,
                   item)
        done += run


cdef void scatter_run(char *y, const char *x, const Axes *a, int64_t place, int64_t n,
                      int item) noexcept nogil:
    """The reverse: n neighbours in x to operand 0."""
    cdef int last = a.nd - 1
    cdef int64_t run, done = 0
    if last < 0:
        memcpy(y, x, item)
        return
    while done < n:
        run = min(n - done, a.shape[last] - (place + done) % a.shape[last])
        copy_items(y + offset(a, 0, place + done) * item, a.s[0][last], x + done * item, 1, run,
                   item)
        done += run


cdef struct Copy:
    Axes a
    char *y
    const char *x
    int64_t runs, group, inner
    int item


cdef void copy_group(int64_t t, void *ctx) noexcept nogil:
    """Some runs of the last axis; a walk of one axis is cut into parts of it."""
    cdef const Copy *c = <const Copy *>ctx
    cdef const Axes *a = &c.a
    cdef int64_t off[3]
    cdef int64_t r, end = min(c.runs, (t + 1) * c.group), n, i
    for r in range(t * c.group, end):
        i = r * c.inner if a.nd == 1 else 0
        n = min(c.inner, a.shape[a.nd - 1] - i)
        offsets(a, i if a.nd == 1 else r * c.inner, off)
        copy_items(c.y + off[0] * c.item, a.s[0][a.nd - 1], c.x + off[1] * c.item, a.s[1][a.nd - 1],
                   n, c.item)


cdef void copy_view(tf_view *y, const tf_view *x) noexcept nogil:
    """x to y, of one shape and dtype; nothing where they are the same window."""
    cdef Copy c
    cdef int k
    cdef int64_t n = y.size
    cdef bint same = y.data == x.data
    c.a.nd, c.item = 0, tf_itemsize[y.dtype]
    for k in range(y.ndim):
        same = same and (y.shape[k] == 1 or y.strides[k] == x.strides[k])
        push(&c.a, y.shape[k], y.strides[k], x.strides[k], 0)
    if n == 0 or same:
        return
    c.y, c.x = y.data, x.data
    if c.a.nd == 0:
        memcpy(c.y, c.x, c.item)
        return
    c.inner = c.a.shape[c.a.nd - 1]
    if c.a.nd == 1:
        c.inner = min(c.inner, GRAIN)
    c.runs = (n + c.inner - 1) // c.inner
    c.group = max(1, GRAIN // c.inner)
    parallel_for((c.runs + c.group - 1) // c.group, 0.03 * c.item * n, copy_group, &c)


cdef void fill_view(tf_view *y, const char *value) noexcept nogil:
    """One value in all places."""
    cdef tf_view v
    cdef int k
    if y.size == 0:
        return
    if y.flags & TF_CONTIGUOUS:
        fill_items(y.data, 1, value, y.size, tf_itemsize[y.dtype])
        return
    v.data = <char *>value
    for k in range(y.ndim):
        v.strides[k] = 0
    copy_view(y, &v)
