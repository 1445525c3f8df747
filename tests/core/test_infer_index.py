"""Shapes, dtypes and errors of indexing, joining and padding rows."""

import numpy as np
import pytest

import tinyfin as tf


def index(*values):
    """An index tensor."""
    return tf.tensor(values, dtype=tf.int64)


def test_shapes_of_picks():
    x = tf.arange(24).reshape(2, 3, 4)
    assert x.index_select(1, index(2, 0, 2, 1)).shape == (2, 4, 4) and x.index_select(
        -1, index()
    ).shape == (2, 3, 0)
    assert tf.tensor(5).index_select(0, index(0)).shape == () and x.index_select(
        0, tf.tensor(1)
    ).shape == (1, 3, 4)
    assert x.gather(1, tf.zeros(2, 1, 4).long()).shape == (2, 1, 4) and x.gather(
        0, tf.zeros(5, 1, 2).int()
    ).shape == (5, 1, 2)
    assert x.take(index(0, 23, 5)).tolist() == [0, 23, 5] and tf.nn.functional.embedding(
        index(0, 1), tf.ones(3, 4)
    ).shape == (2, 4)
    assert tf.nn.functional.embedding(tf.zeros(2, 0).long(), tf.ones(3, 4)).shape == (2, 0, 4)
    assert x.tril().shape == x.shape and (x > 4).nonzero().shape == (19, 3)


def test_shapes_of_joins():
    x, nothing = tf.ones(2, 3), tf.zeros(0)
    assert tf.cat([x, x]).shape == (4, 3) and tf.cat([x, x, x], -1).shape == (2, 9)
    assert (
        tf.cat([nothing, x]).shape == (2, 3)
        and tf.cat([x, nothing], 1).shape == (2, 3)
        and tf.cat([nothing]).shape == (0,)
    )
    assert (
        tf.cat([x.int(), x.double()]).dtype is tf.float64
        and tf.cat([x.bool(), x.byte()]).dtype is tf.uint8
    )
    assert tf.stack([x, x], 2).shape == (2, 3, 2) and tf.stack([x], -3).shape == (1, 2, 3)
    pad = tf.nn.functional.pad
    assert (
        pad(x, (1, 2)).shape == (2, 6)
        and pad(x, (1, 2, 3, 4)).shape == (9, 6)
        and pad(x, (-1, -1)).shape == (2, 1)
    )
    assert pad(x, (-3, 0)).shape == (2, 0) and pad(x, ()).shape == (2, 3)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (
            lambda x: x.index_select(0, tf.zeros(2)),
            RuntimeError,
            "index_select: index has dtype tinyfin.float32",
        ),
        (
            lambda x: x.index_select(0, tf.zeros(1, 1).long()),
            IndexError,
            "index_select: index has shape",
        ),
        (lambda x: x.index_select(2, index(0)), IndexError, "index_select: dim 2"),
        (
            lambda x: x.index_select(0, index(2)),
            IndexError,
            "index_select: index 2 is out of range",
        ),
        (lambda x: x.index_select(0, index(-1)), IndexError, "index_select: index -1"),
        (
            lambda x: tf.tensor(1).index_select(0, index(0, 0)),
            IndexError,
            "index_select: index has 2 entries",
        ),
        (lambda x: x.gather(0, index(0)), RuntimeError, "gather: index has shape"),
        (lambda x: x.gather(0, tf.zeros(1, 9).long()), RuntimeError, "gather: .*larger in dim 1"),
        (lambda x: x.gather(0, tf.full((1, 3), 2)), (IndexError, RuntimeError), "gather: index 2"),
        (
            lambda x: x.scatter(0, tf.zeros(1, 3).long(), tf.ones(1, 3).double()),
            RuntimeError,
            "scatter: src has dtype",
        ),
        (
            lambda x: x.scatter(0, tf.zeros(1, 3).long(), tf.ones(1, 2)),
            RuntimeError,
            "scatter: .*src is smaller in dim 1",
        ),
        (
            lambda x: x.scatter_(0, tf.full((1, 3), 7), 1.0),
            (IndexError, RuntimeError),
            "scatter_?: index 7",
        ),
        (
            lambda x: x.index_add(0, index(0), tf.ones(1, 2)),
            RuntimeError,
            "index_add: source has shape",
        ),
        (
            lambda x: x.index_add(0, index(0, 1), tf.ones(1, 3)),
            RuntimeError,
            "index_add: .*sizes differ in dim 0",
        ),
        (
            lambda x: tf.nn.functional.embedding(tf.zeros(2), x),
            RuntimeError,
            "embedding: input has dtype",
        ),
        (
            lambda x: tf.nn.functional.embedding(index(0), x[0]),
            RuntimeError,
            "embedding: weight has shape",
        ),
        (lambda x: tf.nn.functional.embedding(index(9), x), IndexError, "embedding: index 9"),
        (lambda x: x.take(index(6)), IndexError, "6"),
        (lambda x: x[0].tril(), RuntimeError, "tril: input has shape"),
        (lambda x: tf.cat([x, tf.tensor(1.0)]), RuntimeError, "cat: tensor 1 has no dimensions"),
        (lambda x: tf.cat([x, x[0]]), RuntimeError, "cat: tensor 1 has shape"),
        (lambda x: tf.cat([x, tf.ones(2, 4)]), RuntimeError, "cat: .*sizes differ in dim 1"),
        (lambda x: tf.cat([x], 2), IndexError, "cat: dim 2 is out of range"),
        (lambda x: tf.nn.functional.pad(x, (1,)), (RuntimeError, ValueError), "pad"),
        (
            lambda x: tf.nn.functional.pad(x, (1,) * 6),
            (RuntimeError, ValueError, NotImplementedError),
            "pad",
        ),
        (lambda x: tf.nn.functional.pad(x, (-4, 0)), RuntimeError, "pad.*negative"),
        (
            lambda x: tf.nn.functional.pad(x, ((1 << 63) - 1, (1 << 63) - 1)),
            (RuntimeError, MemoryError),
            "pad",
        ),
        (lambda x: tf.nn.functional.pad(x, (1 << 59, 1 << 59)), (RuntimeError, MemoryError), "pad"),
        (lambda x: x.masked_fill(tf.ones(7) > 0, 0.0), RuntimeError, "broadcast"),
    ],
)
def test_errors(call, kind, words):
    x = tf.arange(6.0).reshape(2, 3)
    with pytest.raises(kind, match=words):
        call(x)
    assert x.tolist() == np.arange(6.0).reshape(2, 3).tolist()
