"""Samples of convolutions and pooling."""

import numpy as np
from samples import Sample, maker


def normal(rng, *shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


CONVS = [
    ((2, 2, 5), (3, 2, 3), {}),
    ((1, 4, 6), (2, 2, 2), {"stride": 2, "groups": 2}),
    ((1, 2, 4), (2, 1, 3), {"padding": 1, "groups": 2}),
    ((1, 2, 7), (2, 2, 2), {"dilation": 3, "stride": 2}),
    ((2, 1, 4, 5), (2, 1, 3, 2), {}),
    ((1, 2, 5, 4), (2, 2, 2, 2), {"stride": (2, 1), "padding": (1, 0)}),
    ((1, 2, 5, 5), (4, 1, 3, 3), {"groups": 2, "padding": 1}),
    ((1, 1, 6, 5), (1, 1, 2, 3), {"dilation": (3, 1), "stride": (4, 2)}),
    ((1, 2, 1, 1), (2, 2, 1, 1), {"padding": 1}),
    ((0, 2, 4, 4), (2, 2, 3, 3), {}),
    ((1, 1, 3, 3, 3), (2, 1, 2, 2, 2), {}),
    ((1, 2, 3, 2, 4), (2, 1, 2, 1, 2), {"groups": 2, "stride": (1, 2, 2), "padding": (1, 0, 1)}),
]
WIDE = [
    ((2, 5, 17, 19), (7, 5, 3, 3), {"padding": 1}),
    ((1, 16, 9, 9), (16, 1, 3, 3), {"groups": 16, "stride": 2}),
    ((2, 33, 6, 6), (35, 33, 1, 1), {}),
]


def wanted(name):
    """How many spatial dimensions a name has; None for any."""
    return int(name[-2]) if name[-1] == "d" and name[-2].isdigit() else None


@maker("convolution", "conv1d", "conv2d", "conv3d")
def convolution(rng, name):
    for k, (x, w, steps) in enumerate(CONVS + WIDE):
        if wanted(name) in (None, len(x) - 2):
            bias = [normal(rng, w[0])][: k % 2]
            yield Sample(normal(rng, *x), normal(rng, *w), *bias, **steps).but(
                grad=len(bias) + x[-1] < 15 and w[0] < 5
            )


def result_size(x, w, steps):
    """Spatial sizes of a convolution's result."""
    out = []
    for i in range(len(x) - 2):
        s, p, d = (
            steps.get(key, default)
            for key, default in (("stride", 1), ("padding", 0), ("dilation", 1))
        )
        s, p, d = (v[i] if isinstance(v, tuple) else v for v in (s, p, d))
        out.append((x[2 + i] + 2 * p - d * (w[2 + i] - 1) - 1) // s + 1)
    return tuple(out)


@maker("conv_grad_input", "conv_grad_weight")
def conv_grads(rng, name):
    for x, w, steps in CONVS + WIDE[:2]:
        u = normal(rng, x[0], w[0], *result_size(x, w, steps))
        other, size = (w, x[2:]) if name == "conv_grad_input" else (x, w[2:])
        yield Sample(u, normal(rng, *other), size=size, **steps).but(grad=w[0] < 5)


TRANSPOSED = [
    ((2, 2, 4), (2, 3, 3), {}),
    ((1, 2, 3), (2, 1, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    ((1, 2, 3, 3), (2, 2, 2, 3), {"stride": (2, 1)}),
    ((1, 2, 3, 2), (2, 1, 3, 3), {"groups": 2, "dilation": 2, "padding": 1}),
    ((2, 3, 2, 2), (3, 2, 2, 2), {"stride": 3, "output_padding": (1, 2)}),
    ((1, 1, 2, 2, 2), (1, 2, 2, 2, 1), {"stride": 2}),
]


@maker("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed(rng, name):
    for k, (x, w, steps) in enumerate(TRANSPOSED):
        if wanted(name) == len(x) - 2:
            bias = [normal(rng, w[1] * steps.get("groups", 1))][: k % 2]
            yield Sample(normal(rng, *x), normal(rng, *w), *bias, **steps)


POOLS = [
    ((2, 2, 6), {"kernel_size": 2, "stride": 2}),
    ((1, 1, 7), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((1, 2, 5), {"kernel_size": 2, "stride": 2, "padding": 1, "ceil_mode": True}),
    ((1, 1, 8), {"kernel_size": 3, "stride": 4, "ceil_mode": True}),
    ((2, 1, 4, 5), {"kernel_size": 2, "stride": 2}),
    ((1, 2, 5, 4), {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 0)}),
    ((1, 1, 5, 6), {"kernel_size": (2, 3), "stride": (3, 2), "ceil_mode": True}),
    ((1, 2, 3, 3), {"kernel_size": 3, "stride": 1}),
    ((0, 2, 4, 4), {"kernel_size": 2, "stride": 2}),
    ((1, 1, 4, 3, 4), {"kernel_size": 2, "stride": (2, 1, 2)}),
]


def distinct(rng, shape):
    """Different numbers, so that a window has one largest."""
    n = int(np.prod(shape))
    return (rng.permutation(n).reshape(shape) - n / 2 + 0.25) / 4


def pools(rng, name, extra):
    """Every pool of the name's dimensions; the rows without a number take it as an attribute."""
    for shape, window in POOLS:
        n = len(shape) - 2
        if wanted(name) in (None, n):
            tail = {} if wanted(name) else {"nd": n}
            yield Sample(distinct(rng, shape), **window, **tail)
            for more in extra:
                yield Sample(distinct(rng, shape), **window, **more, **tail)


@maker("max_pool", "max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(rng, name):
    yield from pools(rng, name, ())
    if wanted(name) in (None, 2):
        tail = {} if wanted(name) else {"nd": 2}
        yield Sample(distinct(rng, (1, 2, 7, 7)), kernel_size=2, stride=2, dilation=(3, 2), **tail)
        x = np.array([[[[1.0, np.nan, 2.0, -np.inf], [3.0, 0.0, -np.inf, -np.inf]]]])
        yield Sample(x, kernel_size=2, stride=2, **tail).but(grad=False, note="special")


@maker("avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(rng, name):
    more = [{"count_include_pad": False}]
    yield from pools(rng, name, more if wanted(name) == 1 else [*more, {"divisor": 3}])


@maker("avg_pool_grad")
def avg_pool_grad(rng):
    for shape, window in POOLS[:8]:
        n = len(shape) - 2
        kernel, stride, padding = (window.get(k, 0) for k in ("kernel_size", "stride", "padding"))
        kernel, stride, padding = (
            v if isinstance(v, tuple) else (v,) * n for v in (kernel, stride, padding)
        )
        size = []
        for i in range(n):
            span = shape[2 + i] + 2 * padding[i] - kernel[i]
            k = -(-span // stride[i]) if window.get("ceil_mode") else span // stride[i]
            size.append(
                k
                + 1
                - (bool(window.get("ceil_mode")) and k * stride[i] >= shape[2 + i] + padding[i])
            )
        for include in True, False:
            yield Sample(
                normal(rng, *shape[:2], *size),
                **window,
                count_include_pad=include,
                nd=n,
                size=shape[2:],
            )


ADAPTIVE = [
    ((2, 2, 5), (3,)),
    ((1, 1, 7), (7,)),
    ((1, 2, 4), (6,)),
    ((2, 1, 5, 4), (2, 3)),
    ((1, 2, 3, 3), (1, 1)),
    ((1, 1, 5, 2), (3, 1)),
    ((1, 1, 3, 4, 2), (2, 3, 1)),
]


@maker("adaptive_avg_pool", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def adaptive(rng, name):
    for shape, size in ADAPTIVE:
        n = len(shape) - 2
        if wanted(name) in (None, n):
            yield Sample(normal(rng, *shape), size, **({} if wanted(name) else {"nd": n}))


@maker("adaptive_max_pool", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max(rng, name):
    for shape, size in ADAPTIVE:
        n = len(shape) - 2
        if wanted(name) in (None, n):
            yield Sample(distinct(rng, shape), size, **({} if wanted(name) else {"nd": n}))


@maker("adaptive_avg_pool_grad")
def adaptive_grad(rng):
    for shape, size in ADAPTIVE:
        yield Sample(normal(rng, *shape[:2], *size), shape[2:], nd=len(size))


@maker("pool_scatter", "pool_gather")
def flat_places(rng, name):
    places = np.array([[[0, 3, 3], [5, 1, 0]]])
    yield (
        Sample(normal(rng, 1, 2, 3), places, size=6, nd=1)
        if name == "pool_scatter"
        else Sample(normal(rng, 1, 2, 6), places, nd=1)
    )
    grid = places.reshape(1, 1, 2, 3)
    yield (
        Sample(normal(rng, 1, 1, 2, 3), grid, size=(2, 4), nd=2)
        if name == "pool_scatter"
        else Sample(normal(rng, 1, 1, 2, 4), grid, nd=2)
    )
