"""Changing sizes as functions, against PyTorch."""

import pytest
from nn import against, examples

import tinyfin as tf

F = tf.nn.functional
normal = against.normal
SIZES = (5, 4, 3)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area"])
@pytest.mark.parametrize(
    "how",
    [
        {"size": 7},
        {"size": 2},
        {"scale_factor": 2},
        {"scale_factor": 1.7},
        {"scale_factor": 0.6, "recompute_scale_factor": True},
    ],
)
def test_any_dimensions(n, mode, how):
    against.function("interpolate", normal(2, 3, *SIZES[:n]), mode=mode, **how)


@pytest.mark.parametrize(
    "n, mode", [(1, "linear"), (2, "bilinear"), (2, "bicubic"), (3, "trilinear")]
)
@pytest.mark.parametrize("align_corners", [None, False, True])
@pytest.mark.parametrize(
    "how",
    [
        {"size": 7},
        {"size": 2},
        {"size": 1},
        {"scale_factor": 2},
        {"scale_factor": 1.7},
        {"scale_factor": 0.7, "recompute_scale_factor": True},
    ],
)
def test_between_elements(n, mode, align_corners, how):
    against.function(
        "interpolate",
        normal(2, 3, *SIZES[:n]),
        mode=mode,
        align_corners=align_corners,
        tolerance=5e-5,
        **how,
    )


def test_each_its_own():
    against.function("interpolate", normal(2, 3, 4, 5), size=(3, 8))
    against.function("interpolate", normal(2, 3, 4, 5), scale_factor=(0.5, 2.0), mode="bilinear")


@pytest.mark.parametrize(
    "options, error",
    [
        ({}, ValueError),
        ({"size": 2, "scale_factor": 2}, ValueError),
        ({"size": (2, 3, 4)}, ValueError),
        ({"scale_factor": (2, 3, 4)}, ValueError),
        ({"size": 2, "mode": "linear"}, NotImplementedError),
        ({"size": 2, "mode": "x"}, NotImplementedError),
        ({"size": 2, "align_corners": True}, ValueError),
        ({"size": 2, "recompute_scale_factor": True}, ValueError),
        ({"scale_factor": 0.1}, RuntimeError),
        ({"scale_factor": float("nan")}, RuntimeError),
        ({"scale_factor": 1e30}, RuntimeError),
        ({"scale_factor": "2"}, TypeError),
        ({"size": 2.5}, TypeError),
        ({"size": 2, "mode": "bilinear", "antialias": True}, NotImplementedError),
    ],
)
def test_errors(options, error):
    with pytest.raises(error, match="interpolate"):
        F.interpolate(tf.ones(1, 1, 4, 4), **options)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area"])
def test_integers_have_no_parts(mode):
    with pytest.raises(NotImplementedError, match=f"interpolate: mode '{mode}' on input of dtype"):
        F.interpolate(tf.ones(1, 1, 4, 4).int(), scale_factor=2, mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_pictures_of_bytes(mode):
    """Rounded once, in range. PyTorch's weights have few bits: its bilinear results are one off at
    times, its bicubic ones fifteen."""
    torch = pytest.importorskip("torch")
    x = against.integers(256, 2, 3, 9, 11).astype("uint8")
    got = F.interpolate(tf.tensor(x), size=(13, 17), mode=mode)
    exact = torch.nn.functional.interpolate(torch.tensor(x).double(), size=(13, 17), mode=mode)
    assert got.dtype is tf.uint8
    assert abs(got.double().numpy() - exact.numpy().clip(0, 255)).max() < 0.501


def test_pixel_shuffle():
    against.function("pixel_shuffle", normal(2, 12, 3, 2), 2)
    against.function("pixel_shuffle", normal(9, 3, 2), 3)
    against.function("pixel_unshuffle", normal(2, 3, 4, 6), 2)
    against.function("pixel_unshuffle", normal(2, 2, 3, 4, 6), 2)
    for call in (F.pixel_shuffle, F.pixel_unshuffle):
        with pytest.raises(RuntimeError, match="at least"):
            call(tf.ones(2, 2), 2)


def test_examples():
    examples.run("tinyfin.nn.functional.resize")


@pytest.mark.parametrize(
    "n, mode", [(1, "linear"), (2, "bilinear"), (3, "trilinear"), (2, "nearest")]
)
def test_factors_that_change_no_size(n, mode):
    against.function("interpolate", normal(2, 3, *SIZES[:n]), scale_factor=1.15, mode=mode)
