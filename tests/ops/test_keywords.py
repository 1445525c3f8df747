"""How arguments may be named and left out: NumPy's names, None for a default, short forms."""

import pytest

import tinyfin as tf

X = [[1.0, 2.0, 3.0], [6.0, 5.0, 4.0]]


@pytest.mark.parametrize(
    ("numpy_like", "torch_like"),
    [
        (lambda x: x.sum(axis=1), lambda x: x.sum(dim=1)),
        (lambda x: x.sum(axis=(0, 1)), lambda x: x.sum()),
        (lambda x: x.mean(1, keepdims=True), lambda x: x.mean(1, keepdim=True)),
        (lambda x: x.std(axis=0, unbiased=False), lambda x: x.std(dim=0, unbiased=False)),
        (lambda x: x.max(axis=1).values, lambda x: x.max(1).values),
        (lambda x: x.min(axis=0, keepdims=True).indices, lambda x: x.min(0, True).indices),
        (lambda x: tf.cat([x, x], axis=1), lambda x: tf.cat([x, x], 1)),
        (lambda x: tf.stack([x, x], axis=-1), lambda x: tf.stack([x, x], -1)),
        (lambda x: x.argmax(axis=1), lambda x: x.argmax(1)),
        (lambda x: x.softmax(axis=0), lambda x: x.softmax(0)),
        (lambda x: x.sort(axis=0).values, lambda x: x.sort(0).values),
    ],
)
def test_names_of_numpy(numpy_like, torch_like):
    x = tf.tensor(X)
    assert numpy_like(x).tolist() == torch_like(x).tolist()


def test_names_are_taken_once():
    x = tf.tensor(X)
    with pytest.raises(TypeError, match="sum: argument 'axis' is given twice"):
        x.sum(dim=0, axis=0)
    with pytest.raises(TypeError, match="sum: unexpected keyword argument 'axes'"):
        x.sum(axes=0)
    with pytest.raises(TypeError, match="exp: unexpected keyword argument 'axis'"):
        tf.exp(x, axis=0)
    with pytest.raises(TypeError, match="max: dim and axis are both given"):
        x.max(0, axis=0)


@pytest.mark.parametrize(
    ("with_none", "without"),
    [
        (lambda x: x.roll(1, None), lambda x: x.roll(1)),
        (lambda x: x.std(None), lambda x: x.std()),
        (lambda x: x.nan_to_num(None), lambda x: x.nan_to_num()),
        (lambda x: x.sum(None), lambda x: x.sum()),
    ],
)
def test_none_is_the_default(with_none, without):
    x = tf.tensor(X)
    assert with_none(x).tolist() == without(x).tolist()


def test_where_of_a_condition():
    x = tf.tensor(X)
    rows, columns = tf.where(x > 3)
    assert rows.tolist() == [1, 1, 1] and columns.tolist() == [0, 1, 2]
    assert x[tf.where(x > 3)].tolist() == [6.0, 5.0, 4.0]
    with pytest.raises(TypeError, match="where: missing argument 'other'"):
        tf.where(x > 3, x)


@pytest.mark.parametrize("repeats", [(3, 1), (1, 4), (2, 3), (2, 1, 2), (0, 2), (2, 2, 0, 1)])
def test_repeat_of_many_shapes(repeats):
    import numpy as np

    x = np.arange(6.0).reshape(2, 3)
    want = np.tile(x, repeats)
    assert np.array_equal(tf.from_numpy(x).repeat(*repeats).numpy(), want)
    deep = x.reshape(1, 1, 2, 1, 1, 3, 1, 1)
    many = (1, 2, 2, 1, 3, 2, 1, 2)
    assert np.array_equal(tf.from_numpy(deep).repeat(*many).numpy(), np.tile(deep, many))


def test_repeat_costs_no_list():
    """Counts far above what could be joined piece by piece."""
    assert tf.ones(1, dtype=tf.uint8).repeat(1 << 29).shape == (1 << 29,)
