"""Products of few results and of one result each."""

import numpy as np
import pytest
from backends.cpu.chain import few_results, product, same_bits
from backends.cpu.test_matmul import numbers

import tinyfin as tf
from tinyfin.ops.row import F

FEW = [
    (1, 256, 1),
    (1, 255, 1),
    (2, 5000, 2),
    (1, 70001, 4),
    (4, 300, 1),
    (2, 300, 3),
    (1, 2048, 1),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("m,k,n", FEW)
def test_few_results(m, k, n, dtype, rng):
    """Canonical sums of products in normal mode, chains in deterministic mode; of any layout."""
    kind = getattr(tf, dtype)
    a, b, c = (tf.tensor(rng.standard_normal(s)).to(kind) for s in ((m, k), (k, n), (n,)))
    wide = tf.float64 if dtype == "float64" else tf.float32
    x, y = a.to(wide).numpy(), b.to(wide).numpy()
    cut = m * n <= 4 and k >= 256
    with tf.deterministic():
        if k < 6000:
            assert tf.equal(a @ b, tf.tensor(product(x, y)).to(kind))
    want = tf.tensor(few_results(x, y) if cut else product(x, y)).to(kind)
    if k < 6000:
        layer = (tf.tensor(product(x, y)) + c.to(wide)).to(kind)
        assert tf.equal(F.linear(a, b.t(), c), layer)
        assert tf.equal(F.linear(tf.cat([a] * 9), b.t(), c)[-m:], layer)
    for p in (a, a.t().contiguous().t()):
        for q in (b, b.t().contiguous().t(), b.flip(0).flip(0)):
            assert tf.equal(p @ q, want)
    pair = tf.stack([a, a * 2]) @ b
    assert tf.equal(pair[0], want) or (cut and m * n > 2)


def test_few_results_of_a_batch(rng):
    a, b = numbers(rng, 3, 1, 500), numbers(rng, 3, 500, 1)
    got = tf.tensor(a) @ tf.tensor(b)
    assert same_bits(got, np.stack([few_results(x, y) for x, y in zip(a, b)]))
    for n in (1 << 15, 1 << 20):
        x = tf.tensor(numbers(rng, n))
        threads = tf.get_num_threads()
        results = []
        for count in (1, 2, 3):
            tf.set_num_threads(count)
            results.append((x @ x.flip(0)).item())
        tf.set_num_threads(threads)
        assert len(set(results)) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
def test_batches_of_single_elements(dtype, rng):
    """A row by a column each, a vector of them at a time."""
    for count, k in ((1, 40), (7, 33), (16, 64), (37, 131)):
        a, b = (
            tf.tensor(np.round(numbers(rng, count, k) * 4)).to(getattr(tf, dtype)) for _ in "ab"
        )
        got = a.unsqueeze(1) @ b.unsqueeze(2)
        assert tuple(got.shape) == (count, 1, 1) and got.dtype is a.dtype
        for i in range(count):
            assert tf.equal(got[i, 0, 0], a[i] @ b[i])
