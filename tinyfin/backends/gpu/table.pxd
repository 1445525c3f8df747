"""Words in device memory (table.comp), for what does not fit into the parameters of a dispatch."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *

cdef enum:
    TABLE = 64          # words that a table holds
    PIECE = 24          # words of one dispatch


cdef struct Table:
    int n
    int64_t word[TABLE]


cdef inline void entry(Table *t, int64_t value) noexcept nogil:
    """The next word."""
    t.word[t.n] = value
    t.n += 1


cdef inline int put_table(const Table *t, int module, uint64_t address, const tf_view *where, tf_call *call) noexcept:
    """Writes the table to memory of a tensor's device; `module` is the number of `table`."""
    cdef tf_launch l
    cdef int first, k, rc
    for first in range(0, t.n, PIECE):
        begin(&l, module, call)
        bytes_of(&l, address, 4 * <uint64_t>t.n, True)
        word(&l, first)
        word(&l, min(PIECE, t.n - first))
        for k in range(PIECE):
            word(&l, t.word[first + k] if first + k < t.n else 0)
        spread(&l, 1)
        rc = launch(&l, where, call)
        if rc != TF_OK:
            return rc
    return TF_OK
