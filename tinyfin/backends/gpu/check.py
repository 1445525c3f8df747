"""The check of a device when it is opened: does it give the CPU's bits, and what does it do with subnormal numbers?"""

from __future__ import annotations

from tinyfin.backends.base import DETERMINISTIC, warn
from tinyfin.core import exchange, tensor
from tinyfin.core.dtype import all_dtypes
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ALL_MODES = (1 << 12) - 1
FUNCTIONS = ("exp", "tanh", "log", "sin")
DOUBLES = ("exp", "sin", "rsqrt")
"""Functions of float64 whose bits the compiler of a driver was seen to change."""


def same_bits(device: str) -> bool:
    """Whether functions that need one rounding in a fused multiply-add give the CPU's bits."""
    old = tensor.set_mode(0, ALL_MODES)
    try:
        return all(agrees(name, device, ordinary()) for name in FUNCTIONS)
    finally:
        tensor.set_mode(old, ALL_MODES)


def same_doubles(device: str) -> bool:
    """Whether functions of float64 give the CPU's bits."""
    old = tensor.set_mode(0, ALL_MODES)
    try:
        x = exchange.linspace(-8.0, 8.0, 1001)
        return all(agrees(name, device, x) for name in DOUBLES) and agrees(
            "hardswish_grad", device, x, x
        )
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
                if exact(device):
                    return level
                break
    finally:
        tensor.set_mode(old, ALL_MODES)
    warn(f"{device} ({name}) gives other bits than the CPU: deterministic mode refuses it")
    return -1


def exact(device: str) -> bool:
    """Whether deterministic mode has the CPU's bits in quotients, roots, functions, sums and products."""
    x = ordinary()
    long = exchange.linspace(-1e3, 2e3, 5000).to(all_dtypes()["float32"])
    a, b = F.reshape(tiny()[:990], (33, 30)), F.reshape(x[:510], (30, 17))
    return (
        all(agrees(name, device, x) for name in (*FUNCTIONS, "sqrt"))
        and agrees("div", device, x, tiny().flip(0))
        and agrees("sum", device, long)
        and agrees("matmul", device, a, b)
        and agrees("linear", device, a, F.transpose(b, 0, 1))
    )


def ordinary() -> Any:
    """Numbers of both signs."""
    return exchange.linspace(-8.0, 8.0, 1001).to(all_dtypes()["float32"])


def tiny() -> Any:
    """Numbers on both sides of the smallest normal one, 1.18e-38."""
    return exchange.linspace(-4e-38, 3e-38, 1001).to(all_dtypes()["float32"])


def agrees(name: str, device: str, *inputs: Any) -> bool:
    """Whether a row gives the CPU's bits; NaN's own bits do not count."""
    there = getattr(F, name)(*[x.to(device) for x in inputs]).cpu()
    return bits(there) == bits(getattr(F, name)(*inputs))


def bits(y: Any) -> bytes:
    """A result's bytes, with one NaN for all."""
    if y.is_floating_point():
        y = F.where(F.isnan(y), float("nan"), y)
    return exchange.to_bytes(y)
