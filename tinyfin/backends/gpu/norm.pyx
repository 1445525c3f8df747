"""Softmax and norms over the last axes: a work group reads its rows once where they fit into its memory."""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from tinyfin.backends.gpu.elementwise cimport dense
from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.reduce cimport join_parts
from tinyfin.backends.gpu.rows cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.gpu.modules import shader

cdef int[2] SOFTMAX = [shader("softmax_f32"), shader("softmax_f64")]
cdef int[2] NORM = [shader("norm_f32"), shader("norm_f64")]
cdef int[2] NORM_GRAD = [shader("norm_grad_f32"), shader("norm_grad_f64")]
cdef int[2] SUMS = [shader("norm_sums_f32"), shader("norm_sums_f64")]
cdef int[2] FINISH = [shader("norm_finish_f32"), shader("norm_finish_f64")]


# ---- softmax

cdef enum:
    LARGEST = 1                         # stages of softmax.comp, where several work groups share a row
    BLOCKS, RESULTS
    CUTS = 256                          # parts of a row of which the largest numbers are found


cdef int softmax_stage(const Rows *r, int stage, int kind, const tf_view *const *of, const tf_view *largest,
                       const tf_view *sums, tf_call *call) noexcept:
    """One dispatch over the rows of x, y and g."""
    cdef tf_launch l
    cdef int64_t blocks = blocks_of(r.n), cut = (blocks + CUTS - 1) // CUTS, cuts = (blocks + cut - 1) // cut
    cdef int64_t each = cuts if stage == LARGEST else 1 if stage == RESULTS and kind == LSE else blocks
    begin(&l, SOFTMAX[is_double(of[1])], call)
    read(&l, of[0])
    operand(&l, of[1], stage == 0 or stage == RESULTS)
    operand(&l, of[2], kind == LSE and (stage == 0 or stage == RESULTS))
    maybe(&l, largest, stage == LARGEST)
    maybe(&l, sums, stage == BLOCKS)
    row_words(&l, r)
    word(&l, cut)
    word(&l, cuts)
    constant(&l, 0, kind)
    constant(&l, 1, of[1].dtype if kind != LSE else of[0].dtype)
    constant(&l, 2, of[0].dtype)
    constant(&l, 3, of[2].dtype if kind != LSE else of[0].dtype)
    constant(&l, 4, kind != LSE and of[1].dtype < TF_F32 and of[0].dtype != of[1].dtype)
    row_constants(&l, 5, r)
    if stage:
        constant(&l, 9, 0)
    constant(&l, 10, stage)
    spread(&l, groups_of(r) if stage == 0 else (r.count * each + 3) // 4)
    return launch(&l, of[1], call)


cdef int softmax_rows(Rows *r, int kind, const tf_view *x, const tf_view *y, const tf_view *g, list keep,
                      tf_call *call) noexcept:
    """Softmax of rows, its like and its gradients, in one dispatch; in four where few rows are long.

    kind: of softmax.comp; LSE writes g too.
    """
    cdef const tf_view *of[3]
    cdef tf_view largest, blocks, sums
    cdef int64_t n = blocks_of(r.n)
    cdef int rc
    of[0], of[1], of[2] = x, y, g
    if not scanty(r):
        return softmax_stage(r, 0, kind, of, NULL, NULL, call)
    lay_out_blocks(r)
    rc = floats(&largest, y, r.count * CUTS, keep, call)
    rc = rc if rc != TF_OK else floats(&blocks, y, r.count * n, keep, call)
    rc = rc if rc != TF_OK else floats(&sums, y, r.count, keep, call)
    if rc == TF_OK and kind != GRADIENT and kind != LOG_GRADIENT:
        rc = softmax_stage(r, LARGEST, kind, of, &largest, NULL, call)
    rc = rc if rc != TF_OK else softmax_stage(r, BLOCKS, kind, of, &largest, &blocks, call)
    rc = rc if rc != TF_OK else join_parts(<uint64_t>blocks.block, n, &sums, call)
    return rc if rc != TF_OK else softmax_stage(r, RESULTS, kind, of, &largest, &sums, call)


cdef int softmax(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call) noexcept with gil:
    """variant: 0 softmax, 1 log_softmax (x); 2, 3 their gradients (g, y)."""
    cdef int kind = <int><size_t>call.ctx, rc
    cdef const tf_view *y = outputs[0]
    cdef tf_view x = inputs[1 if kind >= 2 else 0][0], g = inputs[0][0]
    cdef const tf_view *views[3]
    cdef Rows r
    cdef list keep = []
    call.detail[0] = y.dtype if not computes(y) else x.dtype
    if not computes(y) or x.flags & TF_WRAPPED or (x.dtype == TF_F64 and y.dtype != TF_F64):
        return TF_EUNSUPPORTED
    if y.size == 0:
        return TF_OK
    if not within_reach(y) or not within_reach(&x) or not within_reach(&g):
        return TF_EUNSUPPORTED
    views[0], views[1], views[2] = &x, y, &g
    if not rows_along(&r, 3, views, <int>at.i[0]):
        rc = dense(&x, keep, call)
        rc = rc if rc != TF_OK or kind < 2 else dense(&g, keep, call)
        if rc != TF_OK:
            return rc
        g = g if kind >= 2 else x
        rows_along(&r, 3, views, <int>at.i[0])
    return softmax_rows(&r, kind, &x, y, &g, keep, call)


# ---- layer norm and RMS norm

cdef int dtype_or_none(const tf_view *v) noexcept nogil:
    """The constant of optional weights."""
    return 255 if v.flags & TF_ABSENT else v.dtype


cdef bint refused(const tf_view *const *inputs, int n, const tf_view *y, tf_call *call) noexcept nogil:
    """Whether an argument is no float that the device computes in, not of float64 as the result is, or too large."""
    cdef int k
    for k in range(n):
        call.detail[0] = inputs[k].dtype
        if not inputs[k].flags & TF_ABSENT and (not computes(inputs[k]) or is_double(inputs[k]) != is_double(y)
                                                or not within_reach(inputs[k])):
            return True
    call.detail[0] = y.dtype
    return not computes(y) or not within_reach(y)


cdef inline bint one_axis(const Rows *r) noexcept nogil:
    """Whether the rows lie along one axis, as block_sums takes them."""
    return r.inner == r.count


cdef inline void stage_of(tf_launch *l, const Rows *r, bint stage) noexcept nogil:
    """FULL and STAGE behind the constants of rows, and the work groups, with four blocks each where these are shared."""
    if stage:
        constant(l, 9, 0)
    constant(l, 10, stage)
    spread(l, (r.count * blocks_of(r.n) + 3) // 4 if stage else groups_of(r))


cdef void sums_along(Sums *s, const Rows *r, const tf_view *x) noexcept nogil:
    """Sums over rows of x, as far as these say."""
    memset(s, 0, sizeof(Sums))
    s.rows, s.n, s.inner, s.x = r.count, r.n, r.n, x
    s.row_step[0], s.inner_step[0] = r.inner_step[0], r.step[0]
    s.row_step[1], s.inner_step[1] = r.inner_step[1], r.step[1]
    s.stat_step[0] = 1


cdef int norm_stats(const Rows *r, const tf_view *x, int rms, double eps, tf_view *const *outputs, list keep,
                    tf_call *call) noexcept:
    """The mean and the factor of rows of which several work groups share each."""
    cdef Sums s
    cdef Finish f
    cdef tf_view parts, variance
    cdef int rc
    sums_along(&s, r, x)
    memset(&f, 0, sizeof(f))
    rc = floats(&parts, x, r.count * blocks_of(r.n), keep, call)
    rc = rc if rc != TF_OK else floats(&variance, x, r.count, keep, call)
    f.rows, f.n, f.count, f.eps, f.first = r.count, blocks_of(r.n), r.n, eps, &parts
    if rc == TF_OK and not rms:
        rc = block_sums(&s, OF_X, &parts, NULL, call)
        f.a = outputs[1]
        rc = rc if rc != TF_OK else finish(&f, MEAN, x, call)
        s.mean = outputs[1]
    s.wanted = NOT_CENTRED if rms else 0
    rc = rc if rc != TF_OK else block_sums(&s, SQUARES, &parts, NULL, call)
    f.a, f.b = &variance, outputs[1 if rms else 2]
    return rc if rc != TF_OK else finish(&f, VARIANCE, x, call)


cdef int norm_means(const Rows *r, const tf_view *v, int rms, const tf_view *means, list keep, tf_call *call) noexcept:
    """The means of h and of h xhat, in two rows, where several work groups share each row. v: x, g, mean, rstd, w."""
    cdef Sums s
    cdef Finish f
    cdef tf_view parts[2]
    cdef tf_view half = means[0]
    cdef int k, rc = TF_OK
    sums_along(&s, r, &v[0])
    memset(&f, 0, sizeof(f))
    for k in range(2):
        rc = rc if rc != TF_OK else floats(&parts[k], &v[0], r.count * blocks_of(r.n), keep, call)
    if rc != TF_OK:
        return rc
    s.g, s.mean, s.rstd = &v[1], NULL if rms else &v[2], &v[3]
    s.w = NULL if v[4].flags & TF_ABSENT else &v[4]
    s.wanted = FIRST | (NOT_CENTRED if rms else SECOND)
    rc = block_sums(&s, PRODUCTS, &parts[0], NULL if rms else &parts[1], call)
    f.rows, f.n, f.count, f.a = r.count, blocks_of(r.n), r.n, &half
    half.size = half.shape[0] = r.count
    for k in range(2):
        if k or not rms:
            half.offset = k * r.count
            f.first = &parts[1 - k]
            rc = rc if rc != TF_OK else finish(&f, MEAN, &v[0], call)
    return rc


cdef int norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call) noexcept with gil:
    """variant 0: layer norm (x, w?, b? -> y, mean, rstd); 1: RMS norm (x, w? -> y, rstd)."""
    cdef int rms = <int><size_t>call.ctx, k, rc
    cdef bint stage
    cdef tf_view v[3]                   # x, w, b
    cdef const tf_view *x = &v[0]
    cdef tf_launch l
    cdef Rows r
    cdef list keep = []
    cdef double eps = at.f[0]
    if refused(inputs, n, outputs[0], call):
        return TF_EUNSUPPORTED
    if outputs[1].size == 0:
        return TF_OK
    for k in range(3):
        v[k] = inputs[k if k < n else n - 1][0]
        if k >= n:
            v[k].flags |= TF_ABSENT
    if not trailing_rows(&r, 1, &x, <int>at.i[0]):
        rc = dense(&v[0], keep, call)
        if rc != TF_OK:
            return rc
        trailing_rows(&r, 1, &x, <int>at.i[0])
    for k in range(1, 3):
        rc = dense(&v[k], keep, call)
        if rc != TF_OK:
            return rc
    if rms and not at.i[9]:
        eps = 2.220446049250313e-16 if is_double(x) else 1.1920928955078125e-07
    stage = scanty(&r) and one_axis(&r)
    if stage:
        rc = norm_stats(&r, x, rms, eps, outputs, keep, call)
        if rc != TF_OK:
            return rc
        lay_out_blocks(&r)
    begin(&l, NORM[is_double(x)], call)
    read(&l, x)
    write(&l, outputs[0])
    read(&l, &v[1])
    read(&l, &v[2])
    operand(&l, outputs[1], not stage)
    operand(&l, outputs[1 if rms else 2], not stage)
    word(&l, r.count)
    word(&l, r.n)
    word(&l, r.inner)
    word(&l, r.outer_step[0])
    word(&l, r.inner_step[0])
    word(&l, r.step[0])
    number_word(&l, <double>r.n, is_double(x))
    number_word(&l, eps, is_double(x))
    constant(&l, 0, rms)
    constant(&l, 1, outputs[0].dtype)
    constant(&l, 2, x.dtype)
    constant(&l, 3, dtype_or_none(&v[1]))
    constant(&l, 4, dtype_or_none(&v[2]))
    row_constants(&l, 5, &r)
    stage_of(&l, &r, stage)
    return launch(&l, outputs[0], call)


cdef int norm_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call) noexcept with gil:
    """variant 0: (g, x, mean, rstd, w? -> gx, gw, gb); 1: (g, x, rstd, w? -> gx, gw)."""
    cdef int rms = <int><size_t>call.ctx, k, rc
    cdef tf_view v[5]                   # x, g, mean, rstd, w
    cdef tf_view means
    cdef bint stage
    cdef const tf_view *views[2]
    cdef const tf_view *y = outputs[0]
    cdef int wanted = (1 if outputs[1].size else 0) | (2 if not rms and outputs[2].size else 0)
    cdef tf_launch l
    cdef Rows r
    cdef list keep = []
    if refused(inputs, n, y, call) or (wanted and not computes(outputs[1])):
        return TF_EUNSUPPORTED
    v[0], v[1], v[2], v[3], v[4] = inputs[1][0], inputs[0][0], inputs[2][0], inputs[n - 2][0], inputs[n - 1][0]
    views[0], views[1] = &v[0], &v[1]
    if not trailing_rows(&r, 2, views, <int>at.i[0]):
        for k in range(2):
            rc = dense(&v[k], keep, call)
            if rc != TF_OK:
                return rc
        trailing_rows(&r, 2, views, <int>at.i[0])
    for k in range(2, 5):
        rc = dense(&v[k], keep, call)
        if rc != TF_OK:
            return rc
    if y.size:
        stage = scanty(&r) and one_axis(&r)
        if stage:
            rc = floats(&means, y, 2 * r.count, keep, call)
            rc = rc if rc != TF_OK else norm_means(&r, v, rms, &means, keep, call)
            if rc != TF_OK:
                return rc
            lay_out_blocks(&r)
        begin(&l, NORM_GRAD[is_double(y)], call)
        write(&l, y)
        for k in range(5):
            read(&l, &v[k])
        maybe(&l, &means if stage else NULL, False)
        word(&l, r.count)
        word(&l, r.n)
        word(&l, r.inner)
        for k in range(2):
            word(&l, r.outer_step[k])
        for k in range(2):
            word(&l, r.inner_step[k])
        for k in range(2):
            word(&l, r.step[k])
        number_word(&l, <double>r.n, is_double(y))
        constant(&l, 0, rms)
        constant(&l, 1, y.dtype)
        constant(&l, 2, v[0].dtype)
        constant(&l, 3, v[1].dtype)
        constant(&l, 4, dtype_or_none(&v[4]))
        row_constants(&l, 5, &r)
        stage_of(&l, &r, stage)
        rc = launch(&l, y, call)
        if rc != TF_OK:
            return rc
    return weights_grad(&r, v, rms, wanted, outputs, call) if wanted else TF_OK


