"""Pooling layers, against PyTorch."""

import pytest
from nn import against, examples

import tinyfin as tf

normal = against.normal
SIZES = (2, 3, 9, 8, 7)

MAX = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "stride": 3, "ceil_mode": True},
    {"kernel_size": 2, "dilation": 2},
    {"kernel_size": 3, "stride": 1, "padding": 1, "return_indices": True},
]
AVG = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
    {"kernel_size": 2, "stride": 3, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", MAX)
@pytest.mark.parametrize("batched", [True, False])
def test_max_pool(n, options, batched):
    x = normal(*SIZES[0 if batched else 1 : n + 2])
    against.module(lambda nn: getattr(nn, f"MaxPool{n}d")(**options), x)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", AVG)
@pytest.mark.parametrize("batched", [True, False])
def test_avg_pool(n, options, batched):
    x = normal(*SIZES[0 if batched else 1 : n + 2])
    against.module(lambda nn: getattr(nn, f"AvgPool{n}d")(**options), x)


def test_avg_pool_divisor():
    against.module(lambda nn: nn.AvgPool2d(2, divisor_override=3), normal(2, 3, 4, 4))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_adaptive_1d(size):
    against.module(lambda nn: nn.AdaptiveAvgPool1d(size), normal(2, 3, 9))


@pytest.mark.parametrize("size", [1, 3, (2, 5), (None, 3), (4, None)])
@pytest.mark.parametrize("batched", [True, False])
def test_adaptive_2d(size, batched):
    x = normal(*SIZES[0 if batched else 1 : 4])
    against.module(lambda nn: nn.AdaptiveAvgPool2d(size), x)


@pytest.mark.parametrize("size", [1, (2, None, 3)])
@pytest.mark.parametrize("batched", [True, False])
def test_adaptive_3d(size, batched):
    x = normal(*SIZES[0 if batched else 1 : 5])
    against.module(lambda nn: nn.AdaptiveAvgPool3d(size), x)


@pytest.mark.parametrize(
    "layer",
    [
        lambda nn: nn.MaxPool2d(2, padding=2),
        lambda nn: nn.MaxPool2d(0),
        lambda nn: nn.MaxPool2d(9),
        lambda nn: nn.AvgPool2d(2, padding=2),
        lambda nn: nn.AvgPool2d(9),
        lambda nn: nn.AvgPool2d(2, divisor_override=0),
        lambda nn: nn.MaxPool1d(2),
    ],
)
def test_errors(layer):
    with pytest.raises(RuntimeError):
        layer(tf.nn)(tf.ones(1, 1, 4, 4))


def test_examples():
    examples.run("tinyfin.nn.pool")
