"""The instruction set of this process: chosen once, from what the processor has and TINYFIN_ISA."""
import sys

from tinyfin.config import ISA

cdef extern from "isa_choice.h" nogil:
    int tf_isa_count()
    const char *tf_isa_name(int k)
    int tf_isa_supported(int k)
    int tf_isa_chosen()
    int tf_isa_choose(const char *wanted)
    const void *tf_isa_table(const char *name)


cdef extern from "rows_hash.h":
    unsigned int TF_ROWS_HASH

ROWS_HASH = TF_ROWS_HASH
"""Of the rows whose loops this build holds: ops.row.hash_of_expressions when it was made."""


cdef const void *isa_table(const char *name) except NULL:
    cdef const void *table = tf_isa_table(name)
    if table == NULL:
        raise ImportError(f"tinyfin: this build has no table of loops named {name.decode()}")
    return table


def isa_list():
    """(name, whether this processor has it) of each instruction set in this build, best first."""
    return [(tf_isa_name(k).decode(), bool(tf_isa_supported(k))) for k in range(tf_isa_count())]


def isa_name():
    """The instruction set in use."""
    return tf_isa_name(tf_isa_chosen()).decode()


def _choose(str wanted):
    if wanted:
        if tf_isa_choose(wanted.encode()):
            return
        names = ", ".join([n for n, ok in isa_list() if ok])
        sys.stderr.write(f"tinyfin: TINYFIN_ISA={wanted} is not available here (have: {names}); "
                         "using the best one\n")
    if not tf_isa_choose(NULL):
        raise ImportError("tinyfin: this build has no instruction set that the processor supports")


_choose(ISA)
