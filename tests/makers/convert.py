"""Samples of rows and functions that cast and copy."""

import numpy as np
from samples import ALL, DTYPES, Sample, maker

import tinyfin as tf

DTYPES["is_floating_point"] = ALL


@maker("cast")
def cast(rng):
    for dtype in "float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool":
        x = np.rint(rng.uniform(0, 9, (3, 4)) * 8) / 8
        yield Sample(x, getattr(tf, dtype)).but(grad=dtype == "float64", note=dtype)
    yield Sample(np.asarray(2.75), None)


@maker("contiguous_copy", "clone")
def copies(rng):
    for shape in (2, 3), (), (0, 2), (2, 1, 2, 3):
        yield Sample(np.asarray(rng.standard_normal(shape)))


@maker("fill")
def fill(rng):
    """A number or a 0-d tensor everywhere."""
    yield Sample(rng.standard_normal((2, 3)), 2.0)
    yield Sample(rng.standard_normal((2, 3)), np.asarray(1.5))
    yield Sample(np.asarray(1.0), -3)


@maker("detach")
def detach(rng):
    """Values only: nothing flows."""
    yield Sample(rng.standard_normal((2, 3))).but(grad=False)


@maker("is_floating_point")
def is_floating_point(rng):
    yield Sample(rng.standard_normal(3)).but(grad=False)
