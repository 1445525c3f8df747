"""Padding by a constant, by reflection, by repeating the edge, or around a circle."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Adds elements at both ends of the last dimensions, or takes them away where negative.

    Args:
        input: of any shape.
        pad: amounts before and after, for the last dimension first.
        mode: "constant"; or "reflect", "replicate", "circular" for the last dimension of 2 or 3,
            the last two of 3 or 4, the last three of 4 or 5.
        value: of the constant; 0 by default.

    Raises:
        RuntimeError: `pad` has an odd length, is too long or too great for the mode, or `value`
            is given with another mode than "constant".
        NotImplementedError: the mode is unknown, or not there for these dimensions.

    >>> F.pad(tf.tensor([1.0, 2.0]), (1, 2)).tolist()
    [0.0, 1.0, 2.0, 0.0, 0.0]
    >>> F.pad(tf.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect").tolist()
    [[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]
    """
    need_tensors("pad", input=input)
    if not hasattr(pad, "__iter__"):
        raise TypeError(f"pad: pad is {pad!r}, expected a sequence of integers")
    amounts = tuple(pad)
    shape = tuple(input.shape)
    if len(amounts) % 2 or len(amounts) > 2 * len(shape):
        raise RuntimeError(
            f"pad: pad is {amounts}, expected two amounts for each of up to "
            f"{len(shape)} dimensions of input {shape}"
        )
    if mode == "constant":
        return F.pad_constant(input, amounts, 0.0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f"pad: value is {value} with mode {mode!r}, which takes none")
    if mode not in _FILL:
        raise NotImplementedError(
            f"pad: mode is {mode!r}, expected 'constant', 'reflect', 'replicate' or 'circular'"
        )
    n = len(amounts) // 2
    if not 1 <= n <= 3 or len(shape) not in (n + 1, n + 2):
        raise NotImplementedError(
            f"pad: mode {mode!r} with pad {amounts} on input {shape}, expected "
            f"{n + 1} or {n + 2} dimensions and two to six amounts"
        )
    for i in range(n):
        input = _pad_dim(mode, input, len(shape) - 1 - i, amounts[2 * i], amounts[2 * i + 1])
    return input


def _pad_dim(mode: str, x: Tensor, dim: int, before: int, after: int) -> Tensor:
    size = x.shape[dim]
    largest = {"reflect": size - 1, "circular": size, "replicate": max(before, after)}[mode]
    cut = max(-before, 0), max(-after, 0)
    if size == 0 or max(before, after) > largest or sum(cut) > size:
        raise RuntimeError(
            f"pad: {before} before and {after} after do not fit mode {mode!r} along "
            f"dim {dim} of size {size}"
        )
    if sum(cut):
        x = x.narrow(dim, cut[0], size - sum(cut))
    parts = [x]
    if before > 0:
        parts.insert(0, _FILL[mode](x, dim, before, False))
    if after > 0:
        parts.append(_FILL[mode](x, dim, after, True))
    return F.cat(parts, dim) if len(parts) > 1 else x


def _reflect(x: Tensor, dim: int, amount: int, after: bool) -> Tensor:
    start = x.shape[dim] - 1 - amount if after else 1
    return x.narrow(dim, start, amount).flip(dim)


def _replicate(x: Tensor, dim: int, amount: int, after: bool) -> Tensor:
    shape = list(x.shape)
    shape[dim] = amount
    return x.narrow(dim, x.shape[dim] - 1 if after else 0, 1).expand(*shape)


def _circular(x: Tensor, dim: int, amount: int, after: bool) -> Tensor:
    return x.narrow(dim, 0 if after else x.shape[dim] - amount, amount)


_FILL = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}
