"""Softmax and norms over rows on a GPU: rows of several blocks, across memory, of any layout."""

import pytest
from backends.gpu.alike import same_row

import tinyfin as tf
from tinyfin import profiler

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize(
    "shape, dim",
    [
        ((3, 2049), 1),
        ((2, 9000), 1),
        ((3, 1100), 1),
        ((2100, 5), 0),
        ((2, 70, 33), 1),
        ((33, 7), 1),
    ],
)
def test_softmax(shape, dim):
    """Rows of several blocks, some of them not kept; columns; rows that do not fill a work group."""
    x, g = tf.randn(shape) * 5, tf.randn(shape)
    same_row("softmax_grad", g, same_row("softmax", x, dim, None)[0], dim)


@pytest.mark.parametrize("shape, dim", [((3, 2049), 1), ((2, 90, 5), 1)])
def test_log_softmax(shape, dim):
    x, g = tf.randn(shape) * 5, tf.randn(shape)
    same_row("log_softmax_grad", g, same_row("log_softmax", x, dim, None)[0], dim)


def test_softmax_of_many_blocks():
    """More blocks than lanes."""
    same_row("softmax", tf.randn(2, 70 * 2048 + 5), 1, None)
    same_row("softmax", tf.randn(70 * 2048 + 5, 1).expand(70 * 2048 + 5, 2), 0, None)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.permute(2, 0, 3, 1),
        lambda x: x.flip((0, 1, 2, 3)),
        lambda x: x[:, ::2, 1:, ::3],
        lambda x: x[:, :1].expand(4, 6, 5, 7),
    ],
)
def test_softmax_layouts(change):
    """What does not merge into rows of rows is copied first."""
    x = change(tf.randn(4, 6, 5, 7))
    for dim in range(4):
        y = same_row("softmax", x, dim, None)[0]
        same_row("softmax_grad", x, y, dim)


def test_softmax_special_values():
    inf, nan = float("inf"), float("nan")
    rows = [
        [0.0, inf, 1.0],
        [-inf, -inf, -inf],
        [nan, 1.0, 2.0],
        [-inf, 0.0, -0.0],
        [88.0, -90.0, 3.0],
    ]
    for name in ("softmax", "log_softmax"):
        same_row(name, tf.tensor(rows), 1, None)
        same_row(name, tf.tensor(rows, dtype=tf.bfloat16), 0, None)


@pytest.mark.parametrize("source", ["int32", "int64", "bool", "float32"])
def test_softmax_as_another_dtype(source):
    """x is rounded to the result's type first."""
    x = (tf.randn(5, 40) * 9).to(getattr(tf, source))
    for dtype in (tf.float16, tf.float32):
        same_row("softmax", x, 1, dtype)


@pytest.mark.parametrize("rows, n", [(3, 2500), (2500, 12), (70, 300)])
def test_norms(rows, n):
    """Rows of several blocks; gradients of weights over several blocks of rows."""
    x, g, w, b = tf.randn(rows, n), tf.randn(rows, n), tf.randn(n), tf.randn(n)
    _, mean, rstd = same_row("native_layer_norm", x, (n,), w, b, 1e-5)
    same_row("layer_norm_grad", g, x, mean, rstd, w, (n,), 1e-5, True, True)
    _, rstd = same_row("native_rms_norm", x, w, (n,), None)
    same_row("rms_norm_grad", g, x, rstd, w, (n,), None, True)


def test_norm_of_four_blocks():
    """As many as a work group keeps."""
    for n in (5000, 8192):
        same_row("native_rms_norm", tf.randn(2, n), None, (n,), None)


def test_norms_with_one_gradient():
    x, g, w = tf.randn(6, 40), tf.randn(6, 40), tf.randn(40)
    _, mean, rstd = same_row("native_layer_norm", x, (40,), w, None, 1e-5)
    for wanted in ((True, False), (False, True), (False, False)):
        same_row("layer_norm_grad", g, x, mean, rstd, w, (40,), 1e-5, *wanted)


def test_norm_layouts():
    x = tf.randn(4, 6, 3, 5).permute(3, 2, 1, 0)
    w, b = tf.randn(4, 6).transpose(0, 1), tf.randn(6, 1).expand(6, 4)
    g = tf.randn(6, 4).expand(5, 3, 6, 4)
    _, mean, rstd = same_row("native_layer_norm", x, (6, 4), w, b, 1e-5)
    same_row("layer_norm_grad", g, x, mean, rstd, w, (6, 4), 1e-5, True, True)
    across = tf.randn(40, 60).transpose(0, 1)
    _, mean, rstd = same_row("native_layer_norm", across, (40,), None, None, 1e-5)
    same_row("layer_norm_grad", across, across, mean, rstd, None, (40,), 1e-5, True, True)


@pytest.mark.parametrize("shape", [(2, 3, 0), (0, 4)])
def test_norms_without_elements(shape):
    x, n = tf.zeros(shape), shape[-1]
    w = tf.ones(n)
    _, mean, rstd = same_row("native_layer_norm", x, (n,), w, w, 1e-5)
    same_row("layer_norm_grad", x, x, mean, rstd, w, (n,), 1e-5, True, True)


