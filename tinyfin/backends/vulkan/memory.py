"""An opened Vulkan device: its memory, the ways there, its queue."""

from __future__ import annotations

import os
from _thread import RLock
from time import perf_counter_ns

from tinyfin import config
from tinyfin.backends.gpu import backend
from tinyfin.backends.gpu.faults import FAULT_BYTES, Faults
from tinyfin.backends.gpu.slabs import Pool
from tinyfin.backends.gpu.staging import Ring, copy_in, copy_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tinyfin.backends.gpu.slabs import Block, Slab
    from tinyfin.backends.vulkan.device import Opened
    from tinyfin.backends.vulkan.record import Stream

STAGING, PART = 64 << 20, 8 << 20
"""Bytes of staging memory, and of a part that passes at a time."""


class Device(backend.Device):
    """An opened device with its memory and its queue."""

    def __init__(self, opened: Opened) -> None:
        from tinyfin.backends.vulkan import device
        from tinyfin.backends.vulkan.cache import PipelineCache

        self.cache = PipelineCache(opened)
        self.opened = opened
        self.name, physical = opened.physical.name, opened.physical
        self.int64, self.float64 = physical.int64, physical.float64
        self.cooperative, self.software = physical.cooperative, physical.kind == "software"
        self.shared = opened.unified is not None
        self.wishes = (device.UNIFIED,) if self.shared else (device.DEVICE_LOCAL, 0)
        self.stream: Stream = opened.stream(config.GPU_TIMEOUT)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.stream.orphan)
        kind = opened.memory_type(self.wishes) or 0
        heap = opened.heaps[opened.types[kind][1]]
        largest = min(heap, (4 << 30) - (64 << 10))
        self.pool = Pool(self.new_slab, self.free_slab, f"vulkan: {self.name}", largest)
        self.pipelines: Any = None
        self.queries = self.first = self.began = 0
        self.stage: Slab | None = None
        self.ring = Ring(STAGING, self.reach)
        self.moving = RLock()  # one thread at a time moves bytes: the copies let others run
        wanted = device.HOST_VISIBLE | device.HOST_COHERENT
        self.faults = Faults(opened.slab(FAULT_BYTES, (wanted | device.HOST_CACHED, wanted), True))

    def time(self) -> bool:
        """Begins to take the time of each dispatch; whether the device can."""
        if self.opened.tick == 0.0:
            return False
        self.queries = self.opened.query_pool()
        self.first = self.stream.time(self.queries)
        self.began = perf_counter_ns()
        return True

    def untime(self) -> tuple[int, list[tuple[int, int]]]:
        """Ends it: (number of the first dispatch, begin and end of each in nanoseconds of perf_counter_ns())."""
        ticks = self.stream.untime()
        self.opened.destroy_query_pool(self.queries)
        return self.first, self.spans(ticks, self.opened.tick)

    def use(self, soft: bool) -> None:
        """Takes modules with or without emulated fused multiply-add."""
        from tinyfin.backends.vulkan.pipelines import Pipelines

        old, self.pipelines = self.pipelines, Pipelines(self.opened, self.cache, soft)
        self.stream.use(self.pipelines.make, self.pipelines.layout)
        if old is not None:
            self.stream.synchronize()
            old.destroy()

    def reach(self, value: int) -> None:
        """Waits until the timeline has come to a value, also one of work that is not submitted yet."""
        if value > self.stream.value:
            self.stream.submit()
        self.stream.wait(value)

    def new_slab(self, nbytes: int) -> Slab:
        """Memory of the device, seen by the host where both share it."""
        if self.stream.lost:
            self.stream.synchronize()  # raises what ended it
        return self.opened.slab(nbytes, self.wishes, self.shared)

    def free_slab(self, slab: Slab) -> None:
        """Gives memory back when the device is done with it."""
        self.stream.synchronize()
        self.opened.free(slab)

    def staging(self) -> Slab:
        """Memory of the host that the device copies from and to."""
        from tinyfin.backends.vulkan import device

        if self.stage is None:
            wanted = device.HOST_VISIBLE | device.HOST_COHERENT
            self.stage = self.opened.slab(STAGING, (wanted | device.HOST_CACHED, wanted), True)
        return self.stage

    def write(self, block: Block, offset: int, data: memoryview) -> None:
        """Bytes of the host into a block; returns before the device has them, the host's may change then."""
        with self.moving:
            if block.host and self.stream.idle():
                copy_in(block.host + offset, data)
                return
            stage = self.staging()
            for start in range(0, len(data), PART):
                part = data[start : start + PART]
                place = self.ring.place(len(part))
                copy_in(stage.host + place, part)
                at = block.offset + offset + start
                self.ring.until(self.stream.copy(stage, place, block.slab, at, len(part)))

    def read(self, block: Block, offset: int, out: memoryview) -> None:
        """Bytes of a block to the host, when all work on it is done."""
        with self.moving:
            if block.host:
                self.synchronize()
                copy_out(out, block.host + offset)
                return
            self.read_through(block, offset, out)
            self.faults.check(self.name)

    def read_through(self, block: Block, offset: int, out: memoryview) -> None:
        """Bytes of a block by way of staging memory."""
        stage, stream = self.staging(), self.stream
        waiting: list[tuple[int, int, int]] = []
        for start in (*range(0, len(out), PART), None):  # one part comes while another is copied
            if start is not None:
                n = min(PART, len(out) - start)
                place = self.ring.place(n)
                value = stream.copy(block.slab, block.offset + offset + start, stage, place, n)
                self.ring.until(value)
                stream.submit()
                waiting.append((start, place, value))
            while waiting and (start is None or len(waiting) > 1):
                first, place, value = waiting.pop(0)
                stream.wait(value)
                part = out[first : first + PART]
                copy_out(part, stage.host + place)
