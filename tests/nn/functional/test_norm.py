"""Normalisations as functions, against PyTorch."""

import numpy as np
import pytest
from nn import against

import tinyfin as tf

F = tf.nn.functional
normal = against.normal
X = normal(4, 6, 5) * 3 + 1
W, B = normal(6, seed=1), normal(6, seed=2)
MEAN, VAR = against.Fixed(normal(6, seed=3)), against.Fixed(np.abs(normal(6, seed=4)) + 0.1)


@pytest.mark.parametrize("affine", [{}, {"weight": W}, {"weight": W, "bias": B}])
def test_batch_norm(affine):
    against.function("batch_norm", X, None, None, training=True, tolerance=5e-5, **affine)
    against.function("batch_norm", X, MEAN, VAR, training=False, **affine)
    against.function(
        "batch_norm", X, MEAN, VAR, training=True, momentum=0.4, eps=1e-2, tolerance=5e-5, **affine
    )


def test_batch_norm_moves_statistics():
    got = []
    for m in (tf, against.torch):
        mean, var = m.zeros(6), m.ones(6)
        m.nn.functional.batch_norm(against.tensor(m, X), mean, var, training=True, momentum=0.3)
        got.append((mean, var))
    against.close(got[0][0], got[1][0])
    against.close(got[0][1], got[1][1])


@pytest.mark.parametrize("affine", [{}, {"weight": W, "bias": B}])
def test_instance_and_group_norm(affine):
    against.function("instance_norm", X, tolerance=5e-5, **affine)
    against.function("instance_norm", X, MEAN, VAR, use_input_stats=False, **affine)
    against.function("group_norm", X, 3, tolerance=5e-5, **affine)


def test_layer_and_rms_norm():
    w, b = normal(6, 5, seed=5), normal(6, 5, seed=6)
    against.function("layer_norm", X, (6, 5), w, b)
    against.function("layer_norm", X, [5], tolerance=5e-5)
    against.function("rms_norm", X, (6, 5), w, 1e-3)
    against.function("rms_norm", X, (5,))


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: F.batch_norm(x, None, None), RuntimeError),
        (lambda x: F.batch_norm(x[:1, :, :1], None, None, training=True), ValueError),
        (lambda x: F.batch_norm(x, tf.zeros(3), tf.ones(3), training=True), RuntimeError),
        (lambda x: F.instance_norm(x[..., :1]), ValueError),
        (lambda x: F.instance_norm(x[0]), RuntimeError),
        (lambda x: F.instance_norm(x, weight=tf.ones(3)), RuntimeError),
        (lambda x: F.group_norm(x, 4), RuntimeError),
        (lambda x: F.layer_norm(x, (4,)), RuntimeError),
        (lambda x: F.layer_norm(x, (5,), tf.ones(4)), RuntimeError),
        (lambda x: F.rms_norm(x, (4,)), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call(tf.ones(4, 6, 5))
