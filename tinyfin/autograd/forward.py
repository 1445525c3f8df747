"""Forward mode over the rows: how tangents pass through one call, and through writes.

A dual shares its bytes with its primal. It has a history of its own, made of duals, so that the
reverse walk over duals gives duals: Hessian-vector products in both orders of nesting.
"""

from __future__ import annotations

from tinyfin.autograd import levels
from tinyfin.autograd.levels import DUAL, Level, entry_at
from tinyfin.autograd.views import strided
from tinyfin.core import tensor
from tinyfin.ops.row import F
from tinyfin.ops.table import offer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
Y, ARG, SHAPE, ATTR, TANGENT, DTYPE_OF = 1, 2, 3, 4, 6, 8
JOINT: dict = {}
"""op -> whether a linear op is linear in all arguments together (cat), not in each alone
(matmul)."""


def parts(level: Level, a: Any) -> tuple:
    """(primal, tangent or None) of an argument."""
    entry = entry_at(a, level)
    return (a, None) if entry is None else (entry[1], entry[2])


def call(level: Level, op, args: tuple, attrs: tuple):
    """One call with duals of this level among its arguments."""
    if op.name == "assign":
        return assign(level, *args)
    if op.inplace:
        return inplace(op, args, attrs)
    if op.mutates:
        return mutate(level, op, args, attrs)
    if by_formula(op):
        return op.formula(*args, *attrs)
    pairs = [parts(level, a) for a in args]
    primals, tangents = tuple(p for p, _ in pairs), tuple(t for _, t in pairs)
    result = op.run_with(primals, attrs)
    ys = result if op.nout > 1 else (result,)
    ts = (None,) * len(ys) if op.row.nondiff else tangents_of(op, primals, tangents, attrs, ys)
    if op.view:
        ts = (same_sharing(level, op, args[0], attrs, ys[0], ts[0]),)
    outs = tuple(finish(level, op, y, t, primals, tangents) for y, t in zip(ys, ts))
    tensor.record(op, args, attrs, outs)
    if op.view and outs[0].base is not None:
        remember_source(outs[0], level)
    return outs if op.nout > 1 else outs[0]


def by_formula(op) -> bool:
    """Whether the inner operations of a row's formula carry the tangents."""
    return (
        op.formula is not None
        and not op.row.nondiff
        and op.jvp is None
        and op.partials is None
        and not op.linear
    )


def finish(level: Level, op, y: Tensor, t: Any, primals: tuple, tangents: tuple) -> Tensor:
    """A dual of result and tangent; a plain twin where there is no tangent."""
    if t is None or not y.is_floating_point():
        return tensor.twin(y)
    return tensor.wrap(y, DUAL, (level, y, fitted(t, y, op.view, (*primals, *tangents, y))))


def fitted(t: Any, y: Tensor, view: bool, others: tuple) -> Tensor:
    """A tangent in its primal's dtype, shape and layout, in memory that no other tensor uses."""
    if not isinstance(t, Tensor):
        return F.full_of(y.shape, t, y)
    if t.dtype is not y.dtype:
        t = F.cast(t, y.dtype)
    if t.shape != y.shape:
        t = F.expand(t, y.shape)
    if view:
        return t
    shared = any(isinstance(o, Tensor) and tensor.shares_storage(t, o) for o in others)
    return F.contiguous_copy(t) if shared or not t.is_contiguous() else t


def same_sharing(
    level: Level, op, x: Tensor, attrs: tuple, y: Tensor, t: Tensor | None
) -> Tensor | None:
    """The tangent of a view is a view of the tangent exactly where the view is one of the
    primal."""
    if t is None:
        return None
    _, primal, tangent = entry_at(x, level)
    if not tensor.shares_storage(y, primal):
        return F.contiguous_copy(t) if tensor.shares_storage(t, tangent) else t
    if not tensor.shares_storage(t, tangent):
        tangent = laid(tangent, primal)
        x.set_extra_(DUAL, (level, primal, tangent))
        t = op.run_with((tangent,), attrs)
    (x.base if x.base is not None else x).set_extra_("viewed", True)
    return t


