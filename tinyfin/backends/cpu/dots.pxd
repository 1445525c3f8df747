"""Matrix products of few results, or of one result each."""
from tinyfin.backends.cpu.matmul_shape cimport Matmul

cdef bint cuts_chains(const Matmul *q) noexcept nogil
cdef int cut_chains(const Matmul *q) noexcept nogil
cdef bint are_dots(const Matmul *q) noexcept nogil
cdef int dots(Matmul *q) noexcept nogil
