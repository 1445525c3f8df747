"""Blocks of device memory: slices of a few large slabs, kept for reuse when they are freed.

Drivers take up to milliseconds for an allocation, so a slab is asked for rarely. A freed block can be
given out again at once: its next user's commands come later on the same queue, which orders them.
But small blocks take turns: a result that lies where the calls before still read or write would wait for them.
"""
cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from tinyfin.core.storage cimport Allocator

cdef enum:
    ROUND = 512
    LARGE = 1 << 20                          # blocks from here on come in fewer sizes
    CLASSES = LARGE // ROUND + 46 * 32       # of sizes, up to 2^64
    TURNING = 64 << 10                       # up to which size blocks take turns,
    TURNS = 4                                # so many of each size at least
cdef uint64_t SLAB = <uint64_t>64 << 20


cdef uint64_t classed(uint64_t room) noexcept nogil:
    """The size of the block that is given: tensors of ever other sizes find the blocks of those before them.
    An eighth more than asked for at most, from a slab's size on a thirty-second."""
    cdef uint64_t step = LARGE // 8
    if room < LARGE:
        return room
    while step * 16 < room:
        step *= 2
    if room >= SLAB:
        step //= 4
    return (room + step - 1) // step * step


cdef int class_of(uint64_t room) noexcept nogil:
    """The number of a size: in steps of ROUND, from LARGE on 32 to an octave."""
    cdef uint64_t step = ROUND
    cdef int first = 0
    if room >= LARGE:
        step, first = LARGE // 32, LARGE // ROUND - 32
        while step * 64 < room:
            step *= 2
            first += 32
    return first + <int>((room + step - 1) // step)


cdef inline FreeBlock *place(const FreeList *f, size_t k) noexcept nogil:
    """Place k of a ring."""
    return &f.blocks[(f.first + k) & (f.space - 1)]


cdef bint grown(FreeList *f) noexcept nogil:
    """Twice the space of a full ring; False where there is no memory."""
    cdef size_t k, space = max(2 * f.space, <size_t>4)
    cdef FreeBlock *more = <FreeBlock *>malloc(space * sizeof(FreeBlock))
    if more is NULL:
        return False
    for k in range(f.n):
        more[k] = place(f, k)[0]
    free(f.blocks)
    f.blocks, f.first, f.space = more, 0, space
    return True


@cython.binding(False)
cdef class Slab:
    """One allocation of the driver: its buffer, its address on the device, and on the host where it is mapped."""

    def __init__(self, uint64_t buffer, uint64_t address, uint64_t host, uint64_t nbytes, owner=None):
        self.buffer, self.address, self.host, self.nbytes, self.owner = buffer, address, host, nbytes, owner


@cython.no_gc
@cython.freelist(128)
@cython.binding(False)
cdef class Block:
    """The bytes of one storage. Its number is the address on the device."""

    @property
    def offset(self):
        """Where it begins in its slab."""
        return self.block - self.slab.address

    @property
    def host(self):
        """Its address on the host; 0 where the slab is not mapped."""
        return self.slab.host + self.offset if self.slab.host else 0

    def __dealloc__(self):
        if self.pool is not None:
            self.pool.take_back(self)


@cython.binding(False)
cdef class Pool:
    """Blocks of one device.

    Args:
        new_slab: function of a number of bytes that gives a Slab, or raises MemoryError.
        free_slab: function of a Slab that is not used any more; waits for the device first.
        name: of the device, for messages.
        largest: bytes that one slab may have.
    """

    def __init__(self, new_slab, free_slab, str name, uint64_t largest):
        self.new_slab, self.free_slab, self.name, self.largest = new_slab, free_slab, name, largest
        self.slabs, self.limit = [], None

    def __cinit__(self, *_):
        self.free_lists = <FreeList *>calloc(CLASSES, sizeof(FreeList))
        if self.free_lists is NULL:
            raise MemoryError()

    def __dealloc__(self):
        cdef int i
        for i in range(CLASSES if self.free_lists is not NULL else 0):
            free(self.free_lists[i].blocks)
        free(self.free_lists)

    def allocate(self, uint64_t nbytes):
        """A block of at least so many bytes."""
        return self.take(nbytes)

    cdef Block take(self, uint64_t nbytes):
        cdef Block b = Block.__new__(Block)
        cdef uint64_t room = max((nbytes + ROUND - 1) // ROUND * ROUND, ROUND)
        cdef Slab slab
        cdef FreeList *f
        cdef FreeBlock *old
        self.requests += 1
        if room > self.largest:
            raise MemoryError(f"{self.name}: {nbytes} bytes were asked for, the device gives at most {self.largest} "
                              "in one piece; split the tensor")
        room = min(classed(room), self.largest)
        if self.limit is not None and self.live + room > self.limit:
            raise MemoryError(f"{self.name}: {nbytes} bytes were asked for, {self.live} of the limit {self.limit} "
                              "are in use; free tensors, or raise it with set_memory_limit")
        f = &self.free_lists[class_of(room)]
        slab = self.roomy(room) if room <= TURNING and f.n < TURNS else None
        if slab is None and f.n:
            old = place(f, 0 if room <= TURNING else f.n - 1)      # of large ones the last: caches may still hold it
            slab, b.block = <Slab>old.slab, old.block
            f.n -= 1
            f.first += room <= TURNING
            self.reused += 1
        else:
            if slab is None:
                slab = self.slab_with(room)
            b.block = slab.address + slab.used
            slab.used += room
        b.slab, b.nbytes, b.room, b.pool = slab, nbytes, room, self
        slab.live += room
        self.live += room
        self.peak = max(self.peak, self.live)
        return b

    cdef Slab roomy(self, uint64_t room):
        """A slab that can be cut further; None where there is none."""
        cdef Slab slab
        for slab in self.slabs:
            if slab.nbytes - slab.used >= room:
                return slab
        return None

    cdef Slab slab_with(self, uint64_t room):
        cdef Slab slab = self.roomy(room)
        if slab is not None:
            return slab
        for slab in self.slabs:                 # one without living blocks is cut anew
            if slab.live == 0 and slab.nbytes >= room:
                self.forget([slab])
                slab.used = 0
                return slab
        try:
            slab = self.new_slab(max(room, min(SLAB, self.largest)))
        except MemoryError:
            self.release()
            try:                                # without what was given back, or for this block alone
                slab = self.new_slab(room)
            except MemoryError:
                raise MemoryError(self.report(room)) from None
        self.slabs.append(slab)
        return slab

    def report(self, uint64_t room):
        """Who holds what, for the error of a device that is full."""
        held = sum([(<Slab>s).nbytes for s in self.slabs])
        return (f"{self.name}: {room} bytes were asked for and the device has no more; living tensors hold "
                f"{self.live} bytes, the pool keeps {held - self.live} more for reuse")

    cdef void take_back(self, Block b) noexcept:
        cdef FreeList *f = &self.free_lists[class_of(b.room)]
        cdef FreeBlock *last
        b.slab.live -= b.room
        self.live -= b.room
        if f.n == f.space and not grown(f):     # forgotten until its slab is cut anew
            return
        last = place(f, f.n)
        last.slab, last.block = <PyObject *>b.slab, b.block
        f.n += 1

    cdef int forget(self, list slabs) except -1:
        """Takes the free blocks of slabs out of the lists."""
        cdef FreeList *f
        cdef size_t k, kept
        cdef int i
        for i in range(CLASSES):
            f, kept = &self.free_lists[i], 0
            for k in range(f.n):
                if <object>place(f, k).slab not in slabs:
                    place(f, kept)[0] = place(f, k)[0]
                    kept += 1
            f.n = kept
        return 0

    def release(self):
        """Gives slabs without a living block back to the driver; their number."""
        cdef list empty = [], kept = []     # made first: a collection may free blocks
        cdef Slab slab
        for slab in self.slabs:
            (kept if slab.live else empty).append(slab)
        if not empty:
            return 0
        self.slabs = kept
        self.forget(empty)
        for slab in empty:
            self.free_slab(slab)
        return len(empty)

    def stats(self):
        """Counters in bytes (live, cached, peak, limit), and of blocks (requests, reused)."""
        held = sum([(<Slab>s).nbytes for s in self.slabs])
        return {"live": self.live, "cached": held - self.live, "peak": self.peak, "requests": self.requests,
                "reused": self.reused, "limit": self.limit}


@cython.binding(False)
cdef class Pools(Allocator):
    """The pools of a backend's devices, and the allocator that the core calls: (bytes, device number) -> block.

    Args:
        open_pool: function of a device's number that gives its pool, called when it is first needed.
    """
    cdef object open_pool
    cdef list pools

    def __init__(self, open_pool):
        self.open_pool, self.pools = open_pool, []

    def __call__(self, uint64_t nbytes, int index):
        cdef void *block
        return self.take(nbytes, index, &block)

    cdef object take(self, size_t nbytes, int index, void **block):
        cdef object pool = self.pools[index] if index < len(self.pools) else None
        cdef Block b
        if pool is None:
            pool = self.open_pool(index)
            self.pools += [None] * (index + 1 - len(self.pools))
            self.pools[index] = pool
        b = (<Pool?>pool).take(nbytes)
        block[0] = <void *>b.block
        return b

    def forget(self, int index):
        """The device of a number is not the one it was: its pool is asked for again."""
        if index < len(self.pools):
            self.pools[index] = None


def to_device(uint64_t address, const unsigned char[::1] data not None):
    """Bytes into mapped memory; other threads go on meanwhile."""
    cdef size_t n = data.shape[0]
    if n:
        with nogil:
            memcpy(<void *><size_t>address, &data[0], n)


def to_host(unsigned char[::1] data not None, uint64_t address):
    """Bytes out of mapped memory."""
    cdef size_t n = data.shape[0]
    if n:
        with nogil:
            memcpy(&data[0], <const void *><size_t>address, n)
