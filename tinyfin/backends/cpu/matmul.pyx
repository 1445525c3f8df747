"""Matrix products of any strides, batched and broadcast; linear layers.

The road (single row, without packing, five loops) depends on shapes and strides. Each gives every
element the same one chain over k, so the road does not show in the result.
"""
from libc.stdint cimport int64_t, uintptr_t

from tinyfin.backends.cpu.gemm cimport *
from tinyfin.backends.cpu.gemm_loops cimport *
from tinyfin.backends.cpu.matmul_shape cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    PANEL_BYTES = 16384       # a panel of B on the stack
    SMALL = 64 * 64 * 64      # multiply-adds up to which packing A does not pay
    THIN = 12                 # rows up to which B is read where it lies
    ROW_COLS = 1024           # columns of one task of a single row
    BATCH_WORK = 1 << 18      # multiply-adds of one task of a batch
    BATCH_LARGE = 1 << 21     # matrices above this are split themselves when the batch is short


cdef void finish(const gemm *p, int64_t i, int64_t rows, int64_t j, int64_t cols, void *acc,
                 int64_t ld) noexcept nogil:
    """Adds the bias; stores accumulators of another dtype."""
    cdef const One *one = <const One *>p.owner
    cdef const Matmul *q = one.q
    cdef int64_t r, item = p.kind.itemsize
    cdef char *row = <char *>acc
    for r in range(rows):
        if q.bias != NULL:
            p.kind.add(row, q.bias + j * q.bias_step * item, q.bias_step, cols)
        if not q.own:
            p.kind.narrow(q.dtype, row, cols, one.c + ((i + r) * q.n + j) * q.item, 1)
        row += ld * item


cdef void part_of(const One *one, int64_t col, int64_t cols, tf_product *p) noexcept nogil:
    """The product of some columns, without packing."""
    cdef const Matmul *q = one.q
    p.m, p.n, p.k = q.m, cols, q.k
    p.a, p.b, p.c = one.a, one.b + col * q.bc * q.item, one.c + col * q.item
    p.ar, p.ac, p.br, p.bc, p.ldc, p.load = q.ar, q.ac, q.br, q.bc, q.n, 0
    p.panel = NULL


cdef void add_bias(const One *one, int64_t col, int64_t cols) noexcept nogil:
    cdef const Matmul *q = one.q
    cdef int64_t i
    if q.bias != NULL:
        for i in range(q.m):
            q.kind.add(one.c + (i * q.n + col) * q.item, q.bias + col * q.bias_step * q.item,
                       q.bias_step, cols)


cdef void thin_task(int64_t t, void *ctx) noexcept nogil:
    """Some columns of a product of few rows: B is read once, where it lies."""
    cdef const One *one = <const One *>ctx
    cdef const Matmul *q = one.q
    cdef int64_t col = t * ROW_COLS
    cdef tf_product p
    part_of(one, col, min(<int64_t>ROW_COLS, q.n - col), &p)
    if q.bc == 1:
        q.kind.rows_n(&p)
    else:
        q.kind.row_t(&p)
    add_bias(one, col, p.n)


cdef void small(const One *one) noexcept nogil:
    """A product that stays in cache: A is not packed, B only where its rows are not dense."""
    cdef char panel[PANEL_BYTES + 64]
    cdef tf_product p
    part_of(one, 0, one.q.n, &p)
    p.panel = <void *>(((<uintptr_t>panel) + 63) & ~<uintptr_t>63)
    one.q.kind.product(&p)
    add_bias(one, 0, one.q.n)


cdef void pairs_a(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                  void *dst) noexcept nogil:
    cdef const One *one = <const One *>p.owner
    p.kind.pack(one.q.dtype, one.a + first * one.q.ar + 2 * k0 * one.q.ac, one.q.ar, one.q.ac, count,
                min(2 * k, one.q.k - 2 * k0), dst, 0)


cdef void pairs_b(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k,
                  void *dst) noexcept nogil:
    cdef const One *one = <const One *>p.owner
    p.kind.pack(one.q.b_dtype, one.b + first * one.q.bc + 2 * k0 * one.q.br, one.q.bc, one.q.br, count,
                min(2 * k, one.q.k - 2 * k0), dst, 1)


cdef int multiply_pairs(const One *one, bint alone, int64_t *detail) noexcept nogil:
    """One matrix of int32 from 8-bit integers; the loops count pairs of k."""
    cdef const Matmul *q = one.q
    cdef gemm p
    p.kind, p.m, p.n, p.k = q.kind, q.m, q.n, up(q.k, 2)
    p.pack_a, p.pack_b, p.owner, p.dtype = pairs_a, pairs_b, one, q.dtype
    p.c, p.ldc, p.resume, p.finish = one.c, q.n, False, NULL
    return gemm_run(&p, alone, detail)


