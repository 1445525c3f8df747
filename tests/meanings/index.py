"""Meanings of rows that pick, place and add by index."""

import numpy as np
from oracle import meaning


@meaning("index_select", ulps=0)
def index_select(x, dim, index):
    return np.take(x, np.atleast_1d(index), dim)


@meaning("index_embed", loose=4)
def index_embed(x, index, shape, dim):
    return index_add(np.zeros(shape, x.dtype), dim, index, x)


@meaning("index_add", loose=4)
def index_add(x, dim, index, source, alpha=1):
    y = np.array(x)
    moved, parts = np.moveaxis(y, dim, 0), np.moveaxis(source, dim, 0)
    for i, part in zip(index, parts):
        moved[i] += (part * alpha).astype(x.dtype)
    return y


@meaning("embedding", ulps=0)
def embedding(index, weight, padding_idx=None):
    return weight[index]


@meaning("gather", ulps=0)
def gather(x, dim, index):
    if x.ndim == 0:
        return x
    crop = tuple(slice(None) if d == dim % x.ndim else slice(n) for d, n in enumerate(index.shape))
    return np.take_along_axis(x[crop], index, dim)


def places(index, dim):
    """Coordinates at which scatter writes, in row-major order."""
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        yield at, tuple(to)


@meaning("scatter_embed", loose=4)
def scatter_embed(x, index, shape, dim):
    return scatter_add(np.zeros(shape, x.dtype), dim, index, x)


@meaning("scatter", ulps=0)
def scatter(x, dim, index, src):
    y = np.array(x)
    for at, to in places(index, dim):
        y[to] = src[at] if isinstance(src, np.ndarray) else src
    return y


@meaning("scatter_add", loose=4)
def scatter_add(x, dim, index, src):
    y = np.array(x)
    for at, to in places(index, dim):
        y[to] += src[at]
    return y


def key(indices, mask, ndim):
    """A NumPy key: index arrays where the mask has bits, full slices elsewhere."""
    rest = iter(indices)
    return tuple(next(rest) if mask >> d & 1 else slice(None) for d in range(ndim))


@meaning("index", ulps=0)
def index(x, indices, mask):
    return x[key(indices, mask, x.ndim)]


@meaning("put_embed", loose=4)
def put_embed(x, indices, shape, mask):
    y = np.zeros(shape, x.dtype)
    np.add.at(y, key(indices, mask, len(shape)), x)
    return y


@meaning("index_put", loose=4)
def index_put(x, value, indices, mask, accumulate=False):
    y = np.array(x)
    if accumulate:
        np.add.at(y, key(indices, mask, x.ndim), value)
    else:
        y[key(indices, mask, x.ndim)] = value
    return y


@meaning("nonzero_sized")
def nonzero_sized(x, count):
    return np.stack(np.nonzero(x), 1).astype("int64")


@meaning("nonzero")
def nonzero(x):
    return np.argwhere(x).astype("int64")


@meaning("tril", ulps=0)
def tril(x, diagonal=0):
    return np.tril(x, diagonal)


@meaning("triu", ulps=0)
def triu(x, diagonal=0):
    return np.triu(x, diagonal)


@meaning("take", ulps=0)
def take(x, index):
    return x.reshape(-1)[index]


@meaning("take_along_dim", ulps=0)
def take_along_dim(x, indices, dim=None):
    return np.take_along_axis(x, indices, dim)


@meaning("masked_fill", ulps=0)
def masked_fill(x, mask, value):
    return np.where(mask, np.asarray(value, x.dtype), x)


@meaning("masked_select", ulps=0)
def masked_select(x, mask):
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


@meaning("index_copy", ulps=0)
def index_copy(x, dim, index, source):
    y = np.array(x)
    np.moveaxis(y, dim, 0)[index] = np.moveaxis(source, dim, 0)
    return y


@meaning("index_fill", ulps=0)
def index_fill(x, dim, index, value):
    y = np.array(x)
    np.moveaxis(y, dim, 0)[index] = value
    return y


@meaning("select_between", loose=4)
def select_between(x, low, high, part, dim):
    x = np.moveaxis(x, dim, -1)
    return np.moveaxis(x[..., low] * (1 - part) + x[..., high] * part, -1, dim)


@meaning("between_embed", loose=4)
def between_embed(u, low, high, part, shape, dim):
    y, u = np.moveaxis(np.zeros(shape), dim, -1), np.moveaxis(u, dim, -1)
    np.add.at(y, (..., low), u * (1 - part))
    np.add.at(y, (..., high), u * part)
    return np.moveaxis(y, -1, dim)
