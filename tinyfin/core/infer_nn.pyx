"""Shape and dtype rules of softmax, norms, losses, attention, recurrent layers and optimizer steps."""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport category, dtype_object
from tinyfin.core.infer cimport *
from tinyfin.core.layout cimport same_shape


cdef bint given(const tf_view *v) noexcept:
    return not v.flags & TF_ABSENT


cdef int need_float(const tf_view *v, object name, object argument) except -1:
    if category[v.dtype] != FLOATING:
        raise NotImplementedError(
            f"{name}: {argument} has dtype {dtype_object(v.dtype)}, expected a floating point "
            "dtype")
    return 0


cdef void vector(tf_view *y, int64_t size, int dtype) noexcept:
    y.ndim, y.dtype = 1, dtype
    y.shape[0] = size


cdef void scalar(tf_view *y, int dtype) noexcept:
    y.ndim, y.dtype = 0, dtype


cdef int computing(int dtype) noexcept:
    """The dtype in which statistics are kept: float32, or float64 for float64."""
    return TF_F64 if dtype == TF_F64 else TF_F32


cdef int need_alike(const tf_view *a, const tf_view *b, object name, object first,
                    object second) except -1:
    if not same_shape(a, b):
        raise RuntimeError(f"{name}: {first} is {shape_of(a)}, {second} is {shape_of(b)}: "
                           "expected the same shape")
    return 0


cdef int need_match(const tf_view *v, const tf_view *like_it, object name, object argument) except -1:
    """A cotangent or a saved result has the shape and dtype of what it belongs to."""
    if not same_shape(v, like_it) or v.dtype != like_it.dtype:
        raise RuntimeError(f"{name}: {argument} is {shape_of(v)} of {dtype_object(v.dtype)}, expected "
                           f"{shape_of(like_it)} of {dtype_object(like_it.dtype)}")
    return 0


# ---------------------------------------------------------------- softmax

cdef int softmax(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, dtype: x is taken as that dtype."""
    cdef int dtype = <int>at.i[1] if at.i[1] >= 0 else inputs[0].dtype
    if category[dtype] != FLOATING or category[inputs[0].dtype] > FLOATING:
        raise NotImplementedError(f"{name}: input has dtype {dtype_object(dtype)}, expected a "
                                  "floating point dtype; pass dtype= to compute in one")
    like(outputs[0], inputs[0], dtype)
    return 0


cdef int softmax_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    """(g, y)"""
    need_match(inputs[0], inputs[1], name, "g")
    need_float(inputs[1], name, "y")
    like(outputs[0], inputs[1], inputs[1].dtype)
    return 0


# ---------------------------------------------------------------- norms

cdef int trailing(const tf_view *x, const tf_attrs *at, object name) except -1:
    """Checks normalized_shape, which stands in the first slots, against x."""
    cdef int count = <int>at.i[0], i
    cdef bint fits = 1 <= count <= x.ndim
    for i in range(count):
        fits = fits and at.i[1 + i] == x.shape[x.ndim - count + i]
    if not fits:
        wanted = tuple([at.i[1 + i] for i in range(count)])
        if count == 0:
            raise RuntimeError(f"{name}: normalized_shape is (), expected at least one dimension")
        raise RuntimeError(f"{name}: input is {shape_of(x)}, normalized_shape is {wanted}: "
                           "expected the input's last sizes to equal it")
    need_float(x, name, "input")
    return count


cdef int affine(const tf_view *w, const tf_attrs *at, object name, object argument) except -1:
    cdef int i
    cdef bint fits = w.ndim == at.i[0]
    if not given(w):
        return 0
    for i in range(w.ndim):
        fits = fits and w.shape[i] == at.i[1 + i]
    if not fits:
        wanted = tuple([at.i[1 + i] for i in range(at.i[0])])
        raise RuntimeError(f"{name}: {argument} is {shape_of(w)}, normalized_shape is {wanted}: "
                           "expected the same shape")
    need_float(w, name, argument)
    return 0


cdef void statistics(tf_view *m, const tf_view *x, int count) noexcept:
    """x's shape with ones in place of the last `count` sizes."""
    cdef int i
    like(m, x, computing(x.dtype))
    for i in range(x.ndim - count, x.ndim):
        m.shape[i] = 1


cdef int need_statistics(const tf_view *m, const tf_view *x, int count, object name, object argument) except -1:
    cdef tf_view wanted
    statistics(&wanted, x, count)
    return need_match(m, &wanted, name, argument)


cdef int layer_norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """(x, w?, b? -> y, mean, rstd)"""
    cdef int count = trailing(inputs[0], at, name)
    affine(inputs[1], at, name, "weight")
    affine(inputs[2], at, name, "bias")
    like(outputs[0], inputs[0], inputs[0].dtype)
    statistics(outputs[1], inputs[0], count)
    statistics(outputs[2], inputs[0], count)
    return 0


cdef int rms_norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call, object name) except -1:
    """(x, w? -> y, rstd)"""
    cdef int count = trailing(inputs[0], at, name)
    affine(inputs[1], at, name, "weight")
    like(outputs[0], inputs[0], inputs[0].dtype)
    statistics(outputs[1], inputs[0], count)
    return 0


