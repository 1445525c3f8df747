"""Matrix products of any strides, batched and broadcast; linear layers.

The road (single row, without packing, five loops) depends on shapes and strides. Each gives every
element the same one chain over k, so the road does not show in the result; but for few results of
long rows of matmul in normal mode, see dots.pyx.
"""
from libc.stdint cimport int64_t, uintptr_t

from tinyfin.backends.cpu.dots cimport are_dots, cut_chains, cuts_chains, dots
from tinyfin.backends.cpu.gemm cimport *
from tinyfin.backends.cpu.gemm_loops cimport *
from tinyfin.backends.cpu.matmul_shape cimport *
from tinyfin.backends.cpu.threads cimport for_each, parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    RELU = 1                  # what a row asks of linear
    PANEL_BYTES = 16384       # a panel of B on the stack
    SMALL = 64 * 64 * 64      # multiply-adds up to which packing A does not pay
    THIN = 12                 # rows up to which B is read where it lies
    FEW = 4                   # the same, where B is dense along k
    ROW_COLS = 1024           # columns of one task of few rows, at most
    WIDE_COLS = 256           # and at least, where B is dense along its rows
    LINE_COLS = 64            # and a multiple of
    COLUMN_WORK = 1 << 16     # multiply-adds in one row of such a task, about, where B is dense along k
    THIN_FLOATS = 8192        # accumulators of such a task
    BATCH_WORK = 1 << 18      # multiply-adds of one task of a batch
    BATCH_LARGE = 1 << 21     # matrices above this are split themselves when the batch is short


cdef struct Thin:
    # a product of few rows
    const One *one
    char *a                   # accumulators, of elements that are not
    int64_t cols              # of one task


ctypedef fused real:
    float
    double


cdef void change(const Matmul *q, int64_t i, int64_t rows, int64_t j, int64_t cols, real *acc, int64_t ld) noexcept nogil:
    """The epilogue of some results, each operation rounded by itself."""
    cdef real alpha = <real>q.alpha, beta = <real>q.beta
    cdef const real *base
    cdef int64_t r, c
    for r in range(rows):
        if alpha != 1:
            for c in range(cols):
                acc[c] = acc[c] * alpha
        if q.base != NULL:
            base = <const real *>q.base + (i + r) * q.base_row + j * q.base_col
            for c in range(cols):
                acc[c] = acc[c] + base[c * q.base_col] * beta
        if q.relu:
            for c in range(cols):
                acc[c] = 0 if acc[c] < 0 else acc[c]
        acc += ld


cdef void epilogue(const Matmul *q, int64_t i, int64_t rows, int64_t j, int64_t cols, void *acc, int64_t ld) noexcept nogil:
    if q.dtype == TF_F32:
        change(q, i, rows, j, cols, <float *>acc, ld)
    else:
        change(q, i, rows, j, cols, <double *>acc, ld)


cdef void finish(const gemm *p, int64_t i, int64_t rows, int64_t j, int64_t cols, void *acc,
                 int64_t ld) noexcept nogil:
    """Adds the bias, runs the epilogue; stores accumulators of another dtype."""
    cdef const One *one = <const One *>p.owner
    cdef const Matmul *q = one.q
    cdef const tf_gemm_kind *narrows = p.kind
    cdef int64_t r, item = p.kind.itemsize
    if q.bias != NULL:
        narrows = q.kind
        for r in range(rows):
            p.kind.add(<char *>acc + r * ld * item, q.bias + j * q.bias_step * item, q.bias_step, cols)
    if q.after:
        epilogue(q, i, rows, j, cols, acc, ld)
    if not q.own:
        narrows.narrow_rows(q.dtype, acc, ld, rows, cols, one.c + (i * q.n + j) * q.item, q.n)


cdef void part_of(const One *one, int64_t col, int64_t cols, tf_product *p) noexcept nogil:
    """The product of some columns, without packing."""
    cdef const Matmul *q = one.q
    p.m, p.n, p.k = q.m, cols, q.k
    p.a, p.b, p.c = one.a, one.b + col * q.bc * q.item, one.c + col * q.item
    p.ar, p.ac, p.br, p.bc, p.ldc, p.load = q.ar, q.ac, q.br, q.bc, q.n, 0
    p.panel = NULL


