"""Linear interpolation along an axis: the bits of its formula on every road."""

import numpy as np
import pytest
from backends.cpu.fused import (
    check_formula,
    check_instruction_sets,
    check_threads,
    digest,
    layouts,
    run,
    tensor,
)

import tinyfin as tf
from tinyfin.ops.row import F

# shape, dim: lines, and rows of numbers beside one another
SHAPES = [((3, 40, 14), 2), ((5, 7, 33), 1), ((9, 4, 5), 0), ((2, 3, 5000), 2), ((700, 3, 5), 1)]


def between(shape, dim, dtype, seed=0):
    """x, a cotangent, and some slices of an axis."""
    rng, n = np.random.default_rng(seed), shape[dim]
    m = 2 * n + 1
    low, high = rng.integers(0, n, m), rng.integers(0, n, m)
    g = rng.standard_normal((*shape[:dim], m, *shape[dim + 1 :]))
    part = tensor(rng.uniform(0, 1, m), dtype)
    return rng.standard_normal(shape), g, tf.tensor(low), tf.tensor(high), part


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_bits_of_the_formula(dtype, shape, dim):
    x, g, low, high, part = between(shape, dim, dtype)
    for t, u in zip(layouts(x), layouts(g)):
        t, u = t.to(part.dtype), u.to(part.dtype)
        check_formula("select_between", t, low, high, part, dim)
        check_formula("between_embed", u, low, high, part, shape, dim)


def test_bad_index():
    x, at = tf.ones(2, 3), tf.tensor([0, 3])
    with pytest.raises(IndexError):
        F.select_between(x, tf.tensor([0, 1]), at, tf.zeros(2), 1)
    with pytest.raises(IndexError):
        F.between_embed(tf.ones(2, 2), at, tf.tensor([0, 1]), tf.zeros(2), (2, 3), 1)
    with pytest.raises(RuntimeError, match="select_between: part is"):
        F.select_between(x, at, at, tf.zeros(3), 1)


def results():
    for shape, dim in SHAPES:
        x, g, low, high, part = between(shape, dim, "float32")
        x, g = tensor(x, "float32"), tensor(g, "float32")
        yield from run("select_between", x, low, high, part, dim)
        yield from run("between_embed", g, low, high, part, shape, dim)


def test_threads_do_not_change_bits():
    check_threads(results)


def test_instruction_sets_do_not_change_bits():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    print(digest(results()))
