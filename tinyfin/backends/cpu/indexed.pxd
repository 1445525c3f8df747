"""Reading and checking of indices, and writes at offsets, for the kernels that pick and place."""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.lines cimport Axes
from tinyfin.core.abi cimport *

cdef enum:
    RUN = 512       # indices in hand at a time


cdef struct Target:
    # what is added to: the result itself, or a float32 copy of a half, rounded once at the end
    char *y
    int dtype, acc
    tf_view *result
    size_t bytes


cdef const int64_t *index_run(const tf_view *index, int64_t place, int64_t step, int64_t n,
                              int64_t *buffer) noexcept nogil
cdef int check_index(const tf_view *index, int64_t low, int64_t high, int dim,
                     tf_call *call) noexcept nogil
cdef void pick(char *y, int64_t ystep, const char *x, const int64_t *at, int64_t n,
               int item) noexcept nogil
cdef void place_at(char *y, const int64_t *at, const char *v, int64_t vstep, int64_t n,
                   int item) noexcept nogil
cdef int open_target(Target *t, tf_view *y, tf_call *call) noexcept nogil
cdef void close_target(Target *t) noexcept nogil
cdef const void *addends(const Target *t, const char *v, int64_t vstep, int dtype, double alpha,
                         int64_t n,
                         void *raw, void *wide) noexcept nogil
cdef void add_at(const Target *t, const int64_t *at, const void *v, int64_t n) noexcept nogil
cdef void add_run(const Target *t, int64_t at, int64_t ystep, const void *v,
                  int64_t n) noexcept nogil
