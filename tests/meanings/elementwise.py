"""Meanings of elementwise rows."""

import math

import numpy as np
from oracle import meaning

ELEMENT = {"otypes": ["float64"]}
erf = np.vectorize(math.erf, **ELEMENT)
erfc = np.vectorize(math.erfc, **ELEMENT)


def exact(name, fn):
    """A meaning that every dtype rounds once."""
    meaning(name, ulps=0.5)(fn)


def bounded(name, ulps, fn):
    """A meaning with a stated error bound; integers become floating point."""
    meaning(name, ulps=ulps)(
        lambda *args, **kw: fn(*[np.asarray(a, "float64") for a in args], **kw)
    )


def same_kind(fn):
    """Keeps integer arrays in their dtype."""
    return lambda *args: np.asarray(fn(*args)).astype(np.result_type(*args))


for name, fn in {
    "add": np.add,
    "mul": np.multiply,
    "sub": np.subtract,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "neg": np.negative,
    "positive": np.positive,
}.items():
    exact(name, fn)


def whole(fn):
    """A rounding: integers and bool stay what they are."""
    return lambda x: x if np.asarray(x).dtype.kind in "iub" else fn(x)


for name, fn in {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_even": np.rint,
}.items():
    exact(name, whole(fn))
exact("abs", lambda x: x if x.dtype.kind == "b" else np.abs(x))
exact(
    "sign",
    lambda x: x if x.dtype.kind == "b" else np.where(np.isnan(np.asarray(x, float)), 0, np.sign(x)),
)
exact("square", lambda x: x * x)
exact("div", lambda a, b: np.asarray(a, "float64") / b)
exact("true_divide", lambda a, b: np.asarray(a, "float64") / b)
exact("isnan", lambda x: np.isnan(np.asarray(x, "float64")))
exact("isinf", lambda x: np.isinf(np.asarray(x, "float64")))
exact("isfinite", lambda x: np.isfinite(np.asarray(x, "float64")))
exact("signbit", lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0)
exact("where", lambda c, a, b: np.where(c, a, b).astype(np.result_type(a, b)))
exact("copysign", lambda a, b: np.copysign(np.asarray(a, "float64"), b))
exact("share_max", lambda a, b: np.where(a < b, 0.0, np.where(a == b, 0.5, 1.0)))
exact("relu", lambda x: np.maximum(x, 0).astype(x.dtype))
exact("relu_grad", lambda a, b: np.where(b <= 0, 0.0, a))


@meaning("clamp_min", ulps=0.5)
def clamp_min(x, a):
    return np.maximum(x, a)


@meaning("clamp_max", ulps=0.5)
def clamp_max(x, a):
    return np.minimum(x, a)


@meaning("clamp_between", ulps=0.5)
def clamp_between(x, a, b):
    return np.minimum(np.maximum(x, a), b)


exact("between", lambda x, a, b: (x >= a) & (x <= b))


@meaning("trunc_divide", ulps=0.5)
def trunc_divide(a, b):
    if np.result_type(a, b).kind == "f":
        return np.trunc(np.divide(a, b))
    q = np.floor_divide(a, b)
    return (q + ((q < 0) & (q * b != a))).astype(np.result_type(a, b))


@meaning("pow", ulps=1.0)
def power(a, b):
    kind = np.result_type(a, b)
    if kind.kind == "f":
        return np.float_power(a, b)
    a, b = np.broadcast_arrays(np.asarray(a, kind), np.asarray(b, kind))
    safe = np.power(a, np.where(b < 0, 0, b).astype(kind))
    odd = np.where(b % 2 == 0, 1, a)
    return np.where(b < 0, np.where(np.abs(a) == 1, odd, 0), safe).astype(kind)


@meaning("bitwise_left_shift", ulps=0.5)
def shift_left(a, b):
    kind = np.result_type(a, b)
    width = kind.itemsize * 8
    good = (b >= 0) & (np.asarray(b) < width)
    return np.where(good, np.left_shift(a, np.where(good, b, 0).astype(kind)), 0).astype(kind)


