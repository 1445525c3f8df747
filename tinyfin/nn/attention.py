"""Multi-head attention."""

from __future__ import annotations

import math

from tinyfin.core.dtype import dtype_by_name
from tinyfin.core.tensor import Tensor
from tinyfin.creation import empty, zeros
from tinyfin.nn import functional, init
from tinyfin.nn.functional.arguments import check_counts
from tinyfin.nn.linear import Linear
from tinyfin.nn.module import Module
from tinyfin.nn.parameter import Parameter
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BOOL = dtype_by_name("bool")


class MultiheadAttention(Module):
    """Attention in several heads, each with projections of its own.

    Shapes: query (L, N, E), key (S, N, kdim), value (S, N, vdim), with `batch_first` the batch N
    first, or without N; the output has the shape of query, the weights are (N, L, S), or
    (N, heads, L, S) where they are not averaged.

    Args:
        embed_dim: size E of query and output.
        num_heads: heads; each has size E / num_heads.
        dropout: probability of dropping a weight while training.
        bias: whether the projections add one.
        add_bias_kv: add a learned key and value to each sequence.
        add_zero_attn: add a zero key and value to each sequence.
        kdim: size of the keys, E by default.
        vdim: size of the values, E by default.
        batch_first: the batch is the first dimension.
        device: where the parameters are.
        dtype: their type.

    Raises:
        ValueError: a size is not positive.
        AssertionError: `embed_dim` does not divide into the heads; in a call, shapes do not fit.
        RuntimeError: in a call, a mask does not fit.

    >>> layer = nn.MultiheadAttention(8, num_heads=2, batch_first=True)
    >>> x = tf.ones(3, 5, 8)
    >>> y, weights = layer(x, x, x)
    >>> tuple(y.shape), tuple(weights.shape)
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_bias: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_counts("MultiheadAttention", -1 << 63, embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"MultiheadAttention: embed_dim is {embed_dim} and num_heads "
                f"{num_heads}, expected both above 0"
            )
        if embed_dim % num_heads:
            raise AssertionError(
                f"MultiheadAttention: embed_dim {embed_dim} does not divide into {num_heads} heads"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim, self.batch_first = embed_dim // num_heads, batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.add_zero_attn = add_zero_attn
        self._make(bias, add_bias_kv, device, dtype)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self._reset_parameters()

    def _make(self, bias: bool, bias_kv: bool, device: Any, dtype: Any) -> None:
        e, same = self.embed_dim, self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": None if same else (e, e),
            "k_proj_weight": None if same else (e, self.kdim),
            "v_proj_weight": None if same else (e, self.vdim),
            "in_proj_weight": (3 * e, e) if same else None,
            "in_proj_bias": (3 * e,) if bias else None,
            "bias_k": (1, 1, e) if bias_kv else None,
            "bias_v": (1, 1, e) if bias_kv else None,
        }
        for name, shape in shapes.items():
            value = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, value)

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = self._parameters[name]
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for x in (self.bias_k, self.bias_v):
            if x is not None:
                init.xavier_normal_(x)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends; returns the output and, with `need_weights`, the weights.

        Args:
            query: see the class.
            key: see the class.
            value: see the class.
            key_padding_mask: (N, S); bool, true for keys that are not seen, or numbers to add.
            need_weights: whether to return the weights.
            attn_mask: (L, S) or (N * heads, L, S); bool, true where attention is not allowed, or
                numbers to add.
            average_attn_weights: average the weights over the heads.
            is_causal: says that `attn_mask` is the causal mask, which must be given.
        """
        batched = len(query.shape) == 3
        q = self._batch_first(query, batched)
        k = q if key is query else self._batch_first(key, batched)
        v = k if value is key else self._batch_first(value, batched)
        self._check(q, k, v, attn_mask, is_causal)
        n, length, e = q.shape
        if key_padding_mask is not None and not batched:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        causal = is_causal and key_padding_mask is None and not need_weights
        mask = None if causal else _float_mask("attn_mask", attn_mask, q)
        padding = _float_mask("key_padding_mask", key_padding_mask, q)
        q, k, v = self._project(q, k, v)
        k, v, mask, padding = self._lengthen(k, v, mask, padding)
        q, k, v = (self._heads(x) for x in (q, k, v))
        mask = self._merge(mask, padding, n, length, k.shape[-2])
        drop = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = (q / math.sqrt(self.head_dim)) @ k.mT
            weights = F.softmax(scores if mask is None else scores + mask, -1)
            weights = functional.dropout(weights, drop)
            y = weights @ v
        else:
            y = functional.scaled_dot_product_attention(q, k, v, mask, drop, causal)
        y = self.out_proj(y.transpose(1, 2).reshape(n, length, e))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return y.squeeze(0), None if weights is None else weights.squeeze(0)
        return (y if self.batch_first else y.transpose(0, 1)), weights

    def _batch_first(self, x: Tensor, batched: bool) -> Tensor:
        if not batched:
            return x.unsqueeze(0)
        return x if self.batch_first else x.transpose(0, 1)

    def _check(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> None:
        shapes = [tuple(x.shape) for x in (q, k, v)]
        if any(len(s) != 3 for s in shapes):
            raise AssertionError(
                "MultiheadAttention: query, key and value differ in their number of "
                f"dimensions, or have other than 2 or 3: {shapes}"
            )
        (n, _, e), (kn, s, kd), (vn, vs, vd) = shapes
        if (e, kd, vd) != (self.embed_dim, self.kdim, self.vdim):
            raise AssertionError(
                f"MultiheadAttention: query, key and value have sizes {e}, {kd}, {vd}, "
                f"expected {self.embed_dim}, {self.kdim}, {self.vdim}"
            )
        if n != kn or (kn, s) != (vn, vs):
            raise AssertionError(
                "MultiheadAttention: query, key and value, batch first, are "
                f"{shapes}, expected equal batches, and keys for all values"
            )
        if causal and mask is None:
            raise RuntimeError("MultiheadAttention: is_causal=True without attn_mask")

    def _project(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        bias = self.in_proj_bias
        if not self._qkv_same_embed_dim:
            weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        elif q is k is v:
            return F.linear(q, self.in_proj_weight, bias).chunk(3, -1)
        else:
            weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases))
        return q, k, v

    def _lengthen(self, k: Tensor, v: Tensor, mask: Tensor | None, padding: Tensor | None) -> tuple:
        n, _, e = k.shape
        extra: list[Any] = [] if self.bias_k is None else [(self.bias_k, self.bias_v)]
        if self.add_zero_attn:
            zero = zeros((1, 1, e), dtype=k.dtype, device=k.device)
            extra.append((zero, zero))
        for a, b in extra:
            k, v = F.cat([k, a.expand(n, 1, e)], 1), F.cat([v, b.expand(n, 1, e)], 1)
            mask = None if mask is None else functional.pad(mask, (0, 1))
            padding = None if padding is None else functional.pad(padding, (0, 1))
        return k, v, mask, padding

    def _heads(self, x: Tensor) -> Tensor:
        n, length, _ = x.shape
        return x.reshape(n, length, self.num_heads, self.head_dim).transpose(1, 2)

    def _merge(
        self, mask: Tensor | None, padding: Tensor | None, n: int, length: int, keys: int
    ) -> Tensor | None:
        """One mask to add, that broadcasts to (N, heads, L, S)."""
        if mask is not None:
            shape = tuple(mask.shape)
            if shape == (n * self.num_heads, length, keys):
                mask = mask.reshape(n, self.num_heads, length, keys)
            elif shape != (length, keys):
                raise RuntimeError(
                    f"MultiheadAttention: attn_mask is {shape}, expected "
                    f"{(length, keys)} or {(n * self.num_heads, length, keys)}"
                )
        if padding is None:
            return mask
        if tuple(padding.shape) != (n, keys):
            raise AssertionError(
                f"MultiheadAttention: key_padding_mask is {tuple(padding.shape)}, "
                f"expected {(n, keys)}"
            )
        padding = padding.reshape(n, 1, 1, keys)
        return padding if mask is None else mask + padding


def _float_mask(name: str, mask: Tensor | None, x: Tensor) -> Tensor | None:
    """Numbers to add, from a bool mask that is true where nothing may be seen."""
    if mask is None:
        return None
    if mask.dtype == BOOL:
        return zeros(tuple(mask.shape), dtype=x.dtype, device=x.device).masked_fill(mask, -math.inf)
    if not mask.is_floating_point():
        raise AssertionError(
            f"MultiheadAttention: {name} is of {mask.dtype}, expected bool or a floating type"
        )
    return mask.to(x.dtype)
