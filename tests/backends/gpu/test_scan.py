"""Running sums, products, extremes and recurrences on a GPU: parts, many lines, odd strides, in place."""

import numpy as np
import pytest
import samples
from backends.gpu.alike import gpu, same

import tinyfin as tf

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize("shape", [(1, 5000), (3, 2049), (70, 130), (300, 70), (2100, 67)])
def test_parts_and_lines(shape, rng):
    """Few and many lines, along memory and across; parts of every size that work groups have."""
    x = samples.tensor(rng.standard_normal(shape), "float32")
    ties = samples.tensor(rng.integers(-3, 4, shape).astype("float64"), "float32")
    for dim in 0, 1:
        same(lambda t: (t.cumsum(dim), t.cumprod(dim), t[1:, 1:].cumsum(dim)), x)
        same(lambda t: (*t.cummax(dim), *t.cummin(dim)), ties)
        same(lambda t: tf.linear_scan(t.flip(dim), t, dim), x)


@pytest.mark.parametrize("source", samples.ALL)
def test_dtypes(source, rng):
    x = samples.tensor(rng.standard_normal((4, 90)) * 3, source)
    for target in ("float32", "float16", "float64", "int64", "uint8", "bool"):
        if source != "float64" or target == "float64":
            dtype = getattr(tf, target)
            same(lambda t: t.cumsum(1, dtype=dtype), x)
    same(lambda t: (t.cumprod(0), *t.cummax(1), *t.cummin(0)), x)
    if x.is_floating_point():
        same(lambda t: tf.linear_scan(t, t.flip(1), 1), x)


@pytest.mark.parametrize("change", samples.LAYOUTS.values(), ids=samples.LAYOUTS)
def test_layouts(change, rng):
    x = samples.tensor(rng.standard_normal((6, 20, 40)), "float32")
    for dim in 0, 1, 2:
        same(
            lambda t: (t.cumsum(dim), *t.cummax(dim), tf.linear_scan(t.sigmoid(), t, dim)),
            change(x),
        )


def test_more_axes_than_a_dispatch_walks(rng):
    x = samples.tensor(rng.standard_normal((2, 3, 2, 3, 2, 3, 2, 3)), "float32")
    order = (7, 5, 3, 1, 0, 2, 4, 6)
    for dim in 0, 3, 7:
        same(lambda t: (t.permute(order).cumsum(dim), *t.permute(order).cummin(dim)), x)


def test_in_place(rng):
    x = samples.tensor(rng.standard_normal((40, 90)), "float32")
    for view in (lambda t: t, lambda t: t.t(), lambda t: t[3:, 5::2], lambda t: t.flip(0, 1)):
        for dim in 0, 1:
            here, there = x.clone(), x.to(gpu())
            view(here).cumsum_(dim)
            view(there).cumsum_(dim)
            assert samples.bits(there.cpu()) == samples.bits(here)


def test_special_values():
    x = tf.tensor(
        [
            [np.nan, 1, np.nan, 2],
            [np.inf, 1, -np.inf, 0],
            [-0.0, 0.0, -0.0, 1e-40],
            [1e-40, -1e-40, 2e-40, 0],
        ]
    )
    for on in False, True:
        with tf.deterministic(on):
            for dim in 0, 1:
                same(lambda t: (t.cumsum(dim), t.cumprod(dim), *t.cummax(dim), *t.cummin(dim)), x)
                same(lambda t: tf.linear_scan(t, t.flip(0), dim), x)


def test_whole_numbers_wrap_around():
    x = tf.tensor([2**62, 2**62, 2**62, -(2**31), 2**40 + 1], dtype=tf.int64)
    same(lambda t: (t.cumsum(0), t.cumprod(0), *t.cummax(0), *t.cummin(0)), x)


def test_nothing_and_one():
    same(lambda t: (t.cumsum(0), t.cumsum(1), *t.cummax(1)), tf.zeros(0, 3))
    same(lambda t: (t.cumsum(0), t.cumprod(0), *t.cummin(0)), tf.tensor(2.5))
