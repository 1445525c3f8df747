"""Losses as functions: what their modules do not show, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

import tinyfin as tf

F = tf.nn.functional
normal = against.normal
X, Y, W = normal(3, 4), normal(3, 4, seed=1), np.abs(normal(3, 4, seed=2))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_weights(name, reduction):
    against.function(name, X, Y, weight=against.Fixed(W), reduction=reduction)
    with pytest.raises(ValueError, match="weight is"):
        getattr(F, name)(tf.ones(2), tf.ones(2), weight=tf.ones(3))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_broadcasting_warns(name):
    with pytest.warns(UserWarning, match="broadcast"):
        y = getattr(F, name)(tf.ones(2, 3), tf.zeros(3))
    assert y.item() > 0
    with pytest.raises(RuntimeError), pytest.warns(UserWarning):
        getattr(F, name)(tf.ones(2, 3), tf.ones(2))


@pytest.mark.parametrize(
    "name",
    [
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "nll_loss",
        "cross_entropy",
        "binary_cross_entropy",
        "kl_div",
        "binary_cross_entropy_with_logits",
        "hinge_embedding_loss",
        "soft_margin_loss",
    ],
)
def test_unknown_reductions(name):
    labels = tf.tensor([0, 1]) if name in ("nll_loss", "cross_entropy") else tf.ones(2, 2)
    with pytest.raises(ValueError, match="'x'"):
        getattr(F, name)(tf.ones(2, 2), labels, reduction="x")


def test_older_switches():
    against.function("mse_loss", X, Y, None, False)
    against.function("l1_loss", X, Y, False)
    against.function("cross_entropy", X, np.array([0, 1, 3]), None, False)
    against.function("binary_cross_entropy_with_logits", X, W, reduce=False)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: F.cross_entropy(tf.ones(2, 3), tf.tensor([0, 3])), IndexError),
        (lambda: F.cross_entropy(tf.ones(2, 3), tf.tensor([0, -1])), IndexError),
        (lambda: F.cross_entropy(tf.ones(2, 3), tf.tensor([0])), ValueError),
        (lambda: F.cross_entropy(tf.ones(2, 3), tf.tensor([0.0, 1.0])), RuntimeError),
        (lambda: F.cross_entropy(tf.ones(2, 3), tf.tensor([0, 1]), tf.ones(4)), RuntimeError),
        (
            lambda: F.cross_entropy(tf.ones(2, 3), tf.tensor([0, 1]), label_smoothing=1.5),
            RuntimeError,
        ),
        (lambda: F.nll_loss(tf.ones(2, 3, 4), tf.zeros(2, 5, dtype=tf.int64)), RuntimeError),
        (lambda: F.nll_loss(tf.ones(2, 3), tf.tensor([0, 3])), IndexError),
        (lambda: F.binary_cross_entropy(tf.ones(2, 3), tf.ones(3)), ValueError),
        (lambda: F.binary_cross_entropy(tf.ones(3) * 2, tf.ones(3)), RuntimeError),
        (lambda: F.binary_cross_entropy_with_logits(tf.ones(2, 3), tf.ones(3)), ValueError),
        (lambda: F.smooth_l1_loss(tf.ones(2), tf.ones(2), beta=-1.0), RuntimeError),
        (lambda: F.huber_loss(tf.ones(2), tf.ones(2), delta=0.0), RuntimeError),
        (lambda: F.margin_ranking_loss(tf.ones(2), tf.ones(2), tf.ones(1, 2)), RuntimeError),
        (lambda: F.cosine_embedding_loss(tf.ones(2, 2), tf.ones(2), tf.ones(2)), RuntimeError),
        (
            lambda: F.triplet_margin_loss(tf.ones(2), tf.ones(2), tf.ones(2), margin=-1.0),
            ValueError,
        ),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call()


def test_all_ignored_is_nan():
    y = F.cross_entropy(tf.ones(2, 3), tf.tensor([-100, -100]))
    assert y.item() != y.item()
    assert F.cross_entropy(tf.ones(2, 3), tf.tensor([-100, -100]), reduction="sum").item() == 0.0


@pytest.mark.parametrize("logits", [[1e30, -1e30], [3e4, 3e4], [-float("inf"), 0.0]])
def test_extreme_logits(logits):
    x = np.array([logits], "float32")
    against.function("cross_entropy", x, np.array([1]), smooth=False)


def test_infinite_and_saturated():
    x = np.array([100.0, -100.0, 0.0], "float32")
    y = np.array([1.0, 0.0, 1.0], "float32")
    against.function("binary_cross_entropy_with_logits", x, y)


def test_examples():
    examples.run("tinyfin.nn.functional.loss")
