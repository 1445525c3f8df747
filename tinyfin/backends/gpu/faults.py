"""Bad indices that kernels met: told when the host next waits for the device."""

from __future__ import annotations

import struct

from tinyfin.backends.gpu.slabs import to_device, to_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tinyfin.backends.gpu.slabs import Slab

FAULT_BYTES = 256
OPERATIONS = (
    "",
    "gather",
    "scatter",
    "scatter_add",
    "index_select",
    "index_add",
    "index_copy",
    "index_fill",
    "embedding",
    "index",
    "index_put",
    "nll_loss",
    "cross_entropy",
    "take",
    "pool_gather",
    "check_not_nan",
    "check_unit_interval",
    "pool_scatter",
)
"""What a body's first word for fault.glsl means."""


class Faults:
    """The record of one device: which operation, the value, the size that it had to be below."""

    def __init__(self, slab: Slab) -> None:
        self.slab = slab
        to_device(slab.host, bytes(FAULT_BYTES))

    def check(self, device: str) -> None:
        """Raises what was found, and forgets it."""
        record = bytearray(16)
        to_host(record, self.slab.host)
        code, value, size = struct.unpack("<Iqi", record)
        if code:
            to_device(self.slab.host, bytes(16))
            name = OPERATIONS[code] if code < len(OPERATIONS) else "a kernel"
            raise IndexError(
                f"{name}: index {value} is out of range for size {size}; found when {device} was "
                "waited for, so an operation before this one is to blame"
            )
