"""Shape rules of matrix products, convolutions and pooling."""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport category, dtype_object
from tinyfin.core.infer cimport *
from tinyfin.core.layout cimport numel


cdef int same_dtype(const tf_view *a, const tf_view *b, object name, str what_a,
                    str what_b) except -1:
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}: {what_a} has dtype {dtype_object(a.dtype)}, {what_b} {dtype_object(b.dtype)}; "
                           "expected the same")
    return 0


cdef int floating(const tf_view *x, object name, str what) except -1:
    if category[x.dtype] != FLOATING:
        raise RuntimeError(f"{name}: {what} has dtype {dtype_object(x.dtype)}, expected floating point")
    return 0


# ---- products

cdef int product(const tf_view *a, const tf_view *b, tf_view *y, object name) except -1:
    """The shape of a @ b."""
    cdef int na = a.ndim - 2, nb = b.ndim - 2, nd, i, d
    cdef int64_t ka, kb, sa, sb
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"{name}: both arguments need at least one dimension, got {shape_of(a)} and {shape_of(b)}")
    ka, kb = a.shape[a.ndim - 1], b.shape[nb if nb >= 0 else 0]
    if ka != kb:
        raise RuntimeError(f"{name}: input is {shape_of(a)}, other is {shape_of(b)}: inner sizes {ka} and {kb} differ")
    na, nb = max(na, 0) if a.ndim > 1 else 0, max(nb, 0) if b.ndim > 1 else 0
    nd = max(na, nb)
    for i in range(nd):
        d = i - (nd - na)
        sa = a.shape[d] if d >= 0 else 1
        d = i - (nd - nb)
        sb = b.shape[d] if d >= 0 else 1
        if sa != sb and sa != 1 and sb != 1:
            raise RuntimeError(f"{name}: input is {shape_of(a)}, other is {shape_of(b)}: batch sizes {sa} and {sb} "
                               "do not broadcast")
        y.shape[i] = sb if sa == 1 else sa
    y.ndim = nd
    if a.ndim > 1:
        y.shape[y.ndim] = a.shape[a.ndim - 2]
        y.ndim += 1
    if b.ndim > 1:
        y.shape[y.ndim] = b.shape[b.ndim - 1]
        y.ndim += 1
    return 0


cdef int matmul(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call, object name) except -1:
    same_dtype(inputs[0], inputs[1], name, "input", "other")
    if inputs[0].dtype == TF_BOOL:
        raise RuntimeError(f"{name}: bool matrices have no product; cast them first")
    outputs[0].dtype = inputs[0].dtype
    return product(inputs[0], inputs[1], outputs[0], name)


cdef int int_mm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call, object name) except -1:
    cdef int i
    for i in range(2):
        if inputs[i].dtype != TF_I8 and inputs[i].dtype != TF_U8:
            raise RuntimeError(f"{name}: {'other' if i else 'input'} has dtype {dtype_object(inputs[i].dtype)}, expected "
                               "int8 or uint8")
    outputs[0].dtype = TF_I32
    return product(inputs[0], inputs[1], outputs[0], name)


cdef int linear(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call, object name) except -1:
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef const tf_view *b = inputs[2]
    cdef tf_view *y = outputs[0]
    if x.ndim == 0 or w.ndim != 2:
        raise RuntimeError(f"{name}: input is {shape_of(x)}, weight is {shape_of(w)}: expected (..., in) and (out, in)")
    if x.shape[x.ndim - 1] != w.shape[1]:
        raise RuntimeError(f"{name}: input {shape_of(x)} has {x.shape[x.ndim - 1]} features in the last dimension, weight "
                           f"{shape_of(w)} expects {w.shape[1]}")
    same_dtype(x, w, name, "input", "weight")
    if not b.flags & TF_ABSENT:
        same_dtype(x, b, name, "input", "bias")
        if b.ndim != 1 or b.shape[0] != w.shape[0]:
            raise RuntimeError(f"{name}: bias is {shape_of(b)}, expected ({w.shape[0]},)")
    y.ndim, y.dtype = x.ndim, x.dtype
    for i in range(x.ndim - 1):
        y.shape[i] = x.shape[i]
    y.shape[x.ndim - 1] = w.shape[0]
    return 0


