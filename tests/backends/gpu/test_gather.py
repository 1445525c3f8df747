"""Elements by index along an axis on a GPU: long lines, layouts, repeated and bad indices."""

import numpy as np
import pytest
import samples
from backends.gpu.alike import gpu, same

import tinyfin as tf
from tinyfin.ops.row import F

pytestmark = pytest.mark.usefixtures("gpu")
RNG = np.random.default_rng(6)


def numbers(*shape, dtype="float32"):
    return samples.tensor(RNG.normal(size=shape) * 4, dtype)


def ints(high, *shape):
    return tf.tensor(RNG.integers(0, high, size=shape))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "float64"])
def test_gather(dtype):
    x = numbers(5, 6, 7, dtype=dtype)
    for dim in range(3):
        at = ints(x.shape[dim], 4, 5, 6)
        same(lambda x, at: F.gather(x, dim, at), x, at)
        same(lambda x, at: F.gather(x, dim, at.permute(1, 0, 2)[:3].to(tf.int32)), x, at)
        same(lambda x, at: F.gather(x.flip(0, 1, 2), dim, at.flip(1)), x, at)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8", "int32", "int64"])
@pytest.mark.parametrize(
    "shape, source", [((9, 40), (7, 300)), ((3, 5000), (2, 2500)), ((2, 3, 4), (2, 3, 4))]
)
def test_scatters(dtype, shape, source):
    """Lines that are longer than what a work group sorts, in both directions."""
    x, v = numbers(*shape, dtype=dtype), numbers(*source, dtype=dtype)
    at = ints(shape[-1], *source)
    for call in (F.scatter, F.scatter_add):
        same(lambda x, at, v: call(x, -1, at, v), x, at, v)
        same(
            lambda x, at, v: call(x.transpose(0, -1), 0, at.transpose(0, -1), v.transpose(0, -1)),
            x,
            at,
            v,
        )
    same(lambda x, at: F.scatter(x, -1, at, 2), x, at)
    same(lambda v, at: F.scatter_embed(v, at, shape, len(shape) - 1), v, at)


def test_one_index_to_a_line():
    x, at, v = numbers(300, 10), ints(10, 300, 1), numbers(300, 4)
    same(lambda x, at, v: F.scatter(x, 1, at, v), x, at, v)
    same(lambda x, at, v: F.scatter_add(x, 1, at, v), x, at, v)


def test_without_axes():
    x, at = tf.tensor(3.0), tf.tensor(0)
    same(lambda x, at: F.gather(x, 0, at), x, at)
    same(lambda x, at: F.scatter_add(x, 0, at, x), x, at)
    same(lambda x, at: F.scatter(x, 0, at.reshape(1), 5.0), x, at)


@pytest.mark.parametrize("name", ["gather", "scatter", "scatter_add"])
@pytest.mark.parametrize("wrong", [-1, 3, 2**32, -(2**63)])
def test_bad_indices(name, wrong):
    x = tf.ones(2, 3).to(gpu())
    at = tf.tensor([[0, wrong], [1, 1]]).to(gpu())
    y = F.gather(x, 1, at) if name == "gather" else getattr(F, name)(x, 1, at, x)
    with pytest.raises(IndexError, match=rf"{name}: index -?\d+ is out of range for size 3"):
        y.cpu()
    assert x.cpu().tolist() == [[1.0] * 3] * 2
