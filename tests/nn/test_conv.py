"""Convolution layers, against PyTorch."""

import pytest
from nn import against, examples

import tinyfin as tf

normal = against.normal

CONV = [
    {"kernel_size": 3},
    {"kernel_size": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "dilation": 2, "padding": 2},
    {"kernel_size": 3, "groups": 2},
    {"kernel_size": 3, "groups": 4, "padding": 1, "bias": False},
    {"kernel_size": 3, "padding": "same"},
    {"kernel_size": 4, "padding": "same", "dilation": 1},
    {"kernel_size": 3, "padding": "valid"},
    {"kernel_size": 2, "padding": "same", "padding_mode": "reflect"},
    {"kernel_size": 3, "padding": 1, "padding_mode": "reflect"},
    {"kernel_size": 3, "padding": 2, "padding_mode": "replicate", "stride": 2},
    {"kernel_size": 3, "padding": 1, "padding_mode": "circular"},
]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", CONV)
@pytest.mark.parametrize("batched", [True, False])
def test_convolution(n, options, batched):
    shape = (4, 7, 6, 5)[: n + 1]
    x = normal(*((2,) * batched), *shape)
    against.module(lambda nn: getattr(nn, f"Conv{n}d")(4, 8, **options), x, tolerance=5e-5)


def test_uneven_sizes():
    make = {"kernel_size": (3, 2), "stride": (1, 2), "padding": (0, 1), "dilation": (2, 1)}
    against.module(lambda nn: nn.Conv2d(3, 4, **make), normal(2, 3, 8, 7))


TRANSPOSED = [
    {"kernel_size": 3},
    {"kernel_size": 2, "stride": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
    {"kernel_size": 3, "groups": 2, "bias": False},
    {"kernel_size": 2, "dilation": 2, "stride": 3},
]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", TRANSPOSED)
@pytest.mark.parametrize("batched", [True, False])
def test_transposed(n, options, batched):
    shape = (4, 5, 4, 3)[: n + 1]
    x = normal(*((2,) * batched), *shape)
    against.module(lambda nn: getattr(nn, f"ConvTranspose{n}d")(4, 6, **options), x, tolerance=5e-5)


@pytest.mark.parametrize("size", [(9, 7), (10, 8), (2, 6, 10, 7)])
def test_transposed_to_a_size(size):
    layer = tf.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1)
    y = layer(tf.ones(2, 4, 5, 4), output_size=size)
    assert tuple(y.shape) == (2, 6, *size[-2:])


@pytest.mark.parametrize("size", [(8, 7), (11, 8), (9,)])
def test_transposed_to_a_size_out_of_reach(size):
    layer = tf.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1)
    with pytest.raises(ValueError, match="output_size"):
        layer(tf.ones(2, 4, 5, 4), output_size=size)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"groups": 2}, "in_channels 3 does not divide"),
        ({"groups": 0}, "groups is 0"),
        ({"padding": "some"}, "'some'"),
        ({"padding": "same", "stride": 2}, "expected stride 1"),
        ({"padding_mode": "mirror"}, "'mirror'"),
    ],
)
def test_bad_arguments(options, text):
    with pytest.raises(ValueError, match=text):
        tf.nn.Conv2d(3, 4, 3, **options)


def test_transposed_pads_with_zeros_only():
    with pytest.raises(ValueError, match="expected 'zeros'"):
        tf.nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect")


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4, 4, 4), (2, 5, 4, 4)])
def test_input_does_not_fit(shape):
    with pytest.raises(RuntimeError):
        tf.nn.Conv2d(3, 4, 3)(tf.ones(*shape))


def test_kernel_larger_than_input():
    with pytest.raises(RuntimeError):
        tf.nn.Conv2d(1, 1, 5)(tf.ones(1, 1, 4, 4))


def test_examples():
    examples.run("tinyfin.nn.conv")
