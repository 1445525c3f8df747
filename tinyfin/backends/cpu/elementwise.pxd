"""Any strides and dtypes walked in row-major order of a result, for elementwise rows and copies."""
from libc.stdint cimport int64_t

from tinyfin.core.abi cimport *

cdef extern from "loops.h" nogil:
    ctypedef void (*tf_loop)(void *out, const void *const *inputs, int64_t n, const double *f) noexcept nogil

cdef enum:
    MAXOPS = 5          # output and up to four inputs
    BLOCK = 512         # elements that pass through L1 at a time
    CHUNK = 1 << 13     # elements of one task
    DIRECT = 1 << 15    # elements that are never shared
    AROUND = 1 << 24    # bytes of each thread's part of a result that caches need not hold
    LINE = 64           # bytes
    SLAB = 1 << 22      # bytes of turned inputs, at most
    SHORT = 48          # inner axes below this are gathered across rows

cdef enum:              # how a row of an operand reaches the loop
    IN_PLACE, ONE_VALUE, BY_BLOCKS

cdef enum:              # how rows that are short together do: dense; all the same; of one value each; otherwise
    JOINED, REPEATED, SPREAD, LOOSE

ctypedef struct Operand:
    char *data
    int64_t strides[8]     # in bytes
    int item, dtype, way, across

cdef extern from *:
    """
    /* What passes through L1, at the start of a line: vectors that straddle two are slow. */
    typedef struct {
      char raw[512 * 8], work[5 * 512 * 8];
      char *filled[5]; /* where the value that fills block i came from */
    } __attribute__((aligned(64))) tf_blocks;
    """
    ctypedef struct Blocks "tf_blocks":
        char raw[BLOCK * 8]
        char work[MAXOPS * BLOCK * 8]
        char *filled[MAXOPS]

ctypedef struct Job:
    int ndim, nops, compute, loop_out
    bint flat              # rows are long enough to be walked one by one
    int64_t joined         # rows that pass through L1 together; 0: they are not joined
    int axis               # along which they are counted
    int64_t inner          # their elements
    int64_t slab           # rows whose inputs are turned round together; 0: none are
    size_t refused
    bint direct            # every operand can be used in place
    bint around            # the result goes to memory past the caches
    int64_t shape[8]
    int64_t size, chunk
    Operand ops[5]         # ops[0] is the output
    tf_loop loop
    const double *f


cdef void prepare(Job *job, const tf_view *const *inputs, int n, const tf_view *out) noexcept nogil
cdef const void *joined(Job *job, Operand *o, const int64_t *index, int64_t run, Blocks *b, int i) noexcept nogil
cdef void gather(Job *job, Operand *o, const int64_t *index, int64_t run, char *dst) noexcept nogil
cdef void scatter(Job *job, Operand *o, const int64_t *index, int64_t run, const char *src) noexcept nogil


cdef inline int log2_of(int item) noexcept nogil:
    """Of 1, 2, 4 or 8."""
    return (item > 1) + (item > 2) + (item > 4)


cdef inline char *work_of(Blocks *b, int i) noexcept nogil:
    return b.work + i * (BLOCK * 8)


cdef inline char *locate(Operand *o, const int64_t *index, int nd) noexcept nogil:
    cdef char *p = o.data
    cdef int k
    for k in range(nd):
        p += index[k] * o.strides[k]
    return p


cdef inline void place_at(const Job *job, int64_t pos, int64_t *index) noexcept nogil:
    cdef int k
    for k in range(job.ndim - 1, -1, -1):
        index[k] = pos % job.shape[k]
        pos //= job.shape[k]


cdef inline void advance(Job *job, int64_t *index, int64_t run) noexcept nogil:
    cdef int k = job.ndim - 1
    index[k] += run
    while k > 0 and index[k] >= job.shape[k]:
        index[k - 1] += index[k] // job.shape[k]
        index[k] %= job.shape[k]
        k -= 1