cdef void finish_columns(const One *one, int64_t col, int64_t cols) noexcept nogil:
    """The same for some columns of a product that was not packed."""
    cdef const Matmul *q = one.q
    cdef int64_t i
    if q.bias != NULL:
        for i in range(q.m):
            q.kind.add(one.c + (i * q.n + col) * q.item, q.bias + col * q.bias_step * q.item,
                       q.bias_step, cols)
    if q.after:
        epilogue(q, 0, q.m, col, cols, one.c + col * q.item, q.n)


cdef void thin_task(int64_t t, void *ctx) noexcept nogil:
    """Some columns of a product of few rows: B is read once, where it lies."""
    cdef const Thin *s = <const Thin *>ctx
    cdef const Matmul *q = s.one.q
    cdef int64_t col = t * s.cols, i
    cdef float acc[THIN_FLOATS]
    cdef tf_product p
    part_of(s.one, col, min(s.cols, q.n - col), &p)
    if not q.own:
        p.a, p.ar, p.ac, p.c, p.ldc = s.a, q.k, 1, acc, s.cols
    if q.bc == 1:
        q.thin.rows_n(&p)
    else:
        q.thin.rows_t(&p)
    if q.own:
        finish_columns(s.one, col, p.n)
    else:
        for i in range(q.m):
            if q.bias != NULL:
                q.kind.add(acc + i * s.cols, q.bias + col * q.bias_step * q.kind.itemsize, q.bias_step, p.n)
            q.kind.narrow(q.dtype, acc + i * s.cols, p.n, s.one.c + (i * q.n + col) * q.item, 1)


cdef bint is_thin(const Matmul *q) noexcept nogil:
    """Whether rows are so few that B is not worth packing."""
    if q.thin == NULL or q.m > THIN:
        return False
    return q.bc == 1 or (q.m <= FEW and q.br == 1 and (q.ac == 1 or not q.own))


