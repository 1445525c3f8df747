"""gather, scatter, scatter_add: every element by its definition, order of writes, errors."""

import itertools

import numpy as np
import pytest

import tinyfin as tf
from tinyfin.ops.table import OPS

DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float32", "float64"]
SHAPES = [(6,), (5, 7), (4, 5, 3), (2, 1, 5, 4)]


def layouts(x):
    """The same numbers, stored in other ways."""
    t = tf.tensor(x)
    yield t
    dims = tuple(reversed(range(x.ndim)))
    yield t.permute(dims).contiguous().permute(dims)
    yield t.flip(dims).contiguous().flip(dims)


def add(a, b):
    """Addition as the library means it: bool is or, integers wrap."""
    if a.dtype == bool:
        return a | b
    with np.errstate(over="ignore"):
        return a + b


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_by_definition(shape, dtype, rng):
    x = np.asarray(rng.integers(0, 90, shape)).astype(dtype)
    for dim in range(len(shape)):
        sizes = [s + 3 if k == dim else max(1, s - 1) for k, s in enumerate(shape)]
        index = rng.integers(0, shape[dim], sizes)
        source = np.asarray(rng.integers(0, 90, [s + 1 for s in sizes])).astype(dtype)
        picked, put, added = np.zeros(sizes, dtype), x.copy(), x.copy()
        for place in itertools.product(*map(range, sizes)):
            to = place[:dim] + (index[place],) + place[dim + 1 :]
            picked[place] = x[to]
            put[to] = source[place]
            added[to] = add(added[to], source[place])
        for kind in ("int64", "int32"):
            for t, i, s in zip(layouts(x), layouts(index.astype(kind)), layouts(source)):
                assert np.array_equal(t.gather(dim, i).numpy(), picked)
                assert np.array_equal(t.scatter(dim, i, s).numpy(), put)
                assert np.array_equal(t.scatter_add(dim, i, s).numpy(), added)
        if dtype[0] == "f":
            zeros = OPS["scatter_embed"](tf.tensor(source), tf.tensor(index), shape, dim)
            assert np.array_equal(zeros.numpy(), tf.zeros_like(t).scatter_add(dim, i, s).numpy())


@pytest.mark.parametrize("dim", [0, 1])
def test_additions_come_in_rising_order(dim, rng):
    shape = (30, 2000) if dim else (2000, 30)
    index = rng.integers(0, 7, shape)
    source = (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)).astype("float32")
    want = np.zeros((30, 7) if dim else (7, 30), "float32")
    rows = np.arange(30)
    for j in range(2000):
        key = (rows, index[:, j]) if dim else (index[j], rows)
        want[key] += source[:, j] if dim else source[j]
    before = tf.get_num_threads()
    for threads in (1, 3):
        tf.set_num_threads(threads)
        got = tf.zeros(want.shape).scatter_add(dim, tf.tensor(index), tf.tensor(source))
        tf.set_num_threads(before)
        assert got.numpy().tobytes() == want.tobytes()


def test_numbers_and_reduce():
    x = tf.zeros(2, 4, dtype=tf.int16)
    i = tf.tensor([[0, 2], [3, 3]])
    assert x.scatter(1, i, 7).tolist() == [[7, 0, 7, 0], [0, 0, 0, 7]]
    assert x.scatter(1, i, value=7).dtype is tf.int16
    assert x.scatter(1, i, 1, reduce="add").tolist() == [[1, 0, 1, 0], [0, 0, 0, 2]]
    assert tf.tensor(5.0).gather(0, tf.tensor(0)).item() == 5
    assert tf.zeros(2, 3).gather(1, tf.zeros(0, dtype=tf.int64)).shape == (0,)


def test_inplace():
    x = tf.zeros(3, 4).t()
    x.scatter_(0, tf.tensor([[0, 3, 1]]), 1.0)
    x.scatter_add_(0, tf.tensor([[0, 0, 0]]), tf.ones(1, 3))
    assert x.tolist() == [[2, 1, 1], [0, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_errors_say_what_came():
    x = tf.zeros(3, 5)
    with pytest.raises(IndexError, match=r"gather: index 7 is out of range for dim 1 of size 5"):
        x.gather(1, tf.tensor([[0, 7]]))
    with pytest.raises(IndexError, match=r"scatter: index -1 is out of range for dim 0 of size 3"):
        x.scatter(0, tf.tensor([[-1]]), 1.0)
    with pytest.raises(
        RuntimeError,
        match=r"gather: index has shape \(2,\), input has \(3, 5\), "
        r"expected as many",
    ):
        x.gather(1, tf.tensor([0, 1]))
    with pytest.raises(RuntimeError, match=r"index is larger in dim 0, only dim 1 may be"):
        x.gather(1, tf.zeros(4, 1, dtype=tf.int64))
    with pytest.raises(
        RuntimeError, match=r"gather: index has dtype tinyfin.float32, expected int64 or int32"
    ):
        x.gather(1, tf.zeros(3, 1))
    with pytest.raises(
        RuntimeError, match=r"scatter: src has dtype tinyfin.float64, input has tinyfin.float32"
    ):
        x.scatter(1, tf.zeros(3, 1, dtype=tf.int64), tf.zeros(3, 1, dtype=tf.float64))
    with pytest.raises(
        RuntimeError,
        match=r"scatter_add: src has shape \(3, 1\), index has \(3, "
        r"2\): src is smaller",
    ):
        x.scatter_add(1, tf.zeros(3, 2, dtype=tf.int64), tf.ones(3, 1))
