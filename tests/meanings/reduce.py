"""Meanings of reductions, scans and sorts."""

import numpy as np
from oracle import Typed, meaning


def whole(dim):
    """No axes at all means every one."""
    return None if dim == () or dim is None else dim


def line(x, dim):
    """0-d arrays as one of one element, so that axis 0 exists."""
    return (np.reshape(x, (1,)), 0, True) if x.ndim == 0 else (x, dim, False)


def reduced(fn, x, dim, keepdim, **kw):
    """A NumPy reduction with PyTorch's axes."""
    x = np.asarray(x)
    if x.ndim == 0:
        return np.reshape(fn(np.reshape(x, (1,)), axis=0, **kw), ())
    return fn(x, axis=whole(dim), keepdims=keepdim, **kw)


def accumulator(x, dtype):
    """Integers are summed as int64."""
    if dtype is not None:
        return dtype.name
    return None if x.dtype.kind == "f" else "int64"


def typed(y, dtype):
    """A result whose dtype was asked for."""
    return y if dtype is None else Typed(y, dtype.name)


@meaning("sum", loose=8)
def total(x, dim=None, keepdim=False, dtype=None):
    return typed(reduced(np.sum, x, dim, keepdim, dtype=accumulator(x, dtype)), dtype)


@meaning("prod", loose=8)
def prod(x, dim=None, keepdim=False, dtype=None):
    return typed(reduced(np.prod, x, dim, keepdim, dtype=accumulator(x, dtype)), dtype)


@meaning("mean", loose=4)
def mean(x, dim=None, keepdim=False, dtype=None):
    return typed(np.asarray(reduced(np.mean, x, dim, keepdim), "float64"), dtype)


@meaning("count_nonzero")
def count_nonzero(x, dim=None):
    return np.asarray(np.count_nonzero(x, axis=dim), "int64")


def free(x, dim, correction):
    """Degrees of freedom."""
    dims = range(x.ndim) if whole(dim) is None else dim if isinstance(dim, tuple) else (dim,)
    return int(np.prod([x.shape[d] for d in dims])) - correction


@meaning("var", loose=64)
def var(x, dim=None, correction=1, keepdim=False):
    axis = whole(dim)
    squares = np.square(x - x.mean(axis, keepdims=True)).sum(axis, keepdims=keepdim)
    return squares / max(free(x, dim, correction), 0)


@meaning("std", loose=32)
def std(x, dim=None, correction=1, keepdim=False):
    return np.sqrt(var(x, dim, correction, keepdim))


@meaning("amax", "max_over", ulps=0)
def amax(x, dim=None, keepdim=False):
    return reduced(np.max, x, dim, keepdim)


@meaning("amin", "min_over", ulps=0)
def amin(x, dim=None, keepdim=False):
    return reduced(np.min, x, dim, keepdim)


def kind(y, x):
    """PyTorch's any and all keep uint8."""
    return np.asarray(y).astype("uint8" if x.dtype == np.uint8 else "bool")


@meaning("any")
def some(x, dim=None, keepdim=False):
    return kind(reduced(np.any, x, dim, keepdim), x)


@meaning("all")
def every(x, dim=None, keepdim=False):
    return kind(reduced(np.all, x, dim, keepdim), x)


@meaning("argmax")
def argmax(x, dim=None, keepdim=False):
    x, dim, _ = line(x, dim) if x.ndim == 0 else (x, dim, False)
    y = np.argmax(x, axis=dim, keepdims=keepdim)
    return np.asarray(y, "int64")


@meaning("argmin")
def argmin(x, dim=None, keepdim=False):
    x, dim, _ = line(x, dim) if x.ndim == 0 else (x, dim, False)
    return np.asarray(np.argmin(x, axis=dim, keepdims=keepdim), "int64")


def along(pick, x, dim, keepdim):
    """Values and places of an extremum along an axis."""
    wide, axis, scalar = line(x, dim)
    where = np.expand_dims(np.asarray(pick(wide, axis=axis), "int64"), axis)
    values = np.take_along_axis(wide, where, axis)
    if scalar:
        return values.reshape(()), where.reshape(())
    return (values, where) if keepdim else (values.squeeze(axis), where.squeeze(axis))


