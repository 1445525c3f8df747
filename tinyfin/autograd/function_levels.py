"""Functions of the user under vmap and forward mode."""

from __future__ import annotations

from collections import namedtuple

from tinyfin.autograd.forward import fitted, parts
from tinyfin.autograd.function import JVP, Function, FunctionCtx, finish, overridden, run_forward
from tinyfin.autograd.levels import BATCH, DUAL, Level, level_of, live
from tinyfin.autograd.vmap import batched, moved, to_front, unpacked
from tinyfin.core import tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
VmapInfo = namedtuple("VmapInfo", ["batch_size", "randomness"])
VmapInfo.__doc__ = "What a Function's vmap is told of the batch."


def top_level(args: tuple) -> Level | None:
    """The greatest level among the arguments' wrappers."""
    found = [level_of(live(a)) for a in args if isinstance(a, Tensor)]
    found = [level for level in found if level is not None]
    return max(found, key=lambda level: level.number) if found else None


def apply_at(cls: type, level: Level, args: tuple) -> Any:
    """A call with wrappers of `level`: results from one level further out, then a node for the
    wrappers."""
    args = tuple(live(a) if isinstance(a, Tensor) else a for a in args)
    outs, single = (
        apply_batched(cls, level, args) if level.kind == BATCH else apply_dual(cls, level, args)
    )
    if tensor.mode() & 1 and any(isinstance(a, Tensor) and a.requires_grad for a in args):
        ctx = context_of(cls, args, outs, single)
        finish(cls, ctx, args, ctx.raw, outs)
    return outs[0] if single else tuple(outs)


def context_of(cls: type, args: tuple, outs: list, single: bool) -> FunctionCtx:
    """A ctx filled from the wrappers: by setup_context, or by running forward on them."""
    if not overridden(cls, "setup_context"):
        ctx, raw, _ = run_forward(cls, args)
        if ctx._dirty:
            raise NotImplementedError(
                f"{cls.__name__}: mark_dirty is not supported under vmap and forward mode"
            )
        ctx.raw = raw
        return ctx
    ctx = FunctionCtx()
    ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
    ctx.raw = outs
    cls.setup_context(ctx, args, outs[0] if single else tuple(outs))
    return ctx


# ---- forward mode


def apply_dual(cls: type, level: Level, args: tuple) -> tuple:
    """Primals by the call further out, tangents by jvp or by the derivative of backward."""
    pairs = [parts(level, a) for a in args]
    primals, tangents = tuple(p for p, _ in pairs), tuple(t for _, t in pairs)
    result = cls.apply(*primals)
    single = not isinstance(result, tuple)
    ys = [result] if single else list(result)
    ts = (
        by_jvp(cls, level, primals, tangents)
        if overridden(cls, "jvp")
        else by_backward(cls, primals, tangents, ys)
    )
    outs = []
    for y, t in zip(ys, ts):
        if not isinstance(y, Tensor) or t is None or not y.is_floating_point():
            outs.append(tensor.twin(y) if isinstance(y, Tensor) else y)
        else:
            outs.append(
                tensor.wrap(y, DUAL, (level, y, fitted(t, y, False, (*primals, *tangents, y))))
            )
    return outs, single


def by_jvp(cls: type, level: Level, primals: tuple, tangents: tuple) -> list:
    """Tangents by the class's own rule."""
    ctx, raw, _ = run_forward(cls, primals)
    if ctx._dirty:
        raise NotImplementedError(
            f"{cls.__name__}: mark_dirty is not supported under vmap and forward mode"
        )
    if ctx._materialize:
        tangents = tuple(
            F.zeros_of(p.shape, p)
            if t is None and isinstance(p, Tensor) and p.is_floating_point()
            else t
            for p, t in zip(primals, tangents)
        )
    ctx._node = JVP
    ts = cls.jvp(ctx, *tangents)
    ts = ts if isinstance(ts, tuple) else (ts,)
    if len(ts) != len(raw):
        raise RuntimeError(
            f"{cls.__name__}.jvp: returned {len(ts)} tangents, expected {len(raw)}, one for each "
            "result"
        )
    return list(ts)


def by_backward(cls: type, primals: tuple, tangents: tuple, ys: list) -> list:
    """Tangents as the derivative of backward with respect to its cotangents."""
    from tinyfin.autograd.forward import by_transposition

    return list(by_transposition(Applied(cls, len(ys)), primals, tangents, (), tuple(ys)))


class Applied:
    """A Function in the place of an operation."""

    def __init__(self, cls: type, nout: int) -> None:
        self.cls, self.nout = cls, nout

    def run_with(self, args: tuple, attrs: tuple) -> Any:
        """The call as operations are called."""
        result = self.cls.apply(*args)
        return result if self.nout > 1 or not isinstance(result, tuple) else result[0]


