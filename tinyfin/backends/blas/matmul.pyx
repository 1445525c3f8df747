"""Matrix products and linear layers by the library; what it cannot read, or would not speed up, by ours."""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t

from tinyfin.backends.blas.cblas cimport *
from tinyfin.backends.cpu.matmul_shape cimport *
from tinyfin.backends.cpu.threads cimport parallel_for
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.cpu import matmul as own

cdef tf_kernel OWN_MATMUL = <tf_kernel>PyCapsule_GetPointer(own.KERNELS["matmul"], "tf_kernel")
cdef tf_kernel OWN_LINEAR = <tf_kernel>PyCapsule_GetPointer(own.KERNELS["linear"], "tf_kernel")

cdef enum:
    LEAST = 64 * 64 * 64      # multiply-adds of a matrix below which a call does not pay
    THIN = 48                 # rows or columns up to which our own roads win
    SHORT = 16                # length of chains up to which they do
    BATCH_LARGE = 1 << 21     # matrices above this are for the library's threads when the batch is short
    BIAS_WORK = 1 << 15       # elements of a task that adds the bias


cdef bint gains(const Matmul *q) noexcept nogil:
    """Whether the library is faster than our own roads, as measured with OpenBLAS."""
    return q.m > THIN and q.n > THIN and q.k > SHORT and q.m * q.n * q.k >= LEAST


cdef bint suits(const Matmul *q, operand *a, operand *b) noexcept nogil:
    """Whether the library is to compute it; how it reads A and B."""
    return ((q.dtype == TF_F32 or q.dtype == TF_F64) and q.k > 0 and (gains(q) or eager())
            and readable_matrix(a, q.m, q.k, q.ar, q.ac)
            and readable_matrix(b, q.k, q.n, q.br, q.bc))


cdef void bias_task(int64_t t, void *ctx) noexcept nogil:
    """Adds the bias to some rows of all matrices."""
    cdef const Matmul *q = <const Matmul *>ctx
    cdef int64_t i
    for i in range(t * q.chunk, min((t + 1) * q.chunk, q.count * q.m)):
        q.kind.add(q.c + i * q.n * q.item, q.bias, q.bias_step, q.n)


cdef struct Batch:
    Matmul *q
    operand a, b


cdef void matrix_task(int64_t t, void *ctx) noexcept nogil:
    """One matrix of the batch."""
    cdef const Batch *batch = <const Batch *>ctx
    cdef const Matmul *q = batch.q
    cdef operand a = batch.a, b = batch.b
    cdef One one
    place(q, t, &one)
    a.at, b.at = one.a, one.b
    product(q.dtype, q.m, q.n, q.k, &a, &b, one.c, q.n, False)


cdef void run(Batch *batch) noexcept nogil:
    """All matrices of the batch, and the bias."""
    cdef Matmul *q = batch.q
    cdef int64_t rows = q.count * q.m
    cdef int64_t work = q.m * q.n * q.k
    run_tasks(q.count, q.count >= 8 or work <= BATCH_LARGE, q.kind.fma_ns * work * q.count,
              matrix_task, batch)
    if q.bias != NULL:
        q.chunk = max(1, BIAS_WORK // q.n)
        parallel_for((rows + q.chunk - 1) // q.chunk, 0.3 * rows * q.n, bias_task, q)


cdef int matmul(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call) noexcept nogil:
    cdef const tf_view *a = inputs[0]
    cdef const tf_view *b = inputs[1]
    cdef Batch batch
    cdef Matmul q
    if b.dtype == a.dtype and start(&q, a, b, outputs[0], call):
        matmul_shape(&q, a, b)
        simplify(&q)
        if suits(&q, &batch.a, &batch.b):
            batch.q = &q
            run(&batch)
            return TF_OK
    return OWN_MATMUL(inputs, n, outputs, at, call)


cdef int linear(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call) noexcept nogil:
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef const tf_view *bias = inputs[2] if n > 2 and not inputs[2].flags & TF_ABSENT else NULL
    cdef Batch batch
    cdef Matmul q
    if w.dtype == x.dtype and start(&q, x, w, outputs[0], call):
        linear_shape(&q, x, w)
        simplify(&q)
        if bias != NULL:
            q.bias = bias.data
        if (bias == NULL or bias.strides[0] == 1) and suits(&q, &batch.a, &batch.b):
            batch.q = &q
            run(&batch)
            return TF_OK
    return OWN_LINEAR(inputs, n, outputs, at, call)


KERNELS = {"matmul": kernel_capsule(matmul), "linear": kernel_capsule(linear)}
