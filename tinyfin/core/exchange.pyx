"""Values in and out: Python sequences, the buffer protocol, NumPy, DLPack."""
from cpython.pycapsule cimport (
    PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport DType, category, dtype_object
from tinyfin.core.layout cimport *
from tinyfin.core.storage cimport Storage, borrow, borrow_buffer
from tinyfin.core.tensor cimport Tensor, check_readable, new_tensor, shape_tuple

from tinyfin.core.device import device_object
from tinyfin.core.dtype import all_dtypes, default_float

cdef dict FORMATS = {"?": TF_BOOL, "B": TF_U8, "b": TF_I8, "h": TF_I16, "i": TF_I32, "l": TF_I64,
                     "q": TF_I64, "e": TF_F16, "f": TF_F32, "d": TF_F64}
cdef dict UNSUPPORTED = {"H": "uint16", "I": "uint32", "L": "uint64", "Q": "uint64"}


def device_of(slot, index):
    """The device object of a slot and number."""
    return device_object(slot, index)


# ---- buffers

def from_buffer(exporter):
    """A tensor over the memory of an object with the buffer protocol; read-only stays read-only."""
    cdef Storage s
    cdef Tensor t = Tensor.__new__(Tensor)
    cdef int i, item
    cdef str code
    cdef int64_t step
    try:
        s = borrow_buffer(exporter, True)
    except (BufferError, ValueError):
        s = borrow_buffer(exporter, False)
    code = s.buf.format.decode() if s.buf.format != NULL else "B"
    if code[:1] in "<=@":
        code = code[1:]
    if code not in FORMATS:
        reason = f"dtype {UNSUPPORTED[code]} is reserved, no kernel takes it yet" if code in UNSUPPORTED else \
            f"element format '{code}' is not supported (byte order, complex, text or records); convert it first"
        raise TypeError(f"from_numpy: {reason}")
    t.v.dtype = FORMATS[code]
    item = tf_itemsize[t.v.dtype]
    if s.buf.ndim > TF_MAXDIM:
        raise ValueError(f"from_numpy: the array has {s.buf.ndim} dimensions, at most {TF_MAXDIM} are supported")
    t.v.ndim = s.buf.ndim
    for i in range(s.buf.ndim):
        t.v.shape[i] = s.buf.shape[i] if s.buf.shape != NULL else s.buf.len // item
        step = s.buf.strides[i] if s.buf.strides != NULL else item
        if step % item:
            raise ValueError(f"from_numpy: stride {step} bytes in dimension {i} is no multiple of the "
                             f"element's {item}; copy the array first")
        t.v.strides[i] = step // item
    t.storage = s
    t.v.data = s.data
    t.v.flags = TF_READONLY if s.readonly else 0
    settle(&t.v)
    if <size_t>t.v.data % item and t.v.size:
        raise ValueError("from_numpy: the array's memory is not aligned to its elements; copy the array first")
    return t


def from_raw(exporter, DType dtype not None, int64_t count, int64_t offset):
    """A one-dimensional tensor over raw bytes."""
    cdef Storage s
    cdef Tensor t = Tensor.__new__(Tensor)
    cdef int item = dtype.itemsize
    try:
        s = borrow_buffer(exporter, True)
    except (BufferError, ValueError):
        s = borrow_buffer(exporter, False)
    if offset < 0 or offset > <int64_t>s.nbytes:
        raise ValueError(f"frombuffer: offset is {offset}, expected 0 to {s.nbytes}, the buffer's bytes")
    if count < 0:
        if (<int64_t>s.nbytes - offset) % item:
            raise ValueError(f"frombuffer: {s.nbytes - offset} bytes are no multiple of {dtype}'s {item}")
        count = (<int64_t>s.nbytes - offset) // item
    if count > (<int64_t>s.nbytes - offset) // item:
        raise ValueError(f"frombuffer: {count} elements of {dtype} at offset {offset} exceed the buffer's {s.nbytes} bytes")
    if <size_t>(s.data + offset) % item:
        raise ValueError(f"frombuffer: offset {offset} is not aligned to {dtype}'s {item} bytes")
    t.storage = s
    t.v.data, t.v.dtype, t.v.ndim, t.v.shape[0], t.v.strides[0] = s.data + offset, dtype.id, 1, count, 1
    t.v.flags = TF_READONLY if s.readonly else 0
    settle(&t.v)
    return t


def to_numpy(Tensor t not None):
    """A NumPy array over the tensor's memory."""
    import numpy
    if t.v.backend != TF_CPU:
        raise TypeError(f"numpy: the tensor is on {t.device}; use cpu() first")
    if t.needs:
        raise RuntimeError("numpy: the tensor requires grad; use detach() first")
    if t.v.dtype == TF_BF16:
        raise TypeError("numpy: NumPy has no bfloat16; use float() first")
    return numpy.asarray(memoryview(t))


# ---- Python numbers and sequences

cdef int write_number(char *p, int dtype, object value) except -1:
    """One Python number as float64, int64 or bool."""
    if dtype == TF_F64:
        (<double *>p)[0] = value
    elif dtype == TF_I64:
        (<int64_t *>p)[0] = value
    else:
        (<uint8_t *>p)[0] = bool(value)
    return 0


cdef int scan(object data, list shape, int depth, int kind) except -1:
    """Checks that a nested sequence is rectangular; returns 0 bool, 1 int, 2 float."""
    cdef int k
    if isinstance(data, (list, tuple)):
        if depth == TF_MAXDIM:
            raise ValueError(f"tensor: the data is nested deeper than {TF_MAXDIM}")
        if depth == len(shape):
            shape.append(len(data))
        elif shape[depth] != len(data):
            raise ValueError(f"tensor: expected sequence of length {shape[depth]} at dimension {depth}, "
                             f"got {len(data)}")
        for item in data:
            kind = max(kind, scan(item, shape, depth + 1, kind))
        return kind
    if depth != len(shape):
        raise ValueError(f"tensor: expected a sequence of length {shape[depth]} at dimension {depth}, got {data!r}")
    if isinstance(data, bool) or type(data).__name__ in ("bool_",):
        return max(kind, 0)
    if isinstance(data, int):
        return max(kind, 1)
    if isinstance(data, float):
        return 2
    if isinstance(data, Tensor):
        if (<Tensor>data).v.size != 1:
            raise ValueError(f"tensor: only tensors of one element can stand in a sequence, got shape "
                             f"{shape_tuple(&(<Tensor>data).v)}")
        return max(kind, min(<int>category[(<Tensor>data).v.dtype], 2))
    if hasattr(data, "__index__"):
        return max(kind, 1)
    if hasattr(data, "__float__") and not isinstance(data, str):
        return 2
    raise TypeError(f"tensor: cannot make a tensor from {data!r} of type {type(data).__name__}")


cdef char *store(object data, char *p, int dtype) except NULL:
    if isinstance(data, (list, tuple)):
        for item in data:
            p = store(item, p, dtype)
        return p
    if isinstance(data, Tensor):
        data = data.item()
    elif dtype == TF_I64 and not isinstance(data, int):
        data = data.__index__()
    write_number(p, dtype, data)
    return p + tf_itemsize[dtype]


def from_sequence(data, wanted):
    """A tensor from a number or nested sequences, in the widest kind found."""
    cdef list shape = []
    cdef int kind, n, dtype
    cdef int64_t sizes[8]
    cdef Tensor t
    data = unnumpy(data)
    kind = scan(data, shape, 0, -1)
    dtype = TF_F64 if kind in (2, -1) else TF_I64 if kind == 1 else TF_BOOL
    for n in range(len(shape)):
        sizes[n] = shape[n]
    t = new_tensor(len(shape), sizes, dtype, TF_CPU, 0, "tensor")
    if t.v.size:
        try:
            store(data, t.v.data, dtype)
        except OverflowError:
            raise OverflowError("tensor: an integer does not fit 64 bits") from None
    if wanted is None and dtype == TF_F64:
        return t.to(dtype_object(default_float()))
    return t


cdef object unnumpy(object data):
    """Arrays inside sequences become lists."""
    if isinstance(data, (list, tuple)):
        for item in data:
            if hasattr(item, "__array_interface__") or (isinstance(item, Tensor) and item.ndim):
                return [unnumpy(x) for x in data]
            if not isinstance(item, (list, tuple)):
                break
        else:
            return [unnumpy(x) for x in data]
        return data
    if hasattr(data, "__array_interface__") or isinstance(data, Tensor):
        return data.tolist()
    return data


def to_list(Tensor t not None):
    """Nested lists of Python numbers."""
    if t.v.ndim == 0:
        return t.item()
    return [to_list(t[i]) for i in range(t.v.shape[0])] if t.v.ndim > 1 else [t[i].item() for i in range(t.v.shape[0])]


def arange_int(int64_t count, int64_t start, int64_t step):
    """start + i step, exactly."""
    cdef Tensor t = new_tensor(1, &count, TF_I64, TF_CPU, 0, "arange")
    cdef int64_t *p = <int64_t *>t.v.data
    cdef int64_t i
    for i in range(count):
        p[i] = start + i * step
    return t


def arange_float(int64_t count, double start, double step):
    """start + i step, in double precision."""
    cdef Tensor t = new_tensor(1, &count, TF_F64, TF_CPU, 0, "arange")
    cdef double *p = <double *>t.v.data
    cdef int64_t i
    for i in range(count):
        p[i] = start + i * step
    return t


def linspace(double start, double end, int64_t steps):
    """Equal steps, symmetric so that both ends are exact."""
    cdef Tensor t = new_tensor(1, &steps, TF_F64, TF_CPU, 0, "linspace")
    cdef double *p = <double *>t.v.data
    cdef double step = (end - start) / (steps - 1) if steps > 1 else 0.0
    cdef int64_t i
    for i in range(steps):
        p[i] = start + step * i if i < steps // 2 or steps == 1 else end - step * (steps - 1 - i)
    return t


def to_bytes(Tensor t not None):
    """The elements' bytes in row-major order; the tensor must be contiguous on the host."""
    check_readable(t, "to_bytes")
    if t.v.backend != TF_CPU or not t.v.flags & TF_CONTIGUOUS:
        raise RuntimeError("to_bytes: the tensor must be contiguous and on the cpu")
    return (<char *>t.v.data)[:t.v.size * tf_itemsize[t.v.dtype]]


def from_bytes(bytes data not None, DType dtype not None, shape):
    """A tensor with a copy of the bytes."""
    cdef int64_t sizes[8]
    cdef int i
    cdef Tensor t
    for i in range(len(shape)):
        sizes[i] = shape[i]
    t = new_tensor(len(shape), sizes, dtype.id, TF_CPU, 0, "unpickle")
    if t.v.size * tf_itemsize[t.v.dtype] != len(data):
        raise ValueError(f"from_bytes: {len(data)} bytes given for shape {tuple(shape)} of {dtype}")
    memcpy(t.v.data, <char *>data, len(data))
    return t


# ---- DLPack (https://dmlc.github.io/dlpack/latest/)

cdef extern from *:
    """
    typedef struct { int32_t device_type, device_id; } tf_dl_device;
    typedef struct { uint8_t code, bits; uint16_t lanes; } tf_dl_dtype;
    typedef struct { void *data; tf_dl_device device; int32_t ndim; tf_dl_dtype dtype;
                     int64_t *shape, *strides; uint64_t byte_offset; } tf_dl_tensor;
    typedef struct tf_dl_managed { tf_dl_tensor dl_tensor; void *manager_ctx;
                     void (*deleter)(struct tf_dl_managed *); } tf_dl_managed;
    """
    ctypedef struct tf_dl_device:
        int32_t device_type, device_id
    ctypedef struct tf_dl_dtype:
        uint8_t code, bits
        uint16_t lanes
    ctypedef struct tf_dl_tensor:
        void *data
        tf_dl_device device
        int32_t ndim
        tf_dl_dtype dtype
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset
    ctypedef struct tf_dl_managed:
        tf_dl_tensor dl_tensor
        void *manager_ctx
        void (*deleter)(tf_dl_managed *) noexcept

# DLPack type codes: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool
cdef dict TO_DL = {TF_BOOL: (6, 8), TF_U8: (1, 8), TF_I8: (0, 8), TF_I16: (0, 16), TF_I32: (0, 32),
                   TF_I64: (0, 64), TF_F16: (2, 16), TF_BF16: (4, 16), TF_F32: (2, 32), TF_F64: (2, 64)}
cdef dict FROM_DL = {pair: id for id, pair in TO_DL.items()}


cdef void dl_delete(tf_dl_managed *m) noexcept with gil:
    Py_DECREF(<object>m.manager_ctx)
    free(m.dl_tensor.shape)
    free(m)


cdef void capsule_delete(object capsule) noexcept:
    cdef tf_dl_managed *m
    if PyCapsule_IsValid(capsule, "dltensor"):
        m = <tf_dl_managed *>PyCapsule_GetPointer(capsule, "dltensor")
        m.deleter(m)


def to_dlpack(Tensor t not None):
    """A DLPack capsule that keeps the tensor alive."""
    cdef tf_dl_managed *m
    cdef int i
    check_readable(t, "dlpack")
    if t.v.backend != TF_CPU:
        raise BufferError(f"dlpack: the tensor is on {t.device}; use cpu() first")
    if t.needs:
        raise BufferError("dlpack: the tensor requires grad; use detach() first")
    m = <tf_dl_managed *>malloc(sizeof(tf_dl_managed))
    m.dl_tensor.shape = <int64_t *>malloc(16 * sizeof(int64_t))
    m.dl_tensor.strides = m.dl_tensor.shape + 8
    for i in range(t.v.ndim):
        m.dl_tensor.shape[i], m.dl_tensor.strides[i] = t.v.shape[i], t.v.strides[i]
    code, bits = TO_DL[t.v.dtype]
    m.dl_tensor.dtype.code, m.dl_tensor.dtype.bits, m.dl_tensor.dtype.lanes = code, bits, 1
    m.dl_tensor.device.device_type, m.dl_tensor.device.device_id = 1, 0
    m.dl_tensor.data, m.dl_tensor.ndim, m.dl_tensor.byte_offset = t.v.data, t.v.ndim, 0
    Py_INCREF(t)
    m.manager_ctx = <void *>t
    m.deleter = dl_delete
    return PyCapsule_New(m, "dltensor", <void (*)(object) noexcept>capsule_delete)


cdef class DlOwner:
    """Keeps a foreign DLPack tensor alive."""
    cdef tf_dl_managed *managed

    def __dealloc__(self):
        if self.managed != NULL and self.managed.deleter != NULL:
            self.managed.deleter(self.managed)


def from_dlpack(source):
    """A tensor over the memory of an object with `__dlpack__`, or of a capsule.

    >>> import numpy, tinyfin
    >>> tinyfin.from_dlpack(numpy.ones(2)).tolist()
    [1.0, 1.0]
    """
    cdef tf_dl_managed *m
    cdef DlOwner owner
    cdef Tensor t = Tensor.__new__(Tensor)
    cdef int i
    capsule = source.__dlpack__() if hasattr(source, "__dlpack__") else source
    if not PyCapsule_IsValid(capsule, "dltensor"):
        raise TypeError(f"from_dlpack: {type(source).__name__} gives no unused DLPack capsule")
    m = <tf_dl_managed *>PyCapsule_GetPointer(capsule, "dltensor")
    key = (m.dl_tensor.dtype.code, m.dl_tensor.dtype.bits)
    if m.dl_tensor.device.device_type != 1:
        raise BufferError(f"from_dlpack: device type {m.dl_tensor.device.device_type} is not the host's memory")
    if key not in FROM_DL or m.dl_tensor.dtype.lanes != 1:
        raise TypeError(f"from_dlpack: element type (code, bits) {key} is not supported")
    if m.dl_tensor.ndim > TF_MAXDIM:
        raise ValueError(f"from_dlpack: {m.dl_tensor.ndim} dimensions, at most {TF_MAXDIM} are supported")
    t.v.dtype, t.v.ndim = FROM_DL[key], m.dl_tensor.ndim
    for i in range(t.v.ndim):
        t.v.shape[i] = m.dl_tensor.shape[i]
    dense_strides(&t.v)
    if m.dl_tensor.strides != NULL:
        for i in range(t.v.ndim):
            t.v.strides[i] = m.dl_tensor.strides[i]
        settle(&t.v)
    owner = DlOwner.__new__(DlOwner)
    owner.managed = m
    PyCapsule_SetName(capsule, "used_dltensor")
    t.v.data = <char *>m.dl_tensor.data + m.dl_tensor.byte_offset
    t.storage = borrow(owner, t.v.data, t.v.size * tf_itemsize[t.v.dtype], False)
    return t
