"""Commands for an OpenGL context: what runs at each call."""
cimport cython
from collections import deque
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from tinyfin.backends.gpu.launch cimport set_launcher, tf_launch
from tinyfin.backends.gpu.programs cimport Programs
from tinyfin.core.abi cimport TF_OPENGL

cdef enum:
    HELD = 32 << 20                  # bytes that may wait to be written

FUNCTIONS = ("UseProgram", "ProgramUniform1uiv", "ProgramUniform2uiv", "BindBufferBase", "DispatchCompute",
             "MemoryBarrier", "BindBuffer", "BufferSubData", "GetBufferSubData", "CopyBufferSubData", "FenceSync",
             "ClientWaitSync", "DeleteSync", "Flush", "GenQueries", "DeleteQueries", "QueryCounter",
             "GetQueryObjectui64v", "GetError", "GetGraphicsResetStatus")
"""Functions of a context that its thread calls, in the order in which `connect` takes their addresses; the
last may be 0."""

RESULTS = {TF_LATE: "the device did not finish within {seconds:g} s (TINYFIN_GPU_TIMEOUT)",
           TF_WAIT_FAILED: "the driver gave up waiting", TF_RESET: "the driver has reset the device",
           TF_CLOSED: "the process is ending", TF_NO_MEMORY: "the host is out of memory",
           TF_FORKED: "the process is a fork, whose parent has the device; start processes with 'spawn' "
                      "(DataLoader: multiprocessing_context='spawn')",
           0x505: "the device is out of memory", 0x507: "the driver has lost the context"}

STAGED = (2 * TF_SIDE, TF_PART)
"""Bytes of the buffers that `stage` takes."""
ADDRESS_SHIFT = TF_ADDRESS_SHIFT
"""A device address is the number of a buffer, shifted so far, and the bytes from its start."""


cdef int launch(void *where, tf_launch *l) except -1:
    """Puts a dispatch on the way to a device."""
    cdef Stream stream = <Stream>where
    cdef uint64_t handle = stream.handle_of(l)
    cdef tf_command *c = stream.place()
    c.kind, c.handle, c.launch = TF_LAUNCH, handle, l[0]
    stream_put(stream.s)
    return 0


set_launcher(TF_OPENGL, launch)


