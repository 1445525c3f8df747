"""CHECK mode: after each operation, whether it made a NaN or infinity from finite numbers; after each gradient that
was written over another, whether it has the bits that it has in memory of its own."""

from __future__ import annotations

import sys

from tinyfin.core import exchange, tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
CHECK = 256
SKIPPED = {"contiguous_copy", "zero_gradient", "check_not_nan", "check_unit_interval"}


class NonFiniteError(FloatingPointError):
    """An operation made a NaN or infinity from finite numbers."""


def call(op, args: tuple, attrs: tuple):
    """Runs one call and looks at its results; formulas are left to their inner operations."""
    if op.view or op.name in SKIPPED or op.row.nondiff or runs_formula(op, args):
        return NotImplemented
    written = op.inplace or op.name == "assign" or bool(op.mutates)
    old = tensor.set_mode(0, CHECK)
    try:
        read = args if op.inplace else args[1:] if written else args
        clean = all(is_finite(a) for a in read)
        before = [describe(a) for a in args]
        result = tensor.assign(*args) if op.name == "assign" else op.run_with(args, attrs)
        if clean:
            look(
                op,
                before,
                args[:1] if written else result if isinstance(result, tuple) else (result,),
            )
    finally:
        tensor.set_mode(old, CHECK)
    return result


def compare(name: str, got: Tensor, want: Tensor) -> None:
    """Raises where a gradient that was written over another is not, bit for bit, the one that a call without reuse
    gave."""
    if got.device.type == "null":
        return
    old = tensor.set_mode(0, CHECK)
    try:
        same = host_bytes(got) == host_bytes(want)
    finally:
        tensor.set_mode(old, CHECK)
    if not same:
        raise RuntimeError(
            f"backward: {name}: the gradient {describe(got)} that was written over its argument differs from the one "
            "in memory of its own"
        )


def host_bytes(t: Tensor) -> bytes:
    """The elements in row-major order."""
    return exchange.to_bytes(t.detach().cpu().contiguous())


def runs_formula(op, args: tuple) -> bool:
    """Whether other operations do the work."""
    if op.formula is None:
        return False
    slot = next((a.device.slot for a in args if isinstance(a, Tensor)), 0)
    return not op.has_kernel(slot)


def is_finite(a: Any) -> bool:
    """Whether an argument holds no NaN and no infinity."""
    if isinstance(a, float):
        return a - a == 0
    if (
        not isinstance(a, Tensor)
        or not a.is_floating_point()
        or a.device.type == "null"
        or a.numel() == 0
    ):
        return True
    return bool(F.all(F.isfinite(a.detach())))


def describe(a: Any) -> str:
    """An argument in an error's text."""
    return f"{tuple(a.shape)} {a.dtype}" if isinstance(a, Tensor) else repr(a)


def look(op, before: list, results: tuple) -> None:
    """Raises where a result holds a NaN or infinity."""
    for k, y in enumerate(results):
        if is_finite(y):
            continue
        y = y.detach()
        nans, infinities = int(F.sum(F.isnan(y))), int(F.sum(F.isinf(y)))
        which = "" if len(results) == 1 else f" {k}"
        raise NonFiniteError(
            f"{op.name}: the result{which} of shape {tuple(y.shape)} has {nans} NaN and "
            f"{infinities} infinite elements, "
            f"made from finite arguments ({', '.join(before)}).\nIt was called here: "
            f"{creating_line()}"
        )


def creating_line() -> str:
    """The innermost line outside tinyfin that led here."""
    frame = sys._getframe(1)
    root = __file__.rsplit("autograd", 1)[0]
    while frame is not None and frame.f_code.co_filename.startswith(root):
        frame = frame.f_back
    if frame is None:
        return "(inside tinyfin)"
    import linecache

    name, line = frame.f_code.co_filename, frame.f_lineno
    return f"{name}:{line}: {linecache.getline(name, line).strip()}"
