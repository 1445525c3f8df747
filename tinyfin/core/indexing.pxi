"""Basic indexing keys, reading elements, the buffer protocol. Part of tensor.pyx."""

cdef int wrap_axis(object dim, int ndim, str op) except -1:
    if ndim == 0:
        raise IndexError(f"{op}: dim {dim} is out of range for a tensor of 0 dimensions")
    return wrapped(dim, ndim, op, "dim")


cdef bint is_integer(object item):
    """Integers of Python and NumPy; arrays, tensors and truth values are other keys."""
    if type(item) is int:
        return True
    return PyIndex_Check(item) and item is not True and item is not False and not isinstance(item, Tensor) and \
        not hasattr(item, "__len__")


cdef Py_ssize_t place_of(object item) except? -1:
    try:
        return item
    except OverflowError:
        raise IndexError(f"index: index {item} does not fit 64 bits") from None


cdef int count_key(tuple items, int ndim) except -2:
    """How many axes a key of integers, slices, None and Ellipsis takes; -1 where it holds other things."""
    cdef int taken = 0, dots = 0
    for item in items:
        if type(item) is slice or is_integer(item):
            taken += 1
        elif item is Ellipsis:
            dots += 1
        elif item is not None:
            return -1
    if dots > 1:
        raise IndexError("index: an index can only have a single ellipsis ('...')")
    if taken > ndim:
        raise IndexError(f"index: too many indices: {taken} for a tensor of {ndim} dimensions")
    return taken


cdef int parse_axis(Tensor x, object item, tf_attrs *at, int axis) except -1:
    """One slice or integer."""
    cdef Py_ssize_t start, stop, step = 0, size = x.v.shape[axis], length = -1
    if type(item) is slice:
        PySlice_Unpack(item, &start, &stop, &step)
        length = PySlice_AdjustIndices(size, &start, &stop, step)
    else:
        start = place_of(item)
        if start < -size or start >= size:
            raise IndexError(f"index: index {start} is out of range for dim {axis} of size {size}")
        if start < 0:
            start += size
    at.i[3 * axis], at.i[3 * axis + 1], at.i[3 * axis + 2] = start, step, length
    return 0


cdef int parse_key(Tensor x, object key, tf_attrs *at) except -1:
    """Integers, slices, None and Ellipsis to a view's spec; 1 where the key needs more than a view."""
    cdef tuple items = key if type(key) is tuple else (key,)
    cdef int ndim = x.v.ndim, axis = 0, k = 0, taken = count_key(items, ndim)
    cdef int64_t fresh = 0
    if taken < 0:
        return 1
    for item in items:
        if item is None:
            if k > 30:
                raise ValueError("index: too many new dimensions")
            fresh |= 1 << k
            k += 1
        elif item is Ellipsis:
            for _ in range(ndim - taken):
                full_axis(x, at, axis)
                axis += 1
                k += 1
        else:
            parse_axis(x, item, at, axis)
            axis += 1
            k += type(item) is slice
    while axis < ndim:
        full_axis(x, at, axis)
        axis += 1
    at.i[24] = fresh
    for axis in range(ndim, 8):
        at.i[3 * axis] = at.i[3 * axis + 1] = at.i[3 * axis + 2] = 0
    return 0


cdef inline void full_axis(Tensor x, tf_attrs *at, int axis) noexcept:
    at.i[3 * axis], at.i[3 * axis + 1], at.i[3 * axis + 2] = 0, 1, x.v.shape[axis]


