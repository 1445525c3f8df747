"""Sums over blocks of rows for cimport: what batch norm and losses share with the norms over rows."""
from libc.stdint cimport int64_t

from tinyfin.backends.gpu.rows cimport Rows
from tinyfin.core.abi cimport tf_call, tf_view

cdef enum:
    # kinds of softmax.comp besides the two functions
    GRADIENT = 2
    LOG_GRADIENT
    LSE                                 # of x the largest number and the logarithm of the sum of exp(x - it)

cdef enum:
    # kinds of norm_sums.comp
    OF_X, SQUARES, PRODUCTS

cdef enum:
    # kinds of norm_finish.comp
    MEAN, VARIANCE, PAIR, CHANNEL_GRADS, FACTOR, LOSS

cdef enum:
    FIRST = 1                           # wanted of a pair; of a loss: no mean
    SECOND = 2
    NOT_CENTRED = 4


cdef struct Sums:
    # rows of n elements of x and g, which lie along two axes, `inner` of them on the second; where the
    # mean and rstd of a row and of an element are
    int64_t rows, n, inner
    int64_t row_step[2]
    int64_t outer_step[2]
    int64_t inner_step[2]
    int64_t stat_step[2]
    int wanted
    const tf_view *x
    const tf_view *g
    const tf_view *mean
    const tf_view *rstd
    const tf_view *w                    # one for each element, of kind PRODUCTS; or NULL


cdef struct Finish:
    # operands of norm_finish.comp; NULL where a kind has none
    int64_t rows, n, count
    double eps
    int wanted
    const tf_view *first
    const tf_view *second
    const tf_view *v
    const tf_view *w
    const tf_view *a
    const tf_view *b
    const tf_view *c


cdef int floats(tf_view *v, const tf_view *where, int64_t n, list keep, tf_call *call) noexcept
cdef int dtype_or_none(const tf_view *v) noexcept nogil
cdef bint refused(const tf_view *const *inputs, int n, const tf_view *y, tf_call *call) noexcept nogil
cdef int softmax_rows(Rows *r, int kind, const tf_view *x, const tf_view *y, const tf_view *g, list keep,
                      tf_call *call) noexcept
cdef int64_t blocks_of(int64_t n) noexcept nogil
cdef int block_sums(const Sums *s, int kind, const tf_view *first, const tf_view *second, tf_call *call) noexcept
cdef int finish(const Finish *f, int kind, const tf_view *where, tf_call *call) noexcept
