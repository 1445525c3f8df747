"""Meanings of convolutions and pooling, as loops over the places of the result."""

import itertools

import numpy as np
from oracle import meaning


def each(value, n):
    """One number for each spatial dimension."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def taps(shape, kernel, out, stride, padding, dilation):
    """(place in the result, place in the window, place in the input) of all that fall inside."""
    for o in np.ndindex(*out):
        for k in np.ndindex(*kernel):
            at = tuple(o[i] * stride[i] - padding[i] + k[i] * dilation[i] for i in range(len(out)))
            if all(0 <= a < s for a, s in zip(at, shape)):
                yield o, k, at


def out_size(shape, kernel, stride, padding, dilation):
    """Sizes of a convolution's result."""
    return tuple(
        (s + 2 * p - d * (k - 1) - 1) // t + 1
        for s, k, t, p, d in zip(shape, kernel, stride, padding, dilation)
    )


def groups_of(channels, groups):
    """Slices of the channels of each group."""
    size = channels // groups
    return [slice(g * size, (g + 1) * size) for g in range(groups)]


@meaning("convolution", "conv1d", "conv2d", "conv3d", loose=32)
def convolution(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    n = x.ndim - 2
    stride, padding, dilation = (each(v, n) for v in (stride, padding, dilation))
    out = out_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    y = np.zeros((x.shape[0], w.shape[0], *out))
    for c, k in zip(groups_of(x.shape[1], groups), groups_of(w.shape[0], groups)):
        for o, tap, at in taps(x.shape[2:], w.shape[2:], out, stride, padding, dilation):
            y[(slice(None), k, *o)] += x[(slice(None), c, *at)] @ w[(k, slice(None), *tap)].T
    return y if bias is None else y + bias.reshape((-1,) + (1,) * n)


@meaning("conv_grad_input", loose=32)
def conv_grad_input(u, w, size, stride=1, padding=0, dilation=1, groups=1):
    n = u.ndim - 2
    stride, padding, dilation = (each(v, n) for v in (stride, padding, dilation))
    y = np.zeros((u.shape[0], w.shape[1] * groups, *size))
    for c, k in zip(groups_of(y.shape[1], groups), groups_of(w.shape[0], groups)):
        for o, tap, at in taps(size, w.shape[2:], u.shape[2:], stride, padding, dilation):
            y[(slice(None), c, *at)] += u[(slice(None), k, *o)] @ w[(k, slice(None), *tap)]
    return y


@meaning("conv_grad_weight", loose=64)
def conv_grad_weight(u, x, size, stride=1, padding=0, dilation=1, groups=1):
    n = u.ndim - 2
    stride, padding, dilation = (each(v, n) for v in (stride, padding, dilation))
    y = np.zeros((u.shape[1], x.shape[1] // groups, *size))
    for c, k in zip(groups_of(x.shape[1], groups), groups_of(u.shape[1], groups)):
        for o, tap, at in taps(x.shape[2:], size, u.shape[2:], stride, padding, dilation):
            y[(k, slice(None), *tap)] += u[(slice(None), k, *o)].T @ x[(slice(None), c, *at)]
    return y


@meaning("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", loose=32)
def conv_transpose(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    n = x.ndim - 2
    s, p, o, d = (each(v, n) for v in (stride, padding, output_padding, dilation))
    size = [
        (x.shape[2 + i] - 1) * s[i] - 2 * p[i] + d[i] * (w.shape[2 + i] - 1) + o[i] + 1
        for i in range(n)
    ]
    y = conv_grad_input(x, w, tuple(size), stride, padding, dilation, groups)
    return y if bias is None else y + bias.reshape((-1,) + (1,) * n)


def pool_size(shape, kernel, stride, padding, dilation, ceil_mode):
    """Sizes of a pool's result: the last window starts inside the input or its left padding."""
    out = []
    for s, k, t, p, d in zip(shape, kernel, stride, padding, dilation):
        span = s + 2 * p - d * (k - 1) - 1
        o = (-(-span // t) if ceil_mode else span // t) + 1
        out.append(o - 1 if ceil_mode and (o - 1) * t >= s + p else o)
    return tuple(out)


@meaning("max_pool", "max_pool1d", "max_pool2d", "max_pool3d", ulps=0)
def max_pool(x, kernel_size, stride, padding=0, dilation=1, ceil_mode=False, nd=None):
    n = x.ndim - 2
    kernel, stride, padding, dilation = (
        each(v, n) for v in (kernel_size, stride, padding, dilation)
    )
    out = pool_size(x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    y = np.full((*x.shape[:2], *out), -np.inf)
    where = np.full(y.shape, -1, "int64")
    for o, _, at in taps(x.shape[2:], kernel, out, stride, padding, dilation):
        new, old, i = x[(..., *at)], y[(..., *o)], where[(..., *o)]
        better = (new > old) | np.isnan(new) | (i < 0)
        y[(..., *o)] = np.where(better, new, old)
        where[(..., *o)] = np.where(better, np.ravel_multi_index(at, x.shape[2:]), i)
    return y, where


def box(lows, highs):
    """The places of a box."""
    return itertools.product(*[range(a, b) for a, b in zip(lows, highs)])


def averages(shape, out, kernel, stride, padding, include, divisor):
    """(place in the result, places in the input, divisor) of each window."""
    for o in np.ndindex(*out):
        starts = [i * t - p for i, t, p in zip(o, stride, padding)]
        ends = [min(a + k, s + p) for a, k, s, p in zip(starts, kernel, shape, padding)]
        inside = [max(a, 0) for a in starts], [min(b, s) for b, s in zip(ends, shape)]
        full = np.prod([b - a for a, b in zip(starts, ends)])
        cut = np.prod([b - a for a, b in zip(*inside)])
        yield o, list(box(*inside)), divisor or (full if include else cut)


@meaning("avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d", loose=8)
def avg_pool(
    x,
    kernel_size,
    stride,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor=None,
    nd=None,
):
    n = x.ndim - 2
    kernel, stride, padding = (each(v, n) for v in (kernel_size, stride, padding))
    out = pool_size(x.shape[2:], kernel, stride, padding, (1,) * n, ceil_mode)
    y = np.zeros((*x.shape[:2], *out))
    for o, places, count in averages(
        x.shape[2:], out, kernel, stride, padding, count_include_pad, divisor
    ):
        y[(..., *o)] = sum(x[(..., *at)] for at in places) / count
    return y


@meaning("avg_pool_grad", loose=8)
def avg_pool_grad(
    u,
    kernel_size,
    stride,
    size,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor=None,
    nd=None,
):
    n = u.ndim - 2
    kernel, stride, padding = (each(v, n) for v in (kernel_size, stride, padding))
    y = np.zeros((*u.shape[:2], *size))
    for o, places, count in averages(
        size, u.shape[2:], kernel, stride, padding, count_include_pad, divisor
    ):
        for at in places:
            y[(..., *at)] += u[(..., *o)] / count
    return y


def adaptive_windows(shape, out):
    """(place in the result, places in the input) of each window."""
    for o in np.ndindex(*out):
        starts = [i * s // t for i, s, t in zip(o, shape, out)]
        ends = [-(-(i + 1) * s // t) for i, s, t in zip(o, shape, out)]
        yield o, list(box(starts, ends))


@meaning(
    "adaptive_avg_pool",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    loose=8,
)
def adaptive_avg_pool(x, size, nd=None):
    y = np.zeros((*x.shape[:2], *size))
    for o, places in adaptive_windows(x.shape[2:], size):
        y[(..., *o)] = sum(x[(..., *at)] for at in places) / len(places)
    return y


@meaning(
    "adaptive_max_pool", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", ulps=0
)
def adaptive_max_pool(x, size, nd=None):
    y = np.zeros((*x.shape[:2], *size))
    where = np.zeros(y.shape, "int64")
    for o, places in adaptive_windows(x.shape[2:], size):
        window = np.stack([x[(..., *at)] for at in places], -1)
        flat = np.array([np.ravel_multi_index(at, x.shape[2:]) for at in places])
        y[(..., *o)], where[(..., *o)] = window.max(-1), flat[window.argmax(-1)]
    return y, where


@meaning("adaptive_avg_pool_grad", loose=8)
def adaptive_avg_pool_grad(u, size, nd=None):
    y = np.zeros((*u.shape[:2], *size))
    for o, places in adaptive_windows(size, u.shape[2:]):
        for at in places:
            y[(..., *at)] += u[(..., *o)] / len(places)
    return y


@meaning("pool_gather", ulps=0)
def pool_gather(x, indices, nd):
    flat = x.reshape(*x.shape[:2], -1)
    return np.take_along_axis(flat, indices.reshape(*x.shape[:2], -1), 2).reshape(indices.shape)


@meaning("pool_scatter", loose=4)
def pool_scatter(u, indices, size, nd):
    y = np.zeros((*u.shape[:2], int(np.prod(each(size, nd)))))
    places = indices.reshape(*u.shape[:2], -1)
    for n, c, k in np.ndindex(places.shape):
        y[n, c, places[n, c, k]] += u.reshape(places.shape)[n, c, k]
    return y.reshape(*u.shape[:2], *each(size, nd))