cdef void parameter_gradient(tf_view *y, const tf_view *x, int count, int dtype,
                             bint wanted) noexcept:
    """Of the shape of x's last sizes, or empty where nobody asks."""
    cdef int i
    if not wanted:
        vector(y, 0, dtype)
        return
    y.ndim, y.dtype = count, dtype
    for i in range(count):
        y.shape[i] = x.shape[x.ndim - count + i]


cdef int layer_norm_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call, object name) except -1:
    """(g, x, mean, rstd, w? -> gx, gw, gb); after normalized_shape: are gw and gb wanted"""
    cdef int count = trailing(inputs[1], at, name)
    cdef int dtype = inputs[4].dtype if given(inputs[4]) else inputs[1].dtype
    need_match(inputs[0], inputs[1], name, "g")
    need_statistics(inputs[2], inputs[1], count, name, "mean")
    need_statistics(inputs[3], inputs[1], count, name, "rstd")
    affine(inputs[4], at, name, "weight")
    like(outputs[0], inputs[1], inputs[1].dtype)
    parameter_gradient(outputs[1], inputs[1], count, dtype, at.i[9] != 0)
    parameter_gradient(outputs[2], inputs[1], count, dtype, at.i[10] != 0)
    return 0


cdef int rms_norm_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call, object name) except -1:
    """(g, x, rstd, w? -> gx, gw); after normalized_shape and eps: whether w wants a gradient"""
    cdef int count = trailing(inputs[1], at, name)
    cdef int dtype = inputs[3].dtype if given(inputs[3]) else inputs[1].dtype
    need_match(inputs[0], inputs[1], name, "g")
    need_statistics(inputs[2], inputs[1], count, name, "rstd")
    affine(inputs[3], at, name, "weight")
    like(outputs[0], inputs[1], inputs[1].dtype)
    parameter_gradient(outputs[1], inputs[1], count, dtype, at.i[10] != 0)
    return 0


cdef int channels(const tf_view *x, object name) except -1:
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input is {shape_of(x)}, expected at least 2 dimensions")
    need_float(x, name, "input")
    return 0


cdef int per_channel(const tf_view *w, const tf_view *x, object name, object argument) except -1:
    if given(w) and (w.ndim != 1 or w.shape[0] != x.shape[1]):
        raise RuntimeError(f"{name}: {argument} is {shape_of(w)}, expected ({x.shape[1]},), one "
                           f"number for each channel of the input {shape_of(x)}")
    if given(w):
        need_float(w, name, argument)
    return 0


cdef int batch_norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """(x, w?, b? -> y, mean, var)"""
    cdef const tf_view *x = inputs[0]
    channels(x, name)
    per_channel(inputs[1], x, name, "weight")
    per_channel(inputs[2], x, name, "bias")
    like(outputs[0], x, x.dtype)
    vector(outputs[1], x.shape[1], computing(x.dtype))
    vector(outputs[2], x.shape[1], computing(x.dtype))
    return 0


cdef int batch_norm_apply(const tf_view *const *inputs, int n, tf_view *const *outputs,
                          const tf_attrs *at, tf_call *call, object name) except -1:
    """(x, mean, var, w?, b? -> y)"""
    cdef const tf_view *x = inputs[0]
    channels(x, name)
    for i, argument in enumerate(("running_mean", "running_var", "weight", "bias")):
        per_channel(inputs[1 + <int>i], x, name, argument)
    like(outputs[0], x, x.dtype)
    return 0


