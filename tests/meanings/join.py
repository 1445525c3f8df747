"""Meanings of rows that join, pad and repeat."""

import numpy as np
from oracle import meaning


@meaning("cat", ulps=0)
def cat(tensors, dim=0):
    kept = [x for x in tensors if x.shape != (0,)] or tensors
    return np.concatenate(kept, dim)


@meaning("stack", ulps=0)
def stack(tensors, dim=0):
    return np.stack(tensors, dim)


@meaning("hstack", ulps=0)
def hstack(tensors):
    return np.hstack(tensors)


@meaning("vstack", ulps=0)
def vstack(tensors):
    return np.vstack(tensors)


@meaning("dstack", ulps=0)
def dstack(tensors):
    return np.dstack(tensors)


@meaning("column_stack", ulps=0)
def column_stack(tensors):
    return np.column_stack(tensors)


@meaning("narrow_embed", ulps=0)
def narrow_embed(x, shape, dim, start, length):
    y = np.zeros(shape, x.dtype)
    start %= max(shape[dim], 1)
    y[(slice(None),) * dim + (slice(start, start + length),)] = x
    return y


@meaning("pad_constant", ulps=0)
def pad_constant(x, pad, value=0.0):
    for k in range(len(pad) // 2):
        axis, before, after = x.ndim - 1 - k, pad[2 * k], pad[2 * k + 1]
        x = np.take(x, range(max(-before, 0), x.shape[axis] - max(-after, 0)), axis)
        widths = [(0, 0)] * x.ndim
        widths[axis] = (max(before, 0), max(after, 0))
        x = np.pad(x, widths, constant_values=np.asarray(value).astype(x.dtype))
    return x


@meaning("repeat", ulps=0)
def repeat(x, repeats):
    return np.tile(x, repeats)


@meaning("tile", ulps=0)
def tile(x, dims):
    return np.tile(x, dims)


@meaning("roll", ulps=0)
def roll(x, shifts, dims=None):
    return np.roll(x, shifts, dims)


@meaning("repeat_interleave", ulps=0)
def repeat_interleave(x, repeats, dim=None):
    return np.repeat(x, repeats, dim)
