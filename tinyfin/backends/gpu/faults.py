"""Bad indices and values that kernels met: told to the thread that asked for them when it next waits for the device.

Each thread has a record of its own on each device. What a thread left untold when it ended is told to the next one
that waits, and what nobody waited for to standard error when the process ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque

from tinyfin.backends.gpu.launch import TAKERS, own_record, told, was_read
from tinyfin.backends.gpu.slabs import to_device, to_host
from tinyfin.core.errors import IndexOutOfRange, out_of_domain
from tinyfin.ops.row import CHECKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tinyfin.backends.gpu.slabs import Slab

RECORD, RECORDS = 16, 64
"""Bytes of a record, and how many each device has (launch.pyx). Threads beyond them share the first."""
FAULT_BYTES = RECORD * RECORDS
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


ALL: list[Faults] = []
"""Those of the devices that were opened."""
FREE = deque(range(1, RECORDS))
"""Records that no living thread has, the one that was given back last at the end."""
LOCAL = threading.local()


class Owner:
    """Gives a thread's record back when the thread ends, and its locals with it."""

    def __init__(self, record: int) -> None:
        self.record, self.name = record, threading.current_thread().name

    def __del__(self, every: list[Faults] = ALL, free: deque[int] = FREE) -> None:
        for faults in every:  # defaults: the module's names may be gone when the process ends
            faults.left(self.record, self.name)
        free.append(self.record)


def take() -> int:
    """A record for the thread that asks."""
    for _ in range(len(FREE)):
        record = FREE.popleft()
        if not any(record in faults.ended for faults in ALL):
            LOCAL.owner = Owner(record)
            return record
        FREE.append(record)
    return 0


TAKERS[:] = [take]


class Faults:
    """The records of one device: which operation, the value, the size that it had to be below.

    Attributes:
        where: the backend's slot and the device's number, once they are known.
        ended: record of a thread that has ended -> its name, and how often the record is still read: a wait that
            began before the end may not have seen all.
    """

    def __init__(self, slab: Slab) -> None:
        self.slab = slab
        self.where: tuple[int, int] = (0, 0)
        self.ended: dict[int, tuple[str, int]] = {}
        self.process = os.getpid()
        self.put(0, bytes(FAULT_BYTES))

    def put(self, at: int, data: bytes) -> None:
        """Writes bytes of the records."""
        to_device(self.slab.host + at, data)

    def get(self, at: int) -> bytes | bytearray:
        """The record at so many bytes, when all work is done."""
        record = bytearray(RECORD)
        to_host(record, self.slab.host + at)
        return record

    def check(self, device: str) -> None:
        """Raises what this thread's work, or that of one that has ended, met; and forgets it."""
        own = own_record(*self.where)
        if own >= 0:
            self.forgive(
                own, f"found when {device} was waited for, so an operation before this one"
            )
        for record, (name, times) in list(self.ended.items()):
            if times > 1:
                self.ended[record] = name, times - 1
            else:
                del self.ended[record]
            thread = f"so an operation of thread {name!r}, which has ended,"
            self.forgive(record, f"found when {device} was waited for, {thread}", keep=times > 1)

    def forgive(self, record: int, how: str, keep: bool = False) -> None:
        """Raises what a record tells, and forgets it."""
        error = self.found(record)
        if error is not None or not keep:
            was_read(*self.where, record)
        if error is not None:
            self.ended.pop(record, None)
            raise type(error)(f"{error}; {how} is to blame")

    def found(self, record: int) -> Exception | None:
        """What a record tells; it is empty then."""
        import struct

        code, value, size = struct.unpack("<Iqi", self.get(RECORD * record))
        if not code:
            return None
        self.put(RECORD * record, bytes(RECORD))
        name = OPERATIONS[code] if code < len(OPERATIONS) else "a kernel"
        if name in DOMAINS:
            return outside(name, value, size)
        return IndexOutOfRange(f"{name}: index {value} is out of range for size {size}")

    def left(self, record: int, name: str, told: Callable[[int, int], list[int]] = told) -> None:
        """The thread that had a record has ended."""
        if record in told(*self.where):
            self.ended[record] = name, 2

    def tell(self, device: str, wait: Callable[[], None]) -> None:
        """Writes what nobody waited for to standard error, as the process ends."""
        records = told(*self.where)
        if not records or os.getpid() != self.process:
            return
        with contextlib.suppress(Exception):  # a device that is lost has told so
            wait()
            for record in records:
                error = self.found(record)
                if error is not None:
                    print(f"tinyfin: {error}; nothing waited for {device} since", file=sys.stderr)


def outside(name: str, value: int, argument: int) -> Exception:
    """The CPU's error for a value that must not be, of which a kernel gives the bits as float64."""
    import struct

    (number,) = struct.unpack("<d", struct.pack("<q", value))
    return out_of_domain(name, CHECKED[argument], number, DOMAINS.index(name))
