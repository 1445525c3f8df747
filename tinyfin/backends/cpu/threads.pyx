"""Work splitting and scratch memory of all CPU kernels: the only place that knows OpenMP."""
import os

from cython.parallel cimport parallel, prange
from libc.stdint cimport int64_t, uint32_t

from tinyfin.config import SCRATCH_BYTES, THREADS

cdef extern from *:
    """
    #include <stdlib.h>
    #include <stdint.h>
    #ifdef _OPENMP
    #include <omp.h>
    #else
    static int omp_in_parallel(void) { return 0; }
    #endif
    #if defined(_OPENMP) && _OPENMP >= 201811
    #define tf_pause() omp_pause_resource_all(omp_pause_hard)
    #else
    #define tf_pause() 0
    #endif
    #if defined(__x86_64__)
    #include <xmmintrin.h>
    static uint32_t tf_csr_get(void) { return _mm_getcsr(); }
    static void tf_csr_set(uint32_t x) { _mm_setcsr(x); }
    #else
    static uint32_t tf_csr_get(void) { return 0; }
    static void tf_csr_set(uint32_t x) { (void)x; }
    #endif

    /* Scratch: a stack of chunks per thread; the first chunk stays, larger ones come and go. */
    typedef struct tf_chunk { struct tf_chunk *below; size_t size, used; } tf_chunk;
    #define TF_CHUNK_HEAD 64
    static __thread tf_chunk *tf_top;
    static __thread size_t tf_scratch_held;
    static size_t tf_scratch_limit = (size_t)1 << 30;
    static tf_chunk *tf_chunk_new(size_t bytes) {
      void *p = NULL;
      size_t size = bytes < ((size_t)1 << 20) ? (size_t)1 << 20 : bytes;
      if (size > tf_scratch_limit - (tf_scratch_held < tf_scratch_limit ? tf_scratch_held : tf_scratch_limit))
        return NULL;
      if (posix_memalign(&p, 64, size + TF_CHUNK_HEAD)) return NULL;
      tf_chunk *c = p;
      c->below = tf_top; c->size = size; c->used = 0;
      tf_scratch_held += size;
      return tf_top = c;
    }
    static void *tf_scratch_push(size_t bytes) {
      bytes = (bytes + 63) & ~(size_t)63;
      tf_chunk *c = tf_top;
      if (!c || c->size - c->used < bytes) {
        if (c && !c->used) {              /* an unused first chunk that is too small */
          tf_scratch_held -= c->size; tf_top = c->below; free(c);
        }
        if (!(c = tf_chunk_new(bytes))) return NULL;
      }
      void *p = (char *)c + TF_CHUNK_HEAD + c->used;
      c->used += bytes;
      return p;
    }
    static void tf_scratch_pop(size_t bytes) {
      tf_chunk *c = tf_top;
      c->used -= (bytes + 63) & ~(size_t)63;
      if (!c->used && c->below) { tf_scratch_held -= c->size; tf_top = c->below; free(c); }
    }
    """
    int omp_in_parallel() nogil
    int tf_pause() nogil
    uint32_t tf_csr_get() nogil
    void tf_csr_set(uint32_t) nogil
    void *tf_scratch_push(size_t bytes) nogil
    void tf_scratch_pop(size_t bytes) nogil
    size_t tf_scratch_limit

cdef int TEAM = 1
cdef double WAKE_NS = 40000.0   # work below this is not worth waking a thread for


cdef void parallel_for(int64_t n, double cost_ns, tf_task fn, void *ctx) noexcept nogil:
    cdef int64_t i
    cdef uint32_t csr, mine
    if n <= 1 or TEAM == 1 or cost_ns < WAKE_NS or omp_in_parallel():
        for i in range(n):
            fn(i, ctx)
        return
    csr = tf_csr_get()
    with parallel(num_threads=TEAM):
        mine = tf_csr_get()
        tf_csr_set(csr)                       # workers compute in the caller's flush mode
        for i in prange(n, schedule="dynamic", chunksize=1):
            fn(i, ctx)
        tf_csr_set(mine)


cdef void *scratch_push(size_t bytes) noexcept nogil:
    return tf_scratch_push(bytes)


cdef void scratch_pop(size_t bytes) noexcept nogil:
    tf_scratch_pop(bytes)


cdef void flush_set(bint on) noexcept nogil:
    tf_csr_set((tf_csr_get() & ~<uint32_t>0x8040) | (0x8040 if on else 0))


def _quota():
    """Cores that the control group grants, or None."""
    try:
        with open("/sys/fs/cgroup/cpu.max") as f:
            quota, period = f.read().split()
        return None if quota == "max" else max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        return None


def available_cores():
    """Cores that this process may use: affinity and control group."""
    try:
        n = len(os.sched_getaffinity(0))
    except AttributeError:
        n = os.cpu_count() or 1
    quota = _quota()
    return n if quota is None else min(n, quota)


def set_num_threads(n):
    """Sets how many threads CPU kernels use; results never depend on it."""
    global TEAM
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"set_num_threads: n is {n!r}, expected an integer")
    if not 1 <= n <= 1024:
        raise RuntimeError(f"set_num_threads: n is {n}, expected 1 to 1024")
    TEAM = n


def get_num_threads():
    """How many threads CPU kernels use."""
    return TEAM


def scratch_limit():
    """Most bytes of kernel temporaries per thread."""
    return tf_scratch_limit


TEAM = min(THREADS or available_cores(), 1024)
tf_scratch_limit = SCRATCH_BYTES
if hasattr(os, "register_at_fork"):
    # GNU OpenMP's workers do not survive a fork, and a child that uses them hangs.
    os.register_at_fork(before=lambda: tf_pause())
