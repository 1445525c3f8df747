"""Samples of matrix products."""

import numpy as np
from samples import Sample, maker


def normal(rng, *shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


PAIRS = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 2, 3), (2, 3, 2)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((2, 3), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 2)),
    ((1, 1), (1, 1)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((2, 0, 3), (3, 2)),
    ((0,), (0,)),
    ((2, 2, 3), (3, 2)),
]
ODD = [
    ((7, 33), (33, 5)),
    ((17, 65), (65, 70)),
    ((1, 130), (130, 1)),
    ((129, 3), (3, 67)),
    ((5, 7, 9), (5, 9, 3)),
]
"""Sizes that are no multiples of any tile."""


@maker("matmul")
def matmul(rng):
    for a, b in PAIRS:
        yield Sample(normal(rng, *a), normal(rng, *b))
    for a, b in ODD:
        yield Sample(normal(rng, *a), normal(rng, *b)).but(grad=False, only="fh")


@maker("int_mm")
def int_mm(rng):
    """Every pair of dtypes, the ends of their ranges among the numbers."""
    for i, (a, b) in enumerate(PAIRS + ODD):
        kinds = [("int8", "uint8")[i >> bit & 1] for bit in (0, 1)]
        yield Sample(*[eight_bits(rng, kind, *s) for kind, s in zip(kinds, (a, b))]).but(
            torch=kinds == ["int8", "int8"] and len(a) == len(b) == 2
        )


def eight_bits(rng, dtype, *shape):
    """Integers of a dtype of 8 bits, a third of them the least or the greatest."""
    ends = np.iinfo(dtype)
    inner = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    outer = rng.choice(np.array([ends.min, ends.max], dtype), shape)
    return np.where(rng.random(shape) < 1 / 3, outer, inner)


SIMPLE = {
    "mm": PAIRS[:1] + PAIRS[10:12] + ODD[:2],
    "bmm": [((2, 2, 3), (2, 3, 2)), ((0, 2, 3), (0, 3, 2)), ODD[4]],
    "mv": [((2, 3), (3,)), ((0, 3), (3,)), ((35, 70), (70,))],
    "dot": [((3,), (3,)), ((0,), (0,)), ((300,), (300,))],
    "inner": [((3,), (3,)), ((2, 3), (4, 3)), ((2, 2, 3), (3,)), ((), (2,)), ((), ())],
    "outer": [((2,), (3,)), ((0,), (2,))],
}


@maker(*SIMPLE)
def simple(rng, name):
    for a, b in SIMPLE[name]:
        yield Sample(normal(rng, *a), normal(rng, *b)).but(grad=max(a + b + (0,)) < 9)


BASED = {
    "addmm": (((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4)), ((), (2, 3), (3, 2))),
    "baddbmm": (((2, 2, 2), (2, 2, 3), (2, 3, 2)), ((2,), (2, 2, 3), (2, 3, 2))),
    "addmv": (((2,), (2, 3), (3,)), ((), (2, 3), (3,))),
}


@maker(*BASED)
def based(rng, name):
    for shapes in BASED[name]:
        yield Sample(*[normal(rng, *s) for s in shapes])
        yield Sample(*[normal(rng, *s) for s in shapes], beta=2, alpha=-1)
    base, *rest = BASED[name][0]
    yield Sample(np.full(base, np.nan), *[normal(rng, *s) for s in rest], beta=0).but(
        grad=False, only="f"
    )


@maker("matmul_onto")
def onto(rng):
    """Small products and such as are packed, of one column, and of nothing."""
    for m, k, n in ((2, 3, 4), (3, 2, 1), (1, 5, 3), (2, 0, 3), (0, 2, 2), (17, 65, 35)):
        given = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
        yield Sample(*given).but(grad=m < 9)
        yield Sample(*given, beta=-0.5, alpha=2.0).but(grad=m < 9)


@maker("linear", "linear_relu")
def linear(rng):
    for x, w in (
        ((2, 3), (4, 3)),
        ((3,), (4, 3)),
        ((2, 2, 3), (1, 3)),
        ((0, 3), (4, 3)),
        ((2, 0), (3, 0)),
    ):
        yield Sample(normal(rng, *x), normal(rng, *w))
        yield Sample(normal(rng, *x), normal(rng, *w), normal(rng, w[0]))
    yield Sample(normal(rng, 17, 65), normal(rng, 35, 65), normal(rng, 35)).but(grad=False)
