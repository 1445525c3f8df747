"""Padding as a function, against PyTorch."""

import pytest
from nn import against, examples

import tinyfin as tf

F = tf.nn.functional
normal = against.normal


@pytest.mark.parametrize(
    "amounts",
    [
        (1, 2),
        (0, 3),
        (-1, 2),
        (1, -2),
        (-1, -1),
        (1, 2, 3, 0),
        (0, 0, 0, 0, 1, 2),
        (2, -1, -1, 2, 1, 0),
        (),
    ],
)
@pytest.mark.parametrize("value", [None, 0.0, 2.5])
def test_constant(amounts, value):
    against.function("pad", normal(3, 4, 5), amounts, "constant", value)


def test_constant_of_other_types():
    against.function("pad", against.integers(9, 3, 4), (1, 1), "constant", 7)
    against.function("pad", normal(3) > 0, (1, 1))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    "shape, amounts",
    [
        ((2, 5), (1, 2)),
        ((2, 3, 5), (4, 0)),
        ((2, 3, 5), (-1, 2)),
        ((2, 4, 5), (1, 2, 3, 0)),
        ((2, 3, 4, 5), (2, 1, 0, 3)),
        ((2, 3, 4, 5), (1, 1, 2, 2, 1, 0)),
        ((2, 2, 3, 4, 5), (3, 2, 1, 0, 2, 2)),
    ],
)
def test_modes(mode, shape, amounts):
    against.function("pad", normal(*shape), amounts, mode)


def test_replicate_far():
    against.function("pad", normal(2, 3), (7, 9), "replicate")


@pytest.mark.parametrize(
    "amounts, mode, value, error",
    [
        ((1,), "constant", None, RuntimeError),
        ((1,) * 6, "constant", None, RuntimeError),
        ((4, 0), "reflect", None, RuntimeError),
        ((5, 0), "circular", None, RuntimeError),
        ((1, 1), "reflect", 2.0, RuntimeError),
        ((1, 1), "mirror", None, NotImplementedError),
        ((1, 1, 1, 1), "reflect", None, NotImplementedError),
        ((-3, -3), "constant", None, RuntimeError),
    ],
)
def test_errors(amounts, mode, value, error):
    x = tf.ones(2, 4)
    with pytest.raises(error):
        F.pad(x, amounts, mode, value)
    with pytest.raises(error):
        against.torch.nn.functional.pad(against.torch.ones(2, 4), amounts, mode, value)


def test_examples():
    examples.run("tinyfin.nn.functional.pad")
