"""Steps of recurrent networks over sequences whose batch may shrink: what the layers are made of.

A sequence is given step by step: `sizes` says how many of the batch are still there, never more than before.
States are tuples of (batch, size): (h,) or (h, c).
"""

from __future__ import annotations

from tinyfin.autograd.modes import is_grad_enabled
from tinyfin.core.tensor import Tensor
from tinyfin.ops.recurrent import step
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    State = tuple[Tensor, ...]
    Weights = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]


def direction(
    mode: str, x: Tensor, sizes: Sequence[int], state: State, weights: Weights, reverse: bool
) -> tuple[Tensor, State]:
    """One layer over a sequence, one way: (h of each step in the sequence's order, states at the end).

    Args:
        mode: one of `tinyfin.ops.recurrent.MODES`.
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
    if min(sizes) == max(sizes) and project is None and len(sizes) > 1:
        mapped = mapped.reshape(len(sizes), sizes[0], mapped.shape[1])
        return whole(mode, mapped, state, w_h, b_h, reverse)
    return by_steps(mode, mapped.split(list(sizes)), state, w_h, b_h, project, reverse)


def whole(
    mode: str, x: Tensor, state: State, w: Tensor, b: Tensor | None, reverse: bool
) -> tuple[Tensor, State]:
    """All steps of a batch that stays as large as it is, at once."""
    h, c = state if mode == "LSTM" else (state[0], None)
    given = [t for t in (x, h, c, w, b) if t is not None]
    if is_grad_enabled() and any(t.requires_grad for t in given):
        y, cells, _ = F.recurrence_steps(x, h, c, w, b, mode, reverse)
        end = 0 if reverse else x.shape[0] - 1
        state = (y[end],) if c is None else (y[end], cells[end])
        y = F.contiguous_copy(y)  # which callers may write over: the gradient needs the other
    else:
        y, c = F.recurrence(x, h, c, w, b, mode, reverse)
        end = y[0 if reverse else x.shape[0] - 1]
        state = (end, c) if mode == "LSTM" else (end,)
    return y.reshape(x.shape[0] * x.shape[1], y.shape[2]), state


def by_steps(
    mode: str,
    parts: Sequence[Tensor],
    state: State,
    w: Tensor,
    b: Tensor | None,
    project: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, State]:
    """Step by step: sequences end on the way, or begin where they are read backwards."""
    start, out = state, []
    ended: list[State] = []
    now = parts[-1 if reverse else 0].shape[0]
    if now < start[0].shape[0]:
        state = tuple(s.narrow(0, 0, now) for s in start)
    for part in reversed(parts) if reverse else parts:
        n = part.shape[0]
        if n < now:  # these sequences are over
            ended.append(tuple(s.narrow(0, n, now - n) for s in state))
            state = tuple(s.narrow(0, 0, n) for s in state)
        elif n > now:  # these begin
            state = tuple(
                F.cat([s, first.narrow(0, now, n - now)], 0) for s, first in zip(state, start)
            )
        now = n
        state = step(mode, part, state, w, b, project)
        out.append(state[0])
    if ended:
        state = tuple(F.cat(list(s), 0) for s in zip(state, *reversed(ended)))
    return F.cat(out[::-1] if reverse else out, 0), state
