"""Random fills and dropout: Philox counters, so that element i depends on seed, draw and i alone.

The words, and what is made of them, are those of the CPU (backends/cpu/random.pyx).
"""
from libc.math cimport ceil
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport collapse

from tinyfin.backends.gpu.modules import shader

cdef enum:
    UNIFORM, NORMAL, EXPONENTIAL, RANDINT, BERNOULLI, BITS
    GROUP = 256
    STRIDED = 0
    DENSE, WIDE

cdef int[2] RANDOM = [shader("random_f32"), shader("random_f64")]
cdef int[2] DROPOUT = [shader("dropout_f32"), shader("dropout_f64")]


cdef void long_word(tf_launch *l, uint64_t value) noexcept nogil:
    """Two words, the low half first."""
    word(l, <int64_t><uint32_t>value)
    word(l, <int64_t>(value >> 32))


cdef void real_word(tf_launch *l, double value, bint doubled) noexcept nogil:
    """A number in place of two words."""
    number_word(l, value, doubled)
    if not doubled:
        word(l, 0)


cdef inline bint filled(const tf_view *x) noexcept nogil:
    """Whether elements of this dtype can be made, and all be reached."""
    return (x.dtype <= TF_F32 or computes(x)) and within_reach(x)


cdef void axis_words(tf_launch *l, const tf_view *x) noexcept nogil:
    """Sizes and strides of eight axes."""
    cdef int64_t shape[8]
    cdef int64_t steps[8]
    cdef int64_t *strides[1]
    cdef int d, n
    strides[0] = steps
    for d in range(x.ndim):
        shape[d], steps[d] = x.shape[d], x.strides[d]
    n = collapse(x.ndim, shape, strides, 1)
    for d in range(8):
        word(l, shape[d + n - 8] if d + n >= 8 else 1)
    for d in range(8):
        word(l, steps[d + n - 8] if d + n >= 8 else 0)


cdef int layout_of(const tf_view *x, int unit) noexcept nogil:
    """WIDE where `unit` bytes can be reached at a time; 0: no more than an element."""
    if not x.flags & TF_CONTIGUOUS:
        return STRIDED
    return WIDE if unit and address_of(x) % unit == 0 else DENSE


cdef uint64_t limit_of(double p) noexcept nogil:
    """How many of the 2^32 words count as an event of probability p."""
    if not p > 0:
        return 0
    return <uint64_t>1 << 32 if p >= 1 else <uint64_t>ceil(p * 4294967296.0)


cdef int random_fill(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call) noexcept with gil:
    """Writes inputs[0] in place."""
    cdef const tf_view *x = inputs[0]
    cdef tf_launch l
    cdef int what = <int><size_t>call.ctx, k = 2 if what == RANDINT else 0
    cdef bint doubled = is_double(x)
    cdef bint two_words = what == RANDINT or (doubled and what <= EXPONENTIAL) or (what == BITS and x.dtype == TF_I64)
    cdef int per = 2 if two_words else 4
    cdef int unit = per * tf_itemsize[x.dtype]
    call.detail[0] = x.dtype
    if not filled(x):
        return TF_EUNSUPPORTED
    if x.size == 0:
        return TF_OK
    unit = 0 if unit == 2 else min(unit, 16)     # pairs of bytes go one by one
    begin(&l, RANDOM[doubled], call)
    write(&l, x)
    word(&l, x.size)
    long_word(&l, <uint64_t>at.i[k])
    long_word(&l, <uint64_t>at.i[k + 1])
    long_word(&l, <uint64_t>at.i[2] if what == BITS else 0)
    if what == RANDINT:
        long_word(&l, <uint64_t>at.i[0])
        long_word(&l, <uint64_t>at.i[1] - <uint64_t>at.i[0])
    elif what == BERNOULLI:
        long_word(&l, limit_of(at.f[0]))
        long_word(&l, 0)
    else:
        real_word(&l, at.f[0], doubled)
        real_word(&l, at.f[1] - at.f[0] if what == UNIFORM else at.f[1], doubled)
    axis_words(&l, x)
    constant(&l, 0, x.dtype)
    constant(&l, 1, what)
    constant(&l, 2, per)
    constant(&l, 3, layout_of(x, unit))
    spread(&l, ((x.size + per - 1) // per + GROUP - 1) // GROUP)
    return launch(&l, x, call)


cdef int dropout(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                 tf_call *call) noexcept with gil:
    """x / (1 - p) where the element's word is not below p, else 0."""
    cdef const tf_view *x = inputs[0]
    cdef tf_launch l
    cdef uint64_t limit = limit_of(at.f[0])
    cdef int unit = 4 * tf_itemsize[x.dtype], layout = layout_of(x, unit)
    call.detail[0] = x.dtype
    if not filled(x):
        return TF_EUNSUPPORTED
    if x.size == 0:
        return TF_OK
    if layout == WIDE and address_of(outputs[0]) % unit:
        layout = DENSE
    begin(&l, DROPOUT[is_double(x)], call)
    write(&l, outputs[0])
    read(&l, x)
    word(&l, x.size)
    long_word(&l, <uint64_t>at.i[0])
    long_word(&l, <uint64_t>at.i[1])
    long_word(&l, limit)
    number_word(&l, 1.0 / (1.0 - at.f[0]) if at.f[0] < 1 else 0.0, is_double(x))
    axis_words(&l, x)
    constant(&l, 0, x.dtype)
    constant(&l, 1, layout)
    spread(&l, ((x.size + 3) // 4 + GROUP - 1) // GROUP)
    return launch(&l, x, call)


KERNELS = {
    "uniform": (kernel_capsule(random_fill), UNIFORM),
    "normal": (kernel_capsule(random_fill), NORMAL),
    "exponential": (kernel_capsule(random_fill), EXPONENTIAL),
    "randint": (kernel_capsule(random_fill), RANDINT),
    "bernoulli": (kernel_capsule(random_fill), BERNOULLI),
    "random_bits": (kernel_capsule(random_fill), BITS),
    "dropout": kernel_capsule(dropout),
}
