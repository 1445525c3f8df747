"""Attributes of operations: what users may pass for each kind, and what is refused."""

import inspect

import numpy as np
import pytest

import tinyfin as tf

X = tf.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "dim", [1, -2, np.int64(1), tf.tensor(1), (1,), [1], tf.Size((1,)), [np.int8(1)]]
)
def test_dims(dim):
    assert X.sum(dim).tolist() == X.numpy().sum(1).tolist()
    assert X.sum(dim=dim, keepdim=True).shape == (2, 1, 4)


def test_all_dims():
    assert (
        X.sum().item() == X.sum(None).item() == X.sum((0, 1, 2)).item() == X.sum(()).item() == 276
    )
    assert tf.tensor(3.0).sum(0).item() == tf.tensor(3.0).sum((-1,)).item() == 3


@pytest.mark.parametrize("keepdim", [True, 1, np.bool_(True)])
def test_flags(keepdim):
    assert X.sum(1, keepdim).shape == (2, 1, 4)


@pytest.mark.parametrize("shape", [(6, 4), [6, 4], tf.Size((6, 4)), (np.int32(6), -1)])
def test_shapes(shape):
    assert (
        X.reshape(shape).shape == X.reshape(*shape).shape == X.reshape(shape=shape).shape == (6, 4)
    )


def test_numbers():
    f = tf.nn.functional.leaky_relu
    for slope in (2, 2.0, np.float32(2), np.int64(2), True + 1):
        assert f(-tf.ones(1), slope).item() == -2


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: X.sum(1.0), TypeError, "dim is 1.0, expected an integer"),
        (lambda: X.sum("1"), TypeError, "dim is '1'"),
        (lambda: X.sum((1, 1)), RuntimeError, "twice"),
        (lambda: X.sum((0, 1, 2, 0)), RuntimeError, "3 dimensions"),
        (lambda: X.sum(3), IndexError, "expected -3 to 2"),
        (lambda: X.sum(1 << 70), OverflowError, "does not fit 64 bits"),
        (lambda: X.sum(1, 2), TypeError, "keepdim is 2, expected True or False"),
        (lambda: X.reshape(2.5), TypeError, "shape is 2.5|size is 2.5"),
        (lambda: X.reshape("a"), TypeError, "'a'"),
        (lambda: X.reshape(None), TypeError, "None"),
        (lambda: X.transpose(0), TypeError, "missing argument 'dim1'"),
        (lambda: X.permute(0, 1), RuntimeError, "permute"),
        (lambda: X.cumsum(), TypeError, "missing argument 'dim'"),
        (lambda: tf.nn.functional.leaky_relu(X, "a"), TypeError, "'a', expected a number"),
        (lambda: tf.nn.functional.gelu(X, approximate="no"), (ValueError, RuntimeError), "'no'"),
        (lambda: X.topk(1.5), TypeError, "k is 1.5"),
        (lambda: X.topk(None), TypeError, "k is None"),
        (lambda: tf.nn.functional.leaky_relu(X, 10**400), OverflowError, ""),
    ],
)
def test_what_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_numbers_of_numpy_that_overflow():
    with pytest.raises(OverflowError, match="does not fit 64 bits"):
        X.reshape(np.uint64((1 << 64) - 1))


def test_operations_have_signatures_and_texts():
    s = inspect.signature(tf.sum)
    assert list(s.parameters) == ["input", "dim", "keepdim", "dtype"]
    assert s.parameters["keepdim"].default is False and tf.sum.__name__ == "sum" and tf.sum.__doc__
    assert repr(tf.sum) == "<tinyfin operation sum>"
    x = tf.ones(2)
    assert (
        x.sum.__name__ == "sum"
        and "operation sum of" in repr(x.sum)
        and x.sum.__doc__ == tf.sum.__doc__
    )
    f = x.add
    assert f(1).tolist() == [2.0, 2.0] and tf.Tensor.add(x, 1).tolist() == [2.0, 2.0]


def test_operations_can_be_pickled_and_mapped():
    import pickle

    assert pickle.loads(pickle.dumps(tf.exp)) is tf.exp
    assert [t.item() for t in map(tf.neg, tf.arange(3))] == [0, -1, -2]
    assert list(map(tf.Tensor.item, tf.arange(3))) == [0, 1, 2]