# ---- tangents of results


def tangents_of(op, primals: tuple, tangents: tuple, attrs: tuple, ys: tuple) -> tuple:
    """The tangent of each result by the row's rule; None where it is zero."""
    if op.jvp is not None:
        ts = apply_rule(op, op.jvp, primals, tangents, attrs, ys)
        return ts if isinstance(ts, tuple) else (ts,) + (None,) * (len(ys) - 1)
    if op.partials is not None:
        return (by_partials(op, primals, tangents, attrs, ys),)
    if op.linear:
        ts = by_linearity(op, primals, tangents, attrs)
        return ts if isinstance(ts, tuple) else (ts,)
    if op.vjp is not None or op.vjp_all is not None:
        return by_transposition(op, primals, tangents, attrs, ys)
    return (None,) * len(ys)


def apply_rule(op, rule, primals: tuple, tangents: tuple, attrs: tuple, ys: tuple):
    """Collects what a rule's parameters name and calls it."""
    last = op.nin - 1 if op.variadic else -1
    values = []
    for code, k in rule.parts():
        if code == Y:
            values.append(ys[k])
        elif code == ARG:
            values.append(primals[k:] if k == last else primals[k])
        elif code == SHAPE:
            values.append(tuple(map(shape_of, primals[k:])) if k == last else shape_of(primals[k]))
        elif code == ATTR:
            values.append(attrs[k])
        elif code == TANGENT:
            values.append(tangents[k:] if k == last else tangents[k])
        elif code == DTYPE_OF:
            values.append(primals[k].dtype)
        else:
            raise ValueError(f"{op.name}: a rule of forward mode asks for a cotangent")
    return rule.fn(*values)


def shape_of(a: Any) -> tuple:
    """The shape of an argument; numbers have none."""
    return tuple(a.shape) if isinstance(a, Tensor) else ()


def by_partials(op, primals: tuple, tangents: tuple, attrs: tuple, ys: tuple):
    """The sum of partial derivatives times tangents."""
    total = None
    for rule, t in zip(op.partials, tangents):
        if t is None or rule is None or rule.constant == 2:
            continue
        if rule.constant:
            term = t if rule.constant == 1 else F.neg(t)
        else:
            d = apply_rule(op, rule, primals, tangents, attrs, ys)
            if d is None:
                continue
            term = d * t
        total = add_tangents(total, term)
    return total


def is_joint(op) -> bool:
    """Whether a linear op is linear in its differentiable arguments together: no rule needs
    another of them."""
    if op not in JOINT:
        rules = op.vjp or ()
        active = {i for i, r in enumerate(rules) if r is not None and r.constant != 2}
        JOINT[op] = op.variadic or not any(op.save_inputs[i] for i in active)
    return JOINT[op]


def by_linearity(op, primals: tuple, tangents: tuple, attrs: tuple):
    """The op on tangents: all at once, or one after the other where it is a product."""
    given = [i for i, t in enumerate(tangents) if t is not None]
    if not op.view and all(tangents[i].numel() == 0 for i in given):
        return (None,) * op.nout  # a mean of nothing does not move
    if is_joint(op):
        filled = tuple(
            tangents[i] if i in given else F.zeros_of(p.shape, p) if replaceable(op, i, p) else p
            for i, p in enumerate(primals)
        )
        return op.run_with(filled, attrs)
    total = None
    for i in given:
        if op.optional and i < len(op.optional) and op.optional[i]:
            raise NotImplementedError(
                f"{op.name}: an optional argument of a linear row needs a rule of its own"
            )
        term = op.run_with((*primals[:i], tangents[i], *primals[i + 1 :]), attrs)
        total = term if total is None else add_tangents(total, term)
    return total


