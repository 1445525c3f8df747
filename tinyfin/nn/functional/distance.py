"""Lengths, distances and angles of vectors."""

from __future__ import annotations

import math

from tinyfin.core.tensor import Tensor
from tinyfin.nn.functional.arguments import composed
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def length(x: Tensor, p: float, dim: Any, keepdim: bool = False) -> Tensor:
    """Norm of order `p` along dimensions; its gradient at zero is zero."""
    if math.isinf(p):
        size = x.abs()
        return size.amax(dim, keepdim) if p > 0 else size.amin(dim, keepdim)
    if p == 0:
        return (x != 0).sum(dim, keepdim).to(x.dtype)
    if p == 1:
        return x.abs().sum(dim, keepdim)
    s = (x * x if p == 2 else x.abs() ** p).sum(dim, keepdim)
    zero = s == 0
    safe = F.where(zero, 1.0, s)
    return F.where(zero, 0.0, safe.sqrt() if p == 2 else safe ** (1.0 / p))


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
    return input / length(input, float(p), dim, True).clamp(min=eps)


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
    product = x1 * x2
    a = length(x1.expand_as(product), 2.0, dim).clamp(min=eps)
    b = length(x2.expand_as(product), 2.0, dim).clamp(min=eps)
    return product.sum(dim) / (a * b)


@composed
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Length of x1 - x2 + eps along the last dimension; the inputs broadcast.

    >>> F.pairwise_distance(tf.tensor([[0.0, 0.0]]), tf.tensor([[3.0, 4.0]]), eps=0.0).tolist()
    [5.0]
    """
    need_tensors("pairwise_distance", x1=x1, x2=x2)
    return length(x1 - x2 + eps, float(p), -1, keepdim)
