"""Slices by index, advanced indexing and its writing: NumPy's values, order of additions,
errors."""

import itertools

import numpy as np
import pytest

import tinyfin as tf
from tinyfin.ops.table import OPS

DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]
SHAPES = [(6,), (5, 7), (4, 5, 6), (3, 1, 5, 4), (700, 3), (3, 700)]


def numbers(shape, dtype, rng):
    """Small whole numbers, so that sums of any dtype are exact."""
    return np.asarray(rng.integers(0, 9, shape)).astype(dtype)


def layouts(x):
    """The same numbers, stored in other ways."""
    t = tf.tensor(x)
    yield t
    dims = tuple(reversed(range(x.ndim)))
    yield t.permute(dims).contiguous().permute(dims)
    yield t.flip(dims).contiguous().flip(dims)


def at(ndim, dim, i):
    """The key of one slice."""
    return (slice(None),) * dim + (i,) + (slice(None),) * (ndim - dim - 1)


def add(a, b):
    """Addition as the library means it: bool is or, integers wrap."""
    if a.dtype == bool:
        return a | b
    with np.errstate(over="ignore"):
        return a + b


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_whole_slices(shape, dtype, rng):
    x = numbers(shape, dtype, rng)
    for dim in range(len(shape)):
        for count in (0, 1, 9, 600):
            index = rng.integers(0, shape[dim], count)
            part = np.take(x, index, dim)
            wide = "float32" if dtype == "float16" else dtype
            added, embedded = x.astype(wide), np.zeros(shape, wide)
            source = numbers(part.shape, dtype, rng)
            for j, i in enumerate(index):
                key, piece = at(x.ndim, dim, i), source[at(x.ndim, dim, j)].astype(wide)
                added[key] = add(added[key], piece)
                embedded[key] = add(embedded[key], piece)
            added, embedded = added.astype(dtype), embedded.astype(dtype)
            for kind in ("int64", "int32"):
                i, s = tf.tensor(index.astype(kind)), tf.tensor(source)
                for t in layouts(x):
                    assert np.array_equal(tf.index_select(t, dim, i).numpy(), part)
                    assert np.array_equal(t.index_add(dim, i, s).numpy(), added)
                assert np.array_equal(OPS["index_embed"](s, i, shape, dim).numpy(), embedded)


