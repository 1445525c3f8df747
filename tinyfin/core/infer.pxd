"""Types of shape rules, and how a module hands its functions to the table of operations."""
from cpython.pycapsule cimport PyCapsule_New

from tinyfin.core.abi cimport tf_attrs, tf_call, tf_kernel, tf_view

ctypedef int (*tf_rule)(const tf_view *const *inputs, int n, tf_view *const *outputs,
                        const tf_attrs *at, tf_call *call, object name) except -1


cdef inline object rule_capsule(tf_rule rule):
    return PyCapsule_New(<void *>rule, "tf_rule", NULL)


cdef inline object kernel_capsule(tf_kernel kernel):
    return PyCapsule_New(<void *>kernel, "tf_kernel", NULL)
