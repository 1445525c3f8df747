"""Meanings of attention."""

import numpy as np
from oracle import meaning


def probabilities(q, k, mask, is_causal, scale):
    """Softmax of the scores over the keys."""
    s = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    if is_causal:
        s = np.where(np.tril(np.ones(s.shape[-2:])) > 0, s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@meaning("scaled_dot_product_attention", loose=16)
def attention(
    q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if enable_gqa:
        times = q.shape[-3] // k.shape[-3]
        k, v = np.repeat(k, times, -3), np.repeat(v, times, -3)
    return probabilities(q, k, attn_mask, is_causal, scale) @ v


@meaning("sdpa_forward", loose=16)
def sdpa_forward(q, k, v, attn_mask=None, is_causal=False, scale=None):
    return attention(q, k, v, attn_mask, 0.0, is_causal, scale), None


@meaning("sdpa_grad", loose=32)
def sdpa_grad(g, q, k, v, attn_mask, out, lse, is_causal, scale):
    p = probabilities(q, k, attn_mask, is_causal, scale)
    dp = g @ np.swapaxes(v, -1, -2)
    ds = (
        p
        * (dp - (p * dp).sum(-1, keepdims=True))
        * (q.shape[-1] ** -0.5 if scale is None else scale)
    )
    return ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p, -1, -2) @ g
