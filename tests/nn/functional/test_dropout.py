"""Dropout as a function."""

import pytest
from nn import examples

import tinyfin as tf

F = tf.nn.functional


def test_keeps_the_mean():
    tf.manual_seed(0)
    y = F.dropout(tf.ones(20000), 0.3)
    assert y.mean().item() == pytest.approx(1.0, abs=0.02)
    assert sorted(set(y.tolist())) == pytest.approx([0.0, 1 / 0.7])


def test_gradient_follows_the_mask():
    x = tf.ones(1000, requires_grad=True)
    y = F.dropout(x, 0.5)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_off():
    x = tf.ones(5)
    assert F.dropout(x, 0.5, training=False) is x and F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).tolist() == [0.0] * 5


def test_in_place():
    x = tf.ones(100)
    assert F.dropout(x, 0.5, inplace=True) is x and set(x.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize(
    "function, shape, kept",
    [
        (F.dropout1d, (30, 4), 1),
        (F.dropout1d, (6, 7, 3), 2),
        (F.dropout2d, (6, 7, 3), 2),
        (F.dropout2d, (6, 7, 3, 2), 2),
        (F.dropout3d, (40, 2, 3, 2), 1),
        (F.dropout3d, (6, 7, 2, 2, 2), 2),
    ],
)
def test_whole_channels(function, shape, kept):
    tf.manual_seed(1)
    y = function(tf.ones(*shape), 0.5)
    rows = y.reshape(-1, int(y.numel() / max(1, tf.ones(*shape[:kept]).numel()))).tolist()
    assert all(len(set(row)) == 1 for row in rows) and {row[0] for row in rows} == {0.0, 2.0}


@pytest.mark.parametrize(
    "function, shape", [(F.dropout1d, (2,)), (F.dropout2d, (2, 2)), (F.dropout3d, (2, 2, 2))]
)
def test_dimensions(function, shape):
    with pytest.raises(RuntimeError, match="dimensions"):
        function(tf.ones(*shape))


@pytest.mark.parametrize("function", [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d])
def test_probabilities(function):
    for p in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="probability"):
            function(tf.ones(2, 2, 2, 2), p)


def test_examples():
    examples.run("tinyfin.nn.functional.dropout")
