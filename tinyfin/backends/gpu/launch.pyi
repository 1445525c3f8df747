"""Type stub of the compiled dispatches."""

from collections.abc import Callable
from typing import Any

from tinyfin.backends.gpu.programs import Programs

SCRATCH: dict[int, Callable[[int, int], Any]]
TAKERS: list[Callable[[], int]]

def set_device(
    slot: int,
    index: int,
    stream: Programs,
    int64: bool,
    float64: bool,
    fault: int,
    cooperative: int = 0,
    software: bool = False,
) -> None: ...
def own_record(slot: int, index: int) -> int: ...
def told(slot: int, index: int) -> list[int]: ...
def was_read(slot: int, index: int, record: int) -> None: ...
def forget_float64(slot: int, index: int) -> None: ...
