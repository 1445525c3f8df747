"""Recording, submitting and waiting: what runs at each call on a Vulkan device."""
cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t

RING = TF_RING
FUNCTIONS = ("BeginCommandBuffer", "EndCommandBuffer", "CmdBindPipeline", "CmdPushConstants", "CmdDispatch",
             "CmdPipelineBarrier", "CmdCopyBuffer", "QueueSubmit", "WaitSemaphores", "GetSemaphoreCounterValue")
"""Functions of the device that a stream calls, in the order in which it takes their addresses."""

RESULTS = {2: "the device did not finish within {seconds:g} s (TINYFIN_GPU_TIMEOUT)", -1: "the host is out of memory",
           -2: "the device is out of memory", -4: "the device was lost; the driver has reset it or a kernel hung"}


STREAMS = {}
"""Number of a device -> its stream, once it is opened."""


cdef Stream stream_of(int index):
    return STREAMS[index]


@cython.binding(False)
cdef class Stream:
    """The queue of one device: commands in, one timeline out.

    The first error ends it: every later call raises the same, other backends go on.
    """

    def __init__(self, str name, functions, device, queue, semaphore, buffers, double seconds):
        cdef void **slots = <void **>&self.s.fn
        cdef int i
        if len(functions) != len(FUNCTIONS) or len(buffers) != TF_RING:
            raise ValueError(f"Stream: {len(functions)} functions and {len(buffers)} buffers, expected "
                             f"{len(FUNCTIONS)} and {TF_RING}")
        for i in range(len(functions)):
            slots[i] = <void *><size_t>functions[i]
        for i in range(TF_RING):
            self.s.buffers[i] = <void *><size_t>buffers[i]
        self.s.device, self.s.queue = <void *><size_t>device, <void *><size_t>queue
        self.s.semaphore, self.s.timeout, self.name = semaphore, <int64_t>(seconds * 1e9), name

    @property
    def value(self):
        """The timeline's value when everything that was submitted is done."""
        return self.s.value

    @property
    def lost(self):
        """The result that ended the stream, or 0."""
        return self.s.lost

    def flush(self):
        """Submits what was recorded."""
        self.check(stream_flush(&self.s))

    def wait(self, uint64_t value):
        """Waits until the timeline has come to a value; other threads go on meanwhile."""
        cdef int32_t rc
        with nogil:
            rc = stream_wait(&self.s, value)
        self.check(rc)

    def synchronize(self):
        """Waits for everything recorded so far."""
        self.check(stream_flush(&self.s))
        self.wait(self.s.value)

    def copy(self, uint64_t source, uint64_t source_offset, uint64_t source_base, uint64_t target,
             uint64_t target_offset, uint64_t target_base, uint64_t nbytes):
        """Bytes from buffer to buffer; the bases are the buffers' addresses."""
        cdef tf_vk_copy part
        cdef tf_range read, write
        part.source, part.target, part.size = source_offset, target_offset, nbytes
        read.low, write.low = source_base + source_offset, target_base + target_offset
        read.high, write.high = read.low + nbytes, write.low + nbytes
        self.check(stream_copy(&self.s, source, target, part, read, write))

    cdef int check(self, int32_t rc) except -1:
        if rc:
            text = RESULTS.get(rc, f"the driver answered {rc}").format(seconds=self.s.timeout / 1e9)
            if rc == -1 or rc == -2:
                raise MemoryError(f"vulkan: {self.name}: {text}")
            raise RuntimeError(f"vulkan: {self.name}: {text}; tensors there are lost, other backends go on")
        return 0
