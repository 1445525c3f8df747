"""Modules of the losses. `size_average` and `reduce` are PyTorch's older names for `reduction`."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.nn import functional
from tinyfin.nn.functional.loss import named_reduction
from tinyfin.nn.module import Module


class _Loss(Module):
    """What all losses share: "mean", "sum" or "none"."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = named_reduction(reduction, size_average, reduce)


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """Squared differences of input and target, of the same shape.

    Args:
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: in a call, the reduction is unknown.
        RuntimeError: in a call, the shapes do not fit.

    >>> nn.MSELoss()(tf.tensor([1.0, 3.0]), tf.tensor([1.0, 1.0])).item()
    2.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Absolute differences of input and target; arguments and errors are those of `MSELoss`.

    >>> nn.L1Loss()(tf.tensor([1.0, 3.0]), tf.tensor([1.0, 1.0])).item()
    1.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Absolute differences less beta / 2, and below beta, squares over 2 beta.

    Arguments and errors are those of `MSELoss`; a negative `beta` is a RuntimeError in a call.

    >>> nn.SmoothL1Loss(reduction="none")(tf.tensor([1.0, 3.0]), tf.tensor([1.0, 1.0])).tolist()
    [0.0, 1.5]
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the squares, and from delta on delta * (|difference| - delta / 2).

    Arguments and errors are those of `MSELoss`; a `delta` that is not positive is a RuntimeError in
    a call.

    >>> nn.HuberLoss(reduction="none")(tf.tensor([1.0, 3.0]), tf.tensor([1.0, 1.0])).tolist()
    [0.0, 1.5]
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.huber_loss(input, target, self.reduction, self.delta)


class NLLLoss(_WeightedLoss):
    """The negative of the log-probability of the right class.

    Shapes: (N, C), (C) or (N, C, ...) with int64 classes (N), () or (N, ...).

    Args:
        weight: one for each class; "mean" divides by the sum of those used.
        ignore_index: a class whose samples do not count.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: in a call, the reduction is unknown, or the batches differ.
        RuntimeError: in a call, shapes or types do not fit.
        IndexError: in a call, a class is out of range.

    >>> nn.NLLLoss()(tf.tensor([[-1.0, -2.0], [-3.0, -4.0]]), tf.tensor([0, 1])).item()
    2.5
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class CrossEntropyLoss(_WeightedLoss):
    """The negative log-probability of the right class, from logits.

    Shapes: (N, C), (C) or (N, C, ...) with int64 classes (N), () or (N, ...), or with
    probabilities of the input's shape. Errors are those of `NLLLoss`.

    Args:
        weight: one for each class; "mean" divides by the sum of those used.
        ignore_index: a class whose samples do not count.
        reduction: "mean", "sum" or "none".
        label_smoothing: the part of the target that is spread over all classes.

    >>> nn.CrossEntropyLoss()(tf.tensor([[0.0, 0.0]]), tf.tensor([1])).exp().item()
    2.0
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities.

    Args:
        weight: broadcasts with the input.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: in a call, the reduction is unknown, or the shapes differ.
        RuntimeError: in a call, an input is not between 0 and 1.

    >>> nn.BCELoss()(tf.tensor([0.5]), tf.tensor([1.0])).exp().item()
    2.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross entropy of sigmoid(input), computed from the logits.

    Args:
        weight: broadcasts with the input.
        reduction: "mean", "sum" or "none".
        pos_weight: the weight of the targets' positive part; broadcasts.

    Raises:
        ValueError: in a call, the reduction is unknown, or the shapes differ.

    >>> nn.BCEWithLogitsLoss()(tf.tensor([0.0]), tf.tensor([1.0])).exp().item()
    2.0
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """How far log-probabilities (the input) are from probabilities (the target).

    Args:
        reduction: "batchmean", which is the divergence; or "mean", "sum", "none".
        log_target: whether the target holds logarithms.

    Raises:
        ValueError: in a call, the reduction is unknown.

    >>> p = tf.tensor([[0.5, 0.5]])
    >>> nn.KLDivLoss(reduction="batchmean")(p.log(), p).item()
    0.0
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )


class MarginRankingLoss(_Loss):
    """max(0, -target * (input1 - input2) + margin): target 1 wants input1 above input2.

    >>> nn.MarginRankingLoss()(tf.tensor([1.0]), tf.tensor([3.0]), tf.tensor([1.0])).item()
    2.0
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.margin_ranking_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """The input where target is 1, max(0, margin - input) where it is -1.

    >>> nn.HingeEmbeddingLoss()(tf.tensor([2.0, 0.25]), tf.tensor([1.0, -1.0])).item()
    1.375
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cosine of two vectors where target is 1, max(0, cosine - margin) where it is -1.

    >>> x = tf.tensor([[1.0, 0.0]])
    >>> round(nn.CosineEmbeddingLoss()(x, x, tf.tensor([-1.0])).item(), 4)
    1.0
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.cosine_embedding_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """max(0, distance to the positive - distance to the negative + margin).

    Args:
        margin: by how much farther the negative should be.
        p: the norm of the distance.
        eps: added to each difference.
        swap: take the negative's distance to the positive where that is less.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: the margin is not positive.

    >>> a, b = tf.tensor([[0.0, 0.0]]), tf.tensor([[3.0, 4.0]])
    >>> nn.TripletMarginLoss()(a, b, b).item()
    1.0
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: margin is {margin}, expected one above zero")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss."""
        return functional.triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            reduction=self.reduction,
        )


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)), with targets 1 and -1.

    >>> nn.SoftMarginLoss()(tf.tensor([0.0]), tf.tensor([1.0])).exp().item()
    2.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.soft_margin_loss(input, target, reduction=self.reduction)


class CosineSimilarity(Module):
    """Cosine of the angle between vectors along a dimension.

    >>> nn.CosineSimilarity()(tf.tensor([[1.0, 0.0]]), tf.tensor([[2.0, 0.0]])).item()
    1.0
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosines."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Length of x1 - x2 + eps along the last dimension.

    >>> nn.PairwiseDistance(eps=0.0)(tf.tensor([[0.0, 0.0]]), tf.tensor([[3.0, 4.0]])).item()
    5.0
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distances."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
