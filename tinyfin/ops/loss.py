"""Rows of losses.

Losses of class labels have kernels; the others are an elementwise row and a reduction.
"""

from tinyfin.ops.row import CHECKED, F, attr, binary, composite, row

REDUCTIONS = ("none", "mean", "sum")
REDUCTION = attr("reduction", "choice", "mean", REDUCTIONS)
IGNORE = attr("ignore_index", "int", -100)


def wide(x):
    """x in the type that arithmetic is done in: float32 in place of half precision."""
    return x.float() if x.dtype.itemsize < 4 else x


def reduced(loss, reduction):
    """Losses, their mean or their sum."""
    return loss if reduction == "none" else F.mean(loss) if reduction == "mean" else F.sum(loss)


# ---- losses of class labels


def refuse_learned(name, w):
    """An error, as in PyTorch, where a gradient of class weights would be left out silently."""
    if w is not None and w.requires_grad:
        raise RuntimeError(
            f"{name}: weight requires grad, and class weights have no derivative; "
            "pass weight.detach()"
        )


def class_dim(x):
    """The dimension of classes: the second, or the only one."""
    return 0 if x.ndim == 1 else 1


def picked_weights(w, target, ignore_index):
    """Which labels count, labels with the ignored ones set to 0, and each label's weight."""
    keep = target != ignore_index
    index = F.where(keep, target, 0).to(target.dtype).long()
    if w is None:
        return keep, index, keep
    weight = F.index_select(wide(w), 0, index.reshape((-1,))).reshape(index.shape)
    return keep, index, F.where(keep, weight, 0.0)


def nll_loss_formula(x, target, w, reduction, ignore_index):
    """-x[label] weight[label], its sum, or that over the sum of weights; the sum of weights."""
    a, dim = wide(x), class_dim(x)
    keep, index, weight = picked_weights(w, target, ignore_index)
    if x.ndim == 1 and target.ndim == 1:
        picked = F.gather(a, 0, index)
    else:
        picked = F.squeeze(F.gather(a, dim, F.unsqueeze(index, dim)), dim)
    weight = weight.to(a.dtype)
    loss = F.where(keep, -picked * weight, 0.0)
    total = F.sum(weight)
    if reduction != "none":
        loss = F.sum(loss) / total if reduction == "mean" else F.sum(loss)
    return loss.to(x.dtype), total


def label_gradient(g, target, w, total, reduction, ignore_index):
    """What flows to each label's log-probability, in the computing type."""
    keep, index, weight = picked_weights(w, target, ignore_index)
    g = wide(g)
    g = -(g / total) if reduction == "mean" else -g
    return index, F.where(keep, g * weight, 0.0)


def nll_loss_grad_formula(g, target, w, total, reduction, ignore_index, shape):
    """-g weight[label] at the label, 0 elsewhere; g divided by the sum of weights for the mean."""
    index, value = label_gradient(g, target, w, total, reduction, ignore_index)
    zeros = F.zeros_of(shape, value)
    if len(shape) == 1:
        return F.scatter(zeros, 0, index.reshape((1,)), value.reshape((1,))).to(g.dtype)
    return F.scatter(zeros, 1, F.unsqueeze(index, 1), F.unsqueeze(value, 1)).to(g.dtype)


def cross_entropy_forward_formula(x, target, w, reduction, ignore_index):
    """nll_loss of log_softmax, sum of weights, largest logit, log of the sum of exp(x - it)."""
    a, dim = wide(x), class_dim(x)
    top = F.amax(a, dim, True)
    logs = F.log(F.sum(F.exp(a - top), dim, True))
    loss, total = nll_loss_formula((a - top) - logs, target, w, reduction, ignore_index)
    top, logs = top.detach().reshape(target.shape), logs.detach().reshape(target.shape)
    return loss.to(x.dtype), total, top, logs


def cross_entropy_grad_formula(g, x, target, w, total, shift, log, reduction, ignore_index):
    """nll_loss's gradient, then log_softmax's."""
    dim = class_dim(x)
    first = nll_loss_grad_formula(
        wide(g), target, w, total, reduction, ignore_index, tuple(x.shape)
    )
    return F.log_softmax_grad(first, F.log_softmax(wide(x), dim), dim).to(x.dtype)


def nll_loss(x, target, w, reduction, ignore_index):
    """The loss without the sum of weights."""
    refuse_learned("nll_loss", w)
    return F.nll_loss_forward(x, target, w, reduction, ignore_index)[0]


