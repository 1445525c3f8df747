"""Layers that change sizes, against PyTorch."""

import pytest
from nn import against, examples

import tinyfin as tf


@pytest.mark.parametrize(
    "options",
    [
        {"scale_factor": 2},
        {"size": (7, 3)},
        {"scale_factor": (1.5, 2), "mode": "bilinear"},
        {"size": 9, "mode": "bicubic", "align_corners": True},
    ],
)
def test_upsample(options):
    against.module(lambda nn: nn.Upsample(**options), against.normal(2, 3, 4, 5))


@pytest.mark.parametrize("name", ["UpsamplingNearest2d", "UpsamplingBilinear2d"])
def test_named_upsampling(name):
    against.module(lambda nn: getattr(nn, name)(scale_factor=2), against.normal(2, 3, 4, 5))


def test_pixel_shuffle():
    against.module(lambda nn: nn.PixelShuffle(2), against.normal(2, 8, 3, 2))
    against.module(lambda nn: nn.PixelUnshuffle(2), against.normal(2, 3, 4, 6))


def test_errors():
    with pytest.raises(RuntimeError, match="channels that divide"):
        tf.nn.PixelShuffle(2)(tf.ones(1, 3, 2, 2))
    with pytest.raises(RuntimeError, match="sizes that divide"):
        tf.nn.PixelUnshuffle(2)(tf.ones(1, 3, 3, 2))


def test_examples():
    examples.run("tinyfin.nn.resize")
