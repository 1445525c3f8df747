"""Sorted keys with their places, for cimport."""
from libc.stdint cimport int64_t, uint64_t

from tinyfin.core.abi cimport *

cdef object sorted_keys(const tf_view *where, uint64_t keys, int64_t lines, int64_t n, tf_call *call)
