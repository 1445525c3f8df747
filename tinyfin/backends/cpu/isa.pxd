"""The tables of inner loops for the instruction set chosen at import."""
cdef const void *isa_table(const char *name) except NULL
