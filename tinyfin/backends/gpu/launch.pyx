"""Dispatches: kernels of all families pack them here, each GPU backend launches them its own way."""
from cpython.ref cimport PyObject

from tinyfin.core.errors import FAILED

cdef extern from *:
    """
    #ifdef _MSC_VER
    static __declspec(thread) int tf_own_record = -1;
    #else
    static __thread int tf_own_record = -1;
    #endif
    """
    int tf_own_record                # where this thread's bad indices are told; -1: nowhere yet

cdef enum:
    RECORDS = 64                     # of bad indices on each device, one for each thread
    RECORD = 16                      # bytes

cdef tf_launcher LAUNCHERS[TF_MAXBACKEND]
cdef PyObject *STREAMS[TF_MAXBACKEND][256]     # of the devices that were opened; KEPT owns them
cdef dict KEPT = {}
cdef uint32_t FEATURES[TF_MAXBACKEND][256]
cdef uint64_t FAULTS[TF_MAXBACKEND][256]
cdef unsigned char TOLD[TF_MAXBACKEND][256][RECORDS]    # whether a body that may tell ran since the record was read
cdef int64_t LAUNCHED[TF_MAXBACKEND][256]      # dispatches so far, as each stream counts them too
SCRATCH = {}
"""Slot -> function of (bytes, device number) that gives a block."""
TAKERS = []
"""The function that gives a thread its record (faults.py)."""


cdef int set_launcher(int slot, tf_launcher launcher) except -1:
    """What a backend does with a dispatch and the stream of its device."""
    LAUNCHERS[slot] = launcher
    return 0


cdef int launch(tf_launch *l, const tf_view *where, tf_call *call) noexcept:
    """Hands a dispatch to the device of a tensor; kernels give no exceptions, only TF_EDEVICE."""
    l.key.constants[1] = behind(l)
    try:
        LAUNCHERS[where.backend](STREAMS[where.backend][where.index], l)
    except BaseException as error:
        return failed(where, call, error)
    if not call.launched[1]:
        call.launched[0] = LAUNCHED[where.backend][where.index]
    LAUNCHED[where.backend][where.index] += 1
    call.launched[1] = LAUNCHED[where.backend][where.index]
    return TF_OK


cdef int failed(const tf_view *where, tf_call *call, object error) noexcept:
    """The caller of the kernel raises what is kept for it."""
    FAILED[where.backend, where.index] = error
    call.detail[0], call.detail[1] = where.backend, where.index
    return TF_EDEVICE


cdef object scratch(const tf_view *where, uint64_t nbytes):
    """Memory for one call: its `block` is the address. What is recorded before it goes is done before others
    write there."""
    return SCRATCH[where.backend](nbytes, where.index)


cdef uint32_t features(const tf_view *where) noexcept nogil:
    """What the device of a tensor has, as bits HAS_..."""
    return FEATURES[where.backend][where.index]


cdef uint64_t fault_of(const tf_view *where) noexcept:
    """Address of this thread's record of bad indices on a tensor's device."""
    global tf_own_record
    if tf_own_record < 0:
        tf_own_record = TAKERS[0]()
    TOLD[where.backend][where.index][tf_own_record] = 1
    return FAULTS[where.backend][where.index] + RECORD * <uint64_t>tf_own_record


def own_record(int slot, unsigned char index):
    """This thread's record, where it may tell something of a device; else -1."""
    return tf_own_record if tf_own_record >= 0 and TOLD[slot][index][tf_own_record] else -1


def told(int slot, unsigned char index):
    """The records that may tell something of a device."""
    return [k for k in range(RECORDS) if TOLD[slot][index][k]]


def was_read(int slot, unsigned char index, unsigned char record):
    """A record tells nothing more."""
    TOLD[slot][index][record % RECORDS] = 0


def set_device(int slot, unsigned char index, stream, bint int64, bint float64, uint64_t fault, uint32_t cooperative=0,
               bint software=False):
    """Tells kernels a device's stream, what it has, and the address of its records of bad indices, four words each.

    cooperative: 1 for matrices of float16, 2 of bfloat16, 3 of both.
    """
    if not 0 <= slot < TF_MAXBACKEND:
        raise ValueError(f"set_device: slot {slot}, expected 0 to {TF_MAXBACKEND - 1}")
    FEATURES[slot][index] = (HAS_INT64 * int64 | HAS_FLOAT64 * (float64 and int64) | HAS_COOPERATIVE * (cooperative & 3)
                             | IS_SOFTWARE * software)
    FAULTS[slot][index] = fault
    KEPT[slot, index] = stream
    STREAMS[slot][index] = <PyObject *>stream
    LAUNCHED[slot][index] = 0
    memset(TOLD[slot][index], 0, RECORDS)


def forget_float64(int slot, unsigned char index):
    """A device does not compute in float64: the CPU does."""
    FEATURES[slot][index] &= ~<uint32_t>HAS_FLOAT64
