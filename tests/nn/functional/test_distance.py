"""Lengths, distances and angles, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

import tinyfin as tf

F = tf.nn.functional
normal = against.normal


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_normalize(p, dim):
    against.function("normalize", normal(3, 4), p=p, dim=dim, tolerance=5e-5)


def test_normalize_zeros():
    x = normal(3, 4)
    x[1] = 0
    against.function("normalize", x, smooth=False)
    against.function("normalize", normal(2, 3, 4), dim=(0, 2))


@pytest.mark.parametrize(
    "shapes, dim",
    [(((3, 4), (3, 4)), 1), (((3, 4), (4,)), 1), (((3, 1, 4), (5, 4)), -1), (((3, 4), (3, 4)), 0)],
)
def test_cosine_similarity(shapes, dim):
    a, b = shapes
    against.function("cosine_similarity", normal(*a), normal(*b, seed=1), dim=dim)


def test_cosine_of_zero():
    x = np.zeros((2, 3), "float32")
    against.function("cosine_similarity", x, normal(2, 3), grad=False)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("keepdim", [False, True])
def test_pairwise_distance(p, keepdim):
    against.function("pairwise_distance", normal(3, 4), normal(3, 4, seed=1), p=p, keepdim=keepdim)
    against.function("pairwise_distance", normal(3, 4), normal(4, seed=1), p=p)


def test_examples():
    examples.run("tinyfin.nn.functional.distance")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("p", [2.0, 3.0, 2.5, 0.5])
def test_halves_are_computed_in_float32(p, dtype):
    """Squares of float16 overflow from 256, and vanish below 2^-12."""
    kind = getattr(tf, dtype)
    for scale in (300.0, 1e-3):
        x = (tf.tensor(normal(3, 8)).abs() + 0.5) * scale
        y = (tf.tensor(normal(3, 8, seed=1)).abs() + 0.5) * -scale
        half, other = x.to(kind), y.to(kind)
        for want, got in (
            (F.normalize(half.float(), p), F.normalize(half, p)),
            (
                F.pairwise_distance(half.float(), other.float(), p),
                F.pairwise_distance(half, other, p),
            ),
            (half.float().norm(p, 1), half.norm(p, 1)),
            (F.cosine_similarity(half.float(), other.float()), F.cosine_similarity(half, other)),
        ):
            assert got.dtype is half.dtype and want.isfinite().all()
            most = 65504.0 if dtype == "float16" else float("inf")
            want = tf.where(want.abs() > most, float("inf"), want)
            np.testing.assert_allclose(got.float().numpy(), want.numpy(), rtol=0.02)
