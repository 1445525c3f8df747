"""The tables of attention_loops.h for cimport."""
from libc.stdint cimport int64_t

cdef extern from "attention_loops.h" nogil:
    enum:
        TF_QUERIES
        TF_KEYS

    ctypedef struct tf_attend:
        void *s
        void *dp
        const void *mask
        void *m
        void *l
        void *alpha
        const void *lse
        const void *delta
        double scale
        int64_t diagonal
        int keys, queries, chosen

    ctypedef struct tf_attention_loops:
        void (*chain)(void *c, int64_t ldc, const void *a, int64_t rs, int64_t ks, const void *b,
                      int64_t ldb, int64_t m, int64_t n, int64_t k) noexcept nogil
        void (*forward)(const tf_attend *a) noexcept nogil
        void (*backward)(const tf_attend *a) noexcept nogil
        void (*scale_rows)(void *c, int64_t ldc, const void *by, int64_t rows,
                           int64_t n) noexcept nogil
        void (*finish)(void *c, int64_t ldc, const void *m, const void *l, void *lse, int64_t rows,
                       int64_t n) noexcept nogil
        void (*transpose)(void *y, const void *x, int64_t ldx, int64_t rows, int64_t n,
                          int64_t columns) noexcept nogil
        void (*dots)(void *y, const void *a, int64_t lda, const void *b, int64_t ldb, int64_t rows,
                     int64_t n) noexcept nogil

    ctypedef struct tf_attention_table:
        tf_attention_loops of[2]
