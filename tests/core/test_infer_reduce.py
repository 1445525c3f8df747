"""Shapes and dtypes of reductions, scans and sorts, against NumPy; and their errors."""

import itertools

import numpy as np
import pytest

import tinyfin as tf

SHAPES = [(), (1,), (5,), (2, 3), (2, 3, 4), (1, 1, 2)]


def dims_of(shape):
    """Every way to name axes of a shape."""
    n = len(shape)
    yield None
    for k in range(1, n + 1):
        yield from itertools.combinations(range(n), k)
    yield from range(-n, n)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "amax", "amin", "prod", "var", "std", "any", "all"]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_reduced_shapes(name, shape):
    x, a = tf.ones(shape), np.ones(shape)
    for dim in dims_of(shape):
        if name in ("prod",) and isinstance(dim, tuple):
            continue
        for keep in (False, True):
            want = np.sum(a, axis=dim, keepdims=keep).shape
            assert tuple(getattr(x, name)(dim, keepdim=keep).shape) == want, (dim, keep)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", SHAPES)
def test_positions(name, shape):
    x = tf.arange(int(np.prod(shape))).reshape(shape)
    for dim in [None, *range(-len(shape), len(shape))]:
        got = getattr(x, name)(dim)
        assert got.dtype is tf.int64
        np.testing.assert_array_equal(got.numpy(), getattr(np, name)(x.numpy(), axis=dim))


@pytest.mark.parametrize("name", ["cumsum", "sort", "argsort", "softmax"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_stay(name, shape):
    x = tf.ones(shape)
    for dim in range(-len(shape), len(shape)):
        got = getattr(x, name)(dim)
        for y in got if isinstance(got, tuple) else (got,):
            assert tuple(y.shape) == shape


def test_topk():
    x = tf.arange(24).reshape(2, 3, 4)
    for k in range(4):
        assert x.topk(k, 1)[0].shape == (2, k, 4) and x.topk(k)[1].dtype is tf.int64
    assert tf.tensor(3.0).topk(1)[0].shape == ()


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "any", "all"])
def test_empty_axes_have_a_neutral_value(name):
    x = tf.zeros(2, 0, 3)
    y = getattr(x, name)(1)
    want = {"sum": 0, "prod": 1, "any": 0, "all": 1}.get(name)
    assert y.shape == (2, 3) and (y.isnan().all() if want is None else (y == want).all())
    assert getattr(x, name)(0).shape == (0, 3)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda x: tf.zeros(2, 0).amax(1), IndexError, "amax: .*size 0"),
        (
            lambda x: tf.zeros(2, 0).amin(),
            (IndexError, RuntimeError),
            "amin: .*(no elements|size 0)",
        ),
        (lambda x: tf.zeros(2, 0).argmax(), (IndexError, RuntimeError), "argmax: .*no elements"),
        (lambda x: tf.zeros(2, 0).argmax(1), IndexError, "argmax"),
        (lambda x: x.argmax(2), IndexError, "argmax: dim 2"),
        (lambda x: x.sum((0, -2)), RuntimeError, "sum: dim 0 appears twice"),
        (lambda x: x.long().mean(), RuntimeError, "mean: input has dtype tinyfin.int64"),
        (lambda x: x.long().std(), RuntimeError, "std: .*int64"),
        (lambda x: x.mean(dtype=tf.int64), RuntimeError, "mean: .*int64"),
        (lambda x: x.cumsum(3), IndexError, "cumsum: dim 3"),
        (lambda x: x.topk(4), RuntimeError, "topk: k is 4, expected 0 to 3"),
        (lambda x: x.topk(-1), RuntimeError, "topk: k is -1"),
        (lambda x: x.topk(3, 0), RuntimeError, "topk: k is 3, expected 0 to 2"),
        (lambda x: tf.tensor(1.0).topk(0), RuntimeError, "topk: k is 0"),
        (lambda x: x.sort(5), IndexError, "sort: dim 5"),
        (lambda x: x.softmax(2), IndexError, "softmax: dim 2"),
    ],
)
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call(tf.ones(2, 3))


def test_dtype_argument():
    x = tf.ones(3, dtype=tf.int32)
    assert x.sum().dtype is tf.int64 and x.sum(dtype=tf.float64).dtype is tf.float64
    assert x.mean(dtype=tf.float32).item() == 1 and x.cumsum(0, dtype=tf.int8).dtype is tf.int8
    assert (
        x.bool().all().dtype is tf.bool
        and x.byte().any().dtype is tf.uint8
        and x.amax().dtype is tf.int32
    )
