"""Storage: the bytes under tensors, from a caching pool or borrowed from someone else.

The pool's lists are guarded by the GIL: allocation and release happen with it held.
"""
cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer)
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint64_t

from tinyfin.core.abi cimport *

from tinyfin.core import memory

cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>
    #ifdef __linux__
    #include <sys/mman.h>
    #endif
    #ifdef __GLIBC__
    #include <malloc.h>
    #endif
    static void *tf_block_new(size_t n) {
      size_t align = n >= (4u << 20) ? (2u << 20) : 64;
      void *p = NULL;
      if (posix_memalign(&p, align, (n + align - 1) / align * align)) return NULL;
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
      if (align > 64) madvise(p, n, MADV_HUGEPAGE);   /* fewer page faults on first touch */
    #endif
      return p;
    }
    /* size classes: steps of 64 bytes up to 1 KiB, then eight to an octave */
    static int tf_class_of(size_t n) {
      if (n <= 1024) return n ? (int)((n + 63) / 64) : 1;
      int top = 63 - __builtin_clzll(n - 1);
      return 17 + (top - 10) * 8 + (int)(((n - 1) >> (top - 3)) & 7);
    }
    static size_t tf_class_bytes(int c) {
      if (c <= 16) return (size_t)c * 64;
      int top = (c - 17) / 8 + 10, sub = (c - 17) % 8;
      return ((size_t)1 << top) + ((size_t)(sub + 1) << (top - 3));
    }
    #ifdef TF_CHECKED
    #define TF_CACHING 0   /* sanitizers see every allocation */
    #else
    #define TF_CACHING 1
    #endif
    #define TF_CLASSES 448   /* the class of 2^64 bytes is below this */
    typedef struct tf_free_block { struct tf_free_block *next; } tf_free_block;
    static tf_free_block *tf_free_lists[TF_CLASSES];
    static uint64_t tf_requests, tf_reused;
    static size_t tf_live, tf_cached, tf_peak, tf_limit = (size_t)-1;
    static size_t tf_fresh;  /* bytes taken from the system since its free memory was last looked at */
    static size_t tf_cache_limit = (size_t)1 << 31;
    static void tf_cache_empty(void) {
      for (int c = 0; c < TF_CLASSES; c++)
        for (tf_free_block *b; (b = tf_free_lists[c]); ) { tf_free_lists[c] = b->next; free(b); }
      tf_cached = 0;
    #ifdef __GLIBC__
      malloc_trim(0);   /* free() keeps what lies below a block in use, which for many small tensors is nearly all */
    #endif
    }
    /* live and peak count the bytes asked for, cached and fresh the blocks' */
    static void *tf_pool_get(int c, size_t asked) {
      tf_free_block *b = tf_free_lists[c];
      size_t n = tf_class_bytes(c);
      tf_requests++;
      if (b) { tf_free_lists[c] = b->next; tf_cached -= n; tf_reused++; }
      else { b = tf_block_new(n); tf_fresh += n; }
      if (b) { tf_live += asked; if (tf_live > tf_peak) tf_peak = tf_live; }
      return b;
    }
    static int tf_pool_has(int c) { return tf_free_lists[c] != NULL; }
    static void tf_pool_put(void *p, int c, size_t asked) {
      size_t n = tf_class_bytes(c);
      tf_live -= asked;
      if (!TF_CACHING || tf_cached + n > tf_cache_limit) { free(p); return; }
      ((tf_free_block *)p)->next = tf_free_lists[c];
      tf_free_lists[c] = p;
      tf_cached += n;
    }
    """
    void *tf_pool_get(int c, size_t asked) nogil
    void tf_pool_put(void *p, int c, size_t asked) nogil
    bint tf_pool_has(int c) nogil
    int tf_class_of(size_t n) nogil
    size_t tf_class_bytes(int c) nogil
    void tf_cache_empty() nogil
    uint64_t tf_requests, tf_reused
    size_t tf_live, tf_cached, tf_peak, tf_limit, tf_fresh

cdef size_t LARGE = 1 << 20          # storages from here on are named in memory errors
cdef size_t CHECKED_FROM = 16 << 20  # bytes taken from the system between two looks at its free memory
cdef size_t IMPOSSIBLE = <size_t>1 << 56

cdef dict LIVE = {}        # address of a large storage -> (bytes, operation that made it)
cdef list ALLOCATORS = [None] * TF_MAXBACKEND  # backend slot -> function (bytes, device index) -> object owning the block


@cython.freelist(128)
@cython.binding(False)
cdef class Storage:
    """Bytes shared by a tensor and its views, with a version that in-place writes raise."""

    def __dealloc__(self):
        if self.lending != NULL:
            leave(self)
        if self.pooled:
            if self.nbytes >= LARGE:
                LIVE.pop(<size_t><void *>self.data, None)
            tf_pool_put(self.data, tf_class_of(self.capacity), self.nbytes)
        elif self.has_buffer:
            PyBuffer_Release(&self.buf)


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Lending:
    """Storages that read the bytes of another, the lender, until one of them is written: see core/lending.pxi."""

    def __dealloc__(self):
        if self.lender is not None:
            self.lender.lending = NULL


@cython.binding(False)
cdef class Allocator:
    """An allocator whose blocks the core takes without a call of Python's."""

    cdef object take(self, size_t nbytes, int index, void **block):
        """The owner of a block, and what kernels know it by."""
        raise NotImplementedError


