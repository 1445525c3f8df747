"""backward and grad: what users call to walk the recorded graph."""

from __future__ import annotations

from tinyfin.autograd.engine import backward_method, run_backward
from tinyfin.core import tensor
from tinyfin.core.handle import RemovableHandle
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

Tensor = tensor.Tensor


def as_list(name: str, value: Any) -> list[Tensor]:
    """A tensor or a sequence of tensors as a list."""
    if not hasattr(value, "__iter__"):
        raise TypeError(
            f"{name}: got {type(value).__name__}, expected a Tensor or a sequence of Tensors"
        )
    items = [value] if isinstance(value, Tensor) else list(value)
    for t in items:
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}: got {type(t).__name__}, expected Tensors")
    return items


def refused_gradient(name: str, value: Any) -> TypeError:
    """The error for what is no gradient."""
    return TypeError(
        f"{name}: gradient is {value!r} of type {type(value).__name__}, expected a Tensor or None"
    )


def cotangents(name: str, tensors: list, grads: Any) -> list[Tensor]:
    """One cotangent per tensor: given, or 1 for scalars."""
    if grads is None or isinstance(grads, Tensor):
        grads = [grads] * len(tensors) if grads is None else [grads]
    if not hasattr(grads, "__iter__"):
        raise refused_gradient(name, grads)
    grads = list(grads)
    if len(grads) != len(tensors):
        raise RuntimeError(f"{name}: {len(grads)} gradients given for {len(tensors)} tensors")
    result = []
    for t, g in zip(tensors, grads):
        if not t.requires_grad:
            raise RuntimeError(
                f"{name}: element 0 of tensors does not require grad and has no grad_fn; was it "
                "made "
                "under no_grad, by detach(), or from integers?"
            )
        if g is None:
            if t.numel() != 1:
                raise RuntimeError(
                    f"{name}: the tensor has shape {tuple(t.shape)}; grad can be created "
                    "implicitly only "
                    "for scalar outputs, give one of the same shape"
                )
            g = F.full_of(t.shape, 1, t)
        elif not isinstance(g, Tensor):
            raise refused_gradient(name, g)
        elif tuple(g.shape) != tuple(t.shape):
            raise RuntimeError(
                f"{name}: the gradient has shape {tuple(g.shape)}, the tensor {tuple(t.shape)}"
            )
        elif g.device != t.device:
            raise RuntimeError(
                f"{name}: the gradient is on {g.device}, the tensor on {t.device}; use to() first"
            )
        elif g.dtype is not t.dtype:
            g = g.to(t.dtype)
        result.append(g)
    return result


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Adds the gradients of `tensors` to the `grad` of the leaves (or of `inputs`).

    Args:
        grad_tensors: cotangents; may be left out for tensors of one element.
        retain_graph: keep what the graph saved, to go through it again; default `create_graph`.
        create_graph: record the gradients themselves, for higher derivatives.

    Raises:
        RuntimeError: nothing requires grad, a shape does not fit, or the graph was freed.

    >>> import tinyfin
    >>> x = tinyfin.tensor(3.0, requires_grad=True)
    >>> tinyfin.autograd.backward(x * x)
    >>> x.grad.item()
    6.0
    """
    tensors = as_list("backward", tensors)
    grads = cotangents("backward", tensors, grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        run_backward(tensors, grads, retain, create_graph, None)
        return
    inputs = as_list("backward", inputs)
    for t, g in zip(inputs, run_backward(tensors, grads, retain, create_graph, inputs)):
        if g is not None:
            t.grad = g if t.grad is None else t.grad + g
            for hook in list((t.extra_ or {}).get("post_hooks", ())):
                hook(t)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`, without touching any `grad`.

    Args:
        is_grads_batched: grad_outputs have a first axis more, and so has each result; by vmap.
        allow_unused: give None for an input that does not take part, instead of an error.
        materialize_grads: give zeros for such an input.

    Raises:
        RuntimeError: an input does not require grad or take part, or the graph was freed.

    >>> import tinyfin
    >>> x = tinyfin.tensor(2.0, requires_grad=True)
    >>> (g,) = tinyfin.autograd.grad(x ** 3, x, create_graph=True)
    >>> tinyfin.autograd.grad(g, x)[0].item()
    12.0
    """
    outputs, inputs = as_list("grad", outputs), as_list("grad", inputs)
    if is_grads_batched:
        from tinyfin.autograd.vmap import vmap

        def rows(*cots: Tensor) -> tuple:
            return grad(
                outputs, inputs, cots, True, create_graph, allow_unused, False, materialize_grads
            )

        return vmap(rows)(*as_list("grad", grad_outputs))
    grads = cotangents("grad", outputs, grad_outputs)
    for i, t in enumerate(inputs):
        if not t.requires_grad:
            raise RuntimeError(f"grad: input {i} does not require grad")
    retain = create_graph if retain_graph is None else retain_graph
    found = run_backward(outputs, grads, retain, create_graph, inputs)
    for i, g in enumerate(found):
        if g is None and materialize_grads:
            found[i] = F.zeros_of(inputs[i].shape, inputs[i])
        elif g is None and not allow_unused:
            raise RuntimeError(
                f"grad: input {i} of shape {tuple(inputs[i].shape)} does not take part in the "
                "outputs; "
                "pass allow_unused=True to get None for it"
            )
    return tuple(found)


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Calls hook(grad) whenever this tensor's gradient is computed; a returned tensor replaces it.

    >>> import tinyfin
    >>> x = tinyfin.ones(1, requires_grad=True)
    >>> handle = x.register_hook(lambda g: g * 5)
    >>> (x * 2).sum().backward()
    >>> x.grad.tolist()
    [10.0]
    """
    if not self.requires_grad:
        raise RuntimeError("register_hook: the tensor does not require grad")
    node = self.grad_fn
    if node is None:
        return RemovableHandle(rare_list(self, "hooks"), hook)
    if node.watchers is None:
        node.watchers = []
    return RemovableHandle(node.watchers, (self.output_nr, hook))


def register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[[Tensor], Any]
) -> RemovableHandle:
    """Calls hook(tensor) after a leaf's gradient was accumulated.

    >>> import tinyfin
    >>> x = tinyfin.ones(1, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda t: print(t.grad.tolist()))
    >>> (x * 3).sum().backward()
    [3.0]
    """
    if not self.is_leaf or not self.requires_grad:
        raise RuntimeError(
            "register_post_accumulate_grad_hook: only leaves that require grad accumulate"
        )
    return RemovableHandle(rare_list(self, "post_hooks"), hook)


def rare_list(t: Tensor, key: str) -> list:
    """The list stored under `key` among the tensor's rare things."""
    if t.extra_ is None or key not in t.extra_:
        t.set_extra_(key, [])
    # set_extra_ made the dictionary
    return t.extra_[key]  # pyright: ignore[reportOptionalSubscript]


