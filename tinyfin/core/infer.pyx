"""Shape and dtype rules of elementwise rows and views; windows, indices and norms have theirs beside.

Rules hold the GIL and raise with the operation's name first.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport DEFAULT_FLOAT, category, dtype_object, promoted
from tinyfin.core.layout cimport *


cdef int promote_inputs(const tf_view *const *inputs, int n, object name) except -1:
    """PyTorch's rule: tensors with dimensions, then 0-d tensors, then numbers, each by category."""
    cdef int d, rank, best[3]
    cdef int i, result
    best[0] = best[1] = best[2] = -1
    for i in range(n):
        if inputs[i].flags & TF_ABSENT:
            continue
        d = inputs[i].dtype
        rank = 2 if inputs[i].flags & TF_WRAPPED else (1 if inputs[i].ndim == 0 else 0)
        best[rank] = d if best[rank] < 0 else promoted[best[rank]][d]
    result = -1
    for rank in range(3):
        d = best[rank]
        if d < 0:
            continue
        if rank == 2 and d == TF_F64:
            d = DEFAULT_FLOAT[0]
        if result < 0 or category[d] > category[result]:
            result = d
    if result < 0:
        raise TypeError(f"{name}: none of the arguments has a dtype")
    if result >= TF_C64:
        raise NotImplementedError(f"{name}: dtype {dtype_object(result)} is reserved, no kernel takes it yet")
    return result


cdef int broadcast(const tf_view *const *inputs, int n, tf_view *out, object name) except -1:
    """The common shape of all inputs."""
    cdef int ndim = 0, i, k
    cdef int64_t size, other
    for i in range(n):
        if inputs[i].ndim > ndim:
            ndim = inputs[i].ndim
    out.ndim = ndim
    for k in range(ndim):
        size = 1
        for i in range(n):
            if inputs[i].ndim > k:
                other = inputs[i].shape[inputs[i].ndim - 1 - k]
                if other != 1:
                    if size != 1 and size != other:
                        raise_broadcast(inputs, n, name, ndim - 1 - k)
                    size = other
        out.shape[ndim - 1 - k] = size
    return 0


cdef int raise_broadcast(const tf_view *const *inputs, int n, object name, int dim) except -1:
    shapes = " and ".join([str(shape_of(inputs[i])) for i in range(n) if not inputs[i].flags & TF_WRAPPED])
    raise RuntimeError(f"{name}: shapes {shapes} do not broadcast: sizes differ in dimension {dim} and none is 1")


