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


@maker("linear")
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
