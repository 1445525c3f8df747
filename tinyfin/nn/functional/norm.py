"""Normalisations: to mean 0 and variance 1 over some part of the input."""

from __future__ import annotations

import math

from tinyfin.autograd.modes import no_grad
from tinyfin.core.tensor import Tensor
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors

batch_norm = F.batch_norm
group_norm = F.group_norm
layer_norm = F.layer_norm
rms_norm = F.rms_norm


def _check_channels(what: str, shape: tuple[int, ...], **affine: Tensor | None) -> None:
    for name, x in affine.items():
        if x is not None and tuple(x.shape) != (shape[1],):
            raise RuntimeError(
                f"{what}: {name} is {tuple(x.shape)}, expected ({shape[1]},) for input {shape}"
            )


def _follow(running: Tensor | None, now: Tensor, momentum: float, scale: float) -> None:
    """running = (1 - momentum) * running + momentum * scale * now"""
    if running is not None:
        with no_grad():
            running.mul_(1 - momentum).add_(now.detach() * (momentum * scale))


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
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
    need_tensors("instance_norm", input=input)
    shape = tuple(input.shape)
    if len(shape) < 3:
        raise RuntimeError(f"instance_norm: input is {shape}, expected at least 3 dimensions")
    if not use_input_stats:
        return F.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _check_channels(
        "instance_norm",
        shape,
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
    )
    n, c, *rest = shape
    count = math.prod(rest)
    if count == 1:
        raise ValueError(f"instance_norm: input {shape} has one value a channel, expected more")
    y, mean, var = F.native_batch_norm(input.reshape(1, n * c, *rest), None, None, eps)
    _follow(running_mean, mean.reshape(n, c).mean(0), momentum, 1.0)
    _follow(running_var, var.reshape(n, c).mean(0), momentum, count / (count - 1))
    y, each = y.reshape(shape), (1, c) + (1,) * len(rest)
    y = y if weight is None else y * weight.reshape(each)
    return y if bias is None else y + bias.reshape(each)
