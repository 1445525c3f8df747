"""The library's functions, called without the GIL: operands, widths of integers, threads and forks."""
from libc.stdint cimport INT32_MAX, int32_t, int64_t

from tinyfin.backends.cpu.threads cimport parallel_for
from tinyfin.core.abi cimport TF_F32

cdef extern from "gate.h" nogil:
    void tf_gate_enter(int alone)
    void tf_gate_leave()
    int tf_gate_watch_forks()

cdef enum:
    ROW_MAJOR = 101
    PLAIN = 111
    TRANSPOSED = 112

ctypedef void (*sgemm32)(int order, int a_side, int b_side, int32_t m, int32_t n, int32_t k,
                         float alpha, const void *a, int32_t lda, const void *b, int32_t ldb,
                         float beta, void *c, int32_t ldc) noexcept nogil
ctypedef void (*sgemm64)(int order, int a_side, int b_side, int64_t m, int64_t n, int64_t k,
                         float alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                         float beta, void *c, int64_t ldc) noexcept nogil
ctypedef void (*dgemm32)(int order, int a_side, int b_side, int32_t m, int32_t n, int32_t k,
                         double alpha, const void *a, int32_t lda, const void *b, int32_t ldb,
                         double beta, void *c, int32_t ldc) noexcept nogil
ctypedef void (*dgemm64)(int order, int a_side, int b_side, int64_t m, int64_t n, int64_t k,
                         double alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                         double beta, void *c, int64_t ldc) noexcept nogil

cdef void *SGEMM = NULL
cdef void *DGEMM = NULL
cdef bint WIDE = False           # integers of 64 bits
cdef int ALONE = 0               # one call at a time, for libraries that know no threads
cdef void *SETTER = NULL         # of its thread count
cdef bint LONG = False
cdef bint SPLITS = False
cdef int THREADS = 1
cdef int SINGLE = 0              # callers that need it to use one thread
cdef bint READY = False
cdef bint EAGER = False
cdef bint WATCHING = False


cdef bint readable_matrix(operand *x, int64_t rows, int64_t cols, int64_t row_step,
                          int64_t col_step) noexcept nogil:
    """How CBLAS reads a matrix where it lies; False where it cannot, and for sizes it cannot count."""
    if (col_step == 1 or cols == 1) and (row_step >= cols or rows == 1):
        x.turned, x.ld = False, row_step if rows > 1 else cols
    elif (row_step == 1 or rows == 1) and (col_step >= rows or cols == 1):
        x.turned, x.ld = True, col_step if cols > 1 else rows
    else:
        return False
    return countable(rows, cols, x.ld)


cdef bint eager() noexcept nogil:
    return EAGER


cdef bint countable(int64_t a, int64_t b, int64_t c) noexcept nogil:
    """Whether the library's integers hold the numbers; never, where none is connected."""
    return READY and (WIDE or max(a, b, c) <= INT32_MAX)


cdef void product(int dtype, int64_t m, int64_t n, int64_t k, const operand *a, const operand *b,
                  char *c, int64_t ldc, bint onto) noexcept nogil:
    """C = A B, or C += A B; all sizes positive and countable."""
    cdef int ta = TRANSPOSED if a.turned else PLAIN, tb = TRANSPOSED if b.turned else PLAIN
    tf_gate_enter(ALONE)
    if dtype == TF_F32 and WIDE:
        (<sgemm64>SGEMM)(ROW_MAJOR, ta, tb, m, n, k, 1, a.at, a.ld, b.at, b.ld, onto, c, ldc)
    elif dtype == TF_F32:
        (<sgemm32>SGEMM)(ROW_MAJOR, ta, tb, <int32_t>m, <int32_t>n, <int32_t>k, 1, a.at,
                         <int32_t>a.ld, b.at, <int32_t>b.ld, onto, c, <int32_t>ldc)
    elif WIDE:
        (<dgemm64>DGEMM)(ROW_MAJOR, ta, tb, m, n, k, 1, a.at, a.ld, b.at, b.ld, onto, c, ldc)
    else:
        (<dgemm32>DGEMM)(ROW_MAJOR, ta, tb, <int32_t>m, <int32_t>n, <int32_t>k, 1, a.at,
                         <int32_t>a.ld, b.at, <int32_t>b.ld, onto, c, <int32_t>ldc)
    tf_gate_leave()


cdef void apply_threads() noexcept nogil:
    """Gives the library its thread count; no product runs meanwhile."""
    cdef int n = 1 if SINGLE > 0 else THREADS
    if SETTER != NULL and LONG:
        (<void (*)(int64_t) noexcept nogil>SETTER)(n)
    elif SETTER != NULL:
        (<void (*)(int) noexcept nogil>SETTER)(n)


cdef bint splits() noexcept nogil:
    """Whether our team may share tasks that call the library."""
    return SPLITS and THREADS > 1


cdef void run_tasks(int64_t n, bint split, double cost_ns, tf_task fn, void *ctx) noexcept nogil:
    """Tasks that call the library: split among our team while the library keeps to each caller's
    thread, where it can be told to; else one after the other, with the library's threads in each.

    The library's threads meet many times in each product. On a busy machine many small products
    take a thousand times as long as one large one; our team waits only for tasks that have begun.
    """
    global SINGLE
    cdef int64_t t
    if not (split and splits() and n > 1):
        for t in range(n):
            fn(t, ctx)
        return
    tf_gate_enter(1)
    SINGLE += 1
    if SINGLE == 1:
        apply_threads()
    tf_gate_leave()
    parallel_for(n, cost_ns, fn, ctx)
    tf_gate_enter(1)
    SINGLE -= 1
    if SINGLE == 0:
        apply_threads()
    tf_gate_leave()


def connect(size_t sgemm, size_t dgemm, bint wide, bint alone):
    """The addresses of the library's products, its integers' width, and whether calls must not meet."""
    global SGEMM, DGEMM, WIDE, ALONE, READY, WATCHING
    with nogil:
        tf_gate_enter(1)
        SGEMM, DGEMM, WIDE, ALONE = <void *>sgemm, <void *>dgemm, wide, alone
        READY = True
        tf_gate_leave()
    if not WATCHING:
        WATCHING = tf_gate_watch_forks() == 0


def connect_threads(size_t setter, bint wide, bint general):
    """The function that sets the library's thread count, 0 for none, whether that takes 64 bits, and
    whether it holds for callers in all threads."""
    global SETTER, LONG, SPLITS
    with nogil:
        tf_gate_enter(1)
        SETTER, LONG, SPLITS = <void *>setter, wide, general and setter != 0
        tf_gate_leave()


def set_threads(int n):
    """How many threads the library uses.

    The GIL is not held inside: threads that hold it may wait there for their products.
    """
    global THREADS
    with nogil:
        tf_gate_enter(1)
        THREADS = n
        apply_threads()
        tf_gate_leave()


def forget_tasks():
    """In the child of a fork, whose parent's other threads may have had tasks."""
    global SINGLE
    cdef bint some = SINGLE > 0
    SINGLE = 0
    return some


def disconnect():
    """Products go to the CPU's own kernels from now on; those under way find the library still."""
    global READY
    READY = False


def set_eager(bint on):
    """Whether the library computes all that it can, also what our own kernels do faster; for tests."""
    global EAGER
    EAGER = on
