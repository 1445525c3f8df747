"""Losses of class labels and checks of values on a GPU: the CPU's bits, and bad labels told later."""

import numpy as np
import pytest
from backends.gpu.alike import gpu, same_row

import tinyfin as tf
from tinyfin.ops.row import F

pytestmark = pytest.mark.usefixtures("gpu")


def labels(rng, classes, *shape):
    """Some of them to be ignored."""
    return tf.tensor(np.where(rng.random(shape) < 0.2, -100, rng.integers(0, classes, shape)))


def both(x, target, w, reduction, ignore=-100):
    """Both losses and their gradients."""
    loss, total = same_row("nll_loss_forward", x, target, w, reduction, ignore)
    g = tf.randn(loss.shape).to(x.dtype)
    same_row("nll_loss_grad", g, target, w, total, reduction, ignore, tuple(x.shape))
    _, total, shift, log = same_row("cross_entropy_forward", x, target, w, reduction, ignore)
    same_row("cross_entropy_grad", g, x, target, w, total, shift, log, reduction, ignore)


@pytest.mark.parametrize("shape", [(5000, 7), (3, 2500), (40, 64), (4, 3, 5, 6), (0, 4), (2, 5, 0)])
def test_shapes(shape, rng):
    """Rows of several blocks, several blocks of rows, classes across memory, none."""
    target = labels(rng, shape[1], shape[0], *shape[2:])
    for reduction in ("none", "mean", "sum"):
        both(tf.randn(shape), target, tf.rand(shape[1]), reduction)


def test_layouts(rng):
    x = tf.randn(6, 5, 4, 3).permute(2, 0, 3, 1)
    target = labels(rng, 6, 3, 4, 5).transpose(0, 1)
    both(x, target, tf.rand(12)[::2], "none")
    both(x, target.flip((0, 2)), None, "mean")


def test_dtypes_of_labels(rng):
    target = tf.tensor(rng.integers(0, 9, 50)).to(tf.uint8)
    both(tf.randn(50, 9).to(tf.float16), target, tf.rand(9).to(tf.bfloat16), "mean", 3)


def test_all_labels_ignored():
    both(tf.randn(4, 3), tf.full((4,), 7), None, "mean", 7)


@pytest.mark.parametrize("label", [4, -1, -100, 1 << 40, -(1 << 32), (1 << 32) + 1])
def test_bad_labels(label):
    """Told when the result is read; nothing is read or written where it must not be."""
    x, target = tf.randn(3, 4, device=gpu()), tf.tensor([1, label, 2]).to(gpu())
    ignored = 9 if label == -100 else -100
    with pytest.raises(
        IndexError, match=f"cross_entropy: index {label} is out of range for size 4"
    ):
        F.cross_entropy_forward(x, target, None, "mean", ignored)[0].cpu()
    one = tf.ones(()).to(gpu())
    with pytest.raises(IndexError, match=f"nll_loss: index {label} is out of range for size 4"):
        F.nll_loss_grad(one, target, None, one, "mean", ignored, (3, 4)).cpu()
    assert one.cpu().item() == 1.0


@pytest.mark.parametrize(
    "name, values, bad",
    [
        ("check_not_nan", [0.0, float("inf"), -1.0], False),
        ("check_not_nan", [0.0, float("nan"), -1.0], True),
        ("check_unit_interval", [0.0, -0.0, 1.0, 1e-40], False),
        ("check_unit_interval", [0.0, 1.5], True),
        ("check_unit_interval", [0.0, -1e-3], True),
        ("check_unit_interval", [float("nan")], True),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_checks(name, values, bad, dtype):
    """The CPU's error, when the host next waits."""
    x = tf.tensor(values * 900, dtype=getattr(tf, dtype))
    here = there = ""
    try:
        getattr(F, name)(x, "target")
    except ValueError as error:
        here = str(error)
    try:
        assert getattr(F, name)(x.to(gpu()), "target").item() is True
    except ValueError as error:
        there = str(error)
    assert bool(here) == bad
    assert there.partition("; found")[0] == here
    assert getattr(F, name)(tf.ones(3).to(gpu()), "input").item() is True
