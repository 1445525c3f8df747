"""Streams for cimport."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "stream.h":
    enum: TF_RING
    ctypedef struct tf_vk_copy:
        uint64_t source, target, size
    ctypedef struct tf_range:
        uint64_t low, high
    ctypedef struct tf_vk_functions:
        void *BeginCommandBuffer
    ctypedef struct tf_stream:
        tf_vk_functions fn
        void *device
        void *queue
        uint64_t semaphore
        void *buffers[8]
        uint64_t value
        int64_t timeout
        int32_t lost
        int open
    int32_t stream_wait(tf_stream *s, uint64_t value) nogil
    int32_t stream_flush(tf_stream *s) nogil
    int32_t stream_copy(tf_stream *s, uint64_t source, uint64_t target, tf_vk_copy part, tf_range read,
                        tf_range write) nogil
    int32_t stream_launch(tf_stream *s, uint64_t pipeline, uint64_t layout, const void *push, uint32_t nbytes,
                          uint32_t x, uint32_t y, uint32_t z, const tf_range *reads, int nreads,
                          const tf_range *writes, int nwrites) nogil

cdef class Stream:
    cdef tf_stream s
    cdef readonly str name
    cdef public object pipelines     # pipelines.Pipelines of the device
    cdef int check(self, int32_t rc) except -1

cdef Stream stream_of(int index)
