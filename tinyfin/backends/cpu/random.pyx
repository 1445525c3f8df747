"""Random fills and dropout: Philox counters, so that element i depends on seed, draw and i alone.

Elements are numbered in row-major order whatever the strides; work is cut at multiples of 1024
elements.
"""
from libc.math cimport ceil
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, gather_run, push, scatter_run
from tinyfin.backends.cpu.reduced cimport TF_ACC_F32, TF_ACC_F64, tf_reduce_table
from tinyfin.backends.cpu.threads cimport parallel_for
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

ctypedef void (*words_fn)(uint32_t *w, uint64_t block, int64_t blocks, uint64_t seed,
                          uint64_t draw) noexcept nogil
ctypedef void (*uniform_fn)(void *y, const uint32_t *w, int64_t n, double low, double high,
                            int bits) noexcept nogil
ctypedef void (*normal_fn)(void *y, const uint32_t *w, int64_t n, double mean,
                           double std) noexcept nogil
ctypedef void (*exponential_fn)(void *y, const uint32_t *w, int64_t n, double rate) noexcept nogil
ctypedef void (*randint_fn)(int64_t *y, const uint32_t *w, int64_t n, uint64_t low,
                            uint64_t range) noexcept nogil
ctypedef void (*below_fn)(int64_t *y, const uint32_t *w, int64_t n, uint64_t limit) noexcept nogil
ctypedef void (*drop_fn)(void *y, const void *x, const uint32_t *w, int64_t n, uint64_t limit,
                         double scale) noexcept nogil

cdef extern from "random_loops.h" nogil:
    ctypedef struct tf_random_table:
        words_fn words
        uniform_fn uniform[2]
        normal_fn normal[2]
        exponential_fn exponential[2]
        randint_fn randint
        below_fn below
        drop_fn drop[2]

cdef enum:
    UNIFORM, NORMAL, EXPONENTIAL, RANDINT, BERNOULLI, BITS
    PART = 1024        # elements of one step
    STEPS = 16         # steps of one task

cdef const tf_random_table *LOOPS = <const tf_random_table *>isa_table(b"random")
cdef const tf_reduce_table *CONVERT = <const tf_reduce_table *>isa_table(b"reduce")


cdef struct Draw:
    Axes a                  # of the tensor that is written, or of dropout's input
    char *y
    const char *x
    int64_t n
    int what, dtype, item, wide, words, bits
    bint dense
    uint64_t seed, draw, first
    double p, q             # parameters in the order of the row
    uint64_t low, range, limit


