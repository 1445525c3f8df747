"""Recurrent layers, and single cells."""

from __future__ import annotations

import math
import warnings

from tinyfin.core.tensor import Tensor
from tinyfin.creation import empty, zeros
from tinyfin.nn import functional, init
from tinyfin.nn.functional.arguments import check_counts
from tinyfin.nn.functional.recurrent import direction
from tinyfin.nn.module import Module
from tinyfin.nn.parameter import Parameter
from tinyfin.nn.utils.rnn import PackedSequence
from tinyfin.ops.recurrent import MODES, step
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    State = tuple[Tensor, ...]

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
"""Blocks of `hidden_size` rows in the weights of a mode."""


class _Recurrent(Module):
    """What layers and cells share."""

    hidden_size: int

    def reset_parameters(self) -> None:
        """Draws all parameters between +-1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)


class RNNBase(_Recurrent):
    """What RNN, LSTM and GRU share: parameters, layers, directions, packed and padded sequences."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if mode not in MODES:
            raise ValueError(f"{name}: mode is {mode!r}, expected one of {', '.join(MODES)}")
        check_counts(name, input_size=input_size, proj_size=proj_size)
        check_counts(name, 1, hidden_size=hidden_size, num_layers=num_layers)
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout is {dropout!r}, expected a number from 0 to 1")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"{name}: dropout comes between layers, so dropout={dropout} does nothing with num_layers=1",
                UserWarning,
                stacklevel=3,
            )
        if proj_size and mode != "LSTM":
            raise ValueError(f"{name}: proj_size is {proj_size}, which only LSTM has")
        if proj_size >= hidden_size:
            raise ValueError(f"{name}: proj_size is {proj_size}, expected less than hidden_size")
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        rows, out = GATES[mode] * hidden_size, proj_size or hidden_size
        for layer, suffix in self.directions():
            inputs = input_size if layer == 0 else out * (2 if bidirectional else 1)
            shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, out)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for key, shape in shapes.items():
                made = Parameter(empty(shape, device=device, dtype=dtype))
                self.register_parameter(f"{key}_l{layer}{suffix}", made)
        self.reset_parameters()

    def directions(self) -> Iterator[tuple[int, str]]:
        """(layer, suffix of its parameters) of each direction, in the order of the states."""
        for layer in range(self.num_layers):
            yield layer, ""
            if self.bidirectional:
                yield layer, "_reverse"

    def flatten_parameters(self) -> None:
        """Does nothing: kept for programs that lay parameters out for cuDNN."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each direction."""
        return [
            [p for p in self.weights(layer, suffix) if p is not None]
            for layer, suffix in self.directions()
        ]

    def weights(self, layer: int, suffix: str) -> tuple[Any, ...]:
        """Weights of input and state, their biases, and the projection's; None for those that are not there."""
        end = f"_l{layer}{suffix}"
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return tuple(getattr(self, name + end, None) for name in names)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """(h of the last layer at each step, states at the end of each layer and direction).

        Shapes: input (L, N, input_size), (N, L, input_size) with `batch_first`, (L, input_size) without a batch, or a
        PackedSequence; states (D * num_layers, N, size), where D is 2 with `bidirectional`; the output is like the input
        with D times the size of h.

        Raises:
            RuntimeError: a shape does not fit.
        """
        if isinstance(input, PackedSequence):
            x, sizes = input.data, input.batch_sizes.tolist()
            if hx is not None and input.sorted_indices is not None:
                hx = self.permuted(hx, input.sorted_indices)
            outputs, state = self.layers(x, sizes, self.checked(x, hx, sizes[0], ""))
            if input.unsorted_indices is not None:
                state = self.permuted(self.given(state), input.unsorted_indices)
                return PackedSequence(outputs, *input[1:]), state
            return PackedSequence(outputs, *input[1:]), self.given(state)
        if input.ndim not in (2, 3):
            raise RuntimeError(
                f"{type(self).__name__}: input has {input.ndim} dimensions, expected 2 (without a batch) or 3"
            )
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        steps, batch, features = x.shape
        if steps == 0:
            raise RuntimeError(f"{type(self).__name__}: input has no steps, expected at least one")
        states = self.checked(x, hx, batch, "" if batched else "without a batch ")
        flat, state = self.layers(x.reshape(steps * batch, features), [batch] * steps, states)
        y = flat.reshape(steps, batch, flat.shape[1])
        if not batched:
            return y.squeeze(1), self.given(tuple(s.squeeze(1) for s in state))
        return (y.transpose(0, 1) if self.batch_first else y), self.given(state)

    def layers(self, x: Tensor, sizes: list[int], states: State) -> tuple[Tensor, State]:
        """All layers over steps that lie one after the other."""
        ways = 2 if self.bidirectional else 1
        ends: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for way, suffix in enumerate(("", "_reverse")[:ways]):
                start = tuple(s[layer * ways + way] for s in states)
                weights = self.weights(layer, suffix)
                out, end = direction(self.mode, x, sizes, start, weights, reverse=way == 1)
                outputs.append(out)
                ends.append(end)
            x = outputs[0] if ways == 1 else F.cat(outputs, 1)
            if self.dropout and layer + 1 < self.num_layers:
                x = functional.dropout(x, self.dropout, self.training)
        return x, tuple(F.stack(list(s), 0) for s in zip(*ends))

    def checked(self, x: Tensor, hx: Any, batch: int, how: str) -> State:
        """The states where the sequence begins: (layers, batch, size) each; zeros where none are given."""
        name = type(self).__name__
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{name}: input has {x.shape[-1]} features, expected input_size, which is {self.input_size}"
            )
        out, count = self.proj_size or self.hidden_size, sum(1 for _ in self.directions())
        sizes = (out, self.hidden_size) if self.mode == "LSTM" else (out,)
        if hx is None:
            return tuple(
                zeros((count, batch, n), dtype=self.weight_hh_l0.dtype, device=x.device)
                for n in sizes
            )
        given = tuple(hx) if self.mode == "LSTM" and isinstance(hx, (tuple, list)) else (hx,)
        if len(given) != len(sizes):
            raise RuntimeError(f"{name}: hx is {len(given)} tensors, expected {len(sizes)}: (h, c)")
        for label, s, n in zip("hc", given, sizes):
            wanted = (count, n) if how else (count, batch, n)
            if not isinstance(s, Tensor) or tuple(s.shape) != wanted:
                got = tuple(s.shape) if isinstance(s, Tensor) else s
                raise RuntimeError(
                    f"{name}: {label}_0 {how}is {got}, expected a tensor of shape {wanted}"
                )
        return tuple(s.unsqueeze(1) for s in given) if how else given

    def given(self, state: State) -> Any:
        """States as callers get them."""
        return state if self.mode == "LSTM" else state[0]

    def permuted(self, hx: Any, places: Tensor) -> Any:
        """States of a batch in another order."""
        if isinstance(hx, (tuple, list)):
            return tuple(s.index_select(1, places) for s in hx)
        return hx.index_select(1, places)

    def extra_repr(self) -> str:
        """The options that are not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        options = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False}
        options |= {"dropout": 0.0, "bidirectional": False}
        for name, default in options.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), or with relu (Elman, 1990).

    Args:
        input_size: features of a step.
        hidden_size: size of h.
        num_layers: layers, each over the outputs of the one before.
        nonlinearity: 'tanh' or 'relu'.
        bias: whether to add b_ih and b_hh.
        batch_first: input and output are (N, L, ...) instead of (L, N, ...).
        dropout: probability of dropping an output of all layers but the last.
        bidirectional: a second network reads each layer's sequence backwards, outputs stand side by side.
        device: where the parameters are.
        dtype: their type.

    >>> y, h = nn.RNN(4, 6, num_layers=2)(tf.zeros(5, 3, 4))
    >>> tuple(y.shape), tuple(h.shape)
    ((5, 3, 6), (2, 3, 6))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: nonlinearity is {nonlinearity!r}, expected 'tanh' or 'relu'")
        options = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, *options)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997): c_t = f c_(t-1) + i g, h_t = o tanh(c_t).

    The gates i, f, g, o stand in this order in the weights. Arguments are those of `RNN`, and

    Args:
        proj_size: maps h to so many features by `weight_hr` (Sak et al., 2014); 0 does not.

    The second result, and `hx`, are the tuple (h, c).

    >>> y, (h, c) = nn.LSTM(4, 6, bidirectional=True, batch_first=True)(tf.zeros(3, 5, 4))
    >>> tuple(y.shape), tuple(h.shape), tuple(c.shape)
    ((3, 5, 12), (2, 3, 6), (2, 3, 6))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__("LSTM", input_size, hidden_size, *options)


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014): h_t = (1 - z) n + z h_(t-1), n = tanh(W_in x + b_in + r (W_hn h + b_hn)).

    The gates r, z, n stand in this order in the weights. Arguments are those of `RNN`.

    >>> y, h = nn.GRU(4, 6)(tf.zeros(5, 3, 4))
    >>> tuple(y.shape), tuple(h.shape)
    ((5, 3, 6), (1, 3, 6))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__("GRU", input_size, hidden_size, *options)


class RNNCellBase(_Recurrent):
    """What the cells share: one step of a recurrent layer. `mode` is one of MODES."""

    mode: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_counts(name, input_size=input_size)
        check_counts(name, 1, hidden_size=hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = GATES[self.mode] * hidden_size
        options = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(empty((rows, input_size), **options))
        self.weight_hh = Parameter(empty((rows, hidden_size), **options))
        if bias:
            self.bias_ih = Parameter(empty((rows,), **options))
            self.bias_hh = Parameter(empty((rows,), **options))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state. Shapes: input (N, input_size) or (input_size), state the same with `hidden_size`.

        Raises:
            RuntimeError: a shape does not fit.
        """
        name = type(self).__name__
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{name}: input is of shape {tuple(input.shape)}, expected (N, {self.input_size}) or ({self.input_size},)"
            )
        x = input if input.ndim == 2 else input.unsqueeze(0)
        wanted = (*input.shape[:-1], self.hidden_size)
        if hx is None:
            states = [zeros(wanted, dtype=self.weight_hh.dtype, device=x.device)] * (
                1 + (self.mode == "LSTM")
            )
        else:
            states = list(hx) if self.mode == "LSTM" else [hx]
        if len(states) != 1 + (self.mode == "LSTM"):
            raise RuntimeError(f"{name}: hx is {len(states)} tensors, expected 2: (h, c)")
        for s in states:
            if tuple(s.shape) != wanted:
                raise RuntimeError(f"{name}: hx is of shape {tuple(s.shape)}, expected {wanted}")
        if input.ndim == 1:
            states = [s.unsqueeze(0) for s in states]
        mapped = F.linear(x, self.weight_ih, self.bias_ih)
        found = step(self.mode, mapped, tuple(states), self.weight_hh, self.bias_hh)
        if input.ndim == 1:
            found = tuple(s.squeeze(0) for s in found)
        return found if self.mode == "LSTM" else found[0]

    def extra_repr(self) -> str:
        """The options that are not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if self.mode == "RNN_RELU":
            text += ", nonlinearity=relu"
        return text


class RNNCell(RNNCellBase):
    """One step of an `RNN`.

    >>> tuple(nn.RNNCell(4, 6)(tf.zeros(3, 4)).shape)
    (3, 6)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"RNNCell: nonlinearity is {nonlinearity!r}, expected 'tanh' or 'relu'"
            )
        self.mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`; state and result are (h, c).

    >>> h, c = nn.LSTMCell(4, 6)(tf.zeros(3, 4))
    >>> tuple(h.shape), tuple(c.shape)
    ((3, 6), (3, 6))
    """

    mode = "LSTM"


class GRUCell(RNNCellBase):
    """One step of a `GRU`.

    >>> tuple(nn.GRUCell(4, 6)(tf.zeros(3, 4)).shape)
    (3, 6)
    """

    mode = "GRU"
