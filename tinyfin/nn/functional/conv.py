"""Convolutions: arguments as PyTorch takes them, brought into the form of the rows."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.nn.functional.arguments import sizes
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def same_padding(what: str, kernel: tuple, stride: tuple, dilation: tuple) -> list[tuple[int, int]]:
    """Padding before and after each spatial dimension that keeps its size."""
    if any(s != 1 for s in stride):
        raise RuntimeError(f"{what}: padding='same' with stride {stride}, expected stride 1")
    total = [d * (k - 1) for k, d in zip(kernel, dilation)]
    return [(t // 2, t - t // 2) for t in total]


def string_padding(
    what: str, padding: str, kernel: tuple, stride: tuple, dilation: tuple
) -> list[tuple[int, int]]:
    """The amounts that 'same' or 'valid' stand for."""
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding != "same":
        raise RuntimeError(f"{what}: padding is {padding!r}, expected integers, 'same' or 'valid'")
    return same_padding(what, kernel, stride, dilation)


def flat_padding(pairs: list[tuple[int, int]]) -> list[int]:
    """Amounts in the order of `pad`: the last dimension first."""
    return [amount for pair in reversed(pairs) for amount in pair]


def _conv(
    what: str,
    row: Any,
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    _check_dims(what, n, input, weight)
    stride, dilation = sizes(what, "stride", stride, n), sizes(what, "dilation", dilation, n)
    if isinstance(padding, str):
        kernel = tuple(weight.shape[2:])
        pairs = string_padding(what, padding, kernel, stride, dilation)
        padding = tuple(before for before, _ in pairs)
        if any(before != after for before, after in pairs):
            extra = [(0, after - before) for before, after in pairs]
            input = F.pad_constant(input, flat_padding(extra), 0.0)
    else:
        padding = sizes(what, "padding", padding, n)
    if len(input.shape) == n + 1:
        return row(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    return row(input, weight, bias, stride, padding, dilation, groups)


def _check_dims(what: str, n: int, input: Tensor, weight: Tensor) -> None:
    if not (isinstance(input, Tensor) and isinstance(weight, Tensor)):
        need_tensors(what, input=input, weight=weight)
    if len(input.shape) not in (n + 1, n + 2):
        raise RuntimeError(
            f"{what}: input is {tuple(input.shape)}, expected {n + 1} dimensions, "
            f"or {n + 2} with a batch"
        )
    if len(weight.shape) != n + 2:
        raise RuntimeError(f"{what}: weight is {tuple(weight.shape)}, expected {n + 2} dimensions")


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over one dimension.

    Shapes: (N, C, L) or (C, L), weight (K, C / groups, k), bias (K) give (N, K, L').

    Args:
        input: signals.
        weight: kernels.
        bias: added to each output channel.
        stride: step of the kernel.
        padding: zeros on both sides, or 'same' or 'valid'.
        dilation: distance of the kernel's elements.
        groups: parts of the channels that are kept apart.

    Raises:
        RuntimeError: the shapes do not fit, or the padding is an unknown word or 'same' with a
            stride.
        TypeError: a size is not an integer.

    >>> F.conv1d(tf.ones(1, 1, 5), tf.ones(1, 1, 3), padding="same").tolist()
    [[[2.0, 3.0, 3.0, 3.0, 2.0]]]
    """
    return _conv("conv1d", F.conv1d, 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over two dimensions.

    Shapes: (N, C, H, W) or (C, H, W), weight (K, C / groups, kH, kW), bias (K) give
    (N, K, H', W'). Arguments and errors are those of `conv1d`, with one integer or two.

    >>> F.conv2d(tf.ones(1, 1, 3, 3), tf.ones(1, 1, 2, 2), stride=(1, 2)).tolist()
    [[[[4.0], [4.0]]]]
    """
    return _conv("conv2d", F.conv2d, 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over three dimensions.

    Shapes: (N, C, D, H, W) or (C, D, H, W), weight (K, C / groups, kD, kH, kW), bias (K) give
    (N, K, D', H', W'). Arguments and errors are those of `conv1d`, with one integer or three.

    >>> F.conv3d(tf.ones(1, 1, 2, 2, 2), tf.ones(1, 1, 2, 2, 2)).tolist()
    [[[[[8.0]]]]]
    """
    return _conv("conv3d", F.conv3d, 3, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(
    what: str,
    row: Any,
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    _check_dims(what, n, input, weight)
    stride, dilation = sizes(what, "stride", stride, n), sizes(what, "dilation", dilation, n)
    padding = sizes(what, "padding", padding, n)
    extra = sizes(what, "output_padding", output_padding, n)
    for e, s, d in zip(extra, stride, dilation):
        if e >= max(s, d):
            raise RuntimeError(
                f"{what}: output_padding is {extra}, expected less than stride "
                f"{stride} or dilation {dilation}"
            )
    batched = len(input.shape) == n + 2
    x = input if batched else input.unsqueeze(0)
    if all(e < s for e, s in zip(extra, stride)):
        y = row(x, weight, bias, stride, padding, extra, groups, dilation)
    else:  # more than the row takes: the whole result, cut or lengthened by zeros
        none = (0,) * n
        y = row(x, weight, None, stride, none, none, groups, dilation)
        amounts = [(-p, e - p) for p, e in zip(padding, extra)]
        y = F.pad_constant(y, flat_padding(amounts), 0.0)
        y = y if bias is None else y + bias.reshape((-1,) + (1,) * n)
    return y if batched else y.squeeze(0)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transposed convolution over one dimension: the gradient of `conv1d` as a function.

    Shapes: (N, C, L) or (C, L), weight (C, K / groups, k), bias (K) give (N, K, L').

    Args:
        input: signals.
        weight: kernels.
        bias: added to each output channel.
        stride: distance of the input's elements in the output.
        padding: elements that are cut off both sides of the output.
        output_padding: elements added to one side of the output.
        groups: parts of the channels that are kept apart.
        dilation: distance of the kernel's elements.

    Raises:
        RuntimeError: the shapes do not fit, or `output_padding` is too great.

    >>> F.conv_transpose1d(tf.ones(1, 1, 2), tf.ones(1, 1, 2), stride=2).tolist()
    [[[1.0, 1.0, 1.0, 1.0]]]
    """
    return _conv_transpose(
        "conv_transpose1d",
        F.conv_transpose1d,
        1,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transposed convolution over two dimensions: the gradient of `conv2d` as a function.

    Shapes: (N, C, H, W) or (C, H, W), weight (C, K / groups, kH, kW), bias (K) give
    (N, K, H', W'). Arguments and errors are those of `conv_transpose1d`, with one integer or two.

    >>> F.conv_transpose2d(tf.ones(1, 1, 1, 2), tf.ones(1, 1, 1, 2)).tolist()
    [[[[1.0, 2.0, 1.0]]]]
    """
    return _conv_transpose(
        "conv_transpose2d",
        F.conv_transpose2d,
        2,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transposed convolution over three dimensions: the gradient of `conv3d` as a function.

    Shapes: (N, C, D, H, W) or (C, D, H, W), weight (C, K / groups, kD, kH, kW), bias (K) give
    (N, K, D', H', W'). Arguments and errors are those of `conv_transpose1d`, with one integer or
    three.

    >>> F.conv_transpose3d(tf.ones(1, 1, 1, 1, 2), tf.ones(1, 1, 1, 1, 2)).tolist()
    [[[[[1.0, 2.0, 1.0]]]]]
    """
    return _conv_transpose(
        "conv_transpose3d",
        F.conv_transpose3d,
        3,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )
