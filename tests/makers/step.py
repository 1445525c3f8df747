"""Samples of optimizer steps."""

import numpy as np
from samples import DTYPES, Sample, maker

SHAPES = [(3, 4), (), (0,), (131,)]
for _name in "sgd_step_", "adam_step_", "rmsprop_step_":
    DTYPES[_name] = ("float64", "float32")


def normal(rng, shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


def plain(*args, **kwargs):
    """Steps have no derivative and no name in PyTorch."""
    return Sample(*args, **kwargs).but(grad=False, torch=False)


@maker("sgd_step_")
def sgd_step_(rng):
    for shape in SHAPES:
        yield plain(normal(rng, shape), normal(rng, shape), None, lr=0.1)
    for kwargs in (
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1},
        {"momentum": 0.8, "nesterov": True},
        {"momentum": 0.9, "first": True, "maximize": True},
    ):
        yield plain(normal(rng, 7), normal(rng, 7), normal(rng, 7), lr=0.05, **kwargs)
    yield plain(normal(rng, 7), normal(rng, 7), None, lr=0.05, weight_decay=0.3, maximize=True)


@maker("adam_step_")
def adam_step_(rng):
    def state(shape, bound=False):
        second = np.asarray(rng.uniform(0.1, 1, shape))
        return (
            normal(rng, shape),
            normal(rng, shape),
            normal(rng, shape),
            second,
            second * 1.1 if bound else None,
        )

    for shape in SHAPES:
        yield plain(*state(shape), lr=0.1, step=1)
    for kwargs in (
        {"weight_decay": 0.1},
        {"weight_decay": 0.1, "decoupled": True},
        {"beta1": 0.5, "beta2": 0.7, "eps": 0.1},
        {"maximize": True},
        {"beta1": 0.0},
    ):
        yield plain(*state(7), lr=0.01, step=3, **kwargs)
        yield plain(*state(7, True), lr=0.01, step=3, **kwargs)


@maker("rmsprop_step_")
def rmsprop_step_(rng):
    for shape in SHAPES:
        yield plain(
            normal(rng, shape),
            normal(rng, shape),
            np.asarray(rng.uniform(0.1, 1, shape)),
            None,
            None,
            lr=0.1,
        )
    for kwargs in (
        {"alpha": 0.5},
        {"weight_decay": 0.2, "maximize": True},
        {"momentum": 0.9, "eps": 0.1},
    ):
        square = rng.uniform(2, 3, 7)
        yield plain(normal(rng, 7), normal(rng, 7), square, None, normal(rng, 7), lr=0.1, **kwargs)
        yield plain(
            normal(rng, 7), normal(rng, 7), square, rng.uniform(-1, 1, 7), None, lr=0.1, **kwargs
        )
        yield plain(
            normal(rng, 7),
            normal(rng, 7),
            square,
            rng.uniform(-1, 1, 7),
            normal(rng, 7),
            lr=0.1,
            **kwargs,
        )
