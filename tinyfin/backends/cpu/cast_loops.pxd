"""Conversions, moves and picks of elements, by instruction set (cast_loops.h)."""
from libc.stdint cimport int64_t

cdef extern from "cast_loops.h" nogil:
    ctypedef void (*tf_cast)(const void *src, void *dst, int64_t n) noexcept nogil
    ctypedef void (*tf_move)(const char *src, int64_t sstep, char *dst, int64_t dstep, int64_t n) noexcept nogil
    ctypedef void (*tf_tile)(const char *src, int64_t s0, int64_t s1, char *dst, int64_t d0, int64_t d1,
                             int64_t n0, int64_t n1, int around) noexcept nogil
    ctypedef struct tf_cast_table:
        tf_cast cast[10][10]
        tf_move move[4]
        void (*spread[4])(const void *src, void *dst, int64_t rows, int64_t n) noexcept nogil
        void (*rows)(const char *src, int64_t step, char *dst, int64_t rows, int64_t nbytes) noexcept nogil
        tf_tile tile[4]
        void (*stream)(char *dst, const char *src, int64_t nbytes) noexcept nogil
        void (*fence)() noexcept nogil
        void (*pick[4])(void *y, const void *x, int64_t step, const int64_t *index, int64_t size,
                        int64_t n) noexcept nogil
        bint (*outside)(const int64_t *index, int64_t n, int64_t low, int64_t high) noexcept nogil
