"""Samples of rows that join, pad and repeat."""

import numpy as np
from samples import Sample, maker


def normal(rng, *shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


@maker("cat")
def cat(rng):
    yield Sample([normal(rng, 2, 3), normal(rng, 1, 3)])
    yield Sample([normal(rng, 2, 3), normal(rng, 2, 1), normal(rng, 2, 2)], 1)
    yield Sample([normal(rng, 2, 3), normal(rng, 2, 3)], dim=-2)
    yield Sample([normal(rng, 3)])
    yield Sample([normal(rng, 0, 3), normal(rng, 2, 3)])
    yield Sample([normal(rng, 0), normal(rng, 2, 3)])
    yield Sample([normal(rng, 2) for _ in range(20)])


@maker("stack")
def stack(rng):
    yield Sample([normal(rng, 2, 3), normal(rng, 2, 3)])
    yield Sample([normal(rng, 2, 3), normal(rng, 2, 3), normal(rng, 2, 3)], -1)
    yield Sample([normal(rng), normal(rng)], 0)
    yield Sample([normal(rng, 2, 3)], dim=1)


@maker("hstack", "vstack", "column_stack", "dstack")
def stacks(rng, name):
    yield Sample([normal(rng, 2, 3), normal(rng, 2, 3)])
    yield Sample([normal(rng, 3), normal(rng, 3)])
    if name != "column_stack":
        yield Sample([normal(rng), normal(rng)])


@maker("narrow_embed")
def narrow_embed(rng):
    yield Sample(normal(rng, 3, 2), (3, 5), 1, 2, 2)
    yield Sample(normal(rng, 2, 3, 4), (5, 3, 4), 0, -2, 2)
    yield Sample(normal(rng, 2, 0), (2, 3), 1, 1, 0)
    yield Sample(normal(rng, 3), (3,), 0, 0, 3)


@maker("pad_constant")
def pad_constant(rng):
    for shape, args in (
        ((3, 4), ((1, 2),)),
        ((3, 4), ((0, 1, 2, 0), 1.5)),
        ((3, 4), ((-1, 2),)),
        ((3, 4), ((-1, -1, 1, -2), 9.0)),
        ((), ((),)),
        ((0,), ((1, 1), 2.0)),
    ):
        yield Sample(normal(rng, *shape), *args)


@maker("repeat")
def repeat(rng):
    for shape, repeats in (
        ((3,), (2,)),
        ((3,), (2, 2)),
        ((2, 3), (1, 2)),
        ((2, 3), (0, 2)),
        ((1, 3), (3, 1)),
        ((), (2,)),
        ((), ()),
    ):
        yield Sample(normal(rng, *shape), repeats)


@maker("tile")
def tile(rng):
    for shape, dims in (((3,), (2,)), ((2, 3), (2,)), ((2, 3), (2, 1, 2)), ((), (2, 2))):
        yield Sample(normal(rng, *shape), dims)


@maker("roll")
def roll(rng):
    yield Sample(normal(rng, 5), 2)
    yield Sample(normal(rng, 3, 4), -1, 0)
    yield Sample(normal(rng, 3, 4), (1, -2), (0, 1))
    yield Sample(normal(rng, 3, 4), 5)
    yield Sample(normal(rng, 0, 2), 1, 0)


@maker("repeat_interleave")
def repeat_interleave(rng):
    yield Sample(normal(rng, 3), 2)
    yield Sample(normal(rng, 2, 3), 2, 1)
    yield Sample(normal(rng, 2, 3), np.array([1, 3]), 0)
