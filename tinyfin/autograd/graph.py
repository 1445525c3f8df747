"""What the recorded graph is made of, and hooks on the tensors that it saves."""

from __future__ import annotations

from _thread import _local
from collections.abc import Callable

from tinyfin.core import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
Node = tensor.Node
GRAD, SAVE = 1, 2048
THREAD = _local()


class saved_tensors_hooks:
    """Saved tensors go through pack_hook when an operation saves them, and unpack_hook when they
    are used.

    Leaves that require grad are not packed: the graph holds them in any case.

    >>> import tinyfin
    >>> x = tinyfin.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * 1.0
    >>> with tinyfin.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
    ...     z = (y * y).sum()
    >>> z.backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self.former: list = []

    def __enter__(self) -> saved_tensors_hooks:
        active().append(self)
        self.former.append(tensor.set_mode(SAVE, SAVE))
        return self

    def __exit__(self, *exc: object) -> None:
        active().pop()
        tensor.set_mode(self.former.pop(), SAVE)


def active() -> list:
    """The open hooks of this thread, innermost last."""
    try:
        return THREAD.hooks
    except AttributeError:
        THREAD.hooks = []
        return THREAD.hooks


def pack(t: Tensor) -> Any:
    """One saved tensor in the form of the innermost hooks."""
    hooks = active()[-1]
    return tensor.Packed(
        unhooked(hooks.pack_hook, t), lambda value: unhooked(hooks.unpack_hook, value)
    )


def unhooked(fn: Callable, value: Any) -> Any:
    """A hook's answer; what it does is neither recorded nor hooked."""
    old = tensor.set_mode(0, GRAD | SAVE)
    try:
        return fn(value)
    finally:
        tensor.set_mode(old, GRAD | SAVE)


class save_on_cpu(saved_tensors_hooks):
    """Saved tensors wait for the backward walk in the CPU's memory.

    >>> import tinyfin
    >>> x = tinyfin.ones(2, requires_grad=True)
    >>> with tinyfin.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "") -> None:
        super().__init__(lambda t: (t.device, t.cpu()), lambda kept: kept[1].to(kept[0]))


tensor.install_hook("pack", pack)
