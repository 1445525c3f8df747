"""An opened OpenGL device: its memory, its context's stream, its records of bad indices."""

from __future__ import annotations

from time import perf_counter_ns

from tinyfin.backends.gpu import backend
from tinyfin.backends.gpu.faults import FAULT_BYTES, RECORD, Faults
from tinyfin.backends.gpu.slabs import Pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tinyfin.backends.gpu.slabs import Block, Slab
    from tinyfin.backends.opengl.device import Opened
    from tinyfin.backends.opengl.record import Stream

ROUND = 512


class Records(Faults):
    """Bad indices, in memory that only the device sees."""

    def __init__(self, slab: Slab, stream: Stream) -> None:
        self.stream = stream
        super().__init__(slab)
        stream.faults(slab.buffer)

    def put(self, at: int, data: bytes) -> None:
        """Writes bytes of the records."""
        self.stream.write(self.slab.address + at, data)

    def get(self, at: int) -> bytes | bytearray:
        """The record at so many bytes, when all work is done."""
        record = bytearray(RECORD)
        self.stream.read(self.slab.address + at, record)
        return record


class Device(backend.Device):
    """An opened device with its memory and its context."""

    def __init__(self, opened: Opened) -> None:
        physical = opened.physical
        self.opened = opened
        self.name, self.int64, self.float64 = physical.name, physical.int64, physical.float64
        self.software = physical.kind == "software"
        self.stream: Stream = opened.stream
        # every operand lies in one slab, and kernels can bind no more of it than this
        largest = physical.largest // ROUND * ROUND
        self.pool = Pool(opened.slab, opened.free, f"opengl: {self.name}", largest)
        self.faults = Records(opened.slab(FAULT_BYTES), self.stream)

    def time(self) -> bool:
        """Begins to take the time of each dispatch."""
        self.first = self.stream.call(self.stream.begin_times)
        self.began = perf_counter_ns()
        return True

    def untime(self) -> tuple[int, list[tuple[int, int]]]:
        """Ends it: (number of the first dispatch, begin and end of each in nanoseconds of perf_counter_ns())."""
        return self.first, self.spans(self.stream.call(self.stream.end_times))

    def use(self, soft: bool) -> None:
        """Takes modules with or without emulated fused multiply-add."""
        from tinyfin.backends.opengl.programs import Compiler

        self.stream.take(Compiler(self.opened, soft).make)

    def write(self, block: Block, offset: int, data: memoryview) -> None:
        """Bytes of the host into a block; the host's may change when it returns."""
        self.stream.write(block.block + offset, data)

    def read(self, block: Block, offset: int, out: memoryview) -> None:
        """Bytes of a block to the host, when all work on it is done."""
        self.stream.read(block.block + offset, out)
        self.faults.check(self.name)
