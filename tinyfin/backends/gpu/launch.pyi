"""Type stub of the compiled dispatches."""

from collections.abc import Callable
from typing import Any

SCRATCH: dict[int, Callable[[int, int], Any]]

def set_device(
    slot: int,
    index: int,
    int64: bool,
    float64: bool,
    fault: int,
    cooperative: int = 0,
    software: bool = False,
) -> None: ...
