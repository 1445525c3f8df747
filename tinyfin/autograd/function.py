"""Function: forward and backward given by the user, under every transformation.

A call on plain tensors runs forward unrecorded and gives the results one node. A call on wrappers
is
answered level by level: the results come from the call one level further out, and wrappers that
require grad get a node of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from tinyfin.core import tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
GRAD, SAVE = 1, 2048


class FunctionCtx:
    """What forward hands to backward; it may carry any attributes besides."""

    def __init__(self) -> None:
        self.needs_input_grad: tuple = ()
        self._to_save: tuple = ()
        self._for_forward: tuple | None = None
        self._saved: list = []
        self._non_differentiable: tuple = ()
        self._dirty: tuple = ()
        self._materialize = True
        self._node: Any = None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for backward; writes to them in between are errors.

        Raises:
            TypeError: an argument is neither a Tensor nor None.
        """
        check_tensors("save_for_backward", tensors)
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for jvp, where saved_tensors gives them.

        Raises:
            TypeError: an argument is neither a Tensor nor None.
        """
        check_tensors("save_for_forward", tensors)
        self._for_forward = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """These results have no gradient."""
        check_tensors("mark_non_differentiable", tensors)
        self._non_differentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """These arguments were written by forward, and are among its results."""
        check_tensors("mark_dirty", tensors)
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing gradients arrive as zeros (the default) or as None."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple:
        """The tensors kept by save_for_backward; in jvp those of save_for_forward.

        Raises:
            RuntimeError: one was modified in place since.
        """
        if self._node is JVP:
            return self._for_forward if self._for_forward is not None else self._to_save
        return tuple(unpacked(entry, self._node) for entry in self._saved)


JVP = object()
"""Stands for the node while jvp runs."""


def check_tensors(name: str, tensors: tuple) -> None:
    """Only tensors can be kept or marked."""
    for t in tensors:
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(
                f"{name}: got {t!r} of type {type(t).__name__}, expected Tensors; keep other "
                "things as "
                "attributes of ctx"
            )


def packed(t: Tensor | None, raw: list, outs: list) -> tuple | None:
    """(tensor or Packed, version, number of the result or -1, its history) of a tensor to keep."""
    if t is None:
        return None
    k = next((i for i, r in enumerate(raw) if r is t), -1)
    held = tensor.twin(outs[k]) if k >= 0 else t
    if tensor.mode() & SAVE and not (k < 0 and t.requires_grad and t.is_leaf):
        from tinyfin.autograd.graph import pack

        history = tensor.twin(t, True).grad_fn if k < 0 and t.requires_grad else None
        return pack(tensor.twin(held)), 0, k, (history, t.output_nr)
    return held, held._version, k, None


def unpacked(entry: tuple | None, node: Any) -> Tensor | None:
    """A kept tensor, with its history."""
    if entry is None:
        return None
    held, version, k, history = entry
    if isinstance(held, tensor.Packed):
        held = tensor.twin(held.unpack(held.value))
        if history[0] is not None:
            tensor.attach(held, *history)
    elif held._version != version:
        raise RuntimeError(
            f"backward: a saved tensor of shape {tuple(held.shape)} was modified in place (version "
            f"{held._version}, expected {version}); save a clone() instead"
        )
    if k >= 0 and node is not None and tensor.mode() & GRAD:
        held = tensor.twin(held)
        tensor.attach(held, node, k)
    return held


class Function:
    """A differentiable operation of your own: static methods forward(ctx, ...) and backward(ctx,
    *grads).

    Instead of forward(ctx, ...) a class may define forward(...) and setup_context(ctx, inputs,
    output). `jvp(ctx, *tangents)` serves forward mode (without it the derivative of backward does),
    `vmap(info, in_dims, *args)` serves vmap (without it forward runs on batched tensors).

    >>> import tinyfin
    >>> class Square(tinyfin.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = tinyfin.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad.item()
    6.0
    """

    generate_vmap_rule = False

    if TYPE_CHECKING:  # each class has parameters of its own
        forward: Callable[..., Any]
        setup_context: Callable[..., Any]
        backward: Callable[..., Any]
        vjp: Callable[..., Any]
        jvp: Callable[..., Any]
        vmap: Callable[..., Any]
    else:

        @staticmethod
        def forward(*args: Any) -> Any:
            """Computes the results; the user defines it."""
            raise NotImplementedError("Function: the static method forward is not defined")

        @staticmethod
        def setup_context(ctx: FunctionCtx, inputs: tuple, output: Any) -> None:
            """Keeps what backward needs, where forward takes no ctx."""
            raise NotImplementedError("Function: the static method setup_context is not defined")

        @staticmethod
        def backward(ctx: FunctionCtx, *grads: Tensor | None) -> Any:
            """The gradients of forward's arguments, one each, from those of its results."""
            raise NotImplementedError("Function: the static method backward is not defined")

        @staticmethod
        def vjp(ctx: FunctionCtx, *grads: Tensor | None) -> Any:
            """Another name for backward."""
            raise NotImplementedError("Function: the static method vjp is not defined")

        @staticmethod
        def jvp(ctx: FunctionCtx, *tangents: Tensor | None) -> Any:
            """The tangents of the results from those of forward's arguments."""
            raise NotImplementedError("Function: the static method jvp is not defined")

        @staticmethod
        def vmap(info: Any, in_dims: tuple, *args: Any) -> tuple:
            """(results, their batch axes) on arguments that have a batch axis."""
            raise NotImplementedError("Function: the static method vmap is not defined")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs the operation and records it.

        Raises:
            RuntimeError: backward returns a wrong number of gradients, or one of a wrong shape.
        """
        if tensor.mode() & 48:
            from tinyfin.autograd.function_levels import apply_at, top_level

            level = top_level(args)
            if level is not None:
                return apply_at(cls, level, args)
        ctx, raw, single = run_forward(cls, args)
        outs = results(raw, args, ctx)
        finish(cls, ctx, args, raw, outs)
        return outs[0] if single else tuple(outs)


def overridden(cls: type, name: str) -> bool:
    """Whether a class defines one of the optional methods."""
    return getattr(cls, name) is not getattr(Function, name)


def run_forward(cls: type, args: tuple) -> tuple:
    """(ctx, results, whether it was a single one) of forward, unrecorded."""
    ctx = FunctionCtx()
    ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
    old = tensor.set_mode(0, GRAD)
    try:
        if overridden(cls, "setup_context"):
            result = cls.forward(*args)
            cls.setup_context(ctx, args, result)
        else:
            result = cls.forward(ctx, *args)
    finally:
        tensor.set_mode(old, GRAD)
    single = not isinstance(result, tuple)
    return ctx, [result] if single else list(result), single


def results(raw: list, args: tuple, ctx: FunctionCtx) -> list:
    """What apply returns: arguments and views that forward returned get tensors of their own."""
    outs = []
    for r in raw:
        own = not isinstance(r, Tensor) or any(r is d for d in ctx._dirty)
        if own or (r.base is None and not r.requires_grad and not any(r is a for a in args)):
            outs.append(r)
        else:
            outs.append(tensor.twin(r))
    return outs


def finish(cls: type, ctx: FunctionCtx, args: tuple, raw: list, outs: list) -> None:
    """Gives the results a node that calls backward, and keeps what was saved."""
    for d in ctx._dirty:
        if not any(d is r for r in raw):
            raise RuntimeError(
                f"{cls.__name__}: a tensor is marked dirty but is no result of forward"
            )
        tensor.check_write(d, cls.__name__)
    if not tensor.mode() & GRAD or not any(ctx.needs_input_grad):
        ctx._to_save = ()
        return
    live = [
        i
        for i, (r, y) in enumerate(zip(raw, outs))
        if isinstance(y, Tensor)
        and y.is_floating_point()
        and not any(r is n for n in ctx._non_differentiable)
    ]
    meta = [(tuple(y.shape), y.dtype) if isinstance(y, Tensor) else None for y in outs]
    node = tensor.python_node(
        cls.__name__, Backward(cls, ctx, args, meta, live), args, tuple(outs[i] for i in live)
    )
    places = [raw[i] for i in live]
    ctx._saved = [packed(t, places, [outs[i] for i in live]) for t in ctx._to_save]
    ctx._to_save = ()
    for k, i in enumerate(live):
        tensor.attach(outs[i], node, k)
    ctx._dirty = ctx._non_differentiable = ()


class Backward:
    """What the walk calls for a Function's node."""

    __slots__ = ("cls", "ctx", "meta", "live", "shapes")

    def __init__(self, cls: type, ctx: FunctionCtx, args: tuple, meta: list, live: list) -> None:
        self.cls, self.ctx, self.meta, self.live = cls, ctx, meta, live
        self.shapes = [tuple(a.shape) if isinstance(a, Tensor) else None for a in args]

    def __call__(self, grads: tuple, node: Any) -> tuple:
        """Gradients of all arguments of apply."""
        given: list = [None] * len(self.meta)
        for k, i in enumerate(self.live):
            given[i] = grads[k]
        if self.ctx._materialize:
            like = next(g for g in grads if g is not None)
            given = [self.zeros(i, like) if g is None else g for i, g in enumerate(given)]
        backward = self.cls.vjp if overridden(self.cls, "vjp") else self.cls.backward
        self.ctx._node = node
        try:
            found = backward(self.ctx, *given)
        finally:
            self.ctx._node = None
        return self.checked(found if isinstance(found, (tuple, list)) else (found,))

    def zeros(self, i: int, like: Tensor) -> Tensor | None:
        """The gradient of a result that nothing depends on."""
        if self.meta[i] is None:
            return None
        shape, dtype = self.meta[i]
        zeros = F.zeros_of(shape, like)
        return zeros if zeros.dtype is dtype else zeros.to(dtype)

    def checked(self, found: tuple | list) -> tuple:
        """The gradients, if there are as many as arguments and they fit these."""
        n, name = len(self.shapes), self.cls.__name__
        if len(found) > n and all(g is None for g in found[n:]):
            found = found[:n]
        if len(found) != n:
            raise RuntimeError(
                f"{name}.backward: returned {len(found)} gradients, expected {n}, one for each "
                "argument "
                "of forward"
            )
        for i, (g, shape) in enumerate(zip(found, self.shapes)):
            if g is None:
                continue
            if not isinstance(g, Tensor):
                raise TypeError(
                    f"{name}.backward: gradient {i} is {g!r} of type {type(g).__name__}, "
                    "expected a Tensor "
                    "or None"
                )
            if shape is None:
                raise RuntimeError(
                    f"{name}.backward: gradient {i} is a Tensor, but argument {i} of forward was "
                    "none; "
                    "return None for it"
                )
            if not reducible(tuple(g.shape), shape):
                raise RuntimeError(
                    f"{name}.backward: gradient {i} has shape {tuple(g.shape)}, which does not "
                    "fit the "
                    f"argument's {shape}"
                )
        return tuple(found)


def reducible(source: tuple, target: tuple) -> bool:
    """Whether summing over broadcast axes brings one shape to the other."""
    lead = len(source) - len(target)
    return lead >= 0 and all(t in (1, s) for s, t in zip(source[lead:], target))


def once_differentiable(fn: Callable) -> Callable:
    """A backward made of things that cannot be differentiated: a second derivative is an error.

    >>> import tinyfin
    >>> class Twice(tinyfin.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @tinyfin.autograd.function.once_differentiable
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> x = tinyfin.tensor(1.0, requires_grad=True)
    >>> Twice.apply(x).backward()
    >>> x.grad.item()
    2.0
    """
    from functools import wraps

    @wraps(fn)
    def wrapped(ctx: FunctionCtx, *grads: Tensor | None) -> Any:
        old = tensor.set_mode(0, GRAD)
        try:
            found = fn(ctx, *grads)
        finally:
            tensor.set_mode(old, GRAD)
        if not old & GRAD:
            return found
        causes = tuple(
            t for t in (*grads, *ctx.saved_tensors) if isinstance(t, Tensor) and t.requires_grad
        )
        if not causes:
            return found
        many = found if isinstance(found, tuple) else (found,)
        marked = tuple(guarded(g, causes) if isinstance(g, Tensor) else g for g in many)
        return marked if isinstance(found, tuple) else marked[0]

    return wrapped


def guarded(g: Tensor, causes: tuple) -> Tensor:
    """A gradient whose own differentiation raises."""
    out = tensor.twin(g)
    tensor.attach(out, tensor.python_node("once_differentiable", refuse, causes, (out,)), 0)
    return out


def refuse(grads: tuple, node: Any) -> tuple:
    """The error of a second derivative."""
    raise RuntimeError(
        "backward: differentiating twice a Function whose backward is marked once_differentiable"
    )
