"""The table of winograd_loops.h."""
from libc.stdint cimport int32_t, int64_t

cdef extern from "winograd_loops.h" nogil:
    enum:
        TF_WINOGRAD_2, TF_WINOGRAD_4

    ctypedef struct tf_tile_segment:
        int64_t count, first, image, z, y, x

    ctypedef struct tf_tile_block:
        const tf_tile_segment *segments
        int64_t n, tiles, row
        int64_t size[3]
        int64_t step[4]
        int64_t pad[3]
        int64_t out[2]
        int64_t image

    ctypedef struct tf_winograd_kind:
        int32_t out "out", in_ "in"
        void (*kernels)(const void *w, int64_t w_step, const int64_t *taps, int64_t k, void *u,
                        int64_t u_step) noexcept nogil
        int64_t (*room)(const tf_tile_block *b) noexcept nogil
        void (*source)(const tf_tile_block *b, const void *x, void *room, void *v,
                       int64_t v_step) noexcept nogil
        int (*result)(const tf_tile_block *b, const void *p, int64_t p_step, const void *bias,
                      void *room, void *y) noexcept nogil
        void (*gradient)(const tf_tile_block *b, const void *g, void *room, void *v,
                         int64_t v_step) noexcept nogil
        int (*weights)(const void *u, int64_t u_step, int64_t k, void *w, int64_t w_step) noexcept nogil

    ctypedef struct tf_winograd_table:
        tf_winograd_kind f32[2]
        tf_winograd_kind f64[2]
