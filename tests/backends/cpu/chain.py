"""Canonical orders in NumPy: of sums, and of products, acc = fma(a, b, acc), one rounding a step."""

import ctypes
import ctypes.util

import numpy as np


def fma32(a, b, c):
    """a * b + c of float32 arrays with one rounding: the double sum, made odd where inexact."""
    with np.errstate(all="ignore"):
        p, z = a.astype("float64") * b.astype("float64"), np.asarray(c, "float64")
        s = p + z
        t = s - p
        e = (p - (s - t)) + (z - t)
        bits = s.view("int64") if s.ndim else np.array(s).view("int64")
        even = (e != 0) & ~np.isnan(e) & (bits & 1 == 0)
        bits = bits + np.where(even, np.where((e > 0) == (s > 0), 1, -1), 0)
        return bits.view("float64").astype("float32")


LIBM = ctypes.CDLL(ctypes.util.find_library("m") or None)
LIBM.fma.restype = ctypes.c_double
LIBM.fma.argtypes = [ctypes.c_double] * 3
fma64 = np.vectorize(LIBM.fma, otypes=["float64"])
FMA = {np.dtype("float32"): fma32, np.dtype("float64"): fma64}


def product(a, b):
    """a b, where a is (..., m, k) and b (..., k, n), element by element along k."""
    step = FMA[a.dtype]
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1])
    acc = np.zeros(shape, a.dtype)
    for k in range(a.shape[-1]):
        acc = step(*np.broadcast_arrays(a[..., :, k, None], b[..., None, k, :], acc))
    return acc


def block_sum(v):
    """The rule for one block of at most 2048 numbers, word for word."""
    lanes = np.full(64, -0.0, v.dtype)
    for i in range(0, len(v), 64):
        part = v[i : i + 64]
        lanes[: len(part)] += part
    half = 32
    while half:
        lanes[:half] = lanes[:half] + lanes[half : 2 * half]
        half //= 2
    return lanes[0]


def canonical_sum(v):
    """Block sums, summed by the same rule; an empty sum is +0."""
    if len(v) == 0:
        return v.dtype.type(0)
    while True:
        v = np.array([block_sum(v[i : i + 2048]) for i in range(0, len(v), 2048)], v.dtype)
        if len(v) == 1:
            return v[0]


def few_results(a, b):
    """The same in normal mode where results are few and rows long: sums of rounded products."""
    return np.array([[canonical_sum(x * y) for y in b.T] for x in a], a.dtype)


def same_bits(t, want):
    """Equal to the last bit, the sign of zero included."""
    got = t.detach().numpy()
    return got.shape == want.shape and got.dtype == want.dtype and got.tobytes() == want.tobytes()