# ---- windows: what convolutions and pools have in common

# Elements of a padded input, and steps of a window. No memory holds as many, and kernels may multiply
# a few numbers that are bounded so.
cdef int64_t WIDEST = <int64_t>1 << 48


cdef int check_steps(int64_t k, const int64_t *steps, int i, object name) except -1:
    """Kernel size, stride, padding and dilation of axis i."""
    if k <= 0:
        raise RuntimeError(f"{name}: kernel size is {k} in dimension {i}, expected at least 1")
    if steps[i] <= 0:
        raise RuntimeError(f"{name}: stride is {steps[i]}, expected at least 1")
    if steps[3 + i] < 0:
        raise RuntimeError(f"{name}: padding is {steps[3 + i]}, expected at least 0")
    if steps[6 + i] <= 0:
        raise RuntimeError(f"{name}: dilation is {steps[6 + i]}, expected at least 1")
    if steps[3 + i] > WIDEST:
        raise RuntimeError(f"{name}: padding is {steps[3 + i]}, expected at most {WIDEST}")
    if k > 1 and steps[6 + i] > WIDEST // (k - 1):
        raise RuntimeError(f"{name}: kernel size {k} and dilation {steps[6 + i]} in dimension {i}: a window reaches "
                           f"over at most {WIDEST} elements")
    return 0


cdef int rooms(const tf_view *x, int nd, const int64_t *kernel, const int64_t *steps, object name,
               int64_t *room) except -1:
    """How far a window can move along each padded axis of x; less than 0 where it does not fit.

    steps: stride, padding, dilation, three slots each. Any stride is allowed. The one place where
    windows are measured: kernels may compute with what it lets through.
    """
    cdef tf_view padded
    cdef int i, d
    like(&padded, x, x.dtype)
    for i in range(nd):
        d = x.ndim - nd + i
        check_steps(kernel[i], steps, i, name)
        if not 0 <= x.shape[d] <= WIDEST:
            raise RuntimeError(f"{name}: size is {x.shape[d]} in dimension {i}, expected 0 to {WIDEST}")
        padded.shape[d] += 2 * steps[3 + i]
        room[i] = padded.shape[d] - steps[6 + i] * (kernel[i] - 1) - 1
    if not 0 <= numel(&padded) <= WIDEST:
        raise RuntimeError(f"{name}: the padded input would be {shape_of(&padded)}, expected at most {WIDEST} elements")
    return 0


# ---- convolution: stride, padding, dilation (three slots each), groups

cdef int check_groups(const tf_attrs *at, object name) except -1:
    if at.i[9] <= 0:
        raise RuntimeError(f"{name}: groups is {at.i[9]}, expected at least 1")
    return 0


cdef bint belongs(int64_t room, int64_t stride, int64_t out) noexcept:
    """Whether windows that can move by `room` give `out` results."""
    return room >= 0 and room // stride + 1 == out


