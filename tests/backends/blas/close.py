"""Comparison of the library's results with those of our own kernels."""

import numpy as np

import tinyfin as tf

EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
FACTOR = 64
"""By how many roundings of the largest result two orders of one sum may differ here."""


def array(t):
    """A tensor's values."""
    return t.detach().contiguous().numpy()


def close(got, want, what=""):
    """The same shape and dtype, NaN and infinities in the same places, the rest within FACTOR roundings;
    dtypes that no library computes are equal."""
    assert got.dtype == want.dtype and got.shape == want.shape, what
    if got.dtype.is_floating_point and got.dtype.itemsize < 4:
        got, want, eps = got.float(), want.float(), 0
    else:
        eps = EPS.get(want.dtype.name, 0)
    a, b = array(got), array(want)
    finite = np.isfinite(b)
    assert np.array_equal(a[~finite], b[~finite], equal_nan=b.dtype.kind == "f"), what
    most = np.abs(b[finite]).max(initial=0)
    off = np.abs(a[finite] - b[finite]).max(initial=0)
    assert off <= FACTOR * eps * most, f"{what}: {off / (most * eps)} roundings"


def both(fn):
    """(result by the library, result by our own kernels)."""
    tf.backend_set("blas")
    got = fn()
    tf.backend_set("cpu")
    want = fn()
    tf.backend_set("blas")
    return got, want
