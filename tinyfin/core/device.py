"""Device: where a tensor's elements are. Which backends exist is `backends/base.py`'s to know."""

from __future__ import annotations

SLOTS = {"cpu": 0, "null": 1, "vulkan": 2, "opengl": 3}
"""Device types and the slots of their kernels; 8 to 15 belong to third parties."""

NAMES = {slot: name for name, slot in SLOTS.items()}
MADE: dict[tuple[int, int], Device] = {}


class Device:
    """A device type and the number of the device: `cpu`, `vulkan:1`.

    >>> Device("cpu").type
    'cpu'
    """

    __slots__ = ("type", "index", "slot")

    type: str
    index: int | None
    slot: int

    def __init__(self, spec: DeviceLike, index: int | None = None) -> None:
        if isinstance(spec, Device):
            spec, index = spec.type, spec.index
        if not isinstance(spec, str):
            raise TypeError(
                f"device: got {spec!r} of type {type(spec).__name__}, expected a string like 'cpu'"
            )
        kind, colon, number = spec.partition(":")
        if colon:
            if index is not None:
                raise ValueError(f"device: the number is given twice, in {spec!r} and as {index}")
            if not number.isdigit():
                raise RuntimeError(
                    f"device: {spec!r} is not valid, expected a form such as 'cpu' or 'vulkan:1'"
                )
            index = int(number)
        kind = "cpu" if kind == "blas" else kind
        if kind not in SLOTS:
            raise RuntimeError(
                f"device: unknown device type {kind!r}, expected one of {', '.join(SLOTS)}{hint(kind)}"
            )
        if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
            raise TypeError(f"device: index is {index!r}, expected an integer")
        if index is not None and not 0 <= index < 256:
            raise ValueError(f"device: index {index} is out of range 0 to 255")
        if kind == "cpu" and index:
            raise RuntimeError(f"device: {kind}:{index} does not exist, the host is one device")
        self.type, self.index, self.slot = kind, index, SLOTS[kind]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return self.slot == other.slot and (self.index or 0) == (other.index or 0)

    def __hash__(self) -> int:
        return hash((self.slot, self.index or 0))

    def __repr__(self) -> str:
        if not hasattr(self, "slot"):  # a debugger shows what __init__ has refused
            return "device(not initialised)"
        return (
            f"device(type='{self.type}')"
            if self.index is None
            else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        if not hasattr(self, "slot"):
            return repr(self)
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple:
        return Device, (str(self),)


def hint(text: str) -> str:
    """What to write in place of a dtype's name, which strings are taken for nowhere."""
    from tinyfin.core.dtype import all_dtypes

    name = text.rpartition(".")[2]
    return f"; a dtype is given as tinyfin.{name}" if name in all_dtypes() else ""


def device_object(slot: int, index: int) -> Device:
    """The device of a kernel slot and number; the same object every time."""
    key = (slot, index)
    if key not in MADE:
        MADE[key] = Device(NAMES[slot], None if slot == 0 else index)
    return MADE[key]


def add_device_type(name: str, slot: int) -> None:
    """Enters a third party's device type."""
    SLOTS[name], NAMES[slot] = slot, name


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    DeviceLike: TypeAlias = Device | str
