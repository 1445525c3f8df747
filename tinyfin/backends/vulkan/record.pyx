"""Recording, submitting and waiting: what runs at each call on a Vulkan device."""
cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free

from tinyfin.backends.gpu.launch cimport set_launcher, tf_launch
from tinyfin.backends.gpu.programs cimport Programs
from tinyfin.backends.gpu.slabs cimport Slab
from tinyfin.core.abi cimport TF_VULKAN

cdef enum:
    FORKED = -1000          # what ends a stream besides the results of Vulkan

RING = TF_RING
QUERIES = TF_RING * TF_QUERIES
"""Timestamps that a pool holds."""
FUNCTIONS = ("BeginCommandBuffer", "EndCommandBuffer", "CmdBindPipeline", "CmdPushConstants", "CmdDispatch",
             "CmdPipelineBarrier", "CmdCopyBuffer", "CmdResetQueryPool", "CmdWriteTimestamp", "GetQueryPoolResults",
             "QueueSubmit", "WaitSemaphores", "GetSemaphoreCounterValue")
"""Functions of the device that a stream calls, in the order in which it takes their addresses."""

RESULTS = {2: "the device did not finish within {seconds:g} s (TINYFIN_GPU_TIMEOUT)", -1: "the host is out of memory",
           -2: "the device is out of memory", -4: "the device was lost; the driver has reset it or a kernel hung",
           FORKED: "the process was forked after the device was opened; start processes with 'spawn' "
                   "(DataLoader: multiprocessing_context='spawn'), or use it in this process first"}


cdef int launch(void *where, tf_launch *l) except -1:
    """Records a dispatch on a device."""
    cdef Stream stream = <Stream>where
    cdef uint64_t handle = stream.handle_of(l)
    cdef int32_t rc
    if not stream.s.open:
        stream.room()
    rc = stream_launch(&stream.s, handle, stream.layout, l)
    if rc:
        stream.check(rc)
    return 0


set_launcher(TF_VULKAN, launch)


@cython.binding(False)
cdef class Stream(Programs):
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
        self.s.semaphore, self.s.timeout = semaphore, <int64_t>(seconds * 1e9)
        self.api, self.name = "vulkan", name

    def use(self, make, uint64_t layout):
        """Takes a maker of pipelines, (shader, constants) -> handle, and the layout that they all have."""
        self.take(make)
        self.layout = layout

    @property
    def value(self):
        """The timeline's value when everything that was submitted is done."""
        return self.s.value

    @property
    def lost(self):
        """The result that ended the stream, or 0."""
        return self.s.lost

    def submit(self):
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

    cdef int settle(self) except -1:
        """Waits until nothing is open nor under way, also of what other threads record while this one waits."""
        cdef uint64_t value
        while True:
            self.check(stream_flush(&self.s))
            value = self.s.value
            self.wait(value)
            if not self.s.open and self.s.value == value:
                return 0

    def time(self, uint64_t queries):
        """Begins to take the time of each dispatch, in a pool of QUERIES timestamps; gives the number of the first."""
        cdef uint64_t first
        self.settle()
        first = self.s.launches
        self.check(stream_time(&self.s, queries))
        self.synchronize()
        return first

    def untime(self):
        """Ends it. Ticks of the device: when `time` was called, then begin and end of each dispatch since."""
        cdef size_t i
        self.settle()
        self.check(stream_untime(&self.s))
        return [self.s.ticks[i] for i in range(self.s.read)]

    def __dealloc__(self):
        free(self.s.ticks)

    def orphan(self):
        """In the child of a fork: the device is the parent's."""
        self.s.lost = FORKED

    def idle(self):
        """Whether the device has done all that was recorded."""
        cdef uint64_t now = 0
        if self.s.open or self.s.lost:
            return False
        self.check(self.s.fn.GetSemaphoreCounterValue(self.s.device, self.s.semaphore, &now))
        return now >= self.s.value

    cdef int room(self) except -1:
        """Waits for a command buffer that is free, where none is open; other threads go on meanwhile."""
        cdef uint64_t value, now = 0
        cdef int32_t rc
        while not self.s.open and not self.s.lost:
            value = self.s.signalled[(self.s.current + 1) % TF_RING]
            self.check(self.s.fn.GetSemaphoreCounterValue(self.s.device, self.s.semaphore, &now))
            if now >= value:
                break
            with nogil:
                rc = stream_wait(&self.s, value)
            self.check(rc)
        return 0

    def copy(self, Slab source not None, uint64_t source_offset, Slab target not None, uint64_t target_offset,
             uint64_t nbytes):
        """Bytes from slab to slab; the timeline's value when they are there."""
        cdef tf_vk_copy part
        cdef tf_range read, write
        part.source, part.target, part.size = source_offset, target_offset, nbytes
        read.low, write.low = source.address + source_offset, target.address + target_offset
        read.high, write.high = read.low + nbytes, write.low + nbytes
        self.room()
        self.check(stream_copy(&self.s, source.buffer, target.buffer, part, read, write))
        return self.s.value + (1 if self.s.open else 0)

    cdef int check(self, int32_t rc) except -1:
        if rc:
            text = RESULTS.get(rc, f"the driver answered {rc}").format(seconds=self.s.timeout / 1e9)
            raise self.failure(text, rc == -1 or rc == -2, rc == FORKED)
        return 0
