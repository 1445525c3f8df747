"""What public names mean, in NumPy, written without a look at the rows' expressions and formulas.

A meaning takes NumPy arrays as its subject takes tensors: float64 for every floating dtype (holding
the rounded inputs), the dtype itself for integers and bool. It returns an array, a tuple, or None for
results that are not compared.
"""

import importlib
import pathlib

import numpy as np
from samples import EPS, FLOATS, array, rounded

MEANINGS = {}
"""subject -> NumPy function."""
ULPS = {}
"""subject -> bound of the error in units in the last place, where elements are computed one by one."""
LOOSE = {}
"""subject -> bound of the error as a multiple of the dtype's epsilon and of the result's scale."""
HERE = pathlib.Path(__file__).resolve().parent
DEFAULT_LOOSE = 8


class Typed:
    """A result whose dtype does not follow from the inputs'."""

    def __init__(self, values, dtype):
        self.values, self.dtype = np.asarray(values), dtype


def meaning(*names, ulps=None, loose=None):
    """Registers what the names mean, and how exact their results must be."""

    def register(fn):
        for name in names:
            assert name not in MEANINGS, f"two meanings of {name}"
            MEANINGS[name] = fn
            if ulps is not None:
                ULPS[name] = ulps
            if loose is not None:
                LOOSE[name] = loose
        return fn

    return register


def load():
    """Reads the meanings, once."""
    if not MEANINGS:
        for path in sorted((HERE / "meanings").glob("*.py")):
            importlib.import_module(f"meanings.{path.stem}")


CURRENT = {"dtype": "float64"}


def current_dtype():
    """The dtype under test: for meanings that are defined on its bits."""
    return CURRENT["dtype"]


def known(name):
    """Whether the subject has a meaning."""
    load()
    return name in MEANINGS


def evaluate(name, args, kwargs, dtype="float64"):
    """The meaning's results as a list of arrays."""
    load()
    CURRENT["dtype"] = dtype
    with np.errstate(all="ignore"):
        out = MEANINGS[name](*args, **kwargs)
    return list(out) if isinstance(out, (tuple, list)) else [out]


def spacing(a, dtype):
    """The unit in the last place of numbers in a dtype."""
    a = np.abs(np.asarray(a, "float64"))
    if dtype == "bfloat16":
        with np.errstate(divide="ignore"):
            exponent = np.floor(np.log2(np.where(a > 0, a, 1.0)))
        return np.ldexp(1.0, np.maximum(exponent, -126).astype(int) - 7)
    return np.spacing(a.astype(dtype)).astype("float64")


def allowed(name, want, dtype):
    """The largest error of each element."""
    if name in ULPS:
        bound = ULPS[name]
        if dtype in ("float16", "bfloat16"):
            bound = 0.5 + 0.01 * bound
        if dtype == "float64":
            bound += 1.0  # the C library's own error
        return bound * spacing(want, dtype) * (1 + 1e-6)
    finite = np.abs(want[np.isfinite(want)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    factor = LOOSE.get(name, DEFAULT_LOOSE)
    if dtype in ("float16", "bfloat16"):
        factor = 1.0
    return np.full(want.shape, factor * EPS[dtype] * scale)


def problem(name, got, want, dtype):
    """What is wrong with a result, or None."""
    if want is None:
        return None
    want = np.asarray(want.values if isinstance(want, Typed) else want)
    if tuple(got.shape) != want.shape:
        return f"shape {tuple(got.shape)}, want {want.shape}"
    have = array(got)
    if want.dtype.kind != "f":
        if got.dtype.name != want.dtype.name:
            return f"dtype {got.dtype.name}, want {want.dtype.name}"
        return first_difference(have, want, have != want)
    kind = got.dtype.name
    if kind not in FLOATS:
        return f"dtype {kind}, want a floating one"
    with np.errstate(all="ignore"):
        want = want.astype("float64")
        near = rounded(want, kind)
        same = (near == have) | (np.isnan(near) & np.isnan(have))
        off = ~same & ~(np.abs(have - want) <= allowed(name, want, kind))
    return first_difference(have, near, off)


def first_difference(have, want, off):
    """The first place where results differ."""
    if not off.any():
        return None
    i = tuple(int(k) for k in np.argwhere(off)[0])
    return f"{int(off.sum())} of {off.size} wrong, first at {i}: {have[i]!r}, want {want[i]!r}"


def expected_dtype(want, dtype):
    """The dtype of a result whose meaning is `want`, for inputs of `dtype`."""
    if isinstance(want, Typed):
        return want.dtype
    want = np.asarray(want)
    if want.dtype.kind != "f":
        return want.dtype.name
    return dtype if dtype in FLOATS else "float32"
