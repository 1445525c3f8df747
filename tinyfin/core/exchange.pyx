"""Values in and out: Python sequences, the buffer protocol, NumPy, DLPack."""
cimport cython
from cpython.buffer cimport PyBuffer_IsContiguous
from cpython.pycapsule cimport (
    PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport DType, category, dtype_object, promoted
from tinyfin.core.layout cimport *
from tinyfin.core.storage cimport Storage, borrow, borrow_buffer
from tinyfin.core.tensor cimport Tensor, check_readable, claim, given_away, new_tensor, read_element, shape_tuple

from itertools import islice

from tinyfin.core.device import device_object
from tinyfin.core.dtype import all_dtypes, default_float

cdef dict FORMATS = {"?": TF_BOOL, "B": TF_U8, "b": TF_I8, "h": TF_I16, "i": TF_I32, "l": TF_I64,
                     "q": TF_I64, "e": TF_F16, "f": TF_F32, "d": TF_F64}
cdef dict RESERVED = {"H": "uint16", "I": "uint32", "L": "uint64", "Q": "uint64", "Zf": "complex64", "F": "complex64",
                      "Zd": "complex128", "D": "complex128"}
cdef dict BY_NAME = all_dtypes()


def device_of(slot, index):
    """The device object of a slot and number."""
    return device_object(slot, index)


# ---- buffers

cdef Storage open_buffer(object exporter, str op):
    """Writable where the exporter allows it."""
    try:
        return borrow_buffer(exporter, True)
    except (BufferError, ValueError, TypeError):
        pass
    try:
        return borrow_buffer(exporter, False)
    except (BufferError, ValueError) as error:
        raise TypeError(f"{op}: the elements cannot be shared: {error}") from None


cdef int dtype_of_format(Storage s, str op) except -1:
    cdef str code = s.buf.format.decode() if s.buf.format != NULL else "B"
    if code[:1] in (">", "!"):
        raise ValueError(f"{op}: the elements are in another byte order ('{code}'); convert them first with "
                         "a.astype(a.dtype.newbyteorder('='))")
    if code[:1] in "<=@":
        code = code[1:]
    if code in RESERVED:
        raise TypeError(f"{op}: dtype {RESERVED[code]} is reserved, no kernel takes it yet")
    if code not in FORMATS:
        raise TypeError(f"{op}: element format '{code}' is not supported (text, objects or records); convert it first")
    if code == "l" and s.buf.itemsize == 4:
        return TF_I32
    return FORMATS[code]


cdef int count(Tensor t, str op) except -1:
    """Size and flags of a window that someone else described."""
    settle(&t.v)
    if not countable(&t.v):
        raise RuntimeError(f"{op}: shape {shape_tuple(&t.v)} has more elements than can be counted")
    return 0


cdef int cover(Storage s, tf_view *v) noexcept:
    """The storage is what the view can reach and no more: other views are checked against it."""
    cdef int64_t low, high
    cdef int item = tf_itemsize[v.dtype]
    s.data, s.nbytes, v.offset = v.data, 0, 0
    if v.size > 0:
        extent(v, &low, &high)
        s.data += low * item
        s.nbytes = (high - low + 1) * item
        v.offset = -low
    return 0


def from_buffer(exporter, str op="from_numpy"):
    """A tensor over the memory of an object with the buffer protocol; read-only stays read-only."""
    cdef Storage s = open_buffer(exporter, op)
    cdef Tensor t = Tensor.__new__(Tensor)
    cdef int i, item
    cdef int64_t step
    t.v.dtype = dtype_of_format(s, op)
    item = tf_itemsize[t.v.dtype]
    if s.buf.ndim > TF_MAXDIM:
        raise ValueError(f"{op}: the array has {s.buf.ndim} dimensions, at most {TF_MAXDIM} are supported")
    t.v.ndim = s.buf.ndim
    for i in range(s.buf.ndim):
        t.v.shape[i] = s.buf.shape[i] if s.buf.shape != NULL else s.buf.len // item
        step = s.buf.strides[i] if s.buf.strides != NULL else item
        if step % item and t.v.shape[i] > 1:
            raise ValueError(f"{op}: stride {step} bytes in dimension {i} is no multiple of the "
                             f"element's {item}; copy the array first")
        t.v.strides[i] = step // item
    t.storage = s
    t.v.data = s.data
    t.v.flags = TF_READONLY if s.readonly else 0
    count(t, op)
    if <size_t>t.v.data % item and t.v.size:
        raise ValueError(f"{op}: the array's memory is not aligned to its elements; copy the array first")
    cover(s, &t.v)
    return t


def from_raw(exporter, DType dtype not None, int64_t count, int64_t offset):
    """A one-dimensional tensor over raw bytes."""
    cdef Storage s = open_buffer(exporter, "frombuffer")
    cdef Tensor t = Tensor.__new__(Tensor)
    cdef int item = dtype.itemsize
    cdef int64_t rest = <int64_t>s.nbytes - offset
    need_built(dtype, "frombuffer")
    if not PyBuffer_IsContiguous(&s.buf, b"C"):
        raise ValueError("frombuffer: the buffer is not contiguous; copy it first")
    if offset < 0 or rest < 0:
        raise ValueError(f"frombuffer: offset is {offset}, expected 0 to {s.nbytes}, the buffer's bytes")
    if count < 0:
        if rest % item:
            raise ValueError(f"frombuffer: {rest} bytes are no multiple of {dtype}'s {item}")
        count = rest // item
    if count > rest // item:
        raise ValueError(f"frombuffer: {count} elements of {dtype} at offset {offset} exceed the buffer's "
                         f"{s.nbytes} bytes")
    if <size_t>(s.data + offset) % item:
        raise ValueError(f"frombuffer: offset {offset} is not aligned to {dtype}'s {item} bytes")
    t.storage = s
    t.v.data, t.v.dtype, t.v.ndim, t.v.shape[0], t.v.strides[0] = s.data + offset, dtype.id, 1, count, 1
    t.v.flags = TF_READONLY if s.readonly else 0
    settle(&t.v)
    cover(s, &t.v)
    return t


cdef int need_built(DType dtype, str op) except -1:
    if dtype.id >= TF_C64:
        raise NotImplementedError(f"{op}: dtype {dtype} is reserved, no kernel takes it yet")
    return 0


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

cdef struct Found:          # what is known of nested sequences while they are read
    int ndim, leaf, dtype   # leaf: depth of the numbers; -1 before the first
    int real                # what Python floats bring
    int64_t shape[8]


cdef object items_of(object data):
    """The list or tuple that stands for whatever has items; None for a single value."""
    if isinstance(data, (list, tuple)):
        return data
    if isinstance(data, Tensor):
        return None if (<Tensor>data).v.size == 1 else to_list(data)
    if hasattr(data, "__array_interface__"):
        values = data.tolist()
        return values if isinstance(values, list) else None
    if isinstance(data, (str, bytes, dict)) or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        return None
    return list(islice(data, len(data)))


cdef int dtype_of_leaf(object data, int real) except -1:
    """The dtype that one value brings: Python's by kind, NumPy's and tensors' their own."""
    if isinstance(data, Tensor):
        return (<Tensor>data).v.dtype
    named = BY_NAME.get(data.dtype.name) if hasattr(data, "__array_interface__") else None
    if named is not None and (<DType>named).id < TF_C64:
        return (<DType>named).id
    if isinstance(data, bool):
        return TF_BOOL
    if isinstance(data, int) or hasattr(data, "__index__"):
        return TF_I64
    if isinstance(data, float) or (hasattr(data, "__float__") and named is None and not isinstance(data, str)):
        return real
    raise TypeError(f"tensor: cannot make a tensor from {data!r} of type {type(data).__name__}")


cdef int note_dtype(Found *f, int dtype) noexcept:
    f.dtype = dtype if f.dtype < 0 else promoted[f.dtype][dtype]
    return 0


cdef int scan(object data, Found *f, int depth) except -1:
    """Checks that nested sequences are rectangular, and finds shape and dtype."""
    cdef int dtype
    cdef object items = None
    if type(data) is float:
        dtype = f.real
    elif type(data) is int:
        dtype = TF_I64
    elif type(data) is bool:
        dtype = TF_BOOL
    else:
        items = items_of(data)
        if items is None:
            dtype = dtype_of_leaf(data, f.real)
    if items is None:
        if depth != (f.ndim if f.leaf < 0 else f.leaf):
            raise ValueError(f"tensor: expected a sequence of length {f.shape[depth]} at dimension {depth}, "
                             f"got {data!r}")
        f.leaf = depth
        return note_dtype(f, dtype)
    if f.leaf >= 0 and depth >= f.leaf:
        raise ValueError(f"tensor: expected a number at dimension {depth}, got a sequence of length {len(items)}")
    if depth == TF_MAXDIM:
        raise ValueError(f"tensor: the data is nested deeper than {TF_MAXDIM}")
    if depth == f.ndim:
        f.shape[depth] = len(items)
        f.ndim += 1
    elif f.shape[depth] != len(items):
        raise ValueError(f"tensor: expected sequence of length {f.shape[depth]} at dimension {depth}, got {len(items)}")
    if items is not data and hasattr(data, "dtype") and len(items):
        named = BY_NAME.get(getattr(data.dtype, "name", None))
        if named is not None and (<DType>named).id < TF_C64:
            note_dtype(f, (<DType>named).id)
    for item in items:
        scan(item, f, depth + 1)
    return 0


cdef object changed():
    return RuntimeError("tensor: the data changed while they were read")


cdef char *store(object data, char *p, char *end, int dtype) except NULL:
    """Writes values as float64, int64 or bool; `end` guards against data that change while they are read."""
    cdef object items = None
    if type(data) is not float and type(data) is not int and type(data) is not bool:
        items = items_of(data)
    if items is not None:
        for item in items:
            p = store(item, p, end, dtype)
        return p
    if p >= end:
        raise changed()
    if isinstance(data, Tensor):
        data = data.item()
    if dtype == TF_F64:
        (<double *>p)[0] = data
    elif dtype == TF_I64:
        (<int64_t *>p)[0] = data if isinstance(data, int) else data.__index__()
    else:
        (<uint8_t *>p)[0] = bool(data)
    return p + tf_itemsize[dtype]


def from_sequence(data, DType wanted=None):
    """A tensor from a number or nested sequences; without `wanted` of the dtype that the values bring."""
    cdef Found f
    cdef Tensor t
    cdef int kind
    cdef char *end
    f.ndim, f.leaf, f.dtype, f.real = 0, -1, -1, default_float()
    scan(data, &f, 0)
    if f.dtype < 0:
        f.dtype = f.real
    kind = TF_F64 if category[f.dtype] == 2 else TF_I64 if category[f.dtype] == 1 else TF_BOOL
    t = new_tensor(f.ndim, f.shape, kind, TF_CPU, 0, "tensor")
    if t.v.size:
        try:
            end = t.v.data + t.v.size * tf_itemsize[kind]
            if store(data, t.v.data, end, kind) != end:
                raise changed()
        except OverflowError:
            raise ValueError(f"tensor: a value does not fit {dtype_object(kind).name}") from None
    if wanted is None:
        wanted = dtype_object(f.dtype)
    need_built(wanted, "tensor")
    check_range(t, wanted, "tensor")
    return t if wanted.id == kind else t.to(wanted)


cdef int check_range(Tensor t, DType wanted, str op) except -1:
    """Whole numbers that the wanted dtype cannot hold are an error, as are NaN and infinities for integers."""
    cdef int64_t i, high, low
    cdef int64_t *whole = <int64_t *>t.v.data
    cdef double *real = <double *>t.v.data
    if category[wanted.id] != 1 or t.v.dtype == wanted.id or t.v.dtype == TF_BOOL:
        return 0
    high = <int64_t>((<uint64_t>1 << (8 * wanted.itemsize - wanted.is_signed)) - 1)
    low = -high - 1 if wanted.is_signed else -high      # unsigned types take negative numbers modulo their range
    for i in range(t.v.size):
        if not (low <= whole[i] <= high if t.v.dtype == TF_I64 else <double>low <= real[i] <= <double>high):
            value = whole[i] if t.v.dtype == TF_I64 else real[i]
            raise RuntimeError(f"{op}: the value {value} does not fit {wanted}")
    return 0


cdef object list_of(const tf_view *v, const char *p, int axis):
    cdef int64_t i, step
    cdef list out = []
    if axis == v.ndim:
        return read_element(v, p)
    step = v.strides[axis] * tf_itemsize[v.dtype] if v.shape[axis] > 1 else 0
    for i in range(v.shape[axis]):
        out.append(list_of(v, p + i * step, axis + 1))
    return out


def to_list(Tensor t not None):
    """Nested lists of Python numbers.

    >>> import tinyfin
    >>> tinyfin.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    claim(t, "tolist")
    if t.v.backend != TF_CPU:
        return to_list(t.cpu())
    return list_of(&t.v, t.v.data, 0)


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
    need_built(dtype, "from_bytes")
    if len(shape) > TF_MAXDIM:
        raise ValueError(f"from_bytes: shape {tuple(shape)} has more than {TF_MAXDIM} dimensions")
    for i in range(len(shape)):
        sizes[i] = shape[i]
        if sizes[i] < 0:
            raise ValueError(f"from_bytes: shape {tuple(shape)} has a negative size")
    t = new_tensor(len(shape), sizes, dtype.id, TF_CPU, 0, "from_bytes")
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
    typedef struct tf_dl_versioned { uint32_t major, minor; void *manager_ctx;
                     void (*deleter)(struct tf_dl_versioned *); uint64_t flags;
                     tf_dl_tensor dl_tensor; } tf_dl_versioned;
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
    ctypedef struct tf_dl_versioned:
        uint32_t major, minor
        void *manager_ctx
        void (*deleter)(tf_dl_versioned *) noexcept
        uint64_t flags
        tf_dl_tensor dl_tensor

cdef enum:
    DL_READONLY = 1, DL_COPIED = 2     # bits of the versioned form's flags
    DL_HOST = 1                        # device type

# DLPack type codes: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool
cdef dict TO_DL = {TF_BOOL: (6, 8), TF_U8: (1, 8), TF_I8: (0, 8), TF_I16: (0, 16), TF_I32: (0, 32),
                   TF_I64: (0, 64), TF_F16: (2, 16), TF_BF16: (4, 16), TF_F32: (2, 32), TF_F64: (2, 64)}
cdef dict FROM_DL = {pair: id for id, pair in TO_DL.items()}


cdef void dl_delete(tf_dl_managed *m) noexcept with gil:
    Py_DECREF(<object>m.manager_ctx)
    free(m)


cdef void dl_delete_versioned(tf_dl_versioned *m) noexcept with gil:
    Py_DECREF(<object>m.manager_ctx)
    free(m)


cdef void capsule_delete(object capsule) noexcept:
    """Runs where nobody took the tensor out of its capsule."""
    cdef tf_dl_managed *m
    cdef tf_dl_versioned *v
    if PyCapsule_IsValid(capsule, "dltensor"):
        m = <tf_dl_managed *>PyCapsule_GetPointer(capsule, "dltensor")
        m.deleter(m)
    elif PyCapsule_IsValid(capsule, "dltensor_versioned"):
        v = <tf_dl_versioned *>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        v.deleter(v)


cdef void *taken(size_t size) except NULL:
    """Memory for a form of DLPack, with shape and strides behind it."""
    cdef void *p = malloc(size + 2 * TF_MAXDIM * sizeof(int64_t))
    if p == NULL:
        raise MemoryError("dlpack: no memory for a description")
    return p


cdef int describe(tf_dl_tensor *d, Tensor t, int64_t *shape) except -1:
    cdef int i
    d.shape, d.strides = shape, shape + TF_MAXDIM
    for i in range(t.v.ndim):
        d.shape[i], d.strides[i] = t.v.shape[i], t.v.strides[i]
    code, bits = TO_DL[t.v.dtype]
    d.dtype.code, d.dtype.bits, d.dtype.lanes = code, bits, 1
    d.device.device_type, d.device.device_id = DL_HOST, 0
    d.data, d.ndim, d.byte_offset = t.v.data, t.v.ndim, 0
    return 0


def to_dlpack(Tensor t not None, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule that keeps the tensor's memory alive; versioned where the caller understands that."""
    cdef tf_dl_managed *m
    cdef tf_dl_versioned *v
    check_readable(t, "dlpack")
    if t.v.backend != TF_CPU:
        raise BufferError(f"dlpack: the tensor is on {t.device}; use cpu() first")
    if t.needs:
        raise BufferError("dlpack: the tensor requires grad; use detach() first")
    if dl_device is not None and tuple(dl_device) != (DL_HOST, 0):
        raise BufferError(f"dlpack: the tensor is on the host, {tuple(dl_device)} was asked for")
    t = t.clone() if copy else t
    for k in range(t.v.ndim):
        if t.v.strides[k] < 0 and t.v.shape[k] > 1:  # on these some consumers end the process
            raise BufferError(f"dlpack: the tensor has a negative stride in dimension {k}; use contiguous() first")
    readonly = t.storage.readonly or t.v.flags & TF_READONLY
    # the capsule holds a tensor of its own: the caller's may get other memory by `data = ...`
    t = given_away(t, "dlpack")
    if max_version is None or max_version[0] < 1:
        if readonly:
            raise BufferError("dlpack: the tensor is read-only, which only the versioned form can say; clone() it")
        m = <tf_dl_managed *>taken(sizeof(tf_dl_managed))
        describe(&m.dl_tensor, t, <int64_t *>(m + 1))
        m.manager_ctx, m.deleter = <void *>t, dl_delete
        Py_INCREF(t)
        return PyCapsule_New(m, "dltensor", <void (*)(object) noexcept>capsule_delete)
    v = <tf_dl_versioned *>taken(sizeof(tf_dl_versioned))
    describe(&v.dl_tensor, t, <int64_t *>(v + 1))
    v.major, v.minor = 1, 0
    v.flags = (DL_READONLY if readonly else 0) | (DL_COPIED if copy else 0)
    v.manager_ctx, v.deleter = <void *>t, dl_delete_versioned
    Py_INCREF(t)
    return PyCapsule_New(v, "dltensor_versioned", <void (*)(object) noexcept>capsule_delete)


def dlpack_device(Tensor t not None):
    """(device type, number) in DLPack's terms."""
    if t.v.backend != TF_CPU:
        raise BufferError(f"dlpack: the tensor is on {t.device}; use cpu() first")
    return DL_HOST, 0


@cython.binding(False)
cdef class DlOwner:
    """Keeps a foreign DLPack tensor alive."""
    cdef tf_dl_managed *managed
    cdef tf_dl_versioned *versioned

    def __dealloc__(self):
        if self.managed != NULL and self.managed.deleter != NULL:
            self.managed.deleter(self.managed)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


cdef Tensor window_of(const tf_dl_tensor *d):
    """A tensor with DLPack's numbers, without storage yet."""
    cdef Tensor t = Tensor.__new__(Tensor)
    cdef int i
    key = (d.dtype.code, d.dtype.bits)
    if d.device.device_type != DL_HOST:
        raise BufferError(f"from_dlpack: device type {d.device.device_type} is not the host's memory")
    if key not in FROM_DL or d.dtype.lanes != 1:
        raise TypeError(f"from_dlpack: element type (code, bits) {key} is not supported")
    if d.ndim > TF_MAXDIM:
        raise ValueError(f"from_dlpack: {d.ndim} dimensions, at most {TF_MAXDIM} are supported")
    t.v.dtype, t.v.ndim = FROM_DL[key], d.ndim
    for i in range(t.v.ndim):
        t.v.shape[i] = d.shape[i]
    dense_strides(&t.v)
    if d.strides != NULL:
        for i in range(t.v.ndim):
            t.v.strides[i] = d.strides[i]
    t.v.data = <char *>d.data + d.byte_offset
    if t.v.size and <size_t>t.v.data % tf_itemsize[t.v.dtype]:
        raise ValueError("from_dlpack: the memory is not aligned to its elements; copy it first")
    return t


cdef object capsule_of(object source):
    if not hasattr(source, "__dlpack__"):
        return source
    try:
        return source.__dlpack__(max_version=(1, 0))
    except TypeError:                 # exporters older than DLPack 1.0
        return source.__dlpack__()


def from_dlpack(source):
    """A tensor over the memory of an object with `__dlpack__`, or of a capsule; read-only stays read-only.

    >>> import numpy, tinyfin
    >>> tinyfin.from_dlpack(numpy.ones(2)).tolist()
    [1.0, 1.0]
    """
    cdef tf_dl_versioned *v
    cdef tf_dl_managed *m
    cdef DlOwner owner = DlOwner.__new__(DlOwner)
    cdef Tensor t
    cdef bint readonly = False
    capsule = capsule_of(source)
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        v = <tf_dl_versioned *>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        if v.major != 1:
            raise BufferError(f"from_dlpack: DLPack version {v.major}.{v.minor} is not known, expected 1.x")
        t = window_of(&v.dl_tensor)
        readonly = v.flags & DL_READONLY != 0
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        owner.versioned = v
    elif PyCapsule_IsValid(capsule, "dltensor"):
        m = <tf_dl_managed *>PyCapsule_GetPointer(capsule, "dltensor")
        t = window_of(&m.dl_tensor)
        PyCapsule_SetName(capsule, "used_dltensor")
        owner.managed = m
    else:
        raise TypeError(f"from_dlpack: {type(source).__name__} gives no unused DLPack capsule")
    t.storage = borrow(owner, t.v.data, 0, readonly)
    t.v.flags = TF_READONLY if readonly else 0
    count(t, "from_dlpack")
    cover(t.storage, &t.v)
    return t
