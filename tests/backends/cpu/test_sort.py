"""Sorting and topk: stable both ways, all dtypes and layouts, NaN greatest, ties by lowest
place."""

import math

import numpy as np
import pytest

import tinyfin as tf

SHAPES = [(5,), (1,), (97,), (600,), (7, 300), (300, 7), (3, 40, 5), (0, 3), (3, 0), (2, 1500)]
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def numbers(shape, dtype, rng):
    """Numbers with many equal ones."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(dtype)
    low = 0 if dtype == "uint8" else -40
    return np.asarray(rng.integers(low, 41, shape)).astype(dtype)


def layouts(x):
    """The same numbers, stored in other ways."""
    t = tf.tensor(x)
    yield t
    dims = tuple(reversed(range(x.ndim)))
    yield t.permute(dims).contiguous().permute(dims)
    yield t.flip(dims).contiguous().flip(dims)


def order(x, dim, descending):
    """The stable order: descending is ascending of the negated numbers."""
    wide = x.astype("float64")
    return np.argsort(-wide if descending else wide, dim, kind="stable")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sort(shape, dtype, descending, rng):
    x = numbers(shape, dtype, rng)
    for dim in range(len(shape)):
        want = order(x, dim, descending)
        for t in layouts(x):
            values, places = t.sort(dim, descending)
            assert np.array_equal(places.numpy(), want)
            assert np.array_equal(values.numpy(), np.take_along_axis(x, want, dim))
            assert values.dtype is t.dtype and tf.equal(t.argsort(dim, descending), places)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "bfloat16"])
def test_random_bits_sort_as_numbers(dtype, rng):
    if dtype == "bfloat16":
        t = tf.tensor(rng.standard_normal(5000).astype("float32")).to(tf.bfloat16)
    else:
        size = 4 if dtype.endswith("32") else 8
        x = np.frombuffer(rng.bytes(size * 5000), dtype)
        t = tf.tensor(x[~np.isnan(x)] if dtype[0] == "f" else x)
    wide = t.double().numpy() if dtype != "int64" else t.numpy()
    values, places = t.sort()
    assert np.array_equal(places.numpy(), np.argsort(wide, kind="stable"))
    assert np.array_equal(
        values.double().numpy() if dtype != "int64" else values.numpy(), np.sort(wide)
    )


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_topk_is_the_beginning_of_the_order(shape, dtype, largest, rng):
    x = numbers(shape, dtype, rng)
    for dim in range(len(shape)):
        n = shape[dim]
        for k in {0, 1, 3, n // 8, n // 2, n}:
            if k > n:
                continue
            want = np.take(order(x, dim, largest), range(k), dim)
            for t in layouts(x):
                values, places = t.topk(k, dim, largest)
                assert np.array_equal(places.numpy(), want)
                assert np.array_equal(values.numpy(), np.take_along_axis(x, want, dim))


def test_topk_of_adverse_orders():
    for x in (np.arange(5000.0), -np.arange(5000.0), np.zeros(5000), np.arange(5000.0) % 7):
        values, places = tf.tensor(x.astype("float32")).topk(20)
        want = np.argsort(-x, kind="stable")[:20]
        assert places.tolist() == want.tolist() and values.tolist() == x[want].tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_is_greatest_and_zeros_are_ordered(dtype):
    nan, inf = math.nan, math.inf
    x = tf.tensor(np.array([3, nan, 0.0, -0.0, -inf, inf, -nan, 1], dtype))
    values, places = x.sort()
    assert places.tolist() == [4, 3, 2, 7, 0, 5, 1, 6]
    assert (
        values.tolist()[:6] == [-inf, 0, 0, 1, 3, inf] and math.copysign(1, values[1].item()) == -1
    )
    assert x.sort(descending=True)[1].tolist() == [1, 6, 5, 0, 7, 2, 3, 4]
    assert x.topk(3)[1].tolist() == [1, 6, 5] and x.topk(2, largest=False)[1].tolist() == [4, 3]


def test_no_dimensions_and_errors():
    values, places = tf.tensor(4.0).sort()
    assert values.item() == 4 and places.item() == 0 and tf.tensor(4.0).topk(1)[0].item() == 4
    with pytest.raises(RuntimeError, match=r"topk: k is 4, expected 0 to 3, the size of dim 0"):
        tf.ones(3).topk(4)
    with pytest.raises(IndexError, match="sort: dim 2 is out of range"):
        tf.ones(3, 3).sort(2)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64"])
def test_searchsorted(dtype, rng):
    line = np.sort(rng.integers(0, 50, (3, 700))).astype(dtype)
    value = rng.integers(0, 55, (3, 900)).astype(dtype)
    for right in (False, True):
        side = "right" if right else "left"
        want = np.stack([np.searchsorted(a, v, side) for a, v in zip(line, value)])
        for a, v in zip(layouts(line), layouts(value)):
            assert np.array_equal(tf.searchsorted(a, v, right).numpy(), want)
            assert np.array_equal(
                tf.searchsorted(a[0], v, side=side).numpy(), np.searchsorted(line[0], value, side)
            )
            assert np.array_equal(
                tf.bucketize(v, a[1], right=right).numpy(), np.searchsorted(line[1], value, side)
            )
    assert tf.searchsorted(tf.tensor([1, 2]), 1.5).item() == 1
    assert tf.searchsorted(tf.zeros(0), tf.ones(2)).tolist() == [0, 0]


def test_searchsorted_of_nan_and_zeros():
    line = tf.tensor([-math.inf, -0.0, 0.0, math.inf, math.nan, math.nan])
    value = tf.tensor([math.nan, 0.0, -0.0, math.inf])
    assert tf.searchsorted(line, value).tolist() == [4, 1, 1, 3]
    assert tf.searchsorted(line, value, right=True).tolist() == [6, 3, 3, 4]
    with pytest.raises(RuntimeError, match="all sizes but the last must agree"):
        tf.searchsorted(tf.ones(2, 3), tf.ones(3, 3))
