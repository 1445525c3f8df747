"""Spatial axes: one, two or three of them as three, the missing ones first and of size one."""
from libc.stdint cimport int64_t

from tinyfin.core.abi cimport *


cdef inline void three(const int64_t *values, int nd, int64_t fill, int64_t *to) noexcept nogil:
    """nd values as the last of three."""
    cdef int i
    for i in range(3):
        to[i] = values[i - (3 - nd)] if i >= 3 - nd else fill


cdef inline int64_t volume(const int64_t *v) noexcept nogil:
    return v[0] * v[1] * v[2]


cdef inline void dense_steps(const int64_t *size, int64_t *to) noexcept nogil:
    """Row-major steps of three sizes."""
    to[0], to[1], to[2] = size[1] * size[2], size[2], 1


cdef inline bint places_dense(const tf_view *v) noexcept nogil:
    """Whether the places of a channel, which are on all axes but two, lie one after the other."""
    cdef int64_t size = 1
    cdef int d
    for d in range(v.ndim - 1, 1, -1):
        if v.shape[d] != 1 and v.strides[d] != size:
            return False
        size *= v.shape[d]
    return True


cdef struct Planes:
    # the last nd axes of a tensor, as three
    const tf_view *v
    int64_t size[3]
    int64_t step[3]
    int nd


cdef inline void planes_of(Planes *p, const tf_view *v, int nd) noexcept nogil:
    p.v, p.nd = v, nd
    three(&v.shape[v.ndim - nd], nd, 1, p.size)
    three(&v.strides[v.ndim - nd], nd, 0, p.step)


cdef inline void flat(Planes *p, const tf_view *v, int nd) noexcept nogil:
    """A result, whose strides need not be set yet."""
    p.v, p.nd = v, nd
    three(&v.shape[v.ndim - nd], nd, 1, p.size)
    p.step[0], p.step[1], p.step[2] = p.size[1] * p.size[2], p.size[2], 1


cdef inline char *plane_at(const Planes *p, int64_t plane) noexcept nogil:
    """First element of a plane."""
    cdef int64_t at = 0
    cdef int i
    for i in range(p.v.ndim - p.nd - 1, -1, -1):
        at += plane % p.v.shape[i] * p.v.strides[i]
        plane //= p.v.shape[i]
    return p.v.data + at * tf_itemsize[p.v.dtype]


cdef inline char *result_at(const Planes *p, int64_t plane) noexcept nogil:
    return p.v.data + plane * volume(p.size) * tf_itemsize[p.v.dtype]


cdef inline int64_t count(const tf_view *v, int nd) noexcept nogil:
    cdef int64_t n = 1
    cdef int i
    for i in range(v.ndim - nd):
        n *= v.shape[i]
    return n