cdef int batch_norm_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call, object name) except -1:
    """(g, x, mean, var, w? -> gx, gw, gb)"""
    cdef const tf_view *x = inputs[1]
    cdef int dtype = inputs[4].dtype if given(inputs[4]) else computing(x.dtype)
    channels(x, name)
    need_match(inputs[0], x, name, "g")
    for i, argument in enumerate(("mean", "var", "weight")):
        per_channel(inputs[2 + <int>i], x, name, argument)
    like(outputs[0], x, x.dtype)
    vector(outputs[1], x.shape[1], dtype)
    vector(outputs[2], x.shape[1], dtype)
    return 0


cdef int grouped(const tf_view *x, int64_t groups, object name) except -1:
    channels(x, name)
    if groups < 1 or x.shape[1] % groups:
        raise RuntimeError(f"{name}: input is {shape_of(x)}, num_groups is {groups}: expected the second size "
                           "to be divisible by it")
    return 0


cdef void of_groups(tf_view *m, const tf_view *x, int64_t groups) noexcept:
    """A number for each group of each sample."""
    m.ndim, m.dtype = 2, computing(x.dtype)
    m.shape[0], m.shape[1] = x.shape[0], groups


cdef int group_norm(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """(x, w?, b? -> y, mean, rstd); num_groups"""
    cdef const tf_view *x = inputs[0]
    grouped(x, at.i[0], name)
    per_channel(inputs[1], x, name, "weight")
    per_channel(inputs[2], x, name, "bias")
    like(outputs[0], x, x.dtype)
    of_groups(outputs[1], x, at.i[0])
    of_groups(outputs[2], x, at.i[0])
    return 0


cdef int group_norm_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call, object name) except -1:
    """(g, x, mean, rstd, w? -> gx, gw, gb); after num_groups: are gw and gb wanted"""
    cdef const tf_view *x = inputs[1]
    cdef int dtype = inputs[4].dtype if given(inputs[4]) else x.dtype
    cdef tf_view wanted
    grouped(x, at.i[0], name)
    need_match(inputs[0], x, name, "g")
    of_groups(&wanted, x, at.i[0])
    need_match(inputs[2], &wanted, name, "mean")
    need_match(inputs[3], &wanted, name, "rstd")
    per_channel(inputs[4], x, name, "weight")
    like(outputs[0], x, x.dtype)
    vector(outputs[1], x.shape[1] if at.i[1] else 0, dtype)
    vector(outputs[2], x.shape[1] if at.i[2] else 0, dtype)
    return 0


# ---------------------------------------------------------------- losses of class labels

cdef int labels(const tf_view *x, const tf_view *target, const tf_view *w, object name) except -1:
    """x is (classes,) or (batch, classes, ...); the labels have its shape without the classes."""
    cdef int dim = 0 if x.ndim == 1 else 1
    cdef int64_t classes
    if x.ndim == 0:
        raise RuntimeError(f"{name}: input is (), expected (classes,) or (batch, classes, ...)")
    if target.dtype != TF_I64 and target.dtype != TF_U8:
        raise RuntimeError(f"{name}: target has dtype {dtype_object(target.dtype)}, expected int64 "
                           "or uint8 class labels")
    wanted = shape_of(x)[:dim] + shape_of(x)[dim + 1:]
    if x.ndim == 1 and target.ndim == 1 and target.shape[0] == 1:
        wanted = (1,)
    if shape_of(target) != wanted:
        batch = target.ndim and wanted and target.shape[0] != wanted[0]
        raise (ValueError if batch else RuntimeError)(
            f"{name}: input is {shape_of(x)}, target is {shape_of(target)}: expected target "
            f"{wanted}")
    classes = x.shape[dim]
    if given(w) and (w.ndim != 1 or w.shape[0] != classes):
        raise RuntimeError(f"{name}: weight is {shape_of(w)}, expected ({classes},), one number "
                           "for each class")
    need_float(x, name, "input")
    if given(w):
        need_float(w, name, "weight")
    return dim


cdef int nll_loss(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call, object name) except -1:
    """(log-probabilities, labels, weight? -> loss, total weight); reduction, ignore_index"""
    labels(inputs[0], inputs[1], inputs[2], name)
    scalar(outputs[0], inputs[0].dtype)
    if at.i[0] == 0:
        like(outputs[0], inputs[1], inputs[0].dtype)
    scalar(outputs[1], computing(inputs[0].dtype))
    return 0


