"""Lengths, distances and angles of vectors."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.nn.functional.arguments import composed
from tinyfin.shaping import broadcast_tensors, need_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@composed
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along a dimension divided by their length, or by `eps` where they are shorter.

    Args:
        input: of any shape.
        p: which norm.
        dim: the dimension, or several.
        eps: the least divisor.

    >>> [round(v, 3) for v in F.normalize(tf.tensor([[3.0, 4.0]])).flatten().tolist()]
    [0.6, 0.8]
    """
    need_tensors("normalize", input=input)
    return input / input.norm(p, dim, True).clamp(min=eps)


@composed
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
    need_tensors("cosine_similarity", x1=x1, x2=x2)
    x1, x2 = broadcast_tensors(x1, x2)
    a, b = (x / x.norm(2, dim, True).clamp(min=eps) for x in (x1, x2))
    return (a * b).sum(dim)


@composed
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Length of x1 - x2 + eps along the last dimension; the inputs broadcast.

    >>> F.pairwise_distance(tf.tensor([[0.0, 0.0]]), tf.tensor([[3.0, 4.0]]), eps=0.0).tolist()
    [5.0]
    """
    need_tensors("pairwise_distance", x1=x1, x2=x2)
    return (x1 - x2 + eps).norm(p, -1, keepdim)
