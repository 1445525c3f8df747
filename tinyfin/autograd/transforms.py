"""Transformations of functions: grad, vjp, jvp and what is made of them.

Each differentiates with respect to leaves of its own (see leaves.py), so that they nest in any
order with each other, with vmap and with recording outside.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from tinyfin.autograd import tree
from tinyfin.autograd.engine import reaches_beyond, run_backward
from tinyfin.autograd.leaves import fresh, released, spend
from tinyfin.core import tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
GRAD = 1


def picked(name: str, args: tuple, argnums: int | tuple[int, ...]) -> tuple:
    """The arguments to differentiate by: one, or a tuple of them."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    for n in numbers:
        if not isinstance(n, int):
            raise TypeError(
                f"{name}: argnums is {argnums!r}, expected an integer or a tuple of integers"
            )
        if not -len(args) <= n < len(args):
            raise RuntimeError(
                f"{name}: argnums is {argnums!r}, but func was called with {len(args)} positional "
                "arguments"
            )
    if len({n % len(args) for n in numbers}) < len(numbers):
        raise RuntimeError(f"{name}: argnums {argnums!r} names an argument twice")
    return tuple(args[n] for n in numbers) if isinstance(argnums, tuple) else args[argnums]


def placed(args: tuple, argnums: int | tuple[int, ...], value: Any) -> tuple:
    """The arguments with those of argnums replaced."""
    out = list(args)
    if isinstance(argnums, tuple):
        for n, v in zip(argnums, value):
            out[n] = v
    else:
        out[argnums] = value
    return tuple(out)


def checked_leaves(name: str, what: str, value: Any) -> list:
    """The leaves of a tree, which must be floating-point tensors."""
    leaves = tree.flatten(value)
    if not leaves:
        raise RuntimeError(f"{name}: {what} holds no tensors")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{name}: {what} holds {x!r} of type {type(x).__name__}, expected Tensors in "
                "tuples, lists "
                "or dicts"
            )
        if not x.is_floating_point():
            raise RuntimeError(
                f"{name}: {what} holds a tensor of dtype {x.dtype}, expected a floating-point dtype"
            )
    return leaves


class Recording:
    """Recording on for a block; `outer` says whether it was on before."""

    def __enter__(self) -> Recording:
        self.old = tensor.set_mode(GRAD, GRAD)
        self.outer = bool(self.old & GRAD)
        return self

    def __exit__(self, *exc: object) -> None:
        tensor.set_mode(self.old, GRAD)


def forget(value: Any, inner: set) -> Any:
    """A tree of results without the history that only leads to inner leaves."""
    leaves = tree.flatten(value)
    kept = iter(released([x for x in leaves if isinstance(x, Tensor)], inner))
    return tree.unflatten(value, [next(kept) if isinstance(x, Tensor) else x for x in leaves])


def pulled(outs: list, cots: list, xs: list, outer: bool, retain: bool = False) -> list:
    """The gradients of outs with respect to xs, zeros where there is none."""
    live = [(y, g) for y, g in zip(outs, cots) if y.requires_grad]
    gs: list = [None] * len(xs)
    if live:
        inner = set(xs)
        keep = outer and (
            any(g.requires_grad for _, g in live) or reaches_beyond([y for y, _ in live], inner)
        )
        gs = run_backward([y for y, _ in live], [g for _, g in live], retain or keep, keep, xs)
        gs = released(gs, inner)
    return [F.zeros_of(x.shape, x) if g is None else g for g, x in zip(gs, xs)]


def split_aux(name: str, result: Any, has_aux: bool) -> tuple:
    """(output, aux or None) of a function's result."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: has_aux is True, but func returned {type(result).__name__}, expected "
            "(output, aux)"
        )
    return result


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns (gradient, value) of func, whose output is a single number.

    Args:
        argnums: which positional arguments to differentiate by; each may be a tree of tensors.
        has_aux: func returns (output, aux), and the result is (gradient, (output, aux)).

    Raises:
        RuntimeError: the output has more than one element, or argnums does not fit the call.

    >>> import tinyfin
    >>> g, y = tinyfin.func.grad_and_value(lambda x: x ** 3)(tinyfin.tensor(2.0))
    >>> g.item(), y.item()
    (12.0, 8.0)
    """
    return differentiated("grad_and_value", func, argnums, has_aux)