def test_deterministic_mode():
    """Numbers that become subnormal on the way."""
    with tf.deterministic():
        x, g = tf.randn(3, 200) * 2.0**-64, tf.randn(3, 200) * 2.0**-70
        same_row("softmax_grad", g, x, 1)
        _, mean, rstd = same_row("native_layer_norm", x, (200,), None, None, 0.0)
        same_row("layer_norm_grad", g, x, mean, rstd, None, (200,), 0.0, True, True)


# ---- few long rows, of which several work groups share each: the rule and the sizes stand in rows.pxd

LONG = [(64, 8193, False), (65, 8193, False), (1, 34817, False), (2, 10240, True)]
"""Rows and elements, on both sides of the rule, at ends of blocks and past them; whether in deterministic mode."""


@pytest.mark.parametrize("rows, n, deterministic", LONG)
def test_softmax_of_few_long_rows(rows, n, deterministic):
    with tf.deterministic(deterministic):
        x = tf.randn(rows, n) * 5
        x[0, n - 1] = 30.0  # the largest number is the last one's
        for name in ("softmax", "log_softmax"):
            y = same_row(name, x, 1, None)[0]
            same_row(name + "_grad", tf.randn(rows, n), y, 1)
        same_row("cross_entropy_forward", x, tf.arange(rows), None, "mean", -100)


@pytest.mark.parametrize("shape, dim", [((20000, 3), 0), ((2, 9000, 4), 1), ((4, 9001, 1), 1)])
def test_softmax_of_few_long_columns(shape, dim):
    """Of halves, and where rows do not lie along memory."""
    for dtype in (tf.float32, tf.bfloat16):
        x, g = (tf.randn(shape) * 5).to(dtype), tf.randn(shape).to(dtype)
        same_row("softmax_grad", g, same_row("softmax", x, dim, None)[0], dim)
    same_row("log_softmax", (tf.randn(shape) * 9).to(tf.int32), dim, tf.float16)


def test_softmax_of_very_long_rows():
    """More blocks than parts with a largest number; more than a block of blocks."""
    inf, nan = float("inf"), float("nan")
    x = tf.randn(3, 257 * 2048 + 1)
    x[0, 5000], x[1, 9000], x[2, 70000] = inf, nan, -inf
    same_row("softmax", x, 1, None)
    same_row("cross_entropy_forward", x, tf.arange(3), None, "mean", -100)
    same_row("softmax", tf.full((1, 9000), -inf), 1, None)
    same_row("log_softmax", tf.randn(1, 2049 * 2048 + 3), 1, None)


@pytest.mark.parametrize("rows, n, deterministic", LONG)
def test_norms_of_few_long_rows(rows, n, deterministic):
    with tf.deterministic(deterministic):
        x, g = tf.randn(rows, n) * 3 + 1, tf.randn(rows, n)
        w, b = tf.rand(n) + 0.5, tf.randn(n)
        _, mean, rstd = same_row("native_layer_norm", x, (n,), w, b, 1e-5)
        same_row("layer_norm_grad", g, x, mean, rstd, w, (n,), 1e-5, True, True)
        _, rstd = same_row("native_rms_norm", x, w, (n,), None)
        same_row("rms_norm_grad", g, x, rstd, w, (n,), None, True)


def test_few_long_rows_of_float64(gpu):
    """The same bodies, of float64."""
    x, g = (tf.randn(2, 10240, dtype=tf.float64) * 5 for _ in range(2))
    w = tf.rand(10240, dtype=tf.float64) + 0.5
    same_row("softmax_grad", g, same_row("softmax", x, 1, None)[0], 1)
    same_row("cross_entropy_forward", x, tf.arange(2), None, "mean", -100)
    _, mean, rstd = same_row("native_layer_norm", x, (10240,), w, g[0], 1e-5)
    same_row("layer_norm_grad", g, x, mean, rstd, w, (10240,), 1e-5, True, True)
    with tf.deterministic():
        same_row("native_rms_norm", x, w, (10240,), None)
    x = x.to(gpu)
    with profiler.profile() as p:
        x.softmax(1)
    assert [len(e.dispatches) for e in p.events()] == [4]


def test_norms_of_few_long_rows_without_weights():
    """And rows that lie across memory, or along two axes, and halves."""
    x = tf.randn(9000, 3).to(tf.float16).permute(1, 0)
    for v in (x, tf.randn(2, 3, 9000).permute(1, 0, 2)):
        g = tf.randn(v.shape).to(v.dtype)
        _, mean, rstd = same_row("native_layer_norm", v, (9000,), None, None, 1e-5)
        same_row("layer_norm_grad", g, v, mean, rstd, None, (9000,), 1e-5, True, True)
        same_row("native_rms_norm", v, None, (9000,), None)


@pytest.mark.parametrize("n", [2 * 16 * 2048 - 1, 2048 * 2048 + 2049])
def test_reductions_of_few_long_rows(n):
    """Sums, products, variances, extremes: parts of rows in several dispatches."""
    x = tf.randn(2, n)
    x[1, n - 1] = 9.0
    for name in ("sum", "mean", "amax"):
        same_row(name, x, 1)
    same_row("argmax", x, 1)
    same_row("sum", x.permute(1, 0), 0)
    if n < 100_000:
        same_row("prod", x * 0.01 + 1, 1)
        same_row("var", x, 1)
        same_row("max_dim", x.permute(1, 0), 0)
