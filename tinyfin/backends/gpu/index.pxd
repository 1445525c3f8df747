"""Indices as offsets, and writes of what they point to, for cimport."""
from libc.stdint cimport int64_t, uint64_t

from tinyfin.backends.gpu.axes cimport Axes
from tinyfin.core.abi cimport *

cdef enum:                          # operations that a bad index is told of, as in faults.py
    OF_GATHER = 1
    OF_SCATTER, OF_SCATTER_ADD, OF_SELECT, OF_ADD, OF_COPY, OF_FILL, OF_EMBEDDING, OF_INDEX, OF_PUT


cdef struct Runs:                   # slices that are written where indices point
    Axes lines                      # sets of slices; operand 0: the result, 1: the source
    Axes after                      # a slice; operand 0: the result
    int64_t n, inner                # indices of a line, elements of a slice
    int64_t step, inner_step        # distances in the source of slices, of a slice's elements
    bint adding, shared             # shared: all lines have the same indices
    bint apart                      # no two indices of a line point to the same place, or what they write is equal
    double alpha

cdef int add_offsets(uint64_t offsets, const tf_view *index, const Axes *walk, int64_t size, int64_t step, bint wraps,
                     bint further, int operation, tf_call *call) noexcept
cdef int write_runs(Runs *r, const tf_view *y, const tf_view *v, uint64_t offsets, tf_call *call) except -1
