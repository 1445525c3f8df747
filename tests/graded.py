"""Which subjects have derivatives, and which samples are differentiated."""

import samples

from tinyfin.ops import table

CONSTANT = {"check_not_nan", "check_unit_interval", "share_max", "floor_divide", "trunc_divide"}
"""Rows whose floating results have no derivative: nothing may be recorded."""


def graded(name):
    """The samples that can be differentiated."""
    row = table.TABLE.get(name)
    if row is not None and (row.mutates or not set(row.dtypes) & set("fany")):
        return []
    return [s for s in samples.samples_of(name) if s.grad]