cdef int multiply(const One *one, bint alone, int64_t *detail) noexcept nogil:
    """One matrix, by the road that its shape and strides ask for."""
    cdef const Matmul *q = one.q
    cdef gemm p
    cdef int64_t work = q.m * q.n * q.k, t, tasks
    if q.paired:
        return multiply_pairs(one, alone, detail)
    if q.own:
        if work <= SMALL and (q.bc == 1 or q.k * q.kind.nr * q.item <= PANEL_BYTES) and q.m > 1:
            small(one)
            return TF_OK
        if (q.bc == 1 and q.m <= THIN) or (q.m == 1 and q.br == 1 and q.ac == 1):
            tasks = (q.n + ROW_COLS - 1) // ROW_COLS
            if alone:
                for t in range(tasks):
                    thin_task(t, <void *>one)
            else:
                parallel_for(tasks, 0.1 * work, thin_task, <void *>one)
            return TF_OK
    p.kind, p.m, p.n, p.k = q.kind, q.m, q.n, q.k
    p.pack_a, p.pack_b, p.owner = strided_a, strided_b, one
    p.a, p.b, p.ar, p.ac, p.br, p.bc, p.dtype = one.a, one.b, q.ar, q.ac, q.br, q.bc, q.dtype
    p.c, p.ldc, p.resume = one.c if q.own else NULL, q.n, False
    p.finish = finish
    if q.own and q.bias == NULL:
        p.finish = NULL
    return gemm_run(&p, alone, detail)


cdef void batch_task(int64_t t, void *ctx) noexcept nogil:
    cdef Matmul *q = <Matmul *>ctx
    cdef int64_t at
    cdef One one
    for at in range(t * q.chunk, min((t + 1) * q.chunk, q.count)):
        place(q, at, &one)
        if multiply(&one, True, q.detail):
            q.failed = 1


cdef int run(Matmul *q) noexcept nogil:
    """All matrices of the batch; those of a long batch, or small ones, are not split."""
    cdef int64_t work = q.m * q.n * q.k, at
    cdef int rc
    cdef One one
    if q.count == 1:
        place(q, 0, &one)
        return multiply(&one, False, q.detail)
    if work <= BATCH_LARGE or q.count >= 8:
        q.chunk = max(1, BATCH_WORK // max(work, 1))
        parallel_for((q.count + q.chunk - 1) // q.chunk,
                     q.kind.fma_ns * work * q.count + 20.0 * q.count, batch_task, q)
        return TF_ENOMEM if q.failed else TF_OK
    for at in range(q.count):
        place(q, at, &one)
        rc = multiply(&one, False, q.detail)
        if rc:
            return rc
    return TF_OK


cdef int matmul(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call) noexcept nogil:
    cdef const tf_view *a = inputs[0]
    cdef const tf_view *b = inputs[1]
    cdef Matmul q
    if a.dtype > TF_F64 or b.dtype != a.dtype:
        return TF_EUNSUPPORTED
    if not start(&q, a, b, outputs[0], call):
        return TF_OK
    matmul_shape(&q, a, b)
    simplify(&q)
    return run(&q)


cdef int int_mm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call) noexcept nogil:
    """8-bit integers, signed or not, into int32."""
    cdef Matmul q
    if not start(&q, inputs[0], inputs[1], outputs[0], call):
        return TF_OK
    matmul_shape(&q, inputs[0], inputs[1])
    simplify(&q)
    return run(&q)


cdef int linear(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call) noexcept nogil:
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef const tf_view *bias = inputs[2] if n > 2 and not inputs[2].flags & TF_ABSENT else NULL
    cdef size_t bytes = 0
    cdef int rc
    cdef Matmul q
    cdef void *wide
    if x.dtype > TF_F64 or w.dtype != x.dtype:
        return TF_EUNSUPPORTED
    if not start(&q, x, w, outputs[0], call):
        return TF_OK
    linear_shape(&q, x, w)
    if bias != NULL:
        q.bias = bias.data
        if not q.own or (bias.strides[0] != 1 and q.n != 1):
            bytes = q.n * q.kind.itemsize
            wide = scratch_push(bytes)
            if wide == NULL:
                call.detail[0] = bytes
                return TF_ENOMEM
            q.kind.widen(q.dtype, bias.data, bias.strides[0], q.n, wide)
            q.bias = <char *>wide
    simplify(&q)
    rc = run(&q)
    if bytes:
        scratch_pop(bytes)
    return rc


KERNELS = {"matmul": kernel_capsule(matmul), "int_mm": kernel_capsule(int_mm),
           "linear": kernel_capsule(linear)}
