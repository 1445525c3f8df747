"""Matrix products by the library, for the kernels of this folder."""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.threads cimport tf_task

cdef struct operand:
    # a matrix as CBLAS reads it
    const char *at
    bint turned                 # stored by columns
    int64_t ld

cdef bint readable_matrix(operand *x, int64_t rows, int64_t cols, int64_t row_step,
                          int64_t col_step) noexcept nogil
cdef bint splits() noexcept nogil
cdef void run_tasks(int64_t n, bint split, double cost_ns, tf_task fn, void *ctx) noexcept nogil
cdef bint eager() noexcept nogil
cdef bint countable(int64_t a, int64_t b, int64_t c) noexcept nogil
cdef void product(int dtype, int64_t m, int64_t n, int64_t k, const operand *a, const operand *b,
                  char *c, int64_t ldc, bint onto) noexcept nogil
