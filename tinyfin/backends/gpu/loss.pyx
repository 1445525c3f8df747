"""Negative log-likelihood and cross entropy of class labels, and checks of values.

A label out of range counts as one to ignore, and is told when the host next waits; so is a value that must not be.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from tinyfin.backends.gpu.elementwise cimport dense
from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.norm cimport *
from tinyfin.backends.gpu.rows cimport GROUP, Rows, rows_along
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.gpu.faults import OPERATIONS
from tinyfin.backends.gpu.modules import shader

cdef enum:
    EACH, AVERAGE, TOTAL            # reductions, in the order of the rows' choices

cdef int[2] ROWS = [shader("loss_rows_f32"), shader("loss_rows_f64")]
cdef int[2] LABELS = [shader("loss_labels_f32"), shader("loss_labels_f64")]
cdef int[2] GRAD = [shader("loss_grad_f32"), shader("loss_grad_f64")]
cdef int[2] CHECK = [shader("check_values_f32"), shader("check_values_f64")]
cdef int NLL_LOSS = OPERATIONS.index("nll_loss")
cdef int CROSS_ENTROPY = OPERATIONS.index("cross_entropy")
cdef int[2] CHECKS = [OPERATIONS.index("check_unit_interval"), OPERATIONS.index("check_not_nan")]


cdef inline int class_dim(const tf_view *x) noexcept nogil:
    return 0 if x.ndim == 1 else 1


cdef int rows_of_classes(Rows *r, tf_view *x, const tf_view *y, list keep, tf_call *call) noexcept:
    """Rows of x, and of y, a result of its shape."""
    cdef const tf_view *views[2]
    cdef int rc
    views[0], views[1] = x, y
    if rows_along(r, 2, views, class_dim(x)):
        return TF_OK
    rc = dense(x, keep, call)
    if rc == TF_OK:
        rows_along(r, 2, views, class_dim(x))
    return rc


# ---- losses

cdef int loss(const tf_view *const *inputs, tf_view *const *outputs, const tf_attrs *at, bint logits,
              tf_call *call) noexcept:
    """(x, labels, weight? -> loss, total weight), and for logits what log_sums finds."""
    cdef tf_view x = inputs[0][0], label = inputs[1][0]
    cdef tf_view parts, second
    cdef const tf_view *weight = inputs[2]
    cdef int64_t blocks = blocks_of(label.size)
    cdef tf_launch l
    cdef Rows r, by_rows
    cdef Finish f
    cdef list keep = []
    cdef int rc
    if refused(inputs, 1, outputs[0], call) or refused(inputs + 2, 1, outputs[0], call) or not within_reach(&label):
        return TF_EUNSUPPORTED
    rc = rows_of_classes(&r, &x, &x, keep, call)
    rc = rc if rc != TF_OK else dense(&label, keep, call)
    rc = rc if rc != TF_OK else floats(&parts, &x, 2 * blocks, keep, call)
    if rc == TF_OK and logits and label.size:
        by_rows = r
        rc = softmax_rows(&by_rows, LSE, &x, outputs[2], outputs[3], keep, call)
    if rc != TF_OK:
        return rc
    if label.size:
        begin(&l, ROWS[is_double(&x)], call)
        write(&l, outputs[0])
        write(&l, &parts)
        read(&l, &x)
        read(&l, &label)
        read(&l, weight)
        read(&l, outputs[2] if logits else &x)
        read(&l, outputs[3] if logits else &x)
        fault(&l, &x)
        word(&l, label.size)
        word(&l, r.n)
        word(&l, blocks)
        word(&l, r.inner)
        word(&l, r.outer_step[0])
        word(&l, r.inner_step[0])
        word(&l, r.step[0])
        word(&l, weight.strides[0])
        word(&l, at.i[1])
        word(&l, at.i[1] >> 32)
        constant(&l, 0, logits)
        constant(&l, 1, at.i[0] == EACH)
        constant(&l, 2, outputs[0].dtype)
        constant(&l, 3, x.dtype)
        constant(&l, 4, label.dtype)
        constant(&l, 5, dtype_or_none(weight))
        constant(&l, 6, CROSS_ENTROPY if logits else NLL_LOSS)
        spread(&l, (blocks + 3) // 4)
        rc = launch(&l, &x, call)
        if rc != TF_OK:
            return rc
    second = parts
    second.offset, parts.size, second.size = blocks, blocks, blocks
    parts.shape[0] = second.shape[0] = blocks
    memset(&f, 0, sizeof(f))
    f.rows, f.n, f.first, f.second = 1, blocks, &parts, &second
    f.a, f.b, f.wanted = outputs[0], outputs[1], FIRST if at.i[0] == TOTAL else 0
    if at.i[0] == EACH:
        f.a, f.wanted = NULL, SECOND
        return finish(&f, PAIR, &x, call)
    return finish(&f, LOSS, &x, call)


cdef int nll_loss(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept with gil:
    """(log-probabilities, labels, weight? -> loss, total weight)"""
    return loss(inputs, outputs, at, False, call)


cdef int cross_entropy(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call) noexcept with gil:
    """(logits, labels, weight? -> loss, total weight, largest logit, log of the sum of exp)"""
    return loss(inputs, outputs, at, True, call)


# ---- gradients

cdef int label_flow(const tf_view *flow, tf_view *g, tf_view *label, const tf_view *weight, const tf_view *total,
                    int64_t classes, const tf_attrs *at, int operation, list keep, tf_call *call) noexcept:
    """What flows to the log-probability of each label, and the labels that count."""
    cdef tf_launch l
    cdef int rc = dense(g, keep, call)
    rc = rc if rc != TF_OK else dense(label, keep, call)
    if rc != TF_OK:
        return rc
    begin(&l, LABELS[is_double(flow)], call)
    write(&l, flow)
    read(&l, label)
    read(&l, weight)
    read(&l, g)
    read(&l, total)
    fault(&l, flow)
    word(&l, label.size)
    word(&l, classes)
    word(&l, weight.strides[0])
    word(&l, at.i[1])
    word(&l, at.i[1] >> 32)
    constant(&l, 0, <int>at.i[0])
    constant(&l, 1, label.dtype)
    constant(&l, 2, dtype_or_none(weight))
    constant(&l, 3, g.dtype)
    constant(&l, 4, operation)
    spread(&l, (label.size + GROUP - 1) // GROUP)
    return launch(&l, flow, call)


cdef inline bint in_fours(const Rows *r, const tf_view *v) noexcept nogil:
    return r.n & 3 == 0 and not is_double(v) and v.flags & TF_CONTIGUOUS != 0 and address_of(v) & (4 * tf_itemsize[v.dtype] - 1) == 0


cdef int spread_flow(const Rows *r, const tf_view *y, const tf_view *x, const tf_view *flow, const tf_view *shift,
                     const tf_view *logs, tf_call *call) noexcept:
    """The gradient from what flows to the labels; without x for log-probabilities."""
    cdef tf_launch l
    cdef int64_t inner = 1
    cdef int d
    cdef bint four
    for d in range(2, y.ndim):
        inner *= y.shape[d]
    four = inner == 1 and in_fours(r, y) and (x == NULL or in_fours(r, x))
    begin(&l, GRAD[is_double(y)], call)
    write(&l, y)
    if x != NULL:
        read(&l, x)
    else:
        number(&l, 0)
    read(&l, flow)
    if x != NULL:
        read(&l, shift)
        read(&l, logs)
    else:
        number(&l, 0)
        number(&l, 0)
    word(&l, y.size)
    word(&l, r.count)
    word(&l, r.n)
    word(&l, inner)
    word(&l, r.inner)
    word(&l, r.outer_step[0])
    word(&l, r.inner_step[0])
    word(&l, r.step[0])
    constant(&l, 0, x != NULL)
    constant(&l, 1, y.dtype)
    constant(&l, 2, x.dtype if x != NULL else 0)
    constant(&l, 3, four)
    spread(&l, (y.size // (4 if four else 1) + GROUP - 1) // GROUP)
    return launch(&l, y, call)


cdef int loss_grad(const tf_view *const *inputs, tf_view *y, const tf_attrs *at, bint logits, tf_call *call) noexcept:
    """(g, labels, weight?, total weight -> gx), and for logits (g, logits, labels, ..., largest logit, log -> gx)"""
    cdef const tf_view *const *rest = inputs + 2 if logits else inputs + 1      # labels and what follows
    cdef tf_view g = inputs[0][0], x = (inputs[1] if logits else y)[0], label = rest[0][0]
    cdef tf_view shift, logs, flow
    cdef Rows r
    cdef list keep = []
    cdef int rc
    if refused(inputs, 1, y, call) or refused(rest + 1, 2, y, call) or (logits and refused(inputs + 1, 1, y, call)) \
            or not within_reach(&label):
        return TF_EUNSUPPORTED
    if y.size == 0:
        return TF_OK
    rc = rows_of_classes(&r, &x, y, keep, call)
    rc = rc if rc != TF_OK else floats(&flow, y, 2 * r.count, keep, call)
    rc = rc if rc != TF_OK else label_flow(&flow, &g, &label, rest[1], rest[2], r.n, at,
                                           CROSS_ENTROPY if logits else NLL_LOSS, keep, call)
    if rc != TF_OK or not logits:
        return rc if rc != TF_OK else spread_flow(&r, y, NULL, &flow, NULL, NULL, call)
    shift, logs = rest[3][0], rest[4][0]
    rc = dense(&shift, keep, call)
    rc = rc if rc != TF_OK else dense(&logs, keep, call)
    return rc if rc != TF_OK else spread_flow(&r, y, &x, &flow, &shift, &logs, call)


cdef int nll_loss_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call) noexcept with gil:
    """(g, labels, weight?, total weight -> gx), reduction, ignore_index, shape"""
    return loss_grad(inputs, outputs[0], at, False, call)


cdef int cross_entropy_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                            const tf_attrs *at, tf_call *call) noexcept with gil:
    """(g, logits, labels, weight?, total weight, largest logit, log of the sum -> gx)"""
    return loss_grad(inputs, outputs[0], at, True, call)


# ---- checks

cdef int check_values(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept with gil:
    """variant 0: all elements lie in [0, 1]; 1: none is NaN. Gives True. argument: how errors call x."""
    cdef int which = <int><size_t>call.ctx, rc
    cdef tf_view x = inputs[0][0]
    cdef tf_launch l
    cdef list keep = []
    call.detail[0] = x.dtype
    if not computes(&x) or x.flags & TF_WRAPPED or not within_reach(&x):
        return TF_EUNSUPPORTED
    rc = dense(&x, keep, call)
    if rc != TF_OK:
        return rc
    begin(&l, CHECK[is_double(&x)], call)
    write(&l, outputs[0])
    read(&l, &x)
    fault(&l, outputs[0])
    word(&l, x.size)
    word(&l, at.i[0])
    constant(&l, 0, which)
    constant(&l, 1, x.dtype)
    constant(&l, 2, CHECKS[which])
    spread(&l, max((x.size + 4 * GROUP - 1) // (4 * GROUP), 1))
    return launch(&l, outputs[0], call)


cdef object VALUES = kernel_capsule(check_values)
KERNELS = {
    "nll_loss": kernel_capsule(nll_loss), "nll_loss_grad": kernel_capsule(nll_loss_grad),
    "cross_entropy": kernel_capsule(cross_entropy), "cross_entropy_grad": kernel_capsule(cross_entropy_grad),
    "check_unit_interval": (VALUES, 0), "check_not_nan": (VALUES, 1),
}
