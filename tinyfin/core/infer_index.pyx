"""Shape and dtype rules of indexing, joining, padding and random fills.

Indices themselves are checked by the kernels, before anything is written.
"""
from libc.stdint cimport INT64_MIN, int64_t
from libc.string cimport memcpy

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport category, dtype_object, promoted
from tinyfin.core.infer cimport *

cdef int64_t LARGEST = <int64_t>1 << 60     # no tensor has more elements


cdef inline int64_t size_at(const tf_view *v, int64_t dim) noexcept:
    """A tensor without dimensions counts as one of size 1."""
    return v.shape[dim] if v.ndim else 1


cdef int need_index(const tf_view *index, object name, object argument="index") except -1:
    if index.dtype != TF_I64 and index.dtype != TF_I32:
        raise RuntimeError(
            f"{name}: {argument} has dtype {dtype_object(index.dtype)}, expected int64 or int32")
    return 0


cdef int need_same_dtype(const tf_view *x, const tf_view *src, object name,
                         object argument) except -1:
    """Numbers are cast; tensors must agree."""
    if src.dtype != x.dtype and not src.flags & TF_WRAPPED:
        raise RuntimeError(f"{name}: {argument} has dtype {dtype_object(src.dtype)}, input has "
                           f"{dtype_object(x.dtype)}, expected the same")
    return 0


cdef int need_vector(const tf_view *index, object name) except -1:
    need_index(index, name)
    if index.ndim > 1:
        raise IndexError(f"{name}: index has shape {shape_of(index)}, expected one dimension")
    return 0


# ---- slices by index