cdef int thin(const One *one, bint alone, int64_t *detail) noexcept nogil:
    """A product of few rows; A is widened as a whole, B on its way through the registers."""
    cdef const Matmul *q = one.q
    cdef int64_t i
    cdef size_t bytes = 0
    cdef Thin s
    s.one = one
    if q.bc == 1:
        s.cols = max(WIDE_COLS, min(ROW_COLS, up(q.n, 4 * LINE_COLS) * LINE_COLS))
    else:
        s.cols = max(LINE_COLS, min(ROW_COLS, COLUMN_WORK // max(q.k, 1) // LINE_COLS * LINE_COLS))
    if not q.own:
        s.cols = min(s.cols, THIN_FLOATS // q.m // LINE_COLS * LINE_COLS)
        bytes = max(q.m * q.k, 1) * sizeof(float)
        s.a = <char *>scratch_push(bytes)
        if s.a == NULL:
            detail[0] = bytes
            return TF_ENOMEM
        for i in range(q.m):
            q.kind.widen(q.dtype, one.a + i * q.ar * q.item, q.ac, q.k, s.a + i * q.k * sizeof(float))
    for_each(up(q.n, s.cols), 0.1 * q.m * q.n * q.k, thin_task, &s, alone)
    if bytes:
        scratch_pop(bytes)
    return TF_OK


cdef void small(const One *one) noexcept nogil:
    """A product that stays in cache: A is not packed, B only where its rows are not dense."""
    cdef char panel[PANEL_BYTES + 64]
    cdef tf_product p
    part_of(one, 0, one.q.n, &p)
    p.panel = <void *>(((<uintptr_t>panel) + 63) & ~<uintptr_t>63)
    one.q.kind.product(&p)
    finish_columns(one, 0, one.q.n)


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


cdef void duos_a(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k, void *dst) noexcept nogil:
    cdef const One *one = <const One *>p.owner
    pack_duos(one.a + 2 * (first * one.q.ar + 2 * k0 * one.q.ac), one.q.ar, one.q.ac, count,
              min(2 * k, one.q.k - 2 * k0), dst, 0, one.reach)


cdef void duos_b(const gemm *p, int64_t first, int64_t count, int64_t k0, int64_t k, void *dst) noexcept nogil:
    cdef const One *one = <const One *>p.owner
    pack_duos(one.b + 2 * (first * one.q.bc + 2 * k0 * one.q.br), one.q.bc, one.q.br, count,
              min(2 * k, one.q.k - 2 * k0), dst, 1, one.reach + 1)


cdef int multiply_duos(One *one, bint alone, bint *stands, int64_t *detail) noexcept nogil:
    """One matrix of bfloat16 by the processor's instruction for it; the loops count pairs of k."""
    cdef const Matmul *q = one.q
    cdef tf_reach reach[2]
    cdef gemm p
    cdef int rc
    one.reach = reach
    reach[0].least = reach[1].least = 0xffff
    reach[0].most = reach[1].most = 0
    p.kind, p.m, p.n, p.k = duos_kind(), q.m, q.n, up(q.k, 2)
    p.pack_a, p.pack_b, p.owner, p.dtype = duos_a, duos_b, one, q.dtype
    p.c, p.ldc, p.resume, p.finish = NULL, q.n, False, finish
    rc = gemm_run(&p, alone, detail)
    stands[0] = duos_fit(reach, reach + 1)
    return rc


cdef int multiply(One *one, bint alone, int64_t *detail) noexcept nogil:
    """One matrix, by the road that its shape and strides ask for."""
    cdef const Matmul *q = one.q
    cdef gemm p
    cdef int64_t work = q.m * q.n * q.k
    cdef bint stands
    cdef int rc
    if q.paired:
        return multiply_pairs(one, alone, detail)
    if q.own:
        if work <= SMALL and (q.bc == 1 or q.k * q.kind.nr * q.item <= PANEL_BYTES) and q.m > 1:
            small(one)
            return TF_OK
    if is_thin(q):
        return thin(one, alone, detail)
    if q.dtype == TF_BF16 and duos_kind() != NULL:
        rc = multiply_duos(one, alone, &stands, detail)
        if rc != TF_OK or stands:
            return rc
    p.kind, p.m, p.n, p.k = q.kind, q.m, q.n, q.k
    p.pack_a, p.pack_b, p.owner = strided_a, strided_b, one
    p.a, p.b, p.ar, p.ac, p.br, p.bc, p.dtype = one.a, one.b, q.ar, q.ac, q.br, q.bc, q.dtype
    p.c, p.ldc, p.resume = one.c if q.own else NULL, q.n, False
    p.finish = finish
    if q.own and q.bias == NULL and not q.after:
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
    if cuts_chains(q):
        return cut_chains(q)
    if q.count == 1:
        place(q, 0, &one)
        return multiply(&one, False, q.detail)
    if are_dots(q):
        return dots(q)
    if work <= BATCH_LARGE or q.count >= 8:
        q.chunk = max(1, BATCH_WORK // max(work, 1))
        parallel_for(up(q.count, q.chunk),
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


cdef int matmul_onto(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call) noexcept nogil:
    """Two matrices, and one of the result's shape; beta, alpha."""
    cdef const tf_view *a = inputs[0]
    cdef const tf_view *b = inputs[1]
    cdef const tf_view *base = inputs[2]
    cdef const tf_view *y = outputs[0]
    cdef Matmul q
    if a.dtype < TF_F32 or a.dtype > TF_F64 or b.dtype != a.dtype or base.dtype != a.dtype:
        return TF_EUNSUPPORTED
    if y.ndim != 2 or base.ndim != 2 or base.shape[0] != y.shape[0] or base.shape[1] != y.shape[1]:
        return TF_EUNSUPPORTED
    if not start(&q, a, b, y, call):
        return TF_OK
    matmul_shape(&q, a, b)
    q.whole = q.after = True
    q.beta, q.alpha, q.base, q.base_row, q.base_col = at.f[0], at.f[1], base.data, base.strides[0], base.strides[1]
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
    q.whole = True
    q.after = q.relu = <size_t>call.ctx == RELU
    if q.relu and x.dtype < TF_F32:
        return TF_EUNSUPPORTED
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
           "matmul_onto": kernel_capsule(matmul_onto), "linear": kernel_capsule(linear),
           "linear_relu": (kernel_capsule(linear), RELU)}
