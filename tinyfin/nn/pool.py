"""Pooling layers."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.nn import functional
from tinyfin.nn.functional.arguments import sizes
from tinyfin.nn.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _MaxPool(Module):
    """What the kinds of max pooling share."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def _options(self) -> tuple:
        return (
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The greatest of each window over one dimension: (N, C, L) or (C, L).

    Args:
        kernel_size: size of the windows.
        stride: their step; None for their size.
        padding: places on both sides that never win.
        dilation: distance of a window's elements.
        return_indices: also return where the greatest stood.
        ceil_mode: let a last window reach beyond the end.

    Raises:
        RuntimeError: in a call, the shapes do not fit, or the padding is more than half a window.

    >>> nn.MaxPool1d(2)(tf.tensor([[1.0, 3.0, 2.0, 5.0]])).tolist()
    [[3.0, 5.0]]
    """

    def forward(self, input: Tensor) -> Any:
        """Pools."""
        return functional.max_pool1d(input, *self._options())


class MaxPool2d(_MaxPool):
    """The greatest of each window over two dimensions: (N, C, H, W) or (C, H, W).

    Arguments and errors are those of `MaxPool1d`, with one integer or two.

    >>> nn.MaxPool2d(2)(tf.tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [[[4.0]]]
    """

    def forward(self, input: Tensor) -> Any:
        """Pools."""
        return functional.max_pool2d(input, *self._options())


class MaxPool3d(_MaxPool):
    """The greatest of each window over three dimensions: (N, C, D, H, W) or (C, D, H, W).

    Arguments and errors are those of `MaxPool1d`, with one integer or three.

    >>> nn.MaxPool3d(2)(tf.ones(1, 2, 2, 2)).tolist()
    [[[[1.0]]]]
    """

    def forward(self, input: Tensor) -> Any:
        """Pools."""
        return functional.max_pool3d(input, *self._options())


class AvgPool1d(Module):
    """The mean of each window over one dimension: (N, C, L) or (C, L).

    Args:
        kernel_size: size of the windows.
        stride: their step; None for their size.
        padding: zeros on both sides.
        ceil_mode: let a last window reach beyond the end.
        count_include_pad: divide by the size of the window even where it holds padding.

    Raises:
        RuntimeError: in a call, the shapes do not fit, or the padding is more than half a window.

    >>> nn.AvgPool1d(2)(tf.tensor([[1.0, 3.0, 2.0, 6.0]])).tolist()
    [[2.0, 4.0]]
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = sizes("AvgPool1d", "kernel_size", kernel_size, 1)
        self.stride = sizes("AvgPool1d", "stride", kernel_size if stride is None else stride, 1)
        self.padding = sizes("AvgPool1d", "padding", padding, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Pools."""
        return functional.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        """The options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    """What average pooling over two and three dimensions shares."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def _options(self) -> tuple:
        return (
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        """The options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window over two dimensions: (N, C, H, W) or (C, H, W).

    Arguments and errors are those of `AvgPool1d`, with one integer or two; `divisor_override`
    stands for the number of elements.

    >>> nn.AvgPool2d(2)(tf.tensor([[[1.0, 2.0], [3.0, 6.0]]])).tolist()
    [[[3.0]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Pools."""
        return functional.avg_pool2d(input, *self._options())


class AvgPool3d(_AvgPool):
    """The mean of each window over three dimensions: (N, C, D, H, W) or (C, D, H, W).

    Arguments and errors are those of `AvgPool2d`, with one integer or three.

    >>> nn.AvgPool3d(2)(tf.ones(1, 2, 2, 2)).tolist()
    [[[[1.0]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Pools."""
        return functional.avg_pool3d(input, *self._options())


class _Adaptive(Module):
    """What the adaptive kinds share."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The options."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means of windows chosen so that the last dimension gets a given size.

    Raises:
        RuntimeError: in a call, the input has other than 2 or 3 dimensions.

    >>> nn.AdaptiveAvgPool1d(2)(tf.tensor([[1.0, 3.0, 5.0, 7.0]])).tolist()
    [[2.0, 6.0]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Pools."""
        return functional.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    """Means of windows chosen so that the last two dimensions get given sizes; None keeps one.

    Raises:
        RuntimeError: in a call, the input has other than 3 or 4 dimensions.

    >>> nn.AdaptiveAvgPool2d((1, None))(tf.tensor([[[1.0, 2.0], [3.0, 6.0]]])).tolist()
    [[[2.0, 4.0]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Pools."""
        return functional.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_Adaptive):
    """Means of windows chosen so that the last three dimensions get given sizes; None keeps one.

    Raises:
        RuntimeError: in a call, the input has other than 4 or 5 dimensions.

    >>> nn.AdaptiveAvgPool3d(1)(tf.ones(1, 2, 3, 4)).tolist()
    [[[[1.0]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Pools."""
        return functional.adaptive_avg_pool3d(input, self.output_size)