# ---- vmap


def apply_batched(cls: type, level: Level, args: tuple) -> tuple:
    """Results by the class's vmap, or by running forward and backward inside a vmap of their
    own."""
    pairs = [unpacked(level, a) for a in args]
    values, dims = tuple(v for v, _ in pairs), tuple(d for _, d in pairs)
    if overridden(cls, "vmap"):
        result, places = cls.vmap(VmapInfo(level.size, level.randomness), dims, *values)
        single = not isinstance(result, tuple)
        places = (
            list(places)
            if isinstance(places, (tuple, list))
            else [places] * (1 if single else len(result))
        )
    else:
        seen: dict = {}
        result = lifted(cls, level, dims, seen).apply(*values)
        single, places = seen["single"], seen["places"]
    ys = list(result) if isinstance(result, tuple) else [result]
    return [
        tensor.wrap(y, BATCH, (level, y, d % y.ndim), d % y.ndim) if d is not None else y
        for y, d in zip(ys, places)
    ], single


def lifted(cls: type, level: Level, dims: tuple, seen: dict) -> type:
    """A Function on values with a batch axis that runs cls on batched tensors.

    `seen` learns where the results' batch axes are, and whether there was a single result.
    """
    size, randomness = level.size, level.randomness

    class Lifted(Function):
        """One Function under one vmap."""

        @staticmethod
        def forward(ctx: FunctionCtx, *values: Any) -> Any:
            with Level(BATCH, size, randomness) as inside:
                outs = lifted_forward(cls, inside, ctx, values, dims, seen)
            return tuple(outs) if len(outs) > 1 else outs[0]

        @staticmethod
        def backward(ctx: FunctionCtx, *grads: Tensor | None) -> tuple:
            with Level(BATCH, size, randomness) as inside:
                return lifted_backward(cls, inside, ctx, grads, dims, seen["places"])

    Lifted.__name__ = cls.__name__
    return Lifted


def lifted_forward(
    cls: type, inside: Level, ctx: FunctionCtx, values: tuple, dims: tuple, seen: dict
) -> list:
    """cls.forward on batched tensors; what it keeps is kept as values and axes."""
    args = tuple(v if d is None else batched(inside, v, d) for v, d in zip(values, dims))
    inner, raw, seen["single"] = run_forward(cls, args)
    if inner._dirty:
        raise NotImplementedError(f"{cls.__name__}: mark_dirty is not supported under vmap")
    inner.needs_input_grad = ctx.needs_input_grad
    pairs = [unpacked(inside, r) if isinstance(r, Tensor) else (r, None) for r in raw]
    seen["places"] = [None if d is None else 0 for _, d in pairs]
    outs = [y if d is None else to_front(y, d) for y, d in pairs]
    fixed = inner._non_differentiable
    ctx._non_differentiable = tuple(y for y, r in zip(outs, raw) if any(r is n for n in fixed))
    kept = [(None, None) if t is None else unpacked(inside, t) for t in inner._to_save]
    ctx.save_for_backward(*(v for v, _ in kept))
    ctx.set_materialize_grads(inner._materialize)
    inner._non_differentiable = inner._to_save = ()
    ctx.inner, ctx.dims = inner, [d for _, d in kept]
    return outs


def lifted_backward(
    cls: type, inside: Level, ctx: FunctionCtx, grads: tuple, dims: tuple, places: list
) -> tuple:
    """cls.backward on batched tensors; gradients of shared arguments are summed over the batch."""
    kept = zip(ctx.saved_tensors, ctx.dims)
    saved = [v if d is None else batched(inside, v, d) for v, d in kept]
    ctx.inner._saved = [None if t is None else (t, t._version, -1, None) for t in saved]
    given = [g if g is None or d is None else batched(inside, g) for g, d in zip(grads, places)]
    rule = cls.vjp if overridden(cls, "vjp") else cls.backward
    found = rule(ctx.inner, *given)
    ctx.inner._saved = []
    found = found if isinstance(found, tuple) else (found,)
    taken_out = tuple(taken(inside, g, d) for g, d in zip(found, dims))
    return taken_out + (None,) * (len(dims) - len(found))


def taken(level: Level, g: Tensor | None, dim: int | None) -> Tensor | None:
    """The gradient of one argument: its axis where it was batched, else the sum over the batch."""
    if g is None:
        return None
    value, at = unpacked(level, g)
    if dim is None:
        return value if at is None else F.sum(value, at)
    if at is None:
        return F.expand(
            F.unsqueeze(value, dim), (*value.shape[:dim], level.size, *value.shape[dim:])
        )
    return moved(value, at, dim)
