"""Joining, padding and triangles on a GPU: widths, layouts, mixed dtypes."""

import numpy as np
import pytest
import samples
from backends.gpu.alike import same

import tinyfin as tf
from tinyfin.ops.row import F

pytestmark = pytest.mark.usefixtures("gpu")
RNG = np.random.default_rng(7)


def numbers(*shape, dtype="float32"):
    return samples.tensor(RNG.normal(size=shape) * 4, dtype)


@pytest.mark.parametrize("dtype", samples.ALL)
def test_cat(dtype):
    a, b = numbers(3, 4, 5, dtype=dtype), numbers(3, 7, 5, dtype=dtype)
    same(lambda a, b: F.cat([a, b, a], 1), a, b)
    same(lambda a, b: F.cat([b.transpose(0, 2), a.transpose(0, 2).flip(0)], -2), a, b)
    same(lambda a, b: F.cat([a[:, :0], b, tf.zeros(0, device=a.device, dtype=a.dtype)], 1), a, b)


def test_cat_promotes():
    a, b, c = numbers(3, dtype="bool"), numbers(4, dtype="int16"), numbers(5, dtype="float16")
    same(lambda a, b, c: F.cat([a, b, c]), a, b, c)
    same(lambda a, b, c: F.cat([a, b, b.to(tf.int64)]), a, b, c)
    same(lambda a, b, c: F.cat([c, c.to(tf.bfloat16), b]), a, b, c)


def test_cat_of_many():
    xs = [numbers(2, 1 + i % 3) for i in range(100)]
    same(lambda *xs: F.cat(xs, 1), *xs)


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "uint8", "bool", "int64", "float64"]
)
def test_pads(dtype):
    """By elements and by several, with borders, cropped, all border."""
    x = numbers(3, 4, 8, 16, dtype=dtype)
    for pad in (
        (0, 0, 1, 2),
        (16, 16),
        (1, 2, -1, 3, 0, 0, 2, -1),
        (-4, -4),
        (0, 0, -8, 3),
        (0, 0, 0, 0, 2, 2),
        (),
    ):
        same(lambda x: F.pad_constant(x, pad, 1.3), x)
    same(lambda x: F.pad_constant(x.permute(3, 1, 0, 2).flip(1), (1, 1, 0, 0, 2, 0), -2.0), x)
    same(lambda x: F.pad_constant(x[:, ::2, 1:, :].expand(3, 2, 7, 16), (0, 0, 1, 1), 0.0), x)


def test_pad_of_halves_rounds_the_number():
    for dtype in ("float16", "bfloat16"):
        for value in (1e-7, 70000.0, 0.1, float("nan"), -0.0):
            same(lambda x: F.pad_constant(x, (1, 1), value), numbers(3, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "int64"])
def test_triangles(dtype):
    x = numbers(2, 3, 19, 23, dtype=dtype)
    for call in (F.tril, F.triu):
        for diagonal in (0, 3, -4, 100, -(2**60)):
            same(lambda x: call(x, diagonal), x)
        same(lambda x: call(x.transpose(2, 3).flip(0)[:, 1], 1), x)
        same(lambda x: call(x[:, :, :0], 1), x)
