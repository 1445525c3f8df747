"""Picking, placing and adding of single elements by index along one axis."""
from libc.stdint cimport uint64_t

from tinyfin.backends.gpu.axes cimport *
from tinyfin.backends.gpu.index cimport OF_SCATTER, OF_SCATTER_ADD, Runs, add_offsets, write_runs
from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.moves cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.gpu.modules import shader

cdef enum:
    PUT, ADD, EMBED

cdef int GATHER = shader("gather")


cdef int gather(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                tf_call *call) noexcept with gil:
    """x, index; dim."""
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *index = inputs[1]
    cdef tf_launch l
    cdef Axes a
    cdef int k, dim = <int>at.i[0]
    call.detail[0] = x.dtype
    if index.size == 0:
        return TF_OK
    no_axes(&a, 2)
    for k in range(index.ndim):
        axis(&a, index.shape[k], index.strides[k], 0 if k == dim else x.strides[k])
    if not within_reach(x) or not within_reach(index) or not merged(&a):
        return TF_EUNSUPPORTED
    begin(&l, GATHER, call)
    write(&l, outputs[0])
    read(&l, x)
    read(&l, index)
    fault(&l, x)
    word(&l, index.size)
    shape_words(&l, &a)
    stride_words(&l, &a, 0)
    stride_words(&l, &a, 1)
    word(&l, x.shape[dim] if x.ndim else 1)
    word(&l, x.strides[dim] if x.ndim else 0)
    constant(&l, 0, tf_itemsize[x.dtype])
    constant(&l, 1, index.dtype)
    spread(&l, groups_of(index.size))
    return launch(&l, x, call)


cdef int scatter_all(const tf_view *const *inputs, tf_view *y, int what, int dim, tf_call *call) except -1:
    cdef const tf_view *index = inputs[1]
    cdef const tf_view *v = inputs[0 if what == EMBED else 2]
    cdef Axes walk
    cdef Runs r
    cdef int k, rc
    cdef bint is_number = v.ndim == 0
    if not within_reach(y) or not within_reach(v) or not within_reach(index):
        return TF_EUNSUPPORTED
    if (what != PUT and is_double(y) and not computes(y)) or (v.dtype != y.dtype and not v.flags & TF_WRAPPED):
        return TF_EUNSUPPORTED
    no_axes(&walk, 1)
    no_axes(&r.lines, 2)
    no_axes(&r.after, 2)
    if index.size:
        for k in range(index.ndim):
            if k != dim:
                axis(&walk, index.shape[k], index.strides[k])
                axis(&r.lines, index.shape[k], y.strides[k], 0 if is_number else v.strides[k])
        if index.ndim:
            axis(&walk, index.shape[dim], index.strides[dim])
        if not merged(&walk) or not merged(&r.lines):
            return TF_EUNSUPPORTED
    rc = zeroed(y, call) if what == EMBED else copied(inputs[0], y, call)
    if rc or index.size == 0:
        return rc
    offsets = scratch(y, <uint64_t>(4 * index.size))
    rc = add_offsets(<uint64_t>offsets.block, index, &walk, y.shape[dim] if y.ndim else 1,
                     y.strides[dim] if y.ndim else 0, False, False, OF_SCATTER if what == PUT else OF_SCATTER_ADD, call)
    if rc or y.size == 0:
        return rc
    r.n, r.inner, r.inner_step = index.shape[dim] if index.ndim else 1, 1, 0
    r.step = 0 if is_number or index.ndim == 0 else v.strides[dim]
    r.adding, r.shared, r.alpha = what != PUT, False, 1.0
    r.apart = r.n == 1 or (what == PUT and r.step == 0)
    return write_runs(&r, y, v, <uint64_t>offsets.block, call)


cdef int scatter(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                 tf_call *call) noexcept with gil:
    """x, index, src; dim. EMBED: src, index; shape, dim, into zeros."""
    cdef int what = <int><size_t>call.ctx
    call.detail[0] = outputs[0].dtype
    try:
        return scatter_all(inputs, outputs[0], what, <int>(at.i[9] if what == EMBED else at.i[0]), call)
    except BaseException as error:
        return failed(outputs[0], call, error)


KERNELS = {
    "gather": kernel_capsule(gather),
    "scatter": (kernel_capsule(scatter), PUT),
    "scatter_add": (kernel_capsule(scatter), ADD),
    "scatter_embed": (kernel_capsule(scatter), EMBED),
}