cdef float half_to_float(uint16_t h) noexcept nogil:
    """float16 to float32, by integers."""
    cdef uint32_t s = (<uint32_t>h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 0x3ff, u
    cdef float f
    if e == 0:
        f = <float>m * 5.9604644775390625e-8
        memcpy(&u, &f, 4)
        u |= s
    else:
        u = s | ((0x7f800000 if e == 31 else (e + 112) << 23) | (m << 13))
    memcpy(&f, &u, 4)
    return f


cdef object read_element(const tf_view *v, const char *p):
    """One element as a Python number."""
    cdef uint32_t u
    cdef float f
    cdef int d = v.dtype
    if d == TF_F32:
        return (<const float *>p)[0]
    if d == TF_I64:
        return (<const int64_t *>p)[0]
    if d == TF_BOOL:
        return p[0] != 0
    if d == TF_F64:
        return (<const double *>p)[0]
    if d == TF_I32:
        return (<const int32_t *>p)[0]
    if d == TF_U8:
        return (<const uint8_t *>p)[0]
    if d == TF_I8:
        return (<const int8_t *>p)[0]
    if d == TF_I16:
        return (<const int16_t *>p)[0]
    if d == TF_F16:
        return half_to_float((<const uint16_t *>p)[0])
    if d == TF_BF16:
        u = <uint32_t>(<const uint16_t *>p)[0] << 16
        memcpy(&f, &u, 4)
        return f
    raise NotImplementedError(f"item: dtype {dtype_object(d)} is reserved")


cdef const char **FORMATS = [b"?", b"B", b"b", b"h", b"i", b"q", b"e", NULL, b"f", b"d"]


cdef struct Exported:          # what a buffer points to until it is released
    Py_ssize_t shape[8]
    Py_ssize_t strides[8]
    PyObject *storage          # kept alive: the tensor may get other memory by `data = ...`


cdef bint is_column_major(const tf_view *v) noexcept nogil:
    cdef int64_t n = 1
    cdef int i
    for i in range(v.ndim if v.size else 0):
        if v.shape[i] != 1 and v.strides[i] != n:
            return False
        n *= v.shape[i]
    return True


cdef bint has_order(const tf_view *v, int flags) noexcept nogil:
    """Whether the layout is one that the request can live with."""
    if v.flags & TF_CONTIGUOUS:
        return flags & PyBUF_F_CONTIGUOUS != PyBUF_F_CONTIGUOUS or is_column_major(v)
    if flags & PyBUF_STRIDES != PyBUF_STRIDES or flags & PyBUF_C_CONTIGUOUS == PyBUF_C_CONTIGUOUS:
        return False
    if flags & PyBUF_F_CONTIGUOUS == PyBUF_F_CONTIGUOUS or flags & PyBUF_ANY_CONTIGUOUS == PyBUF_ANY_CONTIGUOUS:
        return is_column_major(v)
    return True


cdef int fill_buffer(Tensor t, Py_buffer *b, int flags) except -1:
    """PEP 3118: shape and strides in bytes live in one block that the release frees."""
    cdef Exported *out
    cdef int i, item = tf_itemsize[t.v.dtype]
    cdef bint readonly = t.storage.readonly or t.v.flags & TF_READONLY
    check_readable(t, "buffer")
    if t.v.backend != TF_CPU:
        raise BufferError(f"buffer: the tensor is on {t.device}; use cpu()")
    if flows(t):
        raise BufferError("buffer: the tensor requires grad; use detach() first")
    if t.v.dtype >= TF_C64 or FORMATS[t.v.dtype] == NULL:
        raise BufferError(f"buffer: {t.dtype} has no buffer format; convert with float()")
    if readonly and flags & PyBUF_WRITABLE:
        raise BufferError("buffer: the tensor's memory is read-only")
    if not has_order(&t.v, flags):
        raise BufferError(f"buffer: strides {t.stride()} of shape {shape_tuple(&t.v)} are not in the order asked for; "
                          "use contiguous()")
    expose(t, "buffer")
    out = <Exported *>malloc(sizeof(Exported))
    if out == NULL:
        raise MemoryError("buffer: no memory for a shape")
    for i in range(t.v.ndim):
        out.shape[i] = t.v.shape[i]
        out.strides[i] = t.v.strides[i] * item
    out.storage = <PyObject *>t.storage
    Py_INCREF(t.storage)
    b.buf, b.len, b.itemsize, b.readonly = t.v.data, t.v.size * item, item, readonly
    b.format = <char *>FORMATS[t.v.dtype] if flags & PyBUF_FORMAT else NULL
    b.ndim = t.v.ndim
    b.shape = out.shape if flags & PyBUF_ND else NULL
    b.strides = out.strides if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
    b.suboffsets = NULL
    b.internal = out
    b.obj = t
    return 0


cdef void release_buffer(Py_buffer *b) noexcept:
    cdef Exported *out = <Exported *>b.internal
    Py_DECREF(<object>out.storage)
    free(out)
