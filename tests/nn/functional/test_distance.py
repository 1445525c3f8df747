"""Lengths, distances and angles, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

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
