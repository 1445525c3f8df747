"""Fresh leaves for a transformation, and results that forget them.

The recorded graph has no levels: a transformation differentiates with respect to leaves of its own,
and what it returns keeps its history only where an outer differentiation can ask for it.
"""

from __future__ import annotations

from tinyfin.autograd.engine import reaches_beyond
from tinyfin.core import tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor


def fresh(x: Tensor, outer: bool) -> Tensor:
    """A tensor over x's bytes to differentiate by: a node of its own over x's history, or a leaf.

    Args:
        outer: whether recording was on outside, so that x's own history counts.
    """
    if outer and x.requires_grad:
        return F.alias(x)
    return tensor.twin(x).requires_grad_()


def spend(leaves: Any) -> None:
    """Marks the leaves of a transformation that has ended: nobody differentiates by them any
    more."""
    for x in leaves:
        if x.is_leaf:
            x.set_extra_("spent", True)


def released(results: list, inner: set) -> list:
    """Results without the history that leads to inner leaves only; None stays."""
    return [None if r is None else released_one(r, inner) for r in results]


def released_one(r: Tensor, inner: set) -> Tensor:
    """One result, and what it wraps."""
    keeps = not r.requires_grad or reaches_beyond([r], inner)
    extra = r.extra_ or {}
    kind = "dual" if "dual" in extra else "batch" if "batch" in extra else None
    if kind is None:
        return r if keeps else tensor.twin(r)
    level, *parts = extra[kind]
    held = [released_one(p, inner) if isinstance(p, Tensor) else p for p in parts]
    if keeps and all(a is b for a, b in zip(held, parts)):
        return r
    out = tensor.twin(r, keeps)
    out.set_extra_(kind, (level, *held))
    return out
