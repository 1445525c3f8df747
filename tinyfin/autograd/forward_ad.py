"""PyTorch's names for forward mode: dual_level, make_dual, unpack_dual."""

from __future__ import annotations

from collections import namedtuple

from tinyfin.autograd import forward
from tinyfin.autograd.levels import BATCH, DUAL, Level, entry_at, innermost, level_of, live, stack
from tinyfin.core import tensor
from tinyfin.ops.row import F

Tensor = tensor.Tensor
UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = "A dual's two parts; the tangent is None where the tensor is constant."


def enter_dual_level() -> Level:
    """Opens a level of forward mode; levels nest.

    >>> from tinyfin.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> forward_ad.exit_dual_level(level=level)
    """
    return Level(DUAL)


def exit_dual_level(*, level: Level | None = None) -> None:
    """Closes a level, the innermost where none is named; its duals are plain tensors from now on.

    Raises:
        RuntimeError: no level is open.
    """
    level = innermost(DUAL) if level is None else level
    if level is None or level not in stack():
        raise RuntimeError("exit_dual_level: no level of forward mode is open in this thread")
    level.close()


class dual_level:
    """A level of forward mode for a `with` block.

    >>> import tinyfin
    >>> from tinyfin.autograd import forward_ad as fwd
    >>> with fwd.dual_level():
    ...     x = fwd.make_dual(tinyfin.tensor(3.0), tinyfin.tensor(1.0))
    ...     fwd.unpack_dual(x * x).tangent.item()
    6.0
    """

    def __enter__(self) -> Level:
        self.level = enter_dual_level()
        return self.level

    def __exit__(self, *exc: object) -> None:
        self.level.close()


def make_dual(tensor_: Tensor, tangent: Tensor, *, level: Level | None = None) -> Tensor:
    """A tensor over the same bytes that carries a tangent at the innermost level.

    Raises:
        RuntimeError: no level is open, or the tangent's shape is not the tensor's.
        TypeError: an argument is no Tensor.
        ValueError: the tensor is not of a floating-point type.

    >>> import tinyfin
    >>> from tinyfin.autograd import forward_ad as fwd
    >>> with fwd.dual_level():
    ...     x = fwd.make_dual(tinyfin.ones(2), tinyfin.tensor([1.0, 2.0]))
    ...     fwd.unpack_dual(x.sum()).tangent.item()
    3.0
    """
    level = innermost(DUAL) if level is None else level
    if level is None or not level.open:
        raise RuntimeError(
            "make_dual: no level of forward mode is open; use forward_ad.dual_level()"
        )
    for name, t in (("tensor", tensor_), ("tangent", tangent)):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"make_dual: {name} is {t!r} of type {type(t).__name__}, expected a Tensor"
            )
    if not tensor_.is_floating_point():
        raise ValueError(
            f"make_dual: the tensor has dtype {tensor_.dtype}, expected a floating-point dtype"
        )
    if tensor_.shape != tangent.shape:
        raise RuntimeError(
            f"make_dual: the tensor has shape {tuple(tensor_.shape)}, the tangent "
            f"{tuple(tangent.shape)}"
        )
    return dual(level, live(tensor_), live(tangent))


def dual(level: Level, x: Tensor, t: Tensor) -> Tensor:
    """A dual at a level; wrappers of levels further inside are taken off first and put on again."""
    found = [k for k in (level_of(x), level_of(t)) if k is not None and k.number >= level.number]
    if found:
        top = max(found, key=lambda k: k.number)
        if top is level:
            return dual(level, forward.parts(level, x)[0], forward.parts(level, t)[0])
        if top.kind != BATCH:
            raise RuntimeError("make_dual: the tensor is a dual of a level further inside")
        from tinyfin.autograd.vmap import aligned, batched

        return batched(top, dual(level, *aligned(top, (x, t), expand=True)))
    if t.dtype is not x.dtype:
        t = t.to(x.dtype)
    if t.stride() != x.stride():
        t = forward.laid(t, x)
    out = tensor.wrap(x, DUAL, (level, x, t))
    tensor.record(F.alias, (x,), (), (out,))
    tensor.rebase(out, None)
    return out


def unpack_dual(tensor_: Tensor, *, level: Level | None = None) -> UnpackedDualTensor:
    """A dual's primal and tangent at a level, the innermost where none is named.

    >>> import tinyfin
    >>> from tinyfin.autograd import forward_ad as fwd
    >>> with fwd.dual_level():
    ...     fwd.unpack_dual(tinyfin.ones(1)).tangent is None
    True
    """
    if not isinstance(tensor_, Tensor):
        raise TypeError(
            f"unpack_dual: got {tensor_!r} of type {type(tensor_).__name__}, expected a Tensor"
        )
    level = innermost(DUAL) if level is None else level
    x = live(tensor_)
    if level is None or not level.open:
        return UnpackedDualTensor(x, None)
    top = level_of(x)
    if top is not None and top.number > level.number and top.kind == BATCH:
        from tinyfin.autograd.vmap import batched

        _, value, dim = entry_at(x, top)
        p, t = unpack_dual(value, level=level)
        return UnpackedDualTensor(batched(top, p, dim), None if t is None else batched(top, t, dim))
    return UnpackedDualTensor(*forward.parts(level, x))
