"""The table of depthwise_loops.h."""
from libc.stdint cimport int32_t, int64_t

cdef extern from "depthwise_loops.h" nogil:
    ctypedef struct tf_depthwise:
        int64_t rows, cols, stride, n, y_row
        const int64_t *line
        const int64_t *col
        const void *w
        const void *bias
        int32_t load

    ctypedef struct tf_depthwise_kind:
        void (*rows)(const tf_depthwise *p, const void *x, int64_t rows, void *y) noexcept nogil
        void (*turns)(const void *a, const void *b, int64_t n, void *y) noexcept nogil

    ctypedef struct tf_depthwise_table:
        tf_depthwise_kind kind[2]

    enum: TF_BACK

    int64_t tf_pitch(int64_t cols, int64_t stride)
    void tf_soon(const void *p, int64_t bytes)
