"""Pools on a GPU beyond the table's samples: several work groups, any strides, bad places."""

import warnings

import numpy as np
import pytest
import samples
from backends.gpu.alike import gpu

import tinyfin as tf
from tinyfin.ops import table

pytestmark = pytest.mark.usefixtures("gpu")
MAX, MEAN, GRAD, GATHER, SCATTER, ADAPTIVE_MAX, ADAPTIVE, ADAPTIVE_GRAD = (
    table.OPS[name]
    for name in (
        "max_pool", "avg_pool", "avg_pool_grad", "pool_gather", "pool_scatter", "adaptive_max_pool",
        "adaptive_avg_pool", "adaptive_avg_pool_grad",
    )
)  # fmt: skip


def same(run, *inputs):
    """Compares a function of tensors with the CPU; a fallback is an error."""
    want = run(*inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = run(*(t.to(gpu()) for t in inputs))
    for a, b in zip(samples.flat(want), samples.flat(got)):
        assert samples.bits(b.cpu()) == samples.bits(a)


def numbers(*shape, seed=0):
    """Few different values, so that windows have several largest; and NaN, infinities, zeros of both signs."""
    x = np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0], np.float32)
    x.reshape(-1)[::29][: x.size // 40] = np.resize(
        special, x.reshape(-1)[::29][: x.size // 40].shape
    )
    return tf.tensor(x)


WINDOWS = [
    ((3, 5, 33, 29), (3, 2), (2, 1), (1, 0), (1, 2), 2),
    ((2, 7, 11, 13), (2, 3, 5), (2, 2, 1), (1, 1, 2), (1, 1, 1), 3),
    ((4, 5000), 5, 3, 2, 7, 1),
    ((2, 9, 9), 4, 100, 2, 3, 2),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_largest(dtype):
    for shape, kernel, stride, padding, dilation, nd in WINDOWS:
        x = numbers(*shape).to(getattr(tf, dtype))
        for ceil in (False, True):
            same(lambda x: MAX(x, kernel, stride, padding, dilation, ceil, nd), x)
    same(lambda x: ADAPTIVE_MAX(x, (5, 7), 2), numbers(3, 17, 22).to(getattr(tf, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_means(dtype):
    for shape, kernel, stride, padding, _, nd in WINDOWS:
        x = tf.randn(shape).to(getattr(tf, dtype))
        for ceil, inside, divisor in (
            (False, True, None), (True, False, None), (True, True, None), (False, False, -7),
        ):  # fmt: skip
            step = (kernel, stride, padding, ceil, inside, divisor, nd)
            same(lambda x: MEAN(x, *step), x)
            g = tf.randn(MEAN(x, *step).shape).to(x.dtype)
            same(lambda g: GRAD(g, *step, shape[-nd:]), g)
    for size in ((5, 7), (1, 1), (17, 11), (40, 3)):
        same(lambda x: ADAPTIVE(x, size, 2), tf.randn((3, 17, 22)))
        same(lambda g: ADAPTIVE_GRAD(g, (17, 22), 2), tf.randn((3, *size)))


def test_small_means_are_not_flushed():
    same(lambda x: MEAN(x, 3, 3, 0, False, True, None, 1), tf.full((2, 9), 2e-38))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_places(dtype):
    """Planes that share a tile, planes of several tiles, places that many values go to."""
    rng = np.random.default_rng(1)
    for planes, area, count in (
        (300, 49, 16),
        (3, 5000, 1111),
        (2, 4, 3000),
        (5, 1, 300),
        (1, 2049, 0),
    ):
        at = tf.tensor(rng.integers(0, area, (planes, count)))
        v = tf.randn((planes, count)).to(getattr(tf, dtype))
        same(lambda v, at: SCATTER(v, at, (area,), 1), v, at)
        same(lambda x, at: GATHER(x, at, 1), tf.randn((planes, area)).to(v.dtype), at)


def test_views():
    x, at = tf.randn((4, 6, 8, 10)), tf.tensor(np.arange(192).reshape(4, 6, 2, 4) % 80)
    for change in (
        lambda t: t.transpose(0, 1),
        lambda t: t.flip(0, 3)[:, ::2],
        lambda t: t.transpose(0, 3).contiguous().transpose(0, 3),
        lambda t: t[:1].expand(t.shape),
    ):
        same(lambda x: MAX(change(x), 2, 2, 0, 1, False, 2), x)
        same(lambda x: MEAN(change(x), 2, 2, 0, False, True, None, 2), x)
        same(lambda x: GRAD(change(x), 2, 2, 0, False, True, None, 2, (16, 20)), x)
        same(lambda x, at: GATHER(change(x), change(at), 2), x, at)
        same(lambda x, at: SCATTER(change(x)[:, :, :2, :4], change(at), (8, 10), 2), x, at)


def test_bad_places():
    x = tf.randn((2, 9)).to(gpu())
    for name, run, bad in (
        ("pool_gather", lambda at: GATHER(x, at, 1), 9),
        ("pool_scatter", lambda at: SCATTER(x[:, :3], at, (9,), 1), -1),
        ("pool_scatter", lambda at: SCATTER(x[:, :3], at, (9,), 1), 1 << 40),
    ):
        at = tf.tensor([[0, 1, 2], [3, bad, 4]]).to(gpu())
        with pytest.raises(IndexError, match=f"{name}: index {bad} is out of range for size 9"):
            run(at).cpu()
    assert x.cpu().shape == (2, 9)
