"""The table of gemm_loops.h."""
from libc.stdint cimport int32_t, int64_t

cdef extern from "gemm_loops.h" nogil:
    enum:
        TF_DEPTH
        TF_GEMM_F32, TF_GEMM_F64, TF_GEMM_I32, TF_GEMM_I64, TF_GEMM_PAIRS, TF_GEMM_DUOS, TF_NGEMM
        TF_THIN_F32, TF_THIN_F64, TF_THIN_I32, TF_THIN_I64, TF_THIN_F16, TF_THIN_BF16, TF_NTHIN

    ctypedef struct tf_product:
        int64_t m, n, k
        const void *a
        const void *b
        void *c
        void *panel
        int64_t ar, ac, br, bc, ldc
        int32_t load

    ctypedef struct tf_put:
        void *y
        const void *bias
        int64_t y_row, step
        int32_t dtype

    ctypedef struct tf_fill:
        int64_t before, n, after, step, row
        int32_t dtype

    ctypedef struct tf_gemm_kind:
        int32_t mr, nr, kc, mc, nc, lanes, itemsize
        double fma_ns
        void (*tile)(int64_t k, const void *a, const void *b, void *c, int64_t ldc, int rows,
                     int cols,
                     int load) noexcept nogil
        void (*tile_direct)(int64_t k, const void *a, int64_t ar, int64_t ac, const void *b, int64_t br, void *c,
                            int64_t ldc, int rows, int cols, int load) noexcept nogil
        void (*product)(const tf_product *p) noexcept nogil
        void (*pack)(int dtype, const void *src, int64_t row, int64_t col, int64_t count, int64_t k,
                     void *dst,
                     int side) noexcept nogil
        void (*pack_rows)(const void *const *rows, int64_t count, int64_t k, void *dst, int side,
                          int beyond) noexcept nogil
        void (*widen)(int dtype, const void *src, int64_t stride, int64_t n,
                      void *dst) noexcept nogil
        void (*narrow)(int dtype, const void *acc, int64_t n, void *dst,
                       int64_t stride) noexcept nogil
        void (*narrow_rows)(int dtype, const void *acc, int64_t ld, int64_t rows, int64_t cols, void *dst,
                            int64_t ldc) noexcept nogil
        void (*add)(void *acc, const void *bias, int64_t stride, int64_t n) noexcept nogil
        void (*tile_at)(int64_t k, const void *a, const void *b, const int64_t *off, void *c,
                        int64_t ldc,
                        int rows, int cols, int load) noexcept nogil
        void (*pack_runs)(const void *src, const int64_t *off, int64_t k, const int64_t *runs,
                          int count,
                          void *dst) noexcept nogil
        void (*pack_at)(const void *src, int64_t row, const int64_t *off, int64_t count, int64_t k,
                        void *dst) noexcept nogil
        void (*pack_points)(const void *src, const int64_t *at, const int64_t *off, int64_t count,
                            int64_t k,
                            void *dst) noexcept nogil
        void (*fill)(const tf_fill *p, const void *src, int64_t rows, void *dst) noexcept nogil
        void (*fill_halves)(const tf_fill *p, const tf_fill *q, const void *src, int64_t rows, void *even,
                            void *odd) noexcept nogil
        void (*put)(const tf_put *p, const void *acc, int64_t ld, int64_t rows, const int64_t *runs,
                    const int64_t *places, int n) noexcept nogil
        void (*tile_far)(int64_t k, int64_t more, const void *a, const void *b, const int64_t *off,
                         void *c, int64_t ldc, int rows, int cols, int load) noexcept nogil
        void (*lines)(int64_t k, const void *panels, int64_t m, const void *src, const int64_t *off,
                      int64_t n, int64_t count, int64_t src_step, void *y, int64_t y_row,
                      int64_t y_step) noexcept nogil
        void (*channelwise)(const void *g, const void *x, const int64_t *off, int64_t taps,
                            const int64_t *runs, int64_t n, void *acc) noexcept nogil
        void (*tap_rows)(const void *g, int64_t cols, const void *x, const int64_t *off, int64_t threes,
                         const int64_t *runs, int64_t n, void *acc) noexcept nogil

    int64_t tf_even_rows(int64_t m, int64_t mr)

    ctypedef struct tf_gemm_thin:
        void (*rows_n)(const tf_product *p) noexcept nogil
        void (*rows_t)(const tf_product *p) noexcept nogil
        void (*dots)(const char *const *a, const char *const *b, int64_t k, void *c) noexcept nogil

    ctypedef struct tf_reach:
        int32_t least, most

    ctypedef struct tf_gemm_table:
        tf_gemm_kind kind[TF_NGEMM]
        tf_gemm_thin thin[TF_NTHIN]
        int (*duos_work)() noexcept nogil
        void (*pack_duos)(const void *src, int64_t row, int64_t col, int64_t count, int64_t k, void *dst, int side,
                          tf_reach *reach) noexcept nogil
        int (*duos_fit)(const tf_reach *a, const tf_reach *b) noexcept nogil
