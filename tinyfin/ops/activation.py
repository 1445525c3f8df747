"""Rows of activations and their gradient rows."""

from tinyfin.ops.row import F, attr, binary, composite, unary

SQRT_HALF = 0.7071067811865476
INV_SQRT_2PI = 0.3989422804014327
THIRD = 1 / 3
INNER = {"dtypes": "fh", "scalars": False, "inplace": False, "function": False, "method": False}
"""Fields of rows that only other rows call."""


def slope(name, default):
    """A double attribute that stands in the expression."""
    return attr(name, "float", default)


unary(
    "relu",
    "select(x < T(0), T(0), x)",
    result="same",
    d=None,
    dtypes="ifh",
    vjp=lambda g, y: F.relu_grad(g, y),
    jvp=lambda y, x_t: F.relu_grad(x_t, y),
    doc="max(x, 0); NaN stays NaN.",
)
binary(
    "relu_grad",
    "select(b <= T(0), T(0), a)",
    d=None,
    **INNER,
    vjp=(lambda g, b: F.relu_grad(g, b), None),
    jvp=lambda b, a_t: None if a_t is None else F.relu_grad(a_t, b),
    doc="a where the activation b is positive or NaN.",
)
unary(
    "sigmoid",
    "sigmoid(x)",
    d=None,
    dtypes="fh",
    vjp=lambda g, y: F.sigmoid_grad(g, y),
    jvp=lambda y, x_t: F.sigmoid_grad(x_t, y),
    doc="1 / (1 + exp(-x)).",
)
binary(
    "sigmoid_grad",
    "a * ((T(1) - b) * b)",
    **INNER,
    d=(lambda b: (1 - b) * b, lambda a, b: a * (1 - 2 * b)),
    doc="a (1 - b) b for the sigmoid b.",
)
# what the gates of recurrent networks compute
binary(
    "sigmoid_tanh",
    "sigmoid(a) * tanh(b)",
    **INNER,
    d=(
        lambda a, b: F.sigmoid_grad(F.tanh(b), F.sigmoid(a)),
        lambda a, b: F.sigmoid(a) * (1 - F.tanh(b) * F.tanh(b)),
    ),
    doc="sigmoid(a) tanh(b).",
)
binary(
    "sigmoid_gated",
    "sigmoid(a) * b + c",
    args="a b c",
    **INNER,
    d=(lambda a, b: F.sigmoid_grad(b, F.sigmoid(a)), lambda a: F.sigmoid(a), 1),
    doc="sigmoid(a) b + c.",
)
unary(
    "leaky_relu",
    "select(x > T(0), x, x * negative_slope)",
    result="same",
    dtypes="fh",
    method=False,
    attrs=(slope("negative_slope", 0.01),),
    d=None,
    vjp=lambda g, x, negative_slope: F.leaky_relu_grad(g, x, negative_slope),
    jvp=lambda x, x_t, negative_slope: F.leaky_relu_grad(x_t, x, negative_slope),
    doc="x where positive, else x times a small slope.",
)
binary(
    "leaky_relu_grad",
    "select(b > T(0), a, a * negative_slope)",
    attrs=(slope("negative_slope", 0.01),),
    d=None,
    **INNER,
    vjp=(lambda g, b, negative_slope: F.leaky_relu_grad(g, b, negative_slope), None),
    jvp=lambda b, a_t, negative_slope: (
        None if a_t is None else F.leaky_relu_grad(a_t, b, negative_slope)
    ),
    doc="a where b is positive, else a times a small slope.",
)
unary(
    "elu",
    "select(x > T(0), x * scale, expm1(x * input_scale) * (alpha * scale))",
    result="same",
    dtypes="fh",
    method=False,
    attrs=(slope("alpha", 1.0), slope("scale", 1.0), slope("input_scale", 1.0)),
    d=None,
    vjp=lambda g, x, alpha, scale, input_scale: F.elu_grad(g, x, alpha, scale, input_scale),
    jvp=lambda x, x_t, alpha, scale, input_scale: F.elu_grad(x_t, x, alpha, scale, input_scale),
    doc="x where positive, else alpha (exp(x) - 1).",
)
binary(
    "elu_grad",
    "select(b <= T(0), a * (exp(b * input_scale) * ((alpha * scale) * input_scale)), a * scale)",
    attrs=(slope("alpha", 1.0), slope("scale", 1.0), slope("input_scale", 1.0)),
    **INNER,
    d=(
        lambda b, alpha, scale, input_scale: F.elu_grad(
            F.full_of((), 1.0, b), b, alpha, scale, input_scale
        ),
        lambda a, b, alpha, scale, input_scale: F.where(
            b < 0, F.elu_grad(a * input_scale, b, alpha, scale, input_scale), 0.0
        ),
    ),
    doc="Derivative of elu at b, times a.",
)
unary(
    "gelu_erf",
    "x * normal_cdf(x)",
    result="same",
    dtypes="fh",
    function=False,
    method=False,
    d=None,
    vjp=lambda g, x: F.gelu_erf_grad(g, x),
    jvp=lambda x, x_t: F.gelu_erf_grad(x_t, x),
    doc="x times the normal distribution function.",
)
binary(
    "gelu_erf_grad",
    "a * (normal_cdf(b) + b * (exp(T(-0.5) * b * b) * T(0.3989422804014327)))",
    **INNER,
    d=(
        lambda a, b: F.gelu_erf_grad(F.full_of((), 1.0, b), b),
        lambda a, b: a * (F.exp(-0.5 * (b * b)) * INV_SQRT_2PI * (2 - b * b)),
    ),
    doc="Derivative of gelu_erf at b, times a.",
)


