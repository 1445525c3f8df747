"""Meanings of views."""

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from oracle import meaning


@meaning("reshape", "view", ulps=0)
def reshape(x, shape):
    return x.reshape(shape)


@meaning("permute", ulps=0)
def permute(x, dims):
    return np.transpose(x, dims)


@meaning("transpose", ulps=0)
def transpose(x, dim0, dim1):
    return np.swapaxes(x, dim0, dim1) if x.ndim else x


@meaning("permute_back", ulps=0)
def permute_back(x, dims):
    return np.transpose(x, np.argsort(dims))


@meaning("select_view", ulps=0)
def select_view(x, dim, index):
    return np.take(x, index, dim)


@meaning("t", ulps=0)
def t(x):
    return np.transpose(x)


@meaning("expand", ulps=0)
def expand(x, size):
    lead = len(size) - x.ndim
    wanted = [x.shape[i - lead] if s == -1 else s for i, s in enumerate(size)]
    return np.broadcast_to(x, wanted)


@meaning("unsqueeze", ulps=0)
def unsqueeze(x, dim):
    return np.expand_dims(x, dim)


@meaning("squeeze", ulps=0)
def squeeze(x, dim=None):
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    gone = tuple({d % x.ndim for d in dims if x.shape[d] == 1}) if x.ndim else ()
    return np.squeeze(x, gone)


@meaning("flip", ulps=0)
def flip(x, dims):
    return np.flip(x, dims)


@meaning("narrow", ulps=0)
def narrow(x, dim, start, length):
    start = start + x.shape[dim] if start < 0 else start
    return np.take(x, range(start, start + length), dim)


@meaning("diagonal", ulps=0)
def diagonal(x, offset=0, dim1=0, dim2=1):
    return np.diagonal(x, offset, dim1, dim2)


@meaning("unfold", ulps=0)
def unfold(x, dimension, size, step):
    axis = dimension % x.ndim
    windows = sliding_window_view(x, size, axis)
    return np.take(windows, range(0, windows.shape[axis], step), axis)


@meaning("alias", ulps=0)
def alias(x):
    return x


@meaning("getitem_view", ulps=0)
def getitem_view(x, spec):
    key = [
        start if step == 0 else [start + step * i for i in range(size)]
        for start, step, size in zip(spec[0:24:3], spec[1:24:3], spec[2:24:3])
    ]
    for axis in reversed(range(x.ndim)):
        x = np.take(x, np.array(key[axis], int), axis)
    return x[None] if spec[24] else x


@meaning("as_strided_view", ulps=0)
def as_strided_view(x, size, stride, storage_offset, base_stride, base_offset):
    flat = np.ascontiguousarray(x).reshape(-1)[storage_offset:]
    return as_strided(flat, size, [s * x.itemsize for s in stride]).copy()


@meaning("rows", ulps=0)
def rows(x):
    return x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])


@meaning("unreduce", ulps=0)
def unreduce(x, shape, dim, keepdim=False):
    return np.broadcast_to(x if keepdim else np.expand_dims(x, tuple(dim)), shape)
