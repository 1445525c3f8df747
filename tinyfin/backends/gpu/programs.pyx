"""The programs that a device has made of modules so far, found at each dispatch: the base of all streams."""
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from tinyfin.backends.gpu.launch cimport TF_CONSTANTS, table_add, table_clear, table_find, tf_launch


@cython.binding(False)
cdef class Programs:
    """Programs of one device of an API, which is named in errors."""

    def __cinit__(self):
        self.flush = -1

    def __dealloc__(self):
        table_clear(&self.table)

    def take(self, make):
        """A maker of programs, (shader, constants) -> handle; those made before are forgotten."""
        table_clear(&self.table)
        self.make = make

    cdef uint64_t handle_of(self, tf_launch *l) except 0:
        """The program of a dispatch, made where the table lacks it."""
        cdef uint64_t handle
        cdef int i
        if l.deterministic:
            if self.flush < 0:
                raise RuntimeError(f"{self.api}: {self.name} gives other bits than the CPU (see 'tinyfin shaders "
                                   "validate'); deterministic mode refuses it")
            l.key.constants[0] = <uint32_t>self.flush
        handle = table_find(&self.table, &l.key)
        if not handle:
            handle = self.make(l.key.shader, tuple([l.key.constants[i] for i in range(TF_CONSTANTS)]))
            if not handle or not table_add(&self.table, &l.key, handle):
                raise MemoryError(f"{self.api}: {self.name}: no program for shader {l.key.shader}")
        return handle

    cdef object failure(self, str text, bint memory, bint forked):
        """The exception for what ended a stream; a fork has ended nothing of its parent's."""
        if forked:
            return RuntimeError(f"{self.api}: {self.name}: {text}")
        if memory:
            return MemoryError(f"{self.api}: {self.name}: {text}")
        return RuntimeError(f"{self.api}: {self.name}: {text}; tensors there are lost, other backends go on")
