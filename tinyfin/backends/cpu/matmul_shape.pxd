"""Geometry of matrix products: sizes, strides and batch of matmul and linear."""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.gemm cimport accumulates, gemm_kind, gemm_thin, pairs_kind
from tinyfin.backends.cpu.gemm_loops cimport tf_gemm_kind, tf_gemm_thin, tf_reach
from tinyfin.core.abi cimport *


cdef struct Matmul:
    const tf_gemm_kind *kind
    const tf_gemm_thin *thin  # of the elements; NULL: none
    int64_t m, n, k
    const char *a
    const char *b
    char *c
    int64_t ar, ac, br, bc, item, c_item
    int dtype, b_dtype
    bint paired               # 8-bit integers into int32
    bint whole                # chains stay whole: in deterministic mode, and for linear layers
    bint own                  # elements are accumulators: nothing to widen
    const char *bias          # accumulators, n of them, bias_step apart; NULL: none
    int64_t bias_step
    bint after                # results, which are float32 or float64, have an epilogue:
    double alpha, beta        # they are scaled, beta times base is added,
    const char *base          # of strides base_row and base_col; NULL: none
    int64_t base_row, base_col
    bint relu                 # and what is below zero becomes zero
    # batch: sizes, strides of a and b; c is dense
    int nd
    int64_t shape[8]
    int64_t sa[8]
    int64_t sb[8]
    int64_t count, chunk      # matrices, and matrices per task
    int64_t *detail
    int failed


cdef struct One:
    # one matrix of the batch
    const Matmul *q
    const char *a
    const char *b
    char *c
    tf_reach *reach           # of a and b, while their panels say what it is


cdef inline void place(const Matmul *q, int64_t at, One *one) noexcept nogil:
    """The matrices of batch entry `at`."""
    cdef int d
    cdef int64_t i, left = at, a = 0, b = 0
    for d in range(q.nd - 1, -1, -1):
        i = left % q.shape[d]
        left //= q.shape[d]
        a += i * q.sa[d]
        b += i * q.sb[d]
    one.q, one.a, one.b = q, q.a + a * q.item, q.b + b * q.item
    one.c = q.c + at * q.m * q.n * q.c_item


cdef inline void simplify(Matmul *q) noexcept nogil:
    """Batch axes that continue A's rows over one B become rows; a single column becomes a row."""
    cdef int d, nd = 0
    for d in range(q.nd):
        if q.shape[d] != 1:
            q.shape[nd], q.sa[nd], q.sb[nd] = q.shape[d], q.sa[d], q.sb[d]
            nd += 1
    while nd and q.sb[nd - 1] == 0 and (q.m == 1 or q.sa[nd - 1] == q.m * q.ar):
        nd -= 1
        if q.m == 1:
            q.ar = q.sa[nd]
        q.m *= q.shape[nd]
    q.nd, q.count = nd, 1
    for d in range(nd):
        q.count *= q.shape[d]
    if q.n == 1 and q.m > 1:
        q.a, q.b = q.b, q.a
        q.dtype, q.b_dtype = q.b_dtype, q.dtype
        q.m, q.n = 1, q.m
        q.ar, q.ac, q.br, q.bc = q.bc, q.br, q.ac, q.ar
        q.bias_step = 0
        q.base_row, q.base_col = q.base_col, q.base_row
        for d in range(nd):
            q.sa[d], q.sb[d] = q.sb[d], q.sa[d]
    if q.n == 1:
        q.bc = 1
    if q.k == 1:
        q.ac = q.br = 1


cdef inline int start(Matmul *q, const tf_view *a, const tf_view *b, const tf_view *out,
                      tf_call *call) noexcept nogil:
    """Types and pointers; False where there is nothing to do."""
    q.paired = out.dtype != a.dtype
    q.kind = pairs_kind() if q.paired else gemm_kind(a.dtype)
    q.thin = NULL if q.paired else gemm_thin(a.dtype)
    q.dtype, q.b_dtype, q.item, q.c_item = a.dtype, b.dtype, tf_itemsize[a.dtype], tf_itemsize[out.dtype]
    q.own = accumulates(a.dtype)
    q.a, q.b, q.c = a.data, b.data, out.data
    q.bias, q.bias_step, q.failed, q.nd = NULL, 1, 0, 0
    q.after, q.relu, q.base, q.alpha = False, False, NULL, 1.0
    q.detail, q.whole = call.detail, call.mode != 0
    return out.size != 0


cdef inline void matmul_shape(Matmul *q, const tf_view *a, const tf_view *b) noexcept nogil:
    """Sizes and strides of a @ b, whose vectors are matrices of one row or column."""
    cdef int i, na = a.ndim - 2, nb = b.ndim - 2, d
    q.k, q.ac = a.shape[a.ndim - 1], a.strides[a.ndim - 1]
    q.m, q.ar, q.n, q.bc, q.br = 1, q.k, 1, 1, b.strides[max(nb, 0)]
    if na >= 0:
        q.m, q.ar = a.shape[na], a.strides[na]
    if nb >= 0:
        q.n, q.bc = b.shape[nb + 1], b.strides[nb + 1]
    q.nd = max(na, nb, 0)
    for i in range(q.nd):
        d = i - (q.nd - na)
        q.shape[i] = a.shape[d] if d >= 0 else 1
        q.sa[i] = a.strides[d] if d >= 0 and a.shape[d] != 1 else 0
        d = i - (q.nd - nb)
        if d >= 0 and b.shape[d] != 1:
            q.shape[i] = b.shape[d]
        q.sb[i] = b.strides[d] if d >= 0 and b.shape[d] != 1 else 0


cdef inline void linear_shape(Matmul *q, const tf_view *x, const tf_view *w) noexcept nogil:
    """Sizes and strides of x w^T."""
    cdef int i
    q.m, q.ar = 1, 0
    q.k, q.ac = x.shape[x.ndim - 1], x.strides[x.ndim - 1]
    q.n, q.bc, q.br = w.shape[0], w.strides[0], w.strides[1]
    q.nd = x.ndim - 1
    for i in range(q.nd):
        q.shape[i], q.sa[i], q.sb[i] = x.shape[i], x.strides[i], 0
