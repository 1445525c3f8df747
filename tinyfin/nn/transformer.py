"""Layers of the Transformer (Vaswani et al., 2017), and stacks of them."""

from __future__ import annotations

import copy
import math

from tinyfin.core.dtype import dtype_by_name
from tinyfin.core.tensor import Tensor
from tinyfin.creation import full
from tinyfin.nn import functional, init
from tinyfin.nn.activation import Dropout
from tinyfin.nn.attention import MultiheadAttention
from tinyfin.nn.container import ModuleList
from tinyfin.nn.linear import Linear
from tinyfin.nn.module import Module
from tinyfin.nn.norm import LayerNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BOOL = dtype_by_name("bool")


class _Layer(Module):
    """The feed-forward part, and options that encoder and decoder layers share."""

    def _feed_forward(
        self,
        d_model: int,
        size: int,
        dropout: float,
        activation: Any,
        bias: bool,
        factory: dict[str, Any],
    ) -> None:
        self.linear1 = Linear(d_model, size, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(size, d_model, bias=bias, **factory)
        self.activation = _activation(activation)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _activation(name: Any) -> Any:
    if not isinstance(name, str):
        return name
    if name not in ("relu", "gelu"):
        raise RuntimeError(
            f"Transformer layer: activation is {name!r}, expected 'relu', 'gelu' or a function"
        )
    return functional.relu if name == "relu" else functional.gelu


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward net, each added to its input and normalised.

    Shapes: (S, N, d_model), with `batch_first` (N, S, d_model), or (S, d_model), to the same.

    Args:
        d_model: size of the vectors.
        nhead: heads of the attention.
        dim_feedforward: size of the hidden layer.
        dropout: probability of dropping.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: of the normalisations.
        batch_first: the batch is the first dimension.
        norm_first: normalise before each part, not after.
        bias: whether the maps and normalisations add one.
        device: where the parameters are.
        dtype: their type.

    Raises:
        AssertionError: `d_model` does not divide into the heads; in a call, shapes do not fit.
        RuntimeError: the activation is unknown.

    >>> layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> tuple(layer(tf.ones(3, 5, 8)).shape)
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias=bias, batch_first=batch_first, **factory
        )
        self._feed_forward(d_model, dim_feedforward, dropout, activation, bias, factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Runs the layer; masks are those of `MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            y, _ = self.self_attn(
                x,
                x,
                x,
                key_padding_mask=src_key_padding_mask,
                need_weights=False,
                attn_mask=src_mask,
                is_causal=is_causal,
            )
            return self.dropout1(y)

        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + self.dropout2(self._ff_block(self.norm2(x)))
        x = self.norm1(src + attend(src))
        return self.norm2(x + self.dropout2(self._ff_block(x)))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, and a feed-forward net.

    Shapes: tgt (T, N, d_model) and memory (S, N, d_model), with `batch_first` the batch first, or
    without N, to the shape of tgt. Arguments and errors are those of `TransformerEncoderLayer`.

    >>> layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> tuple(layer(tf.ones(3, 4, 8), tf.ones(3, 5, 8)).shape)
    (3, 4, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias=bias, batch_first=batch_first, **factory
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias=bias, batch_first=batch_first, **factory
        )
        self._feed_forward(d_model, dim_feedforward, dropout, activation, bias, factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.dropout3 = Dropout(dropout)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Runs the layer; masks are those of `MultiheadAttention`."""

        def own(x: Tensor) -> Tensor:
            y, _ = self.self_attn(
                x,
                x,
                x,
                key_padding_mask=tgt_key_padding_mask,
                need_weights=False,
                attn_mask=tgt_mask,
                is_causal=tgt_is_causal,
            )
            return self.dropout1(y)

        def other(x: Tensor) -> Tensor:
            y, _ = self.multihead_attn(
                x,
                memory,
                memory,
                need_weights=False,
                key_padding_mask=memory_key_padding_mask,
                attn_mask=memory_mask,
                is_causal=memory_is_causal,
            )
            return self.dropout2(y)

        if self.norm_first:
            x = tgt + own(self.norm1(tgt))
            x = x + other(self.norm2(x))
            return x + self.dropout3(self._ff_block(self.norm3(x)))
        x = self.norm1(tgt + own(tgt))
        x = self.norm2(x + other(x))
        return self.norm3(x + self.dropout3(self._ff_block(x)))


def _is_causal(given: bool | None, mask: Tensor | None) -> bool:
    """Whether a mask is the causal one; where it is not said, the mask is compared."""
    if given is not None or mask is None:
        return bool(given)
    if len(mask.shape) != 2 or mask.shape[0] != mask.shape[1]:
        return False
    wanted = causal_mask(mask.shape[0], mask)
    return bool(
        (
            (mask if mask.dtype != BOOL else mask.logical_not().to(wanted.dtype).log()) == wanted
        ).all()
    )


def causal_mask(sz: int, x: Tensor | None = None) -> Tensor:
    """Numbers to add to scores: -inf above the diagonal, 0 elsewhere."""
    options: dict[str, Any] = {} if x is None else {"device": x.device}
    return full((sz, sz), -math.inf, **options).triu(1)


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer.

    Args:
        encoder_layer: what is copied.
        num_layers: how often.
        norm: a module for the end.
        enable_nested_tensor: accepted for PyTorch's sake, without effect.
        mask_check: accepted for PyTorch's sake, without effect.

    >>> layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> tuple(nn.TransformerEncoder(layer, 2)(tf.ones(3, 5, 8)).shape)
    (3, 5, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Runs all layers; masks are those of `MultiheadAttention`."""
        causal = _is_causal(is_causal, mask)
        for layer in self.layers:
            src = layer(
                src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal
            )
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer.

    Args:
        decoder_layer: what is copied.
        num_layers: how often.
        norm: a module for the end.

    >>> layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> tuple(nn.TransformerDecoder(layer, 2)(tf.ones(3, 4, 8), tf.ones(3, 5, 8)).shape)
    (3, 4, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Runs all layers; masks are those of `MultiheadAttention`."""
        causal = _is_causal(tgt_is_causal, tgt_mask)
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder.

    Shapes: src (S, N, d_model) and tgt (T, N, d_model), with `batch_first` the batch first, or
    without N, to the shape of tgt. Arguments and errors are those of `TransformerEncoderLayer`.

    >>> net = nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
    >>> tuple(net(tf.ones(3, 5, 8), tf.ones(3, 4, 8)).shape)
    (3, 4, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = functional.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        options = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = (
            custom_encoder
            if custom_encoder is not None
            else TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norm())
        )
        self.decoder = (
            custom_decoder
            if custom_decoder is not None
            else TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norm())
        )
        for parameter in self.parameters():
            if len(parameter.shape) > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encodes `src` and decodes `tgt`; masks are those of `MultiheadAttention`.

        Raises:
            RuntimeError: batches or sizes differ.
        """
        batch = (0 if self.batch_first else 1) if len(src.shape) == 3 else None
        s, t = tuple(src.shape), tuple(tgt.shape)
        if len(s) != len(t) or (batch is not None and s[batch] != t[batch]):
            raise RuntimeError(f"Transformer: src is {s} and tgt {t}, expected equal batches")
        if s[-1] != self.d_model or t[-1] != self.d_model:
            raise RuntimeError(
                f"Transformer: src is {s} and tgt {t}, expected a last size of {self.d_model}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask: -inf above the diagonal, 0 elsewhere.

        >>> nn.Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)
