"""Storage and its pool for cimport."""
from cpython.buffer cimport Py_buffer
from libc.stdint cimport int64_t, uint8_t


cdef class Storage:
    cdef char *data               # NULL where the host cannot see the bytes
    cdef void *block              # what a device's kernels know the bytes by
    cdef size_t nbytes, capacity
    cdef readonly int64_t version
    cdef object owner
    cdef Py_buffer buf
    cdef void *lending            # its Lending: a borrower owns a reference to it, the lender none; NULL for most
    cdef bint has_buffer, readonly, pooled
    cdef bint exposed             # whether its address was ever given away: others may write without a word
    cdef uint8_t backend, index


cdef class Lending:
    cdef Storage lender
    cdef dict borrowers           # address of a storage -> weak references to its tensors
    cdef int readers, readers_fork


cdef class Allocator:
    cdef object take(self, size_t nbytes, int index, void **block)


cdef int leave(Storage s) except -1
cdef int adopt_block(Storage s, Storage other) except -1


cdef Storage allocate(size_t nbytes, int backend, int index, str label)
cdef Storage borrow(object owner, char *data, size_t nbytes, bint readonly)
cdef Storage borrow_buffer(object exporter, bint writable)
