"""The engine of convolutions: rows of a result from runs of a source, for all groups and images."""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.conv_shape cimport Columns, Phases, Shape
from tinyfin.backends.cpu.gemm_loops cimport tf_gemm_kind
from tinyfin.core.abi cimport *

cdef enum:
    SLACK = 64               # elements readable past the end of a copy


cdef struct Job:
    # rows of a result from a source, for all groups
    const Shape *s
    int64_t m, k                      # rows and chain length per group
    const char *src
    const int64_t *off                # of chain element k in the source
    Columns cols
    int64_t src_group                 # elements between groups: source, w, result
    int64_t w_group, y_group, y_row   # and between rows of the result
    const char *w                     # rows of w: w_step apart, dense in k, or through w_off
    int w_dtype
    int64_t w_step
    const int64_t *w_off
    char *y
    const char *bias                  # accumulators, or NULL
    char *panels                      # of all groups' w, for lines
    int64_t lines                     # lines of one task
    int failed


cdef struct Copy:
    const Shape *s                    # of the padding, strides and sizes
    const Phases *f
    const char *x
    int64_t xs[5]                     # strides of x: image, channel, space
    int64_t channels, first           # planes of an image; the first image
    char *to


cdef inline char *carve(char **room, int64_t bytes) noexcept nogil:
    """The next piece of a scratch area, aligned."""
    cdef char *p = room[0]
    room[0] += (bytes + 63) & ~63
    return p


cdef int run_job(Job *q) noexcept nogil
cdef int64_t panel_bytes(const Job *q) noexcept nogil
cdef bint by_lines(const Shape *s, int64_t m, int64_t n) noexcept nogil
cdef void copy_of(Copy *c, const Shape *s, const Phases *f, const tf_view *x,
                  char *to) noexcept nogil
cdef void copy_images(Copy *c, int64_t first, int64_t images) noexcept nogil
cdef int64_t chunk_of(int64_t images, int64_t each) noexcept nogil
cdef void spread(const tf_view *v, const Shape *s, char *to) noexcept nogil