cdef int cross_entropy(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call, object name) except -1:
    """(logits, labels, weight? -> loss, total weight, largest logit, log of the sum)"""
    nll_loss(inputs, n, outputs, at, call, name)
    like(outputs[2], inputs[1], computing(inputs[0].dtype))
    like(outputs[3], inputs[1], computing(inputs[0].dtype))
    return 0


cdef int nll_loss_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call, object name) except -1:
    """(g, labels, weight?, total weight -> gx); reduction, ignore_index, shape"""
    cdef tf_view *y = outputs[0]
    cdef int i
    y.ndim, y.dtype = <int>at.i[2], inputs[0].dtype
    memcpy(y.shape, &at.i[3], sizeof(y.shape))
    for i in range(y.ndim):
        if y.shape[i] < 0:
            raise RuntimeError(f"{name}: shape {shape_of(y)} has a negative size")
    labels(y, inputs[1], inputs[2], name)
    return label_cotangent(inputs[0], inputs[1], inputs[3], at, y.dtype, name)


cdef int label_cotangent(const tf_view *g, const tf_view *target, const tf_view *total, const tf_attrs *at,
                         int dtype, object name) except -1:
    """The cotangent has the labels' shape, or none where the loss was reduced; the total weight is a number."""
    cdef tf_view wanted
    if at.i[0] == 0:
        like(&wanted, target, dtype)
    else:
        scalar(&wanted, dtype)
    need_match(g, &wanted, name, "g")
    scalar(&wanted, computing(dtype))
    return need_match(total, &wanted, name, "the sum of weights")


cdef int cross_entropy_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                            const tf_attrs *at, tf_call *call, object name) except -1:
    """(g, logits, labels, weight?, total weight, largest logit, log of the sum -> gx)"""
    cdef tf_view wanted
    labels(inputs[1], inputs[2], inputs[3], name)
    label_cotangent(inputs[0], inputs[2], inputs[4], at, inputs[1].dtype, name)
    like(&wanted, inputs[2], computing(inputs[1].dtype))
    need_match(inputs[5], &wanted, name, "the largest logit")
    need_match(inputs[6], &wanted, name, "the log of the sum")
    like(outputs[0], inputs[1], inputs[1].dtype)
    return 0


cdef int check_values(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    need_float(inputs[0], name, "input")
    scalar(outputs[0], TF_BOOL)
    return 0


# ---------------------------------------------------------------- attention

cdef int stacks(const tf_view *q, const tf_view *k, const tf_view *v, object name) except -1:
    """q (..., heads, queries, width), k and v (..., heads of keys, keys, width)."""
    cdef int i, last = q.ndim - 1
    cdef bint fits = q.ndim >= 2 and k.ndim == q.ndim and v.ndim == q.ndim
    for i in range(q.ndim - 2 if fits else 0):
        fits = fits and k.shape[i] == v.shape[i]
        if i == q.ndim - 3:
            fits = fits and (k.shape[i] == q.shape[i] or
                             (k.shape[i] and q.shape[i] % k.shape[i] == 0))
        else:
            fits = fits and k.shape[i] == q.shape[i]
    fits = fits and q.shape[last] == k.shape[last] and k.shape[last - 1] == v.shape[last - 1]
    if not fits:
        raise RuntimeError(f"{name}: query is {shape_of(q)}, key is {shape_of(k)}, value is "
                           f"{shape_of(v)}: expected (..., L, E), (..., S, E), (..., S, V)")
    if q.dtype != k.dtype or q.dtype != v.dtype:
        raise RuntimeError(f"{name}: query, key and value have dtypes {dtype_object(q.dtype)}, "
                           f"{dtype_object(k.dtype)}, {dtype_object(v.dtype)}: expected the same")
    need_float(q, name, "query")
    return 0


cdef int mask_fits(const tf_view *mask, const tf_view *q, const tf_view *k, object name) except -1:
    """The mask broadcasts to (..., heads, queries, keys)."""
    cdef int i, e
    cdef int64_t size
    cdef bint fits = mask.ndim <= q.ndim
    if not given(mask):
        return 0
    for e in range(1, mask.ndim + 1 if fits else 1):
        i = q.ndim - e
        size = k.shape[i - 1] if e == 1 else q.shape[i]
        fits = fits and (mask.shape[mask.ndim - e] == size or mask.shape[mask.ndim - e] == 1)
    if not fits:
        wanted = shape_of(q)[:-1] + (k.shape[k.ndim - 2],)
        raise RuntimeError(f"{name}: attn_mask is {shape_of(mask)}, which does not broadcast to "
                           f"{wanted}")
    if mask.dtype != TF_BOOL and category[mask.dtype] != FLOATING:
        raise RuntimeError(f"{name}: attn_mask has dtype {dtype_object(mask.dtype)}, expected bool "
                           "or a floating point dtype")
    return 0


cdef int attention(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call, object name) except -1:
    """(q, k, v, mask? -> out, log of the sum of exp)"""
    cdef const tf_view *q = inputs[0]
    stacks(q, inputs[1], inputs[2], name)
    mask_fits(inputs[3], q, inputs[1], name)
    like(outputs[0], q, q.dtype)
    outputs[0].shape[q.ndim - 1] = inputs[2].shape[q.ndim - 1]
    like(outputs[1], q, computing(q.dtype))
    outputs[1].ndim = q.ndim - 1
    return 0


cdef int attention_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                        const tf_attrs *at, tf_call *call, object name) except -1:
    """(g, q, k, v, mask?, out, log of the sum -> gq, gk, gv)"""
    cdef int i
    cdef tf_view wanted
    stacks(inputs[1], inputs[2], inputs[3], name)
    mask_fits(inputs[4], inputs[1], inputs[2], name)
    like(&wanted, inputs[1], inputs[1].dtype)
    wanted.shape[wanted.ndim - 1] = inputs[3].shape[wanted.ndim - 1]
    need_match(inputs[0], &wanted, name, "g")
    need_match(inputs[5], &wanted, name, "the result")
    wanted.ndim, wanted.dtype = wanted.ndim - 1, computing(wanted.dtype)
    need_match(inputs[6], &wanted, name, "the log of the sum")
    for i in range(3):
        like(outputs[i], inputs[1 + i], inputs[1 + i].dtype)
    return 0


