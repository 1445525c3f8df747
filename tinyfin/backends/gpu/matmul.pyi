"""Type stub of the compiled matrix products."""

from typing import Any

KERNELS: dict[str, Any]

def only_tiles(kind: int = -1, cooperative: int = -1, parts: int = 0) -> None: ...
