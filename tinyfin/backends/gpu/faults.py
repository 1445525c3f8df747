"""Bad indices and values that kernels met: told when the host next waits for the device."""

from __future__ import annotations

from tinyfin.backends.gpu.slabs import to_device, to_host
from tinyfin.core.errors import IndexOutOfRange, out_of_domain
from tinyfin.ops.row import CHECKED

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
DOMAINS = ("check_unit_interval", "check_not_nan")
"""Operations that tell of a value, not of an index, as the CPU's kernels number them."""


class Faults:
    """The record of one device: which operation, the value, the size that it had to be below."""

    def __init__(self, slab: Slab) -> None:
        self.slab = slab
        self.put(bytes(FAULT_BYTES))

    def put(self, data: bytes) -> None:
        """Writes the record's first bytes."""
        to_device(self.slab.host, data)

    def get(self) -> bytes | bytearray:
        """The record's first 16 bytes, when all work is done."""
        record = bytearray(16)
        to_host(record, self.slab.host)
        return record

    def check(self, device: str) -> None:
        """Raises what was found, and forgets it."""
        import struct

        code, value, size = struct.unpack("<Iqi", self.get())
        if code:
            self.put(bytes(16))
            name = OPERATIONS[code] if code < len(OPERATIONS) else "a kernel"
            error: Exception = IndexOutOfRange(
                f"{name}: index {value} is out of range for size {size}"
            )
            if name in DOMAINS:
                error = outside(name, value, size)
            raise type(error)(
                f"{error}; found when {device} was waited for, so an operation before this one is to blame"
            )


def outside(name: str, value: int, argument: int) -> Exception:
    """The CPU's error for a value that must not be, of which a kernel gives the bits as float64."""
    import struct

    (number,) = struct.unpack("<d", struct.pack("<q", value))
    return out_of_domain(name, CHECKED[argument], number, DOMAINS.index(name))