LABELS = {"target": "target", "w": "weight"}
composite(
    "nll_loss_forward",
    "x target w?",
    nll_loss_formula,
    attrs=(REDUCTION, IGNORE),
    nout=2,
    infer="nll_loss",
    family="nll_loss",
    dtypes="fh",
    amp="high",
    function=False,
    method=False,
    vjp=(
        lambda g, target, w, y1, x_shape, reduction, ignore_index: F.nll_loss_grad(
            g, target, w, y1, reduction, ignore_index, x_shape
        ),
        None,
        None,
    ),
    doc="Negative log-likelihood, with the sum of the weights.",
)
composite(
    "nll_loss_grad",
    "u target w? total",
    nll_loss_grad_formula,
    attrs=(REDUCTION, IGNORE, attr("shape", "shape")),
    infer="nll_loss_grad",
    family="nll_loss_grad",
    dtypes="fh",
    function=False,
    method=False,
    vjp=(
        lambda g, target, w, reduction, ignore_index: F.nll_loss_forward(
            g, target, w, reduction, ignore_index
        )[0],
        None,
        None,
        None,
    ),
    doc="Gradient of the negative log-likelihood.",
)
composite(
    "cross_entropy_forward",
    "x target w?",
    cross_entropy_forward_formula,
    attrs=(REDUCTION, IGNORE),
    nout=4,
    infer="cross_entropy",
    family="cross_entropy",
    dtypes="fh",
    amp="high",
    function=False,
    method=False,
    vjp=(
        lambda g, x, target, w, y1, y2, y3, reduction, ignore_index: F.cross_entropy_grad(
            g, x, target, w, y1, y2, y3, reduction, ignore_index
        ),
        None,
        None,
    ),
    doc="Cross entropy of class labels, with what its gradient needs.",
)
composite(
    "cross_entropy_grad",
    "g x target w? total shift log",
    cross_entropy_grad_formula,
    attrs=(REDUCTION, IGNORE),
    infer="cross_entropy_grad",
    family="cross_entropy_grad",
    dtypes="fh",
    function=False,
    method=False,
    doc="Gradient of cross entropy of class labels.",
)
composite(
    "nll_loss",
    "x target w?",
    nll_loss,
    attrs=(REDUCTION, IGNORE),
    dtypes="fh",
    amp="high",
    method=False,
    doc="Negative log-likelihood of class labels, from log-probabilities.",
)
CHECKS = attr("argument", "choice", "input", CHECKED)
row(
    "check_not_nan",
    "x",
    attrs=(CHECKS,),
    infer="check_values",
    family="check_not_nan",
    dtypes="fh",
    nondiff=True,
    function=False,
    method=False,
    doc="True; an error where an element is NaN.",
)
row(
    "check_unit_interval",
    "x",
    attrs=(CHECKS,),
    infer="check_values",
    family="check_unit_interval",
    dtypes="fh",
    nondiff=True,
    function=False,
    method=False,
    doc="True; an error where an element is outside [0, 1].",
)


def smoothed(x, target, w, reduction, ignore_index, label_smoothing):
    """Labels that keep 1 - s of the weight and spread s over all classes."""
    dim = class_dim(x)
    log = F.log_softmax(x, dim)
    keep, _, weight = picked_weights(w, target, ignore_index)
    spread = -F.sum(log if w is None else log * by_class(w, x), dim)
    spread = F.where(keep.reshape(spread.shape), spread, 0.0)
    if reduction == "mean":
        spread = F.sum(spread) / F.sum(weight.to(spread.dtype))
    elif reduction == "sum":
        spread = F.sum(spread)
    loss = F.nll_loss_forward(log, target, w, reduction, ignore_index)[0]
    return loss * (1 - label_smoothing) + spread * (label_smoothing / x.shape[dim])


def by_class(w, x):
    """A vector of classes in a shape that broadcasts with x."""
    return w if x.ndim == 1 else w.reshape((1, -1) + (1,) * (x.ndim - 2))


def of_probabilities(x, target, w, reduction, label_smoothing):
    """Cross entropy between two distributions over the classes."""
    dim = class_dim(x)
    if x.shape != target.shape:
        raise RuntimeError(
            f"cross_entropy: target is {tuple(target.shape)} of {target.dtype}, input is "
            f"{tuple(x.shape)}: expected int64 class labels, or probabilities of the input's shape"
        )
    if w is not None and tuple(w.shape) != (x.shape[dim],):
        raise RuntimeError(
            f"cross_entropy: weight is {tuple(w.shape)}, expected one number for each of "
            f"{x.shape[dim]} classes"
        )
    F.check_not_nan(target.detach(), "target")
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / x.shape[dim]
    log = F.log_softmax(x, dim)
    loss = -F.sum(log * target if w is None else (log * target) * by_class(w, x), dim)
    if reduction == "mean":
        n = x.shape[0] if x.ndim > 1 else 1
        for size in x.shape[2:]:
            n *= size
        return F.sum(loss) / n
    return reduced(loss, reduction)


