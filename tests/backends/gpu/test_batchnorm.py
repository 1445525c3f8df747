"""Batch norm on a GPU: channels of several blocks, in any layout."""

import pytest
from backends.gpu.alike import same_row

import tinyfin as tf

pytestmark = pytest.mark.usefixtures("gpu")


def every(x, g, w, b):
    """Forward, by given statistics, and backward."""
    _, mean, var = same_row("native_batch_norm", x, w, b, 1e-5)
    same_row("batch_norm_apply", x, mean, var, w, b, 1e-5)
    same_row("batch_norm_grad", g, x, mean, var, w, 1e-5)


@pytest.mark.parametrize("shape", [(700, 3, 4), (5000, 7), (1, 2, 9000), (2, 1, 1), (3, 20, 6, 8)])
def test_shapes(shape):
    """Channels of several blocks, along memory and across it; four places at once, and one."""
    w = tf.randn(shape[1])
    every(tf.randn(shape), tf.randn(shape), w, w + 1)


@pytest.mark.parametrize("order", [(0, 3, 1, 2), (1, 2, 0, 3), (3, 2, 1, 0)])
def test_layouts(order):
    x, g = tf.randn(4, 5, 6, 7).permute(order), tf.randn(4, 5, 6, 7).flip((0, 2)).permute(order)
    every(x, g, None, None)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_statistics_of_half_types(dtype):
    dtype = getattr(tf, dtype)
    x, w = tf.randn(5, 3, 8).to(dtype), tf.rand(6)[::2].to(dtype)
    same_row("batch_norm_apply", x, w, w, w, w, 1e-5)
    same_row("batch_norm_grad", x, x, w, w, w, 1e-5)


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 4, 0), (2, 0, 3)])
def test_without_elements(shape):
    x, w = tf.zeros(shape), tf.ones(shape[1])
    every(x, x, w, w)