cdef int convolution(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef const tf_view *b = inputs[2]
    cdef tf_view *y = outputs[0]
    cdef int nd = x.ndim - 2, i
    cdef int64_t room[3]
    if nd < 1 or nd > 3 or w.ndim != x.ndim:
        raise RuntimeError(f"{name}: input is {shape_of(x)}, weight is {shape_of(w)}: expected (N, C, ...) and "
                           "(K, C / groups, ...) with one to three spatial dimensions")
    floating(x, name, "input")
    same_dtype(x, w, name, "input", "weight")
    check_groups(at, name)
    if x.shape[1] % at.i[9] or x.shape[1] // at.i[9] != w.shape[1]:
        raise RuntimeError(f"{name}: weight is {shape_of(w)} and groups is {at.i[9]}: input has {x.shape[1]} channels, "
                           f"expected {<object>w.shape[1] * <object>at.i[9]}")
    if w.shape[0] % at.i[9]:
        raise RuntimeError(f"{name}: weight is {shape_of(w)}: {w.shape[0]} output channels are not divisible by "
                           f"groups {at.i[9]}")
    if not b.flags & TF_ABSENT:
        same_dtype(x, b, name, "input", "bias")
        if b.ndim != 1 or b.shape[0] != w.shape[0]:
            raise RuntimeError(f"{name}: bias is {shape_of(b)}, expected ({w.shape[0]},)")
    y.ndim, y.dtype = x.ndim, x.dtype
    y.shape[0], y.shape[1] = x.shape[0], w.shape[0]
    rooms(x, nd, &w.shape[2], at.i, name, room)
    for i in range(nd):
        if room[i] < 0:
            raise RuntimeError(f"{name}: kernel of reach {at.i[6 + i] * (w.shape[2 + i] - 1) + 1} in dimension {i} "
                               f"exceeds the padded input of size {x.shape[2 + i] + 2 * at.i[3 + i]}")
        y.shape[2 + i] = room[i] // at.i[i] + 1
    return 0


cdef int conv_grad_input(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call, object name) except -1:
    """g, w; size: the spatial sizes of x."""
    cdef const tf_view *g = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef tf_view *y = outputs[0]
    cdef int nd = g.ndim - 2, i
    cdef int64_t room[3]
    if nd < 1 or nd > 3 or w.ndim != g.ndim:
        raise RuntimeError(f"{name}: input is {shape_of(g)}, weight is {shape_of(w)}: expected the same number of "
                           "dimensions, three to five")
    floating(g, name, "input")
    same_dtype(g, w, name, "input", "weight")
    check_groups(at, name)
    if g.shape[1] != w.shape[0]:
        raise RuntimeError(f"{name}: input has {g.shape[1]} channels, weight {shape_of(w)} expects {w.shape[0]}")
    if w.shape[0] % at.i[9] or at.i[9] > max(w.shape[0], 1):
        raise RuntimeError(f"{name}: {w.shape[0]} channels are not divisible by groups {at.i[9]}")
    y.ndim, y.dtype = g.ndim, g.dtype
    y.shape[0], y.shape[1] = g.shape[0], w.shape[1] * at.i[9]
    memcpy(&y.shape[2], &at.i[10], nd * sizeof(int64_t))
    rooms(y, nd, &w.shape[2], at.i, name, room)
    for i in range(nd):
        if not belongs(room[i], at.i[i], g.shape[2 + i]):
            raise RuntimeError(f"{name}: size {at.i[10 + i]} in dimension {i} does not belong to an output of size "
                               f"{g.shape[2 + i]}")
    return 0


cdef int conv_grad_weight(const tf_view *const *inputs, int n, tf_view *const *outputs,
                          const tf_attrs *at, tf_call *call, object name) except -1:
    """g, x; size: the spatial sizes of the kernel."""
    cdef const tf_view *g = inputs[0]
    cdef const tf_view *x = inputs[1]
    cdef tf_view *y = outputs[0]
    cdef int nd = x.ndim - 2, i
    cdef int64_t room[3]
    if nd < 1 or nd > 3 or g.ndim != x.ndim or g.shape[0] != x.shape[0]:
        raise RuntimeError(f"{name}: g is {shape_of(g)}, x is {shape_of(x)}: they do not belong to one convolution")
    same_dtype(g, x, name, "g", "x")
    check_groups(at, name)
    if x.shape[1] % at.i[9] or g.shape[1] % at.i[9]:
        raise RuntimeError(f"{name}: channels {x.shape[1]} and {g.shape[1]} are not divisible by groups {at.i[9]}")
    y.ndim, y.dtype = x.ndim, x.dtype
    y.shape[0], y.shape[1] = g.shape[1], x.shape[1] // at.i[9]
    memcpy(&y.shape[2], &at.i[10], nd * sizeof(int64_t))
    rooms(x, nd, &at.i[10], at.i, name, room)
    for i in range(nd):
        if not belongs(room[i], at.i[i], g.shape[2 + i]):
            raise RuntimeError(f"{name}: kernel size {at.i[10 + i]} in dimension {i} does not belong to "
                               f"{shape_of(g)} and {shape_of(x)}")
    return 0


# ---- pooling: kernel, stride, padding [, dilation] (three slots each), ...

cdef inline int64_t steps_over(int64_t n, int64_t step) noexcept:
    """n / step rounded up, 0 for n < 0."""
    return (n - 1) // step + 1 if n > 0 else 0


cdef int pooled(const tf_view *x, int nd, const tf_attrs *at, bint dilated, bint ceil, object name, int64_t *to) except -1:
    """The sizes of a pool of x.

    In ceil mode the last window may end past the padding, but must start inside the input or its
    left padding.
    """
    cdef int64_t steps[9]
    cdef int64_t room[3]
    cdef int64_t size, stride, pad
    cdef int i
    steps[6] = steps[7] = steps[8] = 1
    memcpy(steps, &at.i[3], (9 if dilated else 6) * sizeof(int64_t))
    rooms(x, nd, at.i, steps, name, room)
    for i in range(nd):
        size, stride, pad = x.shape[x.ndim - nd + i], steps[i], steps[3 + i]
        if pad > at.i[i] // 2:
            raise RuntimeError(f"{name}: padding is {pad}, expected at most half of the kernel size {at.i[i]}")
        if room[i] < (1 - stride if ceil else 0):
            raise RuntimeError(f"{name}: window of reach {size + 2 * pad - room[i]} exceeds the padded input of size "
                               f"{size + 2 * pad}")
        to[i] = (steps_over(room[i], stride) if ceil else room[i] // stride) + 1
        if ceil and to[i] > steps_over(size + pad, stride):
            to[i] -= 1
    return 0


cdef int pool_start(const tf_view *x, int64_t nd, tf_view *y, object name) except -1:
    if x.ndim < nd or nd < 1 or nd > 3:
        raise RuntimeError(f"{name}: input is {shape_of(x)}, expected at least {nd} dimensions")
    like(y, x, x.dtype)
    return x.ndim - <int>nd


cdef int max_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call, object name) except -1:
    """kernel, stride, padding, dilation, ceil_mode, nd; values and flat spatial indices."""
    cdef int nd = <int>at.i[13], lead = pool_start(inputs[0], at.i[13], outputs[0], name)
    floating(inputs[0], name, "input")
    pooled(inputs[0], nd, at, True, at.i[12] != 0, name, &outputs[0].shape[lead])
    outputs[1][0] = outputs[0][0]
    outputs[1].dtype = TF_I64
    return 0


cdef int avg_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call, object name) except -1:
    """kernel, stride, padding, ceil_mode, count_include_pad, divisor, nd."""
    cdef int nd = <int>at.i[12], lead = pool_start(inputs[0], at.i[12], outputs[0], name)
    floating(inputs[0], name, "input")
    if at.i[11] == 0:
        raise RuntimeError(f"{name}: divisor is 0")
    pooled(inputs[0], nd, at, False, at.i[9] != 0, name, &outputs[0].shape[lead])
    return 0


