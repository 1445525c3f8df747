"""Type stub of the compiled table of programs."""

from collections.abc import Callable

class Programs:
    flush: int
    @property
    def api(self) -> str: ...
    @property
    def name(self) -> str: ...
    def take(self, make: Callable[[int, tuple[int, ...]], int]) -> None: ...
