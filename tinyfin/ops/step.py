"""Rows of optimizer steps: they write the parameter and its state in place."""

from tinyfin.ops.row import F, attr, composite

LR, DECAY, EPS = attr("lr", "float"), attr("weight_decay", "float", 0.0), attr("eps", "float", 1e-8)
MAXIMIZE, MOMENTUM = attr("maximize", "bool", False), attr("momentum", "float", 0.0)


def descent(p, g, weight_decay, maximize):
    """The gradient that a step descends."""
    g = -g if maximize else g
    return g + weight_decay * p if weight_decay else g


def lerp(x, y, w):
    """x moved towards y by the part w, exact at both ends."""
    return x + w * (y - x) if w < 0.5 else y - (y - x) * (1 - w)


def sgd_formula(p, g, buf, lr, momentum, dampening, weight_decay, nesterov, maximize, first):
    """PyTorch's SGD for one tensor."""
    d = descent(p, g, weight_decay, maximize)
    if buf is not None:
        buf.copy_(d if first else buf * momentum + (1 - dampening) * d)
        d = d + momentum * buf if nesterov else buf
    p.copy_(p + -lr * d)
    return p


def adam_formula(
    p,
    g,
    exp_avg,
    exp_avg_sq,
    max_exp_avg_sq,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay,
    step,
    decoupled,
    maximize,
):
    """PyTorch's Adam and AdamW for one tensor."""
    d = descent(p, g, 0.0 if decoupled else weight_decay, maximize)
    q = p * (1 - lr * weight_decay) if decoupled and weight_decay else p
    exp_avg.copy_(lerp(exp_avg, d, 1 - beta1))
    exp_avg_sq.copy_(exp_avg_sq * beta2 + (1 - beta2) * d * d)
    v = exp_avg_sq
    if max_exp_avg_sq is not None:
        max_exp_avg_sq.copy_(F.maximum(exp_avg_sq, max_exp_avg_sq))
        v = max_exp_avg_sq
    bottom = F.sqrt(v) / (1 - beta2**step) ** 0.5 + eps
    p.copy_(q + -(lr / (1 - beta1**step)) * exp_avg / bottom)
    return p


def rmsprop_formula(
    p, g, square_avg, grad_avg, buf, lr, alpha, eps, weight_decay, momentum, maximize
):
    """PyTorch's RMSprop for one tensor."""
    d = descent(p, g, weight_decay, maximize)
    square_avg.copy_(square_avg * alpha + (1 - alpha) * d * d)
    v = square_avg
    if grad_avg is not None:
        grad_avg.copy_(lerp(grad_avg, d, 1 - alpha))
        v = v - grad_avg * grad_avg
    bottom = F.sqrt(v) + eps
    if buf is not None:
        buf.copy_(buf * momentum + d / bottom)
        p.copy_(p + -lr * buf)
    else:
        p.copy_(p + -lr * d / bottom)
    return p


STEP = {
    "infer": "step",
    "dtypes": "fh",
    "nout": 0,
    "function": False,
    "method": False,
    "public": {},
}

composite(
    "sgd_step_",
    "p g buf?",
    sgd_formula,
    family="sgd_step",
    mutates=("p", "buf"),
    attrs=(
        LR,
        MOMENTUM,
        attr("dampening", "float", 0.0),
        DECAY,
        attr("nesterov", "bool", False),
        MAXIMIZE,
        attr("first", "bool", False),
    ),
    doc="One step of SGD; `first` fills the momentum buffer with the gradient.",
    **STEP,
)
composite(
    "adam_step_",
    "p g exp_avg exp_avg_sq max_exp_avg_sq?",
    adam_formula,
    family="adam_step",
    mutates=("p", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"),
    attrs=(
        LR,
        attr("beta1", "float", 0.9),
        attr("beta2", "float", 0.999),
        EPS,
        DECAY,
        attr("step", "int"),
        attr("decoupled", "bool", False),
        MAXIMIZE,
    ),
    doc="One step of Adam, or of AdamW where the decay is decoupled; `step` counts from 1.",
    **STEP,
)
composite(
    "rmsprop_step_",
    "p g square_avg grad_avg? buf?",
    rmsprop_formula,
    family="rmsprop_step",
    mutates=("p", "square_avg", "grad_avg", "buf"),
    attrs=(LR, attr("alpha", "float", 0.99), EPS, DECAY, MOMENTUM, MAXIMIZE),
    doc="One step of RMSprop; centred where a mean gradient is kept.",
    **STEP,
)