def cross_entropy(x, target, w, reduction, ignore_index, label_smoothing):
    """Of class labels; of probabilities where target is floating point."""
    if label_smoothing and not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"cross_entropy: label_smoothing is {label_smoothing}, expected 0 to 1")
    if target.dtype.is_floating_point:
        return of_probabilities(x, target, w, reduction, label_smoothing)
    refuse_learned("cross_entropy", w)
    if label_smoothing:
        return smoothed(x, target, w, reduction, ignore_index, label_smoothing)
    return F.cross_entropy_forward(x, target, w, reduction, ignore_index)[0]


composite(
    "cross_entropy",
    "x target w?",
    cross_entropy,
    attrs=(REDUCTION, IGNORE, attr("label_smoothing", "float", 0.0)),
    dtypes="fh",
    amp="high",
    method=False,
    doc="Cross entropy between logits and class labels or class probabilities.",
)


# ---- elementwise losses


def loss(name, error, attrs=(), doc=""):
    """A reduction of an elementwise row of input and target."""

    def formula(a, b, *values):
        if a.shape != b.shape:
            warn_of_shapes(name, a, b)
        return reduced(error(a, b, *values[:-1]), values[-1])

    composite(
        name,
        "a b",
        formula,
        attrs=(*attrs, REDUCTION),
        dtypes="fh",
        method=False,
        amp="high",
        public={"a": "input", "b": "target"},
        doc=doc,
    )


def warn_of_shapes(name, a, b):
    """PyTorch's warning about a loss that broadcasts."""
    from warnings import warn

    warn(
        f"{name}: input is {tuple(a.shape)}, target is {tuple(b.shape)}: they are broadcast, "
        "which is seldom meant",
        stacklevel=3,
    )


BETA, DELTA = attr("beta", "float", 1.0), attr("delta", "float", 1.0)
HIDDEN = {
    "function": False,
    "method": False,
    "dtypes": "fh",
    "inplace": False,
    "scalars": False,
    "amp": "high",
}

binary(
    "squared_error",
    "(a - b) * (a - b)",
    d=(lambda a, b: 2 * (a - b), lambda a, b: 2 * (b - a)),
    doc="(a - b) squared.",
    **HIDDEN,
)
binary(
    "absolute_error",
    "abs(a - b)",
    d=(lambda a, b: F.sign(a - b), lambda a, b: F.sign(b - a)),
    doc="|a - b|.",
    **HIDDEN,
)
binary(
    "smooth_error",
    "select(abs(a - b) < beta, (a - b) * (a - b) * T(0.5) / beta, abs(a - b) - beta * T(0.5))",
    attrs=(BETA,),
    d=(
        lambda a, b, beta: F.clamp((a - b) / beta, -1.0, 1.0) if beta else F.sign(a - b),
        lambda a, b, beta: F.clamp((b - a) / beta, -1.0, 1.0) if beta else F.sign(b - a),
    ),
    doc="|a - b| - beta / 2, rounded below beta.",
    **HIDDEN,
)
binary(
    "huber_error",
    "select(abs(a - b) <= delta, (a - b) * (a - b) * T(0.5), "
    "delta * (abs(a - b) - delta * T(0.5)))",
    attrs=(DELTA,),
    d=(
        lambda a, b, delta: F.clamp(a - b, -delta, delta),
        lambda a, b, delta: F.clamp(b - a, -delta, delta),
    ),
    doc="Square below delta, line above.",
    **HIDDEN,
)
binary(
    "bce_error",
    "(b - T(1)) * max(log1p(-a), T(-100)) - b * max(log(a), T(-100))",
    d=(
        lambda a, b: (a - b) / F.clamp((1 - a) * a, 1e-12, None),
        lambda a, b: F.clamp(F.log1p(-a), -100.0, None) - F.clamp(F.log(a), -100.0, None),
    ),
    doc="-(b log a + (1 - b) log(1 - a)), logarithms held at -100.",
    **HIDDEN,
)
binary(
    "bce_logits_error",
    "(T(1) - b) * a + softplus(-a)",
    d=(lambda a, b: F.sigmoid(a) - b, lambda a: -a),
    doc="The same of sigmoid(a), without its loss of digits.",
    **HIDDEN,
)
binary(
    "bce_logits_weighted_error",
    "(T(1) - b) * a + ((p - T(1)) * b + T(1)) * softplus(-a)",
    args="a b p",
    d=(
        lambda a, b, p: (1 - b) - ((p - 1) * b + 1) * F.sigmoid(-a),
        lambda a, p: (p - 1) * F.softplus(-a) - a,
        lambda a, b: b * F.softplus(-a),
    ),
    doc="The same with weight p on the positive part.",
    **HIDDEN,
)
binary(
    "kl_error",
    "select(b == T(0), T(0), b * log(b)) - b * a",
    d=(lambda b: -b, lambda a, b: F.log(b) + 1 - a),
    doc="b (log b - a).",
    **HIDDEN,
)
binary(
    "kl_log_error",
    "exp(b) * (b - a)",
    d=(lambda b: -F.exp(b), lambda a, b: F.exp(b) * (b - a + 1)),
    doc="exp(b) (b - a).",
    **HIDDEN,
)

