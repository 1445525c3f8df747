"""custom_vjp: a function with a derivative of the user's own, in functional style."""

from __future__ import annotations

from collections.abc import Callable

from tinyfin.autograd import tree
from tinyfin.autograd.function import Function, FunctionCtx
from tinyfin.core import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
STANDIN = object()
"""In the place of a residual that save_for_backward keeps."""


class custom_vjp:
    """A function whose reverse derivative is given by `defvjp(fwd, bwd)`.

    `fwd(*args)` returns (output, residuals), `bwd(residuals, cotangent)` a gradient for each
    argument;
    arguments, output and residuals may be trees of tensors.

    Raises:
        RuntimeError: called before defvjp, or bwd returns a wrong number of gradients.

    >>> import tinyfin
    >>> @tinyfin.autograd.custom_vjp
    ... def clipped(x):
    ...     return x.exp()
    >>> clipped.defvjp(lambda x: (x.exp(), x.exp()), lambda y, g: ((g * y).clamp(max=1.0),))
    >>> x = tinyfin.tensor([0.0, 5.0], requires_grad=True)
    >>> clipped(x).sum().backward()
    >>> x.grad.tolist()
    [1.0, 1.0]
    """

    def __init__(self, fun: Callable) -> None:
        from functools import update_wrapper

        self.fun = fun
        self.rules: tuple | Any = None
        update_wrapper(self, fun)

    def defvjp(self, fwd: Callable, bwd: Callable) -> None:
        """Sets the two halves of the derivative."""
        self.rules = (fwd, bwd)

    def __call__(self, *args: Any) -> Any:
        if self.rules is None:
            raise RuntimeError(
                f"custom_vjp: {getattr(self.fun, '__name__', 'the function')} has no derivative; "
                "call "
                "defvjp(fwd, bwd) first"
            )
        function, seen = function_of(self, tree.mapped(lambda x: None, args))
        result = function.apply(*tree.flatten(args))
        return tree.unflatten(
            seen["output"], list(result) if isinstance(result, tuple) else [result]
        )


def function_of(owner: custom_vjp, build: tuple) -> tuple:
    """(a Function over leaves, a dict that learns how the output is nested) for one nesting of
    arguments."""
    fwd, bwd = owner.rules
    seen: dict = {}

    class Custom(Function):
        """The rules of one custom_vjp."""

        @staticmethod
        def forward(ctx: FunctionCtx, *leaves: Any) -> Any:
            output, residuals = fwd(*tree.unflatten(build, list(leaves)))
            kept, outs = tree.flatten(residuals), tree.flatten(output)
            seen["output"] = tree.mapped(lambda x: None, output)
            ctx.residuals = tree.mapped(lambda x: None, residuals)
            ctx.rest = [STANDIN if isinstance(r, Tensor) else r for r in kept]
            ctx.save_for_backward(*(r for r in kept if isinstance(r, Tensor)))
            return tuple(outs) if len(outs) > 1 else outs[0]

        @staticmethod
        def backward(ctx: FunctionCtx, *grads: Tensor | None) -> tuple:
            saved = iter(ctx.saved_tensors)
            kept = [next(saved) if r is STANDIN else r for r in ctx.rest]
            cotangent = tree.unflatten(seen["output"], list(grads))
            return gradients(bwd(tree.unflatten(ctx.residuals, kept), cotangent), build)

    Custom.__name__ = getattr(owner.fun, "__name__", "custom_vjp")
    return Custom, seen


def gradients(found: Any, args: tuple) -> tuple:
    """The gradients of all leaves of the arguments; None stands for a whole argument without."""
    found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if len(found) != len(args):
        raise RuntimeError(
            f"custom_vjp: bwd returned {len(found)} gradients, expected {len(args)}, one for "
            "each argument"
        )
    leaves: list = []
    for g, a in zip(found, args):
        if g is None:
            leaves += [None] * len(tree.flatten(a))
        elif not tree.same_build(g, a):
            raise RuntimeError("custom_vjp: a gradient is not nested like its argument")
        else:
            leaves += tree.flatten(g)
    return tuple(leaves)
