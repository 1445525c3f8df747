"""Moves of bits: how wide, from where, and what whole tensors begin with."""
from libc.stdint cimport int64_t, uint64_t

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.gpu.axes cimport Axes
from tinyfin.backends.gpu.elementwise cimport copy
from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *

cdef extern from "../cpu/reduce_loops.h" nogil:
    enum:
        TF_ACC_F32, TF_ACC_F64, TF_ACC_I64
    ctypedef void (*convert_fn)(void *y, const void *x, int64_t n) noexcept nogil
    ctypedef struct tf_reduce_table:
        convert_fn load[3][10]
        convert_fn store[10]

cdef enum:
    GROUP = 256             # invocations of a work group of the bodies that move
    QUAD = 16               # the widest unit, in bytes


cdef inline int64_t groups_of(int64_t n) noexcept nogil:
    return (n + GROUP - 1) // GROUP


cdef inline int unit_of(uint64_t together) noexcept nogil:
    """Bytes that move at once, where `together` has the bits of all addresses and distances in bytes."""
    together |= QUAD
    return <int>(together & (~together + 1))


cdef inline uint64_t steps_of(const Axes *a, int k, int item) noexcept nogil:
    """Bits of operand k's strides in bytes, of all axes but the last."""
    cdef uint64_t bits = 0
    cdef int d
    for d in range(a.ndim - 1):
        bits |= <uint64_t>(a.strides[k][d] * item)
    return bits


cdef inline void widen(Axes *a, int ratio, bint inner) noexcept nogil:
    """Counts strides in units of `ratio` elements, and the innermost axis's size too where it is what widens."""
    cdef int d, k
    if ratio == 1:
        return
    for d in range(a.ndim):
        if inner and d == a.ndim - 1:
            a.shape[d] //= ratio
            continue
        for k in range(a.nops):
            a.strides[k][d] //= ratio


cdef inline uint64_t number_bits(const tf_view *v, int dtype) noexcept:
    """A number on the host as an element of a dtype, by the CPU's conversions, repeated over eight bytes."""
    cdef const tf_reduce_table *convert = <const tf_reduce_table *>isa_table(b"reduce")
    cdef int64_t wide = 0
    cdef uint64_t value = 0
    cdef int acc = TF_ACC_F64 if dtype == TF_F64 else TF_ACC_F32 if dtype >= TF_F16 else TF_ACC_I64
    cdef int size = 8 * tf_itemsize[dtype]
    convert.load[acc][v.dtype](&wide, v.data, 1)
    convert.store[dtype](&value, &wide, 1)
    while size < 64:
        value |= value << size
        size *= 2
    return value


cdef inline int copied(const tf_view *x, tf_view *y, tf_call *call) noexcept:
    """x in y, which has its shape; where dtypes differ, converted."""
    cdef const tf_view *inputs[1]
    cdef tf_view *outputs[1]
    inputs[0], outputs[0] = x, y
    return copy(inputs, 1, outputs, NULL, call)


cdef inline int zeroed(const tf_view *y, tf_call *call) noexcept:
    """Zeros in all of a dense tensor, word by word."""
    cdef tf_view words = y[0], zero
    cdef int64_t nothing = 0, nbytes = y.size * tf_itemsize[y.dtype]
    if nbytes & 3 == 0:
        words.dtype, words.size = TF_I32, nbytes // 4
        words.offset = y.offset * tf_itemsize[y.dtype] // 4
    words.ndim, words.shape[0], words.strides[0] = 1, words.size, 1
    zero = words
    zero.ndim, zero.size, zero.dtype, zero.flags = 0, 1, TF_I64, TF_WRAPPED | TF_CONTIGUOUS
    zero.data = <char *>&nothing
    return copied(&zero, &words, call)


cdef inline object temporary(tf_view *t, const tf_view *like, int dtype):
    """A dense tensor of another one's shape in scratch memory; what is given back keeps it."""
    cdef int k
    cdef int64_t n = 1
    t[0] = like[0]
    t.dtype, t.flags, t.data = dtype, TF_CONTIGUOUS, NULL
    for k in range(t.ndim - 1, -1, -1):
        t.strides[k] = n
        n *= t.shape[k]
    block = scratch(like, n * tf_itemsize[dtype])
    t.block, t.offset, t.size = <void *><uint64_t>block.block, 0, n
    return block
