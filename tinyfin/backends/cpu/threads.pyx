"""Work splitting and scratch memory of all CPU kernels: the only place that knows threads."""
import os

from libc.stdint cimport int64_t

from tinyfin.config import SCRATCH_BYTES, THREADS
from tinyfin.core.cgroup import cores

cdef extern from "scratch.h" nogil:
    void *tf_scratch_push(size_t bytes)
    void tf_scratch_pop(size_t bytes)
    void tf_scratch_release()
    size_t tf_scratch_kept(int *threads)
    void tf_scratch_child()
    size_t tf_scratch_limit

cdef extern from "team.h" nogil:
    void tf_team_run(int64_t n, double cost, tf_task fn, void *ctx, int team)
    void tf_team_child()

WATCHERS = []
"""Functions that are called with each new number of threads."""

cdef int TEAM = 1
cdef double ALONE_NS = 4000.0   # estimated work below this is never shared


cdef void parallel_for(int64_t n, double cost_ns, tf_task fn, void *ctx) noexcept nogil:
    cdef int64_t i
    if n <= 1 or TEAM == 1 or cost_ns < ALONE_NS:
        for i in range(n):
            fn(i, ctx)
    else:
        tf_team_run(n, cost_ns, fn, ctx, TEAM)


cdef void *scratch_push(size_t bytes) noexcept nogil:
    return tf_scratch_push(bytes)


cdef void scratch_pop(size_t bytes) noexcept nogil:
    tf_scratch_pop(bytes)


cdef int team_size() noexcept nogil:
    """How many threads share a parallel_for."""
    return TEAM


def available_cores():
    """Cores that this process may use: affinity and control group."""
    try:
        n = len(os.sched_getaffinity(0))
    except AttributeError:
        n = os.cpu_count() or 1
    granted = cores()
    return n if granted is None else min(n, granted)


def set_num_threads(n):
    """Sets how many threads CPU kernels use; results never depend on it."""
    global TEAM
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"set_num_threads: n is {n!r}, expected an integer")
    if not 1 <= n <= 1024:
        raise RuntimeError(f"set_num_threads: n is {n}, expected 1 to 1024")
    TEAM = n
    for told in WATCHERS:
        told(n)


def get_num_threads():
    """How many threads CPU kernels use."""
    return TEAM


def release_scratch():
    """Gives back the memory for temporaries of kernels that threads keep between them, workers' and callers' alike."""
    tf_scratch_release()


def kept_scratch():
    """(bytes, threads): what release_scratch would give back."""
    cdef int threads
    cdef size_t total = tf_scratch_kept(&threads)
    return total, threads


def scratch_limit():
    """Most bytes of kernel temporaries per thread."""
    return tf_scratch_limit


TEAM = min(THREADS or available_cores(), 1024)
tf_scratch_limit = SCRATCH_BYTES
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: (tf_team_child(), tf_scratch_child()))
