"""The tables of norm_loops.h for cimport."""
from libc.stdint cimport int64_t

cdef extern from "norm_loops.h" nogil:
    enum:
        TF_BLOCK, TF_SUM_LANES, TF_TILE

    ctypedef struct tf_soft_rows:
        const void *x
        const void *g
        void *y
        int64_t rows, n, xstep, gstep, ystep

    ctypedef struct tf_norm_rows:
        const void *x
        const void *g
        const void *w
        const void *b
        void *y
        void *mean
        void *rstd
        void *gw
        void *gb
        int64_t rows, n, xstep, gstep, ystep, step
        double eps

    ctypedef struct tf_channel:
        const void *mean
        const void *var
        const void *rstd
        const void *w
        const void *b
        const void *sum_g
        const void *sum_gx
        int64_t count
        double eps

    ctypedef void (*tf_load)(void *to, const char *src, int64_t n, int64_t stride) noexcept nogil
    ctypedef void (*tf_store)(char *to, const void *src, int64_t n, int64_t stride) noexcept nogil
    ctypedef void (*tf_load_tile)(void *to, const char *src, int64_t n, int cols, int64_t sn,
                                  int64_t sc) noexcept nogil
    ctypedef void (*tf_store_tile)(char *to, const void *src, int64_t n, int cols, int64_t sn,
                                   int64_t sc) noexcept nogil
    ctypedef void (*tf_soft)(const tf_soft_rows *a) noexcept nogil

    ctypedef struct tf_lse_rows:
        const void *x
        void *shift
        void *log
        int64_t rows, n, xstep

    ctypedef struct tf_ce_rows:
        const void *x
        const void *shift
        const void *log
        const void *g
        void *y
        const int64_t *label
        int64_t rows, n, xstep, ystep

    ctypedef struct tf_norm_loops:
        tf_load load[10]
        tf_store store[10]
        tf_load_tile load_tile[10]
        tf_store_tile store_tile[10]
        tf_soft soft[4]
        tf_soft soft_tile[4]
        void (*lse)(const tf_lse_rows *a) noexcept nogil
        void (*lse_tile)(const tf_lse_rows *a, void *work) noexcept nogil
        void (*ce_grad)(const tf_ce_rows *a) noexcept nogil
        void (*ce_grad_tile)(const tf_ce_rows *a) noexcept nogil
        void (*norm)(const tf_norm_rows *a) noexcept nogil
        void (*norm_grad)(const tf_norm_rows *a) noexcept nogil
        void (*sum)(void *sum, const void *x, int64_t n) noexcept nogil
        void (*sqdiff)(void *sum, const void *x, const void *mean, int64_t n) noexcept nogil
        void (*xhat)(void *sum, const void *g, const void *x, const tf_channel *c,
                     int64_t n) noexcept nogil
        void (*add)(void *a, const void *b, int64_t n) noexcept nogil
        void (*fill)(void *a, double value, int64_t n) noexcept nogil
        void (*divide)(void *a, int64_t by, int64_t n) noexcept nogil
        void (*channel)(void *y, const void *x, const tf_channel *c, int64_t n) noexcept nogil
        void (*channel_grad)(void *gx, const void *g, const void *x, const tf_channel *c,
                             int64_t n) noexcept nogil
        void (*group_grad)(void *gx, const void *g, const void *x, const tf_channel *c, int64_t n) noexcept nogil
        void (*sum_tile)(void *sums, void *x, int64_t n) noexcept nogil
        void (*sqdiff_tile)(void *sums, const void *x, const void *mean, int64_t n) noexcept nogil
        void (*xhat_tile)(void *sums, const void *g, const void *x, const tf_channel *c,
                          int64_t n) noexcept nogil
        void (*channel_tile)(void *y, const void *x, const tf_channel *c, int64_t n) noexcept nogil
        void (*channel_grad_tile)(void *gx, const void *g, const void *x, const tf_channel *c,
                                  int64_t n) noexcept nogil

    ctypedef struct tf_norm_table:
        tf_norm_loops of[2]
