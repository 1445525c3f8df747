"""Results over axes for cimport: which axes stay and go, and the dispatches that shaders/reduce.glsl needs."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tinyfin.backends.gpu.launch cimport tf_launch
from tinyfin.core.abi cimport tf_call, tf_view

cdef enum:
    ROWS, QUADS, COLUMNS, FEW, ACROSS   # layouts of reduce.glsl
    WALKS = 8                           # added where several axes go
    BLOCK = 2048                        # elements of a block
    JOINED = 16                         # blocks of a row that one work group joins, elements of a row of FEW


cdef struct Reduced:
    int kept, axes                      # axes that stay, all axes
    int64_t shape[8]
    int64_t strides[8]                  # in elements
    int64_t outs, n                     # results, and elements of each
    int64_t blocks, teams
    uint32_t layout


cdef struct Memory:                     # of one side of a dispatch; address 0: the tensor itself
    uint64_t address, nbytes


ctypedef void (*pack_fn)(tf_launch *l, const void *of, const Reduced *r, Memory source, Memory target) noexcept

cdef bint reduced(Reduced *r, const tf_view *x, unsigned int mask) noexcept nogil
cdef void across(Reduced *r, const tf_view *x) noexcept nogil
cdef bint at_once(const Reduced *r) noexcept nogil
cdef int run_levels(Reduced *r, const tf_view *x, uint32_t module, int item, pack_fn pack, const void *of,
                    tf_call *call) noexcept
cdef int join_parts(uint64_t address, int64_t parts, const tf_view *out, tf_call *call) noexcept
