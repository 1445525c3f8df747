"""Programs for cimport."""
from libc.stdint cimport uint64_t

from tinyfin.backends.gpu.launch cimport tf_launch, tf_table

cdef class Programs:
    cdef readonly str api, name
    cdef tf_table table              # key -> handle
    cdef readonly object make        # function of (shader, constants) that gives a handle
    cdef public int flush            # the constant FLUSH of deterministic calls; -1: such calls are refused
    cdef uint64_t handle_of(self, tf_launch *l) except 0
    cdef object failure(self, str text, bint memory, bint forked)
