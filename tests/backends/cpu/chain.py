"""The canonical chain of a product, in NumPy: acc = fma(a, b, acc), one rounding a step."""

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


def same_bits(t, want):
    """Equal to the last bit, the sign of zero included."""
    got = t.detach().numpy()
    return got.shape == want.shape and got.dtype == want.dtype and got.tobytes() == want.tobytes()
