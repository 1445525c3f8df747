"""Streams for cimport."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from tinyfin.backends.gpu.launch cimport tf_launch
from tinyfin.backends.gpu.programs cimport Programs

cdef extern from "stream.h":
    enum: TF_GL_RING, TF_ADDRESS_SHIFT, TF_PART, TF_SIDE
    enum: TF_LAUNCH, TF_WRITE, TF_READ, TF_FINISH, TF_CALL, TF_STOP
    enum: TF_LATE, TF_WAIT_FAILED, TF_RESET, TF_CLOSED, TF_FORKED, TF_NO_MEMORY
    ctypedef struct tf_gl_functions:
        pass
    ctypedef struct tf_gl_staging:
        uint32_t write, read
        char *to_write
        char *to_read
    ctypedef struct tf_gl_context:
        tf_gl_functions fn
        tf_gl_staging staging
        uint32_t fault
        uint64_t timeout
        int64_t launches
        int32_t stamped
    ctypedef struct tf_command:
        int kind
        uint64_t handle, address, bytes
        void *host
        tf_launch launch
    ctypedef struct tf_gl_stream:
        tf_gl_context context
        uint64_t put, done, held
        int32_t lost
        int spares
        void **spare
    void context_forget(tf_gl_context *g)
    int32_t context_finish(tf_gl_context *g)
    int32_t context_time(tf_gl_context *g)
    uint64_t context_tick(tf_gl_context *g, int32_t i)
    void context_untime(tf_gl_context *g)
    void stream_init(tf_gl_stream *s)
    void stream_orphaned(tf_gl_stream *s)
    void *stream_memory(tf_gl_stream *s, uint64_t nbytes) nogil
    void stream_free(tf_gl_stream *s, void *memory, uint64_t nbytes) nogil
    tf_command *stream_place(tf_gl_stream *s)
    void stream_put(tf_gl_stream *s)
    int32_t stream_wait(tf_gl_stream *s, uint64_t number, uint64_t limit) nogil
    void stream_advance(tf_gl_stream *s, int32_t rc)
    int stream_serve(tf_gl_stream *s) nogil

cdef class Stream(Programs):
    cdef tf_gl_stream *s
    cdef object jobs                 # what TF_CALL commands run, in order
    cdef int check(self, int32_t rc) except -1
    cdef int wait(self, uint64_t number, uint64_t limit) except -1
    cdef tf_command *place(self) except NULL
    cdef void *memory(self, uint64_t nbytes) except NULL
    cdef int take_part(self, uint64_t number, unsigned char *out, void *copy, uint64_t nbytes) except -1
