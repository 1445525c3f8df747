"""Arithmetic on views: pure functions of tf_view, without the GIL."""
from libc.stdint cimport int64_t, uint64_t

from tinyfin.core.abi cimport *


cdef inline bint same_shape(const tf_view *a, const tf_view *b) noexcept nogil:
    cdef int i
    if a.ndim != b.ndim:
        return False
    for i in range(a.ndim):
        if a.shape[i] != b.shape[i]:
            return False
    return True


cdef inline int64_t numel(const tf_view *v) noexcept nogil:
    """Product of the sizes, -1 where it is above 2^60."""
    cdef int64_t n = 1
    cdef int i
    for i in range(v.ndim):
        if v.shape[i] == 0:
            return 0
    for i in range(v.ndim):
        if (n | v.shape[i]) >> 30 and n > (<int64_t>1 << 60) // v.shape[i]:    # divides only where it may matter
            return -1
        n *= v.shape[i]
    return n


cdef inline bint countable(const tf_view *v) noexcept nogil:
    """Whether 64 bits hold the number of the elements' bytes."""
    return 0 <= v.size <= ((<uint64_t>1 << 63) - 1) // <uint64_t>tf_itemsize[v.dtype]


cdef inline unsigned int mask_of(const tf_view *x, const int64_t *dims) noexcept nogil:
    """Bit mask of a `dims` attribute; no dims at all means every axis, as in PyTorch."""
    cdef unsigned int mask = 0
    cdef int k
    if dims[0] == 0:
        return (1 << x.ndim) - 1
    for k in range(dims[0]):
        mask |= 1 << dims[1 + k]
    return mask


cdef inline int64_t wrapping(int64_t a, int64_t b) noexcept nogil:
    """The product modulo 2^64, for strides and sizes of axes that nobody follows: of one element, of none."""
    return <int64_t>(<uint64_t>a * <uint64_t>b)


cdef inline void dense_strides(tf_view *v) noexcept nogil:
    """Row-major strides without gaps; size and flags follow."""
    cdef uint64_t n = 1      # unsigned: the strides of an empty or refused shape may wrap round, nobody follows them
    cdef int i
    for i in range(v.ndim - 1, -1, -1):
        v.strides[i] = <int64_t>n
        n *= <uint64_t>v.shape[i] if v.shape[i] > 0 else 1
    v.size = numel(v)
    v.flags = TF_CONTIGUOUS


cdef inline void settle(tf_view *v) noexcept nogil:
    """Size and flags from shape and strides."""
    cdef int64_t n = 1
    cdef int i
    cdef bint dense = True
    v.size = numel(v)
    for i in range(v.ndim - 1 if v.size > 0 else -1, -1, -1):
        if v.shape[i] != 1:
            if v.strides[i] != n:
                dense = False
            n *= v.shape[i]
    v.flags = (v.flags & (TF_READONLY | TF_BATCHED)) | (TF_CONTIGUOUS if dense or v.size == 0 else 0)


cdef inline bint overlaps_itself(const tf_view *v) noexcept nogil:
    """Whether two index tuples may name the same element: a zero stride, or axes that interleave."""
    cdef int64_t span = 0, s, best
    cdef int i, _k, pick
    cdef int used = 0
    if v.size <= 1 or v.flags & TF_CONTIGUOUS:
        return False
    for _k in range(v.ndim):                      # axes by rising stride
        pick, best = -1, 0
        for i in range(v.ndim):
            s = v.strides[i] if v.strides[i] >= 0 else -v.strides[i]
            if not (used >> i) & 1 and (pick < 0 or s < best):
                pick, best = i, s
        used |= 1 << pick
        if v.shape[pick] == 1:
            continue
        if best <= span:
            return True
        span += best * (v.shape[pick] - 1)
    return False


cdef inline void extent(const tf_view *v, int64_t *low, int64_t *high) noexcept nogil:
    """First and last element touched, relative to the view's first element."""
    cdef int i
    low[0] = high[0] = 0
    for i in range(v.ndim):
        if v.strides[i] < 0:
            low[0] += v.strides[i] * (v.shape[i] - 1)
        else:
            high[0] += v.strides[i] * (v.shape[i] - 1)


cdef inline bint reshape_strides(const tf_view *x, tf_view *y) noexcept nogil:
    """Strides for y's shape over x's bytes; False where only a copy can have that shape."""
    cdef int64_t shape[8]
    cdef int64_t strides[8]
    cdef int64_t size, step
    cdef int n = 0, i, k
    if x.flags & TF_CONTIGUOUS:
        dense_strides(y)
        return True
    for i in range(x.ndim):                       # x without axes of size one, merged where they allow
        if x.shape[i] == 1:
            continue
        if n and strides[n - 1] == x.strides[i] * x.shape[i]:
            shape[n - 1] *= x.shape[i]
            strides[n - 1] = x.strides[i]
        else:
            shape[n], strides[n] = x.shape[i], x.strides[i]
            n += 1
    k = y.ndim - 1
    for i in range(n - 1, -1, -1):                # each merged axis must be cut exactly by y's axes
        size, step = 1, strides[i]
        while k >= 0 and size * y.shape[k] <= shape[i]:
            y.strides[k] = step
            step *= y.shape[k]
            size *= y.shape[k]
            k -= 1
        if size != shape[i]:
            return False
    while k >= 0:
        if y.shape[k] != 1:
            return False
        y.strides[k] = 1
        k -= 1
    return True


cdef inline void narrow_padding(const tf_view *y, const tf_attrs *at, tf_attrs *pad) noexcept nogil:
    """What narrow_embed (shape, dim, start, length) of result y is as pad_constant: with zeros before and after."""
    cdef int dim = <int>at.i[9], k = y.ndim - 1 - dim, i
    cdef int64_t start = at.i[10] + y.shape[dim] if at.i[10] < 0 else at.i[10]
    pad.i[0], pad.f[0] = 2 * (k + 1), 0.0
    for i in range(2 * k):
        pad.i[1 + i] = 0
    pad.i[1 + 2 * k], pad.i[2 + 2 * k] = start, y.shape[dim] - start - at.i[11]


cdef inline int collapse(int ndim, int64_t *shape, int64_t **strides, int n) noexcept nogil:
    """Merges neighbouring axes that every operand steps through as one; returns the new ndim."""
    cdef int i, j, out = 0
    cdef bint joins
    for i in range(ndim):
        if shape[i] == 1:
            continue
        joins = out > 0
        if joins:
            for j in range(n):
                if strides[j][out - 1] != strides[j][i] * shape[i]:
                    joins = False
                    break
        if joins:
            shape[out - 1] *= shape[i]
            for j in range(n):
                strides[j][out - 1] = strides[j][i]
        else:
            shape[out] = shape[i]
            for j in range(n):
                strides[j][out] = strides[j][i]
            out += 1
    return out
