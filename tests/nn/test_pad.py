"""Padding layers, against PyTorch."""

import pytest
from nn import against, examples

import tinyfin as tf

KINDS = ["ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("amounts", [1, (2, 1, 0, 1, 1, 2), (-1, 2, 1, -1, 0, 0)])
@pytest.mark.parametrize("batched", [True, False])
def test_padding(n, kind, amounts, batched):
    amounts = amounts if isinstance(amounts, int) else amounts[: 2 * n]
    x = against.normal(*((2, 3, 4, 5, 4)[0 if batched else 1 : n + 2]))
    against.module(lambda nn: getattr(nn, f"{kind}{n}d")(amounts), x)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_constant(n):
    x = against.normal(*(2, 3, 4, 5, 4)[: n + 2])
    against.module(lambda nn: getattr(nn, f"ConstantPad{n}d")(2, 1.5), x)


def test_wrong_number_of_amounts():
    with pytest.raises(RuntimeError, match="expected an int or 4"):
        tf.nn.ZeroPad2d((1, 2, 3))


def test_examples():
    examples.run("tinyfin.nn.pad")
