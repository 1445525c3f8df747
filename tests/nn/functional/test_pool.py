"""Pooling as functions, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

import tinyfin as tf

F = tf.nn.functional
normal = against.normal


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    "kernel, stride, padding, dilation",
    [
        (2, None, 0, 1),
        (3, 2, 1, 1),
        (2, 3, 1, 1),
        (2, 1, 0, 2),
        (3, 1, 1, 2),
        (1, 2, 0, 1),
    ],
)
def test_max_pool(n, kernel, stride, padding, dilation, ceil_mode):
    x = normal(2, 3, *(9, 8, 7)[:n])
    against.function(
        f"max_pool{n}d",
        x,
        kernel,
        stride,
        padding,
        dilation,
        ceil_mode=ceil_mode,
        return_indices=True,
    )


def test_max_pool_of_nan_and_infinity():
    x = np.array([[[1.0, np.nan, -np.inf, -np.inf]]], "float32")
    against.function("max_pool1d", x, 2, grad=False)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize("kernel, stride, padding", [(2, None, 0), (3, 2, 1), (2, 3, 1), (1, 2, 0)])
def test_avg_pool(n, kernel, stride, padding, ceil_mode, count_include_pad):
    x = normal(2, 3, *(9, 8, 7)[:n])
    against.function(f"avg_pool{n}d", x, kernel, stride, padding, ceil_mode, count_include_pad)


def test_uneven_windows():
    x = normal(2, 7, 8)
    against.function("max_pool2d", x, (2, 3), (1, 2), (1, 0), (2, 1))
    against.function("avg_pool2d", x, (2, 3), (1, 2), (1, 0), divisor_override=5)


@pytest.mark.parametrize("size", [1, 4, 7, (3, 2), (None, 1)])
def test_adaptive(size):
    against.function("adaptive_avg_pool2d", normal(2, 3, 7, 5), size)
    if isinstance(size, int):
        against.function("adaptive_avg_pool1d", normal(3, 7), size)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: F.max_pool2d(x, 2, padding=2), RuntimeError),
        (lambda x: F.max_pool2d(x, 2, padding=-1), RuntimeError),
        (lambda x: F.max_pool2d(x, 5), RuntimeError),
        (lambda x: F.max_pool2d(x, 0), RuntimeError),
        (lambda x: F.max_pool2d(x, 2, 0), RuntimeError),
        (lambda x: F.max_pool1d(x, 2), RuntimeError),
        (lambda x: F.max_pool2d(x, 1.5), TypeError),
        (lambda x: F.max_pool2d(x, (1, 2, 3)), RuntimeError),
        (lambda x: F.avg_pool2d(x, 5), RuntimeError),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), RuntimeError),
        (lambda x: F.adaptive_avg_pool2d(x, (1, 2, 3)), ValueError),
        (lambda x: F.adaptive_avg_pool2d(x, -1), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call(tf.ones(1, 1, 4, 4))


def test_examples():
    examples.run("tinyfin.nn.functional.pool")