# ---------------------------------------------------------------- recurrent layers

cdef int GATES[4]       # blocks of rows of the weights by mode: RNN with tanh and with relu, LSTM, GRU
GATES[:] = [1, 1, 4, 3]
cdef enum:
    LSTM = 2
    GRU = 3


cdef int need_sizes(const tf_view *v, object wanted, int dtype, object name, object argument) except -1:
    if shape_of(v) != wanted or v.dtype != dtype:
        raise RuntimeError(f"{name}: {argument} is {shape_of(v)} of {dtype_object(v.dtype)}, expected {wanted} of "
                           f"{dtype_object(dtype)}")
    return 0


cdef void sequence(tf_view *y, const tf_view *like_it, int64_t batch, int64_t size, int dtype) noexcept:
    """(steps, batch, size)"""
    like(y, like_it, dtype)
    y.shape[1], y.shape[2] = batch, size


cdef int layer(const tf_view *h, const tf_view *c, const tf_view *w, const tf_attrs *at, object name) except -1:
    """State and weights of one layer: h and c (batch, size), w (gates size, size)."""
    cdef int gates = GATES[at.i[0]]
    need_float(w, name, "w")
    if h.ndim != 2:
        raise RuntimeError(f"{name}: h is {shape_of(h)}, expected (batch, size)")
    need_sizes(h, shape_of(h), w.dtype, name, "h")
    need_sizes(w, (gates * h.shape[1], h.shape[1]), w.dtype, name, "w")
    if given(c) != (at.i[0] == LSTM):
        raise RuntimeError(f"{name}: c is {'given' if given(c) else 'None'}, expected a Tensor for an LSTM and for no "
                           "other mode")
    if given(c):
        need_sizes(c, shape_of(h), w.dtype, name, "c")
    return gates


