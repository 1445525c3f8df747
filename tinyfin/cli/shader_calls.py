"""Calls of the rows that are not elementwise, for the check of kernels: every family of the table.

Values need not make sense together (a mean may belong to other numbers): both devices get the same.
Sizes lie around lanes (64), work groups (256) and blocks (2,048).
"""

from __future__ import annotations

import numpy as np

import tinyfin
from tinyfin.cli.shader_cases import SIZES, Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from numpy.random import Generator
    from numpy.typing import NDArray

    Maker = Callable[[Generator, str], Iterator[Call]]

CALLS: dict[str, Maker] = {}
"""Row -> function of a random generator and the row's name that yields its calls."""


def calls(*names: str) -> Callable[[Maker], Maker]:
    """Registers a maker of calls."""

    def register(fn: Maker) -> Maker:
        for name in names:
            if name in CALLS:
                raise AssertionError(f"two makers of calls for {name}")
            CALLS[name] = fn
        return fn

    return register


def normal(rng: Generator, *shape: int) -> NDArray[Any]:
    """Random numbers of both signs."""
    return np.asarray(rng.standard_normal(shape))


def positive(rng: Generator, *shape: int) -> NDArray[Any]:
    """Random numbers from 0.5 to 2."""
    return np.asarray(rng.uniform(0.5, 2, shape))