def replaceable(op, i: int, p: Any) -> bool:
    """Whether an argument of a jointly linear op that does not move counts as zero."""
    if not isinstance(p, Tensor) or not p.is_floating_point():
        return False
    rules = op.vjp or ()
    k = min(i, op.nin - 1)
    return k < len(rules) and rules[k] is not None and rules[k].constant != 2


def by_transposition(op, primals: tuple, tangents: tuple, attrs: tuple, ys: tuple) -> tuple:
    """J t as the vjp of the vjp: u -> J'u is linear, and its transpose is J."""
    from tinyfin.autograd.engine import run_backward
    from tinyfin.autograd.leaves import fresh, released, spend

    moving = [i for i, t in enumerate(tangents) if t is not None]
    inner = list(primals)
    old = tensor.set_mode(1, 1)
    outer = bool(old & 1)
    try:
        for i in moving:
            inner[i] = fresh(primals[i], outer)
        again = op.run_with(tuple(inner), attrs)
        again = again if op.nout > 1 else (again,)
        us = [F.zeros_of(y.shape, y).requires_grad_() if y.requires_grad else None for y in again]
        kept = [(y, u) for y, u in zip(again, us) if u is not None]
        if not kept:
            return (None,) * len(ys)
        xs = [inner[i] for i in moving]
        gs = run_backward([y for y, _ in kept], [u for _, u in kept], True, True, xs)
        live = [(g, tangents[i]) for g, i in zip(gs, moving) if g is not None and g.requires_grad]
        if not live:
            return (None,) * len(ys)
        js = run_backward(
            [g for g, _ in live], [t for _, t in live], True, outer, [u for _, u in kept]
        )
    finally:
        tensor.set_mode(old, 1)
    spend(xs + [u for _, u in kept])
    found = iter(released(js, set()))
    return tuple(None if u is None else next(found) for u in us)


def add_tangents(*terms):
    """The sum of those tangents that are there; None where none is."""
    total = None
    for t in terms:
        if t is not None:
            total = t if total is None else total + t
    return total


# ---- writes


def inplace(op, args: tuple, attrs: tuple) -> Tensor:
    """x.op_(...) as the plain operation, written over x."""
    x = args[0]
    tensor.check_write(x, op.name)
    saves = op.plain.save_inputs
    if saves and saves[0] and any(isinstance(a, Tensor) and a.requires_grad for a in args):
        args = (F.contiguous_copy(x), *args[1:])  # the old value, for the gradient
    result = op.plain.run_with(args, attrs)
    if result.shape != x.shape:
        raise RuntimeError(
            f"{op.name}: the result has shape {tuple(result.shape)}, the tensor written to "
            f"{tuple(x.shape)}"
        )
    if result.is_floating_point() and not x.is_floating_point():
        raise RuntimeError(
            f"{op.name}: the result has dtype {result.dtype}, which cannot be cast to the tensor's "
            f"{x.dtype}"
        )
    return tensor.assign(x, result)


def mutate(level: Level, op, args: tuple, attrs: tuple):
    """Rows that write their arguments: steps by their formula; random fills end the tangent."""
    if op.formula is not None:
        return op.formula(*args, *attrs)
    op.run_with(tuple(parts(level, a)[0] for a in args), attrs)
    for a in args:
        if entry_at(a, level) is not None:
            write_tangent(level, a, None)
    return args[0]


def assign(level: Level, x: Tensor, src: Tensor) -> Tensor:
    """x.copy_(src) where one of them is a dual of this level: x is one afterwards."""
    tensor.check_write(x, "copy_")
    value, t = parts(level, src)
    if entry_at(x, level) is None:
        if t is None or not x.is_floating_point():
            return tensor.assign(x, value)
        promote(level, x)
    tensor.assign(entry_at(x, level)[1], value)
    write_tangent(level, x, t)
    tensor.record_assign(x, src)
    return x


