"""What the GPU backends share: devices that are opened when first used, and checked then."""

from __future__ import annotations

from _thread import RLock

from tinyfin.backends.base import WATCHERS, Backend, kernels_in
from tinyfin.core import tensor
from tinyfin.core.device import SLOTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tinyfin.backends.gpu.faults import Faults
    from tinyfin.backends.gpu.slabs import Block, Pool


class Device:
    """An opened device: its stream of work, its memory, its records of bad indices."""

    name: str
    int64: bool
    float64: bool
    cooperative: int = 0
    software: bool = False
    stream: Any
    pool: Pool
    faults: Faults
    began: int = 0
    """When times began to be taken, in nanoseconds of perf_counter_ns()."""

    def use(self, soft: bool) -> None:
        """Takes modules with or without emulated fused multiply-add."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Waits for everything asked so far; raises what a kernel found in its indices."""
        self.stream.synchronize()
        self.faults.check(self.name)

    def time(self) -> bool:
        """Begins to take the time of each dispatch; whether the device can."""
        return False

    def untime(self) -> tuple[int, list[tuple[int, int]]]:
        """Ends it: (number of the first dispatch, begin and end of each in nanoseconds of perf_counter_ns())."""
        raise NotImplementedError

    def spans(self, ticks: Sequence[int], tick: float = 1.0) -> list[tuple[int, int]]:
        """Begin and end of each dispatch on the host's clock.

        The two clocks are brought together by one wait when it began: to some ten microseconds.

        Args:
            ticks: of the device: when it began, then begin and end of each dispatch.
            tick: nanoseconds.
        """
        origin, *rest = ticks
        times = [self.began + round((t - origin) * tick) for t in rest]
        return list(zip(times[::2], times[1::2]))

    def write(self, block: Block, offset: int, data: memoryview) -> None:
        """Bytes of the host into a block; the host's may change when it returns."""
        raise NotImplementedError

    def read(self, block: Block, offset: int, out: memoryview) -> None:
        """Bytes of a block to the host, when all work on it is done."""
        raise NotImplementedError


class GPUBackend(Backend):
    """Kernels in GLSL, one source for all drivers; what has no kernel runs on the CPU and says so."""

    allocate: Any  # a slabs.Pools, from when the backend is opened

    def __init__(self) -> None:
        self.opened_devices: dict[int, Any] = {}
        self.checked: list[int] = []
        self.opening = RLock()  # other threads wait until a device is checked

    def open(self) -> None:
        """Connects the kernels; once."""
        from tinyfin.backends.gpu.launch import SCRATCH
        from tinyfin.backends.gpu.slabs import Pools

        with self.opening:
            if not self.opened:
                self.allocate = Pools(lambda index: self.opened_device(index).pool)
                SCRATCH[SLOTS[self.device]] = self.allocate
                super().open()

    def find(self) -> tuple[Sequence[Any], str | None]:
        """(what can be opened, best first, each with `name` and `kind`; why there is nothing)."""
        raise NotImplementedError

    def new_device(self, physical: Any) -> Device:
        """Opens one of what was found."""
        raise NotImplementedError

    def missing(self, index: int = 0) -> str | None:
        """Why there is no such device."""
        found, reason = self.find()
        if found and not 0 <= index < len(found):
            names = ", ".join(f"{self.device}:{i} {p.name}" for i, p in enumerate(found))
            return f"there is no device {index}; have {names}"
        return None if found else reason

    def devices(self) -> list[str]:
        """The devices that can be used, best first."""
        return [f"{p.name} ({p.kind})" for p in self.find()[0]]

    def kernels(self) -> dict[str, Any]:
        """The families that have shaders."""
        return kernels_in("gpu")

    def opened_device(self, index: int) -> Any:
        """The device of a number, opened when first used."""
        with self.opening:
            if index not in self.opened_devices:
                self.open_device(index)
            return self.opened_devices[index]

    def open_device(self, index: int) -> None:
        """Opens and checks a device; the checks are calls that find it among the opened ones."""
        import atexit

        from tinyfin.backends.gpu.check import flush_level, same_bits, same_doubles
        from tinyfin.backends.gpu.faults import ALL
        from tinyfin.backends.gpu.launch import forget_float64, set_device

        new = self.new_device(self.find()[0][index])
        self.opened_devices[index] = new
        name = f"{self.device}:{index}"
        level = tensor.note_calls(0)  # a profile is of the program's calls, not of these
        has = (new.int64, new.float64, new.faults.slab.address, new.cooperative, new.software)
        new.faults.where = SLOTS[self.device], index
        try:
            set_device(SLOTS[self.device], index, new.stream, *has)
            new.use(False)
            if not same_bits(name) and new.float64:
                new.use(True)
            new.stream.flush = flush_level(name, new.stream, new.name)
            # kernels take long to compile on software drivers, which tests run on in full
            if new.float64 and new.int64 and not new.software and not same_doubles(name):
                forget_float64(SLOTS[self.device], index)
        except BaseException:  # unchecked, it is not used: the next call opens it anew
            del self.opened_devices[index]
            self.allocate.forget(index)
            raise
        finally:
            tensor.note_calls(level)
        ALL.append(new.faults)
        atexit.register(new.faults.tell, name, new.stream.synchronize)
        self.checked.append(index)
        for watcher in list(WATCHERS):
            watcher(self, index)

    def used(self) -> list[int]:
        """Numbers of the devices that were opened, and are checked."""
        return list(self.checked)

    def time(self, index: int) -> bool:
        """Begins to take the time of each dispatch on a device; whether it can."""
        return self.opened_devices[index].time()

    def untime(self, index: int) -> tuple[int, list[tuple[int, int]]]:
        """Ends it: (number of the first dispatch, begin and end of each in nanoseconds of perf_counter_ns())."""
        return self.opened_devices[index].untime()

    def device_of(self, block: Block) -> Any:
        """The device whose pool a block is from."""
        return next(d for d in self.opened_devices.values() if d.pool is block.pool)

    def write(self, block: Block, offset: int, data: memoryview) -> None:
        """Bytes into a block."""
        self.device_of(block).write(block, offset, data)

    def read(self, block: Block, offset: int, out: memoryview) -> None:
        """Bytes out of a block, when all work on it is done."""
        self.device_of(block).read(block, offset, out)

    def memory_stats(self, index: int) -> dict[str, int | None]:
        """Counters of a device's pool."""
        return self.opened_device(index).pool.stats()

    def empty_cache(self, index: int) -> None:
        """Gives slabs that no tensor uses back to the driver."""
        self.opened_device(index).pool.release()

    def set_memory_limit(self, limit: int | None, index: int) -> None:
        """Sets the most bytes that living tensors may hold; None removes the limit."""
        if limit is not None and (type(limit) is not int or limit < 0):
            raise ValueError(
                f"set_memory_limit: limit is {limit!r}, expected a number of bytes >= 0, or None"
            )
        self.opened_device(index).pool.limit = limit

    def synchronize(self, index: int) -> None:
        """Waits until the device has done all that was asked of it."""
        if index in self.opened_devices:
            self.opened_devices[index].synchronize()
