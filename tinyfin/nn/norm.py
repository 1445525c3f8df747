"""Normalisation layers."""

from __future__ import annotations

from tinyfin.core.dtype import dtype_by_name
from tinyfin.core.tensor import Tensor
from tinyfin.creation import ones, zeros
from tinyfin.nn import functional
from tinyfin.nn.functional.arguments import check_counts
from tinyfin.nn.module import Module
from tinyfin.nn.parameter import Parameter
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INT64 = dtype_by_name("int64")


class _Affine(Module):
    """Weight and bias that start at one and zero, or are not there."""

    def _make(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, wanted, make in (("weight", weight, ones), ("bias", bias, zeros)):
            value = Parameter(make(shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)

    def _own(self) -> tuple[Tensor | None, Tensor | None]:
        own = self._parameters
        if "weight" in own and "bias" in own:
            return own["weight"], own["bias"]
        return self.weight, self.bias

    def reset_parameters(self) -> None:
        """Sets the parameters to their first values."""
        if self.weight is not None:
            self.weight.detach().fill_(1.0)
        if getattr(self, "bias", None) is not None:
            self.bias.detach().fill_(0.0)


class _Running(_Affine):
    """What batch and instance norm share: running statistics."""

    _dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: Any,
        bias: bool,
    ) -> None:
        super().__init__()
        check_counts(type(self).__name__, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._make((num_features,), affine, affine and bias, device, dtype)
        mean = var = count = None
        if track_running_stats:
            mean = zeros((num_features,), device=device, dtype=dtype)
            var = ones((num_features,), device=device, dtype=dtype)
            count = zeros((), device=device, dtype=INT64)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self) -> None:
        """Sets the running statistics to mean 0 and variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets parameters and statistics to their first values."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_dims(self, input: Tensor) -> None:
        if len(input.shape) not in self._dims:
            raise ValueError(
                f"{type(self).__name__}: input is {tuple(input.shape)}, expected "
                f"{' or '.join(map(str, self._dims))} dimensions"
            )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        key = prefix + "num_batches_tracked"  # older checkpoints do not have it
        if self.num_batches_tracked is not None and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Tensor) -> Tensor:
        """Normalises; while training it moves the running statistics."""
        self._check_dims(input)
        stats = self._buffers
        mean, var, momentum = stats["running_mean"], stats["running_var"], self.momentum
        by_batch = self.training or mean is None
        if self.training and self.track_running_stats:
            count = stats["num_batches_tracked"]
            if count is not None:
                count.add_(1)
                if momentum is None:
                    momentum = 1.0 / count.item()
        elif self.training:
            mean = var = None
        return F.batch_norm(
            input,
            mean,
            var,
            *self._own(),
            by_batch,
            0.0 if momentum is None else momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Scales each channel of (N, C) or (N, C, L) to mean 0 and variance 1 over the batch.

    In eval mode the running statistics stand in for the batch's.

    Args:
        num_features: the channels C.
        eps: added to the variance.
        momentum: the weight of a batch in the running statistics; None averages over all.
        affine: whether there are a learned weight and bias.
        track_running_stats: whether there are running statistics; without them the batch's are
            always used.
        device: where the parameters are.
        dtype: their type.
        bias: False leaves the bias out.

    Raises:
        ValueError: in a call, the input has another number of dimensions, or one value a channel
            while training.
        RuntimeError: in a call, it has another number of channels.

    >>> norm = nn.BatchNorm1d(1)
    >>> norm(tf.tensor([[1.0], [3.0]])).round().flatten().tolist()
    [-1.0, 1.0]
    >>> round(norm.running_mean.item(), 3)
    0.2
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Scales each channel of (N, C, H, W) to mean 0 and variance 1 over the batch.

    Arguments and errors are those of `BatchNorm1d`.

    >>> tuple(nn.BatchNorm2d(3)(tf.ones(2, 3, 4, 4)).shape)
    (2, 3, 4, 4)
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Scales each channel of (N, C, D, H, W) to mean 0 and variance 1 over the batch.

    Arguments and errors are those of `BatchNorm1d`.

    >>> tuple(nn.BatchNorm3d(3)(tf.ones(2, 3, 4, 4, 4)).shape)
    (2, 3, 4, 4, 4)
    """

    _dims = (5,)


class _InstanceNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Tensor) -> Tensor:
        """Normalises; while training it moves the running statistics."""
        self._check_dims(input)
        batched = len(input.shape) == self._dims[-1]
        x = input if batched else input.unsqueeze(0)
        stats = self._buffers
        y = functional.instance_norm(
            x,
            stats["running_mean"],
            stats["running_var"],
            *self._own(),
            self.training or not self.track_running_stats,
            self.momentum or 0.0,
            self.eps,
        )
        return y if batched else y.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Scales each channel of each sample of (N, C, L) or (C, L) to mean 0 and variance 1.

    Args:
        num_features: the channels C.
        eps: added to the variance.
        momentum: the weight of a batch in the running statistics.
        affine: whether there are a learned weight and bias.
        track_running_stats: whether there are running statistics, used in eval mode.
        device: where the parameters are.
        dtype: their type.
        bias: False leaves the bias out.

    Raises:
        ValueError: in a call, the input has another number of dimensions, or one value a channel.

    >>> nn.InstanceNorm1d(1)(tf.tensor([[[1.0, 3.0]]])).round().tolist()
    [[[-1.0, 1.0]]]
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Scales each channel of each sample of (N, C, H, W) or (C, H, W) to mean 0 and variance 1.

    Arguments and errors are those of `InstanceNorm1d`.

    >>> tuple(nn.InstanceNorm2d(3)(tf.ones(2, 3, 4, 4)).shape)
    (2, 3, 4, 4)
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Scales each channel of each sample of (N, C, D, H, W) or (C, D, H, W).

    Arguments and errors are those of `InstanceNorm1d`.

    >>> tuple(nn.InstanceNorm3d(3)(tf.ones(2, 3, 4, 4, 4)).shape)
    (2, 3, 4, 4, 4)
    """

    _dims = (4, 5)


class LayerNorm(_Affine):
    """Scales the last dimensions to mean 0 and variance 1.

    Shapes: (..., *normalized_shape) to the same.

    Args:
        normalized_shape: size of the last dimension, or sizes of the last ones.
        eps: added to the variance.
        elementwise_affine: whether there are a learned weight and bias of that shape.
        bias: False leaves the bias out.
        device: where the parameters are.
        dtype: their type.

    Raises:
        RuntimeError: in a call, the input does not end in `normalized_shape`.

    >>> nn.LayerNorm(2)(tf.tensor([1.0, 3.0])).round().tolist()
    [-1.0, 1.0]
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make(
            self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype
        )

    def forward(self, input: Tensor) -> Tensor:
        """Normalises."""
        return F.layer_norm(input, self.normalized_shape, *self._own(), self.eps)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