cdef int elementwise(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    """call.compute arrives as the row's result class: 0 same, 1 float, 2 bool."""
    cdef tf_view *out = outputs[0]
    cdef int cls = call.compute, dtype, i
    cdef bint alike = True
    for i in range(1, n):
        if not same_shape(inputs[i], inputs[0]):
            alike = False
            break
    if alike:
        out.ndim = inputs[0].ndim
        memcpy(out.shape, inputs[0].shape, sizeof(int64_t) * 8)
    else:
        broadcast(inputs, n, out, name)
    dtype = inputs[0].dtype
    if n > 1 or dtype >= TF_C64:
        alike = dtype < TF_C64
        for i in range(1, n):
            if inputs[i].dtype != dtype:
                alike = False
                break
        if not alike:
            dtype = promote_inputs(inputs, n, name)
    if cls & 1 and dtype < TF_F16:
        dtype = DEFAULT_FLOAT[0]
    call.compute = dtype
    out.dtype = TF_BOOL if cls & 2 else dtype
    return 0


cdef int where(const tf_view *const *inputs, int n, tf_view *const *outputs,
               const tf_attrs *at, tf_call *call, object name) except -1:
    """The condition broadcasts but does not promote."""
    cdef int dtype
    if inputs[0].dtype != TF_BOOL and inputs[0].dtype != TF_U8:
        raise RuntimeError(f"{name}: condition has dtype {dtype_object(inputs[0].dtype)}, expected bool")
    broadcast(inputs, n, outputs[0], name)
    dtype = promote_inputs(inputs + 1, n - 1, name)
    call.compute = outputs[0].dtype = dtype
    return 0


cdef int like_input(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """The result has the first input's shape and dtype."""
    like(outputs[0], inputs[0], inputs[0].dtype)
    return 0


cdef int cast(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call, object name) except -1:
    like_input(inputs, n, outputs, at, call, name)
    if at.i[0] >= 0:
        outputs[0].dtype = <int>at.i[0]
    return 0


# Views: the result starts as a copy of the input's numbers.

cdef void start(const tf_view *x, tf_view *y) noexcept:
    y[0] = x[0]


cdef int reshape(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call, object name) except -1:
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef tf_view known
    cdef int i, unknown = -1
    cdef int64_t total
    start(x, y)
    y.ndim, known.ndim = <int>at.i[0], 0
    for i in range(y.ndim):
        y.shape[i] = at.i[1 + i]
        if y.shape[i] == -1 and unknown < 0:
            unknown = i
        elif y.shape[i] < 0:
            raise RuntimeError(f"{name}: shape {tuple([at.i[1 + k] for k in range(y.ndim)])} has a negative size")
        else:
            known.shape[known.ndim] = y.shape[i]
            known.ndim += 1
    if unknown >= 0:
        total = numel(&known)
        if total <= 0 or x.size % total:
            raise RuntimeError(f"{name}: shape {tuple([at.i[1 + k] for k in range(y.ndim)])} is invalid "
                               f"for {shape_of(x)} of {x.size} elements")
        y.shape[unknown] = x.size // total
    elif numel(y) != x.size:
        raise RuntimeError(f"{name}: shape {shape_of(y)} is invalid for {shape_of(x)} of {x.size} elements")
    if x.size == 0:
        dense_strides(y)
    elif not reshape_strides(x, y):
        call.needs_copy = 1
    return 0


cdef int rows(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call, object name) except -1:
    """All axes but the last as one; a vector is one row."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int i
    if x.ndim == 0:
        raise RuntimeError(f"{name}: input has no dimensions, expected at least one")
    start(x, y)
    y.ndim, y.shape[0], y.shape[1] = 2, 1, x.shape[x.ndim - 1]
    for i in range(x.ndim - 1):
        y.shape[0] *= x.shape[i]
    if x.size == 0:
        dense_strides(y)
    elif not reshape_strides(x, y):
        call.needs_copy = 1
    return 0


cdef int reorder(const tf_view *x, tf_view *y, const tf_attrs *at, bint back, object name) except -1:
    """Axes in the order of dims, or back from it."""
    cdef int i
    start(x, y)
    if at.i[0] != x.ndim:
        raise RuntimeError(f"{name}: dims has {at.i[0]} entries, the tensor has {x.ndim} dimensions")
    for i in range(x.ndim):
        y.shape[at.i[1 + i] if back else i] = x.shape[i if back else at.i[1 + i]]
        y.strides[at.i[1 + i] if back else i] = x.strides[i if back else at.i[1 + i]]
    return 0


cdef int permute(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call, object name) except -1:
    return reorder(inputs[0], outputs[0], at, False, name)


cdef int permute_back(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    return reorder(inputs[0], outputs[0], at, True, name)


cdef int transpose(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call, object name) except -1:
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int i = <int>at.i[0], j = <int>at.i[1]
    start(x, y)
    y.shape[i], y.shape[j] = x.shape[j], x.shape[i]
    y.strides[i], y.strides[j] = x.strides[j], x.strides[i]
    return 0


cdef int t(const tf_view *const *inputs, int n, tf_view *const *outputs,
           const tf_attrs *at, tf_call *call, object name) except -1:
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    if x.ndim > 2:
        raise RuntimeError(f"{name}: input has {x.ndim} dimensions, expected at most 2; use transpose or mT")
    start(x, y)
    if x.ndim == 2:
        y.shape[0], y.shape[1] = x.shape[1], x.shape[0]
        y.strides[0], y.strides[1] = x.strides[1], x.strides[0]
    return 0


cdef int expand(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call, object name) except -1:
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int ndim = <int>at.i[0], i, k
    cdef int64_t size
    start(x, y)
    if ndim < x.ndim:
        raise RuntimeError(f"{name}: shape {tuple([at.i[1 + m] for m in range(ndim)])} has fewer dimensions "
                           f"than the tensor's {shape_of(x)}")
    y.ndim = ndim
    for i in range(ndim):
        k = i - (ndim - x.ndim)
        size = at.i[1 + i]
        if k < 0:
            if size < 0:
                raise RuntimeError(f"{name}: size {size} is not allowed in the new dimension {i}")
            y.shape[i], y.strides[i] = size, 0
        elif size == -1 or size == x.shape[k]:
            y.shape[i], y.strides[i] = x.shape[k], x.strides[k]
        elif x.shape[k] == 1 and size >= 0:
            y.shape[i], y.strides[i] = size, 0
        else:
            raise RuntimeError(f"{name}: size {size} in dimension {i} does not match the tensor's "
                               f"{x.shape[k]} of {shape_of(x)}")
    return 0


cdef int unreduce(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call, object name) except -1:
    """shape, dims, keepdim: undoes a reduction's shape with zero strides at the reduced axes."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int i, k = 0
    cdef int reduced = 0
    start(x, y)
    for i in range(<int>at.i[9]):
        if not 0 <= at.i[10 + i] < at.i[0]:
            raise IndexError(f"{name}: dim {at.i[10 + i]} is out of range for {at.i[0]} dimensions")
        reduced |= 1 << at.i[10 + i]
    y.ndim = <int>at.i[0]
    for i in range(y.ndim):
        y.shape[i] = at.i[1 + i]
        if reduced >> i & 1:
            y.strides[i] = 0
            k += at.i[18] != 0
        else:
            if k >= x.ndim or x.shape[k] != y.shape[i]:
                raise RuntimeError(f"{name}: {shape_of(x)} is no reduction of {shape_of(y)}")
            y.strides[i] = x.strides[k]
            k += 1
    return 0


cdef int unsqueeze(const tf_view *const *inputs, int n, tf_view *const *outputs,
                   const tf_attrs *at, tf_call *call, object name) except -1:
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int i, d = <int>at.i[0]
    if x.ndim == TF_MAXDIM:
        raise ValueError(f"{name}: the tensor has {TF_MAXDIM} dimensions already, the most supported")
    start(x, y)
    y.ndim = x.ndim + 1
    for i in range(x.ndim, d, -1):
        y.shape[i], y.strides[i] = x.shape[i - 1], x.strides[i - 1]
    y.shape[d] = 1
    y.strides[d] = x.shape[d] * x.strides[d] if d < x.ndim else 1
    return 0


cdef int squeeze(const tf_view *const *inputs, int n, tf_view *const *outputs,
                 const tf_attrs *at, tf_call *call, object name) except -1:
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int i
    cdef int drop = 0
    start(x, y)
    for i in range(<int>at.i[0]):
        drop |= 1 << at.i[1 + i]
    y.ndim = 0
    for i in range(x.ndim):
        if not (drop >> i & 1 and x.shape[i] == 1):
            y.shape[y.ndim], y.strides[y.ndim] = x.shape[i], x.strides[i]
            y.ndim += 1
    return 0


cdef void move(tf_view *y, int64_t elements) noexcept:
    """The first element becomes the one `elements` further on."""
    y.offset += elements
    if y.data != NULL:
        y.data += elements * tf_itemsize[y.dtype]


cdef int flip(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call, object name) except -1:
    cdef tf_view *y = outputs[0]
    cdef int i, d
    start(inputs[0], y)
    for i in range(<int>at.i[0]):
        d = <int>at.i[1 + i]
        if y.shape[d] > 1:
            move(y, y.strides[d] * (y.shape[d] - 1))
        y.strides[d] = -y.strides[d]
    return 0


cdef int getitem_view(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call, object name) except -1:
    """spec: per input axis start, step, length (-1: the axis goes), then a mask of new axes."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int i, k = 0
    cdef int64_t fresh = at.i[24], shift = 0, first, step, length
    start(x, y)
    for i in range(x.ndim + 1):
        while fresh >> k & 1:
            if k == TF_MAXDIM:
                raise ValueError(f"{name}: the result would have more than {TF_MAXDIM} dimensions")
            y.shape[k], y.strides[k] = 1, 1
            k += 1
        if i == x.ndim:
            break
        first, step, length = at.i[3 * i], at.i[3 * i + 1], at.i[3 * i + 2]
        if length and not reaches(first, step, length, x.shape[i]):
            raise IndexError(f"{name}: the tensor changed while its key was read")
        if length:
            shift += first * x.strides[i]
        if length >= 0:
            if k == TF_MAXDIM:
                raise ValueError(f"{name}: the result would have more than {TF_MAXDIM} dimensions")
            y.shape[k], y.strides[k] = length, wrapping(step, x.strides[i])
            k += 1
    y.ndim = k
    if numel(y) > 0:
        move(y, shift)
    return 0


cdef inline bint reaches(int64_t first, int64_t step, int64_t length, int64_t size) noexcept nogil:
    """Whether first, first + step, ... lie on an axis; length -1 asks for the first alone."""
    cdef int64_t room
    if first < 0 or first >= size:
        return False
    if length <= 1:
        return True
    room = (size - 1) // (length - 1)
    return -room <= step <= room and 0 <= first + step * (length - 1) < size


cdef int select_view(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, index."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int i, d = <int>at.i[0]
    cdef int64_t index = at.i[1], size = x.shape[d]
    if x.ndim == 0:
        raise IndexError(f"{name}: the tensor has no dimensions")
    if not -size <= index < size:
        raise IndexError(f"{name}: index {index} is out of range for dim {d} of size {size}")
    start(x, y)
    y.ndim = x.ndim - 1
    for i in range(d, y.ndim):
        y.shape[i], y.strides[i] = x.shape[i + 1], x.strides[i + 1]
    if numel(y) > 0:
        move(y, (index + size if index < 0 else index) * x.strides[d])
    return 0


cdef int narrow(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call, object name) except -1:
    cdef tf_view *y = outputs[0]
    cdef int d = <int>at.i[0]
    cdef int64_t first = at.i[1], length = at.i[2], size = inputs[0].shape[d]
    start(inputs[0], y)
    if inputs[0].ndim == 0:
        raise RuntimeError(f"{name}: the tensor has no dimensions to narrow")
    if first < -size or first > size:
        raise IndexError(f"{name}: start {first} is out of range for dim {d} of size {size}")
    if first < 0:
        first += size
    if length < 0 or length > size - first:
        raise RuntimeError(f"{name}: start {first} + length {length} exceeds dim {d} of size {size}")
    y.shape[d] = length
    if length:
        move(y, first * y.strides[d])
    return 0


cdef int diagonal(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call, object name) except -1:
    """offset, dim1, dim2: the diagonal becomes the last axis."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int64_t off = at.i[0], rows, cols, length
    cdef int a = <int>at.i[1], b = <int>at.i[2], i, k = 0
    if x.ndim < 2:
        raise RuntimeError(f"{name}: the tensor has {x.ndim} dimensions, expected at least 2")
    if a == b:
        raise RuntimeError(f"{name}: dim1 and dim2 are both {a}")
    start(x, y)
    rows, cols = x.shape[a], x.shape[b]
    length = max(min(rows + off, cols) if off < 0 else min(rows, cols - off), 0)
    for i in range(x.ndim):
        if i != a and i != b:
            y.shape[k], y.strides[k] = x.shape[i], x.strides[i]
            k += 1
    y.shape[k], y.strides[k] = length, x.strides[a] + x.strides[b]
    y.ndim = k + 1
    if numel(y) > 0:
        move(y, off * x.strides[b] if off >= 0 else -off * x.strides[a])
    return 0


cdef int unfold(const tf_view *const *inputs, int n, tf_view *const *outputs,
                const tf_attrs *at, tf_call *call, object name) except -1:
    """dim, size, step: windows along dim; the window becomes the last axis."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int d = <int>at.i[0]
    cdef int64_t size = at.i[1], step = at.i[2], have = x.shape[d] if x.ndim else 1
    if x.ndim == TF_MAXDIM:
        raise ValueError(f"{name}: the tensor has {TF_MAXDIM} dimensions already, the most supported")
    if size < 0 or size > have:
        raise RuntimeError(f"{name}: size is {size}, expected 0 to {have}, the size of dim {d}")
    if step <= 0:
        raise RuntimeError(f"{name}: step is {step}, expected at least 1")
    start(x, y)
    y.ndim = x.ndim + 1
    y.shape[x.ndim], y.strides[x.ndim] = size, x.strides[d] if x.ndim else 1
    if x.ndim:
        y.shape[d], y.strides[d] = (have - size) // step + 1, wrapping(step, x.strides[d])
    return 0


cdef int as_strided(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call, object name) except -1:
    """size, stride, storage_offset (INT64_MIN: the input's). The caller has checked the bounds."""
    cdef tf_view *y = outputs[0]
    cdef int i
    start(inputs[0], y)
    if at.i[0] != at.i[9]:
        raise RuntimeError(f"{name}: size has {at.i[0]} entries, stride {at.i[9]}")
    y.ndim = <int>at.i[0]
    for i in range(y.ndim):
        if at.i[1 + i] < 0:
            raise RuntimeError(f"{name}: size {at.i[1 + i]} in dimension {i} is negative")
        y.shape[i], y.strides[i] = at.i[1 + i], at.i[10 + i]
    if at.i[18] >= 0:
        move(y, at.i[18] - y.offset)
    return 0


cdef int alias(const tf_view *const *inputs, int n, tf_view *const *outputs,
               const tf_attrs *at, tf_call *call, object name) except -1:
    start(inputs[0], outputs[0])
    return 0


RULES = {
    "elementwise": rule_capsule(elementwise), "where": rule_capsule(where),
    "like_input": rule_capsule(like_input), "cast": rule_capsule(cast),
    "reshape": rule_capsule(reshape), "permute": rule_capsule(permute),
    "transpose": rule_capsule(transpose), "t": rule_capsule(t), "expand": rule_capsule(expand),
    "unreduce": rule_capsule(unreduce), "rows": rule_capsule(rows),
    "permute_back": rule_capsule(permute_back), "select_view": rule_capsule(select_view),
    "unsqueeze": rule_capsule(unsqueeze), "squeeze": rule_capsule(squeeze),
    "flip": rule_capsule(flip), "getitem_view": rule_capsule(getitem_view),
    "narrow": rule_capsule(narrow), "diagonal": rule_capsule(diagonal),
    "unfold": rule_capsule(unfold), "as_strided": rule_capsule(as_strided),
    "alias": rule_capsule(alias),
}
