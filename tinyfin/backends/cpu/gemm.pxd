"""Five loops around the tile, for all that is a matrix product: matmul, linear, convolutions."""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.gemm_loops cimport tf_gemm_kind, tf_gemm_thin, tf_reach
from tinyfin.core.abi cimport TF_F32, TF_F64, TF_I32, TF_I64

# panels[][k][width] of rows (of A) or columns (of B) first..first + count, for k from k0 on
ctypedef void (*gemm_pack)(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                           void *dst) noexcept nogil
# takes rows x cols finished accumulators of C[i:, j:] from acc, whose rows are ld elements apart
ctypedef void (*gemm_finish)(const gemm *p, int64_t i, int64_t rows, int64_t j, int64_t cols,
                             void *acc,
                             int64_t ld) noexcept nogil

cdef struct gemm:
    const tf_gemm_kind *kind
    int64_t m, n, k
    gemm_pack pack_a, pack_b
    gemm_finish finish          # may be NULL where c is given
    char *c                     # where accumulators live; NULL: in scratch until they are finished
    int64_t ldc
    bint resume                 # c holds accumulators whose chains go on
    const void *owner           # for the callbacks
    # strided operands, for pack_a = strided_a and pack_b = strided_b
    const char *a
    const char *b
    int64_t ar, ac, br, bc
    int dtype

cdef const tf_gemm_kind *gemm_kind(int dtype) noexcept nogil
cdef const tf_gemm_thin *gemm_thin(int dtype) noexcept nogil
cdef const tf_gemm_kind *pairs_kind() noexcept nogil
cdef const tf_gemm_kind *duos_kind() noexcept nogil
cdef void pack_duos(const char *src, int64_t row, int64_t col, int64_t count, int64_t k, void *dst, int side,
                    tf_reach *reach) noexcept nogil
cdef bint duos_fit(const tf_reach *a, const tf_reach *b) noexcept nogil
cdef void strided_a(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                    void *dst) noexcept nogil
cdef void strided_b(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                    void *dst) noexcept nogil
cdef int gemm_run(const gemm *p, bint alone, int64_t *detail) noexcept nogil


cdef inline bint accumulates(int dtype) noexcept nogil:
    """Whether elements of a dtype are accumulators: nothing to widen."""
    return dtype == TF_F32 or dtype == TF_F64 or dtype == TF_I32 or dtype == TF_I64


cdef inline int64_t up(int64_t n, int64_t step) noexcept nogil:
    """How many steps reach n."""
    return (n + step - 1) // step
