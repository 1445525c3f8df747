"""Slices by index on a GPU: sizes that span work groups, layouts, repeated and bad indices."""

import numpy as np
import pytest
import samples
from backends.gpu.alike import gpu, same

import tinyfin as tf
from tinyfin.ops.row import F

pytestmark = pytest.mark.usefixtures("gpu")
RNG = np.random.default_rng(5)


def numbers(*shape, dtype="float32"):
    return samples.tensor(RNG.normal(size=shape) * 4, dtype)


def ints(high, *shape, low=0):
    return tf.tensor(RNG.integers(low, high, size=shape))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "int64", "float64"])
@pytest.mark.parametrize("width", [1, 3, 8, 64])
def test_reads(dtype, width):
    """Widths that move by elements, by some of them, by 16 bytes."""
    x, at = numbers(40, width, dtype=dtype), ints(40, 300)
    same(lambda x, at: F.index_select(x, 0, at), x, at)
    same(lambda x, at: F.index_select(x[1:, ::2], 0, at % 39), x, at)
    same(lambda x, at: F.index_select(x.t(), 1, at), x, at)
    same(lambda x, at: F.index_select(x.flip(0, 1), 0, at.flip(0)), x, at)
    same(lambda x, at: x.reshape(2, 20, width)[:, at % 20], x, at)


def test_reads_of_several_indices():
    x = numbers(4, 5, 6, 7)
    a, b = ints(4, 3, 8, low=-4), ints(6, 3, 8, low=-6)
    same(lambda x, a, b: x[a, :, b], x, a, b)
    same(lambda x, a, b: x[:, :, b, a], x, a, b)
    same(lambda x, a, b: x[a.t(), b.t() % 5, :, 1:3], x, a, b)
    same(lambda x, a, b: x.permute(3, 1, 2, 0)[:, :, b, a], x, a, b)
    same(lambda x, a: x[a.to(tf.int32)], x, a)
    same(lambda x, a: x.expand(3, 4, 5, 6, 7)[:, a], x, a)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int16", "int64", "bool"])
@pytest.mark.parametrize("rows, count, width", [(7, 300, 5), (50, 5000, 1), (3000, 2100, 3)])
def test_additions_in_order(dtype, rows, count, width):
    """Runs longer than what one sort or one batch of loads takes."""
    v, at = numbers(count, width, dtype=dtype), ints(rows, count)
    same(lambda v, at: F.index_embed(v, at, (rows, width), 0), v, at)
    if dtype != "bool":
        x = numbers(rows, width, dtype=dtype)
        same(lambda x, at, v: x.index_add(0, at, v, alpha=3), x, at, v)


def test_additions_along_other_axes():
    x, v, at = numbers(3, 9, 4, 5), numbers(3, 200, 4, 5), ints(9, 200)
    same(lambda x, at, v: x.index_add(1, at, v, alpha=0.3), x, at, v)
    same(lambda x, at, v: x.index_add(1, at, v.flip(1, 2)), x, at, v)
    same(lambda x, at, v: x.permute(0, 1, 3, 2).index_add(1, at, v.permute(0, 1, 3, 2)), x, at, v)
    same(lambda x, at, v: x.index_add(1, at, v[:1, :, :, :1].expand(v.shape)), x, at, v)
    same(lambda x, at, v: x.index_copy(1, at, v), x, at, v)
    same(
        lambda x, at, v: x.index_copy(1, at, v.transpose(2, 3).contiguous().transpose(2, 3)),
        x,
        at,
        v,
    )
    same(lambda x, at: x.index_fill(1, at, 2.5), x, at)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_puts(accumulate, dtype):
    x = numbers(4, 5, 6, 7, dtype=dtype)
    a, b = ints(4, 3, 40, low=-4), ints(6, 3, 40, low=-6)
    v = numbers(3, 40, 5, 7, dtype=dtype)
    put = F.index_put
    same(lambda x, v, a, b: put(x, v, (a, b), 5, accumulate), x, v, a, b)
    same(lambda x, v, a, b: put(x, v[:, :1, :, :1], (a, b), 5, accumulate), x, v, a, b)
    same(lambda x, v, a, b: put(x, v[0, :5, 0, 0].reshape(5, 1), (a, b), 5, accumulate), x, v, a, b)
    same(lambda x, a, b: put(x, 1.5, (a, b), 12, accumulate), x, a % 5, b)
    same(lambda x, v, a: put(x, v[0, 0, 0], (a,), 1, accumulate), x, v, a)


def test_gradients():
    w, at = numbers(50, 12), ints(50, 40, 30)

    def gradient(w, at):
        w = w.detach().requires_grad_()
        y = tf.nn.functional.embedding(at, w, padding_idx=3)
        return tf.autograd.grad((y * y).sum(), [w])

    same(gradient, w, at)


def test_empty():
    x, none = numbers(4, 0, 3), tf.zeros(0, dtype=tf.int64)
    same(lambda x, at: F.index_select(x, 2, at), x, ints(3, 5))
    same(lambda x, at: F.index_select(x, 0, at), x, none)
    same(lambda x, at: x.index_add(0, at, x[:0]), numbers(4, 3), none)
    same(lambda x, at: F.index_embed(x, at, (5, 3), 0), numbers(0, 3), none)


BAD = {
    "index_select": lambda x, at: F.index_select(x, 0, at),
    "embedding": lambda x, at: tf.nn.functional.embedding(at, x),
    "index": lambda x, at: x[at],
    "index_add": lambda x, at: x.index_add(0, at, x[:3]),
    "index_copy": lambda x, at: x.index_copy(0, at, x[:3]),
    "index_fill": lambda x, at: x.index_fill(0, at, 1.0),
    "index_put": lambda x, at: F.index_put(x, 1.0, (at,), 1, True),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("wrong", [4, -5, 2**32 + 1, -(2**62)])
def test_bad_indices(name, wrong):
    """They are told when the device is waited for; the device goes on."""
    at = tf.tensor([1, wrong, 2]).to(gpu())
    x = tf.ones(4, 3).to(gpu())
    y = BAD[name](x, at)
    with pytest.raises(IndexError, match=rf"{name}: index -?\d+ is out of range for size 4"):
        y.cpu()
    assert x.cpu().tolist() == [[1.0] * 3] * 4


def test_bad_indices_of_what_is_empty():
    x = tf.zeros(3, 0).to(gpu())
    F.index_select(x, 0, tf.tensor([5]).to(gpu()))
    with pytest.raises(IndexError, match="index 5 is out of range for size 3"):
        x.cpu()
        tf.ones(1).to(gpu()).cpu()


@pytest.mark.parametrize("dtype", ["bool", "float32", "bfloat16", "int64"])
def test_nonzero(dtype):
    """More than one part, of a view too."""
    x = samples.tensor((RNG.normal(size=(30, 41, 20)) > 1) * 1.0, dtype)
    same(lambda x: F.nonzero(x), x)
    same(lambda x: F.nonzero(x.permute(2, 0, 1)[::2].flip(1)), x)
    same(lambda x: F.nonzero_sized(x, 100), x)
    same(lambda x: F.nonzero_sized(x, 25000), x)
    same(lambda x: x[x != 0], x)
