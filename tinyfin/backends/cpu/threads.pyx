"""Work splitting and scratch memory of all CPU kernels: the only place that knows OpenMP."""
import os

from cython.parallel cimport parallel, prange
from libc.stdint cimport int64_t, uint32_t

from tinyfin.config import SCRATCH_BYTES, THREADS
from tinyfin.core.cgroup import cores

cdef extern from *:
    """
    #include <pthread.h>
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

    /* Scratch: a stack of chunks per thread; the first one stays while it is not huge, others come and go. */
    typedef struct tf_chunk { struct tf_chunk *below; size_t size, used; } tf_chunk;
    #define TF_CHUNK_HEAD 64
    #define TF_CHUNK_LEAST ((size_t)1 << 20)
    #define TF_CHUNK_KEPT ((size_t)64 << 20)
    static __thread tf_chunk *tf_top;
    static __thread size_t tf_scratch_held;
    static size_t tf_scratch_limit = (size_t)1 << 30;
    static pthread_key_t tf_scratch_key;
    static pthread_once_t tf_scratch_once = PTHREAD_ONCE_INIT;
    static void tf_scratch_end(void *unused) {     /* a thread that ends gives its chunks back */
      for (tf_chunk *c; (c = tf_top); ) { tf_top = c->below; free(c); }
    }
    static void tf_scratch_begin(void) { pthread_key_create(&tf_scratch_key, tf_scratch_end); }
    static tf_chunk *tf_chunk_new(size_t bytes) {
      void *p = NULL;
      if (!tf_top) {
        pthread_once(&tf_scratch_once, tf_scratch_begin);
        pthread_setspecific(tf_scratch_key, &tf_top);
      }
      size_t least = tf_scratch_limit < TF_CHUNK_LEAST ? tf_scratch_limit : TF_CHUNK_LEAST;
      size_t size = bytes < least ? least : bytes;
      if (size > tf_scratch_limit - (tf_scratch_held < tf_scratch_limit ? tf_scratch_held : tf_scratch_limit))
        return NULL;
      if (posix_memalign(&p, 64, size + TF_CHUNK_HEAD)) return NULL;
      tf_chunk *c = p;
      c->below = tf_top; c->size = size; c->used = 0;
      tf_scratch_held += size;
      return tf_top = c;
    }
    static void *tf_scratch_push(size_t bytes) {
      if (bytes > tf_scratch_limit) return NULL;
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
      if (!c->used && (c->below || c->size > TF_CHUNK_KEPT)) { tf_scratch_held -= c->size; tf_top = c->below; free(c); }
    }
    """
    int omp_in_parallel() nogil
    int tf_pause() nogil
    void *tf_scratch_push(size_t bytes) nogil
    void tf_scratch_pop(size_t bytes) nogil
    size_t tf_scratch_limit

cdef extern from "flush.h" nogil:
    uint32_t tf_csr_get()
    void tf_csr_set(uint32_t)

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


def available_cores():
    """Cores that this process may use: affinity and control group."""
    try:
        n = len(os.sched_getaffinity(0))
    except AttributeError:
        n = os.cpu_count() or 1
    granted = cores()
    return n if granted is None else min(n, granted)


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