def gelu_tanh(x):
    """The tanh approximation of gelu (Hendrycks and Gimpel, 2016)."""
    return 0.5 * x * (1 + F.tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))))


unary(
    "gelu_tanh",
    "T(0.5) * x * (T(1) + tanh(T(0.7978845608028654) * (x + T(0.044715) * (x * x * x))))",
    result="same",
    dtypes="fh",
    function=False,
    method=False,
    d=None,
    vjp=lambda g, x: F.gelu_tanh_grad(g, x),
    jvp=lambda x, x_t: F.gelu_tanh_grad(x_t, x),
    doc="gelu by tanh.",
)


def gelu_tanh_slope(x):
    """Derivative of the tanh form."""
    t = F.tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x)))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (0.7978845608028654 * (1 + 0.134145 * (x * x)))


composite(
    "gelu_tanh_grad",
    "g x",
    lambda g, x: g * gelu_tanh_slope(x),
    function=False,
    method=False,
    dtypes="fh",
    doc="Derivative of gelu_tanh times g.",
)
composite(
    "gelu",
    "x",
    lambda x, approximate: F.gelu_tanh(x) if approximate == "tanh" else F.gelu_erf(x),
    attrs=(attr("approximate", "choice", "none", ("none", "tanh")),),
    method=False,
    dtypes="fh",
    doc="x times the normal distribution function, or its tanh form.",
)
unary(
    "silu",
    "x * sigmoid(x)",
    result="same",
    dtypes="fh",
    method=False,
    d=None,
    vjp=lambda g, x: F.silu_grad(g, x),
    jvp=lambda x, x_t: F.silu_grad(x_t, x),
    doc="x times sigmoid(x).",
)
binary(
    "silu_grad",
    "a * (sigmoid(b) * (T(1) + b * (T(1) - sigmoid(b))))",
    **INNER,
    d=(lambda b: F.silu_slope(b), lambda a, b: a * F.silu_bend(b)),
    doc="Derivative of silu at b, times a.",
)
unary(
    "softplus",
    "select(x * beta > threshold, x, softplus(x * beta) / beta)",
    result="same",
    attrs=(slope("beta", 1.0), slope("threshold", 20.0)),
    method=False,
    dtypes="fh",
    d=None,
    vjp=lambda g, x, beta, threshold: F.softplus_grad(g, x, beta, threshold),
    jvp=lambda x, x_t, beta, threshold: F.softplus_grad(x_t, x, beta, threshold),
    doc="log(1 + exp(beta x)) / beta; x itself where beta x exceeds the threshold.",
)
binary(
    "softplus_grad",
    "select(b * beta > threshold, a, a * sigmoid(b * beta))",
    attrs=(slope("beta", 1.0), slope("threshold", 20.0)),
    **INNER,
    d=(
        lambda b, beta, threshold: F.softplus_grad(F.full_of((), 1.0, b), b, beta, threshold),
        lambda a, b, beta, threshold: F.where(
            b * beta > threshold, 0.0, F.sigmoid_grad(a * beta, F.sigmoid(b * beta))
        ),
    ),
    doc="Derivative of softplus at b, times a.",
)
unary(
    "softplus_one",
    "softplus(x)",
    result="same",
    dtypes="fh",
    d=lambda x: F.sigmoid(x),
    function=False,
    method=False,
    doc="log(1 + exp(x)).",
)
unary(
    "hardtanh",
    "min(max(x, T(min_val)), T(max_val))",
    result="same",
    dtypes="fh",
    method=False,
    attrs=(slope("min_val", -1.0), slope("max_val", 1.0)),
    d=None,
    vjp=lambda g, x, min_val, max_val: F.hardtanh_grad(g, x, min_val, max_val),
    jvp=lambda x, x_t, min_val, max_val: F.hardtanh_grad(x_t, x, min_val, max_val),
    doc="x limited to a range; no gradient at or beyond the bounds.",
)
binary(
    "hardtanh_grad",
    "select(b <= min_val, T(0), select(b >= max_val, T(0), a))",
    attrs=(slope("min_val", -1.0), slope("max_val", 1.0)),
    d=None,
    **INNER,
    vjp=(lambda g, b, min_val, max_val: F.hardtanh_grad(g, b, min_val, max_val), None),
    jvp=lambda b, a_t, min_val, max_val: (
        None if a_t is None else F.hardtanh_grad(a_t, b, min_val, max_val)
    ),
    doc="a where b lies between the bounds or is NaN.",
)
composite(
    "relu6",
    "x",
    lambda x: F.hardtanh(x, 0.0, 6.0),
    method=False,
    dtypes="fh",
    doc="x limited to 0 to 6.",
)
unary(
    "hardsigmoid",
    "min(max(x + T(3), T(0)), T(6)) * T(0.16666666666666666)",
    result="same",
    dtypes="fh",
    method=False,
    d=None,
    vjp=lambda g, x: F.hardsigmoid_grad(g, x),
    jvp=lambda x, x_t: F.hardsigmoid_grad(x_t, x),
    doc="The line x / 6 + 1/2 limited to 0 to 1.",
)
binary(
    "hardsigmoid_grad",
    "select(b > T(-3), select(b < T(3), a * T(0.16666666666666666), T(0)), T(0))",
    d=None,
    **INNER,
    vjp=(lambda g, b: F.hardsigmoid_grad(g, b), None),
    jvp=lambda b, a_t: None if a_t is None else F.hardsigmoid_grad(a_t, b),
    doc="a / 6 where b lies between -3 and 3.",
)
unary(
    "hardswish",
    "x * (min(max(x + T(3), T(0)), T(6)) * T(0.16666666666666666))",
    result="same",
    dtypes="fh",
    method=False,
    d=None,
    vjp=lambda g, x: F.hardswish_grad(g, x),
    jvp=lambda x, x_t: F.hardswish_grad(x_t, x),
    doc="x times hardsigmoid(x).",
)
binary(
    "hardswish_grad",
    "select(b <= T(-3), T(0), select(b < T(3), a * (b * T(0.3333333333333333) + T(0.5)), a))",
    **INNER,
    d=(
        lambda b: F.hardswish_grad(F.full_of((), 1.0, b), b),
        lambda a, b: F.hardtanh_grad(a, b, -3.0, 3.0) * THIRD,
    ),
    doc="Derivative of hardswish at b, times a.",
)
unary(
    "logsigmoid",
    "neg(softplus(neg(x)))",
    result="same",
    method=False,
    dtypes="fh",
    d=lambda x: F.sigmoid(-x),
    doc="log(sigmoid(x)), without overflow.",
)
composite(
    "mish",
    "x",
    lambda x: x * F.tanh(F.softplus_one(x)),
    method=False,
    dtypes="fh",
    doc="x tanh(softplus(x)).",
)


def celu(x, alpha):
    """elu whose derivative is continuous at 0 for every alpha."""
    if alpha == 0:
        raise RuntimeError("celu: alpha is 0, expected another number")
    return F.elu(x, alpha, 1.0, 1.0 / alpha)


composite(
    "celu",
    "x",
    celu,
    attrs=(slope("alpha", 1.0),),
    method=False,
    dtypes="fh",
    doc="x where positive, else alpha (exp(x / alpha) - 1).",
)
composite(
    "selu",
    "x",
    lambda x: F.elu(x, 1.6732632423543772, 1.0507009873554805),
    method=False,
    dtypes="fh",
    doc="Scaled elu that keeps mean 0 and variance 1 (Klambauer et al., 2017).",
)
composite(
    "softsign", "x", lambda x: x / (1 + F.abs(x)), method=False, dtypes="fh", doc="x / (1 + |x|)."
)
