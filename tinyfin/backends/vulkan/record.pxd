"""Streams for cimport."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from tinyfin.backends.gpu.launch cimport tf_launch, tf_range
from tinyfin.backends.gpu.programs cimport Programs

cdef extern from "stream.h":
    enum: TF_RING, TF_QUERIES
    ctypedef struct tf_vk_copy:
        uint64_t source, target, size
    ctypedef struct tf_vk_functions:
        int32_t GetSemaphoreCounterValue(void *device, uint64_t semaphore, uint64_t *value)
    ctypedef struct tf_stream:
        tf_vk_functions fn
        void *device
        void *queue
        uint64_t semaphore
        void *buffers[8]
        uint64_t signalled[8]
        uint64_t value
        int current
        int64_t timeout
        int32_t lost
        int open
        uint64_t launches
        uint64_t *ticks
        size_t read
    int32_t stream_time(tf_stream *s, uint64_t queries)
    int32_t stream_untime(tf_stream *s)
    int32_t stream_wait(tf_stream *s, uint64_t value) nogil
    int32_t stream_flush(tf_stream *s) nogil
    int32_t stream_copy(tf_stream *s, uint64_t source, uint64_t target, tf_vk_copy part, tf_range read,
                        tf_range write) nogil
    int32_t stream_launch(tf_stream *s, uint64_t pipeline, uint64_t layout, const tf_launch *l) nogil

cdef class Stream(Programs):
    cdef tf_stream s
    cdef uint64_t layout
    cdef int check(self, int32_t rc) except -1
    cdef int room(self) except -1
    cdef int settle(self) except -1
