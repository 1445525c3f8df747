"""Samples of reductions, scans and sorts."""

import numpy as np
from samples import ALL, DTYPES, Sample, maker

import tinyfin as tf

NAN, INF = np.nan, np.inf
FLOAT_ONLY = ("float64", "float32", "float16", "bfloat16")
DTYPES["linear_scan"] = ("float64", "float32")
for _name in "count_nonzero", "argmax", "any", "all":
    DTYPES[_name] = ALL


def normal(rng, *shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


def axes(rng):
    """Every way to name axes."""
    yield Sample(normal(rng, 3, 4))
    yield Sample(normal(rng, 3, 4), 0)
    yield Sample(normal(rng, 3, 4), -1, True)
    yield Sample(normal(rng, 2, 3, 2), (0, 2))
    yield Sample(normal(rng, 2, 3, 2), (1,), keepdim=True)
    yield Sample(normal(rng, 2, 1, 3), (-1, 0, 1))
    yield Sample(normal(rng))
    yield Sample(normal(rng), 0)
    yield Sample(normal(rng, 3, 0), 0)


def large(rng):
    """Rows longer than a block and a lane, columns wider than a vector."""
    yield Sample(normal(rng, 3, 301), 1).but(grad=False, only="f")
    yield Sample(normal(rng, 67, 35), 0).but(grad=False, only="f")


@maker("sum", "mean", "prod")
def sums(rng, name):
    for sample in (*axes(rng), Sample(normal(rng, 2, 3), ())):
        yield sample.but(
            torch=name != "prod" or len(sample.args) < 2 or not isinstance(sample.args[1], tuple)
        )
    for args in (0,), ():
        yield Sample(normal(rng, 0, 3), *args).but(
            grad=name != "mean"
        )  # the mean of nothing is NaN
    yield Sample(normal(rng, 2, 3), 1, dtype=tf.float64).but(grad=False)
    if name == "prod":
        yield Sample(np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0], [1.5, -2.0, 1.0]]), 1)
        yield Sample(np.array([0.0, 4.0, -1.0]))
        yield Sample(normal(rng, 3, 40), 1).but(grad=False, only="f")
    else:
        yield from large(rng)
        yield Sample(np.array([[1.0, NAN], [INF, 1.0], [INF, -INF]]), 1).but(
            grad=False, only="f", note="special"
        )


@maker("count_nonzero")
def count_nonzero(rng):
    x = np.where(normal(rng, 3, 5) > 0, 2.0, 0.0)
    for dim in None, 0, (0, 1), -1:
        yield Sample(x, dim)
    yield Sample(np.array([NAN, 0.0, -0.0, INF])).but(only="fh")


@maker("var", "std")
def spread(rng, name):
    for shape, kwargs in (
        ((3, 4), {}),
        ((3, 4), {"dim": 1}),
        ((3, 4), {"dim": 0, "correction": 0}),
        ((2, 3, 2), {"dim": (0, 2), "keepdim": True}),
        ((5,), {"correction": 2}),
    ):
        yield Sample(normal(rng, *shape), **kwargs)
    yield Sample(normal(rng, 3, 1), dim=1, correction=1).but(grad=False)
    yield Sample(normal(rng, 4, 300) + 1000, dim=1).but(
        grad=False, only="f", note="mean far from 0"
    )
    yield Sample(normal(rng, 0, 3), dim=0).but(grad=False)


def distinct(rng, *shape):
    """A permutation of different numbers: no ties."""
    n = int(np.prod(shape))
    return np.asarray(rng.permutation(n).reshape(shape), "float64")


@maker("amax", "amin", "max_over", "min_over")
def extrema(rng):
    for sample in axes(rng):
        sample.args = (distinct(rng, *sample.args[0].shape), *sample.args[1:])
        if sample.args[0].size:
            yield sample
    yield Sample(np.zeros((3, 0)), 0)
    yield Sample(np.array([[1.0, NAN, 3.0], [-INF, 0.0, -INF]]), 1).but(
        grad=False, only="fh", note="special"
    )
    yield from large(rng)


@maker("any", "all")
def logic(rng):
    for shape, args in (
        ((3, 4), ()),
        ((3, 4), (1,)),
        ((2, 3, 2), ((0, 2), True)),
        ((), ()),
        ((0, 3), (0,)),
        ((0,), ()),
    ):
        yield Sample(np.where(normal(rng, *shape) > 0.8, 1.0, 0.0), *args)
    yield Sample(np.ones((2, 200))).but(grad=False)
    yield Sample(np.array([NAN, 0.0])).but(only="fh")


@maker("argmax", "argmin")
def places(rng):
    for shape, args in (
        ((3, 4), ()),
        ((3, 4), (0,)),
        ((3, 4), (-1, True)),
        ((2, 3, 2), (1,)),
        ((), ()),
        ((3, 0), (0,)),
    ):
        x = np.asarray(np.rint(normal(rng, *shape) * 2) + 0.0)
        yield Sample(x, *args)
    yield Sample(np.array([[1.0, NAN, 3.0, NAN], [-INF, 0.0, -INF, 0.0]]), 1).but(
        only="fh", note="special"
    )
    yield Sample(np.rint(normal(rng, 3, 300) * 3) + 0.0, 1)


