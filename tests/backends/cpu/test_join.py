"""cat, pad_constant, triangles, repeat, roll: NumPy's values in all layouts, promotion, errors."""

import numpy as np
import pytest

import tinyfin as tf
from tinyfin.ops.table import OPS

pad = OPS["pad_constant"]


def layouts(x):
    """The same numbers, stored in other ways."""
    t = tf.tensor(x)
    yield t
    dims = tuple(reversed(range(x.ndim)))
    yield t.permute(dims).contiguous().permute(dims)
    yield t.flip(dims).contiguous().flip(dims)


@pytest.mark.parametrize(
    "one,two,result",
    [
        ("float32", "float32", "float32"),
        ("int32", "float32", "float32"),
        ("uint8", "int8", "int16"),
        ("bool", "float16", "float16"),
        ("int64", "float64", "float64"),
        ("bool", "bool", "bool"),
    ],
)
def test_cat(one, two, result, rng):
    a, b = rng.integers(0, 2, (3, 4, 5)).astype(one), rng.integers(0, 9, (3, 2, 5)).astype(two)
    want = np.concatenate([a.astype(result), b.astype(result)], 1)
    for x, y in zip(layouts(a), layouts(b)):
        for dim in (1, -2):
            got = tf.cat([x, y], dim)
            assert got.dtype.name == result and np.array_equal(got.numpy(), want)
    assert np.array_equal(tf.cat([tf.zeros(0, dtype=x.dtype), x, y], 1).numpy(), want)


def test_cat_of_many_large_and_empty(rng):
    parts = [rng.standard_normal((n, 70)).astype("float32") for n in (0, 1, 500, 0, 2, 1000)] * 3
    assert np.array_equal(tf.cat([tf.tensor(p) for p in parts]).numpy(), np.concatenate(parts))
    assert np.array_equal(
        tf.cat([tf.tensor(p).t() for p in parts], 1).numpy(), np.concatenate(parts).T
    )
    assert tf.cat([tf.zeros(0), tf.zeros(0)]).shape == (0,)
    assert np.array_equal(
        tf.stack([tf.tensor(parts[1])] * 3, -1).numpy(), np.stack([parts[1]] * 3, -1)
    )


def test_cat_errors():
    with pytest.raises(
        RuntimeError,
        match=r"cat: tensor 1 has shape \(3, 3\), others \(2, 2\): "
        r"sizes differ in dim 1",
    ):
        tf.cat([tf.zeros(2, 2), tf.zeros(3, 3)])
    with pytest.raises(
        RuntimeError, match=r"cat: tensor 1 has shape \(2,\), others \(2, 2\): expected as many"
    ):
        tf.cat([tf.zeros(2, 2), tf.zeros(2)])
    with pytest.raises(RuntimeError, match=r"cat: tensor 0 has no dimensions"):
        tf.cat([tf.tensor(1.0)])
    with pytest.raises(IndexError, match=r"cat: dim 2 is out of range"):
        tf.cat([tf.zeros(2, 2)], 2)
    with pytest.raises(ValueError, match=r"cat: tensors is empty"):
        tf.cat([])
    with pytest.raises(RuntimeError, match=r"stack: tensor 1 has shape"):
        tf.stack([tf.zeros(2), tf.zeros(3)])


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "float16", "uint8"])
def test_pad(dtype, rng):
    x = rng.integers(0, 5, (3, 4, 5)).astype(dtype)
    for sizes in (
        (1, 2),
        (1, 2, 3, 0),
        (-1, 2, 0, -1, 1, 1),
        (0, 0, 2, 2),
        (-2, -3),
        (-5, 3),
        (3, -5),
        (),
    ):
        want = x
        for k in range(len(sizes) // 2):
            axis = x.ndim - 1 - k
            before, after = sizes[2 * k], sizes[2 * k + 1]
            keep = slice(max(-before, 0), want.shape[axis] - max(-after, 0))
            want = want[(slice(None),) * axis + (keep,)]
            widths = [(0, 0)] * x.ndim
            widths[axis] = (max(before, 0), max(after, 0))
            want = np.pad(want, widths, constant_values=np.array(1, dtype))
        for t in layouts(x):
            assert np.array_equal(pad(t, sizes, 1.0).numpy(), want), sizes
    with pytest.raises(RuntimeError, match=r"pad_constant: pad .* negative"):
        pad(tf.ones(3), (-2, -2))
    with pytest.raises(RuntimeError, match=r"expected two numbers for each"):
        pad(tf.ones(3), (1, 1, 1, 1))


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64", "bool"])
def test_triangles(dtype, rng):
    x = rng.integers(1, 9, (3, 5, 7)).astype(dtype)
    for t in layouts(x):
        for k in (-9, -5, -2, 0, 1, 6, 7, 99, 2**62, -(2**62)):
            cut = max(min(k, 100), -100)
            assert np.array_equal(t.tril(k).numpy(), np.tril(x, cut))
            assert np.array_equal(t.triu(k).numpy(), np.triu(x, cut))
    with pytest.raises(
        RuntimeError, match=r"tril: input has shape .3,., expected at least 2 dimensions"
    ):
        tf.ones(3).tril()


def test_repeat_and_roll(rng):
    x = rng.standard_normal((2, 1, 3)).astype("float32")
    for t in layouts(x):
        for n in ((2, 3, 1), (1, 1, 1), (2, 1, 2, 2), (0, 1, 1), (3, 1, 1, 1)):
            assert np.array_equal(t.repeat(n).numpy(), np.tile(x, n))
            assert t.repeat(*n).shape == np.tile(x, n).shape
        assert np.array_equal(tf.tile(t, (2,)).numpy(), np.tile(x, 2))
        for shifts, dims in ((1, 0), (-1, 2), (7, -1), ((1, 2), (0, 2)), (2, None)):
            got = tf.roll(t, shifts) if dims is None else tf.roll(t, shifts, dims)
            assert np.array_equal(got.numpy(), np.roll(x, shifts, dims))
    wide = tf.ones(1, 2, 1, 2, 1, 2, 1, 2)
    assert wide.repeat(2, 1, 2, 1, 2, 1, 2, 2).shape == (2, 2, 2, 2, 2, 2, 2, 4)
    kept = tf.ones(2)
    kept.repeat(1).add_(1)
    assert kept.tolist() == [1, 1]


@pytest.mark.parametrize("shapes, dim", [
    (((3, 4), (3, 1), (3, 7)), 1), (((2, 3, 5), (2, 0, 5), (2, 2, 5)), 1), (((40, 300), (40, 2)), 1),
    (((0, 3), (0, 2)), 1), (((7, 1), (7, 1)), 1), (((2100, 1030), (2100, 1024)), 1), (((5, 4), (6, 4)), 0),
])  # fmt: skip
def test_row_by_row(shapes, dim, rng):
    """Dense inputs, one part of a row after the other, by any number of threads, past the caches too."""
    parts = [rng.standard_normal(s).astype("float32") for s in shapes]
    want, before = np.concatenate(parts, dim), tf.get_num_threads()
    for threads in (1, 3):
        tf.set_num_threads(threads)
        np.testing.assert_array_equal(tf.cat([tf.tensor(p) for p in parts], dim).numpy(), want)
        x = [tf.tensor(p).to(tf.int8) for p in parts]
        np.testing.assert_array_equal(tf.cat(x, dim).numpy(), want.astype("int8"))
    tf.set_num_threads(before)
