"""Attention: means of values, weighted by how well queries and keys agree."""
from __future__ import annotations

import math

from tinyfin.core.dtype import dtype_by_name
from tinyfin.core.tensor import Tensor
from tinyfin.creation import ones
from tinyfin.nn.functional.dropout import dropout
from tinyfin.ops.row import F

BOOL = dtype_by_name("bool")


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor,
                                 attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(query key^T * scale + mask) value.

    Shapes: (..., L, E), (..., S, E), (..., S, V) give (..., L, V).

    Args:
        query: what is looked for.
        key: what is compared with it.
        value: what is averaged.
        attn_mask: bool, true where attention is allowed; or numbers, added before the softmax.
        dropout_p: probability of dropping a weight.
        is_causal: let each query see only keys up to its own place.
        scale: by default 1 / sqrt(E).
        enable_gqa: repeat the heads (dimension -3) of key and value up to those of query.

    Raises:
        RuntimeError: the shapes do not fit, or both `attn_mask` and `is_causal` are given.
        ValueError: `dropout_p` is not between 0 and 1.

    >>> q = tf.zeros(1, 2, 4)
    >>> F.scaled_dot_product_attention(q, q, tf.tensor([[[1.0], [3.0]]])).tolist()
    [[[2.0], [2.0]]]
    """
    _check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    if dropout_p == 0.0:
        return F.scaled_dot_product_attention(query, key, value, attn_mask, is_causal, scale)
    weights = attention_weights(query, key, attn_mask, is_causal, scale)
    return dropout(weights, dropout_p) @ value


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> None:
    q, k, v = tuple(query.shape), tuple(key.shape), tuple(value.shape)
    if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2]:
        raise RuntimeError(f"scaled_dot_product_attention: query {q}, key {k} and value {v} do not "
                           "fit, expected (..., L, E), (..., S, E) and (..., S, V)")
    if mask is not None and causal:
        raise RuntimeError("scaled_dot_product_attention: got attn_mask and is_causal=True, expected "
                           "one of them")


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None = None,
                      is_causal: bool = False, scale: float | None = None) -> Tensor:
    """softmax(query key^T * scale + mask); rows that see nothing are zero."""
    scores = (query * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)) @ key.mT
    if is_causal:
        mask = causal_mask(query.shape[-2], key.shape[-2], query)
    if mask is None:
        return F.softmax(scores, -1)
    if mask.dtype != BOOL:
        return F.softmax(scores + mask, -1)
    weights = F.softmax(scores.masked_fill(mask.logical_not(), -math.inf), -1)
    return weights.masked_fill(mask.any(-1, keepdim=True).logical_not(), 0.0)


def causal_mask(n: int, m: int, x: Tensor) -> Tensor:
    """True where query i may see key j: j <= i."""
    return ones((n, m), device=x.device).tril() > 0
