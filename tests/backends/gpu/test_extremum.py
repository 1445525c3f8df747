"""Extremes, their places, any and all on a GPU: ties over work groups, special values, all dtypes."""

import numpy as np
import pytest
import samples
from backends.gpu.alike import same

import tinyfin as tf

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize(
    "shape", [(3, 16), (3, 2048), (2, 40000), (1, 70001), (5000, 20), (70001, 8)]
)
def test_the_first_of_equal_ones(shape, rng):
    """Rows, columns and single results, in one dispatch and in several."""
    x = samples.tensor(rng.integers(-3, 4, shape).astype("float64"), "float32")
    for dim in 0, 1:
        same(
            lambda t: (
                t.argmax(dim),
                t.argmin(dim),
                *t.max(dim),
                *t.min(dim),
                t.amax(dim),
                t.amin(dim),
            ),
            x,
        )
    same(lambda t: (t.argmax(), t.argmin(), t.amax(), t.flip(0, 1).argmax(), t[:, 1:].argmin()), x)
    same(lambda t: (t.any(0), t.all(1), (t == 9).any(), (t < 9).all()), x)


@pytest.mark.parametrize("dtype", samples.ALL)
def test_dtypes(dtype, rng):
    x = samples.tensor(rng.standard_normal((5, 1028)) * 40, dtype)
    same(lambda t: (t.amax(1), t.amin(0), t.argmax(), t.any(1), t.all(0)), x)
    if dtype != "bool":
        same(lambda t: (*t[:, 3:].max(1), *t.t().min(1)), x)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_order_of_floats(dtype):
    """NaN of either sign is greatest for both, -0 lies below +0, infinities are ordinary."""
    rows = [
        [0, -0.0, 0],
        [-0.0, 0, -0.0],
        [np.nan, np.inf, -np.inf],
        [-np.inf, -np.nan, np.nan],
        [1e-7, -1e-7, 0],
    ]
    x = samples.tensor(np.array(rows), dtype)
    same(lambda t: (*t.max(1), *t.min(1), t.amax(0), t.amin(0), t.any(1), t.all(1)), x)
    same(lambda t: (t.argmax(0), t.argmin(1), t.argmax()), x)


def test_ends_of_integers():
    for dtype in tf.int8, tf.int32, tf.int64:
        low, high = tf.iinfo(dtype).min, tf.iinfo(dtype).max
        x = tf.tensor([[low, low, low], [high, low, high], [high, high, high]], dtype=dtype)
        same(lambda t: (*t.max(1), *t.min(1), t.argmax(0), t.argmin(0), t.amax(), t.amin()), x)
    x = tf.tensor([2**40 + 1, 2**40 + 2, 2**40, -(2**40), -(2**40) - 1], dtype=tf.int64)
    same(lambda t: (t.argmax(), t.argmin(), t.amax(), t.amin()), x)


def test_subnormal_numbers_are_not_flushed():
    x = tf.tensor([[1e-40, 2e-40, 0.0], [-1e-40, -0.0, 0.0]])
    for on in False, True:
        with tf.deterministic(on):
            same(lambda t: (*t.max(1), *t.min(1), t.any(0), t.all(0)), x)


@pytest.mark.parametrize("change", samples.LAYOUTS.values(), ids=samples.LAYOUTS)
def test_layouts(change, rng):
    x = samples.tensor(rng.integers(-9, 9, (6, 20, 100)).astype("float64"), "float32")
    for dim in 0, 1, 2:
        same(lambda t: (*t.max(dim), t.argmin(dim)), change(x))
    same(lambda t: (t.argmax(), t.amin((0, 2)), t.any((1, 2))), change(x))


def test_one_result_of_three_levels(rng):
    x = samples.tensor(rng.standard_normal(4096), "float32")
    same(lambda t: t.expand((1 << 14) + 3, 4096).argmax(), x)