loss("mse_loss", lambda a, b: F.squared_error(a, b), doc="Mean of squared differences.")
loss("l1_loss", lambda a, b: F.absolute_error(a, b), doc="Mean of absolute differences.")


def smooth_l1(a, b, beta):
    """With beta 0 the absolute error."""
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: beta is {beta}, expected 0 or more")
    return F.smooth_error(a, b, beta) if beta else F.absolute_error(a, b)


def huber(a, b, delta):
    """Delta must be positive."""
    if delta <= 0:
        raise RuntimeError(f"huber_loss: delta is {delta}, expected more than 0")
    return F.huber_error(a, b, delta)


loss(
    "smooth_l1_loss",
    smooth_l1,
    attrs=(BETA,),
    doc="Mean of absolute differences, rounded off below beta.",
)
loss("huber_loss", huber, attrs=(DELTA,), doc="Mean of half squares below delta, lines above.")


def binary_cross_entropy(x, target, w, reduction):
    """Of probabilities; logarithms are held at -100."""
    if x.shape != target.shape:
        raise ValueError(
            f"binary_cross_entropy: input is {tuple(x.shape)}, target is {tuple(target.shape)}: "
            "expected the same shape"
        )
    F.check_unit_interval(x.detach(), "input")
    F.check_unit_interval(target.detach(), "target")
    loss = F.bce_error(x, target)
    return reduced(loss if w is None else loss * w, reduction)


def binary_cross_entropy_with_logits(x, target, w, p, reduction):
    """Of sigmoid(x), stable for large x; p weighs the positive part."""
    if x.shape != target.shape:
        raise ValueError(
            f"binary_cross_entropy_with_logits: input is {tuple(x.shape)}, target is "
            f"{tuple(target.shape)}: expected the same shape"
        )
    loss = F.bce_logits_error(x, target) if p is None else F.bce_logits_weighted_error(x, target, p)
    return reduced(loss if w is None else loss * w, reduction)


composite(
    "binary_cross_entropy",
    "x target w?",
    binary_cross_entropy,
    attrs=(REDUCTION,),
    dtypes="fh",
    method=False,
    amp="high",
    doc="Cross entropy between probabilities and targets in [0, 1].",
)
composite(
    "binary_cross_entropy_with_logits",
    "x target w? p?",
    binary_cross_entropy_with_logits,
    attrs=(REDUCTION,),
    dtypes="fh",
    method=False,
    amp="high",
    public={"p": "pos_weight"},
    doc="Cross entropy between sigmoid of input and targets in [0, 1].",
)


def kl_div(x, target, reduction, log_target):
    """target (log target - x); batchmean divides by the first size."""
    if not x.dtype.is_floating_point or not target.dtype.is_floating_point:
        raise RuntimeError(
            f"kl_div: input is {x.dtype}, target is {target.dtype}, expected floating point"
        )
    loss = F.kl_log_error(x, target) if log_target else F.kl_error(x, target)
    if reduction == "batchmean":
        return F.sum(loss) / (x.shape[0] if x.ndim else 1)
    return reduced(loss, reduction)


composite(
    "kl_div",
    "x target",
    kl_div,
    dtypes="fh",
    method=False,
    amp="high",
    attrs=(
        attr("reduction", "choice", "mean", (*REDUCTIONS, "batchmean")),
        attr("log_target", "bool", False),
    ),
    doc="Divergence of target from a distribution given by its log-probabilities.",
)
