"""Meanings of public functions over the rows."""

import math

import numpy as np
from meanings.elementwise import psi
from meanings.reduce import var
from meanings.view import as_strided_view
from oracle import meaning


@meaning("flatten", ulps=0)
def flatten(x, start_dim=0, end_dim=-1):
    if x.ndim == 0:
        return x.reshape(1)
    first, last = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(
        *x.shape[:first], int(np.prod(x.shape[first : last + 1])), *x.shape[last + 1 :]
    )


@meaning("unflatten", ulps=0)
def unflatten(x, dim, sizes):
    d = dim % x.ndim
    known = -int(np.prod(sizes))
    sizes = [x.shape[d] // known if s == -1 else s for s in sizes]
    return x.reshape(*x.shape[:d], *sizes, *x.shape[d + 1 :])


for name, fn in {
    "movedim": np.moveaxis,
    "broadcast_to": np.broadcast_to,
    "ravel": np.ravel,
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "rot90": np.rot90,
    "meshgrid": None,
    "broadcast_tensors": np.broadcast_arrays,
}.items():
    if fn is not None:
        meaning(name, ulps=0)(fn)


@meaning("meshgrid", ulps=0)
def meshgrid(*x, indexing="ij"):
    return np.meshgrid(*x, indexing=indexing)


@meaning("broadcast_shapes")
def broadcast_shapes(*shapes):
    return np.broadcast_shapes(*shapes)


@meaning("expand_as", ulps=0)
def expand_as(x, other):
    return np.broadcast_to(x, other.shape)


@meaning("reshape_as", "view_as", ulps=0)
def reshape_as(x, other):
    return x.reshape(other.shape)


@meaning("type_as", ulps=0)
def type_as(x, other):
    return x


@meaning("select", ulps=0)
def select(x, dim, index):
    return np.take(x, index, dim)


@meaning("split", "split_with_sizes", ulps=0)
def split(x, sizes, dim=0):
    n = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, n - i) for i in range(0, n, sizes)] or [0]
    return np.split(x, np.cumsum(sizes)[:-1], dim)