@meaning("max_dim", ulps=0)
def max_dim(x, dim, keepdim=False):
    return along(np.argmax, x, dim, keepdim)


@meaning("min_dim", ulps=0)
def min_dim(x, dim, keepdim=False):
    return along(np.argmin, x, dim, keepdim)


@meaning("logsumexp", loose=8)
def logsumexp(x, dim=None, keepdim=False):
    return reduced(np.logaddexp.reduce, np.asarray(x, "float64"), dim, keepdim)


@meaning("cumsum", loose=8)
def cumsum(x, dim, dtype=None):
    wide, axis, scalar = line(x, dim)
    y = np.cumsum(wide, axis, dtype=accumulator(x, dtype))
    return typed(y.reshape(()) if scalar else y, dtype)


@meaning("cumprod", loose=16)
def cumprod(x, dim, dtype=None):
    wide, axis, scalar = line(x, dim)
    y = np.cumprod(wide, axis, dtype=accumulator(x, dtype))
    return typed(y.reshape(()) if scalar else y, dtype)


@meaning("linear_scan", loose=8)
def linear_scan(a, x, dim):
    y = np.array(x)
    moved, factors = np.moveaxis(y, dim, 0), np.moveaxis(a, dim, 0)
    for i in range(1, len(moved)):
        moved[i] += factors[i] * moved[i - 1]
    return y


def running(better, x, dim):
    """Extremum so far and the place of the last such; NaN stays."""
    wide, axis, scalar = line(x, dim)
    values, where = (
        np.array(np.moveaxis(wide, axis, 0)),
        np.zeros(np.moveaxis(wide, axis, 0).shape, "int64"),
    )
    for i in range(1, len(values)):
        new = better(values[i], values[i - 1]) | np.isnan(values[i].astype("float64"))
        new &= ~(np.isnan(values[i - 1].astype("float64")) & ~np.isnan(values[i].astype("float64")))
        values[i] = np.where(new, values[i], values[i - 1])
        where[i] = np.where(new, i, where[i - 1])
    values, where = np.moveaxis(values, 0, axis), np.moveaxis(where, 0, axis)
    return (values.reshape(()), where.reshape(())) if scalar else (values, where)


@meaning("cummax", ulps=0)
def cummax(x, dim):
    return running(np.greater_equal, x, dim)


@meaning("cummin", ulps=0)
def cummin(x, dim):
    return running(np.less_equal, x, dim)


def order(x, axis, descending):
    """Stable order; NaN is the greatest."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    turned = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - turned


@meaning("sort", ulps=0)
def sort(x, dim=-1, descending=False, stable=True):
    wide, axis, scalar = line(x, dim)
    where = order(wide, axis, descending)
    values = np.take_along_axis(wide, where, axis)
    return (values.reshape(()), where.reshape(())) if scalar else (values, where)


@meaning("argsort")
def argsort(x, dim=-1, descending=False, stable=True):
    return sort(x, dim, descending)[1]


@meaning("topk", ulps=0)
def topk(x, k, dim=-1, largest=True, sorted=True):
    wide, axis, scalar = line(x, dim)
    where = np.take(order(wide, axis, largest), range(k), axis)
    values = np.take_along_axis(wide, where, axis)
    return (values.reshape(()), where.reshape(())) if scalar else (values, where)


@meaning("searchsorted")
def searchsorted(steps, values, right=False):
    side = "right" if right else "left"
    if steps.ndim == 1:
        return np.asarray(np.searchsorted(steps, values, side), "int64")
    return np.stack([np.searchsorted(s, v, side) for s, v in zip(steps, values)]).astype("int64")


@meaning("bucketize")
def bucketize(values, steps, right=False):
    return searchsorted(steps, values, right)


@meaning("norm2", loose=4)
def norm2(x, dim=None, keepdim=False):
    return np.sqrt(sum_of_squares(x, dim, keepdim))


@meaning("sum_of_squares", loose=4)
def sum_of_squares(x, dim=None, keepdim=False):
    wide = np.asarray(x, "longdouble")  # NumPy adds rows one after the other
    return np.asarray((wide * wide).sum(dim, keepdims=keepdim), "float64")
