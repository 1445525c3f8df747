"""Samples of elementwise rows: shapes that broadcast, numbers, vector tails, special values."""

import numpy as np
from samples import Sample, maker

DOMAINS = {
    "pow": ((0.3, 3.0), (-2.0, 2.0)),
    "bce_error": ((0.1, 0.9), (0.1, 0.9)),
    "kl_error": ((-2.0, 2.0), (0.1, 2.0)),
    "bitwise_left_shift": ((-9, 9), (0, 7)),
    "bitwise_right_shift": ((-99, 99), (0, 7)),
    "relu_grad": ((-2.0, 2.0), (-2.0, 2.0)),
    "hardtanh_grad": ((-2.0, 2.0), (-2.0, 2.0)),
    "leaky_relu_grad": ((-2.0, 2.0), (-2.0, 2.0)),
    "elu_grad": ((-2.0, 2.0), (-2.0, 2.0)),
    "softplus_grad": ((-2.0, 2.0), (-2.0, 2.0)),
    "hardswish_grad": ((-2.0, 2.0), (-5.0, 5.0)),
    "hardsigmoid_grad": ((-2.0, 2.0), (-5.0, 5.0)),
}
"""Range of each argument where the row's `domain` does not say it."""
NONZERO = {"floor_divide", "trunc_divide", "remainder", "fmod"}
"""Rows whose second argument must not be zero for integers."""
ATTRS = {
    "leaky_relu": [{"negative_slope": 0.3}, {"negative_slope": -0.5}],
    "elu": [{"alpha": 0.7}, {"alpha": 1.3, "scale": 1.1, "input_scale": 0.8}],
    "leaky_relu_grad": [{"negative_slope": 0.3}, {"negative_slope": -0.5}],
    "elu_grad": [{"alpha": 0.7, "scale": 1.2, "input_scale": 0.9}],
    "softplus_grad": [{"beta": 2.0}, {"beta": 0.5, "threshold": 0.4}],
    "hardtanh_grad": [{"min_val": -0.5, "max_val": 1.5}],
    "smooth_error": [{"beta": 0.5}],
    "huber_error": [{"delta": 0.7}],
}
"""Attribute values to be tested besides the defaults."""
WHOLE = {
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_not",
    "bitwise_left_shift",
    "bitwise_right_shift",
}
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.0, 3.0, -7.0, 1e-4, 1e4, -65504.0, np.inf, -np.inf, np.nan]
)
TINY = np.array([1e-40, -3e-42, 1e-45, 2.0**-126, 3e38, -3e38])
"""Subnormal and very large float32 numbers, for rows that only do arithmetic."""
ARITHMETIC = {
    "add",
    "sub",
    "mul",
    "neg",
    "abs",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "where",
    "relu",
    "copysign",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "signbit",
    "clamp_min",
    "clamp_max",
    "clamp_between",
    "between",
    "positive",
    "logical_not",
    "isfinite",
    "isinf",
    "isnan",
    "sign",
    "trunc",
    "floor",
    "ceil",
}
EDGES = {
    "bce_error",
    "bce_logits_weighted_error",
    "smooth_error",
    "huber_error",
    "kl_error",
    "kl_log_error",
    "gelu_erf",
    "gelu_erf_grad",
    "gelu_tanh",
    "silu",
    "silu_grad",
    "sigmoid_grad",
    "elu",
    "squared_error",
    "absolute_error",
    "relu_grad",
    "bce_logits_error",
    "share_max",
    "root_or_flat",
    "hardtanh_grad",
    "hardsigmoid_grad",
    "hardswish_grad",
    "leaky_relu_grad",
    "elu_grad",
    "softplus_grad",
    *NONZERO,
}
"""Rows whose special values are the business of tests of their own."""
SHAPES = {
    1: [((3, 5),), ((),), ((0, 3),), ((2, 1, 3),)],
    2: [
        ((3, 5), (3, 5)),
        ((3, 1), (4,)),
        ((2, 3), ()),
        ((), ()),
        ((0, 3), (1, 3)),
        ((1, 2, 1), (3, 1, 2)),
    ],
    3: [((2, 3), (2, 3), (2, 3)), ((3, 1), (4,), (1,)), ((), (2,), ()), ((0,), (0,), (1,))],
}


