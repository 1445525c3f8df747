"""The table of pool_loops.h."""
from libc.stdint cimport int32_t, int64_t

cdef extern from "pool_loops.h" nogil:
    ctypedef struct tf_pool_line:
        int64_t n, k, stride, pad, dil, step
        const int64_t *reach

    enum:
        TF_WHOLE
        TF_PLANES

    ctypedef struct tf_pool_max:
        void (*lowest)(void *keys, int64_t n) noexcept nogil
        void (*line)(const tf_pool_line *p, const void *x, int32_t first, void *keys,
                     int32_t *places) noexcept nogil
        void (*end)(const void *keys, const int32_t *places, int64_t n, void *y,
                    int64_t *indices) noexcept nogil
        void (*windows)(const tf_pool_line *p, const void *const *x, const int32_t *firsts, int64_t lines, int64_t size,
                        void *padded, int64_t length, void *y, int64_t *indices) noexcept nogil
        int32_t itemsize, keysize

    ctypedef struct tf_pool_sum:
        void (*begin)(void *acc, int64_t n) noexcept nogil
        void (*add)(const tf_pool_line *p, const void *x, void *acc) noexcept nogil
        void (*wide)(const void *x, int64_t step, const int64_t *reach, int64_t n, void *acc) noexcept nogil
        void (*divide)(void *acc, const int64_t *counts, int64_t factor, int64_t n) noexcept nogil
        void (*spread)(const tf_pool_line *p, const void *share, void *x) noexcept nogil

    ctypedef struct tf_pool_tile:
        void (*lift)(void *tile, const char *const *x, int64_t at, int64_t step, int64_t n) noexcept nogil
        void (*lower)(char *const *y, int64_t at, int count, const void *tile, int64_t n) noexcept nogil
        void (*join)(void *acc, const void *const *rows, int64_t lines, const int64_t *reach, int64_t n) noexcept nogil
        void (*share)(void *acc, const int64_t *counts, int64_t factor, int64_t n) noexcept nogil

    ctypedef struct tf_pool_table:
        tf_pool_max max[4]
        tf_pool_sum sum[2]
        tf_pool_tile tile[2]