def _shape(sizes: Any) -> tuple[int, ...]:
    return (sizes,) if isinstance(sizes, int) else tuple(sizes)


class RMSNorm(_Affine):
    """Divides the last dimensions by the root of their mean square.

    Shapes: (..., *normalized_shape) to the same.

    Args:
        normalized_shape: size of the last dimension, or sizes of the last ones.
        eps: added to the mean square; None for the spacing of the type's numbers at 1.
        elementwise_affine: whether there is a learned weight of that shape.
        device: where it is.
        dtype: its type.

    Raises:
        RuntimeError: in a call, the input does not end in `normalized_shape`.

    >>> nn.RMSNorm(2, eps=0.0)(tf.tensor([3.0, -3.0])).tolist()
    [1.0, -1.0]
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = ones(self.normalized_shape, device=device, dtype=dtype)
        self.register_parameter("weight", Parameter(weight) if elementwise_affine else None)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises."""
        own = self._parameters
        weight = own["weight"] if "weight" in own else self.weight  # noqa: SIM401
        return F.rms_norm(input, self.normalized_shape, weight, self.eps)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """Scales each sample's groups of channels to mean 0 and variance 1.

    Shapes: (N, num_channels, ...) to the same.

    Args:
        num_groups: number of groups that the channels are divided into.
        num_channels: the channels.
        eps: added to the variance.
        affine: whether there are a learned weight and bias for each channel.
        device: where they are.
        dtype: their type.
        bias: False leaves the bias out.

    Raises:
        ValueError: the channels do not divide into the groups.
        RuntimeError: in a call, the input has another number of channels.

    >>> tuple(nn.GroupNorm(2, 4)(tf.ones(3, 4, 5)).shape)
    (3, 4, 5)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_counts("GroupNorm", -1 << 63, num_groups=num_groups, num_channels=num_channels)
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_channels {num_channels} does not divide into {num_groups} groups"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.affine = affine
        self._make((num_channels,), affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises."""
        return F.group_norm(input, self.num_groups, *self._own(), self.eps)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
