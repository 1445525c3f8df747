"""dtype objects and promotion for cimport."""
from libc.stdint cimport uint8_t


cdef class DType:
    cdef readonly str name
    cdef readonly int id, itemsize
    cdef readonly bint is_floating_point, is_complex, is_signed


cdef uint8_t promoted[15][15]
cdef uint8_t category[15]
cdef int DEFAULT_FLOAT[1]     # id of the default floating-point dtype; an array, so that other modules see changes
cdef DType dtype_object(int id)
cdef int dtype_id(object value, object op) except -1
