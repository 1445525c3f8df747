"""Axes that a dispatch walks: merged, at most four, as words for tf_unravel and tf_dot of common.glsl."""
from libc.stdint cimport int64_t

from tinyfin.backends.gpu.launch cimport tf_launch, word
from tinyfin.core.layout cimport collapse

cdef enum:
    WALKED = 4


cdef struct Axes:
    int ndim, nops
    int64_t count                   # places
    int64_t shape[8]
    int64_t strides[4][8]           # of each operand, in elements


cdef inline void no_axes(Axes *a, int nops) noexcept nogil:
    a.ndim, a.nops, a.count = 0, nops, 1


cdef inline void axis(Axes *a, int64_t size, int64_t s0, int64_t s1=0, int64_t s2=0, int64_t s3=0) noexcept nogil:
    """One more axis, inside the ones before it."""
    a.shape[a.ndim] = size
    a.strides[0][a.ndim], a.strides[1][a.ndim], a.strides[2][a.ndim], a.strides[3][a.ndim] = s0, s1, s2, s3
    a.ndim += 1
    a.count *= size


cdef inline bint merged(Axes *a) noexcept nogil:
    """Neighbours that all operands walk as one become one; False where more than four stay."""
    cdef int64_t *strides[4]
    cdef int k
    for k in range(a.nops):
        strides[k] = a.strides[k]
    a.ndim = collapse(a.ndim, a.shape, strides, a.nops)
    return a.ndim <= WALKED and a.count < <int64_t>1 << 31


cdef inline void shape_words(tf_launch *l, const Axes *a) noexcept nogil:
    """Three words: the sizes of all axes but the outermost of four; 1 where there are fewer."""
    cdef int d
    for d in range(1, WALKED):
        word(l, a.shape[d - (WALKED - a.ndim)] if d >= WALKED - a.ndim else 1)


cdef inline void stride_words(tf_launch *l, const Axes *a, int k) noexcept nogil:
    """Four words: operand k's strides, outermost first."""
    cdef int d
    for d in range(WALKED):
        word(l, a.strides[k][d - (WALKED - a.ndim)] if d >= WALKED - a.ndim else 0)
