"""What upper floors ask about tensors: their storage, their geometry. Part of tensor.pyx."""


def empty_tensor(shape, DType dtype not None, int backend, int index, str label="empty"):
    """An uninitialised tensor."""
    cdef int64_t sizes[8]
    cdef int i, n = len(shape)
    if n > TF_MAXDIM:
        raise ValueError(f"{label}: {n} dimensions asked for, at most {TF_MAXDIM} are supported")
    if dtype.id >= TF_C64:
        raise NotImplementedError(f"{label}: dtype {dtype} is reserved, no kernel takes it yet")
    for i in range(n):
        sizes[i] = shape[i]
        if sizes[i] < 0:
            raise RuntimeError(f"{label}: size {sizes[i]} in dimension {i} of {tuple(shape)} is negative")
    return new_tensor(n, sizes, dtype.id, backend, index, label)


def block_of(Tensor t not None):
    """(what owns the bytes of the tensor's storage, their number)."""
    return t.storage.owner, t.storage.nbytes


def storage_of(Tensor t not None):
    """What holds the bytes: one object for all tensors that share them."""
    return t.storage


def result_dtype(a, b):
    """The dtype of an arithmetic result, by the rule of the elementwise rows."""
    cdef const tf_view *ins[2]
    cdef tf_view numbers[2]
    cdef int64_t slots[2]
    cdef int i
    for i, x in enumerate((a, b)):
        if isinstance(x, Tensor):
            ins[i] = &(<Tensor>x).v
        elif wrap_number(x, &numbers[i], &slots[i]):
            ins[i] = &numbers[i]
        else:
            raise TypeError(f"result_type: tensor{i + 1} is {x!r} of type {type(x).__name__}, expected a Tensor or a "
                            "number")
    return dtype_object(promote_inputs(ins, 2, "result_type"))


def row_major_overlapping(shape, stride):
    """(whether a geometry is row-major without gaps, whether its elements may share memory)."""
    cdef tf_view v
    cdef int i
    v.ndim, v.flags = len(shape), 0
    for i in range(v.ndim):
        v.shape[i], v.strides[i] = shape[i], stride[i]
    settle(&v)
    return v.flags & TF_CONTIGUOUS != 0, overlaps_itself(&v)


def reach_of(Tensor t not None):
    """(first, number) of the elements of its storage that the tensor's window spans."""
    cdef int64_t low, high
    if t.v.size == 0:
        return t.v.offset, 0
    extent(&t.v, &low, &high)
    return t.v.offset + low, high - low + 1


def window_on_host(Tensor t not None, Tensor base not None, int64_t first):
    """The window of a device's tensor over a host copy of its storage's elements from `first` on."""
    cdef Tensor out = alias_of(base)
    out.v = t.v
    out.v.backend, out.v.index, out.v.block = TF_CPU, 0, NULL
    out.v.offset = t.v.offset - first
    out.v.data = base.storage.data + out.v.offset * tf_itemsize[t.v.dtype]
    return out


@cython.final
cdef class Bytes:
    """The bytes of a tensor, for memoryviews, which keep it alive."""
    cdef Tensor t

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void *>self.t.v.data, self.t.v.size * tf_itemsize[self.t.v.dtype], 0, flags)


def memory_of(Tensor t not None):
    """The bytes of a contiguous tensor on the host, to read and write."""
    cdef Bytes exporter = Bytes.__new__(Bytes)
    check_readable(t, "memory_of")
    if t.v.backend != TF_CPU or not t.v.flags & TF_CONTIGUOUS:
        raise RuntimeError("memory_of: the tensor must be contiguous and on the cpu")
    expose(t, "memory_of")
    exporter.t = t
    return memoryview(exporter)
