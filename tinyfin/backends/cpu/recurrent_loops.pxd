"""The table of recurrent_loops.h for cimport."""
from libc.stdint cimport int64_t

cdef extern from "recurrent_loops.h" nogil:
    enum:
        TF_RNN_TANH
        TF_RNN_RELU
        TF_LSTM
        TF_GRU

    ctypedef struct tf_part:
        const void *at
        int64_t row, block

    ctypedef struct tf_place:
        void *at
        int64_t row, block

    ctypedef struct tf_step:
        int64_t rows, n
        tf_part acc, x, b, h, c
        tf_place y, cells, gates

    ctypedef struct tf_step_grad:
        int64_t rows, n
        tf_part acc, g, g_cells, g_gates, h, c, y, cells, gates
        tf_place left, gx, own

    ctypedef struct tf_recurrent_loops:
        void (*step[4])(const tf_step *a) noexcept nogil
        void (*step_grad[4])(const tf_step_grad *a) noexcept nogil

    ctypedef struct tf_recurrent_table:
        tf_recurrent_loops of[2]