# ---- sums by blocks

cdef int floats(tf_view *v, const tf_view *where, int64_t n, list keep, tf_call *call) noexcept:
    """So many numbers in scratch memory, as a tensor: float64 where that is what is computed in, else float32."""
    cdef object block
    memset(v, 0, sizeof(tf_view))
    v.ndim, v.dtype, v.backend, v.index, v.flags = 1, TF_F64 if is_double(where) else TF_F32, where.backend, where.index, TF_CONTIGUOUS
    v.size, v.shape[0], v.strides[0] = n, n, 1
    try:
        block = scratch(where, <uint64_t>(tf_itemsize[v.dtype] * max(n, 1)))
        keep.append(block)
        v.block = <void *><uint64_t>block.block
    except BaseException as error:
        return failed(where, call, error)
    return TF_OK


cdef int64_t blocks_of(int64_t n) noexcept nogil:
    return (n + BLOCK - 1) // BLOCK


cdef inline void maybe(tf_launch *l, const tf_view *v, bint writes) noexcept nogil:
    """The next operand, of those that a kind may do without."""
    if v == NULL:
        number(l, 0)
    else:
        operand(l, v, writes)


cdef int block_sums(const Sums *s, int kind, const tf_view *first, const tf_view *second, tf_call *call) noexcept:
    """Sums of each row's blocks, blocks of a row side by side; in what is computed in, or in the results' dtype."""
    cdef tf_launch l
    cdef Rows r
    cdef int64_t blocks = blocks_of(s.n)
    cdef int k
    r.count, r.n, r.inner = s.rows, min(s.n, BLOCK), s.rows
    r.inner_step[0], r.step[0] = s.row_step[0], s.inner_step[0]
    lay_out_read(&r)
    begin(&l, SUMS[is_double(s.x)], call)
    maybe(&l, first, True)
    maybe(&l, second, True)
    read(&l, s.x)
    maybe(&l, s.g, False)
    maybe(&l, s.mean, False)
    maybe(&l, s.rstd, False)
    maybe(&l, s.w, False)
    word(&l, s.rows)
    word(&l, s.n)
    word(&l, blocks)
    word(&l, s.inner)
    for k in range(2):
        word(&l, s.row_step[k])
    for k in range(2):
        word(&l, s.outer_step[k])
    for k in range(2):
        word(&l, s.inner_step[k])
    for k in range(2):
        word(&l, s.stat_step[k])
    constant(&l, 0, kind)
    constant(&l, 1, (first if first != NULL else second).dtype)
    constant(&l, 2, s.x.dtype)
    constant(&l, 3, s.g.dtype if s.g != NULL else 0)
    constant(&l, 4, s.w.dtype if s.w != NULL else 255)
    constant(&l, 5, s.wanted)
    constant(&l, 6, s.inner == s.n)
    constant(&l, 7, r.layout)
    if r.layout == ACROSS:
        spread(&l, groups_of(&r) * blocks)
    else:
        r.count *= blocks
        spread(&l, groups_of(&r))
    return launch(&l, s.x, call)


