"""Optimizer steps: parameter and state are written in place. Any strides, any floating types.

Half precision is widened to float, stepped, and rounded once where it is stored.
"""
from libc.math cimport pow
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, push
from tinyfin.backends.cpu.norm_loops cimport tf_norm_loops, tf_norm_table
from tinyfin.backends.cpu.rows cimport Operand, compute_type, gather, operand, scatter
from tinyfin.backends.cpu.threads cimport parallel_for
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef extern from "step_loops.h" nogil:
    enum:
        TF_NESTEROV
        TF_MAXIMIZE
        TF_FIRST
        TF_DECOUPLED

    ctypedef struct tf_step:
        double lr, momentum, dampening, weight_decay, beta1, beta2, eps, alpha, bias1, bias2
        int flags

    ctypedef void (*tf_stepper)(void *p, const void *g, void *const *state, int64_t n,
                                const tf_step *s) noexcept nogil

    ctypedef struct tf_step_loops:
        tf_stepper sgd
        tf_stepper adam
        tf_stepper rmsprop

    ctypedef struct tf_step_table:
        tf_step_loops of[2]

cdef enum:
    MAXOPS = 5          # parameter, gradient, up to three of state
    BLOCK = 512         # numbers that pass through L1 at a time
    CHUNK = 1 << 14     # numbers of one task

cdef const tf_step_table *STEPS = <const tf_step_table *>isa_table(b"step")
cdef const tf_norm_table *MOVES = <const tf_norm_table *>isa_table(b"norm")


cdef struct Job:
    const tf_norm_loops *moves
    tf_stepper fn
    tf_step s
    Operand ops[MAXOPS]
    Axes axes[MAXOPS]
    bint given[MAXOPS]
    int64_t n
    int size
    bint direct


cdef void step_blocks(Job *j, int64_t first, int64_t stop) noexcept nogil:
    """Through buffers, block by block."""
    cdef double buffers[MAXOPS][BLOCK]
    cdef void *state[3]
    cdef int64_t i, m
    cdef int k
    for k in range(3):
        state[k] = buffers[2 + k] if j.given[2 + k] else NULL
    i = first
    while i < stop:
        m = min(stop - i, BLOCK)
        for k in range(MAXOPS):
            if j.given[k]:
                gather(j.moves, &j.ops[k], 0, &j.axes[k], 0, i, m, j.size, <char *>buffers[k])
        j.fn(buffers[0], buffers[1], state, m, &j.s)
        for k in range(MAXOPS):
            if j.given[k] and k != 1:
                scatter(j.moves, &j.ops[k], 0, &j.axes[k], 0, i, m, j.size, <char *>buffers[k])
        i += BLOCK


cdef void step_task(int64_t task, void *ctx) noexcept nogil:
    cdef Job *j = <Job *>ctx
    cdef int64_t first = task * CHUNK, stop = min(first + CHUNK, j.n), off = first * j.size
    cdef void *state[3]
    cdef int k
    if not j.direct:
        step_blocks(j, first, stop)
        return
    for k in range(3):
        state[k] = j.ops[2 + k].data + off if j.given[2 + k] else NULL
    j.fn(j.ops[0].data + off, j.ops[1].data + off, state, stop - first, &j.s)


cdef int step(Job *j, const tf_view *const *inputs, int n) noexcept nogil:
    """Sets up the operands and runs."""
    cdef int k, d, wide = compute_type(inputs[0].dtype)
    j.moves, j.size, j.n, j.direct = &MOVES.of[wide], 8 if wide else 4, inputs[0].size, True
    for k in range(MAXOPS):
        j.given[k] = k < n and not inputs[k].flags & TF_ABSENT
        if not j.given[k]:
            continue
        j.ops[k] = operand(inputs[k], (inputs[k].flags & TF_CONTIGUOUS) != 0, wide)
        j.direct = j.direct and j.ops[k].direct
        j.axes[k].nd = 0
        for d in range(inputs[k].ndim):
            push(&j.axes[k], inputs[k].shape[d], inputs[k].strides[d], 0, 0)
    parallel_for((j.n + CHUNK - 1) // CHUNK, j.n * 1.0, step_task, j)
    return TF_OK


cdef int flag(int64_t on, int bit) noexcept nogil:
    return bit if on else 0


cdef int sgd_step(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept nogil:
    """(p, g, buf?) lr, momentum, dampening, weight_decay; nesterov, maximize, first"""
    cdef Job j
    j.fn = STEPS.of[compute_type(inputs[0].dtype)].sgd
    j.s.lr, j.s.momentum, j.s.dampening, j.s.weight_decay = at.f[0], at.f[1], at.f[2], at.f[3]
    j.s.flags = flag(at.i[0], TF_NESTEROV) | flag(at.i[1], TF_MAXIMIZE) | flag(at.i[2], TF_FIRST)
    return step(&j, inputs, n)


cdef int adam_step(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call) noexcept nogil:
    """(p, g, exp_avg, exp_avg_sq, max_exp_avg_sq?) lr, betas, eps, weight_decay; step, ..."""
    cdef Job j
    j.fn = STEPS.of[compute_type(inputs[0].dtype)].adam
    j.s.lr, j.s.beta1, j.s.beta2 = at.f[0], at.f[1], at.f[2]
    j.s.eps, j.s.weight_decay = at.f[3], at.f[4]
    j.s.bias1 = 1.0 - pow(j.s.beta1, <double>at.i[0])
    j.s.bias2 = 1.0 - pow(j.s.beta2, <double>at.i[0])
    j.s.flags = flag(at.i[1], TF_DECOUPLED) | flag(at.i[2], TF_MAXIMIZE)
    return step(&j, inputs, n)


cdef int rmsprop_step(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept nogil:
    """(p, g, square_avg, grad_avg?, buf?) lr, alpha, eps, weight_decay, momentum; maximize"""
    cdef Job j
    j.fn = STEPS.of[compute_type(inputs[0].dtype)].rmsprop
    j.s.lr, j.s.alpha, j.s.eps = at.f[0], at.f[1], at.f[2]
    j.s.weight_decay, j.s.momentum = at.f[3], at.f[4]
    j.s.flags = flag(at.i[0], TF_MAXIMIZE)
    return step(&j, inputs, n)


KERNELS = {
    "sgd_step": kernel_capsule(sgd_step), "adam_step": kernel_capsule(adam_step),
    "rmsprop_step": kernel_capsule(rmsprop_step),
}