cdef int recurrence(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """(x, h, c?, w, b? -> y, c at the end); mode, reverse"""
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *h = inputs[1]
    cdef const tf_view *w = inputs[3]
    cdef int gates = layer(h, inputs[2], w, at, name)
    if x.ndim != 3 or x.shape[0] == 0:
        raise RuntimeError(f"{name}: x is {shape_of(x)}, expected (steps, batch, {gates * h.shape[1]}) with at least "
                           "one step")
    need_sizes(x, (x.shape[0], h.shape[0], gates * h.shape[1]), w.dtype, name, "x")
    if given(inputs[4]):
        need_sizes(inputs[4], (gates * h.shape[1],), w.dtype, name, "bias")
    sequence(outputs[0], x, h.shape[0], h.shape[1], x.dtype)
    vector(outputs[1], 0, x.dtype)
    if at.i[0] == LSTM:
        like(outputs[1], h, x.dtype)
    return 0


cdef void kept(tf_view *y, const tf_view *like_it, const tf_view *h, int blocks, bint wanted) noexcept:
    """What a layer keeps of each step for its gradient; empty where it keeps nothing."""
    if wanted:
        sequence(y, like_it, h.shape[0], blocks * h.shape[1], computing(like_it.dtype))
    else:
        vector(y, 0, computing(like_it.dtype))


cdef int recurrence_steps(const tf_view *const *inputs, int n, tf_view *const *outputs,
                          const tf_attrs *at, tf_call *call, object name) except -1:
    """(x, h, c?, w, b? -> y, c of each step, gates); mode, reverse"""
    recurrence(inputs, n, outputs, at, call, name)
    kept(outputs[1], inputs[0], inputs[1], 1, at.i[0] == LSTM)
    kept(outputs[2], inputs[0], inputs[1], 4, at.i[0] >= LSTM)
    return 0


cdef int recurrence_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call, object name) except -1:
    """(g?, gradients of c and gates?, h, c?, w, y, c of each step, gates -> gx, that of W h, gh, gc)"""
    cdef tf_view wanted
    cdef const tf_view *h = inputs[3]
    cdef const tf_view *y = inputs[6]
    cdef int gates = layer(h, inputs[4], inputs[5], at, name), i
    if y.ndim != 3 or y.shape[0] == 0:
        raise RuntimeError(f"{name}: y is {shape_of(y)}, expected (steps, batch, size) with at least one step")
    need_sizes(y, (y.shape[0], h.shape[0], h.shape[1]), inputs[5].dtype, name, "y")
    for i in range(3):
        like(&wanted, y, y.dtype)
        if i:
            kept(&wanted, y, h, 1 if i == 1 else 4, at.i[0] == LSTM or (i == 2 and at.i[0] == GRU))
            need_match(inputs[6 + i], &wanted, name, ("y", "cells", "gates")[i])
        if given(inputs[i]):
            need_match(inputs[i], &wanted, name, ("g", "g_cells", "g_gates")[i])
    sequence(outputs[0], y, h.shape[0], gates * h.shape[1], y.dtype)
    vector(outputs[1], 0, y.dtype)
    if at.i[0] == GRU:
        like(outputs[1], outputs[0], y.dtype)
    like(outputs[2], h, y.dtype)
    vector(outputs[3], 0, y.dtype)
    if at.i[0] == LSTM:
        like(outputs[3], h, y.dtype)
    return 0


# ---------------------------------------------------------------- optimizer steps

cdef int step(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call, object name) except -1:
    """Parameter, gradient and state have one shape and floating dtypes."""
    cdef int i
    for i in range(n):
        if not given(inputs[i]):
            continue
        argument = ("the parameter", "its gradient")[i] if i < 2 else "its state"
        need_alike(inputs[i], inputs[0], name, argument, "the parameter")
        need_float(inputs[i], name, argument)
    return 0


RULES = {
    "softmax": rule_capsule(softmax), "softmax_grad": rule_capsule(softmax_grad),
    "layer_norm": rule_capsule(layer_norm), "layer_norm_grad": rule_capsule(layer_norm_grad),
    "rms_norm": rule_capsule(rms_norm), "rms_norm_grad": rule_capsule(rms_norm_grad),
    "batch_norm": rule_capsule(batch_norm), "batch_norm_apply": rule_capsule(batch_norm_apply),
    "batch_norm_grad": rule_capsule(batch_norm_grad),
    "group_norm": rule_capsule(group_norm), "group_norm_grad": rule_capsule(group_norm_grad),
    "nll_loss": rule_capsule(nll_loss), "nll_loss_grad": rule_capsule(nll_loss_grad),
    "cross_entropy": rule_capsule(cross_entropy),
    "cross_entropy_grad": rule_capsule(cross_entropy_grad),
    "check_values": rule_capsule(check_values),
    "attention": rule_capsule(attention), "attention_grad": rule_capsule(attention_grad),
    "recurrence": rule_capsule(recurrence), "recurrence_steps": rule_capsule(recurrence_steps),
    "recurrence_grad": rule_capsule(recurrence_grad),
    "step": rule_capsule(step),
}
