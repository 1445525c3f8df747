"""Parameter and Buffer: tensors that a module owns by being assigned to it."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.creation import empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _checked(data: Tensor | None, kind: str) -> Tensor:
    if data is None:
        return empty((0,))
    if not isinstance(data, Tensor):
        raise TypeError(f"{kind}: data is a {type(data).__name__}, expected a Tensor")
    return data


def _over(cls: type, data: Tensor, requires_grad: bool) -> Any:
    """An instance of a subclass over the memory of `data`, without history."""
    x = Tensor.__new__(cls)
    x.data = data
    x.requires_grad = requires_grad
    return x


class Parameter(Tensor):
    """A tensor that is learned: assigned to a module, it is listed in `parameters()`.

    It shares the memory of `data` and has no history.

    Args:
        data: its values; nothing gives an empty tensor.
        requires_grad: whether a gradient is wanted; False freezes it.

    Raises:
        TypeError: `data` is not a tensor.
        RuntimeError: `data` is not of a floating type and `requires_grad` is true.

    >>> p = nn.Parameter(tf.ones(2, 3))
    >>> p.requires_grad, p.is_leaf
    (True, True)
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """Makes a parameter over the memory of `data`."""
        return _over(cls, _checked(data, cls.__name__), requires_grad)

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        """See the class."""

    def __deepcopy__(self, memo: dict) -> Parameter:
        known = memo.get(id(self))
        if known is not None:
            return known
        twin = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = twin
        return twin

    def __reduce_ex__(self, protocol: Any) -> tuple:
        state = dict(self.__dict__) or None
        return _rebuild_parameter, (type(self), self.detach(), self.requires_grad), state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)

    def __repr__(self, **kwargs: object) -> str:
        return "Parameter containing:\n" + super().__repr__(**kwargs)


class Buffer(Tensor):
    """A tensor that belongs to a module without being learned, such as a running mean.

    Assigned to a module it is registered as by `register_buffer`.

    Args:
        data: its values; nothing gives an empty tensor.
        persistent: whether it is part of the module's `state_dict`.

    Raises:
        TypeError: `data` is not a tensor.

    >>> net = nn.Module()
    >>> net.scale = nn.Buffer(tf.ones(2))
    >>> list(net.state_dict())
    ['scale']
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        """Makes a buffer over the memory of `data`."""
        given = _checked(data, cls.__name__)
        buffer = _over(cls, given, given.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        """See the class."""

    def __deepcopy__(self, memo: dict) -> Buffer:
        known = memo.get(id(self))
        if known is not None:
            return known
        twin = type(self)(self.detach().clone(), persistent=self.persistent)
        memo[id(self)] = twin
        return twin

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuild_buffer, (type(self), self.detach(), self.persistent)


def _rebuild_parameter(cls: type, data: Tensor, requires_grad: bool) -> Parameter:
    return cls(data, requires_grad)


def _rebuild_buffer(cls: type, data: Tensor, persistent: bool) -> Buffer:
    return cls(data, persistent=persistent)
