"""Shape and dtype rules of reductions, scans and sorts."""
from libc.stdint cimport INT64_MIN, int64_t

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport category, dtype_object
from tinyfin.core.infer cimport *
from tinyfin.core.layout cimport mask_of


cdef int refuse_complex(const tf_view *x, object name) except -1:
    if x.dtype >= TF_C64:
        raise NotImplementedError(
            f"{name}: dtype {dtype_object(x.dtype)} is reserved, no kernel takes it yet")
    return 0


cdef unsigned int dim_mask(const tf_view *x, int64_t dim, object name) except? 0xffff:
    """An `optint` attribute as bits."""
    if dim == INT64_MIN:
        return (1 << x.ndim) - 1
    return 1 << wrapped(dim, x.ndim, name, "dim")


cdef void set_reduced(const tf_view *x, tf_view *y, unsigned int mask, bint keepdim) noexcept:
    cdef int k, n = 0
    for k in range(x.ndim):
        if not mask >> k & 1:
            y.shape[n] = x.shape[k]
            n += 1
        elif keepdim:
            y.shape[n] = 1
            n += 1
    y.ndim = n


cdef int need_elements(const tf_view *x, unsigned int mask, bint whole, object name) except -1:
    """Extrema have no value over an empty axis."""
    cdef int k
    for k in range(x.ndim):
        if mask >> k & 1 and x.shape[k] == 0:
            if whole:
                raise IndexError(f"{name}: input of shape {shape_of(x)} has no elements; "
                                 "name a dim of nonzero size")
            raise IndexError(f"{name}: input of shape {shape_of(x)} has size 0 in dim {k}, "
                             "expected a nonzero size")
    return 0


cdef int accumulated(const tf_view *x, int64_t dtype, object name) except -1:
    """The dtype of a sum: the one asked for, else int64 for integers."""
    refuse_complex(x, name)
    if dtype >= 0:
        return <int>dtype
    return x.dtype if category[x.dtype] == FLOATING else TF_I64