@meaning("chunk", ulps=0)
def chunk(x, chunks, dim=0):
    return split(x, -(-x.shape[dim] // chunks), dim)


@meaning("tensor_split", ulps=0)
def tensor_split(x, where, dim=0):
    return np.array_split(x, where, dim) if isinstance(where, int) else np.split(x, where, dim)


@meaning("unbind", ulps=0)
def unbind(x, dim=0):
    return [np.take(x, i, dim) for i in range(x.shape[dim])]


@meaning("trace", loose=4)
def trace(x):
    return np.trace(x) if x.dtype.kind == "f" else np.asarray(np.trace(x), "int64")


@meaning("diag", ulps=0)
def diag(x, diagonal=0):
    return np.diag(x, diagonal)


@meaning("diag_embed", ulps=0)
def diag_embed(x, offset=0):
    n = x.shape[-1]
    y = np.zeros((*x.shape[:-1], n + abs(offset), n + abs(offset)), x.dtype)
    i = np.arange(n)
    y[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return y


@meaning("as_strided", ulps=0)
def as_strided(x, size, stride, storage_offset=0):
    return as_strided_view(x, size, stride, storage_offset, None, None)


@meaning("diff", loose=4)
def diff(x, n=1, dim=-1):
    return np.diff(x, n, dim)


@meaning("clamp", ulps=0)
def clamp(x, min=None, max=None):
    y = x if min is None else np.maximum(x, min)
    return y if max is None else np.minimum(y, max)


@meaning("round", loose=2)
def rounding(x, decimals=0):
    return np.round(x, decimals)


@meaning("lerp", loose=4)
def lerp(x, end, weight):
    return x * (1 - weight) + end * weight


@meaning("addcmul", loose=4)
def addcmul(x, a, b, value=1):
    return x + value * a * b


@meaning("addcdiv", loose=4)
def addcdiv(x, a, b, value=1):
    return x + value * a / b


@meaning("rsub", loose=1)
def rsub(x, other):
    return other - x


@meaning("isclose")
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.isclose(a, b, rtol, atol, equal_nan)


@meaning("allclose")
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return bool(np.isclose(a, b, rtol, atol, equal_nan).all())


@meaning("equal")
def equal(a, b):
    return bool(np.array_equal(a, b))


@meaning("isin")
def isin(x, values, invert=False):
    return np.isin(x, values, invert=invert)


def extreme(pick, pair, x, dim, keepdim):
    """Three forms: of all, along an axis, of two tensors."""
    if isinstance(dim, np.ndarray):
        return pair(x, dim)
    if dim is None:
        return np.asarray(pair.reduce(x, None))
    wide, axis = (x.reshape(1), 0) if x.ndim == 0 else (x, dim)
    where = np.expand_dims(pick(wide, axis), axis)
    values = np.take_along_axis(wide, where, axis)
    if x.ndim == 0:
        return values.reshape(()), where.reshape(())
    return (values, where) if keepdim else (values.squeeze(axis), where.squeeze(axis))


@meaning("max", ulps=0)
def largest(x, dim=None, keepdim=False):
    return extreme(np.argmax, np.maximum, x, dim, keepdim)


@meaning("min", ulps=0)
def smallest(x, dim=None, keepdim=False):
    return extreme(np.argmin, np.minimum, x, dim, keepdim)


@meaning("aminmax", ulps=0)
def aminmax(x, dim=None, keepdim=False):
    return np.min(x, dim, keepdims=keepdim), np.max(x, dim, keepdims=keepdim)


@meaning("var_mean", loose=16)
def var_mean(x, dim=None, correction=1, keepdim=False):
    return var(x, dim, correction, keepdim), x.mean(dim, keepdims=keepdim)


@meaning("std_mean", loose=16)
def std_mean(x, dim=None, correction=1, keepdim=False):
    return np.sqrt(var(x, dim, correction, keepdim)), x.mean(dim, keepdims=keepdim)


@meaning("nansum", loose=8)
def nansum(x, dim=None, keepdim=False):
    return np.nansum(x, dim, keepdims=keepdim)


@meaning("nan_to_num", ulps=0)
def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    if posinf is None:
        return None
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def polygamma_at(n, x):
    """n >= 1: a long sum of powers, and what the integral leaves of the rest."""
    if x <= 0 and x == int(x):
        return (-1) ** (n + 1) * math.inf
    first = min(int(np.floor(x)), 0)
    terms = [(x + k) ** -(n + 1) for k in range(200 - first)]
    a = x + len(terms)
    terms += [a**-n / n, a ** -(n + 1) / 2, (n + 1) * a ** -(n + 2) / 12]
    terms.append(-(n + 1) * (n + 2) * (n + 3) * a ** -(n + 4) / 720)
    return (-1) ** (n + 1) * math.factorial(n) * math.fsum(terms)


@meaning("polygamma", loose=8)
def polygamma(n, x):
    x = np.asarray(x, "float64")
    one = (lambda n, v: psi(v)) if n == 0 else polygamma_at
    return np.array([one(n, v) for v in x.ravel()]).reshape(x.shape)


@meaning("result_type")
def result_type(x, other):
    return None


@meaning("can_cast")
def can_cast(a, b):
    return b.is_floating_point


@meaning("einsum", loose=8)
def einsum(equation, *operands):
    return np.einsum(equation, *operands)


@meaning("norm", "linalg.vector_norm", loose=8)
def norm(x, p=2, dim=None, keepdim=False):
    a = np.abs(x)
    axis = dim if dim is not None else tuple(range(x.ndim))
    if p == np.inf:
        return a.max(axis, keepdims=keepdim)
    if p == -np.inf:
        return a.min(axis, keepdims=keepdim)
    if p == 0:
        return (a != 0).sum(axis, keepdims=keepdim).astype("float64")
    return (a**p).sum(axis, keepdims=keepdim) ** (1 / p)


@meaning("tensordot", loose=8)
def tensordot(a, b, dims=2):
    return np.tensordot(a, b, dims)
