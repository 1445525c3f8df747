"""Attributes of operations: Python values to slots of tf_attrs and back."""
cimport cython
from libc.stdint cimport INT64_MIN, int64_t

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport dtype_id, dtype_object
from tinyfin.core.infer cimport wrapped

cdef extern from "Python.h":
    bint PyLong_CheckExact(object o)
    int64_t PyLong_AsLongLongAndOverflow(object o, int *overflow) except? -1

cdef enum:
    INT, BOOL, DIM, DIM1, DTYPE, CHOICE, OPTINT, FLOAT, OPTFLOAT, INTS3, DIMS, SHAPE, SPEC

cdef dict CODES = {
    "int": INT, "bool": BOOL, "dim": DIM, "dim1": DIM1, "dtype": DTYPE, "choice": CHOICE,
    "optint": OPTINT, "float": FLOAT, "optfloat": OPTFLOAT, "ints3": INTS3, "dims": DIMS,
    "shape": SHAPE, "spec": SPEC}


cdef int64_t as_int(object value, str op, str name) except? -1:
    cdef int beyond = 0
    cdef int64_t number
    if PyLong_CheckExact(value):
        number = PyLong_AsLongLongAndOverflow(value, &beyond)
        if beyond:
            raise OverflowError(f"{op}: {name} is {value}, which does not fit 64 bits")
        return number
    try:
        value = value.__index__()
    except AttributeError:
        raise TypeError(f"{op}: {name} is {value!r}, expected an integer") from None
    return as_int(value, op, name) if type(value) is int else value


def wrap(str name, dim, int ndim):
    """dim as 0 <= dim < ndim, for functions composed in Python."""
    if isinstance(dim, bool):
        raise TypeError(f"{name}: dim is {dim!r}, expected an integer")
    return wrap_dim(dim, ndim, name, "dim")


cdef int wrap_dim(object value, int ndim, str op, str name) except -1:
    return wrapped(as_int(value, op, name), ndim, op, name)


@cython.binding(False)
cdef class Attr:
    """One typed attribute, its default and its slots."""

    def __init__(self, str name, str kind, default, bint required, tuple choices, int islot, int fslot):
        self.name, self.kind, self.code = name, kind, CODES[kind]
        self.default, self.required, self.choices = default, required, choices
        self.islot, self.fslot = islot, fslot

    cdef int parse(self, object value, int ndim, tf_attrs *at, str op) except -1:
        cdef int64_t *i = &at.i[self.islot]
        cdef int code = self.code
        if code == DIM:
            i[0] = wrap_dim(value, ndim, op, self.name)
        elif code == DIM1:
            i[0] = wrap_dim(value, ndim + 1, op, self.name)
        elif code == INT:
            i[0] = as_int(value, op, self.name)
        elif code == BOOL:
            if value is not True and value is not False:
                value = self.as_bool(value, op)
            i[0] = value is True
        elif code == FLOAT:
            at.f[self.fslot] = self.as_float(value, op)
        elif code == DTYPE:
            i[0] = -1 if value is None else dtype_id(value, op)
        elif code == OPTINT:
            i[0] = INT64_MIN if value is None else as_int(value, op, self.name)
        elif code == OPTFLOAT:
            i[0] = value is not None
            at.f[self.fslot] = 0.0 if value is None else self.as_float(value, op)
        elif code == CHOICE:
            if value not in self.choices:
                raise ValueError(f"{op}: {self.name} is {value!r}, expected one of "
                                 f"{', '.join(map(repr, self.choices))}")
            i[0] = self.choices.index(value)
        elif code == INTS3:
            self.parse_ints3(value, i, op)
        elif code == DIMS:
            self.parse_dims(value, ndim, i, op)
        elif code == SHAPE:
            self.parse_shape(self.default if value is None and not self.required else value, i, op)
        else:
            if len(value) != 25:
                raise ValueError(f"{op}: {self.name} has {len(value)} entries, expected 25")
            for k, v in enumerate(value):
                i[k] = v
        return 0

    cdef object as_bool(self, value, str op):
        if isinstance(value, int) and 0 <= value <= 1 or type(value).__name__ in ("bool_", "bool"):
            return bool(value)
        raise TypeError(f"{op}: {self.name} is {value!r}, expected True or False")

    cdef double as_float(self, value, str op) except? -1e308:
        if isinstance(value, (float, int)):
            return value
        if isinstance(value, str) or not hasattr(value, "__float__"):
            raise TypeError(f"{op}: {self.name} is {value!r}, expected a number")
        return float(value)

    cdef int parse_ints3(self, value, int64_t *i, str op) except -1:
        cdef int k, n
        if isinstance(value, (tuple, list)):
            n = len(value)
            if not 1 <= n <= 3:
                raise ValueError(f"{op}: {self.name} is {value!r}, expected one to three integers")
            for k in range(3):
                i[k] = as_int(value[k if k < n else n - 1], op, self.name)
        else:
            i[0] = i[1] = i[2] = as_int(value, op, self.name)
        return 0

    cdef int parse_dims(self, value, int ndim, int64_t *i, str op) except -1:
        cdef int k, n
        cdef int seen = 0
        if value is None:
            i[0] = ndim
            for k in range(ndim):
                i[1 + k] = k
            return 0
        if not isinstance(value, (tuple, list)):
            i[0] = 1 if ndim else 0
            i[1] = wrap_dim(value, ndim, op, self.name)
            return 0
        n = len(value)
        if n > max(ndim, 1):
            raise RuntimeError(f"{op}: {self.name} is {tuple(value)}, but the tensor has {ndim} dimensions")
        i[0] = n if ndim else 0
        for k in range(n):
            i[1 + k] = wrap_dim(value[k], ndim, op, self.name)
            if seen >> i[1 + k] & 1:
                raise RuntimeError(f"{op}: dim {i[1 + k]} appears twice in {self.name} {tuple(value)}")
            seen |= 1 << i[1 + k]
        return 0

    cdef int parse_shape(self, value, int64_t *i, str op) except -1:
        cdef int k, n
        if not isinstance(value, (tuple, list)):
            value = (value,)
        n = len(value)
        if n > TF_MAXDIM:
            raise ValueError(f"{op}: {self.name} has {n} dimensions, at most {TF_MAXDIM} are supported")
        i[0] = n
        for k in range(n):
            i[1 + k] = as_int(value[k], op, self.name)
        return 0

    cdef object decode(self, const tf_attrs *at):
        cdef const int64_t *i = &at.i[self.islot]
        cdef int code = self.code
        if code == DIM or code == DIM1 or code == INT:
            return i[0]
        if code == BOOL:
            return i[0] != 0
        if code == FLOAT:
            return at.f[self.fslot]
        if code == DTYPE:
            return None if i[0] < 0 else dtype_object(<int>i[0])
        if code == OPTINT:
            return None if i[0] == INT64_MIN else i[0]
        if code == OPTFLOAT:
            return at.f[self.fslot] if i[0] else None
        if code == CHOICE:
            return self.choices[i[0]]
        if code == INTS3:
            return (i[0], i[1], i[2])
        if code == SPEC:
            return tuple([at.i[self.islot + k] for k in range(25)])
        return tuple([at.i[self.islot + 1 + k] for k in range(i[0])])
