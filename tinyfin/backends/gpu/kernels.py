"""The kernels of all GPU backends: family -> capsule."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODULES = (
    "elementwise",
    "reduce",
    "extremum",
    "scan",
    "sort",
    "index",
    "gather",
    "join",
    "random",
    "matmul",
    "conv",
    "pool",
    "norm",
    "batchnorm",
    "loss",
    "attention",
    "step",
)


def kernels() -> dict[str, Any]:
    """The families that have shaders."""
    found: dict[str, Any] = {}
    for name in MODULES:
        found.update(import_module(f"tinyfin.backends.gpu.{name}").KERNELS)
    return found
