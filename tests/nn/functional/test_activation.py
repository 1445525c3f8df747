"""Activations as functions, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

import tinyfin as tf

X = np.concatenate(
    [against.normal(20) * 4, np.array([0.0, -0.0, 3.0, -3.0, 1.0, -1.0, 30.0, -30.0], "float32")]
).reshape(4, 7)
CASES = [
    ("relu", {}),
    ("relu6", {}),
    ("leaky_relu", {}),
    ("leaky_relu", {"negative_slope": 0.2}),
    ("elu", {}),
    ("elu", {"alpha": 0.3}),
    ("selu", {}),
    ("celu", {"alpha": 1.7}),
    ("gelu", {}),
    ("gelu", {"approximate": "tanh"}),
    ("silu", {}),
    ("mish", {}),
    ("softplus", {}),
    ("softplus", {"beta": 3.0, "threshold": 5.0}),
    ("softsign", {}),
    ("tanhshrink", {}),
    ("hardtanh", {}),
    ("hardtanh", {"min_val": -2.0, "max_val": 0.5}),
    ("hardswish", {}),
    ("hardsigmoid", {}),
    ("threshold", {"threshold": 1.0, "value": 5.0}),
    ("hardshrink", {}),
    ("softshrink", {"lambd": 0.7}),
    ("sigmoid", {}),
    ("logsigmoid", {}),
    ("tanh", {}),
    ("softmax", {"dim": 1}),
    ("log_softmax", {"dim": 0}),
    ("softmin", {"dim": -1}),
]


@pytest.mark.parametrize("name, options", CASES)
def test_values_and_gradients(name, options):
    against.consistent(name, (X[:2],), options)
    against.function(name, X, smooth=False, **options)


@pytest.mark.parametrize(
    "name",
    [
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "selu",
        "celu",
        "silu",
        "mish",
        "hardtanh",
        "hardswish",
        "hardsigmoid",
    ],
)
def test_in_place_with_gradient(name):
    results = []
    for m in (tf, against.torch):
        x = against.tensor(m, X)
        y = x * 2
        z = getattr(m.nn.functional, name)(y, inplace=True)
        assert z is y
        z.sum().backward()
        results.append((z, x.grad))
    against.close(results[0][0], results[1][0])
    against.close(results[0][1], results[1][1])


def test_prelu():
    w = np.array([0.25], "float32")
    against.consistent("prelu", (X[:2], w), {})
    against.function("prelu", X, w, smooth=False)
    against.function("prelu", against.normal(2, 3, 4), against.normal(3, seed=1))
    against.function("prelu", against.normal(5), w)
    with pytest.raises(RuntimeError, match="3 channels"):
        tf.nn.functional.prelu(tf.ones(2, 3), tf.ones(2))


@pytest.mark.parametrize("dim", [0, -1, 1])
def test_glu(dim):
    against.function("glu", against.normal(4, 6, 3)[..., :2].copy(), dim=dim)


def test_softmax_casts_first():
    against.function("softmax", X.astype("float16"), dim=1, dtype=None, tolerance=1e-2)
    y = tf.nn.functional.softmax(tf.ones(2, dtype=tf.float16), dim=0, dtype=tf.float32)
    assert y.dtype == tf.float32


def test_gumbel_softmax():
    tf.manual_seed(0)
    logits = tf.tensor([0.1, 0.6, 0.3]).log().expand(4000, 3)
    hard = tf.nn.functional.gumbel_softmax(logits, hard=True)
    assert set(hard.flatten().tolist()) <= {0.0, 1.0}
    shares = hard.mean(0).tolist()
    assert shares == pytest.approx([0.1, 0.6, 0.3], abs=0.03)
    x = tf.zeros(5, 3, requires_grad=True)
    y = tf.nn.functional.gumbel_softmax(x, tau=0.5, hard=True, dim=1)
    (y * tf.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.abs().sum().item() > 0
    soft = tf.nn.functional.gumbel_softmax(x, dim=0)
    assert soft.sum(0).tolist() == pytest.approx([1.0] * 3, abs=1e-5)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda F, x: F.hardtanh(x, 1.0, -1.0), ValueError, "above max_val"),
        (lambda F, x: F.softshrink(x, -1.0), RuntimeError, "lambd is -1.0"),
        (lambda F, x: F.glu(x), RuntimeError, "expected an even one"),
        (lambda F, x: F.gelu(x, "x"), RuntimeError, "approximate"),
        (lambda F, x: F.softmax(x, 5), IndexError, "5"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(tf.nn.functional, tf.ones(3))


def test_examples():
    examples.run("tinyfin.nn.functional.activation")