cdef int sized(const tf_view *const *inputs, tf_view *y, const int64_t *size, int64_t nd,
               object name) except -1:
    """The input's shape with other spatial sizes."""
    cdef int lead = pool_start(inputs[0], nd, y, name), i
    for i in range(<int>nd):
        if size[i] < 0:
            raise RuntimeError(f"{name}: size {size[i]} is negative")
        y.shape[lead + i] = size[i]
    return 0


cdef int pool_resize(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    """size, nd; indices where there are any have the input's shape."""
    cdef int i
    floating(inputs[0], name, "input")
    if n > 1:
        places(inputs[0], inputs[1], inputs[0].ndim, name)
    sized(inputs, outputs[0], &at.i[0], at.i[3], name)
    for i in range(<int>at.i[3]):
        if at.i[i] == 0 and inputs[0].size:
            raise RuntimeError(f"{name}: size {shape_of(outputs[0])} is empty, input is {shape_of(inputs[0])}")
    return 0


cdef int places(const tf_view *x, const tf_view *indices, int dims, object name) except -1:
    """Indices are int64 and agree with x in the first `dims` sizes."""
    cdef int i
    cdef bint fits = x.ndim == indices.ndim
    for i in range(dims if fits else 0):
        fits = fits and x.shape[i] == indices.shape[i]
    if not fits or indices.dtype != TF_I64:
        raise RuntimeError(f"{name}: indices are {shape_of(indices)} of {dtype_object(indices.dtype)}, input is "
                           f"{shape_of(x)}: expected int64 of the same leading sizes")
    return 0


cdef int avg_pool_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call, object name) except -1:
    """kernel, stride, padding, ceil_mode, count_include_pad, divisor, nd, size."""
    cdef int nd = <int>at.i[12], i
    cdef int64_t wanted[3]
    floating(inputs[0], name, "input")
    sized(inputs, outputs[0], &at.i[13], at.i[12], name)
    if at.i[11] == 0:
        raise RuntimeError(f"{name}: divisor is 0")
    pooled(outputs[0], nd, at, False, at.i[9] != 0, name, wanted)
    for i in range(nd):
        if inputs[0].shape[inputs[0].ndim - nd + i] != wanted[i]:
            raise RuntimeError(f"{name}: input is {shape_of(inputs[0])}, which is no pool of size "
                               f"{shape_of(outputs[0])}")
    return 0


