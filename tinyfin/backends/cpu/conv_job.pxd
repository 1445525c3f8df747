"""The engine of convolutions: rows of a result from runs of a source, for all groups and images."""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.conv_shape cimport Columns, Phases, Shape
from tinyfin.backends.cpu.spatial cimport three
from tinyfin.backends.cpu.threads cimport scratch_push
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
    int64_t channels, first, images   # planes of an image; the first image, how many
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
cdef bint finite(const char *w, int64_t n, bint wide) noexcept nogil


cdef inline bint takes(const tf_view *a, const tf_view *b) noexcept nogil:
    return TF_F16 <= a.dtype <= TF_F64 and b.dtype == a.dtype


cdef inline bint readable(const Shape *s, const tf_view *v) noexcept nogil:
    """Whether runs of v need no copy: accumulators, dense along the last axis."""
    return s.own and (v.strides[v.ndim - 1] == 1 or v.shape[v.ndim - 1] == 1)


cdef struct Room:
    # scratch of one call, pushed at once
    char *base
    char *next
    int64_t bytes


cdef inline int enter(Room *r, int64_t bytes, tf_call *call) noexcept nogil:
    r.bytes = call.detail[0] = bytes + 8 * 64
    r.base = r.next = <char *>scratch_push(r.bytes)
    return TF_ENOMEM if r.base == NULL else TF_OK


cdef struct Reading:
    # where columns are read: the tensor itself, or a padded copy of some images at a time
    bint here
    int64_t images, plane, image      # images at a time; elements between channels, and images
    int64_t bytes
    const int64_t *step
    Copy copy


cdef inline void plan(Reading *p, const Shape *s, const Phases *f, const tf_view *x, bint here,
                      int64_t *step) noexcept nogil:
    """x has the channels and places of the side that is read; step: room for its own strides."""
    p.here = here
    three(&x.strides[2], x.ndim - 2, 0, step)
    p.images = s.n if here else chunk_of(s.n, x.shape[1] * f.plane)
    p.plane = x.strides[1] if here else f.plane
    p.image = x.strides[0] if here else x.shape[1] * f.plane
    p.step = step if here else &f.step[0]
    p.bytes = 0 if here else (p.images * p.image + SLACK) * s.kind.itemsize
    copy_of(&p.copy, s, f, x, NULL)


cdef inline const char *chunk(Reading *p, const tf_view *x, int64_t first, int64_t images,
                              char *room) noexcept nogil:
    """The planes of some images, ready to be read."""
    if p.here:
        return x.data
    p.copy.to = room
    copy_images(&p.copy, first, images)
    return room
