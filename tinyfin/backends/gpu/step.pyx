"""Steps of optimizers: one dispatch per parameter, in place.

Factors are computed here in double and rounded once, as the CPU's loops do it (backends/cpu/step_rows.inc).
"""
from libc.math cimport pow, sqrt
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.table cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport collapse

from tinyfin.backends.gpu.modules import shader

cdef enum:
    MAXOPS = 5                       # parameter, gradient, up to three of state
    GROUP = 256
    SGD = 0
    ADAM, RMSPROP
    STRIDED = 0
    DENSE, QUADS
    NESTEROV = 1                     # flags of step.comp
    MAXIMIZE = 2
    FIRST = 4
    DECAY = 8
    SHRINK = 16
    HAS = 32                         # the first of state; the next two bits are the others
    SLOW = 256

cdef int[2] STEP = [shader("step_f32"), shader("step_f64")]
cdef int TABLE_MODULE = shader("table")


cdef int table_of(Table *t, const tf_view *const *inputs, int n) noexcept nogil:
    """Axes, merged, of all operands."""
    cdef int64_t shape[8]
    cdef int64_t all_strides[MAXOPS][8]
    cdef int64_t *strides[MAXOPS]
    cdef int k, d, ndim = inputs[0].ndim
    for d in range(8):
        shape[d] = inputs[0].shape[d] if d < ndim else 1
    for k in range(MAXOPS):
        strides[k] = all_strides[k]
        for d in range(8):
            all_strides[k][d] = inputs[k].strides[d] if k < n and d < ndim and not inputs[k].flags & TF_ABSENT else 0
    ndim = collapse(ndim, shape, strides, MAXOPS)
    t.n = 0
    entry(t, ndim)
    for d in range(8):
        entry(t, shape[d] if d < ndim else 1)
    for k in range(MAXOPS):
        for d in range(8):
            entry(t, all_strides[k][d] if d < ndim else 0)
    return TF_OK


cdef int step(int rule, uint32_t flags, const double *f, const tf_view *const *inputs, int n, tf_call *call) noexcept:
    cdef const tf_view *p = inputs[0]
    cdef tf_launch l
    cdef Table t
    cdef int64_t count = p.size
    cdef int layout = DENSE if is_double(p) else QUADS, k, item, rc
    cdef bint given
    cdef object memory
    call.detail[0] = p.dtype
    for k in range(n):
        if not within_reach(inputs[k]):
            return TF_EUNSUPPORTED
    if not computes(p):
        return TF_EUNSUPPORTED
    if count == 0:
        return TF_OK
    begin(&l, STEP[is_double(p)], call)
    for k in range(MAXOPS):
        given = k < n and not inputs[k].flags & TF_ABSENT
        if not given:
            number(&l, 0)
            constant(&l, k, TF_F32)
            continue
        operand(&l, inputs[k], k != 1)
        constant(&l, k, inputs[k].dtype)
        if k >= 2:
            flags |= <uint32_t>HAS << (k - 2)
        item = tf_itemsize[inputs[k].dtype]
        if not inputs[k].flags & TF_CONTIGUOUS:
            layout = STRIDED
        elif layout == QUADS and item <= 4 and address_of(inputs[k]) % (4 * item):
            layout = DENSE
    if layout == STRIDED:
        table_of(&t, inputs, n)
        try:
            memory = scratch(p, 4 * t.n)
        except BaseException as error:
            return failed(p, call, error)
        rc = put_table(&t, TABLE_MODULE, <uint64_t>memory.block, p, call)
        if rc != TF_OK:
            return rc
        bytes_of(&l, <uint64_t>memory.block, 4 * <uint64_t>t.n, False)
    else:
        number(&l, 0)
    word(&l, count)
    word(&l, flags)
    for k in range(8):
        number_word(&l, f[k], is_double(p))
    constant(&l, 5, rule)
    constant(&l, 6, layout)
    spread(&l, ((count // 4 + (count & 3) if layout == QUADS else count) + GROUP - 1) // GROUP)
    return launch(&l, p, call)


cdef uint32_t flag(bint on, int bit) noexcept nogil:
    return bit if on else 0


cdef int sgd_step(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept with gil:
    """(p, g, buf?) lr, momentum, dampening, weight_decay; nesterov, maximize, first"""
    cdef double[8] f = [-at.f[0], at.f[1], (1 - at.f[2]), at.f[3], 0, 0, 0, 0]
    return step(SGD, flag(at.i[0], NESTEROV) | flag(at.i[1], MAXIMIZE) | flag(at.i[2], FIRST) |
                flag(at.f[3] != 0, DECAY), f, inputs, n, call)


cdef int adam_step(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call) noexcept with gil:
    """(p, g, exp_avg, exp_avg_sq, max_exp_avg_sq?) lr, betas, eps, weight_decay; step, decoupled, maximize"""
    cdef double lr = at.f[0], beta1 = at.f[1], beta2 = at.f[2], decay = at.f[4], shrunk = lr * decay
    cdef double bias1 = 1.0 - pow(beta1, <double>at.i[0]), bias2 = 1.0 - pow(beta2, <double>at.i[0])
    cdef double[8] f = [-(lr / bias1), (1 - shrunk), (1 - beta1), decay, beta2,
                        (1 - beta2), sqrt(bias2), at.f[3]]
    return step(ADAM, flag(at.i[2], MAXIMIZE) | flag(1 - beta1 < 0.5, SLOW) |
                flag(decay != 0, SHRINK if at.i[1] else DECAY), f, inputs, n, call)


cdef int rmsprop_step(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept with gil:
    """(p, g, square_avg, grad_avg?, buf?) lr, alpha, eps, weight_decay, momentum; maximize"""
    cdef double alpha = at.f[1]
    cdef double[8] f = [-at.f[0], at.f[4], (1 - alpha), at.f[3], alpha, 0, 0,
                        at.f[2]]
    return step(RMSPROP, flag(at.i[0], MAXIMIZE) | flag(1 - alpha < 0.5, SLOW) | flag(at.f[3] != 0, DECAY), f,
                inputs, n, call)


KERNELS = {
    "sgd_step": kernel_capsule(sgd_step), "adam_step": kernel_capsule(adam_step),
    "rmsprop_step": kernel_capsule(rmsprop_step),
}
