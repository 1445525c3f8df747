"""The roads of the engine of convolutions, taken on purpose by shape, against each other."""

import numpy as np
import pytest

import tinyfin as tf
from tinyfin.ops.row import F


def same(a, b):
    return a.numpy().tobytes() == b.numpy().tobytes()


@pytest.mark.parametrize("channels", [1, 9, 16, 31, 40, 128, 200])
def test_channels_do_not_depend_on_their_company(channels, rng):
    """Few rows read lines, many pack columns: an output channel has the same bits alone."""
    x = tf.tensor(rng.standard_normal((2, 6, 11, 13)).astype("float32"))
    w = tf.tensor(rng.standard_normal((channels, 6, 3, 3)).astype("float32"))
    y = F.convolution(x, w, None, 1, 1)
    for k in (0, channels // 2, channels - 1):
        assert same(y[:, k : k + 1].contiguous(), F.convolution(x, w[k : k + 1], None, 1, 1))


def test_points_are_as_columns(rng):
    """The edges of an input gradient (few columns) have the same bits in a wide batch (many)."""
    g = tf.tensor(rng.standard_normal((30, 8, 5, 5)).astype("float32"))
    w = tf.tensor(rng.standard_normal((8, 70, 3, 3)).astype("float32"))
    many = F.conv_grad_input(g, w, 1, 1, 1, 1, (5, 5))
    for i in (0, 17, 29):
        assert same(
            many[i : i + 1].contiguous(), F.conv_grad_input(g[i : i + 1], w, 1, 1, 1, 1, (5, 5))
        )


def test_chunks_of_images(rng):
    """More images than one copy holds: the weight's chains go on in the next chunk."""
    x = tf.tensor(rng.standard_normal((3, 2, 1000, 1100)).astype("float32"))
    w = tf.tensor(rng.standard_normal((2, 2, 3, 3)).astype("float32"))
    y = F.convolution(x, w, None, 1, 1)
    g = tf.tensor(rng.standard_normal(tuple(y.shape)).astype("float32"))
    gx = F.conv_grad_input(g, w, 1, 1, 1, 1, (1000, 1100))
    for i in range(3):
        assert same(y[i : i + 1].contiguous(), F.convolution(x[i : i + 1], w, None, 1, 1))
        assert same(
            gx[i : i + 1].contiguous(), F.conv_grad_input(g[i : i + 1], w, 1, 1, 1, 1, (1000, 1100))
        )
    gw = F.conv_grad_weight(g, x, 1, 1, 1, 1, (3, 3)).double().numpy()
    a, b = (
        np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (1, 1))).astype("float64"),
        g.numpy().astype("float64"),
    )
    want = [
        [
            [
                [(b[:, o] * a[:, c, r : r + 1000, s : s + 1100]).sum() for s in range(3)]
                for r in range(3)
            ]
            for c in range(2)
        ]
        for o in range(2)
    ]
    np.testing.assert_allclose(gw, want, 1e-3, 1.0)


def test_weights_of_any_layout(rng):
    x = tf.tensor(rng.standard_normal((1, 4, 9, 9)).astype("float32"))
    w = rng.standard_normal((30, 4, 3, 3)).astype("float32")
    plain = F.convolution(x, tf.tensor(w), None)
    turned = tf.tensor(np.ascontiguousarray(w.transpose(2, 3, 1, 0))).permute(3, 2, 0, 1)
    assert same(plain, F.convolution(x, turned, None))
    assert same(
        F.conv_grad_input(plain, tf.tensor(w), 1, 0, 1, 1, (9, 9)),
        F.conv_grad_input(plain, turned, 1, 0, 1, 1, (9, 9)),
    )


@pytest.mark.parametrize("channels,kernel", [(1, 3), (3, 3), (33, 3), (70, 4), (6, 1), (5, 9)])
def test_turned_weights_of_any_layout(channels, kernel, rng):
    """Input gradients turn dense kernels by squares, others element by element: the bits are the same."""
    g = tf.tensor(rng.standard_normal((2, 5, 10, 12)).astype("float32"))
    w = rng.standard_normal((5, channels, kernel, kernel)).astype("float32")
    apart = np.full((5, channels, kernel, 2 * kernel), np.nan, "float32")
    apart[..., ::2] = w
    wide = np.full((5, channels + 2, kernel, kernel), np.nan, "float32")
    wide[:, 1:-1] = w
    options = 2, 0, 1, 1, (18 + kernel, 22 + kernel)
    with tf.deterministic():
        plain = F.conv_grad_input(g, tf.tensor(w), *options)
        for view in (tf.tensor(apart)[..., ::2], tf.tensor(wide)[:, 1:-1]):
            assert same(plain, F.conv_grad_input(g, view, *options))