def differentiated(
    name: str, func: Callable[..., Any], argnums: int | tuple[int, ...], has_aux: bool
) -> Callable[..., Any]:
    """grad_and_value, under the name that errors shall use."""

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> tuple:
        at = picked(name, args, argnums)
        leaves = checked_leaves(name, "the argument to differentiate by", at)
        with Recording() as mode:
            xs = [fresh(x, mode.outer) for x in leaves]
            result = func(*placed(args, argnums, tree.unflatten(at, xs)), **kwargs)
            y, aux = split_aux(name, result, has_aux)
            if not isinstance(y, Tensor) or y.numel() != 1:
                what = (
                    f"shape {tuple(y.shape)}"
                    if isinstance(y, Tensor)
                    else f"type {type(y).__name__}"
                )
                raise RuntimeError(
                    f"{name}: func returned an output of {what}, expected a tensor of one element"
                )
            if not y.is_floating_point():
                raise RuntimeError(
                    f"{name}: func returned an output of dtype {y.dtype}, expected floating point"
                )
            gs = pulled([y], [F.full_of(y.shape, 1.0, y)], xs, mode.outer)
            value = forget((y, aux) if has_aux else y, set(xs))
            spend(xs)
        return tree.unflatten(at, gs), value

    return wrapped


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of func, whose output is a single number.

    Args:
        argnums: which positional arguments to differentiate by; each may be a tree of tensors.
        has_aux: func returns (output, aux), and the result is (gradient, aux).

    Raises:
        RuntimeError: the output has more than one element, or argnums does not fit the call.

    >>> import tinyfin
    >>> from tinyfin.func import grad
    >>> grad(grad(lambda x: x ** 3))(tinyfin.tensor(2.0)).item()
    12.0
    """
    both = differentiated("grad", func, argnums, has_aux)

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        g, value = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return wrapped


def value_and_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns (value, gradient) of func, whose output is a single number.

    Args:
        argnums: which positional arguments to differentiate by; each may be a tree of tensors.
        has_aux: func returns (output, aux), and the result is ((output, aux), gradient).

    >>> import tinyfin
    >>> y, g = tinyfin.func.value_and_grad(lambda x: x * x)(tinyfin.tensor(3.0))
    >>> y.item(), g.item()
    (9.0, 6.0)
    """
    both = differentiated("value_and_grad", func, argnums, has_aux)

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> tuple:
        g, value = both(*args, **kwargs)
        return value, g

    return wrapped


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(func(*primals), pull), where pull maps cotangents of the output to those of the primals.

    Args:
        has_aux: func returns (output, aux), and the result is (output, pull, aux).

    Raises:
        RuntimeError: the output holds no tensor; in pull: a cotangent does not fit the output.

    >>> import tinyfin
    >>> y, pull = tinyfin.func.vjp(lambda x: x * x, tinyfin.tensor([1.0, 3.0]))
    >>> pull(tinyfin.ones(2))[0].tolist()
    [2.0, 6.0]
    """
    leaves = checked_leaves("vjp", "primals", primals)
    with Recording() as mode:
        xs = [fresh(x, mode.outer) for x in leaves]
        result, aux = split_aux("vjp", func(*tree.unflatten(primals, xs)), has_aux)
    outs = checked_leaves("vjp", "the output of func", result)
    inner = set(xs)
    spend(xs)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """Cotangents of the primals; one primal gives a tuple of one, as PyTorch does."""
        cots = matching(result, cotangents[0] if len(cotangents) == 1 else cotangents, outs)
        with Recording() as now:
            keep = now.outer if create_graph is None else create_graph
            return tree.unflatten(primals, pulled(outs, cots, xs, keep, True))

    value = forget(result, inner)
    return (value, pull, forget(aux, inner)) if has_aux else (value, pull)


def matching(result: Any, cotangents: Any, outs: list) -> list:
    """The leaves of a tree of cotangents, which must be built like the output."""
    if not tree.same_build(result, cotangents):
        raise RuntimeError("vjp: the cotangents are not nested like the output of func")
    cots = tree.flatten(cotangents)
    for y, g in zip(outs, cots):
        if not isinstance(g, Tensor) or g.shape != y.shape:
            what = tuple(g.shape) if isinstance(g, Tensor) else type(g).__name__
            raise RuntimeError(
                f"vjp: a cotangent is {what}, expected a Tensor of the output's shape "
                f"{tuple(y.shape)}"
            )
    return [g if g.dtype is y.dtype else g.to(y.dtype) for y, g in zip(outs, cots)]


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """(func(*primals), its derivative along tangents), by forward mode.

    Args:
        strict: raise where an output does not depend on the primals, instead of giving zeros.
        has_aux: func returns (output, aux), and the result is (output, derivative, aux).

    Raises:
        RuntimeError: primals and tangents are not tuples, or not nested alike.

    >>> import tinyfin
    >>> x, t = tinyfin.tensor([1.0, 2.0]), tinyfin.tensor([1.0, 0.0])
    >>> tinyfin.func.jvp(lambda x: x * x, (x,), (t,))[1].tolist()
    [2.0, 0.0]
    """
    from tinyfin.autograd import forward_ad

    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or not primals:
        raise RuntimeError("jvp: primals and tangents must be tuples of tensors, at least one each")
    if not tree.same_build(primals, tangents):
        raise RuntimeError("jvp: tangents are not nested like primals")
    xs, ts = checked_leaves("jvp", "primals", primals), checked_leaves("jvp", "tangents", tangents)
    for x, t in zip(xs, ts):
        if x.shape != t.shape:
            raise RuntimeError(
                f"jvp: a tangent has shape {tuple(t.shape)}, its primal {tuple(x.shape)}"
            )
    with forward_ad.dual_level() as level:
        duals = [forward_ad.make_dual(x, t) for x, t in zip(xs, ts)]
        result, aux = split_aux("jvp", func(*tree.unflatten(primals, duals)), has_aux)
        pairs = [forward_ad.unpack_dual(y, level=level) for y in tree_of_tensors("jvp", result)]
        if strict and any(t is None for _, t in pairs):
            raise RuntimeError("jvp: an output does not depend on the primals, and strict is True")
        value = tree.unflatten(result, [p for p, _ in pairs])
        moved = tree.unflatten(
            result, [F.zeros_of(p.shape, p) if t is None else t for p, t in pairs]
        )
        if has_aux:
            return value, moved, tree.mapped(lambda y: without_dual(y, level), aux)
    return value, moved


def without_dual(y: Any, level: Any) -> Any:
    """An aux value without its tangent."""
    from tinyfin.autograd import forward_ad

    return forward_ad.unpack_dual(y, level=level).primal if isinstance(y, Tensor) else y


def tree_of_tensors(name: str, result: Any) -> list:
    """The leaves of a result, which must be tensors."""
    leaves = tree.flatten(result)
    for y in leaves:
        if not isinstance(y, Tensor):
            raise RuntimeError(
                f"{name}: func returned {y!r} of type {type(y).__name__}, expected Tensors"
            )
    return leaves


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, ...]:
    """(func(*primals), push), where push maps tangents of the primals to those of the output.

    >>> import tinyfin
    >>> y, push = tinyfin.func.linearize(lambda x: x * x, tinyfin.tensor([1.0, 3.0]))
    >>> push(tinyfin.ones(2)).tolist()
    [2.0, 6.0]
    """

    def push(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return func(*primals), push


def hvp(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, ...]:
    """(gradient, Hessian times tangents) of a function with a single number as output.

    >>> import tinyfin
    >>> x = tinyfin.tensor([1.0, 2.0])
    >>> tinyfin.func.hvp(lambda x: (x ** 3).sum(), (x,), (tinyfin.ones(2),))[1].tolist()
    [6.0, 12.0]
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError("hvp: primals and tangents must be tuples of tensors, at least one each")
    if len(primals) == 1:
        return jvp(grad(func), primals, tangents)
    return jvp(grad(func, tuple(range(len(primals)))), primals, tangents)
