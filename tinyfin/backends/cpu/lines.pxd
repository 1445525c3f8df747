"""Axes, offsets and copies for kernels that walk rows, lines and slices of strided tensors.

Strides count elements. Elements are moved as bytes of `item` = 1, 2, 4 or 8: bits, never values.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from tinyfin.core.abi cimport *
from tinyfin.core.layout cimport wrapping


ctypedef fused bits:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef struct Axes:
    # up to three operands that are walked together; neighbouring axes are merged when pushed
    int nd
    int64_t shape[8]
    int64_t s[3][8]


cdef inline void push(Axes *a, int64_t size, int64_t s0, int64_t s1, int64_t s2) noexcept nogil:
    """Appends an axis inside the others, or merges it with the last where all strides allow."""
    cdef int k = a.nd - 1
    if size == 1:
        return
    if k >= 0 and a.s[0][k] == wrapping(size, s0) and a.s[1][k] == wrapping(size, s1) \
            and a.s[2][k] == wrapping(size, s2):
        a.shape[k] = wrapping(a.shape[k], size)
    else:
        a.nd += 1
        k += 1
        a.shape[k] = size
    a.s[0][k], a.s[1][k], a.s[2][k] = s0, s1, s2


cdef inline int64_t span(const Axes *a) noexcept nogil:
    """Number of places in the walk."""
    cdef int64_t n = 1
    cdef int k
    for k in range(a.nd):
        n = wrapping(n, a.shape[k])
    return n


cdef inline int64_t offset(const Axes *a, int operand, int64_t place) noexcept nogil:
    """Offset of one operand at a place of the walk, counted in row-major order."""
    cdef int64_t off = 0
    cdef int k
    for k in range(a.nd - 1, 0, -1):
        off += place % a.shape[k] * a.s[operand][k]
        place //= a.shape[k]
    return off + place * a.s[operand][0] if a.nd else 0


cdef inline void offsets(const Axes *a, int64_t place, int64_t *off) noexcept nogil:
    """Offsets of all three operands at a place."""
    cdef int64_t i
    cdef int k
    off[0] = off[1] = off[2] = 0
    for k in range(a.nd - 1, -1, -1):
        i = place % a.shape[k] if k else place
        place //= a.shape[k]
        off[0] += i * a.s[0][k]
        off[1] += i * a.s[1][k]
        off[2] += i * a.s[2][k]


cdef inline bint within(int64_t i, int64_t size) noexcept nogil:
    return 0 <= i < size


cdef void gather_run(char *y, const char *x, const Axes *a, int64_t place, int64_t n,
                     int item) noexcept nogil
cdef void scatter_run(char *y, const char *x, const Axes *a, int64_t place, int64_t n,
                      int item) noexcept nogil
cdef void copy_items(char *y, int64_t ystep, const char *x, int64_t xstep, int64_t n,
                     int item) noexcept nogil
cdef void fill_items(char *y, int64_t ystep, const char *value, int64_t n, int item) noexcept nogil
