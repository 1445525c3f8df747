"""Meanings of casts and copies."""

import numpy as np
from oracle import Typed, meaning
from samples import FLOATS, rounded


@meaning("cast", ulps=0)
def cast(x, dtype):
    if dtype is None:
        return x
    if dtype.name in FLOATS:
        return Typed(rounded(x, dtype.name), dtype.name)
    return x.astype(dtype.name)


@meaning("contiguous_copy", "clone", ulps=0)
def copy(x):
    return x


@meaning("fill", ulps=0)
def fill(x, value):
    return np.full(x.shape, value, x.dtype)


@meaning("detach", ulps=0)
def detach(x):
    return x


@meaning("is_floating_point")
def is_floating_point(x):
    return x.dtype.kind == "f"
