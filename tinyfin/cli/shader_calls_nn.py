"""Calls of the rows of networks for the check of kernels: norms, losses, attention, optimizer steps."""

from __future__ import annotations

import numpy as np

from tinyfin.cli.shader_calls import calls, each_way, normal, places, positive
from tinyfin.cli.shader_cases import SIZES, Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.random import Generator
    from numpy.typing import NDArray

INF = np.inf


@calls("softmax", "log_softmax")
def _softmax(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in each_way(rng):
        yield Call(normal(rng, *shape), dim)
    x = np.array([[-INF, 0.0, 1.0], [900.0, 900.0, -900.0], [-INF, -INF, 5.0], [np.nan, 0.0, 1.0]])
    yield Call(x, 1).but(only="f")


@calls("softmax_grad", "log_softmax_grad")
def _softmax_gradient(rng: Generator, name: str) -> Iterator[Call]:
    for shape, dim in each_way(rng):
        y = positive(rng, *shape) / 9
        yield Call(normal(rng, *shape), np.log(y) if name == "log_softmax_grad" else y, dim)


def single(x: NDArray[Any]) -> NDArray[Any]:
    """What is float32 whatever the dtype under test is, but for float64: statistics, sums."""
    return x.astype(np.float32)


# ---- norms

LAYERS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 1), (1,)), ((5, 3), (3,)), ((65, 63), (63,)), ((3, 64), (64,)), ((7, 65), (65,)), ((300, 17), (17,)),
    ((2, 257), (257,)), ((2, 2049), (2049,)), ((2, 5, 4, 9), (4, 9)), ((0, 4), (4,)), ((70,), (70,)),
)  # fmt: skip


