"""Attributes of operations: Python values to slots of tf_attrs and back."""
from libc.stdint cimport int64_t

from tinyfin.core.abi cimport tf_attrs


cdef class Attr:
    cdef readonly str name, kind
    cdef int code, islot, fslot
    cdef readonly object default
    cdef readonly bint required
    cdef readonly tuple choices

    cdef int parse(self, object value, int ndim, tf_attrs *at, str op) except -1
    cdef object as_bool(self, value, str op)
    cdef double as_float(self, value, str op) except? -1e308
    cdef int parse_ints3(self, value, int64_t *i, str op) except -1
    cdef int parse_dims(self, value, int ndim, int64_t *i, str op) except -1
    cdef int parse_shape(self, value, int64_t *i, str op) except -1
    cdef object decode(self, const tf_attrs *at)
