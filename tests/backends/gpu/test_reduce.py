"""Sums, products and variances on a GPU: many blocks, many work groups, odd strides, all dtypes."""

import numpy as np
import pytest
import samples
from backends.gpu.alike import same

import tinyfin as tf

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize(
    "n", [1, 2, 15, 16, 17, 63, 64, 65, 2047, 2048, 2049, 4097, 32768, 32769, 70001]
)
def test_row_lengths(n, rng):
    """Lanes, blocks, blocks that one work group joins, blocks that give parts."""
    x = samples.tensor(rng.standard_normal((3, n)), "float32")
    same(lambda t: (t.sum(1), t.sum(), t.prod(1), t[1:, n // 3 :].sum(1)), x)


@pytest.mark.parametrize(
    "shape", [(17, 40), (2048, 9), (2049, 33), (70001, 8), (70001, 3), (5, 2000)]
)
def test_columns(shape, rng):
    """Results side by side, with one block and with several."""
    x = samples.tensor(rng.standard_normal(shape), "float32")
    same(lambda t: (t.sum(0), t.mean(0), t[1:, 1:].sum(0), t.flip(0).sum(0)), x)


def test_one_result_of_three_levels(rng):
    """More than 2^26 elements: parts of parts of parts."""
    x = samples.tensor(rng.standard_normal(4096), "float32")
    same(lambda t: t.expand((1 << 14) + 3, 4096).sum(), x)


@pytest.mark.parametrize(
    "shape, dim", [((4, 300), 1), ((2, 40000), 1), ((5000, 20), 0), ((3, 40, 9), (0, 2))]
)
def test_variances(shape, dim, rng):
    """In one dispatch, and with the means first."""
    x = samples.tensor(rng.standard_normal(shape) + 3, "float32")
    same(lambda t: (t.var(dim), t.std(dim, correction=0), t.std(dim, correction=1e9)), x)


@pytest.mark.parametrize("change", samples.LAYOUTS.values(), ids=samples.LAYOUTS)
def test_layouts(change, rng):
    x = samples.tensor(rng.standard_normal((6, 20, 100)), "float32")
    for dim in 0, 1, 2, (0, 1), (0, 2), (1, 2):
        same(lambda t: t.permute(1, 0, 2).sum(dim), change(x))


def test_every_second_axis_goes(rng):
    """Eight axes that do not merge."""
    x = samples.tensor(rng.standard_normal((2, 3, 2, 3, 2, 3, 2, 3)), "float32")
    order = (7, 5, 3, 1, 0, 2, 4, 6)
    same(
        lambda t: (
            t.sum((0, 2, 4, 6)),
            t.permute(order).sum((1, 4)),
            t.permute(order).sum((0, 1, 2, 6, 7)),
        ),
        x,
    )


@pytest.mark.parametrize("source", samples.ALL)
def test_dtypes(source, rng):
    """Every input dtype to every result dtype; four neighbours in one access where they are aligned."""
    x = samples.tensor(rng.standard_normal((3, 1032)) * 40, source)
    for target in ("float32", "float16", "bfloat16", "float64", "int64", "int8", "bool"):
        if source != "float64" or target == "float64":
            dtype = getattr(tf, target)
            same(lambda t: (t.sum(1, dtype=dtype), t.sum(0, dtype=dtype)), x)
    same(lambda t: (t.count_nonzero(), t.count_nonzero(0)), x)


def test_whole_numbers_wrap_around():
    big = tf.tensor([2**62, 2**62, 2**62, -(2**31), 2**40 + 1], dtype=tf.int64)
    same(lambda t: (t.sum(), t.prod(), (t * 3).prod(), t[:3].sum(), t[3:].prod()), big)
    narrow = tf.full((100, 3), -128, dtype=tf.int8)
    same(lambda t: (t.sum(), t.prod(), t.sum(0), t.prod(1), t.sum(dtype=tf.int8)), narrow)


def test_special_values():
    x = tf.tensor(
        [
            [np.nan, 1, 2],
            [np.inf, 1, -np.inf],
            [np.inf, 1, 2],
            [-0.0, -0.0, -0.0],
            [1e-40, 2e-40, 0],
        ]
    )
    same(lambda t: (t.sum(1), t.sum(0), t[:, :1].sum(1), t[:, :1].prod(1), t.count_nonzero()), x)
    with tf.deterministic():
        same(
            lambda t: (t.sum(1), t.sum(0), t[:, :1].sum(1), t[:, :1].prod(1), t.count_nonzero()), x
        )


def test_nothing_to_add():
    x = tf.zeros(0, 3, 0)
    same(
        lambda t: (
            t.sum(0),
            t.sum(),
            t.sum(1),
            t.prod(2),
            t.mean((0, 2)),
            t.var(0),
            t.count_nonzero(),
        ),
        x,
    )
    same(lambda t: (t.sum(0), t.prod(), t.sum((0, 2), dtype=tf.float64)), x.int())


@pytest.mark.parametrize("shape", [(40, 4), (2500, 68), (300, 2, 16)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64"])
def test_four_columns_at_a_time(shape, dtype, rng):
    """Results that lie in fours, and the same where they begin one further on."""
    x = samples.tensor(rng.integers(0, 9, shape), dtype)
    same(lambda t: (t.sum(0), t.mean(0, dtype=tf.float32), t.amax(0), t.argmax(0), t.any(0)), x)
    same(lambda t: (t[1:, ..., 4:].sum(0), t[::3].sum(0), t[..., 1:].sum(0), t.argmin(0)), x)