@meaning("bitwise_right_shift", ulps=0.5)
def shift_right(a, b):
    kind = np.result_type(a, b)
    width = kind.itemsize * 8
    good = (b >= 0) & (np.asarray(b) < width)
    sign = np.where(np.asarray(a) < 0, -1, 0).astype(kind) if kind.kind == "i" else 0
    return np.where(good, np.right_shift(a, np.where(good, b, 0).astype(kind)), sign).astype(kind)


def inverse_erf(y):
    """Newton's steps from a rough start."""
    out = []
    for v in np.ravel(y):
        if not -1 < v < 1:
            out.append(math.copysign(math.inf, v) if abs(v) == 1 else math.nan)
            continue
        w = math.log1p(-v * v)
        u = 2 / (math.pi * 0.147) + w / 2
        x = math.copysign(math.sqrt(math.sqrt(u * u - w / 0.147) - u), v)
        for _ in range(4):
            x -= (math.erf(x) - v) * math.sqrt(math.pi) / 2 * math.exp(x * x)
        out.append(x)
    return np.array(out).reshape(np.shape(y))


def log_gamma(x):
    """Poles and infinities are +inf."""
    return np.array(
        [
            math.inf
            if math.isinf(v) or (v <= 0 and v == int(v))
            else math.nan
            if v != v
            else math.lgamma(v)
            for v in np.ravel(x)
        ]
    ).reshape(np.shape(x))


def psi(x):
    """The logarithmic derivative of gamma: recurrence, then its asymptotic series."""
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == 0:
        return -math.copysign(math.inf, x)
    if x < 0:
        return math.nan if x == int(x) else psi(-x) - 1 / x - math.pi / math.tan(math.pi * x)
    s = 0.0
    while x < 12:
        s, x = s - 1 / x, x + 1
    if x == math.inf:
        return math.inf
    z = 1 / (x * x)
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (1 / 132)))))
    return s + math.log(x) - 0.5 / x - series


def sigmoid(x):
    """Without overflow on either side."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


for name, ulps, fn in (
    ("exp", 1.0, np.exp),
    ("exp2", 0.8, np.exp2),
    ("expm1", 1.5, np.expm1),
    ("log", 0.95, np.log),
    ("log2", 1.1, np.log2),
    ("log10", 1.05, np.log10),
    ("log1p", 1.15, np.log1p),
    ("sqrt", 0.5, np.sqrt),
    ("root_or_flat", 0.5, np.sqrt),
    ("rsqrt", 0.51, lambda x: 1 / np.sqrt(x)),
    ("reciprocal", 0.5, lambda x: 1 / x),
    ("sin", 0.9, np.sin),
    ("cos", 0.9, np.cos),
    ("tan", 1.25, np.tan),
    ("asin", 1.2, np.arcsin),
    ("acos", 1.15, np.arccos),
    ("atan", 0.75, np.arctan),
    ("sinh", 1.05, np.sinh),
    ("cosh", 1.05, np.cosh),
    ("tanh", 1.4, np.tanh),
    ("asinh", 1.4, np.arcsinh),
    ("acosh", 1.4, np.arccosh),
    ("atanh", 1.25, np.arctanh),
    ("erf", 1.3, erf),
    ("erfc", 2.0, erfc),
    ("erfinv", 2.1, inverse_erf),
    ("sigmoid", 2.5, sigmoid),
    ("atan2", 1.0, np.arctan2),
    ("hypot", 1.8, np.hypot),
    ("softplus_one", 1.8, lambda x: np.logaddexp(x, 0)),
):
    bounded(name, ulps, fn)


@meaning("lgamma", loose=8)
def lgamma(x):
    return log_gamma(np.asarray(x, "float64"))


@meaning("digamma", loose=8)
def digamma(x):
    x = np.asarray(x, "float64")
    return np.array([psi(v) for v in x.ravel()]).reshape(x.shape)


@meaning("logaddexp", loose=4)
def logaddexp(a, b):
    return np.logaddexp(np.asarray(a, "float64"), b)
