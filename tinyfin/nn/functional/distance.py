"""Lengths, distances and angles of vectors."""
from __future__ import annotations

from tinyfin.core.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along a dimension divided by their length, or by `eps` where they are shorter.

    Args:
        input: of any shape.
        p: which norm.
        dim: the dimension, or several.
        eps: the least divisor.

    >>> F.normalize(tf.tensor([[3.0, 4.0]])).tolist()
    [[0.6..., 0.8...]]
    """
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps).expand_as(input)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along a dimension; the inputs broadcast.

    Args:
        x1: of any shape.
        x2: of a shape that broadcasts with it.
        dim: the dimension.
        eps: the least length.

    >>> F.cosine_similarity(tf.tensor([[1.0, 0.0]]), tf.tensor([[2.0, 0.0]])).tolist()
    [1.0]
    """
    x1, x2 = x1.broadcast_tensors(x2) if hasattr(x1, "broadcast_tensors") else _broadcast(x1, x2)
    a = x1 / x1.norm(2, dim, keepdim=True).clamp(min=eps)
    b = x2 / x2.norm(2, dim, keepdim=True).clamp(min=eps)
    return (a * b).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """Length of x1 - x2 + eps along the last dimension; the inputs broadcast.

    >>> F.pairwise_distance(tf.tensor([[0.0, 0.0]]), tf.tensor([[3.0, 4.0]]), eps=0.0).tolist()
    [5.0]
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)
