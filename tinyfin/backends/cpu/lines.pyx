"""Copies, fills and range checks of strided elements."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset


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
