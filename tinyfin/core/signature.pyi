"""Type stub of the compiled attributes of operations."""

from typing import Any

class Attr:
    def __init__(
        self,
        name: str,
        kind: str,
        default: Any,
        required: bool,
        choices: tuple[str, ...],
        islot: int,
        fslot: int,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def default(self) -> Any: ...
    @property
    def required(self) -> bool: ...
    @property
    def choices(self) -> tuple[str, ...]: ...

def wrap(name: str, dim: int, ndim: int) -> int: ...
