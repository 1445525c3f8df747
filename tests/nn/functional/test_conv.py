"""Convolutions as functions, against PyTorch."""

import pytest
from nn import against, examples

import tinyfin as tf

F = tf.nn.functional
normal = against.normal

CASES = [
    {},
    {"stride": 2},
    {"padding": 1},
    {"stride": 2, "padding": 2, "dilation": 2},
    {"padding": "same"},
    {"padding": "valid"},
    {"padding": "same", "dilation": 2},
    {"stride": [2]},
]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_conv(n, options, groups, kernel):
    if kernel == 3 and options.get("dilation") == 2 and n == 3 and "padding" not in options:
        pytest.skip("kernel is larger than the input")
    x = normal(2, 4, *(7, 6, 5)[:n])
    w = normal(8, 4 // groups, *(kernel,) * n, seed=1)
    against.function(f"conv{n}d", x, w, normal(8, seed=2), groups=groups, tolerance=5e-5, **options)


def test_conv_without_batch_or_bias():
    against.function(
        "conv2d", normal(3, 6, 5), normal(4, 3, 3, 2, seed=1), stride=(2, 1), padding=(0, 1)
    )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"stride": 3, "padding": 1, "output_padding": 2},
        {"dilation": 2},
        {"stride": 2, "dilation": 3, "output_padding": 2},
        {"stride": 1, "dilation": 3, "output_padding": 1, "padding": 2},
        {"stride": 2, "dilation": 4, "output_padding": 3, "padding": 2},
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_conv_transpose(n, options, groups):
    x = normal(2, 4, *(5, 4, 3)[:n])
    w = normal(4, 6 // groups, *(3, 2, 2)[:n], seed=1)
    against.function(
        f"conv_transpose{n}d", x, w, normal(6, seed=2), groups=groups, tolerance=5e-5, **options
    )


def test_empty_batch():
    assert tuple(F.conv2d(tf.ones(0, 1, 4, 4), tf.ones(2, 1, 3, 3)).shape) == (0, 2, 2, 2)


X, W = (1, 4, 4), (1, 1, 2, 2)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x, w: F.conv2d(x, w, padding="some"), RuntimeError, "'some'"),
        (lambda x, w: F.conv2d(x, w, padding="same", stride=2), RuntimeError, "expected stride 1"),
        (lambda x, w: F.conv2d(x[0], w), RuntimeError, "expected 3 dimensions, or 4"),
        (lambda x, w: F.conv2d(x, w[0]), RuntimeError, "weight is"),
        (lambda x, w: F.conv2d(x, w, stride=(1, 2, 3)), RuntimeError, "an int or 2 of them"),
        (lambda x, w: F.conv2d(x, w, stride=1.5), TypeError, "stride is 1.5"),
        (lambda x, w: F.conv2d(x, w, groups=2), RuntimeError, None),
        (lambda x, w: F.conv2d(x, w, tf.ones(3)), RuntimeError, None),
        (lambda x, w: F.conv_transpose2d(x, w, output_padding=1), RuntimeError, "output_padding"),
        (lambda x, w: F.conv_transpose2d(x[0], w), RuntimeError, "expected 3 dimensions, or 4"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(tf.ones(*X), tf.ones(*W))


def test_examples():
    examples.run("tinyfin.nn.functional.conv")
