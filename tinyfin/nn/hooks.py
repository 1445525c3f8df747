"""Calls of modules that have hooks: the slow road of `Module.__call__`."""

from __future__ import annotations

from tinyfin.autograd.function import Function
from tinyfin.core.handle import RemovableHandle
from tinyfin.core.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tinyfin.nn.module import Module

BEFORE, AFTER = "before", "after"
BACKWARD_BEFORE, BACKWARD_AFTER = "backward_before", "backward_after"


class Hook:
    """A function and when it is to be called."""

    __slots__ = ("kind", "function", "with_kwargs", "always")

    def __init__(self, kind: str, function: Callable, with_kwargs: bool, always: bool) -> None:
        self.kind, self.function = kind, function
        self.with_kwargs, self.always = with_kwargs, always


def add_hook(
    module: Module,
    kind: str,
    function: Callable,
    *,
    with_kwargs: bool = False,
    always: bool = False,
    first: bool = False,
) -> RemovableHandle:
    """Registers a hook of calls with a module."""
    if not callable(function):
        raise TypeError(
            f"hook of {type(module).__name__}: got a {type(function).__name__}, expected a function"
        )
    if "_call_hooks" not in module.__dict__:
        module.__dict__["_call_hooks"] = []
    return RemovableHandle(module._call_hooks, Hook(kind, function, with_kwargs, always), first)


def call_with_hooks(module: Module, args: tuple, kwargs: dict) -> Any:
    """Runs `forward` with the hooks around it."""
    hooks = tuple(module._call_hooks)
    after = [h for h in hooks if h.kind == AFTER]
    result = None
    done = 0
    try:
        args, kwargs = _before(module, hooks, args, kwargs)
        boundary = None
        if any(h.kind in (BACKWARD_BEFORE, BACKWARD_AFTER) for h in hooks):
            boundary = Boundary(module, hooks)
            args = boundary.enter(args)
        result = module.forward(*args, **kwargs)
        for hook in after:
            done += 1
            result = _after(module, hook, args, kwargs, result)
        return result if boundary is None else boundary.leave(result)
    except BaseException:
        for hook in after[done:]:
            if hook.always:
                _after_error(module, hook, args, kwargs, result)
        raise


def _before(module: Module, hooks: tuple, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    for hook in hooks:
        if hook.kind != BEFORE:
            continue
        if not hook.with_kwargs:
            answer = hook.function(module, args)
            if answer is not None:
                args = answer if isinstance(answer, tuple) else (answer,)
            continue
        answer = hook.function(module, args, kwargs)
        if answer is not None:
            if not (isinstance(answer, tuple) and len(answer) == 2):
                raise RuntimeError(
                    f"forward pre-hook of {type(module).__name__}: returned "
                    f"{answer!r}, expected None or a tuple (args, kwargs)"
                )
            args, kwargs = answer
    return args, kwargs


def _after(module: Module, hook: Hook, args: tuple, kwargs: dict, result: Any) -> Any:
    if hook.with_kwargs:
        answer = hook.function(module, args, kwargs, result)
    else:
        answer = hook.function(module, args, result)
    return result if answer is None else answer


def _after_error(module: Module, hook: Hook, args: tuple, kwargs: dict, result: Any) -> None:
    try:
        _after(module, hook, args, kwargs, result)
    except Exception as error:
        import warnings

        warnings.warn(
            f"forward hook of {type(module).__name__} failed while another error was "
            f"under way: {error}",
            stacklevel=4,
        )


class Boundary:
    """Two identities around a module, in whose backward the backward hooks are called.

    The one at the outputs sees the gradients that arrive, the one at the inputs those that leave.
    """

    def __init__(self, module: Module, hooks: tuple) -> None:
        self.module = module
        self.pre = [h.function for h in hooks if h.kind == BACKWARD_BEFORE]
        self.post = [h.function for h in hooks if h.kind == BACKWARD_AFTER]
        self.arriving: tuple | None = None
        self.places: list[int] = []
        self.arity = 0

    def enter(self, args: tuple) -> tuple:
        """Marks the tensors among the arguments."""
        self.places, self.arity = _differentiable(args), len(args)
        if not self.places or not self.post:
            return args
        return tuple(_marked(list(args), self.places, self._leaving))

    def leave(self, result: Any) -> Any:
        """Marks the tensors among the results: a tensor, or a tuple, list or dict of them."""
        if isinstance(result, Tensor):
            return self._mark_outputs([result], 1)[0]
        if isinstance(result, dict):
            return type(result)(zip(result, self._mark_outputs(list(result.values()), len(result))))
        if not isinstance(result, (tuple, list)):
            return result
        values = self._mark_outputs(list(result), len(result))
        return type(result)(*values) if hasattr(result, "_fields") else type(result)(values)

    def _mark_outputs(self, values: list, count: int) -> list:
        places = _differentiable(values)
        if not places:
            return values
        return _marked(values, places, lambda grads: self._arriving(grads, places, count))

    def _arriving(self, grads: tuple, places: list, count: int) -> tuple:
        full = _spread(grads, places, count)
        for function in self.pre:
            full = _replaced(
                function(self.module, full), full, "full backward pre-hook", self.module
            )
        self.arriving = full
        if not self.places:
            for function in self.post:
                if function(self.module, (None,) * self.arity, full) is not None:
                    raise RuntimeError(
                        f"full backward hook of {type(self.module).__name__}: "
                        "returned gradients, but no input requires one"
                    )
        return tuple(full[i] for i in places)

    def _leaving(self, grads: tuple) -> tuple:
        if self.arriving is None:
            return grads
        full = _spread(grads, self.places, self.arity)
        for function in self.post:
            answer = function(self.module, full, self.arriving)
            full = _replaced(answer, full, "full backward hook", self.module)
        self.arriving = None
        return tuple(full[i] for i in self.places)


class Mark(Function):
    """Identity whose backward passes the gradients through a function."""

    @staticmethod
    def forward(ctx: Any, report: Callable, *tensors: Tensor) -> tuple:
        """Views of the tensors, so that they have a node of their own."""
        ctx.set_materialize_grads(False)
        ctx.report = report
        return tuple(x.view_as(x) for x in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        """What the function makes of the gradients."""
        return None, *ctx.report(grads)


def _differentiable(values: tuple | list) -> list[int]:
    return [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]


def _marked(values: list, places: list[int], report: Callable) -> list:
    for i, x in zip(places, Mark.apply(report, *(values[i] for i in places))):
        values[i] = x
    return values


def _spread(grads: tuple, places: list, count: int) -> tuple:
    full: list = [None] * count
    for i, g in zip(places, grads):
        full[i] = g
    return tuple(full)


def _replaced(answer: Any, grads: tuple, what: str, module: Module) -> tuple:
    if answer is None:
        return grads
    if not isinstance(answer, tuple):
        answer = (answer,)
    if len(answer) != len(grads):
        raise RuntimeError(
            f"{what} of {type(module).__name__}: returned {len(answer)} gradients, "
            f"expected {len(grads)}"
        )
    return answer