cdef int index_select(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    """x, index; dim."""
    need_vector(inputs[1], name)
    like(outputs[0], inputs[0], inputs[0].dtype)
    if inputs[0].ndim:
        outputs[0].shape[at.i[0]] = size_at(inputs[1], 0)
    elif inputs[1].size != 1:
        raise IndexError(
            f"{name}: index has {inputs[1].size} entries, expected 1 for an input without "
            "dimensions")
    return 0


cdef int embedding(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call, object name) except -1:
    """index of any shape, w of rows; padding_idx."""
    cdef const tf_view *w = inputs[1]
    cdef tf_view *y = outputs[0]
    cdef int64_t rows = size_at(w, 0)
    need_index(inputs[0], name, "input")
    if w.ndim != 2:
        raise RuntimeError(f"{name}: weight has shape {shape_of(w)}, expected two dimensions")
    if at.i[0] != INT64_MIN and not -rows <= at.i[0] < rows:
        raise AssertionError(f"{name}: padding_idx {at.i[0]} is out of range for {rows} rows")
    if inputs[0].ndim == TF_MAXDIM:
        raise ValueError(
            f"{name}: input has {TF_MAXDIM} dimensions, at most {TF_MAXDIM - 1} are supported")
    like(y, inputs[0], w.dtype)
    y.shape[y.ndim] = w.shape[1]
    y.ndim += 1
    return 0


cdef int check_slices(const tf_view *x, const tf_view *index, const tf_view *src, int64_t dim,
                      object name) except -1:
    """src has x's shape, but index's length along dim."""
    cdef int k
    need_vector(index, name)
    need_same_dtype(x, src, name, "source")
    if src.ndim != x.ndim and not (src.ndim <= 1 and x.ndim <= 1):
        raise RuntimeError(f"{name}: source has shape {shape_of(src)}, input has {shape_of(x)}, "
                           "expected as many dimensions")
    for k in range(src.ndim):
        if (src.shape[k] != size_at(index, 0)) if k == dim else (src.shape[k] != x.shape[k]):
            raise RuntimeError(
                f"{name}: source has shape {shape_of(src)} for an input of shape {shape_of(x)} and "
                f"{size_at(index, 0)} indices along dim {dim}: sizes differ in dim {k}")
    if src.ndim == 0 and index.size != 1:
        raise RuntimeError(
            f"{name}: source has no dimensions, index has {index.size} entries, expected 1")
    return 0


cdef int index_add(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call, object name) except -1:
    """x, index, src; dim, alpha."""
    check_slices(inputs[0], inputs[1], inputs[2], at.i[0], name)
    like(outputs[0], inputs[0], inputs[0].dtype)
    return 0


cdef int index_copy(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """x, index, src; dim."""
    check_slices(inputs[0], inputs[1], inputs[2], at.i[0], name)
    like(outputs[0], inputs[0], inputs[0].dtype)
    return 0


cdef int index_fill(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """x, index, value without dimensions; dim."""
    need_vector(inputs[1], name)
    if inputs[2].ndim:
        raise RuntimeError(f"{name}: value has shape {shape_of(inputs[2])}, expected a number or "
                           "a tensor without dimensions")
    like(outputs[0], inputs[0], inputs[0].dtype)
    return 0


cdef void shape_attribute(tf_view *y, const int64_t *shape, int dtype) noexcept:
    cdef int k
    y.ndim, y.dtype = <int>shape[0], dtype
    for k in range(y.ndim):
        y.shape[k] = shape[1 + k]


cdef int need_between(const tf_view *const *inputs, object name) except -1:
    """low, high, part after x: int64 vectors, and one of weights of x's dtype, of one length."""
    cdef int k
    if inputs[0].ndim == 0:
        raise RuntimeError(f"{name}: input has no dimensions")
    for k in range(1, 4):
        if (inputs[k].ndim != 1 or inputs[k].size != inputs[1].size
                or inputs[k].dtype != (inputs[0].dtype if k == 3 else TF_I64)):
            raise RuntimeError(f"{name}: {('low', 'high', 'part')[k - 1]} is {shape_of(inputs[k])} of "
                               f"{dtype_object(inputs[k].dtype)}, low is {shape_of(inputs[1])}: expected vectors of "
                               "one length, int64 indices and weights of the input's dtype")
    return 0


cdef int select_between(const tf_view *const *inputs, int n, tf_view *const *outputs,
                        const tf_attrs *at, tf_call *call, object name) except -1:
    """x, low, high, part; dim."""
    need_between(inputs, name)
    like(outputs[0], inputs[0], inputs[0].dtype)
    outputs[0].shape[at.i[0]] = inputs[1].size
    return 0


cdef int between_embed(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call, object name) except -1:
    """u, low, high, part; shape, dim: u stands between the indices of a tensor of zeros."""
    need_between(inputs, name)
    shape_attribute(outputs[0], at.i, inputs[0].dtype)
    check_slices(outputs[0], inputs[1], inputs[0], at.i[9], name)
    return 0


cdef int index_embed(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    """x, index; shape, dim: x stands at the indices of a tensor of zeros."""
    shape_attribute(outputs[0], at.i, inputs[0].dtype)
    check_slices(outputs[0], inputs[1], inputs[0], at.i[9], name)
    return 0


# ---- element by element along one axis

cdef int check_along(const tf_view *x, const tf_view *index, int64_t dim, object name) except -1:
    cdef int k
    need_index(index, name)
    if index.size == 0 and index.ndim == 1:
        return 0
    if max(x.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError(f"{name}: index has shape {shape_of(index)}, input has {shape_of(x)}, "
                           "expected as many dimensions")
    for k in range(index.ndim):
        if k != dim and index.shape[k] > size_at(x, k):
            raise RuntimeError(
                f"{name}: index has shape {shape_of(index)}, input has {shape_of(x)}: index is "
                "larger "
                f"in dim {k}, only dim {dim} may be")
    return 0


cdef int gather(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call, object name) except -1:
    """x, index; dim."""
    check_along(inputs[0], inputs[1], at.i[0], name)
    like(outputs[0], inputs[1], inputs[0].dtype)
    return 0


cdef int check_source(const tf_view *index, const tf_view *src, object name) except -1:
    cdef int k
    if src.flags & TF_WRAPPED or index.size == 0:
        return 0
    if max(src.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError(f"{name}: src has shape {shape_of(src)}, index has {shape_of(index)}, "
                           "expected as many dimensions")
    for k in range(index.ndim):
        if index.shape[k] > size_at(src, k):
            raise RuntimeError(
                f"{name}: src has shape {shape_of(src)}, index has {shape_of(index)}: "
                f"src is smaller in dim {k}")
    return 0


cdef int scatter(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call, object name) except -1:
    """x, index, src; dim."""
    check_along(inputs[0], inputs[1], at.i[0], name)
    need_same_dtype(inputs[0], inputs[2], name, "src")
    check_source(inputs[1], inputs[2], name)
    like(outputs[0], inputs[0], inputs[0].dtype)
    return 0


cdef int scatter_embed(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call, object name) except -1:
    """x, index; shape, dim: x is added to a tensor of zeros."""
    shape_attribute(outputs[0], at.i, inputs[0].dtype)
    check_along(outputs[0], inputs[1], at.i[9], name)
    check_source(inputs[1], inputs[0], name)
    return 0


# ---- advanced indexing

cdef int indexed_shape(const tf_view *x, const tf_view *const *indices, int count, int64_t mask,
                       tf_view *y,
                       object name) except -1:
    """The indexed axes give way to the indices' common shape: in their place, or first when
    apart."""
    cdef int k, first = -1, last = -1, found = 0, ndim = 0
    cdef const tf_view *index
    for k in range(x.ndim):
        if mask >> k & 1:
            first, last = k if first < 0 else first, k
            found += 1
    if found != count or mask >> x.ndim:
        raise IndexError(f"{name}: {count} index tensors for {found} of {x.ndim} dimensions")
    for k in range(count):
        need_index(indices[k], name, f"index tensor {k}")
        if shape_of(indices[k]) != shape_of(indices[0]):
            raise IndexError(
                f"{name}: index tensors have shapes {shape_of(indices[0])} and "
                f"{shape_of(indices[k])}, "
                "expected one shape")
    index = indices[0]
    if index.ndim + x.ndim - found > TF_MAXDIM:
        raise ValueError(f"{name}: the result would have more than {TF_MAXDIM} dimensions")
    if last - first + 1 != found:
        first = 0
    for k in range(x.ndim):
        if not mask >> k & 1 and ndim < first:
            y.shape[ndim] = x.shape[k]
            ndim += 1
    memcpy(&y.shape[ndim], index.shape, index.ndim * sizeof(int64_t))
    ndim += index.ndim
    found = 0
    for k in range(x.ndim):
        if not mask >> k & 1:
            found += 1
            if found > first:
                y.shape[ndim] = x.shape[k]
                ndim += 1
    y.ndim = ndim
    return 0


cdef int index(const tf_view *const *inputs, int n, tf_view *const *outputs,
               const tf_attrs *at, tf_call *call, object name) except -1:
    """x, *indices; mask of the indexed axes."""
    indexed_shape(inputs[0], inputs + 1, n - 1, at.i[0], outputs[0], name)
    outputs[0].dtype = inputs[0].dtype
    return 0


cdef int check_value(const tf_view *x, const tf_view *value, const tf_view *const *indices,
                     int count,
                     int64_t mask, object name) except -1:
    """value broadcasts to the shape that the indices select."""
    cdef tf_view part
    cdef int k
    indexed_shape(x, indices, count, mask, &part, name)
    need_same_dtype(x, value, name, "value")
    for k in range(value.ndim):
        if k >= part.ndim or value.shape[value.ndim - 1 - k] not in (1,
                                                                     part.shape[part.ndim - 1 - k]):
            raise RuntimeError(
                f"{name}: value of shape {shape_of(value)} does not broadcast to "
                f"{shape_of(&part)}, "
                "the shape that the indices select")
    return 0


cdef int index_put(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call, object name) except -1:
    """x, value, *indices; mask, accumulate."""
    check_value(inputs[0], inputs[1], inputs + 2, n - 2, at.i[0], name)
    like(outputs[0], inputs[0], inputs[0].dtype)
    return 0


cdef int put_embed(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call, object name) except -1:
    """x, *indices; shape, mask: x is added to a tensor of zeros."""
    shape_attribute(outputs[0], at.i, inputs[0].dtype)
    check_value(outputs[0], inputs[0], inputs + 1, n - 1, at.i[9], name)
    return 0


cdef int nonzero(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call, object name) except -1:
    """x; count, which the caller has found."""
    if at.i[0] < 0:
        raise ValueError(f"{name}: count is {at.i[0]}, expected at least 0")
    outputs[0].ndim, outputs[0].dtype = 2, TF_I64
    outputs[0].shape[0], outputs[0].shape[1] = at.i[0], inputs[0].ndim
    return 0


cdef int triangle(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call, object name) except -1:
    if inputs[0].ndim < 2:
        raise RuntimeError(
            f"{name}: input has shape {shape_of(inputs[0])}, expected at least 2 dimensions")
    like(outputs[0], inputs[0], inputs[0].dtype)
    return 0


# ---- joining and padding

cdef inline bint is_nothing(const tf_view *v) noexcept:
    """The shape (0,), which a list grown from nothing may begin with."""
    return v.ndim == 1 and v.shape[0] == 0


cdef int check_joins(const tf_view *x, const tf_view *first, int i, int64_t dim, int64_t given, object name) except -1:
    """Tensor i has the first one's sizes but for the joined axis."""
    cdef int k
    if x.ndim != first.ndim:
        raise RuntimeError(
            f"{name}: tensor {i} has shape {shape_of(x)}, others {shape_of(first)}: expected as many dimensions")
    if not 0 <= dim < first.ndim:
        raise IndexError(
            f"{name}: dim {given} is out of range for tensors of {first.ndim} dimensions "
            f"(expected {-first.ndim} to {first.ndim - 1})")
    for k in range(first.ndim):
        if k != dim and x.shape[k] != first.shape[k]:
            raise RuntimeError(
                f"{name}: tensor {i} has shape {shape_of(x)}, others {shape_of(first)}: "
                f"sizes differ in dim {k}, only dim {dim} may differ")
    return 0


cdef int cat(const tf_view *const *inputs, int n, tf_view *const *outputs,
             const tf_attrs *at, tf_call *call, object name) except -1:
    """*xs; dim, which counts from the end of the first tensor that is not just empty."""
    cdef tf_view *y = outputs[0]
    cdef const tf_view *first = inputs[0]
    cdef int i, dtype = inputs[0].dtype
    cdef int64_t dim, total = 0
    for i in range(n):
        dtype = promoted[dtype][inputs[i].dtype]
        if is_nothing(first):
            first = inputs[i]
    dim = at.i[0] + first.ndim if at.i[0] < 0 else at.i[0]
    if dtype >= TF_C64:
        raise NotImplementedError(
            f"{name}: dtype {dtype_object(dtype)} is reserved, no kernel takes it yet")
    for i in range(n):
        if inputs[i].ndim == 0:
            raise RuntimeError(f"{name}: tensor {i} has no dimensions and cannot be joined")
        if is_nothing(inputs[i]):
            continue
        check_joins(inputs[i], first, i, dim, at.i[0], name)
        total += inputs[i].shape[dim]
        if total > LARGEST:
            raise RuntimeError(
                f"{name}: the sizes along dim {dim} add up to more elements than can be counted")
    like(y, first, dtype)
    if 0 <= dim < first.ndim:
        y.shape[dim] = total
    return 0


cdef int pad_constant(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    """pad: before and after for the last axis, then the one before, ...; negative sizes crop."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int k, d, count = <int>at.i[0]
    cdef object pad = tuple([at.i[1 + k] for k in range(count)])
    if count % 2 or count // 2 > x.ndim:
        raise RuntimeError(
            f"{name}: pad is {pad} for an input of shape {shape_of(x)}, expected two numbers for "
            "each of "
            f"at most {x.ndim} dimensions")
    like(y, x, x.dtype)
    for k in range(count):
        if not -LARGEST <= at.i[1 + k] <= LARGEST:
            raise RuntimeError(f"{name}: pad {pad} has a size beyond {LARGEST}")
    for k in range(count // 2):
        d = x.ndim - 1 - k
        y.shape[d] += at.i[1 + 2 * k] + at.i[2 + 2 * k]
        if y.shape[d] < 0:
            raise RuntimeError(
                f"{name}: pad {pad} makes the size of dim {d} of shape {shape_of(x)} negative")
    return 0


cdef int narrow_embed(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    """shape, dim, start, length: x stands in a part of one axis of zeros."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int k, dim = <int>at.i[9]
    cdef int64_t first = at.i[10], length = at.i[11]
    shape_attribute(y, at.i, x.dtype)
    cdef bint fits = x.ndim == y.ndim > dim
    for k in range(y.ndim if fits else 0):
        fits = fits and x.shape[k] == (length if k == dim else y.shape[k])
    if fits:
        first += y.shape[dim] if first < 0 else 0
        fits = 0 <= first <= y.shape[dim] - length
    if not fits:
        raise RuntimeError(
            f"{name}: input of shape {shape_of(x)} is no part of length {length} from {at.i[10]} on "
            f"of dim {dim} of shape {shape_of(y)}")
    return 0


# ---- random numbers

cdef int fill_float(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """A draw of real numbers, into inputs[0]."""
    if category[inputs[0].dtype] != FLOATING:
        raise RuntimeError(
            f"{name}: input has dtype {dtype_object(inputs[0].dtype)}, expected a floating point "
            "dtype")
    return 0


cdef int uniform(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call, object name) except -1:
    fill_float(inputs, n, outputs, at, call, name)
    if not at.f[0] <= at.f[1]:
        raise RuntimeError(f"{name}: from is {at.f[0]}, to is {at.f[1]}, expected from <= to")
    return 0


cdef int normal(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call, object name) except -1:
    fill_float(inputs, n, outputs, at, call, name)
    if not at.f[1] >= 0:
        raise RuntimeError(f"{name}: std is {at.f[1]}, expected at least 0")
    return 0


cdef int exponential(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    fill_float(inputs, n, outputs, at, call, name)
    if not at.f[0] > 0:
        raise RuntimeError(f"{name}: lambd is {at.f[0]}, expected more than 0")
    return 0


cdef int randint(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call, object name) except -1:
    if at.i[0] >= at.i[1]:
        raise RuntimeError(f"{name}: low is {at.i[0]}, high is {at.i[1]}, expected low < high")
    return 0


cdef int probability(double p, object name) except -1:
    if not 0 <= p <= 1:
        raise RuntimeError(f"{name}: p is {p}, expected 0 to 1")
    return 0


cdef int bernoulli(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call, object name) except -1:
    return probability(at.f[0], name)


cdef int random_bits(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    if inputs[0].dtype != TF_I32 and inputs[0].dtype != TF_I64:
        raise RuntimeError(
            f"{name}: input has dtype {dtype_object(inputs[0].dtype)}, expected int32 or int64")
    return 0


cdef int dropout(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call, object name) except -1:
    fill_float(inputs, n, outputs, at, call, name)
    probability(at.f[0], name)
    like(outputs[0], inputs[0], inputs[0].dtype)
    return 0


RULES = {
    "index_select": rule_capsule(index_select), "embedding": rule_capsule(embedding),
    "index_add": rule_capsule(index_add),
    "index_copy": rule_capsule(index_copy), "index_fill": rule_capsule(index_fill),
    "index_embed": rule_capsule(index_embed),
    "select_between": rule_capsule(select_between), "between_embed": rule_capsule(between_embed),
    "gather": rule_capsule(gather), "scatter": rule_capsule(scatter),
    "scatter_embed": rule_capsule(scatter_embed), "index": rule_capsule(index),
    "index_put": rule_capsule(index_put), "put_embed": rule_capsule(put_embed),
    "nonzero": rule_capsule(nonzero), "triangle": rule_capsule(triangle),
    "cat": rule_capsule(cat), "pad_constant": rule_capsule(pad_constant),
    "narrow_embed": rule_capsule(narrow_embed),
    "uniform": rule_capsule(uniform), "normal": rule_capsule(normal),
    "exponential": rule_capsule(exponential), "randint": rule_capsule(randint),
    "bernoulli": rule_capsule(bernoulli), "random_bits": rule_capsule(random_bits),
    "dropout": rule_capsule(dropout),
}
