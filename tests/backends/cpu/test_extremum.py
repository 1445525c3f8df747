"""Extrema, their places, any and all: NumPy's values, NaN wins, the first of equal elements
counts."""

import math

import numpy as np
import pytest

import tinyfin as tf

SHAPES = [
    ((5,), 0),
    ((1,), 0),
    ((3, 70), 1),
    ((70, 3), 0),
    ((70, 33), 0),
    ((2100, 40), 0),
    ((2, 3000, 20), 1),
    ((4, 5, 6, 7), (1, 3)),
    ((4, 5, 6, 7), (0, 2)),
    ((40, 3, 50), (0, 2)),
    ((3, 70000), 1),
    ((70000, 3), 0),
    ((9, 9, 9), None),
    ((5000, 9), (0, 1)),
    ((20, 1, 30), 1),
    ((20000, 600), 0),
    ((140000,), 0),
    ((300, 16), 1),
    ((300, 3), 1),
]


def rows(x, dim):
    """One row per result: the reduced elements in row-major order, and the shape of the results."""
    dims = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else dim
    kept = [d for d in range(x.ndim) if d not in dims]
    shape = [x.shape[d] for d in kept]
    return np.ascontiguousarray(x.transpose([*kept, *dims])).reshape(math.prod(shape), -1), shape


def layouts(x):
    """The same numbers, stored in other ways."""
    t = tf.tensor(x)
    yield t
    dims = tuple(reversed(range(x.ndim)))
    yield t.permute(dims).contiguous().permute(dims)
    yield t.flip(dims).contiguous().flip(dims)


def same(t, want):
    """Equal in shape, dtype and value."""
    got = t.numpy()
    return got.shape == want.shape and got.dtype == want.dtype and np.array_equal(got, want)


@pytest.mark.parametrize(
    "dtype", ["bool", "float16", "float32", "float64", "int64", "int16", "uint8"]
)
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_against_numpy(shape, dim, dtype, rng):
    x = rng.integers(0, 2 if dtype == "bool" else 9, shape)
    x = (x - 4).astype(dtype) if dtype not in ("bool", "uint8") else x.astype(dtype)
    parts, result = rows(x, dim)
    flag = "uint8" if dtype == "uint8" else "bool"
    for t in layouts(x):
        assert same(t.amax(dim), parts.max(1).reshape(result))
        assert same(t.amin(dim), parts.min(1).reshape(result))
        assert same(t.any(dim), (parts != 0).any(1).reshape(result).astype(flag))
        assert same(t.all(dim), (parts != 0).all(1).reshape(result).astype(flag))
        if not isinstance(dim, tuple):
            assert same(t.argmax(dim), parts.argmax(1).reshape(result))
            assert same(t.argmin(dim), parts.argmin(1).reshape(result))
        if isinstance(dim, int):
            high, where = t.max(dim)
            assert same(high, parts.max(1).reshape(result))
            assert same(where, parts.argmax(1).reshape(result))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("across", [False, True])
def test_nan_wins_and_zeros_are_ordered(dtype, across):
    nan, inf = math.nan, math.inf
    x = tf.tensor(
        [[1, nan, 3, nan], [-0.0, 0.0, -0.0, 0], [-inf, -1, -nan, 5], [0.0, -0.0, 1, -inf]]
    )
    x = x.to(getattr(tf, dtype)).repeat(3, 1)
    dim = 1
    if across:
        x, dim = x.t().contiguous(), 0
    assert x.argmax(dim).tolist() == [1, 1, 2, 2] * 3
    assert x.argmin(dim).tolist() == [1, 0, 2, 3] * 3
    high, low = x.amax(dim).tolist()[:4], x.amin(dim).tolist()[:4]
    assert math.isnan(high[0]) and math.isnan(high[2]) and high[3] == 1
    assert math.copysign(1, high[1]) == 1 and math.copysign(1, low[1]) == -1
    assert math.isnan(low[0]) and math.isnan(low[2]) and low[3] == -inf


def test_argmax_of_many_equal():
    x = tf.zeros(3, 100000)
    x[1, 70000] = x[1, 90000] = 1
    assert x.argmax(1).tolist() == x.t().contiguous().argmax(0).tolist() == [0, 70000, 0]
    assert x.argmax().item() == 170000 and x.argmax(1, keepdim=True).shape == (3, 1)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float64"])
def test_smallest_value_everywhere(dtype):
    low = np.iinfo(dtype).min if dtype[0] == "i" else -np.inf
    for shape, dim in (((3, 50), 1), ((50, 30), 0)):
        x = tf.tensor(np.full(shape, low, dtype))
        assert not x.argmax(dim).any() and (x.amax(dim) == low).all()
