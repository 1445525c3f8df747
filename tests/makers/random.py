"""Samples of random rows: a seed, a draw number, more elements than a step or a pair."""

import numpy as np
from samples import ALL, DTYPES, FLOATS, Sample, maker

SIZES = [(7,), (2, 3), (), (0,), (1031,)]
BIG = (1 << 40) + 17
DTYPES["randint_"] = DTYPES["bernoulli_"] = ALL
DTYPES["random_bits_"] = ("int32", "int64")
DTYPES["dropout_apply"] = FLOATS


def fills(*numbers):
    """A fill of every size."""
    for k, shape in enumerate(SIZES):
        yield Sample(np.zeros(shape), *numbers, BIG + k, 3 + k).but(grad=False, torch=False)
    yield Sample(np.zeros(9), *numbers, -5, BIG).but(grad=False, torch=False)


@maker("uniform_")
def uniform_(rng):
    yield from fills(0.0, 1.0)
    yield from fills(-2.0, 6.0)


@maker("normal_")
def normal_(rng):
    yield from fills(0.0, 1.0)
    yield from fills(3.0, 0.5)


@maker("exponential_")
def exponential_(rng):
    yield from fills(1.0)
    yield from fills(0.25)


@maker("randint_")
def randint_(rng):
    yield from fills(0, 2)
    yield from fills(0, 100)
    yield from (s.but(only="f") for s in fills(-(1 << 62), 1 << 62))


@maker("bernoulli_")
def bernoulli_(rng):
    for p in 0.3, 0.0, 1.0:
        yield from fills(p)


@maker("random_bits_")
def random_bits_(rng):
    yield from fills()
    yield Sample(np.zeros(9), 1, 2, 5).but(grad=False, torch=False)


@maker("dropout_apply")
def dropout_apply(rng):
    for p in 0.3, 0.0, 1.0, 0.5:
        yield Sample(rng.standard_normal((3, 5)), p, BIG, 2).but(torch=False)
    yield Sample(rng.standard_normal(1031), 0.4, 1, 7).but(grad=False, torch=False)


@maker("dropout")
def dropout(rng):
    yield Sample(rng.standard_normal((3, 4)), 0.5, False)
    yield Sample(rng.standard_normal((3, 4)), 0.0)
    yield Sample(rng.standard_normal((3, 4)), 1.0).but(grad=False)