cdef void make_words(const Draw *d, int64_t at, int64_t n, uint32_t *w) noexcept nogil:
    """Words of n elements, rounded up to whole blocks."""
    LOOPS.words(w, d.first + <uint64_t>(at // 4 * d.words), (n * d.words + 3) // 4, d.seed, d.draw)


cdef void whole_numbers(const Draw *d, const uint32_t *w, int64_t n, int64_t *v) noexcept nogil:
    cdef int64_t i
    if d.what == RANDINT:
        LOOPS.randint(v, w, n, d.low, d.range)
    elif d.what == BERNOULLI:
        LOOPS.below(v, w, n, d.limit)
    elif d.words == 2:
        for i in range(n):
            v[i] = <int64_t>(<uint64_t>w[2 * i] << 32 | w[2 * i + 1])
    else:
        for i in range(n):
            v[i] = w[i]


cdef void fill_part(const Draw *d, int64_t at, int64_t n) noexcept nogil:
    """Elements at .. at + n - 1: words, numbers, the dtype, the tensor."""
    cdef uint32_t w[2 * PART]
    cdef int64_t whole[PART]
    cdef double numbers[PART]
    cdef int64_t packed[PART]
    cdef bint direct = d.dense and d.dtype >= TF_F32 and n == PART   # pairs may write one too many
    cdef char *v = d.y + at * d.item if direct else <char *>numbers
    cdef char *out = d.y + at * d.item if d.dense else <char *>packed
    make_words(d, at, n, w)
    if d.what == UNIFORM:
        LOOPS.uniform[d.wide](v, w, n, d.p, d.q, d.bits)
    elif d.what == NORMAL:
        LOOPS.normal[d.wide](v, w, n, d.p, d.q)
    elif d.what == EXPONENTIAL:
        LOOPS.exponential[d.wide](v, w, n, d.p)
    else:
        whole_numbers(d, w, n, whole)
        if d.dtype >= TF_F16:
            CONVERT.load[TF_ACC_F64 if d.wide else TF_ACC_F32][TF_I64](v, whole, n)
        else:
            v = <char *>whole
    if v != out:
        CONVERT.store[d.dtype](out, v, n)
    if not d.dense:
        scatter_run(d.y, out, &d.a, at, n, d.item)


cdef void fill_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Draw *d = <const Draw *>ctx
    cdef int64_t at = t * PART * STEPS, end = min(d.n, (t + 1) * PART * STEPS)
    while at < end:
        fill_part(d, at, min(<int64_t>PART, end - at))
        at += PART


cdef uint64_t limit_of(double p) noexcept nogil:
    """How many of the 2^32 words count as an event of probability p."""
    if not p > 0:
        return 0
    return <uint64_t>1 << 32 if p >= 1 else <uint64_t>ceil(p * 4294967296.0)


cdef void describe(Draw *d, const tf_view *x) noexcept nogil:
    cdef int k
    d.a.nd = 0
    for k in range(x.ndim):
        push(&d.a, x.shape[k], x.strides[k], 0, 0)
    d.n, d.dtype, d.item = x.size, x.dtype, tf_itemsize[x.dtype]
    d.dense = x.flags & TF_CONTIGUOUS != 0
    d.wide = x.dtype == TF_F64
    d.bits = 11 if x.dtype == TF_F16 else (8 if x.dtype == TF_BF16 else 24)
    d.first = 0


cdef int random_fill(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at,
                     tf_call *call) noexcept nogil:
    """Writes inputs[0] in place."""
    cdef const tf_view *x = inputs[0]
    cdef Draw d
    cdef int k = 0
    describe(&d, x)
    d.what, d.y = <int><size_t>call.ctx, x.data
    d.words = 2 if d.wide else 1
    d.p, d.q = at.f[0], at.f[1]
    if d.what == RANDINT:
        d.words, k = 2, 2
        d.low, d.range = <uint64_t>at.i[0], <uint64_t>at.i[1] - <uint64_t>at.i[0]
    elif d.what == BERNOULLI:
        d.words, d.limit = 1, limit_of(d.p)
    elif d.what == BITS:
        d.words, d.first = (2 if d.item == 8 else 1), <uint64_t>at.i[2]
    d.seed, d.draw = <uint64_t>at.i[k], <uint64_t>at.i[k + 1]
    parallel_for((d.n + PART * STEPS - 1) // (PART * STEPS), 1.5 * d.words * <double>d.n, fill_task,
                 &d)
    return TF_OK


cdef void drop_part(const Draw *d, int64_t at, int64_t n) noexcept nogil:
    cdef uint32_t w[PART]
    cdef int64_t raw[PART]
    cdef int64_t values[PART]
    cdef const char *x = d.x + at * d.item
    make_words(d, at, n, w)
    if not d.dense:
        gather_run(<char *>raw, d.x, &d.a, at, n, d.item)
        x = <const char *>raw
    if d.dtype >= TF_F32:
        LOOPS.drop[d.wide](d.y + at * d.item, x, w, n, d.limit, d.p)
        return
    CONVERT.load[TF_ACC_F32][d.dtype](values, x, n)
    LOOPS.drop[0](values, values, w, n, d.limit, d.p)
    CONVERT.store[d.dtype](d.y + at * d.item, values, n)


cdef void drop_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Draw *d = <const Draw *>ctx
    cdef int64_t at = t * PART * STEPS, end = min(d.n, (t + 1) * PART * STEPS)
    while at < end:
        drop_part(d, at, min(<int64_t>PART, end - at))
        at += PART


cdef int dropout(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                 tf_call *call) noexcept nogil:
    """x / (1 - p) where the element's word is not below p, else 0."""
    cdef Draw d
    describe(&d, inputs[0])
    d.x, d.y = inputs[0].data, outputs[0].data
    d.words, d.limit = 1, limit_of(at.f[0])
    d.p = 1.0 / (1.0 - at.f[0]) if at.f[0] < 1 else 0.0
    d.seed, d.draw = <uint64_t>at.i[0], <uint64_t>at.i[1]
    parallel_for((d.n + PART * STEPS - 1) // (PART * STEPS), 1.5 * <double>d.n, drop_task, &d)
    return TF_OK


KERNELS = {
    "uniform": (kernel_capsule(random_fill), UNIFORM),
    "normal": (kernel_capsule(random_fill), NORMAL),
    "exponential": (kernel_capsule(random_fill), EXPONENTIAL),
    "randint": (kernel_capsule(random_fill), RANDINT),
    "bernoulli": (kernel_capsule(random_fill), BERNOULLI),
    "random_bits": (kernel_capsule(random_fill), BITS),
    "dropout": kernel_capsule(dropout),
}
