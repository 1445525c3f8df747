"""Copies: axes in another order, rows that repeat themselves, what kernels have copied in order first."""

import numpy as np
import pytest

import tinyfin as tf
from tinyfin.ops.row import F

TURNS = [
    ((2, 3, 50, 60), (0, 2, 3, 1)),  # planes beside one another, and back
    ((2, 50, 60, 3), (0, 3, 1, 2)),
    ((3, 9, 4100), (2, 1, 0)),
    ((2, 130, 70), (0, 2, 1)),
    ((1, 65, 17, 33), (0, 3, 2, 1)),
    ((5, 8, 300), (2, 0, 1)),
    ((7, 2), (1, 0)),
    ((2, 64, 200, 100), (0, 2, 3, 1)),  # more than caches hold
    ((1600, 1664), (1, 0)),
]


@pytest.mark.parametrize("target", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("source", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape, order", TURNS, ids=str)
def test_axes_in_another_order(shape, order, source, target, rng):
    """Dense results, and results that start anywhere among others."""
    numbers = rng.integers(0, 100, shape)
    x = tf.tensor(numbers.astype(source)).permute(order)
    want = numbers.transpose(order).astype(target)
    np.testing.assert_array_equal(x.to(getattr(tf, target), copy=True).contiguous().numpy(), want)
    field = tf.full([n + 3 for n in want.shape], 101, dtype=getattr(tf, target))
    inner = tuple(slice(1, -2) for _ in want.shape)
    field[inner].copy_(x)
    np.testing.assert_array_equal(field[inner].numpy(), want)
    assert (field == 101).sum() == field.numel() - want.size


def test_axes_in_another_order_by_one_thread_or_many(rng):
    x = tf.tensor(rng.standard_normal((3, 70, 90, 5)).astype("float32"))
    before, found = tf.get_num_threads(), set()
    try:
        for n in (1, 2, 5):
            tf.set_num_threads(n)
            found.add(x.permute(3, 0, 2, 1).contiguous().numpy().tobytes())
    finally:
        tf.set_num_threads(before)
    assert len(found) == 1


def threads_agree(compute):
    """The bytes of a result, the same for every number of threads."""
    before, found = tf.get_num_threads(), set()
    try:
        for n in (1, 2, 5):
            tf.set_num_threads(n)
            found.add(compute().numpy().tobytes())
    finally:
        tf.set_num_threads(before)
    assert len(found) == 1
    return found.pop()


ACROSS = [
    lambda x: x.sum(),
    lambda x: x.sum(-1),
    lambda x: x.sum(1),
    lambda x: x.mean((-1, -2)),
    lambda x: x.var(-1),
    lambda x: x.norm(),
    lambda x: x.prod(-1),
    lambda x: x.amax(-1),
    lambda x: x.argmax(),
    lambda x: x.max(-1)[1],
    lambda x: (x > 2).any(-1),
    lambda x: tf.nn.functional.pad(x, (1, 2, 0, 1)),
    lambda x: tf.cat([x, x[:, :5], x.half().to(x.dtype)], 1),
    lambda x: tf.cat([x.half(), x], -1),
    lambda x: tf.nn.functional.max_pool2d(x, 2, return_indices=True)[1],
    lambda x: F.adaptive_max_pool(x, (3, 3), 2)[0],
    lambda x: tf.nn.functional.conv2d(x, tf.ones(x.shape[1], 1, 3, 3), groups=x.shape[1]),
]


@pytest.mark.parametrize("call", ACROSS)
def test_what_lies_across_memory(call, rng):
    """Bits are those of the same numbers in order, as large as copies pay for and smaller."""
    for shape in ((3, 40, 30, 24), (5, 4, 7, 6)):
        x = tf.tensor(rng.standard_normal(shape).astype("float32"))
        for order in ((0, 3, 1, 2), (3, 2, 1, 0), (0, 1, 3, 2)):
            turned = x.permute(order)
            want = threads_agree(lambda t=turned: call(t.contiguous()))
            assert threads_agree(lambda t=turned: call(t)) == want


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_into_views_of_rows_that_repeat(dtype, rng):
    """Targets whose rows follow one another along the last axes, but not before them: nothing else is written."""
    kind = getattr(tf, dtype)
    for source in ((2, 3, 8, 1), (1, 3, 1, 40), (2, 3, 8, 40)):
        values = rng.integers(1, 90, source)
        for view in (
            lambda x: x[:, ::-1][:, :3],
            lambda x: x[:, 1::2],
            lambda x: x[::-1, 3:],
            lambda x: x[:2, 2:5],
        ):
            field = np.zeros((2, 7, 8, 40), dtype)
            want = field.copy()
            if view(want).shape[1] == 4:
                target, part = view(field)[:, :3], view(want)[:, :3]
            else:
                target, part = view(field), view(want)
            part[...] = values
            tf.from_numpy(target).copy_(tf.tensor(values).to(kind))
            np.testing.assert_array_equal(field, want)
            target[...] = 0
            tf.from_numpy(target).copy_(tf.tensor(values).double())
            np.testing.assert_array_equal(field, want)
