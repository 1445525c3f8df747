"""Products of 8-bit integers into int32: every pair of dtypes, layouts, edges of tiles, batches, wrapping, errors."""

import itertools
import sys

import numpy as np
import pytest
from backends.cpu.fused import check_instruction_sets, check_threads, digest, layouts

import tinyfin as tf

EIGHT = ("int8", "uint8")
SIZES = [
    (1, 1, 1),
    (1, 2, 1),
    (2, 3, 2),
    (5, 7, 300),
    (300, 33, 1),
    (1, 301, 70),
    (15, 64, 33),
    (29, 129, 31),
    (70, 1025, 65),
    (130, 2051, 40),
]
"""Rows, steps of k, columns: none a multiple of any tile but the fourth last."""


def drawn(rng, dtype, *shape):
    """All values of the dtype, and its least and greatest often."""
    ends = np.iinfo(dtype)
    a = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.3, rng.choice([ends.min, ends.max], shape), a).astype(
        dtype
    )


def wanted(a, b):
    """NumPy's product of int32."""
    return np.matmul(a.astype("int32"), b.astype("int32"))


@pytest.mark.parametrize("m,k,n", SIZES)
def test_every_layout_and_pair_of_dtypes(m, k, n, rng):
    for one, other in itertools.product(EIGHT, EIGHT):
        a, b = drawn(rng, one, m, k), drawn(rng, other, k, n)
        want = wanted(a, b)
        for x, y in itertools.product(layouts(a), layouts(b)):
            y = tf.int_mm(x, y)
            assert y.dtype is tf.int32 and np.array_equal(y.numpy(), want), (one, other)


def test_large_enough_for_all_loops(rng):
    """More than one area of the result, and several blocks of k."""
    a, b = drawn(rng, "int8", 1100, 1300), drawn(rng, "int8", 1300, 2100)
    want = np.rint(a.astype("float64") @ b.astype("float64")).astype("int32")
    assert np.array_equal(tf.int_mm(tf.tensor(a), tf.tensor(b)).numpy(), want)


@pytest.mark.parametrize("value", [-128, 127, 255])
def test_sums_beyond_16_bits(value):
    """Two products of the ends are more than 16 bits hold: nothing saturates."""
    dtype = "uint8" if value > 127 else "int8"
    x = tf.tensor(np.full((3, 700), value, dtype))
    assert (tf.int_mm(x, x.t()).numpy() == 700 * value * value).all()


def test_sums_wrap():
    n = 1 << 16
    x = tf.tensor(np.full((1, n), 255, "uint8"))
    assert tf.int_mm(x, x.t()).item() == (n * 255 * 255 + 2**31) % 2**32 - 2**31 < 0


def test_batches(rng):
    for a, b in (((4, 9, 5), (4, 5, 7)), ((3, 1, 2, 9), (5, 9, 4)), ((40, 20, 33), (33, 20)), ((6, 3), (8, 3, 2))):  # fmt: skip
        a, b = drawn(rng, "int8", *a), drawn(rng, "uint8", *b)
        assert np.array_equal(tf.int_mm(tf.tensor(a), tf.tensor(b)).numpy(), wanted(a, b))


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0))])
def test_empty(shapes):
    a, b = (np.zeros(s, "int8") for s in shapes)
    assert np.array_equal(tf.int_mm(tf.tensor(a), tf.tensor(b)).numpy(), wanted(a, b))


def test_the_name_that_pytorch_has(rng):
    a, b = (tf.tensor(drawn(rng, "int8", 20, 20)) for _ in range(2))
    assert tf.equal(tf._int_mm(a, b), tf.int_mm(a, b))


def test_quantized_layer_is_near_the_one_in_floats(rng):
    """What it is for: scales to 8 bits, one product, scales back."""
    x, w = (tf.tensor(rng.standard_normal(s).astype("float32")) for s in ((16, 64), (64, 32)))
    sx, sw = x.abs().amax(1, keepdim=True) / 127, w.abs().amax(0, keepdim=True) / 127
    y = tf.int_mm((x / sx).round().to(tf.int8), (w / sw).round().to(tf.int8)).float() * sx * sw
    assert ((y - x @ w).abs().max() / (x @ w).abs().max()).item() < 0.02


@pytest.mark.parametrize(
    "a,b,words",
    [
        (tf.ones(2, 3, dtype=tf.int16), tf.ones(3, 2, dtype=tf.int8), ["input", "int16", "int8 or uint8"]),
        (tf.ones(2, 3, dtype=tf.int8), tf.ones(3, 2), ["other", "float32", "int8 or uint8"]),
        (tf.ones(2, 3, dtype=tf.int8), tf.ones(2, 2, dtype=tf.int8), ["(2, 3)", "(2, 2)", "3 and 2"]),
        (tf.ones(2, 3, dtype=tf.int8), tf.tensor(1, dtype=tf.int8), ["at least one dimension"]),
    ],
)  # fmt: skip
def test_what_it_refuses(a, b, words):
    with pytest.raises(RuntimeError, match="^int_mm: ") as caught:
        tf.int_mm(a, b)
    assert all(w in str(caught.value) for w in words)


def test_the_formula_agrees_and_refuses_the_same(rng):
    """What devices without a kernel run."""
    formula = tf.ops.table.OPS["int_mm"].formula
    a, b = (tf.tensor(drawn(rng, d, 9, 9)) for d in EIGHT)
    assert tf.equal(formula(a, b), tf.int_mm(a, b))
    with pytest.raises(RuntimeError, match="int_mm: other has dtype tinyfin.int16"):
        formula(a, b.to(tf.int16))
    with pytest.raises(RuntimeError, match="int_mm: other has dtype tinyfin.int16"):
        tf.int_mm(a, b.to(tf.int16))


def make():
    """Products that threads share."""
    rng = np.random.default_rng(5)
    for m, k, n in ((200, 301, 150), (64, 1100, 40), (700, 33, 90)):
        yield tf.int_mm(tf.tensor(drawn(rng, "int8", m, k)), tf.tensor(drawn(rng, "uint8", k, n)))


def test_threads():
    check_threads(make)


def test_instruction_sets():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    sys.stdout.write(digest(make()))
