"""The table of resize_loops.h."""
from libc.stdint cimport int32_t, int64_t

cdef extern from "resize_loops.h" nogil:
    ctypedef struct tf_between:
        const int32_t *low
        const int32_t *high
        const void *first
        const void *second
        int64_t n

    ctypedef struct tf_resize_loops:
        void (*weights)(void *first, const void *second, int64_t n) noexcept nogil
        void (*line)(const tf_between *a, const void *x, void *y) noexcept nogil
        void (*row)(const tf_between *a, int64_t j, const void *low, const void *high, void *y,
                    int64_t n) noexcept nogil
        void (*line_back)(const tf_between *a, const void *g, void *x, void *rest) noexcept nogil
        void (*row_back)(const tf_between *a, int64_t j, const void *g, void *low, void *high,
                         int64_t n) noexcept nogil
        void (*add)(void *x, const void *rest, int64_t n) noexcept nogil

    ctypedef struct tf_resize_table:
        tf_resize_loops of[2]