def test_additions_come_in_rising_order(rng):
    """A sum of numbers of very different size shows the order to the last bit."""
    x = (rng.standard_normal((5, 40)) * 10.0 ** rng.integers(-6, 6, (5, 40))).astype("float32")
    source = (rng.standard_normal((4000, 40)) * 10.0 ** rng.integers(-6, 6, (4000, 40))).astype(
        "float32"
    )
    index = rng.integers(0, 5, 4000)
    want = x.copy()
    for j, i in enumerate(index):
        want[i] += source[j]
    for threads in (1, 2, 3):
        before = tf.get_num_threads()
        tf.set_num_threads(threads)
        got = tf.tensor(x).index_add(0, tf.tensor(index), tf.tensor(source))
        across = tf.tensor(x).t().index_add(1, tf.tensor(index), tf.tensor(source).t())
        scaled = tf.tensor(x).index_add(0, tf.tensor(index), tf.tensor(source), alpha=0.5)
        tf.set_num_threads(before)
        assert got.numpy().tobytes() == want.tobytes()
        assert across.t().contiguous().numpy().tobytes() == want.tobytes()
        assert np.allclose(scaled.numpy(), x + (want - x) / 2, rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("shape", [(5,), (5, 7), (4, 5, 6), (3, 2, 5, 4)])
def test_advanced_indexing(shape, rng):
    x = rng.standard_normal(shape).astype("float32")
    for mask, common in itertools.product(range(1, 2 ** len(shape)), [(3,), (2, 4), (0,), (700,)]):
        dims = [k for k in range(len(shape)) if mask >> k & 1]
        index = [rng.integers(-shape[k], shape[k], common) for k in dims]
        key = [slice(None)] * len(shape)
        for k, i in zip(dims, index):
            key[k] = i
        want = x[tuple(key)]
        given = tuple(tf.tensor(i) for i in index)
        for t in layouts(x):
            assert np.array_equal(OPS["index"](t, given, mask).numpy(), want)
        for value_shape in (want.shape, want.shape[1:], ()):
            value = np.asarray(rng.standard_normal(value_shape), "float32")
            put, added = x.copy(), x.astype("float64")
            put[tuple(key)] = value
            np.add.at(added, tuple(key), np.broadcast_to(value, want.shape).copy())
            for t in layouts(x):
                assert np.array_equal(
                    OPS["index_put"](t, tf.tensor(value), given, mask, False).numpy(), put
                )
                got = OPS["index_put"](t, tf.tensor(value), given, mask, True)
                assert np.allclose(got.numpy(), added, atol=1e-4)


def test_embedding_rows_and_padding():
    w = tf.arange(12.0).reshape(4, 3).requires_grad_()
    i = tf.tensor([[1, 3], [3, 0]], dtype=tf.int32)
    y = OPS["embedding"](i, w, 3)
    assert y.shape == (2, 2, 3) and y[0, 1].tolist() == [9, 10, 11]
    y.sum().backward()
    assert w.grad.tolist() == [[1] * 3, [1] * 3, [0] * 3, [0] * 3]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64"])
def test_nonzero(dtype, rng):
    x = rng.integers(0, 2, (7, 40, 9)).astype(dtype)
    for t in layouts(x):
        assert np.array_equal(tf.nonzero(t).numpy(), np.argwhere(x))
    assert tf.nonzero(tf.tensor([-0.0, float("nan")])).tolist() == [[1]]
    assert tf.nonzero(tf.zeros(3, 0)).shape == (0, 2) and tf.nonzero(tf.tensor(1)).shape == (1, 0)


def test_no_dimensions():
    assert tf.index_select(tf.tensor(5.0), 0, tf.tensor([0])).item() == 5
    assert tf.index_select(tf.arange(6).reshape(2, 3), 0, tf.tensor(1)).tolist() == [[3, 4, 5]]
    assert tf.arange(3.0).index_add(0, tf.tensor(1), tf.tensor([2.0])).tolist() == [0, 3, 2]


def test_errors_say_what_came():
    x = tf.zeros(3, 5)
    with pytest.raises(
        IndexError, match=r"index_select: index 5 is out of range for dim 1 of size 5"
    ):
        tf.index_select(x, 1, tf.tensor([0, 5]))
    with pytest.raises(
        IndexError, match=r"index_select: index -1 is out of range for dim 0 of size 3"
    ):
        tf.index_select(x, 0, tf.tensor([-1]))
    with pytest.raises(IndexError, match=r"index: index -6 is out of range for dim 1 of size 5"):
        x[:, tf.tensor([0, -6])]
    with pytest.raises(IndexError, match=r"embedding: index 3 is out of range for dim 0 of size 3"):
        OPS["embedding"](tf.tensor([3]), x)
    with pytest.raises(
        RuntimeError, match=r"index_select: index has dtype tinyfin.float32, expected int64"
    ):
        tf.index_select(x, 0, tf.ones(1))
    with pytest.raises(
        IndexError, match=r"index_select: index has shape \(1, 1\), expected one dimension"
    ):
        tf.index_select(x, 0, tf.tensor([[0]]))
    with pytest.raises(
        RuntimeError,
        match=r"index_add: source has shape \(1, 4\) for an input of "
        r"shape \(3, 5\)",
    ):
        x.index_add(0, tf.tensor([0]), tf.ones(1, 4))
    with pytest.raises(
        RuntimeError, match=r"does not broadcast to \(2, 5\), the shape that the indices select"
    ):
        x.index_put((tf.tensor([0, 1]),), tf.ones(3, 5))


def test_nothing_is_written_when_an_index_is_wrong():
    x = tf.zeros(3)
    with pytest.raises(IndexError):
        x.index_put_((tf.tensor([0, 1, 7]),), tf.tensor(1.0))
    assert x.tolist() == [0, 0, 0]


def test_index_copy_and_fill(rng):
    x = rng.standard_normal((4, 5, 3)).astype("float32")
    for dim in (0, 1, -1):
        index = rng.permutation(x.shape[dim])[:2]
        source = np.take(rng.standard_normal(x.shape).astype("float32"), [0, 1], dim)
        copied, filled = x.copy(), x.copy()
        key = [slice(None)] * 3
        key[dim] = index
        copied[tuple(key)] = source
        filled[tuple(key)] = 7
        for t in layouts(x):
            i = tf.tensor(index)
            assert np.array_equal(t.index_copy(dim, i, tf.tensor(source)).numpy(), copied)
            assert np.array_equal(t.index_fill(dim, i, 7).numpy(), filled)
            assert np.array_equal(t.index_fill(dim, i, tf.tensor(7.0)).numpy(), filled)
    kept = tf.zeros(3)
    kept.index_fill_(0, tf.tensor([1]), 2.0)
    assert kept.tolist() == [0, 2, 0]