def rows_of(shape: tuple[int, ...], last: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a statistic of each row, axes kept."""
    return (*shape[: len(shape) - len(last)], *(1 for _ in last))


@calls("native_layer_norm")
def _layer_norm(rng: Generator, name: str) -> Iterator[Call]:
    for k, (shape, last) in enumerate(LAYERS):
        parts = [normal(rng, *last), normal(rng, *last)][: k % 3]
        yield Call(normal(rng, *shape), last, *parts)
    yield Call(normal(rng, 2, 65), (65,), None, normal(rng, 65), eps=0.5)


@calls("native_rms_norm")
def _rms_norm(rng: Generator, name: str) -> Iterator[Call]:
    for k, (shape, last) in enumerate(LAYERS):
        parts = [normal(rng, *last)][: k % 2]
        yield Call(normal(rng, *shape), *parts, normalized_shape=last)
    yield Call(normal(rng, 2, 65), normalized_shape=(65,), eps=0.5)


@calls("layer_norm_grad", "rms_norm_grad")
def _norm_gradient(rng: Generator, name: str) -> Iterator[Call]:
    layer = name == "layer_norm_grad"
    for k, (shape, last) in enumerate(LAYERS):
        rows = rows_of(shape, last)
        given = [single(normal(rng, *rows))] if layer else []
        weight = normal(rng, *last) if k % 2 else None
        wanted = (k % 2 == 1, k % 3 == 0) if layer else (k % 2 == 1,)
        yield Call(
            normal(rng, *shape),
            normal(rng, *shape),
            *given,
            single(positive(rng, *rows)),
            weight,
            last,
            1e-5,
            *wanted,
        )


BATCHES: tuple[tuple[int, ...], ...] = (
    (1, 1), (3, 2), (65, 3), (2, 3, 64), (2, 5, 17, 19), (40, 3, 70), (2, 70, 3, 1), (2049, 2),
)  # fmt: skip


@calls("native_batch_norm")
def _batch_norm(rng: Generator, name: str) -> Iterator[Call]:
    for k, shape in enumerate(BATCHES):
        parts = [normal(rng, shape[1]), normal(rng, shape[1])] if k % 2 else [None, None]
        yield Call(normal(rng, *shape), *parts, 1e-5)


@calls("batch_norm_apply")
def _batch_norm_apply(rng: Generator, name: str) -> Iterator[Call]:
    for k, shape in enumerate(BATCHES):
        c = shape[1]
        parts = [normal(rng, c), normal(rng, c)] if k % 2 else [None, None]
        yield Call(normal(rng, *shape), normal(rng, c), positive(rng, c), *parts, 1e-5)


@calls("batch_norm_grad")
def _batch_norm_gradient(rng: Generator, name: str) -> Iterator[Call]:
    for k, shape in enumerate(BATCHES):
        c = shape[1]
        weight = normal(rng, c) if k % 2 else None
        yield Call(
            normal(rng, *shape), normal(rng, *shape), normal(rng, c), positive(rng, c), weight, 1e-5
        )


# ---- losses

LABELLED: tuple[tuple[int, ...], ...] = (
    (1, 1),
    (3, 4),
    (65, 10),
    (2, 257),
    (300, 3),
    (2, 5, 33),
    (2, 3, 7, 5),
    (3, 2049),
)


def target_of(rng: Generator, shape: tuple[int, ...], ignored: bool = False) -> NDArray[Any]:
    """A label for each place; every third is ignored."""
    target = places(rng, shape[1], shape[0], *shape[2:])
    if ignored and target.size > 2:
        target.reshape(-1)[::3] = -100
    return target


@calls("nll_loss_forward", "cross_entropy_forward")
def _labelled(rng: Generator, name: str) -> Iterator[Call]:
    for k, shape in enumerate(LABELLED):
        for reduction in ("mean", "sum", "none"):
            weight = positive(rng, shape[1]) if k % 2 else None
            yield Call(
                normal(rng, *shape), target_of(rng, shape, k % 3 == 1), weight, reduction=reduction
            )
    yield Call(normal(rng, 5), np.asarray(2))


@calls("nll_loss_grad")
def _nll_gradient(rng: Generator, name: str) -> Iterator[Call]:
    for k, shape in enumerate(LABELLED):
        target = target_of(rng, shape, k % 3 == 1)
        weight = positive(rng, shape[1]) if k % 2 else None
        total = single(np.asarray(3.0))
        yield Call(np.asarray(1.5), target, weight, total, "mean", -100, shape)
        yield Call(normal(rng, *target.shape), target, weight, total, "none", -100, shape)


@calls("cross_entropy_grad")
def _cross_entropy_gradient(rng: Generator, name: str) -> Iterator[Call]:
    for k, shape in enumerate(LABELLED):
        target = target_of(rng, shape, k % 3 == 1)
        weight = positive(rng, shape[1]) if k % 2 else None
        rest = [np.asarray(3.0), normal(rng, *target.shape), positive(rng, *target.shape)]
        rest = [single(x) for x in rest]
        for u, reduction in ((np.asarray(1.5), "mean"), (normal(rng, *target.shape), "none")):
            yield Call(u, normal(rng, *shape), target, weight, *rest, reduction, -100)


@calls("check_not_nan", "check_unit_interval")
def _checks(rng: Generator, name: str) -> Iterator[Call]:
    for n in SIZES:
        yield Call(rng.uniform(0, 1, n))


# ---- attention

HEADS: tuple[tuple[int, ...], ...] = (
    (1, 1, 1, 1, 1, 1), (2, 2, 4, 5, 3, 2), (1, 2, 33, 65, 16, 16), (1, 1, 65, 130, 64, 32), (1, 2, 70, 63, 8, 8),
)  # fmt: skip
"""Batch, heads, queries, keys, size of a key, size of a value."""


def attended(rng: Generator, sizes: tuple[int, ...]) -> list[NDArray[Any]]:
    """Queries, keys, values."""
    batch, heads, t, s, d, e = sizes
    return [normal(rng, batch, heads, *shape) for shape in ((t, d), (s, d), (s, e))]


def mask_of(rng: Generator, t: int, s: int) -> NDArray[Any]:
    """Which keys a query may see; at least the first."""
    mask = rng.uniform(size=(t, s)) > 0.4
    mask[:, 0] = True
    return mask


@calls("sdpa_forward")
def _attention(rng: Generator, name: str) -> Iterator[Call]:
    for sizes in HEADS:
        t, s = sizes[2], sizes[3]
        yield Call(*attended(rng, sizes))
        yield Call(*attended(rng, sizes), mask_of(rng, t, s))
        yield Call(*attended(rng, sizes), normal(rng, t, s))
        if t <= s:
            yield Call(*attended(rng, sizes), None, True)
        yield Call(*attended(rng, sizes), None, False, 0.3)


@calls("sdpa_grad")
def _attention_gradient(rng: Generator, name: str) -> Iterator[Call]:
    for sizes in HEADS:
        batch, heads, t, s, _, e = sizes
        out = normal(rng, batch, heads, t, e)
        lse = single(3 + positive(rng, batch, heads, t))
        for mask, causal in ((None, False), (mask_of(rng, t, s), False), (None, t <= s)):
            yield Call(normal(rng, *out.shape), *attended(rng, sizes), mask, out, lse, causal, None)


# ---- optimizer steps


@calls("sgd_step_")
def _sgd_step(rng: Generator, name: str) -> Iterator[Call]:
    for n in SIZES:
        yield Call(normal(rng, n), normal(rng, n), None, lr=0.1)
    for more in (
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1},
        {"momentum": 0.8, "nesterov": True},
        {"momentum": 0.9, "first": True, "maximize": True},
    ):
        yield Call(*(normal(rng, 9, 33) for _ in range(3)), lr=0.05, **more)


@calls("adam_step_")
def _adam_step(rng: Generator, name: str) -> Iterator[Call]:
    def state(*shape: int) -> list[NDArray[Any]]:
        return [*(normal(rng, *shape) for _ in range(3)), positive(rng, *shape)]

    for n in SIZES:
        yield Call(*state(n), None, lr=0.1, step=1)
    for more in (
        {"weight_decay": 0.1},
        {"weight_decay": 0.1, "decoupled": True},
        {"beta1": 0.5, "beta2": 0.7, "eps": 0.1},
        {"maximize": True},
    ):
        yield Call(*state(9, 33), None, lr=0.01, step=3, **more)
        yield Call(*state(9, 33), positive(rng, 9, 33), lr=0.01, step=3, **more)


@calls("rmsprop_step_")
def _rmsprop_step(rng: Generator, name: str) -> Iterator[Call]:
    for n in SIZES:
        yield Call(normal(rng, n), normal(rng, n), positive(rng, n), None, None, lr=0.1)
    for more in (
        {"alpha": 0.5},
        {"weight_decay": 0.2, "maximize": True},
        {"momentum": 0.9, "eps": 0.1},
    ):
        shape = 9, 33
        given = normal(rng, *shape), normal(rng, *shape), 2 + positive(rng, *shape)
        mean, buffer = rng.uniform(-1, 1, shape), normal(rng, *shape)
        for averages in ((None, buffer), (mean, None), (mean, buffer)):
            yield Call(*given, *averages, lr=0.1, **more)
