"""Means of windows: one order of additions, whatever lies side by side."""

import itertools

import numpy as np
import pytest
from backends.cpu.chain import same_bits
from backends.cpu.fused import layouts

import tinyfin as tf
from tinyfin.ops.row import F

# x, size of the result: planes side by side, lines that are kept whole or as windows need them
SHAPES = [
    ((5, 7, 9, 8), (3, 4)),
    ((3, 20, 14, 14), (7, 7)),
    ((2, 9, 120, 150), (7, 11)),
    ((1, 17, 20, 1500), (2, 9)),
    ((2, 3, 40, 50), (3, 2)),
    ((1, 20, 6, 7, 9), (2, 3, 4)),
]


def boxes(shape, size):
    """(place in the result, slices of the input) of each adaptive window."""
    for o in itertools.product(*map(range, size)):
        yield o, tuple(slice(i * s // t, -(-(i + 1) * s // t)) for i, s, t in zip(o, shape, size))


def numbers(rng, shape):
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 9, shape))).astype("float32")


@pytest.mark.parametrize("shape,size", SHAPES)
def test_order_of_windows(shape, size, rng):
    n, x = len(size), numbers(rng, shape)
    want = np.empty((*shape[:2], *size), "float32")
    for o, box in boxes(shape[2:], size):
        window = x[(..., *box)].reshape(*shape[:2], -1)
        want[(..., *o)] = np.cumsum(window, -1, "float32")[..., -1] / np.float32(window.shape[-1])
    for t in layouts(x):
        assert same_bits(F.adaptive_avg_pool(t, size, n), want)


@pytest.mark.parametrize("shape,size", SHAPES)
def test_order_of_shares(shape, size, rng):
    n, g = len(size), numbers(rng, (*shape[:2], *size))
    want = np.zeros(shape, "float32")
    for o, box in boxes(shape[2:], size):
        part = want[(..., *box)]
        count = np.float32(np.prod(part.shape[2:]))
        part += (g[(..., *o)] / count).reshape(*shape[:2], *[1] * n)
    for t in layouts(g):
        assert same_bits(F.adaptive_avg_pool_grad(t, shape[2:], n), want)


WINDOWS = [
    (3, 1, 1, False, True, None),
    (2, 2, 0, True, True, None),
    ((3, 5), (2, 7), (1, 2), False, False, None),
    ((20, 2), (9, 1), 0, False, True, 7),
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("shape", [(3, 9, 23, 30), (1, 18, 25, 1200)])
def test_planes_together_and_alone(shape, window, rng):
    """Few planes, long lines and halves take other roads to the same bits."""
    x = tf.tensor(numbers(rng, shape))
    y = F.avg_pool(x, *window, 2)
    g = tf.tensor(numbers(rng, tuple(y.shape)))
    gx = F.avg_pool_grad(g, *window, 2, shape[-2:])
    for c in range(0, shape[1], 4):
        assert tf.equal(F.avg_pool(x[:, c : c + 1], *window, 2), y[:, c : c + 1])
        part = F.avg_pool_grad(g[:, c : c + 1], *window, 2, shape[-2:])
        assert tf.equal(part, gx[:, c : c + 1])
    x, g = x.bfloat16(), g.bfloat16()
    assert tf.equal(F.avg_pool(x, *window, 2), F.avg_pool(x.float(), *window, 2).bfloat16())
    gx = F.avg_pool_grad(g.float(), *window, 2, shape[-2:]).bfloat16()
    assert tf.equal(F.avg_pool_grad(g, *window, 2, shape[-2:]), gx)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_one_window_is_a_mean(dtype, rng):
    x = tf.tensor(numbers(rng, (3, 5, 12, 13))).to(getattr(tf, dtype))
    y = tf.nn.functional.adaptive_avg_pool2d(x, 1)
    assert y.shape == (3, 5, 1, 1) and tf.equal(y, x.mean((2, 3), keepdim=True))
    with pytest.raises(RuntimeError, match="nonzero"):
        tf.nn.functional.adaptive_avg_pool2d(tf.zeros(2, 3, 0, 4), 1)
    assert tf.nn.functional.adaptive_avg_pool2d(tf.zeros(0, 3, 4, 4), 1).shape == (0, 3, 1, 1)