def retain_grad(self: Tensor) -> None:
    """Keeps this non-leaf's gradient in `grad` after backward.

    >>> import tinyfin
    >>> x = tinyfin.tensor(2.0, requires_grad=True)
    >>> y = x * 3
    >>> y.retain_grad()
    >>> (y * y).backward()
    >>> y.grad.item()
    12.0
    """
    if not self.requires_grad:
        raise RuntimeError("retain_grad: the tensor does not require grad")
    if self.is_leaf or self.retains_grad:
        return
    self.mark_retained_()
    retain_again(self)


def retain_again(self: Any) -> None:
    """Watches what made the present value: after a write it is another node."""
    import weakref

    node, ref = self.grad_fn, weakref.ref(self)
    place = (node.seq, self.output_nr)

    def keep(g: Tensor) -> None:
        t = ref()
        if t is not None and (t.grad_fn.seq, t.output_nr) == place:
            g = g if tensor.mode() & 1 else tensor.twin(g)
            t.grad = g if t.grad is None else t.grad + g

    if node.watchers is None:
        node.watchers = []
    node.watchers.append((-1 - self.output_nr, keep))


for _name, _value in {
    "backward": backward_method,
    "register_hook": register_hook,
    "retain_grad": retain_grad,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
}.items():
    tensor.install_method(_name, _value)
tensor.install_hook("backward", backward)
tensor.install_hook("retain_again", retain_again)
tensor.install_hook("full_of", lambda shape, value, like: F.full_of(shape, value, like))
