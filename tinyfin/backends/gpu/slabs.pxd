"""Blocks of device memory for cimport."""
from cpython.ref cimport PyObject
from libc.stdint cimport uint64_t

cdef struct FreeBlock:
    PyObject *slab                      # one of the pool's
    uint64_t block

cdef struct FreeList:                   # a ring, the longest free first
    FreeBlock *blocks
    size_t first, n, space              # space: a power of two


cdef class Slab:
    cdef readonly uint64_t buffer, address, host, nbytes
    cdef readonly object owner
    cdef public uint64_t used, live      # bytes handed out from the front; bytes of living blocks


cdef class Block:
    cdef readonly Pool pool
    cdef readonly Slab slab
    cdef readonly uint64_t block, nbytes, room


cdef class Pool:
    cdef object new_slab, free_slab
    cdef str name
    cdef uint64_t largest
    cdef FreeList *free_lists           # by the class of their size
    cdef list slabs
    cdef readonly uint64_t live, peak, requests, reused
    cdef public object limit
    cdef Block take(self, uint64_t nbytes)
    cdef Slab roomy(self, uint64_t room)
    cdef Slab slab_with(self, uint64_t room)
    cdef int forget(self, list slabs) except -1
    cdef void take_back(self, Block b) noexcept
