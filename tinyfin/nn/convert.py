"""What `Module.to` and its short forms do to one tensor."""

from __future__ import annotations

from tinyfin.core.dtype import DType, dtype_by_name
from tinyfin.core.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_IGNORED = ("non_blocking", "memory_format", "copy")


def floating(name: str) -> Callable[[Tensor], Tensor]:
    """A function that casts floating tensors to the dtype of that name."""
    dtype = dtype_by_name(name)
    return lambda x: x.to(dtype) if x.is_floating_point() else x


def mover(args: tuple, kwargs: dict[str, Any]) -> Callable[[Tensor], Tensor]:
    """A function that moves a tensor to the device, and a floating one to the dtype, in `args`."""
    device, dtype = _parse(args, kwargs)
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"Module.to: dtype is {dtype}, expected a floating dtype")

    def move(x: Tensor) -> Tensor:
        if device is not None:
            x = x.to(device)
        return x.to(dtype) if dtype is not None and x.is_floating_point() else x

    return move


def _parse(args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    named = {k: v for k, v in kwargs.items() if k not in _IGNORED}
    device, dtype = named.pop("device", None), named.pop("dtype", None)
    for value in (*args, named.pop("tensor", None)):
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, DType):
            dtype = value
        elif value is not None and not isinstance(value, bool):
            device = value
    if named:
        raise TypeError(f"Module.to: got an unexpected argument '{next(iter(named))}'")
    return device, dtype
