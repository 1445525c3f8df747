"""Normalisations: to mean 0 and variance 1 over some part of the input."""
from __future__ import annotations

import math

from tinyfin.autograd.modes import no_grad
from tinyfin.core.tensor import Tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def _normalized(what: str, input: Tensor, normalized_shape: Sequence[int],
                **affine: Tensor | None) -> tuple[int, ...]:
    shape = tuple(normalized_shape)
    have = tuple(input.shape)
    if not shape or have[-len(shape):] != shape:
        raise RuntimeError(f"{what}: input is {have} and normalized_shape {shape}, expected an input "
                           "that ends in it")
    for name, x in affine.items():
        if x is not None and tuple(x.shape) != shape:
            raise RuntimeError(f"{what}: {name} is {tuple(x.shape)}, expected {shape}")
    return shape


def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Scales the last dimensions to mean 0 and variance 1, then by `weight`, and adds `bias`.

    Args:
        input: (..., *normalized_shape).
        normalized_shape: sizes of the last dimensions.
        weight: of that shape.
        bias: of that shape.
        eps: added to the variance.

    Raises:
        RuntimeError: the shapes do not fit.

    >>> [round(v, 3) for v in F.layer_norm(tf.tensor([1.0, 3.0]), (2,)).tolist()]
    [-1.0, 1.0]
    """
    shape = _normalized("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    return F.layer_norm(input, shape, weight, bias, eps)


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """Divides the last dimensions by the root of their mean square, and scales by `weight`.

    Args:
        input: (..., *normalized_shape).
        normalized_shape: sizes of the last dimensions.
        weight: of that shape.
        eps: added to the mean square; None for the spacing of the type's numbers at 1.

    Raises:
        RuntimeError: the shapes do not fit.

    >>> F.rms_norm(tf.tensor([3.0, -3.0]), (2,), eps=0.0).tolist()
    [1.0, -1.0]
    """
    shape = _normalized("rms_norm", input, normalized_shape, weight=weight)
    return F.rms_norm(input, shape, weight, eps)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Scales each sample's groups of channels to mean 0 and variance 1.

    Args:
        input: (N, C, ...).
        num_groups: number of groups that the channels are divided into.
        weight: (C), scales afterwards.
        bias: (C), is added.
        eps: added to the variance.

    Raises:
        RuntimeError: the shapes do not fit, or the channels do not divide into the groups.

    >>> F.group_norm(tf.tensor([[1.0, 3.0]]), 1).abs().round().tolist()
    [[1.0, 1.0]]
    """
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise RuntimeError(f"group_norm: input is {shape}, expected at least 2 dimensions")
    _check_channels("group_norm", shape, weight=weight, bias=bias)
    if num_groups < 1 or shape[1] % num_groups:
        raise RuntimeError(f"group_norm: {shape[1]} channels do not divide into {num_groups} groups")
    return F.group_norm(input, num_groups, weight, bias, eps)


def _check_channels(what: str, shape: tuple[int, ...], **affine: Tensor | None) -> None:
    for name, x in affine.items():
        if x is not None and tuple(x.shape) != (shape[1],):
            raise RuntimeError(f"{what}: {name} is {tuple(x.shape)}, expected ({shape[1]},) for input "
                               f"{shape}")


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Scales each channel to mean 0 and variance 1, over the batch or by running statistics.

    Args:
        input: (N, C, ...).
        running_mean: (C); while training it moves towards the batch's by `momentum`.
        running_var: (C); likewise, towards the unbiased variance.
        weight: (C), scales afterwards.
        bias: (C), is added.
        training: use the batch's mean and variance.
        momentum: the weight of the batch in the running statistics.
        eps: added to the variance.

    Raises:
        RuntimeError: the shapes do not fit, or statistics are missing.
        ValueError: training with one value a channel.

    >>> x = tf.tensor([[1.0], [3.0]])
    >>> [round(v, 3) for v, in F.batch_norm(x, None, None, training=True).tolist()]
    [-1.0, 1.0]
    """
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise RuntimeError(f"batch_norm: input is {shape}, expected at least 2 dimensions")
    _check_channels("batch_norm", shape, running_mean=running_mean, running_var=running_var,
                    weight=weight, bias=bias)
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("batch_norm: running_mean and running_var are needed when not training")
        return F.batch_norm_given(input, running_mean, running_var, weight, bias, eps)
    count = math.prod(shape) // max(shape[1], 1)
    if count == 1:
        raise ValueError(f"batch_norm: input {shape} has one value a channel, expected more when "
                         "training")
    y, mean, var = F.batch_norm_batch(input, weight, bias, eps)
    _follow(running_mean, mean, momentum, 1.0)
    _follow(running_var, var, momentum, count / max(count - 1, 1))
    return y


def _follow(running: Tensor | None, now: Tensor, momentum: float, scale: float) -> None:
    """running = (1 - momentum) * running + momentum * scale * now"""
    if running is not None:
        with no_grad():
            running.mul_(1 - momentum).add_(now.detach() * (momentum * scale))


def instance_norm(input: Tensor, running_mean: Tensor | None = None,
                  running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1,
                  eps: float = 1e-5) -> Tensor:
    """Scales each channel of each sample to mean 0 and variance 1.

    Args:
        input: (N, C, ...) with at least one more dimension.
        running_mean: (C); it moves towards the mean over the batch by `momentum`.
        running_var: (C); likewise.
        weight: (C), scales afterwards.
        bias: (C), is added.
        use_input_stats: use the sample's own mean and variance, not the running ones.
        momentum: the weight of the batch in the running statistics.
        eps: added to the variance.

    Raises:
        RuntimeError: the shapes do not fit, or statistics are missing.
        ValueError: one value a channel.

    >>> F.instance_norm(tf.tensor([[[1.0, 3.0]]])).abs().round().tolist()
    [[[1.0, 1.0]]]
    """
    shape = tuple(input.shape)
    if len(shape) < 3:
        raise RuntimeError(f"instance_norm: input is {shape}, expected at least 3 dimensions")
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _check_channels("instance_norm", shape, running_mean=running_mean, running_var=running_var,
                    weight=weight, bias=bias)
    n, c, *rest = shape
    count = math.prod(rest)
    if count == 1:
        raise ValueError(f"instance_norm: input {shape} has one value a channel, expected more")
    y, mean, var = F.batch_norm_batch(input.reshape(1, n * c, *rest), None, None, eps)
    _follow(running_mean, mean.reshape(n, c).mean(0), momentum, 1.0)
    _follow(running_var, var.reshape(n, c).mean(0), momentum, count / (count - 1))
    y, each = y.reshape(shape), (1, c) + (1,) * len(rest)
    y = y if weight is None else y * weight.reshape(each)
    return y if bias is None else y + bias.reshape(each)
