"""Dropout: random zeros while training."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.creation import ones
from tinyfin.nn.functional.arguments import composed
from tinyfin.ops.row import F
from tinyfin.random import check_probability
from tinyfin.shaping import need_tensors


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets elements to zero with probability `p`, and scales the others by 1 / (1 - p).

    Raises:
        ValueError: `p` is not between 0 and 1.

    >>> F.dropout(tf.ones(3), p=0.5, training=False).tolist()
    [1.0, 1.0, 1.0]
    >>> F.dropout(tf.ones(3), p=1.0).tolist()
    [0.0, 0.0, 0.0]
    """
    check_probability("dropout", p)
    if not isinstance(input, Tensor):
        need_tensors("dropout", input=input)
    if not training or p == 0.0:
        return input
    result = F.dropout(input, p, True)
    return input.copy_(result) if inplace else result


def _channels(
    what: str, input: Tensor, p: float, training: bool, inplace: bool, kept: dict[int, int]
) -> Tensor:
    """Dropout of all that follows the first dimensions; `kept` says how many of them by rank."""
    check_probability(what, p)
    need_tensors(what, input=input)
    shape = tuple(input.shape)
    if len(shape) not in kept:
        raise RuntimeError(
            f"{what}: input is {shape}, expected {' or '.join(map(str, kept))} dimensions"
        )
    if not training or p == 0.0:
        return input
    n = kept[len(shape)]
    each = shape[:n] + (1,) * (len(shape) - n)
    kept_or_not = ones(each, dtype=input.dtype, device=input.device)
    result = input * F.dropout(kept_or_not, p, True)
    return input.copy_(result) if inplace else result


@composed
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L).

    Raises:
        ValueError: `p` is not between 0 and 1.
        RuntimeError: `input` has other than 2 or 3 dimensions.

    >>> F.dropout1d(tf.ones(1, 2, 3), p=1.0).sum().item()
    0.0
    """
    return _channels("dropout1d", input, p, training, inplace, {2: 1, 3: 2})


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, H, W) or (C, H, W).

    As in PyTorch, (C, H, W) is treated as (N, C, L).

    Raises:
        ValueError: `p` is not between 0 and 1.
        RuntimeError: `input` has other than 3 or 4 dimensions.

    >>> F.dropout2d(tf.ones(1, 2, 3, 3), p=1.0).sum().item()
    0.0
    """
    return _channels("dropout2d", input, p, training, inplace, {3: 2, 4: 2})


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    Raises:
        ValueError: `p` is not between 0 and 1.
        RuntimeError: `input` has other than 4 or 5 dimensions.

    >>> F.dropout3d(tf.ones(1, 2, 2, 2, 2), p=1.0).sum().item()
    0.0
    """
    return _channels("dropout3d", input, p, training, inplace, {4: 1, 5: 2})