cdef int pool_gather(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    """x, indices: the indices' shape."""
    floating(inputs[0], name, "input")
    if at.i[0] < 1 or at.i[0] > inputs[0].ndim:
        raise RuntimeError(f"{name}: nd is {at.i[0]}, input is {shape_of(inputs[0])}")
    places(inputs[0], inputs[1], inputs[0].ndim - <int>at.i[0], name)
    outputs[0][0] = inputs[1][0]
    outputs[0].dtype = inputs[0].dtype
    return 0


cdef int adaptive(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call, object name) except -1:
    """size, nd."""
    cdef int lead = pool_start(inputs[0], at.i[3], outputs[0], name), i
    floating(inputs[0], name, "input")
    for i in range(lead, inputs[0].ndim):
        if inputs[0].shape[i] == 0:
            raise RuntimeError(f"{name}: input is {shape_of(inputs[0])}, expected nonzero spatial sizes")
    return sized(inputs, outputs[0], &at.i[0], at.i[3], name)


cdef int adaptive_max(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    """size, nd; values and flat spatial indices."""
    adaptive(inputs, n, outputs, at, call, name)
    outputs[1][0] = outputs[0][0]
    outputs[1].dtype = TF_I64
    return 0


RULES = {
    "adaptive_max": rule_capsule(adaptive_max),
    "matmul": rule_capsule(matmul), "int_mm": rule_capsule(int_mm), "linear": rule_capsule(linear),
    "convolution": rule_capsule(convolution),
    "conv_grad_input": rule_capsule(conv_grad_input), "conv_grad_weight": rule_capsule(conv_grad_weight),
    "max_pool": rule_capsule(max_pool), "avg_pool": rule_capsule(avg_pool),
    "avg_pool_grad": rule_capsule(avg_pool_grad), "pool_resize": rule_capsule(pool_resize),
    "pool_gather": rule_capsule(pool_gather), "adaptive": rule_capsule(adaptive),
}