def write_tangent(level: Level, x: Tensor, t: Tensor | None) -> None:
    """Gives a dual that was written its new tangent; in place where views see it."""
    _, primal, tangent = entry_at(x, level)
    if x.base is not None or "viewed" in x.extra_:
        if t is not None:
            tangent = widened(level, x, tangent, t)
        tensor.assign(tangent, 0 if t is None else t)
        return
    if t is None:
        t = F.zeros_of(x.shape, primal)
    else:
        t = t if t.dtype is x.dtype else F.cast(t, x.dtype)
        # a cast gives a tensor, which a checker cannot see
        t = laid(t if t.shape == x.shape else F.expand(t, x.shape), primal)  # pyright: ignore[reportOptionalMemberAccess]
    x.set_extra_(DUAL, (level, primal, t))


def widened(level: Level, x: Tensor, tangent: Tensor, t: Tensor) -> Tensor:
    """x's tangent, in all batches that t is in; where it lacks one, its base gets a new tangent
    first."""
    from tinyfin.autograd.vmap import batches, spread

    if batches(t) <= batches(tangent):
        return tangent
    root = x if x.base is None else x.base
    entry = entry_at(root, level)
    if entry is None:
        wide = laid(spread(tangent, t), entry_at(x, level)[1])
        x.set_extra_(DUAL, (level, entry_at(x, level)[1], wide))
        return wide
    root.set_extra_(DUAL, (level, entry[1], laid(spread(entry[2], t), entry[1])))
    if root is not x:
        follow(x, root)
    return entry_at(x, level)[2]


def remember_source(x: Tensor, level: Level) -> None:
    """Notes of which tangent of its base a view's tangent is a view: the base may get a new one."""
    entry = entry_at(x.base, level)
    if entry is not None:
        x.set_extra_("source", entry[2])


def promote(level: Level, x: Tensor) -> None:
    """Makes a tensor that was none a dual of this level, with tangent zero; its base first."""
    base = x.base
    if base is not None:
        if entry_at(base, level) is None:
            promote(level, base)
        follow(x, base)
        return
    primal = tensor.twin(x, True)
    x.set_extra_("batch", None)
    x.set_extra_("viewed", True)
    x.set_extra_(DUAL, (level, primal, laid(None, primal)))


def follow(x: Tensor, base: Tensor) -> None:
    """A view of a tensor that became a dual after the view was made becomes one too."""
    level, primal, tangent = base.extra_[DUAL]
    own = x.extra_ or {}
    mine = own.get(DUAL) or own.get("batch")
    if not level.open or (mine is not None and mine[0].number > level.number):
        return
    if mine is not None and mine[0] is level:
        if own.get("source") is tangent:
            return
        twin = mine[1]
    else:
        twin = tensor.twin(x, True)
        tensor.rebase(twin, primal)
    start = x.storage_offset() - primal.storage_offset() + tangent.storage_offset()
    moved = strided(tangent, tuple(x.shape), x.stride(), start)
    x.set_extra_("batch", None)
    x.set_extra_(DUAL, (level, twin, moved))
    x.set_extra_("source", tangent)


def laid(t: Tensor | None, like: Tensor) -> Tensor:
    """t, or zeros, with the strides of another tensor and in memory of its own."""
    if like.is_contiguous() or any(s == 0 and n > 1 for s, n in zip(like.stride(), like.shape)):
        return F.zeros_of(like.shape, like) if t is None else F.contiguous_copy(t)
    reach = [s * (n - 1) for s, n in zip(like.stride(), like.shape)]
    low, span = sum(r for r in reach if r < 0), sum(map(abs, reach)) + 1
    line = F.zeros_of((span,), like)
    if t is not None:
        from tinyfin.autograd.vmap import spread

        line = spread(line, t)
    out = strided(line, tuple(like.shape), like.stride(), -low)
    if t is not None:
        tensor.assign(out, t)
    return out


levels.RULES[DUAL] = call
offer("add_tangents", add_tangents)