@maker("max_dim", "min_dim")
def pairs(rng):
    for shape, args in (
        ((3, 4), (0, False)),
        ((3, 4), (-1, True)),
        ((2, 3, 2), (1, False)),
        ((5,), (0, False)),
        ((), (0, False)),
    ):
        yield Sample(distinct(rng, *shape), *args)
    yield Sample(np.array([[1.0, NAN, 3.0, NAN], [2.0, 0.0, 2.0, 0.0]]), 1).but(
        grad=False, only="fh", note="special"
    )
    yield Sample(np.rint(normal(rng, 3, 300) * 3) + 0.0, 1).but(grad=False)


@maker("logsumexp")
def logsumexp(rng):
    for sample in axes(rng):
        if len(sample.args) > 1 and sample.args[0].size:
            yield sample
    yield Sample(normal(rng, 0, 3), 0).but(grad=False)
    yield Sample(np.array([[-INF, -INF], [-INF, 2.0], [INF, 1.0], [900.0, 900.0]]), 1).but(
        grad=False, only="f", note="special"
    )


@maker("cumsum", "cumprod")
def scans(rng):
    for shape, dim in (
        ((3, 4), 0),
        ((3, 4), -1),
        ((2, 3, 2), 1),
        ((5,), 0),
        ((), 0),
        ((0, 2), 0),
        ((2, 0), 0),
    ):
        yield Sample(normal(rng, *shape), dim)
    yield Sample(np.array([2.0, 0.0, 3.0, 0.0, 1.0]), 0)
    yield Sample(normal(rng, 2, 3), 1, dtype=tf.float64).but(grad=False)
    yield Sample(normal(rng, 3, 40), 1).but(grad=False, only="f")


@maker("linear_scan")
def linear_scan(rng):
    for shape, dim in (((4,), 0), ((3, 4), 1), ((3, 2), 0), ((0,), 0)):
        yield Sample(normal(rng, *shape), normal(rng, *shape), dim)


@maker("cummax", "cummin")
def running_extrema(rng):
    for shape, dim in (((3, 4), 0), ((3, 4), -1), ((6,), 0), ((), 0)):
        yield Sample(distinct(rng, *shape), dim)
    yield Sample(np.array([1.0, 3.0, 3.0, 2.0, 3.0]), 0).but(grad=False)
    yield Sample(np.array([1.0, NAN, 3.0]), 0).but(grad=False, only="fh", note="special")


@maker("sort", "argsort")
def sort(rng, name):
    for shape, args in (
        ((3, 4), ()),
        ((3, 4), (0,)),
        ((3, 4), (-1, True)),
        ((2, 3, 2), (1, True)),
        ((), ()),
        ((2, 0), ()),
        ((7,), (0, False)),
    ):
        yield Sample(distinct(rng, *shape), *args)
    ties = np.rint(normal(rng, 3, 20) * 2) + 0.0
    for descending in False, True:
        yield Sample(ties, dim=1, descending=descending, stable=True).but(grad=False)
    yield Sample(np.array([2.0, NAN, -INF, INF, NAN, -0.0]), stable=True).but(
        grad=False, only="fh", note="special"
    )
    yield Sample(distinct(rng, 3, 300)).but(grad=False, only="f")


@maker("topk")
def topk(rng):
    for shape, args in (
        ((3, 5), (2,)),
        ((3, 5), (3, 0)),
        ((3, 5), (2, -1, False)),
        ((5,), (5,)),
        ((5,), (0,)),
        ((), (1,)),
    ):
        yield Sample(distinct(rng, *shape), *args)
    yield Sample(distinct(rng, 2, 300), 7).but(grad=False, only="f")
    yield Sample(np.array([1.0, NAN, 5.0, 2.0]), 2).but(grad=False, only="fh", note="special")


@maker("searchsorted", "bucketize")
def searched(rng, name):
    """Sorted numbers with repeats, values between, on, below and above them."""
    steps = np.array([-2.0, 0.0, 0.0, 1.0, 5.0])
    values = np.array([[-3.0, -2.0, 0.0], [0.5, 5.0, 9.0]])
    for kwargs in {}, {"right": True}, {"right": False}:
        yield Sample(*((steps, values) if name == "searchsorted" else (values, steps)), **kwargs)
    if name == "searchsorted":
        yield Sample(np.sort(normal(rng, 2, 5), 1), normal(rng, 2, 3))
        yield Sample(steps, 0.5)
    else:
        yield Sample(np.asarray(0.5), steps)


@maker("norm2", "sum_of_squares")
def norm2(rng):
    """Lengths along axes, and their squares; results of several tasks, in rows and in columns."""
    x = rng.standard_normal((3, 4))
    yield Sample(x)
    yield Sample(x, 1)
    yield Sample(x, (0, 1), True)
    yield Sample(rng.standard_normal((2, 3, 2)), (0, -1))
    yield Sample(np.asarray(2.5))
    yield Sample(np.zeros((0, 3)), 0).but(grad=False)
    yield Sample(rng.standard_normal((2, 70_000)), 1).but(grad=False)
    yield Sample(rng.standard_normal((3000, 20)), 0).but(grad=False)
    yield Sample(rng.standard_normal((2, 5, 40)), (0, 2)).but(grad=False)
