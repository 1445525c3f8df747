"""Strided copies and fills, as cat and padding use them: all item sizes, large enough for
threads."""

import numpy as np
import pytest

import tinyfin as tf
from tinyfin.ops.table import OPS

KEYS = [
    (slice(None), slice(None)),
    (slice(None, None, 2), slice(None, None, -1)),
    (slice(None, None, -3), slice(5, None, 7)),
    (slice(3, 4), slice(None)),
    (slice(None), slice(2, 3)),
    (slice(0, 0), slice(None)),
]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64"])
@pytest.mark.parametrize("shape", [(300, 500), (70000, 3), (3, 70000)])
def test_copies(shape, dtype, rng):
    x = rng.integers(0, 100, shape).astype(dtype)
    t = tf.tensor(x)
    for key in KEYS:
        want = x[key]
        view = t[key] if all((s.step or 1) > 0 for s in key) else tf.from_numpy(x)[key]
        for threads in (1, 2):
            before = tf.get_num_threads()
            tf.set_num_threads(threads)
            got, across = tf.cat([view]), tf.cat([view.t()])
            tf.set_num_threads(before)
            assert np.array_equal(got.numpy(), want) and np.array_equal(across.numpy(), want.T)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64"])
def test_fills(dtype):
    x = tf.zeros(40, 50, dtype=getattr(tf, dtype))
    for value in (0.0, 1.0):
        got = OPS["pad_constant"](x, (700, 3, 500, 1), value).numpy()
        want = np.full((541, 753), value, dtype)
        want[500:540, 700:750] = 0
        assert np.array_equal(got, want)