def numbers(rng, domain, shape, name, k):
    """Random numbers of a range; whole ones for rows of integers."""
    low, high = domain
    if name in WHOLE:
        return rng.integers(int(low), int(high) + 1, shape).astype("float64")
    a = rng.uniform(low, high, shape)
    if name in NONZERO and k == 1:
        a = np.where(np.abs(a) < 0.4, 0.7, a)
    return a


def domains(name, row):
    """A range for each argument."""
    n = len(row.arg_names)
    return DOMAINS.get(name) or (tuple(row.domain or (-3.0, 3.0)),) * n


def elementwise(rng, name, row):
    """Samples of any row with an expression."""
    where = domains(name, row)
    n = len(where)

    def make(shapes):
        return [numbers(rng, where[k], s, name, k) for k, s in enumerate(shapes)]

    for shapes in SHAPES[n]:
        yield Sample(*make(shapes))
    for attrs in ATTRS.get(name, ()):
        yield Sample(*make(((2, 7),) * n), **attrs)
    yield Sample(*make(((131,),) * n)).but(grad=False)
    if row.scalars and n == 2:
        yield from with_numbers(name, where, make)
    if name in ("copysign", "signbit"):
        yield special(n, SPECIAL[:-1])
    elif name not in WHOLE | EDGES:
        yield special(n)
    if name in ARITHMETIC:
        yield special(n, TINY).but(only="f")


def with_numbers(name, where, make):
    """A Python number in the place of one tensor."""
    shape = (2, 3)
    number = 2 if name in WHOLE else round(4 * sum(where[1]) + 3) / 8  # exact in every dtype
    yield Sample(make((shape, shape))[0], number)
    yield Sample(make((shape, shape))[0], 2)
    first = 5 if name in WHOLE else round(4 * sum(where[0]) + 3) / 8
    yield Sample(first, make((shape, shape))[1]).but(torch=name in ("pow", "remainder", "where"))


def special(n, values=SPECIAL):
    """All pairs (or triples of a few) of special values."""
    if n == 3:
        values = values[:6]
    grids = np.meshgrid(*[values] * n, indexing="ij")
    return Sample(*[np.ascontiguousarray(g) for g in grids]).but(
        grad=False, only="fh", note="special"
    )


@maker("where")
def where(rng):
    """The condition is a mask; either branch may be a number."""
    for shapes in (
        ((3, 4), (3, 4), (3, 4)),
        ((2, 1), (3,), ()),
        ((), (2, 2), (2, 1)),
        ((0, 2), (2,), (1, 2)),
    ):
        c, a, b = (rng.standard_normal(s) for s in shapes)
        yield Sample(np.asarray(c > 0), np.asarray(a), np.asarray(b))
    c, a = rng.standard_normal((2, 3)) > 0, rng.standard_normal((2, 3))
    yield Sample(c, a, 1.5)
    yield Sample(c, 2, a)
    n = rng.standard_normal(131)
    yield Sample(n > 0, n, -n).but(grad=False)
    a = np.array([np.nan, 1.0, np.inf, -0.0])
    yield Sample(np.array([True, False, False, True]), a, a[::-1].copy()).but(
        grad=False, note="special"
    )


@maker("clamp_min", "clamp_max", "clamp_between", "between")
def bounds(rng, name, row):
    """As other rows of several arguments; numbers too."""
    yield from elementwise(rng, name, row)


@maker("logaddexp", "true_divide")
def pairs(rng):
    """Composites of two arguments."""
    for a, b in SHAPES[2]:
        x, y = rng.uniform(0.4, 3, a), rng.uniform(0.4, 3, b)
        yield Sample(np.asarray(x), np.asarray(y))
    yield Sample(np.asarray(rng.uniform(0.4, 3, (2, 3))), 2.5).but(torch=False)
    yield special(2, SPECIAL[~np.isnan(SPECIAL)])