cdef int finish(const Finish *f, int kind, const tf_view *where, tf_call *call) noexcept:
    """What is made of the sums of n blocks."""
    cdef tf_launch l
    cdef Rows r
    r.count, r.n, r.inner = f.rows, f.n, 1
    lay_out_read(&r)
    begin(&l, FINISH[is_double(where)], call)
    maybe(&l, f.first, False)
    maybe(&l, f.second, False)
    maybe(&l, f.v, False)
    maybe(&l, f.w, False)
    maybe(&l, f.a, True)
    maybe(&l, f.b, True)
    maybe(&l, f.c, True)
    word(&l, f.rows)
    word(&l, f.n)
    number_word(&l, <double>f.count, is_double(where))
    number_word(&l, f.eps, is_double(where))
    constant(&l, 0, kind)
    constant(&l, 1, f.a.dtype if f.a != NULL else f.b.dtype)
    constant(&l, 2, f.v.dtype if f.v != NULL else 0)
    constant(&l, 3, dtype_or_none(f.w) if f.w != NULL else 255)
    constant(&l, 4, f.wanted)
    constant(&l, 5, r.layout)
    constant(&l, 6, r.teams)
    spread(&l, groups_of(&r))
    return launch(&l, where, call)


cdef int weights_grad(const Rows *r, const tf_view *v, int rms, int wanted, tf_view *const *outputs,
                      tf_call *call) noexcept:
    """Canonical sums over the rows of g xhat and of g: for each place of a row they are a row of their own."""
    cdef Sums s
    cdef Finish f
    cdef tf_view parts[2]
    cdef list keep = []
    cdef int64_t blocks = blocks_of(r.count)
    cdef int k, rc
    memset(&s, 0, sizeof(s))
    memset(&f, 0, sizeof(f))
    s.rows, s.n, s.inner, s.stat_step[1] = r.n, r.count, r.inner, 1
    for k in range(2):
        s.row_step[k], s.outer_step[k], s.inner_step[k] = r.step[k], r.outer_step[k], r.inner_step[k]
    s.wanted = wanted | (NOT_CENTRED if rms else 0)
    s.x, s.g, s.mean, s.rstd = &v[0], &v[1], NULL if rms else &v[2], &v[3]
    f.rows, f.n, f.wanted = r.n, blocks, wanted
    f.a, f.b = outputs[1] if wanted & FIRST else NULL, outputs[2] if wanted & SECOND else NULL
    if blocks == 1:
        return block_sums(&s, PRODUCTS, f.a, f.b, call)
    if blocks:
        for k in range(2):
            rc = floats(&parts[k], &v[0], r.n * blocks if wanted >> k & 1 else 0, keep, call)
            if rc != TF_OK:
                return rc
        f.first, f.second = &parts[0], &parts[1]
        rc = block_sums(&s, PRODUCTS, f.first, f.second, call)
        if rc != TF_OK:
            return rc
    return finish(&f, PAIR, outputs[0], call)


cdef object SOFT = kernel_capsule(softmax)
cdef object NORMS = kernel_capsule(norm)
cdef object GRADS = kernel_capsule(norm_grad)
KERNELS = {
    "softmax": (SOFT, 0), "log_softmax": (SOFT, 1), "softmax_grad": (SOFT, 2), "log_softmax_grad": (SOFT, 3),
    "layer_norm": (NORMS, 0), "rms_norm": (NORMS, 1), "layer_norm_grad": (GRADS, 0), "rms_norm_grad": (GRADS, 1),
}