@cython.binding(False)
cdef class Stream(Programs):
    """The commands of one context, whose thread calls `connect` and then `serve`.

    The first error ends it: every later call raises the same, other backends go on.
    """

    def __cinit__(self):
        self.s = <tf_gl_stream *>calloc(1, sizeof(tf_gl_stream))
        if self.s is NULL:
            raise MemoryError()
        stream_init(self.s)

    def __init__(self, str name, double seconds):
        self.api, self.name, self.jobs = "opengl", name, deque()
        self.s.context.timeout = <uint64_t>(seconds * 1e9)

    def __dealloc__(self):
        cdef int i
        for i in range(self.s.spares):
            free(self.s.spare[i])
        free(self.s)

    def connect(self, functions):
        """Takes the addresses of the context's functions."""
        cdef void **slots = <void **>&self.s.context.fn
        if len(functions) != len(FUNCTIONS):
            raise ValueError(f"Stream: {len(functions)} functions, expected {len(FUNCTIONS)}")
        for i, address in enumerate(functions):
            if not address and FUNCTIONS[i] != FUNCTIONS[-1]:
                raise RuntimeError(f"opengl: {self.name} has no function gl{FUNCTIONS[i]}")
            slots[i] = <void *><size_t>address

    def stage(self, uint32_t write, size_t to_write, uint32_t read, size_t to_read):
        """Takes buffers that the host sees, and their addresses there: bytes go through them from now on."""
        cdef tf_gl_staging *s = &self.s.context.staging
        s.write, s.to_write, s.read, s.to_read = write, <char *>to_write, read, <char *>to_read

    def serve(self):
        """Runs commands until the stream is stopped."""
        cdef int kind
        while True:
            with nogil:
                kind = stream_serve(self.s)
            if kind == TF_CALL:
                self.jobs.popleft()()
                context_forget(&self.s.context)
            stream_advance(self.s, TF_CLOSED if kind == TF_STOP else 0)
            if kind == TF_STOP:
                return

    @property
    def lost(self):
        """The result that ended the stream, or 0."""
        return self.s.lost

    cdef int check(self, int32_t rc) except -1:
        if rc:
            text = RESULTS.get(rc, f"the driver answered 0x{rc:x}").format(seconds=self.s.context.timeout / 1e9)
            raise self.failure(text, rc == 0x505 or rc == TF_NO_MEMORY, rc == TF_FORKED)
        return 0

    cdef int wait(self, uint64_t number, uint64_t limit) except -1:
        """Until so many commands are done; other threads go on meanwhile."""
        cdef int32_t rc
        with nogil:
            rc = stream_wait(self.s, number, limit)
        return self.check(rc)

    cdef tf_command *place(self) except NULL:
        """Where the next command goes; the caller fills it and puts it without giving up the GIL."""
        cdef tf_command *c
        while True:
            self.check(self.s.lost)
            c = stream_place(self.s)
            if c is not NULL:
                return c
            self.wait(self.s.put - TF_GL_RING // 2, self.s.context.timeout)

    def stop(self):
        """The context's thread leaves `serve` when it has done what was asked before."""
        cdef tf_command *c
        if self.s.lost == TF_FORKED:
            return
        c = stream_place(self.s) if self.s.lost else self.place()
        if c is not NULL:            # else the driver hangs, and the thread with it
            c.kind = TF_STOP
            stream_put(self.s)

    def orphan(self):
        """In the child of a fork: nothing serves the stream."""
        stream_orphaned(self.s)

    def faults(self, uint32_t buffer):
        """The buffer in which bodies tell of bad indices."""
        self.s.context.fault = buffer

    def call(self, job):
        """The result of a function that runs on the context's thread, after all commands before."""
        cdef tf_command *c
        found = []

        def run():
            try:
                found.append((job(), None))
            except BaseException as error:
                found.append((None, error))

        self.wait(self.s.put, self.s.context.timeout)   # so that only the job itself may take its time
        c = self.place()
        c.kind = TF_CALL
        self.jobs.append(run)
        stream_put(self.s)
        self.wait(self.s.put, 0)
        result, error = found[0]
        if error is not None:
            raise error
        return result

    def synchronize(self):
        """Waits for everything asked so far."""
        self.place().kind = TF_FINISH
        stream_put(self.s)
        self.wait(self.s.put, self.s.context.timeout)

    def begin_times(self):
        """On the context's thread: each dispatch has its times taken from now on; gives the number of the first."""
        self.check(context_time(&self.s.context))
        return self.s.context.launches

    def end_times(self):
        """On the context's thread: nanoseconds of the device, when they began, and begin and end of each dispatch."""
        cdef tf_gl_context *g = &self.s.context
        try:
            self.check(context_finish(g))
            return [context_tick(g, i) for i in range(g.stamped)]
        finally:
            context_untime(g)

    def write(self, uint64_t address, const unsigned char[::1] data not None):
        """Bytes to the device, behind all that was asked before; they may change afterwards."""
        cdef uint64_t n = data.shape[0], start = 0, part
        cdef tf_command *c
        cdef void *copy
        while start < n:
            part = min(n - start, <uint64_t>TF_PART)
            if self.s.held + part > HELD:
                self.wait(self.s.put, self.s.context.timeout)
            copy = self.memory(part)
            with nogil:
                memcpy(copy, &data[start], part)
            try:
                c = self.place()
            except BaseException:
                stream_free(self.s, copy, part)
                raise
            c.kind, c.address, c.bytes, c.host = TF_WRITE, address + start, part, copy
            stream_put(self.s)
            start += part

    cdef void *memory(self, uint64_t nbytes) except NULL:
        """Memory for a part of a transfer."""
        cdef void *found = stream_memory(self.s, nbytes)
        if found is NULL:
            raise MemoryError(f"opengl: {self.name}: the host is out of memory")
        return found

    def read(self, uint64_t address, unsigned char[::1] out not None):
        """Bytes of the device, when all that was asked before is done."""
        cdef uint64_t n = out.shape[0], start, asked[2], part[2]
        cdef void *copy[2]
        cdef tf_command *c
        cdef int k = 0
        # where this raises, the copies are kept: the context's thread may still write to them
        for start in range(0, n, TF_PART):       # one part comes while the one before is copied
            self.check(self.s.lost)
            part[k & 1] = min(n - start, <uint64_t>TF_PART)
            copy[k & 1] = self.memory(part[k & 1])
            c = self.place()
            c.kind, c.address, c.bytes, c.host = TF_READ, address + start, part[k & 1], copy[k & 1]
            stream_put(self.s)
            asked[k & 1] = self.s.put
            if k:
                self.take_part(asked[(k - 1) & 1], &out[start - TF_PART], copy[(k - 1) & 1], TF_PART)
            k += 1
        if k:
            self.take_part(asked[(k - 1) & 1], &out[(n - 1) // TF_PART * TF_PART], copy[(k - 1) & 1], part[(k - 1) & 1])

    cdef int take_part(self, uint64_t number, unsigned char *out, void *copy, uint64_t nbytes) except -1:
        """Waits for a part that was asked for."""
        self.wait(number, self.s.context.timeout)
        with nogil:
            memcpy(out, copy, nbytes)
            stream_free(self.s, copy, nbytes)
        return 0
