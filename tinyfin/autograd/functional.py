"""PyTorch's autograd.functional: derivatives of a function at a point, in one call."""

from __future__ import annotations

from collections.abc import Callable

from tinyfin.autograd import jacobians, transforms
from tinyfin.autograd.engine import run_backward
from tinyfin.autograd.leaves import fresh
from tinyfin.core import tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor


def as_tuple(name: str, what: str, value: Any) -> tuple:
    """A tensor or a tuple of tensors as a tuple."""
    items = (value,) if isinstance(value, Tensor) else value
    if not isinstance(items, (tuple, list)) or not all(isinstance(x, Tensor) for x in items):
        raise TypeError(
            f"{name}: {what} is {type(value).__name__}, expected a Tensor or a tuple of Tensors"
        )
    return tuple(items)


class Recorded:
    """Recording as create_graph asks for; the results keep their history only then."""

    def __init__(self, create_graph: bool) -> None:
        self.bits = int(create_graph)

    def __enter__(self) -> None:
        self.old = tensor.set_mode(self.bits, 1)

    def __exit__(self, *exc: object) -> None:
        tensor.set_mode(self.old, 1)


def like_given(given: Any, items: tuple) -> Any:
    """A tuple where one was given, else its only element."""
    return items if isinstance(given, (tuple, list)) else items[0]


def directions(name: str, v: Any, tensors: tuple, needed: bool) -> tuple:
    """v as a tuple that fits the tensors; a one where a single number allows to leave it out."""
    if v is None:
        if needed and (len(tensors) != 1 or tensors[0].numel() != 1):
            raise RuntimeError(f"{name}: v can only be left out for a single tensor of one element")
        return tuple(F.full_of(x.shape, 1.0, x) for x in tensors)
    vs = as_tuple(name, "v", v)
    if len(vs) != len(tensors) or any(a.shape != b.shape for a, b in zip(vs, tensors)):
        raise RuntimeError(
            f"{name}: v has shapes {[tuple(a.shape) for a in vs]}, expected "
            f"{[tuple(b.shape) for b in tensors]}"
        )
    return vs


def demand_dependence(name: str, func: Callable, xs: tuple) -> None:
    """strict=True: every output must depend on every input."""
    old = tensor.set_mode(1, 1)
    try:
        leaves = [fresh(x, False) for x in xs]
        outs = as_tuple(name, "the output of func", func(*leaves))
        for j, y in enumerate(outs):
            if not y.requires_grad:
                raise RuntimeError(
                    f"{name}: output {j} does not depend on the inputs, and strict is True"
                )
            found = run_backward([y], [F.full_of(y.shape, 1.0, y)], True, False, leaves)
            for i, g in enumerate(found):
                if g is None:
                    raise RuntimeError(
                        f"{name}: output {j} does not depend on input {i}, and strict is True"
                    )
    finally:
        tensor.set_mode(old, 1)


def vjp(
    func: Callable,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple:
    """(func's output, v times its Jacobian).

    >>> import tinyfin
    >>> from tinyfin.autograd import functional
    >>> functional.vjp(lambda x: x * x, tinyfin.tensor([1.0, 3.0]), tinyfin.ones(2))[1].tolist()
    [2.0, 6.0]
    """
    xs = as_tuple("vjp", "inputs", inputs)
    if strict:
        demand_dependence("vjp", func, xs)
    with Recorded(create_graph):
        value, pull = transforms.vjp(func, *xs)
        vs = directions("vjp", v, as_tuple("vjp", "the output of func", value), True)
        return value, like_given(inputs, pull(like_given(value, vs), create_graph=create_graph))


def jvp(
    func: Callable,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple:
    """(func's output, its Jacobian times v).

    >>> import tinyfin
    >>> from tinyfin.autograd import functional
    >>> functional.jvp(lambda x: x * x, tinyfin.tensor([1.0, 3.0]), tinyfin.ones(2))[1].tolist()
    [2.0, 6.0]
    """
    xs = as_tuple("jvp", "inputs", inputs)
    if strict:
        demand_dependence("jvp", func, xs)
    with Recorded(create_graph):
        return transforms.jvp(func, xs, directions("jvp", v, xs, True))


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """func's Jacobian: a block for each output and input, nested as these are.

    Args:
        vectorize: accepted; all rows are computed together in any case.
        strategy: 'reverse-mode' or 'forward-mode'.

    >>> import tinyfin
    >>> tinyfin.autograd.functional.jacobian(lambda x: x * x, tinyfin.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"jacobian: strategy is {strategy!r}, expected 'reverse-mode' or 'forward-mode'"
        )
    xs = as_tuple("jacobian", "inputs", inputs)
    if strict:
        demand_dependence("jacobian", func, xs)
    make = jacobians.jacrev if strategy == "reverse-mode" else jacobians.jacfwd
    with Recorded(create_graph):
        return make(func, like_given(inputs, tuple(range(len(xs)))))(*xs)


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function with a single number as output.

    >>> import tinyfin
    >>> x = tinyfin.tensor([1.0, 2.0])
    >>> tinyfin.autograd.functional.hessian(lambda x: (x ** 3).sum(), x).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    xs = as_tuple("hessian", "inputs", inputs)
    numbers = like_given(inputs, tuple(range(len(xs))))
    slope = transforms.grad(func, numbers)
    return jacobian(slope, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def hvp(
    func: Callable,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple:
    """(func's output, its Hessian times v).

    >>> import tinyfin
    >>> from tinyfin.autograd import functional
    >>> x = tinyfin.tensor([1.0, 2.0])
    >>> functional.hvp(lambda x: (x ** 3).sum(), x, tinyfin.ones(2))[1].tolist()
    [6.0, 12.0]
    """
    xs = as_tuple("hvp", "inputs", inputs)
    numbers = tuple(range(len(xs)))
    if strict:
        demand_dependence("hvp", func, xs)
    with Recorded(create_graph):
        both = transforms.grad_and_value(func, numbers)
        (_, value), (moved, _) = transforms.jvp(both, xs, directions("hvp", v, xs, True))
        return value, like_given(inputs, moved)


def vhp(
    func: Callable,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple:
    """(func's output, v times its Hessian).

    >>> import tinyfin
    >>> from tinyfin.autograd import functional
    >>> x = tinyfin.tensor([1.0, 2.0])
    >>> functional.vhp(lambda x: (x ** 3).sum(), x, tinyfin.ones(2))[1].tolist()
    [6.0, 12.0]
    """
    xs = as_tuple("vhp", "inputs", inputs)
    numbers = tuple(range(len(xs)))
    if strict:
        demand_dependence("vhp", func, xs)
    with Recorded(create_graph):

        def slope(*values: Tensor) -> tuple:
            g, value = transforms.grad_and_value(func, numbers)(*values)
            return g, value

        _, pull, value = transforms.vjp(slope, *xs, has_aux=True)
        found = pull(directions("vhp", v, xs, True), create_graph=create_graph)
        return value, like_given(inputs, found)
