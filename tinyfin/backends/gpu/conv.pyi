"""Type stub of the compiled convolutions."""

from typing import Any

KERNELS: dict[str, Any]

def only_parts(parts: int = 0) -> None: ...
