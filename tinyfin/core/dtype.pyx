# cython: binding=False
# Methods are C descriptors, which check the type of self; bound functions of Cython do not.
"""Element types: ids, sizes and PyTorch's promotion table."""
cimport cython
from tinyfin.core.abi cimport *


@cython.binding(False)
cdef class DType:
    """The type of a tensor's elements; the objects are `tinyfin.float32` and so on.

    >>> import tinyfin
    >>> tinyfin.float32.itemsize
    4
    """

    def __init__(self):
        raise TypeError("dtype: there are no other dtypes than tinyfin.float32 and its kin")

    def __repr__(self):
        return f"tinyfin.{self.name}"

    def __reduce__(self):
        return dtype_by_name, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def to_complex(self):
        """The complex type of this precision; reserved, so always refused."""
        raise NotImplementedError(f"{self.name}: complex tensors are reserved, not built yet")


cdef list OBJECTS = []
cdef dict BY_NAME = {}


def _make(name, id, is_float, is_complex, is_signed):
    cdef DType d = DType.__new__(DType)
    d.name, d.id, d.itemsize = name, id, tf_itemsize[id]
    d.is_floating_point, d.is_complex, d.is_signed = is_float, is_complex, is_signed
    OBJECTS.append(d)
    BY_NAME[name] = d


for _i, (_name, _kind) in enumerate([
        ("bool", "b"), ("uint8", "u"), ("int8", "i"), ("int16", "i"), ("int32", "i"),
        ("int64", "i"), ("float16", "f"), ("bfloat16", "f"), ("float32", "f"), ("float64", "f"),
        ("complex64", "c"), ("complex128", "c"), ("uint16", "u"), ("uint32", "u"),
        ("uint64", "u")]):
    _make(_name, _i, _kind == "f", _kind == "c", _kind in "ifc")
    category[_i] = "buifc".index(_kind) - (1 if _kind in "ifc" else 0)


cdef int promote_pair(int a, int b):
    """PyTorch's result type of two tensors with dimensions."""
    cdef DType x = OBJECTS[a], y = OBJECTS[b]
    if a == b:
        return a
    if category[a] != category[b]:
        if category[a] > category[b]:
            if x.is_complex and b == TF_F64:
                return TF_C128
            return a
        return promote_pair(b, a)
    if x.is_complex:
        return TF_C128
    if x.is_floating_point:
        if x.itemsize == y.itemsize:
            return TF_F32                       # float16 with bfloat16
        return a if x.itemsize > y.itemsize else b
    if x.is_signed == y.is_signed:
        return a if x.itemsize > y.itemsize else b
    if y.is_signed:
        return promote_pair(b, a)
    if x.itemsize > y.itemsize:                 # x is signed and wide enough
        return a
    return {1: TF_I16, 2: TF_I32}.get(y.itemsize, TF_I64)


for _i in range(15):
    for _j in range(15):
        promoted[_i][_j] = promote_pair(_i, _j)


cdef DType dtype_object(int id):
    return <DType>OBJECTS[id]


def dtype_by_name(name):
    """The dtype object called `name`."""
    return BY_NAME[name]


def all_dtypes():
    """Every dtype by name, reserved ones included."""
    return dict(BY_NAME)


def as_dtype(str name, value):
    """The dtype object that a user's dtype, or Python's float, int or bool, stands for."""
    return dtype_object(dtype_id(value, name))


cdef int dtype_id(object value, object op) except -1:
    if isinstance(value, DType):
        if (<DType>value).id >= TF_C64:
            raise NotImplementedError(f"{op}: dtype {value} is reserved, no kernel takes it yet")
        return (<DType>value).id
    if value is float:
        return TF_F64                           # what a Python float is, whatever the default dtype
    if value is int:
        return TF_I64
    if value is bool:
        return TF_BOOL
    if value is complex:
        raise TypeError(f"{op}: dtype is complex, but there are no complex tensors yet; expected a tinyfin dtype such "
                        "as tinyfin.float32")
    raise TypeError(f"{op}: dtype is {value!r}, expected a tinyfin dtype such as tinyfin.float32")


DEFAULT_FLOAT[0] = TF_F32


cpdef int default_float():
    """Id of the dtype that Python floats and integer inputs of float operations take."""
    return DEFAULT_FLOAT[0]


def get_default_dtype():
    """The floating-point dtype of new tensors made from Python numbers."""
    return dtype_object(DEFAULT_FLOAT[0])


def set_default_dtype(d):
    """Sets the floating-point dtype of new tensors made from Python numbers; `d` must be floating point."""
    if not isinstance(d, DType) or not d.is_floating_point:
        raise TypeError(f"set_default_dtype: d is {d!r}, expected a floating-point dtype")
    DEFAULT_FLOAT[0] = (<DType>d).id


def promote_types(type1, type2):
    """The dtype of a result computed from `type1` and `type2`.

    >>> import tinyfin
    >>> tinyfin.promote_types(tinyfin.uint8, tinyfin.int8)
    tinyfin.int16
    """
    return dtype_object(promoted[(<DType?>type1).id][(<DType?>type2).id])
