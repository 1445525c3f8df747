"""Type stub of the compiled stream of a Vulkan device."""

from collections.abc import Callable, Sequence

from tinyfin.backends.gpu.programs import Programs
from tinyfin.backends.gpu.slabs import Slab

RING: int
QUERIES: int
FUNCTIONS: tuple[str, ...]
RESULTS: dict[int, str]
STREAMS: dict[int, Stream]

def orphan() -> None: ...

class Stream(Programs):
    def __init__(
        self,
        name: str,
        functions: Sequence[int],
        device: int,
        queue: int,
        semaphore: int,
        buffers: Sequence[int],
        seconds: float,
    ) -> None: ...
    @property
    def value(self) -> int: ...
    @property
    def lost(self) -> int: ...
    def use(self, make: Callable[[int, tuple[int, ...]], int], layout: int) -> None: ...
    def submit(self) -> None: ...
    def wait(self, value: int) -> None: ...
    def synchronize(self) -> None: ...
    def time(self, queries: int) -> int: ...
    def untime(self) -> list[int]: ...
    def idle(self) -> bool: ...
    def copy(
        self, source: Slab, source_offset: int, target: Slab, target_offset: int, nbytes: int
    ) -> int: ...
