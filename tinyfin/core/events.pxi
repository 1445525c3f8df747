"""Notes of kernels' calls, for the profiler. Part of tensor.pyx."""
from _thread import get_ident
from time import perf_counter_ns

cdef int NOTING = 0            # 1: calls of kernels are noted, 2: with the shapes of their arguments
cdef list EVENTS = []


def note_calls(int level):
    """Begins (1; 2: with shapes) or ends (0) noting calls of kernels, in all threads; gives the level before."""
    global NOTING
    old, NOTING = NOTING, level
    return old


def note(str name, int64_t start, int64_t end):
    """Adds a range of the caller's: nanoseconds of time.perf_counter_ns()."""
    if NOTING:
        EVENTS.append((name, get_ident(), start, end, -1, 0, 0, 0, 0, None))


def take_notes():
    """What was noted since the last time: (name, thread, start and end in nanoseconds, slot of the backend or -1 for a
    range, device number, first dispatch on the device, the one behind the last, bytes of the results, shapes).
    """
    found = EVENTS[:]
    del EVENTS[:len(found)]
    return found


cdef int launch_noted(Op op, const tf_view **ins, int n, tf_view **outs, const tf_attrs *at,
                      tf_call *call, uint32_t bits, int backend, int64_t work) noexcept:
    """Runs the kernel and adds it to the notes."""
    cdef int rc, i, where
    cdef int64_t nbytes = 0
    start = perf_counter_ns()
    rc = launch_now(op, ins, n, outs, at, call, bits, backend, work)
    end = perf_counter_ns()
    if op.mutates:                  # rows that write their inputs
        where = ins[0].index
        for i in range(n):
            if op.mutates[i]:
                nbytes += ins[i].size * tf_itemsize[ins[i].dtype]
    else:
        where = outs[0].index
        for i in range(op.nout):
            nbytes += outs[i].size * tf_itemsize[outs[i].dtype]
    shapes = tuple([shape_tuple(ins[i]) for i in range(n)]) if NOTING > 1 else None
    if not rc:
        EVENTS.append((op.name, get_ident(), start, end, backend, where, call.launched[0], call.launched[1],
                       nbytes, shapes))
    return rc