def distinct(rng: Generator, *shape: int) -> NDArray[Any]:
    """A permutation of different numbers, whole and few enough for every dtype but bytes."""
    n = int(np.prod(shape))
    return np.asarray(rng.permutation(n).reshape(shape) - n // 2, "float64")


def tied(rng: Generator, *shape: int) -> NDArray[Any]:
    """Numbers of which many are equal."""
    return np.rint(normal(rng, *shape) * 2) + 0.0


def places(rng: Generator, below: int, *shape: int) -> NDArray[Any]:
    """Indices."""
    return rng.integers(0, below, shape)


def each_way(rng: Generator) -> Iterator[tuple[tuple[int, ...], int]]:
    """(shape, axis) with an axis of every size, contiguous and not."""
    for n in SIZES[1:]:
        yield (3, n), 1
        yield (n, 5), 0
    yield (2, 70, 3), 1
    yield (0, 4), 1
    yield (300, 7), 1


# ---- copies


@calls("cast")
def _cast(rng: Generator, name: str) -> Iterator[Call]:
    for dtype in (
        "float32",
        "float16",
        "bfloat16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
    ):
        for shape in (0,), (1,), (65,), (7, 5, 9), (2049,):
            yield Call(normal(rng, *shape) * 40, getattr(tinyfin, dtype))


@calls("contiguous_copy")
def _copy(rng: Generator, name: str) -> Iterator[Call]:
    for shape in ((), (0, 3), (1,), (63,), (64,), (2049,), (7, 5, 9), (2, 3, 2, 3, 2), (3, 70, 65)):
        yield Call(normal(rng, *shape))


# ---- reductions, scans, sorts


@calls(
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "max_over",
    "min_over",
    "any",
    "all",
    "count_nonzero",
    "var",
    "std",
    "sum_of_squares",
)
def _reduction(rng: Generator, name: str) -> Iterator[Call]:
    scale = 0.05 if name == "prod" else 1.0
    base = 1.0 if name == "prod" else 0.0
    for shape, dim in each_way(rng):
        if name in ("amax", "amin", "max_over", "min_over") and shape[dim] == 0:
            continue
        yield Call(base + scale * normal(rng, *shape), dim)
    for n in SIZES[1:]:
        yield Call(base + scale * normal(rng, n))
    yield Call(base + scale * normal(rng, 4, 70, 5), (0, 2))
    yield Call(base + scale * normal(rng, 3, 4, 5, 6), (1, 3))
    yield Call(np.zeros((3, 400)), 1)
    special = np.array([[1.0, np.nan, 2.0], [np.inf, -np.inf, 0.0], [-0.0, -0.0, -0.0]])
    yield Call(special, 1).but(only="fh")
    if name in ("sum", "mean"):
        yield Call(normal(rng, 150_001)).but(only="f", layouts=False)


@calls("argmax", "argmin", "max_dim", "min_dim")
def _extremum(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in each_way(rng):
        yield Call(tied(rng, *shape), dim)
    if name.startswith("arg"):
        for n in SIZES[1:]:
            yield Call(tied(rng, n))
    yield Call(np.array([[1.0, np.nan, 3.0, np.nan], [-np.inf, 0.0, -np.inf, 0.0]]), 1).but(
        only="fh"
    )


@calls("cumsum", "cumprod", "cummax", "cummin")
def _scan(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in each_way(rng):
        x = tied(rng, *shape) if name in ("cummax", "cummin") else normal(rng, *shape)
        yield Call(1 + 0.05 * x if name == "cumprod" else x, dim)
    yield Call(np.array([1.0, np.nan, 3.0, np.inf]), 0).but(only="fh")


@calls("linear_scan")
def _linear_scan(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in each_way(rng):
        yield Call(rng.uniform(-1, 1, shape), normal(rng, *shape), dim)


@calls("sort")
def _sort(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in each_way(rng):
        yield Call(tied(rng, *shape), dim, descending=bool(dim), stable=True)
    yield Call(normal(rng, 5003), 0)
    yield Call(np.array([2.0, np.nan, -np.inf, np.inf, np.nan, -0.0, 0.0]), stable=True).but(
        only="fh"
    )


@calls("topk")
def _topk(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in each_way(rng):
        if shape[dim]:
            yield Call(distinct(rng, *shape), min(5, shape[dim]), dim, bool(dim))


@calls("searchsorted")
def _searchsorted(rng: Generator, name: str) -> Iterator[Call]:
    for n in SIZES[1:]:
        yield Call(np.sort(tied(rng, n)), tied(rng, 300)).but(layouts=False)
        yield Call(np.sort(tied(rng, n)), tied(rng, 3, 65), right=True).but(layouts=False)


# ---- indices


@calls("index_select")
def _index_select(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in (((70, 5), 0), ((5, 70), 1), ((3, 65, 4), 1), ((257,), 0)):
        for n in (0, 1, 65, 2049):
            yield Call(normal(rng, *shape), dim, places(rng, shape[dim], n))


@calls("index_embed")
def _index_embed(rng: Generator, name: str) -> Iterator[Call]:
    for n in (0, 1, 65, 700):
        yield Call(normal(rng, n, 5), places(rng, 33, n), (33, 5), 0)
        yield Call(normal(rng, 3, n), places(rng, 33, n), (3, 33), 1)


@calls("index_add", "index_copy")
def _index_add(rng: Generator, name: str) -> Iterator[Call]:
    for n in (0, 1, 33, 400):
        index = places(rng, 33, n) if name == "index_add" else rng.permutation(500)[:n]
        size = 33 if name == "index_add" else 500
        yield Call(normal(rng, size, 5), 0, index, normal(rng, n, 5))
        yield Call(normal(rng, 3, size), 1, index, normal(rng, 3, n))
    if name == "index_add":
        yield Call(normal(rng, 9, 3), 0, places(rng, 9, 65), normal(rng, 65, 3), alpha=2)


@calls("index_fill")
def _index_fill(rng: Generator, name: str) -> Iterator[Call]:
    for n in (0, 1, 65):
        yield Call(normal(rng, 70, 5), 0, places(rng, 70, n), 1)
        yield Call(normal(rng, 3, 70), 1, places(rng, 70, n), np.asarray(2.0))


@calls("embedding")
def _embedding(rng: Generator, name: str) -> Iterator[Call]:
    for shape in ((0,), (1,), (65,), (33, 70)):
        yield Call(places(rng, 100, *shape), normal(rng, 100, 17))
    yield Call(places(rng, 9, 5), normal(rng, 9, 64), padding_idx=2)


@calls("gather")
def _gather(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in each_way(rng):
        if shape[dim]:
            yield Call(normal(rng, *shape), dim, places(rng, shape[dim], *shape))


@calls("scatter_embed")
def _scatter_embed(rng: Generator, name: str) -> Iterator[Call]:
    for n in (1, 65, 700):
        yield Call(normal(rng, 3, n), places(rng, 40, 3, n), (3, 40), 1)
        yield Call(normal(rng, n, 3), places(rng, 40, n, 3), (40, 3), 0)


@calls("scatter", "scatter_add")
def _scatter(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in each_way(rng):
        if shape[dim]:
            index = np.argsort(rng.uniform(size=shape), axis=dim)
            if name == "scatter_add":
                index = index // 2
            yield Call(normal(rng, *shape), dim, index, normal(rng, *shape))
    if name == "scatter":
        yield Call(normal(rng, 3, 65), 1, places(rng, 65, 3, 2), 2)


@calls("index")
def _index(rng: Generator, name: str) -> Iterator[Call]:
    for n in (0, 1, 65, 700):
        yield Call(normal(rng, 40, 7), [places(rng, 80, n) - 40], 1)
        yield Call(normal(rng, 40, 7), [places(rng, 40, n), places(rng, 7, n)], 3)
        yield Call(normal(rng, 4, 7, 5), [places(rng, 4, n), places(rng, 5, n)], 5)
    yield Call(normal(rng, 4, 30, 2), [places(rng, 30, 3, 5)], 2)


@calls("put_embed")
def _put_embed(rng: Generator, name: str) -> Iterator[Call]:
    for n in (0, 1, 65, 700):
        yield Call(normal(rng, n, 7), [places(rng, 40, n)], (40, 7), 1)
        yield Call(normal(rng, n), [places(rng, 40, n), places(rng, 7, n)], (40, 7), 3)


@calls("index_put")
def _index_put(rng: Generator, name: str) -> Iterator[Call]:
    for n in (0, 1, 33):
        yield Call(normal(rng, 40, 7), normal(rng, n, 7), [rng.permutation(40)[:n]], 1)
        yield Call(normal(rng, 40, 7), normal(rng, 7), [places(rng, 40, n)], 1, True)
        yield Call(normal(rng, 40, 7), 2, [places(rng, 40, n), places(rng, 7, n)], 3)


@calls("nonzero_sized")
def _nonzero_sized(rng: Generator, name: str) -> Iterator[Call]:
    for shape in ((0,), (1,), (64,), (65, 3), (2049,), (7, 5, 9)):
        x = np.where(normal(rng, *shape) > 0, 1.0, 0.0)
        yield Call(x, int(np.count_nonzero(x))).but(layouts=False)


@calls("tril", "triu")
def _triangle(rng: Generator, name: str) -> Iterator[Call]:
    for shape in ((1, 1), (0, 3), (65, 64), (3, 33, 70), (257, 9)):
        for diagonal in (0, 2, -3):
            yield Call(normal(rng, *shape), diagonal)


@calls("cat")
def _cat(rng: Generator, name: str) -> Iterator[Call]:
    for n in SIZES:
        yield Call([normal(rng, n, 3), normal(rng, 65, 3)])
        yield Call([normal(rng, 5, n), normal(rng, 5, 1), normal(rng, 5, 9)], 1)
    yield Call([normal(rng, 3, 4) for _ in range(20)], 1)


@calls("pad_constant")
def _pad_constant(rng: Generator, name: str) -> Iterator[Call]:
    for n in SIZES:
        yield Call(normal(rng, 5, n), (1, 2))
        yield Call(normal(rng, n, 5), (2, 0, 1, 3), 1.5)
    yield Call(normal(rng, 9, 65), (-1, -2, 3, -1), 9.0)


@calls("narrow_embed")
def _narrow_embed(rng: Generator, name: str) -> Iterator[Call]:
    for n in SIZES:
        yield Call(normal(rng, 5, n), (5, n + 3), 1, 2, n)
        yield Call(normal(rng, n, 5), (n + 4, 5), 0, -n if n else 0, n)


# ---- random numbers: the draw is an argument


def fill(rng: Generator, *numbers: Any) -> Iterator[Call]:
    """Calls that write one value."""
    for k, n in enumerate(SIZES):
        yield Call(np.zeros(n), *numbers, (1 << 40) + 17 + k, 3 + k)
    yield Call(np.zeros((7, 5, 9)), *numbers, -5, 1 << 40)


RANDOM = {
    "uniform_": ((0.0, 1.0), (-2.0, 6.0)),
    "normal_": ((0.0, 1.0), (3.0, 0.5)),
    "exponential_": ((1.0,), (0.25,)),
    "randint_": ((0, 2), (0, 100)),
    "bernoulli_": ((0.3,), (0.0,), (1.0,)),
    "random_bits_": ((),),
}


@calls(*RANDOM)
def _random(rng: Generator, name: str) -> Iterator[Call]:
    for numbers in RANDOM[name]:
        yield from fill(rng, *numbers)


@calls("dropout_apply")
def _dropout(rng: Generator, name: str) -> Iterator[Call]:
    for n in SIZES:
        for p in (0.3, 0.0, 1.0):
            yield Call(normal(rng, n), p, 7, 2)
    yield Call(normal(rng, 7, 5, 9), 0.5, 1 << 40, 1)


# ---- products

PRODUCTS = (
    ((1, 1), (1, 1)), ((3, 65), (65, 5)), ((65, 3), (3, 64)), ((64, 64), (64, 64)), ((17, 257), (257, 70)),
    ((129, 130), (130, 67)), ((1, 2049), (2049, 1)), ((2049,), (2049,)), ((70, 33), (33,)), ((33,), (33, 70)),
    ((5, 7, 9), (5, 9, 3)), ((2, 1, 20, 30), (3, 30, 20)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
)  # fmt: skip


LARGE = (
    ((300, 33), (33, 300)),
    ((40, 70, 9), (40, 9, 70)),
    ((700, 17), (17, 900)),
    ((1100, 9), (9, 1300)),
)
"""Results that large tiles are taken for."""


@calls("matmul")
def _matmul(rng: Generator, name: str) -> Iterator[Call]:
    for a, b in PRODUCTS:
        yield Call(normal(rng, *a), normal(rng, *b))
    for a, b in LARGE:
        yield Call(normal(rng, *a), normal(rng, *b)).but(only="fh")


@calls("int_mm")
def _int_mm(rng: Generator, name: str) -> Iterator[Call]:
    for a, b in PRODUCTS:
        yield Call(normal(rng, *a), normal(rng, *b))


LINEAR = (
    ((1, 1), (1, 1)), ((3, 65), (5, 65)), ((65, 64), (63, 64)), ((2, 9, 257), (70, 257)), ((0, 3), (4, 3)), ((33,), (7, 33)),
)  # fmt: skip


@calls("matmul_onto")
def _matmul_onto(rng: Generator, name: str) -> Iterator[Call]:
    for m, k, n in ((1, 1, 1), (3, 65, 5), (65, 64, 63), (7, 33, 1), (0, 3, 4)):
        given = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
        yield Call(*given)
        yield Call(*given, beta=-0.5, alpha=2.0)


@calls("linear", "linear_relu")
def _linear(rng: Generator, name: str) -> Iterator[Call]:
    for x, w in LINEAR:
        yield Call(normal(rng, *x), normal(rng, *w))
        yield Call(normal(rng, *x), normal(rng, *w), normal(rng, w[0]))


CONVOLUTIONS: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 3, 65), (5, 3, 3), {}),
    ((1, 4, 64), (6, 2, 5), {"stride": 2, "groups": 2, "padding": 2}),
    ((2, 5, 17, 19), (7, 5, 3, 3), {"padding": 1}),
    ((2, 33, 6, 6), (35, 33, 1, 1), {}),
    ((1, 16, 9, 9), (16, 1, 3, 3), {"groups": 16, "stride": 2}),
    ((1, 2, 12, 9), (3, 2, 3, 2), {"dilation": (3, 1), "stride": (1, 2), "padding": (1, 0)}),
    ((0, 2, 4, 4), (2, 2, 3, 3), {}),
    ((2, 5, 41, 43), (65, 5, 3, 3), {"padding": 1}),
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), {"padding": (1, 0, 1), "stride": (1, 2, 1)}),
)


def spatial(x: Sequence[int], w: Sequence[int], steps: dict[str, Any]) -> tuple[int, ...]:
    """Spatial sizes of a convolution's result."""
    out = []
    for i in range(len(x) - 2):
        s, p, d = (
            v[i] if isinstance(v, tuple) else v
            for v in (steps.get("stride", 1), steps.get("padding", 0), steps.get("dilation", 1))
        )
        out.append((x[2 + i] + 2 * p - d * (w[2 + i] - 1) - 1) // s + 1)
    return tuple(out)


@calls("convolution", "conv1d", "conv2d", "conv3d")
def _convolution(rng: Generator, name: str) -> Iterator[Call]:
    for x, w, steps in CONVOLUTIONS:
        if name == "convolution" or int(name[4]) == len(x) - 2:
            yield Call(normal(rng, *x), normal(rng, *w), **steps)
            yield Call(normal(rng, *x), normal(rng, *w), normal(rng, w[0]), **steps)


@calls("conv_grad_input", "conv_grad_weight")
def _convolution_gradient(rng: Generator, name: str) -> Iterator[Call]:
    for x, w, steps in CONVOLUTIONS:
        u = normal(rng, x[0], w[0], *spatial(x, w, steps))
        other, size = (w, x[2:]) if name == "conv_grad_input" else (x, w[2:])
        yield Call(u, normal(rng, *other), size=size, **steps)


POOLS: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 3, 65), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((1, 2, 64), {"kernel_size": 2, "stride": 2}),
    ((1, 2, 13), {"kernel_size": 4, "stride": 4, "ceil_mode": True}),
    ((2, 5, 17, 19), {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 0)}),
    ((0, 2, 4, 4), {"kernel_size": 2, "stride": 2}),
    ((1, 2, 6, 5, 7), {"kernel_size": 2, "stride": (2, 1, 2)}),
)


def pooled(shape: Sequence[int], window: dict[str, Any]) -> tuple[int, ...]:
    """Spatial sizes of a pool's result."""
    out = []
    for i, size in enumerate(shape[2:]):
        k, s, p = (
            v[i] if isinstance(v, tuple) else v
            for v in (window["kernel_size"], window["stride"], window.get("padding", 0))
        )
        span = size + 2 * p - k
        n = (-(-span // s) if window.get("ceil_mode") else span // s) + 1
        out.append(n - (bool(window.get("ceil_mode")) and (n - 1) * s >= size + p))
    return tuple(out)


@calls("max_pool", "avg_pool")
def _pool(rng: Generator, name: str) -> Iterator[Call]:
    for shape, window in POOLS:
        yield Call(tied(rng, *shape), **window, nd=len(shape) - 2)
        if name == "avg_pool":
            for more in ({"count_include_pad": False}, {"divisor": 3}):
                yield Call(normal(rng, *shape), **window, **more, nd=len(shape) - 2)
    if name == "max_pool":
        yield Call(normal(rng, 1, 2, 17, 17), kernel_size=2, stride=2, dilation=(3, 2), nd=2)
        x = np.array([[[[1.0, np.nan, 2.0, -np.inf], [3.0, 0.0, -np.inf, -np.inf]]]])
        yield Call(x, kernel_size=2, stride=2, nd=2)


@calls("avg_pool_grad")
def _pool_gradient(rng: Generator, name: str) -> Iterator[Call]:
    for shape, window in POOLS:
        for include in (True, False):
            u = normal(rng, *shape[:2], *pooled(shape, window))
            yield Call(u, **window, count_include_pad=include, nd=len(shape) - 2, size=shape[2:])


ADAPTIVE: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3, 65), (7,)),
    ((1, 2, 4), (6,)),
    ((2, 5, 17, 19), (3, 4)),
    ((1, 70, 7, 7), (1, 1)),
    ((1, 2, 5, 6, 7), (2, 3, 1)),
)


@calls("adaptive_avg_pool", "adaptive_max_pool")
def _adaptive(rng: Generator, name: str) -> Iterator[Call]:
    for shape, size in ADAPTIVE:
        yield Call(normal(rng, *shape), size, nd=len(size))


@calls("adaptive_avg_pool_grad")
def _adaptive_gradient(rng: Generator, name: str) -> Iterator[Call]:
    for shape, size in ADAPTIVE:
        yield Call(normal(rng, *shape[:2], *size), shape[2:], nd=len(size))


@calls("pool_scatter", "pool_gather")
def _pool_places(rng: Generator, name: str) -> Iterator[Call]:
    for n in (1, 64, 65, 257):
        index = places(rng, 70, 2, 3, n)
        if name == "pool_scatter":
            yield Call(normal(rng, 2, 3, n), index, size=70, nd=1)
        else:
            yield Call(normal(rng, 2, 3, 70), index, nd=1)
    grid = places(rng, 20, 1, 2, 3, 5)
    if name == "pool_scatter":
        yield Call(normal(rng, 1, 2, 3, 5), grid, size=(4, 5), nd=2)
    else:
        yield Call(normal(rng, 1, 2, 4, 5), grid, nd=2)
