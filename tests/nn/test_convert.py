"""What `Module.to` makes of its arguments."""

import pytest

import tinyfin as tf
from tinyfin.nn import convert


def test_floating_leaves_integers():
    half = convert.floating("float16")
    assert half(tf.ones(1)).dtype == tf.float16
    assert half(tf.ones(1, dtype=tf.int64)).dtype == tf.int64


@pytest.mark.parametrize(
    "args, kwargs",
    [
        ((tf.float64,), {}),
        ((), {"dtype": tf.float64}),
        (("cpu", tf.float64), {}),
        ((tf.zeros(1, dtype=tf.float64),), {}),
        ((), {"tensor": tf.zeros(1, dtype=tf.float64)}),
        ((tf.float64, True), {}),
        (("cpu",), {"dtype": tf.float64, "non_blocking": True}),
    ],
)
def test_all_forms(args, kwargs):
    move = convert.mover(args, kwargs)
    assert move(tf.ones(1)).dtype == tf.float64
    assert move(tf.ones(1, dtype=tf.bool)).dtype == tf.bool


def test_what_changes_nothing_is_the_same_tensor():
    x = tf.ones(1)
    assert convert.mover(("cpu", tf.float32), {})(x) is x


def test_errors():
    with pytest.raises(TypeError, match="expected a floating dtype"):
        convert.mover((tf.int32,), {})
    with pytest.raises(TypeError, match="unexpected argument 'x'"):
        convert.mover((), {"x": 1})
