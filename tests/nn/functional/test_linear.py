"""Linear maps and look-ups as functions, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

import tinyfin as tf

F = tf.nn.functional
normal, integers = against.normal, against.integers


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3)])
def test_linear(shape):
    against.function("linear", normal(*shape), normal(5, 3, seed=1), normal(5, seed=2))
    against.function("linear", normal(*shape), normal(5, 3, seed=1))


def test_bilinear():
    against.function(
        "bilinear", normal(4, 2), normal(4, 3, seed=1), normal(5, 2, 3, seed=2), normal(5, seed=3)
    )


@pytest.mark.parametrize(
    "options", [{}, {"padding_idx": 1}, {"padding_idx": -2}, {"scale_grad_by_freq": True}]
)
def test_embedding(options):
    # The options change gradients on purpose.
    smooth = not options
    against.function("embedding", integers(4, 3, 5), normal(4, 2), smooth=smooth, **options)


def test_embedding_of_int32():
    against.function("embedding", integers(4, 3).astype("int32"), normal(4, 2))


def test_embedding_shortens_rows():
    tables = []
    for m in (tf, against.torch):
        w = against.tensor(m, normal(5, 3) * 3, False)
        y = m.nn.functional.embedding(against.tensor(m, np.array([1, 1, 4])), w, max_norm=1.0)
        tables.append((w, y))
    against.close(tables[0][0], tables[1][0])
    against.close(tables[0][1], tables[1][1])


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
@pytest.mark.parametrize("classes", [-1, 9])
def test_one_hot(shape, classes):
    against.function("one_hot", np.asarray(integers(6, *shape)), classes)


def test_one_hot_of_nothing():
    assert tuple(F.one_hot(tf.zeros(0, 2, dtype=tf.int64), 3).shape) == (0, 2, 3)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: F.one_hot(tf.tensor([-1])), "holds -1"),
        (lambda: F.one_hot(tf.tensor([5]), 3), "holds 5"),
        (lambda: F.one_hot(tf.tensor([1.0])), "expected int64"),
        (lambda: F.one_hot(tf.tensor([1], dtype=tf.int32)), "expected int64"),
        (lambda: F.one_hot(tf.zeros(0, dtype=tf.int64)), "cannot be told"),
        (lambda: F.one_hot(tf.tensor([0]), 0), "num_classes is 0"),
        (lambda: F.embedding(tf.tensor([0.5]), tf.ones(2, 2)), None),
        (lambda: F.bilinear(tf.ones(2, 3), tf.ones(3, 3), tf.ones(1, 3, 3)), "do not fit"),
        (lambda: F.linear(tf.ones(2, 3), tf.ones(2, 4)), None),
    ],
)
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_out_of_range():
    with pytest.raises(IndexError):
        F.embedding(tf.tensor([2]), tf.ones(2, 2))
    with pytest.raises(AssertionError, match="padding_idx is 2"):
        F.embedding(tf.tensor([0]), tf.ones(2, 2), padding_idx=2)


def test_examples():
    examples.run("tinyfin.nn.functional.linear")
