"""The check of a device when it is opened: does it give the CPU's bits, and what does it do with subnormal numbers?"""

from __future__ import annotations

from tinyfin.backends.base import warn
from tinyfin.core import exchange, tensor
from tinyfin.core.dtype import all_dtypes
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ALL_MODES = (1 << 12) - 1
DETERMINISTIC = 4
FUNCTIONS = ("exp", "tanh", "log", "sin")


def same_bits(device: str) -> bool:
    """Whether functions that need one rounding in a fused multiply-add give the CPU's bits."""
    old = tensor.set_mode(0, ALL_MODES)
    try:
        return all(agrees(name, device, ordinary()) for name in FUNCTIONS)
    finally:
        tensor.set_mode(old, ALL_MODES)


def flush_level(device: str, stream: Any, name: str) -> int:
    """The constant FLUSH with which a device gives the CPU's bits in deterministic mode: 1 where it
    flushes subnormal numbers by itself, 2 where kernels do it, -1 where neither helps."""
    old = tensor.set_mode(DETERMINISTIC, ALL_MODES)
    try:
        for level in (1, 2):
            stream.flush = level
            if agrees("mul", device, tiny(), ordinary()) and all(
                agrees(f, device, tiny(), tiny().flip(0)) for f in ("add", "sub", "lt")
            ):
                return level if all(agrees(f, device, ordinary()) for f in FUNCTIONS) else -1
    finally:
        tensor.set_mode(old, ALL_MODES)
    warn(f"{device} ({name}) gives other bits than the CPU: deterministic mode refuses it")
    return -1


def ordinary() -> Any:
    """Numbers of both signs."""
    return exchange.linspace(-8.0, 8.0, 1001).to(all_dtypes()["float32"])


def tiny() -> Any:
    """Numbers on both sides of the smallest normal one, 1.18e-38."""
    return exchange.linspace(-4e-38, 3e-38, 1001).to(all_dtypes()["float32"])


def agrees(name: str, device: str, *inputs: Any) -> bool:
    """Whether a row gives the CPU's bits."""
    there = getattr(F, name)(*[x.to(device) for x in inputs]).cpu()
    return exchange.to_bytes(there) == exchange.to_bytes(getattr(F, name)(*inputs))