cdef int leave(Storage s) except -1:
    """Ends a storage's part in what it borrows; its bytes are the lender's no more than before."""
    cdef Lending all = <Lending>s.lending
    all.borrowers.pop(<size_t><void *>s, None)
    s.lending = NULL
    Py_DECREF(all)
    return 0


cdef int adopt_block(Storage s, Storage other) except -1:
    """The pool's block of another storage of the same size becomes this one's."""
    s.data, s.capacity, s.pooled = other.data, other.capacity, True
    other.pooled = False
    return 0


cdef Storage allocate(size_t nbytes, int backend, int index, str label):
    cdef Storage s
    cdef int c
    cdef size_t size
    if backend != TF_CPU:
        return allocate_on_device(nbytes, backend, index)
    if nbytes > IMPOSSIBLE:
        refuse(nbytes, free_bytes(), label)
    c = tf_class_of(nbytes)
    size = tf_class_bytes(c)
    if nbytes > tf_limit - min(tf_limit, tf_live) or (tf_fresh + size >= CHECKED_FROM and not tf_pool_has(c)):
        check_free(nbytes, label)
    s = Storage.__new__(Storage)
    s.data = <char *>tf_pool_get(c, nbytes)
    if s.data == NULL:
        tf_cache_empty()
        s.data = <char *>tf_pool_get(c, nbytes)
        if s.data == NULL:
            refuse(nbytes, 0, label)
    s.capacity = size
    s.nbytes = nbytes
    s.pooled = True
    if nbytes >= LARGE:
        LIVE[<size_t><void *>s.data] = (nbytes, label)
    return s


cdef Storage allocate_on_device(size_t nbytes, int backend, int index):
    """The allocator's object owns the bytes: it has the buffer protocol, or a number `block`, or nothing."""
    cdef Storage s = Storage.__new__(Storage)
    allocator = ALLOCATORS[backend]
    s.nbytes, s.backend, s.index = nbytes, backend, index
    if allocator is None:
        return s
    if isinstance(allocator, Allocator):
        s.owner = (<Allocator>allocator).take(nbytes, index, &s.block)
        return s
    owner = s.owner = allocator(nbytes, index)
    if PyObject_CheckBuffer(owner):
        PyObject_GetBuffer(owner, &s.buf, PyBUF_WRITABLE)
        s.has_buffer, s.data = True, <char *>s.buf.buf
    elif owner is not None:
        s.block = <void *><size_t>getattr(owner, "block", 0)
    return s


def set_allocator(int backend, allocator):
    """Gives the core the allocator of a device backend: (bytes, index) -> owner of the block; None has no memory."""
    ALLOCATORS[backend] = allocator


cdef size_t free_bytes() except? 0:
    """What the system and the limit still allow."""
    cdef size_t free = memory.available()
    return min(free, tf_limit - min(tf_limit, tf_live))


cdef int check_free(size_t nbytes, str label) except -1:
    """Refuses what cannot fit before anything is touched."""
    global tf_fresh
    cdef size_t free = free_bytes()
    tf_fresh = 0
    if nbytes > free and tf_cached:        # cached blocks count as free: they are given back first
        tf_cache_empty()
        free = free_bytes()
    if nbytes > free:
        refuse(nbytes, free, label)
    return 0


cdef int refuse(size_t nbytes, size_t free, str label) except -1:
    from tinyfin.core.errors import out_of_memory
    raise MemoryError(out_of_memory(label, nbytes, free, memory_stats(), list(LIVE.values())))


def memory_stats():
    """Counters of the host pool, in bytes: live, cached, peak, limit; requests and reused count blocks.

    `live` and `peak` are what was asked for, `cached` are whole blocks.

    >>> import tinyfin
    >>> sorted(tinyfin.memory_stats())
    ['cached', 'limit', 'live', 'peak', 'requests', 'reused']
    """
    return {"live": tf_live, "cached": tf_cached, "peak": tf_peak, "requests": tf_requests,
            "reused": tf_reused, "limit": None if tf_limit == <size_t>-1 else tf_limit}


def empty_cache():
    """Gives the pool's unused blocks back to the operating system."""
    tf_cache_empty()


def set_memory_limit(limit):
    """Sets the most bytes that live tensors may hold on the host; None removes the limit."""
    global tf_limit
    if limit is None:
        tf_limit = <size_t>-1
        return
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit < 1 << 63:
        raise ValueError(f"set_memory_limit: limit is {limit!r}, expected a number of bytes >= 0, or None")
    tf_limit = limit


def reset_peak_memory_stats():
    """Starts a new measurement of the peak."""
    global tf_peak
    tf_peak = tf_live


cdef Storage borrow(object owner, char *data, size_t nbytes, bint readonly):
    """A storage over bytes that `owner` keeps alive."""
    cdef Storage s = Storage.__new__(Storage)
    s.owner, s.data, s.nbytes, s.readonly = owner, data, nbytes, readonly
    return s


cdef Storage borrow_buffer(object exporter, bint writable):
    """A storage over an object with the buffer protocol; strides are in `buf`."""
    cdef Storage s = Storage.__new__(Storage)
    cdef int flags = PyBUF_FORMAT | PyBUF_STRIDES
    PyObject_GetBuffer(exporter, &s.buf, flags | PyBUF_WRITABLE if writable else flags)
    s.has_buffer = True
    s.data, s.nbytes, s.readonly = <char *>s.buf.buf, s.buf.len, s.buf.readonly
    return s
