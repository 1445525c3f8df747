"""Losses: how far predictions are from what was wanted.

`size_average` and `reduce` are PyTorch's older names for `reduction`; given, they win over it.
"""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.nn.functional.arguments import composed
from tinyfin.nn.functional.distance import pairwise_distance
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors


def named_reduction(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """The reduction, also from PyTorch's two older switches."""
    if size_average is None and reduce is None:
        return reduction
    return "none" if reduce is False else "sum" if size_average is False else "mean"


def _reduced(what: str, loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction != "none":
        raise ValueError(f"{what}: reduction is {reduction!r}, expected 'none', 'mean' or 'sum'")
    return loss


def _weighted(what: str, loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Elementwise losses, weighted, and their mean by weight."""
    if loss.shape != weight.shape:
        raise ValueError(f"{what}: weight is {tuple(weight.shape)}, expected {tuple(loss.shape)}")
    total = _reduced(what, loss * weight, "sum" if reduction == "mean" else reduction)
    return total / weight.sum() if reduction == "mean" else total


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared differences.

    Args:
        input: predictions, of any shape.
        target: of the same shape.
        reduction: "mean", "sum" or "none".
        weight: of the same shape; "mean" divides by its sum.

    Raises:
        ValueError: the reduction is unknown.
        RuntimeError: the shapes do not fit; ones that broadcast are warned of.

    >>> F.mse_loss(tf.tensor([1.0, 3.0]), tf.tensor([1.0, 1.0])).item()
    2.0
    """
    reduction = named_reduction(reduction, size_average, reduce)
    if weight is None:
        return F.mse_loss(input, target, reduction)
    return _weighted("mse_loss", F.mse_loss(input, target, "none"), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Absolute differences; arguments and errors are those of `mse_loss`.

    >>> F.l1_loss(tf.tensor([1.0, 3.0]), tf.tensor([1.0, 1.0])).item()
    1.0
    """
    reduction = named_reduction(reduction, size_average, reduce)
    if weight is None:
        return F.l1_loss(input, target, reduction)
    return _weighted("l1_loss", F.l1_loss(input, target, "none"), weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Absolute differences less beta / 2, and below beta, squares over 2 beta.

    Arguments and errors are those of `mse_loss`; a negative `beta` is a RuntimeError.

    >>> F.smooth_l1_loss(tf.tensor([1.0, 3.0]), tf.tensor([1.0, 1.0]), reduction="none").tolist()
    [0.0, 1.5]
    """
    return F.smooth_l1_loss(input, target, beta, named_reduction(reduction, size_average, reduce))


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the squares, and from delta on delta * (|difference| - delta / 2).

    Arguments and errors are those of `mse_loss`; a `delta` that is not positive is a RuntimeError.

    >>> F.huber_loss(tf.tensor([1.0, 3.0]), tf.tensor([1.0, 1.0]), reduction="none").tolist()
    [0.0, 1.5]
    """
    if weight is None:
        return F.huber_loss(input, target, delta, reduction)
    loss = F.huber_loss(input, target, delta, "none")
    if loss.shape != weight.shape:
        raise ValueError(
            f"huber_loss: weight is {tuple(weight.shape)}, expected {tuple(loss.shape)}"
        )
    return _reduced("huber_loss", loss * weight, reduction)  # PyTorch's mean is by count here


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative of the log-probability of the right class.

    Args:
        input: log-probabilities, (N, C), (C) or (N, C, ...).
        target: int64 classes, (N), () or (N, ...).
        weight: one for each class; "mean" divides by the sum of those used.
        ignore_index: a class whose samples do not count.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: the reduction is unknown, or the batches differ.
        RuntimeError: shapes or types do not fit.
        IndexError: a class is out of range.

    >>> F.nll_loss(tf.tensor([[-1.0, -2.0], [-3.0, -4.0]]), tf.tensor([0, 1])).item()
    2.5
    """
    reduction = named_reduction(reduction, size_average, reduce)
    return F.nll_loss(input, target, weight, reduction, ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log-probability of the right class, from logits.

    Args:
        input: logits, (N, C), (C) or (N, C, ...).
        target: int64 classes, (N), () or (N, ...), or probabilities of the shape of `input`.
        weight: one for each class; "mean" divides by the sum of those used.
        ignore_index: a class whose samples do not count.
        reduction: "mean", "sum" or "none".
        label_smoothing: the part of the target that is spread over all classes.

    Raises:
        ValueError: the reduction is unknown, or the batches differ.
        RuntimeError: shapes or types do not fit, or `label_smoothing` is not between 0 and 1.
        IndexError: a class is out of range.

    >>> F.cross_entropy(tf.tensor([[0.0, 0.0]]), tf.tensor([1])).exp().item()
    2.0
    """
    if size_average is not None or reduce is not None:
        reduction = named_reduction(reduction, size_average, reduce)
    return F.cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)), logarithms not below -100.

    Args:
        input: probabilities, of any shape.
        target: probabilities of the same shape.
        weight: broadcasts with them.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: the reduction is unknown, or the shapes differ.
        RuntimeError: an element of `input` is not between 0 and 1.

    >>> F.binary_cross_entropy(tf.tensor([0.5]), tf.tensor([1.0])).exp().item()
    2.0
    """
    reduction = named_reduction(reduction, size_average, reduce)
    return F.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(input), computed from the logits.

    Args:
        input: logits, of any shape.
        target: probabilities of the same shape.
        weight: broadcasts with them.
        reduction: "mean", "sum" or "none".
        pos_weight: the weight of the targets' positive part; broadcasts.

    Raises:
        ValueError: the reduction is unknown, or the shapes differ.

    >>> F.binary_cross_entropy_with_logits(tf.tensor([0.0]), tf.tensor([1.0])).exp().item()
    2.0
    """
    reduction = named_reduction(reduction, size_average, reduce)
    return F.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input): how far log-probabilities are from probabilities.

    Args:
        input: log-probabilities, of any shape.
        target: probabilities of the same shape, or their logarithms with `log_target`.
        reduction: "batchmean", which is the divergence; or "mean", "sum", "none".
        log_target: whether `target` holds logarithms.

    Raises:
        ValueError: the reduction is unknown.

    >>> p = tf.tensor([[0.5, 0.5]])
    >>> F.kl_div(p.log(), p, reduction="batchmean").item()
    0.0
    """
    reduction = named_reduction(reduction, size_average, reduce)
    return F.kl_div(input, target, reduction, log_target)


@composed
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin): target 1 wants input1 above input2.

    Raises:
        ValueError: the reduction is unknown.
        RuntimeError: the numbers of dimensions differ.

    >>> F.margin_ranking_loss(tf.tensor([1.0]), tf.tensor([3.0]), tf.tensor([1.0])).item()
    2.0
    """
    need_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    reduction = named_reduction(reduction, size_average, reduce)
    dims = len(input1.shape), len(input2.shape), len(target.shape)
    if len(set(dims)) > 1:
        raise RuntimeError(
            f"margin_ranking_loss: input1, input2 and target have {dims} dimensions, "
            "expected the same number"
        )
    return _reduced(
        "margin_ranking_loss", (margin - target * (input1 - input2)).clamp(min=0), reduction
    )


@composed
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The input where target is 1, max(0, margin - input) where it is -1.

    Raises:
        ValueError: the reduction is unknown.

    >>> F.hinge_embedding_loss(tf.tensor([2.0, 0.25]), tf.tensor([1.0, -1.0])).item()
    1.375
    """
    need_tensors("hinge_embedding_loss", input=input, target=target)
    reduction = named_reduction(reduction, size_average, reduce)
    apart = F.where(target != 1, (margin - input).clamp(min=0), 0.0)
    near = F.where(target != -1, input, 0.0)
    return _reduced("hinge_embedding_loss", apart + near, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where target is 1, max(0, cosine - margin) where it is -1.

    Shapes: (N, D) or (D) with target (N) or ().

    Raises:
        ValueError: the reduction is unknown.
        RuntimeError: the shapes do not fit.

    >>> x = tf.tensor([[1.0, 0.0]])
    >>> round(F.cosine_embedding_loss(x, x, tf.tensor([-1.0])).item(), 4)
    1.0
    """
    need_tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    reduction = named_reduction(reduction, size_average, reduce)
    a, b, t = tuple(input1.shape), tuple(input2.shape), tuple(target.shape)
    if len(t) not in (0, 1) or not len(a) == len(b) == len(t) + 1:
        raise RuntimeError(
            f"cosine_embedding_loss: input1 {a}, input2 {b} and target {t} do not fit, "
            "expected (N, D), (N, D) and (N), or (D), (D) and ()"
        )
    tiny = 1e-12  # under the root, as PyTorch has it
    squares = ((input1 * input1).sum(-1) + tiny) * ((input2 * input2).sum(-1) + tiny)
    cosine = (input1 * input2).sum(-1) / squares.sqrt()
    near = F.where(target == 1, 1 - cosine, 0.0)
    apart = F.where(target == -1, (cosine - margin).clamp(min=0), 0.0)
    return _reduced("cosine_embedding_loss", near + apart, reduction)


@composed
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance to the positive - distance to the negative + margin).

    Args:
        anchor: (N, D) or (D).
        positive: near it.
        negative: far from it.
        margin: by how much farther.
        p: the norm of the distance.
        eps: added to each difference.
        swap: take the negative's distance to the positive where that is less.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: the reduction is unknown, or the margin is not positive.

    >>> a, b = tf.tensor([[0.0, 0.0]]), tf.tensor([[3.0, 4.0]])
    >>> F.triplet_margin_loss(a, b, b).item()
    1.0
    """
    need_tensors("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    reduction = named_reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"triplet_margin_loss: margin is {margin}, expected one above zero")

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    far = distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduced(
        "triplet_margin_loss", (margin + distance(anchor, positive) - far).clamp(min=0), reduction
    )


@composed
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), with targets 1 and -1.

    Raises:
        ValueError: the reduction is unknown.

    >>> F.soft_margin_loss(tf.tensor([0.0]), tf.tensor([1.0])).exp().item()
    2.0
    """
    need_tensors("soft_margin_loss", input=input, target=target)
    reduction = named_reduction(reduction, size_average, reduce)
    return _reduced("soft_margin_loss", -F.logsigmoid(target * input), reduction)