cdef int reduce_sum(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, keepdim, dtype."""
    set_reduced(inputs[0], outputs[0], mask_of(inputs[0], at.i), at.i[9] != 0)
    call.compute = outputs[0].dtype = accumulated(inputs[0], at.i[10], name)
    return 0


cdef int reduce_mean(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, keepdim, dtype; only floating point has a mean."""
    cdef int dtype = <int>at.i[10] if at.i[10] >= 0 else inputs[0].dtype
    refuse_complex(inputs[0], name)
    if category[dtype] != FLOATING:
        raise RuntimeError(
            f"{name}: input has dtype {dtype_object(dtype)}, expected a floating point dtype; "
            "pass dtype=tinyfin.float32 or convert it")
    set_reduced(inputs[0], outputs[0], mask_of(inputs[0], at.i), at.i[9] != 0)
    call.compute = outputs[0].dtype = dtype
    return 0


cdef int reduce_float(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, correction, keepdim, of floating-point tensors."""
    if category[inputs[0].dtype] != FLOATING:
        raise RuntimeError(
            f"{name}: input has dtype {dtype_object(inputs[0].dtype)}, expected a floating point "
            "dtype")
    set_reduced(inputs[0], outputs[0], mask_of(inputs[0], at.i), at.i[9] != 0)
    call.compute = outputs[0].dtype = inputs[0].dtype
    return 0


cdef int reduce_extremum(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, keepdim; the dtype stays."""
    cdef unsigned int mask = mask_of(inputs[0], at.i)
    refuse_complex(inputs[0], name)
    need_elements(inputs[0], mask, False, name)
    set_reduced(inputs[0], outputs[0], mask, at.i[9] != 0)
    call.compute = outputs[0].dtype = inputs[0].dtype
    return 0


cdef int reduce_bool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, keepdim; bool, but uint8 stays uint8, as in PyTorch."""
    refuse_complex(inputs[0], name)
    set_reduced(inputs[0], outputs[0], mask_of(inputs[0], at.i), at.i[9] != 0)
    call.compute = outputs[0].dtype = TF_U8 if inputs[0].dtype == TF_U8 else TF_BOOL
    return 0


cdef int reduce_count(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    """dim; int64."""
    refuse_complex(inputs[0], name)
    set_reduced(inputs[0], outputs[0], mask_of(inputs[0], at.i), False)
    call.compute = outputs[0].dtype = TF_I64
    return 0


cdef int reduce_arg(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """dim or None, keepdim; int64."""
    cdef unsigned int mask = dim_mask(inputs[0], at.i[0], name)
    refuse_complex(inputs[0], name)
    need_elements(inputs[0], mask, at.i[0] == INT64_MIN, name)
    set_reduced(inputs[0], outputs[0], mask, at.i[1] != 0)
    outputs[0].dtype = TF_I64
    return 0


cdef int reduce_pair(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, keepdim; values and int64 places."""
    reduce_arg(inputs, n, outputs, at, call, name)
    like(outputs[1], outputs[0], TF_I64)
    outputs[0].dtype = inputs[0].dtype
    return 0


cdef int scan(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, dtype."""
    like(outputs[0], inputs[0], accumulated(inputs[0], at.i[1], name))
    return 0


cdef int scan_pair(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call, object name) except -1:
    """dim; also sort: dim, descending, stable."""
    refuse_complex(inputs[0], name)
    like(outputs[0], inputs[0], inputs[0].dtype)
    like(outputs[1], inputs[0], TF_I64)
    return 0


cdef int linear_scan(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    """a, x; dim."""
    if shape_of(inputs[0]) != shape_of(inputs[1]):
        raise RuntimeError(
            f"{name}: a has shape {shape_of(inputs[0])}, x has {shape_of(inputs[1])}, "
            "expected the same")
    if inputs[0].dtype != inputs[1].dtype:
        raise RuntimeError(f"{name}: a has dtype {dtype_object(inputs[0].dtype)}, x has "
                           f"{dtype_object(inputs[1].dtype)}, expected the same")
    like(outputs[0], inputs[1], accumulated(inputs[1], -1, name))
    return 0


cdef int topk(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call, object name) except -1:
    """k, dim, largest, sorted."""
    cdef const tf_view *x = inputs[0]
    cdef int64_t k = at.i[0], size = x.shape[at.i[1]] if x.ndim else 1
    if k < 0 or k > size:
        raise RuntimeError(
            f"{name}: k is {k}, expected 0 to {size}, the size of dim {at.i[1]} of shape "
            f"{shape_of(x)}")
    scan_pair(inputs, n, outputs, at, call, name)
    if x.ndim:
        outputs[0].shape[at.i[1]] = outputs[1].shape[at.i[1]] = k
    elif k == 0:
        raise RuntimeError(f"{name}: k is 0, expected 1 for a tensor without dimensions")
    return 0


cdef int searchsorted(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    """x, sorted along its last axis; a; right."""
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *a = inputs[1]
    if x.ndim == 0:
        raise RuntimeError(f"{name}: sorted_sequence has no dimensions, expected at least one")
    if x.ndim > 1 and shape_of(x)[:-1] != shape_of(a)[:-1]:
        raise RuntimeError(f"{name}: sorted_sequence has shape {shape_of(x)}, input has "
                           f"{shape_of(a)}: all sizes but the last must agree")
    if x.dtype != a.dtype and not a.flags & TF_WRAPPED:
        raise RuntimeError(f"{name}: sorted_sequence has dtype {dtype_object(x.dtype)}, input has "
                           f"{dtype_object(a.dtype)}, expected the same")
    refuse_complex(x, name)
    like(outputs[0], a, TF_I64)
    return 0


RULES = {
    "reduce_sum": rule_capsule(reduce_sum), "reduce_mean": rule_capsule(reduce_mean),
    "reduce_float": rule_capsule(reduce_float), "reduce_extremum": rule_capsule(reduce_extremum),
    "reduce_bool": rule_capsule(reduce_bool), "reduce_count": rule_capsule(reduce_count),
    "reduce_arg": rule_capsule(reduce_arg), "reduce_pair": rule_capsule(reduce_pair),
    "scan": rule_capsule(scan), "scan_pair": rule_capsule(scan_pair),
    "linear_scan": rule_capsule(linear_scan), "topk": rule_capsule(topk),
    "searchsorted": rule_capsule(searchsorted),
}
