"""Steps of recurrent networks over sequences whose batch may shrink: what the layers are made of.

A sequence is given step by step: `sizes` says how many of the batch are still there, never more than before.
States are tuples of (batch, size): (h,) or (h, c).
"""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    State = tuple[Tensor, ...]
    Weights = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]
    Step = Callable[[Tensor, State, Tensor, Tensor | None, Tensor | None], State]


def tanh_step(x: Tensor, state: State, w: Tensor, b: Tensor | None, p: Tensor | None) -> State:
    """h' = tanh(x + W h)."""
    return (F.tanh(x + F.linear(state[0], w, b)),)


def relu_step(x: Tensor, state: State, w: Tensor, b: Tensor | None, p: Tensor | None) -> State:
    """h' = relu(x + W h)."""
    return (F.relu(x + F.linear(state[0], w, b)),)


def lstm_step(x: Tensor, state: State, w: Tensor, b: Tensor | None, p: Tensor | None) -> State:
    """c' = f c + i g, h' = o tanh(c') (Hochreiter and Schmidhuber, 1997), mapped by `p` where it is given."""
    h, c = state
    n = c.shape[1]
    gates = x + F.linear(h, w, b)
    i, f = gates.narrow(1, 0, n), gates.narrow(1, n, n)
    g, o = gates.narrow(1, 2 * n, n), gates.narrow(1, 3 * n, n)
    c = F.sigmoid_gated(f, c, F.sigmoid_tanh(i, g))
    h = F.sigmoid_tanh(o, c)
    return (h if p is None else F.linear(h, p, None), c)


def gru_step(x: Tensor, state: State, w: Tensor, b: Tensor | None, p: Tensor | None) -> State:
    """h' = n + z (h - n) with n = tanh(x_n + r (W h)_n) (Cho et al., 2014, as cuDNN has it)."""
    h = state[0]
    n = h.shape[1]
    own = F.linear(h, w, b)
    both = x.narrow(1, 0, 2 * n) + own.narrow(1, 0, 2 * n)
    r, z = both.narrow(1, 0, n), both.narrow(1, n, n)
    new = F.tanh(F.sigmoid_gated(r, own.narrow(1, 2 * n, n), x.narrow(1, 2 * n, n)))
    return (F.sigmoid_gated(z, h - new, new),)


STEPS: dict[str, Step] = {
    "RNN_TANH": tanh_step,
    "RNN_RELU": relu_step,
    "LSTM": lstm_step,
    "GRU": gru_step,
}


def direction(
    mode: str, x: Tensor, sizes: Sequence[int], state: State, weights: Weights, reverse: bool
) -> tuple[list[Tensor], State]:
    """One layer over a sequence, one way: (h of each step in the sequence's order, states at the end).

    Args:
        mode: a key of STEPS.
        x: all steps one after the other: (sum of sizes, features).
        sizes: of the batch at each step.
        state: where it begins.
        weights: of the input, of the state, their biases, and the projection's.
        reverse: from the last step to the first.
    """
    w_x, w_h, b_x, b_h, project = weights
    if mode != "GRU" and b_x is not None and b_h is not None:  # added once for all steps
        b_x, b_h = b_x + b_h, None
    mapped = F.linear(x, w_x, b_x)
    if min(sizes) == max(sizes):
        parts = mapped.reshape(len(sizes), sizes[0], mapped.shape[1]).unbind(0)
    else:
        parts = mapped.split(list(sizes))
    step, start, out = STEPS[mode], state, []
    ended: list[State] = []
    now = sizes[-1] if reverse else sizes[0]
    if now < start[0].shape[0]:
        state = tuple(s.narrow(0, 0, now) for s in start)
    for part, n in zip(reversed(parts), reversed(sizes)) if reverse else zip(parts, sizes):
        if n < now:  # these sequences are over
            ended.append(tuple(s.narrow(0, n, now - n) for s in state))
            state = tuple(s.narrow(0, 0, n) for s in state)
        elif n > now:  # these begin
            state = tuple(
                F.cat([s, first.narrow(0, now, n - now)], 0) for s, first in zip(state, start)
            )
        now = n
        state = step(part, state, w_h, b_h, project)
        out.append(state[0])
    if ended:
        state = tuple(F.cat(list(s), 0) for s in zip(state, *reversed(ended)))
    return (out[::-1] if reverse else out), state
