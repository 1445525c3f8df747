"""Padding layers."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.nn import functional
from tinyfin.nn.functional.arguments import sizes
from tinyfin.nn.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Pad(Module):
    """What all kinds share: amounts before and after, for the last dimension first."""

    _n = 0
    _mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = sizes(type(self).__name__, "padding", padding, 2 * self._n)

    def forward(self, input: Tensor) -> Tensor:
        """Pads."""
        return functional.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Pads."""
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The amounts and the constant."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Continues a signal by a constant: (C, L) or (N, C, L).

    The amount is one integer, or one before and one after.

    >>> nn.ConstantPad1d(1, 9.0)(tf.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[9.0, 1.0, 2.0, 3.0, 9.0]]
    """

    _n = 1


class ConstantPad2d(_ConstantPad):
    """Continues a picture by a constant: (C, H, W) or (N, C, H, W).

    The amount is one integer, or 4: before and after, for the last dimension first.

    >>> tuple(nn.ConstantPad2d(1, 9.0)(tf.ones(1, 3, 3)).shape)
    (1, 5, 5)
    """

    _n = 2


class ConstantPad3d(_ConstantPad):
    """Continues a volume by a constant: (C, D, H, W) or (N, C, D, H, W).

    The amount is one integer, or 6: before and after, for the last dimension first.

    >>> tuple(nn.ConstantPad3d(1, 9.0)(tf.ones(1, 3, 3, 3)).shape)
    (1, 5, 5, 5)
    """

    _n = 3


class ZeroPad1d(_Pad):
    """Continues a signal by zeros: (C, L) or (N, C, L).

    The amount is one integer, or one before and one after.

    >>> nn.ZeroPad1d(1)(tf.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[0.0, 1.0, 2.0, 3.0, 0.0]]
    """

    _n = 1


class ZeroPad2d(_Pad):
    """Continues a picture by zeros: (C, H, W) or (N, C, H, W).

    The amount is one integer, or 4: before and after, for the last dimension first.

    >>> tuple(nn.ZeroPad2d(1)(tf.ones(1, 3, 3)).shape)
    (1, 5, 5)
    """

    _n = 2


class ZeroPad3d(_Pad):
    """Continues a volume by zeros: (C, D, H, W) or (N, C, D, H, W).

    The amount is one integer, or 6: before and after, for the last dimension first.

    >>> tuple(nn.ZeroPad3d(1)(tf.ones(1, 3, 3, 3)).shape)
    (1, 5, 5, 5)
    """

    _n = 3


class ReflectionPad1d(_Pad):
    """Continues a signal by its own reflection at the edge: (C, L) or (N, C, L).

    The amount is one integer, or one before and one after.

    Raises:
        RuntimeError: in a call, an amount is too great for the mode.

    >>> nn.ReflectionPad1d(1)(tf.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[2.0, 1.0, 2.0, 3.0, 2.0]]
    """

    _n = 1
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """Continues a picture by its own reflection at the edge: (C, H, W) or (N, C, H, W).

    The amount is one integer, or 4: before and after, for the last dimension first.

    >>> tuple(nn.ReflectionPad2d(1)(tf.ones(1, 3, 3)).shape)
    (1, 5, 5)
    """

    _n = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """Continues a volume by its own reflection at the edge: (C, D, H, W) or (N, C, D, H, W).

    The amount is one integer, or 6: before and after, for the last dimension first.

    >>> tuple(nn.ReflectionPad3d(1)(tf.ones(1, 3, 3, 3)).shape)
    (1, 5, 5, 5)
    """

    _n = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """Continues a signal by repeating its edge: (C, L) or (N, C, L).

    The amount is one integer, or one before and one after.

    Raises:
        RuntimeError: in a call, an amount is too great for the mode.

    >>> nn.ReplicationPad1d(1)(tf.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[1.0, 1.0, 2.0, 3.0, 3.0]]
    """

    _n = 1
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """Continues a picture by repeating its edge: (C, H, W) or (N, C, H, W).

    The amount is one integer, or 4: before and after, for the last dimension first.

    >>> tuple(nn.ReplicationPad2d(1)(tf.ones(1, 3, 3)).shape)
    (1, 5, 5)
    """

    _n = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """Continues a volume by repeating its edge: (C, D, H, W) or (N, C, D, H, W).

    The amount is one integer, or 6: before and after, for the last dimension first.

    >>> tuple(nn.ReplicationPad3d(1)(tf.ones(1, 3, 3, 3)).shape)
    (1, 5, 5, 5)
    """

    _n = 3
    _mode = "replicate"


class CircularPad1d(_Pad):
    """Continues a signal by what stands at the other end: (C, L) or (N, C, L).

    The amount is one integer, or one before and one after.

    Raises:
        RuntimeError: in a call, an amount is too great for the mode.

    >>> nn.CircularPad1d(1)(tf.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[3.0, 1.0, 2.0, 3.0, 1.0]]
    """

    _n = 1
    _mode = "circular"


class CircularPad2d(_Pad):
    """Continues a picture by what stands at the other end: (C, H, W) or (N, C, H, W).

    The amount is one integer, or 4: before and after, for the last dimension first.

    >>> tuple(nn.CircularPad2d(1)(tf.ones(1, 3, 3)).shape)
    (1, 5, 5)
    """

    _n = 2
    _mode = "circular"


class CircularPad3d(_Pad):
    """Continues a volume by what stands at the other end: (C, D, H, W) or (N, C, D, H, W).

    The amount is one integer, or 6: before and after, for the last dimension first.

    >>> tuple(nn.CircularPad3d(1)(tf.ones(1, 3, 3, 3)).shape)
    (1, 5, 5, 5)
    """

    _n = 3
    _mode = "circular"
