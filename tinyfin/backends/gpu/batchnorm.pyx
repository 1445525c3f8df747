"""Batch norm: a channel is a row whose elements run over all axes but the second.

Sums go by blocks, so that few channels keep a device busy too; then one elementwise dispatch.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from tinyfin.backends.gpu.axes cimport Axes, axis, merged, no_axes
from tinyfin.backends.gpu.elementwise cimport copy, dense
from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.norm cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.gpu.modules import shader

cdef enum:
    GROUP = 256

cdef int[2] APPLY = [shader("batch_apply_f32"), shader("batch_apply_f64")]


cdef struct Batch:
    # x and g by (outer, channel, inner); a channel's elements along one axis or two
    Sums s
    int64_t outer, channels, inner
    int64_t step[2][3]


cdef bint inner_axis(const tf_view *v, int64_t *step) noexcept nogil:
    """Whether the axes behind the channels walk as one, with this step."""
    cdef Axes a
    cdef int d
    no_axes(&a, 1)
    for d in range(2, v.ndim):
        axis(&a, v.shape[d], v.strides[d])
    if not merged(&a) or a.ndim > 1:
        return False
    step[0] = a.strides[0][0] if a.ndim else 0
    return True


cdef int channels_of(Batch *b, tf_view *x, tf_view *g, list keep, tf_call *call) noexcept:
    """Sets up the walk; copies what has too many axes."""
    cdef tf_view *views[2]
    cdef Axes a
    cdef int k, d, rc
    memset(b, 0, sizeof(Batch))
    views[0], views[1] = x, g
    b.outer, b.channels, b.inner = x.shape[0], x.shape[1], 1
    for d in range(2, x.ndim):
        b.inner *= x.shape[d]
    b.s.rows, b.s.n, b.s.x, b.s.g = b.channels, b.outer * b.inner, x, g
    if x.size == 0:
        return TF_OK
    for k in range(2):
        if not inner_axis(views[k], &b.step[k][2]):
            rc = dense(views[k], keep, call)
            if rc != TF_OK:
                return rc
            b.step[k][2] = 1
        b.step[k][0], b.step[k][1] = views[k].strides[0], views[k].strides[1]
        b.s.row_step[k] = b.step[k][1]
    no_axes(&a, 2)
    axis(&a, b.outer, b.step[0][0], b.step[1][0])
    axis(&a, b.inner, b.step[0][2], b.step[1][2])
    merged(&a)
    b.s.inner = a.shape[a.ndim - 1] if a.ndim else 1
    for k in range(2):
        b.s.inner_step[k] = a.strides[k][a.ndim - 1] if a.ndim else 0
        b.s.outer_step[k] = a.strides[k][0] if a.ndim == 2 else 0
    b.s.stat_step[0] = 1
    return TF_OK


cdef inline bint in_fours(const Batch *b, const tf_view *v) noexcept nogil:
    return v.flags & TF_CONTIGUOUS != 0 and not is_double(v) and b.inner & 3 == 0 and address_of(v) & (4 * tf_itemsize[v.dtype] - 1) == 0


cdef int apply(const Batch *b, const tf_view *y, const tf_view *mean, const tf_view *rstd, const tf_view *w,
               const tf_view *bias, const tf_view *share, tf_call *call) noexcept:
    cdef tf_launch l
    cdef int k, d, grad = share != NULL
    cdef bint four = in_fours(b, y) and in_fours(b, b.s.x) and in_fours(b, b.s.g)
    begin(&l, APPLY[is_double(y)], call)
    write(&l, y)
    read(&l, b.s.x)
    read(&l, b.s.g)
    read(&l, mean)
    read(&l, rstd)
    if grad:
        number(&l, 0)
        number(&l, 0)
        read(&l, share)
    else:
        read(&l, w)
        read(&l, bias)
        number(&l, 0)
    word(&l, y.size)
    word(&l, b.channels)
    word(&l, b.inner)
    for k in range(2):
        for d in range(3):
            word(&l, b.step[k][d])
    constant(&l, 0, grad)
    constant(&l, 1, y.dtype)
    constant(&l, 2, b.s.x.dtype)
    constant(&l, 3, b.s.g.dtype)
    constant(&l, 4, mean.dtype)
    constant(&l, 5, 255 if grad else dtype_or_none(w))
    constant(&l, 6, 255 if grad else dtype_or_none(bias))
    constant(&l, 7, four)
    spread(&l, (y.size // (4 if four else 1) + GROUP - 1) // GROUP)
    return launch(&l, y, call)


cdef int statistic(Batch *b, int kind, const tf_view *to, const tf_view *rstd, double eps, list keep,
                   tf_call *call) noexcept:
    """The mean of x, or of squared differences from the mean, with 1 / its root."""
    cdef Finish f
    cdef tf_view parts
    cdef int64_t blocks = blocks_of(b.s.n)
    cdef int rc = floats(&parts, b.s.x, b.channels * blocks, keep, call)
    if rc == TF_OK and blocks:
        rc = block_sums(&b.s, SQUARES if kind == VARIANCE else OF_X, &parts, NULL, call)
    if rc != TF_OK:
        return rc
    memset(&f, 0, sizeof(f))
    f.rows, f.n, f.count, f.eps = b.channels, blocks, b.s.n, eps
    f.first, f.a, f.b = &parts, to, rstd
    return finish(&f, kind, b.s.x, call)


cdef int batch_norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call) noexcept with gil:
    """variant 0: (x, w?, b? -> y, mean, var); 1, statistics given: (x, mean, var, w?, b? -> y)."""
    cdef int given = <int><size_t>call.ctx, k, rc
    cdef tf_view v[5]                   # x, mean, var, w, b
    cdef tf_view rstd
    cdef Batch b
    cdef Finish f
    cdef list keep = []
    if refused(inputs, n, outputs[0], call):
        return TF_EUNSUPPORTED
    if inputs[0].shape[1] == 0 or (given and outputs[0].size == 0):
        return TF_OK
    for k in range(n):
        v[k if given or k == 0 else k + 2] = inputs[k][0]
    if not given:
        v[1], v[2] = outputs[1][0], outputs[2][0]
    rc = channels_of(&b, &v[0], &v[0], keep, call)
    for k in range(1, 5):
        rc = rc if rc != TF_OK else dense(&v[k], keep, call)
    rc = rc if rc != TF_OK else floats(&rstd, &v[0], b.channels, keep, call)
    if rc != TF_OK:
        return rc
    if given:
        memset(&f, 0, sizeof(f))
        f.rows, f.eps, f.v, f.b = b.channels, at.f[0], &v[2], &rstd
        rc = finish(&f, FACTOR, &v[0], call)
    else:
        b.s.mean = &v[1]
        rc = statistic(&b, MEAN, &v[1], NULL, 0.0, keep, call)
        rc = rc if rc != TF_OK else statistic(&b, VARIANCE, &v[2], &rstd, at.f[0], keep, call)
    if rc != TF_OK or outputs[0].size == 0:
        return rc
    return apply(&b, outputs[0], &v[1], &rstd, &v[3], &v[4], NULL, call)


cdef int batch_norm_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call) noexcept with gil:
    """(g, x, mean, var, w? -> gx, gw, gb)"""
    cdef tf_view v[5]                   # g, x, mean, var, w
    cdef tf_view rstd, share, mean, parts[2]
    cdef const tf_view *source = &mean
    cdef tf_view *target = &v[2]
    cdef tf_attrs none
    cdef Batch b
    cdef Finish f
    cdef list keep = []
    cdef int64_t blocks
    cdef int k, rc
    if refused(inputs, n, outputs[0], call) or not computes(outputs[1]):
        return TF_EUNSUPPORTED
    if inputs[1].shape[1] == 0:
        return TF_OK
    for k in range(5):
        v[k] = inputs[k][0]
    rc = channels_of(&b, &v[1], &v[0], keep, call)
    for k in range(2, 5):
        rc = rc if rc != TF_OK else dense(&v[k], keep, call)
    if rc == TF_OK and v[2].dtype < TF_F32:             # the sums take float32
        mean = v[2]
        memset(&none, 0, sizeof(none))
        rc = floats(target, &mean, b.channels, keep, call)
        rc = rc if rc != TF_OK else copy(&source, 1, &target, &none, call)
    rc = rc if rc != TF_OK else floats(&rstd, &v[1], b.channels, keep, call)
    rc = rc if rc != TF_OK else floats(&share, &v[1], 3 * b.channels, keep, call)
    blocks = blocks_of(b.s.n)
    for k in range(2):
        rc = rc if rc != TF_OK else floats(&parts[k], &v[1], b.channels * blocks, keep, call)
    if rc != TF_OK:
        return rc
    memset(&f, 0, sizeof(f))
    f.rows, f.eps, f.v, f.b = b.channels, at.f[0], &v[3], &rstd
    rc = finish(&f, FACTOR, &v[1], call)
    b.s.mean, b.s.rstd, b.s.wanted = &v[2], &rstd, FIRST | SECOND
    if rc == TF_OK and blocks:
        rc = block_sums(&b.s, PRODUCTS, &parts[0], &parts[1], call)
    if rc != TF_OK:
        return rc
    f.n, f.count, f.first, f.second = blocks, b.s.n, &parts[0], &parts[1]
    f.v, f.w, f.a, f.b, f.c = &rstd, &v[4], outputs[1], outputs[2], &share
    rc = finish(&f, CHANNEL_GRADS, &v[1], call)
    if rc != TF_OK or outputs[0].size == 0:
        return rc
    return apply(&b, outputs[0], &v[2], &rstd, NULL, NULL, &share, call)


cdef object NORM = kernel_capsule(batch_norm)
KERNELS = {
    "batch_norm": (NORM, 0), "batch_norm_apply": (NORM, 1), "batch_norm_grad": kernel_capsule(batch_norm_grad),
}
