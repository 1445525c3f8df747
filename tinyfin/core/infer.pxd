"""Types of shape rules, and how a module hands its functions to the table of operations."""
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from tinyfin.core.abi cimport tf_attrs, tf_call, tf_kernel, tf_view

cdef enum:
    FLOATING = 2        # category of the floating-point dtypes

ctypedef int (*tf_rule)(const tf_view *const *inputs, int n, tf_view *const *outputs,
                        const tf_attrs *at, tf_call *call, object name) except -1


cdef int promote_inputs(const tf_view *const *inputs, int n, object name) except -1


cdef inline object rule_capsule(tf_rule rule):
    return PyCapsule_New(<void *>rule, "tf_rule", NULL)


cdef inline object shape_of(const tf_view *v):
    """The view's shape as a tuple, for messages."""
    cdef int i
    return tuple([v.shape[i] for i in range(v.ndim)])


cdef inline void like(tf_view *y, const tf_view *x, int dtype) noexcept:
    """y gets x's shape, and the dtype."""
    y.ndim, y.dtype = x.ndim, dtype
    memcpy(y.shape, x.shape, sizeof(x.shape))


cdef inline int wrapped(int64_t dim, int ndim, object op, object argument) except -1:
    """A dimension counted from the front; a tensor without dimensions takes 0 and -1."""
    cdef int n = ndim if ndim > 0 else 1
    if dim < -n or dim >= n:
        raise IndexError(f"{op}: {argument} {dim} is out of range, expected {-n} to {n - 1}")
    return <int>(dim + n if dim < 0 else dim)


cdef inline object kernel_capsule(tf_kernel kernel):
    return PyCapsule_New(<void *>kernel, "tf_kernel", NULL)
