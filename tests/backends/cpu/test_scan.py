"""Running sums, products, extrema and recurrences: sequential order, all layouts, gradients at
zeros."""

import math

import numpy as np
import pytest

import tinyfin as tf
from tinyfin.autograd.reverse import grad

SHAPES = [
    (5,),
    (1,),
    (600,),
    (7, 1300),
    (1300, 7),
    (3, 40, 5),
    (2, 3, 4, 5),
    (130, 1, 129),
    (0, 3),
    (3, 0),
    (2, 200, 300),
]
DTYPES = ["float32", "float64", "float16", "int64", "int32", "uint8", "bool"]


def numbers(shape, dtype, rng):
    """Small numbers, so that products of integers wrap and products of floats stay finite."""
    if dtype in ("uint8", "bool"):
        return rng.integers(0, 2, shape).astype(dtype)
    return np.asarray(rng.standard_normal(shape) * 2).astype(dtype)


def layouts(x):
    """The same numbers, stored in other ways."""
    t = tf.tensor(x)
    yield t
    dims = tuple(reversed(range(x.ndim)))
    yield t.permute(dims).contiguous().permute(dims)
    yield t.flip(dims).contiguous().flip(dims)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_one_element_after_the_other(shape, dtype, rng):
    x = numbers(shape, dtype, rng)
    wide = {"float16": "float32"}.get(dtype, dtype if dtype[0] == "f" else "int64")
    out = dtype if dtype[0] == "f" else "int64"
    for dim in range(len(shape)):
        with np.errstate(all="ignore"):
            want = [
                f(x.astype(wide), axis=dim, dtype=wide).astype(out) for f in (np.cumsum, np.cumprod)
            ]
        for t in layouts(x):
            for got, w in zip((t.cumsum(dim), t.cumprod(dim)), want):
                assert got.dtype.name == out and np.array_equal(got.numpy(), w, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(9,), (700,), (5, 130), (130, 5), (3, 20, 140)])
def test_linear_recurrence(shape, dtype, rng):
    a, x = rng.uniform(-1, 1, shape).astype(dtype), rng.standard_normal(shape).astype(dtype)
    for dim in range(len(shape)):
        fa, fx = np.moveaxis(a, dim, 0), np.moveaxis(x, dim, 0)
        want = np.zeros_like(fx)
        for i in range(len(fx)):
            want[i] = fx[i] if i == 0 else fa[i] * want[i - 1] + fx[i]
        for ta, tx in zip(layouts(a), layouts(x)):
            assert np.array_equal(tf.linear_scan(ta, tx, dim).numpy(), np.moveaxis(want, 0, dim))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int8", "bool"])
@pytest.mark.parametrize("shape", [(5,), (1,), (600,), (7, 1300), (40, 7)])
def test_running_extrema(shape, dtype, rng):
    x = numbers(shape, "float32" if dtype == "int8" else dtype, rng).astype(dtype)
    for dim in range(len(shape)):
        for t in layouts(x):
            for name, better in (("cummax", np.greater_equal), ("cummin", np.less_equal)):
                values, places = getattr(t, name)(dim)
                line = np.moveaxis(x, dim, 0)
                best, where = line[0].copy(), np.zeros(line[0].shape, "int64")
                for i, v in enumerate(line):
                    up = better(v, best)
                    best, where = np.where(up, v, best), np.where(up, i, where)
                    assert np.array_equal(np.moveaxis(values.numpy(), dim, 0)[i], best)
                    assert np.array_equal(np.moveaxis(places.numpy(), dim, 0)[i], where)


def test_nan_stays():
    x = tf.tensor([3.0, math.nan, -1.0, math.inf, math.nan])
    for name in ("cummax", "cummin"):
        values, places = getattr(x, name)(0)
        assert values.tolist()[0] == 3 and all(map(math.isnan, values.tolist()[1:]))
        assert places.tolist() == [0, 1, 1, 1, 4]


def test_first_element_keeps_its_sign():
    for dtype in (tf.float16, tf.float32, tf.float64):
        assert math.copysign(1, tf.tensor([-0.0, 1.0], dtype=dtype).cumsum(0)[0].item()) == -1


def test_dtypes_and_no_dimensions():
    x = tf.tensor([100, 100, 100], dtype=tf.int8)
    assert x.cumsum(0).tolist() == [100, 200, 300] and x.cumsum(0).dtype is tf.int64
    assert x.cumsum(0, dtype=tf.int8).tolist() == [100, -56, 44]
    assert tf.tensor(3.0).cumsum(0).item() == 3 and tf.tensor(4).cumprod(-1).item() == 4
    with pytest.raises(IndexError, match="cumsum: dim 1 is out of range"):
        x.cumsum(1)


@pytest.mark.parametrize("data", [[2.0, 5, 4], [4.0, 0, 7], [0.0, 6, 0], [0.0, 0, 0], [0.0]])
def test_gradients_of_products_with_zeros(data):
    """Against the definition: the product of all others, first and second order."""
    x = tf.tensor(data, dtype=tf.float64, requires_grad=True)
    (g,) = grad(x.prod(), [x], create_graph=True)
    n = len(data)
    want = [math.prod(data[:i] + data[i + 1 :]) for i in range(n)]
    assert g.tolist() == want
    for i in range(n):
        (h,) = grad(g[i], [x], retain_graph=True, allow_unused=True)
        rest = [
            math.prod(v for k, v in enumerate(data) if k not in (i, j)) if j != i else 0
            for j in range(n)
        ]
        assert (h.tolist() if h is not None else [0] * n) == rest
    (c,) = grad(x.cumprod(0).sum(), [x])
    want = [sum(math.prod(data[:i] + data[i + 1 : k + 1]) for k in range(i, n)) for i in range(n)]
    assert c.tolist() == want
