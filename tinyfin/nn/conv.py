"""Convolution layers."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.creation import empty
from tinyfin.nn import functional
from tinyfin.nn.functional.arguments import check_counts, sizes
from tinyfin.nn.functional.conv import flat_padding, string_padding
from tinyfin.nn.linear import reset_uniform
from tinyfin.nn.module import Module
from tinyfin.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share: parameters, their shapes, and the arguments' checks."""

    _n = 0
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        name, n = type(self).__name__, self._n
        self._check(name, in_channels, out_channels, groups, padding_mode)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = sizes(name, "kernel_size", kernel_size, n)
        self.stride = sizes(name, "stride", stride, n)
        self.dilation = sizes(name, "dilation", dilation, n)
        self.output_padding = sizes(name, "output_padding", output_padding, n)
        self.padding = padding if isinstance(padding, str) else sizes(name, "padding", padding, n)
        self.padding_mode, self.transposed = padding_mode, self._transposed
        self._inner, self._outer = self._split_padding(name)
        first, second = in_channels, out_channels
        if not self._transposed:
            first, second = second, first
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty((out_channels,), device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(
        self, name: str, in_channels: int, out_channels: int, groups: int, padding_mode: str
    ) -> None:
        check_counts(name, in_channels=in_channels, out_channels=out_channels)
        check_counts(name, -1 << 63, groups=groups)
        if groups <= 0:
            raise ValueError(f"{name}: groups is {groups}, expected at least 1")
        for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name}: {what} {channels} does not divide into {groups} groups")
        if padding_mode not in (_MODES[:1] if self._transposed else _MODES):
            wanted = "'zeros'" if self._transposed else ", ".join(map(repr, _MODES))
            raise ValueError(f"{name}: padding_mode is {padding_mode!r}, expected {wanted}")

    def _split_padding(self, name: str) -> tuple[tuple[int, ...], list[int] | None]:
        """Padding that the convolution does itself, and padding to be done before it."""
        pairs = self._padding_pairs(name)
        none = (0,) * self._n
        if self.padding_mode != "zeros":
            return none, flat_padding(pairs) if any(map(any, pairs)) else None
        if all(before == after for before, after in pairs):
            return tuple(before for before, _ in pairs), None
        return none, flat_padding(pairs)

    def _padding_pairs(self, name: str) -> list[tuple[int, int]]:
        """Padding before and after each dimension."""
        if not isinstance(self.padding, str):
            return [(p, p) for p in self.padding]
        try:
            return string_padding(name, self.padding, self.kernel_size, self.stride, self.dilation)
        except RuntimeError as error:
            raise ValueError(str(error)) from None

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        reset_uniform(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Convolves."""
        own = self._parameters
        weight = own["weight"] if "weight" in own else self.weight  # noqa: SIM401
        bias = own["bias"] if "bias" in own else self.bias  # noqa: SIM401
        # the table says that a parameter may be None; a weight is there
        return self._conv_forward(input, weight, bias)  # pyright: ignore[reportArgumentType]

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self._outer is not None:
            mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
            input = functional.pad(input, self._outer, mode)
        function = _FUNCTIONS[self._n - 1]
        return function(input, weight, bias, self.stride, self._inner, self.dilation, self.groups)

    def extra_repr(self) -> str:
        """The options that are not the usual ones."""
        n = self._n
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        usual = (
            ("padding", (0,) * n),
            ("dilation", (1,) * n),
            ("output_padding", (0,) * n),
            ("groups", 1),
        )
        for name, value in usual:
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


_FUNCTIONS = (functional.conv1d, functional.conv2d, functional.conv3d)


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv1d(_Conv):
    """Convolution over one dimension.

    Shapes: (N, in_channels, L) or (in_channels, L) to (N, out_channels, L'). `weight` is
    (out_channels, in_channels / groups, kernel_size), `bias` (out_channels); both start uniform
    between +-1 / sqrt(number of inputs of an output).

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the kernel.
        stride: its step.
        padding: on both sides, or "same" or "valid".
        dilation: distance of the kernel's elements.
        groups: parts of the channels that are kept apart.
        bias: whether to add a bias.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: where the parameters are.
        dtype: their type.

    Raises:
        ValueError: channels do not divide into the groups, a word is unknown, or "same" is asked
            for with a stride.
        RuntimeError: in a call, the shapes do not fit.

    >>> tuple(nn.Conv1d(2, 3, kernel_size=3, padding="same")(tf.ones(1, 2, 5)).shape)
    (1, 3, 5)
    """

    _n = 1


class Conv2d(_Conv):
    """Convolution over two dimensions.

    Shapes: (N, in_channels, H, W) or (in_channels, H, W) to (N, out_channels, H', W'). Arguments
    and errors are those of `Conv1d`, with one integer or two.

    >>> nn.Conv2d(1, 8, 3, padding=1)
    Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    """

    _n = 2


class Conv3d(_Conv):
    """Convolution over three dimensions.

    Shapes: (N, in_channels, D, H, W) or (in_channels, D, H, W) to (N, out_channels, D', H', W').
    Arguments and errors are those of `Conv1d`, with one integer or three.

    >>> tuple(nn.Conv3d(1, 2, 3)(tf.ones(1, 1, 3, 3, 4)).shape)
    (1, 2, 1, 1, 2)
    """

    _n = 3


class _ConvTranspose(_ConvNd):
    _transposed = True
    padding: tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Convolves; `output_size` chooses among the sizes that the stride leaves open."""
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        function = _TRANSPOSED[self._n - 1]
        return function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )

    def _extra(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        n, name = self._n, type(self).__name__
        wanted = tuple(output_size)
        if len(wanted) not in (n, len(input.shape)):
            raise ValueError(
                f"{name}: output_size is {wanted}, expected {n} sizes, or all "
                f"{len(input.shape)} of the output"
            )
        wanted = wanted[-n:]
        least = [
            (s - 1) * st - 2 * p + d * (k - 1) + 1
            for s, st, p, d, k in zip(
                input.shape[-n:], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        extra = tuple(w - low for w, low in zip(wanted, least))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride)):
            most = [low + s - 1 for low, s in zip(least, self.stride)]
            raise ValueError(
                f"{name}: output_size is {wanted}, expected {least} to {most} for input "
                f"{tuple(input.shape)}"
            )
        return extra


_TRANSPOSED = (
    functional.conv_transpose1d,
    functional.conv_transpose2d,
    functional.conv_transpose3d,
)


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution over one dimension.

    Shapes: (N, in_channels, L) or (in_channels, L) to (N, out_channels, L'). `weight` is
    (in_channels, out_channels / groups, kernel_size), `bias` (out_channels).

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the kernel.
        stride: distance of the input's elements in the output.
        padding: elements that are cut off both sides of the output.
        output_padding: elements added to one side of the output.
        groups: parts of the channels that are kept apart.
        bias: whether to add a bias.
        dilation: distance of the kernel's elements.
        padding_mode: only "zeros".
        device: where the parameters are.
        dtype: their type.

    Raises:
        ValueError: channels do not divide into the groups, or `padding_mode` is another; in a
            call, `output_size` cannot be reached.
        RuntimeError: in a call, the shapes do not fit.

    >>> tuple(nn.ConvTranspose1d(2, 3, kernel_size=4, stride=2)(tf.ones(1, 2, 5)).shape)
    (1, 3, 12)
    """

    _n = 1


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution over two dimensions.

    Shapes: (N, in_channels, H, W) or (in_channels, H, W) to (N, out_channels, H', W'). Arguments
    and errors are those of `ConvTranspose1d`, with one integer or two.

    >>> tuple(nn.ConvTranspose2d(2, 3, 2, stride=2)(tf.ones(1, 2, 4, 4)).shape)
    (1, 3, 8, 8)
    """

    _n = 2


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution over three dimensions.

    Shapes: (N, in_channels, D, H, W) or (in_channels, D, H, W) to (N, out_channels, D', H', W').
    Arguments and errors are those of `ConvTranspose1d`, with one integer or three.

    >>> tuple(nn.ConvTranspose3d(2, 3, 2, stride=2)(tf.ones(1, 2, 1, 2, 3)).shape)
    (1, 3, 2, 4, 6)
    """

    _n = 3
