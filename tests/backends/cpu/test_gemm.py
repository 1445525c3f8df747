"""The five loops: areas, blocks of k and strips beyond one each, and accumulators between them."""

import numpy as np
import pytest
from backends.cpu.chain import product, same_bits

import tinyfin as tf


@pytest.mark.parametrize(
    "m,k,n", [(1100, 30, 40), (30, 3, 2200), (130, 800, 130), (40, 1200, 300), (1030, 2, 2060)]
)
def test_areas_and_blocks(m, k, n, rng):
    a, b = (rng.standard_normal(s).astype("float32") for s in ((m, k), (k, n)))
    want = product(a, b)
    assert same_bits(tf.tensor(a) @ tf.tensor(b), want)
    assert same_bits(tf.tensor(a.T.copy()).t() @ tf.tensor(b.T.copy()).t(), want)


def test_half_results_keep_their_accumulators(rng):
    """Rounding to half happens once, after the last block of k."""
    a, b = (
        tf.tensor(rng.standard_normal(s).astype("float32")).half()
        for s in ((40, 1500), (1500, 2100))
    )
    want = tf.tensor(product(a.float().numpy(), b.float().numpy())).half()
    assert tf.equal(a @ b, want)


def test_integers_across_blocks(rng):
    for dtype in ("int8", "int64"):
        a, b = (rng.integers(-100, 100, s).astype(dtype) for s in ((130, 900), (900, 2100)))
        with np.errstate(all="ignore"):
            assert np.array_equal((tf.tensor(a) @ tf.tensor(b)).numpy(), a @ b)
