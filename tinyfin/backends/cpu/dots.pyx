"""Matrix products of few results, whose chains would wait for themselves, and many of one result each.

A chain of fused multiply-adds takes four cycles a step, however wide the processor is: few results
of long rows are therefore the canonical sums of their products in normal mode, and chains in
deterministic mode. Linear layers keep their chains: a row's result does not depend on how many come
with it. Batches of products of a row and a column compute a chain in each lane.
"""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.gemm cimport up
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.matmul_shape cimport *
from tinyfin.backends.cpu.reduced cimport TF_ACC_F32, TF_ACC_F64, TF_BLOCK, TF_LANE_SUM, join_blocks, tf_reduce_table
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *

cdef enum:
    FEW_RESULTS = 4          # of all products of the call
    LONG_CHAIN = 256
    TASK_STEPS = 1 << 15     # multiply-adds of one task

cdef const tf_reduce_table *SUMS = <const tf_reduce_table *>isa_table(b"reduce")


cdef struct Cut:
    const Matmul *q
    char *sums               # those of the blocks of each result
    int64_t blocks, chunk    # of one result; of one task
    int kind                 # TF_ACC_F32 or TF_ACC_F64


cdef bint cuts_chains(const Matmul *q) noexcept nogil:
    """Whether results are canonical sums: by shape, dtype and mode alone."""
    if q.whole or q.k < LONG_CHAIN or q.count * q.m * q.n > FEW_RESULTS:
        return False
    return TF_F16 <= q.dtype <= TF_F64 and not q.paired


cdef const void *run_of(const Matmul *q, const char *x, int64_t step, int64_t first, int64_t n, void *copy) noexcept nogil:
    """n accumulators from step `first` on: where they are, or copied."""
    x += first * step * q.item
    if q.own and step == 1:
        return x
    q.kind.widen(q.dtype, x, step, n, copy)
    return copy


cdef void blocks_task(int64_t t, void *ctx) noexcept nogil:
    """Sums of some blocks of all results."""
    cdef const Cut *s = <const Cut *>ctx
    cdef const Matmul *q = s.q
    cdef int64_t block, at, i, j, result, first, n
    cdef double a[TF_BLOCK]
    cdef double b[TF_BLOCK]
    cdef const void *row
    cdef One one
    for block in range(t * s.chunk, min((t + 1) * s.chunk, s.blocks)):
        first = block * TF_BLOCK
        n = min(<int64_t>TF_BLOCK, q.k - first)
        result = 0
        for at in range(q.count):
            place(q, at, &one)
            for i in range(q.m):
                row = run_of(q, one.a + i * q.ar * q.item, q.ac, first, n, a)
                for j in range(q.n):
                    SUMS.dot[s.kind](s.sums + (result * s.blocks + block) * q.kind.itemsize, row,
                                     run_of(q, one.b + j * q.bc * q.item, q.br, first, n, b), n)
                    result += 1


cdef int cut_chains(const Matmul *q) noexcept nogil:
    """All results, each the canonical sum of its products."""
    cdef int64_t results = q.count * q.m * q.n, work = results * q.k, i
    cdef size_t bytes
    cdef double acc[FEW_RESULTS]
    cdef Cut s
    s.q, s.blocks, s.kind = q, up(q.k, TF_BLOCK), TF_ACC_F64 if q.dtype == TF_F64 else TF_ACC_F32
    s.chunk = max(1, TASK_STEPS // (results * TF_BLOCK))
    bytes = results * s.blocks * q.kind.itemsize
    s.sums = <char *>scratch_push(bytes)
    if s.sums == NULL:
        q.detail[0] = bytes
        return TF_ENOMEM
    parallel_for(up(s.blocks, s.chunk), 0.06 * work, blocks_task, &s)
    for i in range(results):
        join_blocks(SUMS, TF_LANE_SUM, s.kind, s.sums + i * s.blocks * q.kind.itemsize, s.blocks, q.kind.itemsize)
        if s.kind == TF_ACC_F64:
            acc[i] = (<double *>s.sums)[i * s.blocks]
        else:
            (<float *>acc)[i] = (<float *>s.sums)[i * s.blocks]
    q.kind.narrow(q.dtype, acc, results, q.c, 1)
    scratch_pop(bytes)
    return TF_OK


cdef bint are_dots(const Matmul *q) noexcept nogil:
    """Whether each product has one result, of dense rows."""
    return q.m == 1 and q.n == 1 and q.ac == 1 and q.br == 1 and q.thin != NULL


cdef void dots_task(int64_t t, void *ctx) noexcept nogil:
    """A vector of results at a time."""
    cdef const Matmul *q = <const Matmul *>ctx
    cdef const char *a[16]
    cdef const char *b[16]
    cdef double acc[16]
    cdef int64_t lanes = q.kind.lanes, first = t * lanes, i
    cdef One one
    for i in range(lanes):
        place(q, min(first + i, q.count - 1), &one)
        a[i], b[i] = one.a, one.b
    q.thin.dots(a, b, q.k, acc)
    q.kind.narrow(q.dtype, acc, min(lanes, q.count - first), q.c + first * q.item, 1)


cdef int dots(Matmul *q) noexcept nogil:
    """Products of one row and one column each."""
    parallel_for(up(q.count, q.kind.lanes), 0.2 * q.k * q.count, dots_task, q)
    return TF_OK
