"""Samplers: in which order, and in which batches, samples are taken. Knows indices only, never
samples.

A random sampler draws one seed from its generator at each pass; the order is a function of that
seed alone. So a pass can be repeated from `state_dict()` without touching the generator again.
"""

from __future__ import annotations

from types import GenericAlias

import tinyfin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Sized
    from typing import Any

    from tinyfin import Generator, Tensor

_CHUNK = 4096


def draw_seed(generator: Generator | None = None) -> int:
    """A seed of 62 bits, drawn from `generator` (the global one if None).

    >>> import tinyfin
    >>> a = draw_seed(tinyfin.Generator().manual_seed(1))
    >>> a == draw_seed(tinyfin.Generator().manual_seed(1)) and 0 <= a < 2**62
    True
    """
    high, low = tinyfin.randint(0, 2**31, (2,), generator=generator, device="cpu").tolist()
    return high << 31 | low


class Sampler:
    """An order of indices: define `__iter__`, and `__len__` where it is known.

    >>> class Backwards(Sampler):
    ...     def __iter__(self):
    ...         return iter((2, 1, 0))
    >>> list(Backwards())
    [2, 1, 0]
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} is a Sampler without __iter__")


class SequentialSampler(Sampler):
    """0, 1, 2, ... up to the size of the dataset.

    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class _Seeded(Sampler):
    """A sampler whose order follows from one seed a pass."""

    generator: Generator | None = None
    _seed: int | None = None
    _next_seed: int | None = None

    def _begin(self) -> Generator:
        """A generator for this pass: newly seeded from ours, or as `load_state_dict` said."""
        seed, self._next_seed = self._next_seed, None
        self._seed = draw_seed(self.generator) if seed is None else seed
        return tinyfin.Generator().manual_seed(self._seed)

    def state_dict(self) -> dict[str, Any]:
        """The seed of the pass that began last, and the generator that the next ones draw from."""
        state = None if self.generator is None else self.generator.get_state()
        return {"seed": self._seed, "generator": state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next pass repeat the one that `state` was taken in."""
        self._next_seed = state["seed"]
        if self.generator is not None and state["generator"] is not None:
            self.generator.set_state(state["generator"])


class RandomSampler(_Seeded):
    """Indices in random order, each once, or drawn anew each time with `replacement`.

    Args:
        num_samples: how many to give; the size of the dataset if None. More than that begins
            another permutation.
        generator: where each pass draws its seed from; the global generator if None.

    Raises:
        TypeError: `replacement` is no bool.
        ValueError: `num_samples` is no positive integer.

    >>> import tinyfin
    >>> order = list(RandomSampler(range(5), generator=tinyfin.Generator().manual_seed(0)))
    >>> sorted(order)
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement is {replacement!r}, expected a bool")
        if num_samples is not None:
            _positive("RandomSampler", "num_samples", num_samples)
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many indices one pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        return self._draw(self._begin(), len(self.data_source), self.num_samples)

    def _draw(self, generator: Generator, n: int, left: int) -> Iterator[int]:
        while n and left:
            if self.replacement:
                size = min(left, _CHUNK)
                draw = tinyfin.randint(0, n, (size,), generator=generator, device="cpu")
            else:
                size = min(left, n)
                draw = tinyfin.randperm(n, generator=generator, device="cpu")[:size]
            yield from draw.tolist()
            left -= size

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_Seeded):
    """The given indices in random order, each once.

    >>> sorted(SubsetRandomSampler([3, 5, 9]))
    [3, 5, 9]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = tinyfin.randperm(len(self.indices), generator=self._begin(), device="cpu").tolist()
        return (self.indices[i] for i in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_Seeded):
    """Indices drawn with the given probabilities; the weights need not add up to 1.

    Args:
        replacement: if False, no index comes twice, so `num_samples` may not exceed the number of
            weights above zero.

    Raises:
        TypeError: `replacement` is no bool.
        ValueError: a weight is negative or not finite, all are zero, or `num_samples` is not
            positive or too many.

    >>> sorted(WeightedRandomSampler([0.0, 1.0, 2.0], 2, replacement=False))
    [1, 2]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _positive("WeightedRandomSampler", "num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise TypeError(
                f"WeightedRandomSampler: replacement is {replacement!r}, expected a bool"
            )
        self.weights: Tensor = _as_tensor(weights)
        self._check(num_samples, replacement)
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def _check(self, num_samples: int, replacement: bool) -> None:
        if self.weights.ndim != 1:
            shape = tuple(self.weights.shape)
            raise ValueError(
                f"WeightedRandomSampler: weights have shape {shape}, expected one dimension"
            )
        weights = self.weights.tolist()
        if not all(0 <= w < float("inf") for w in weights) or not any(weights):
            raise ValueError(
                "WeightedRandomSampler: weights must be finite, not negative, and not all zero"
            )
        usable = sum(w > 0 for w in weights)
        if not replacement and num_samples > usable:
            raise ValueError(
                f"WeightedRandomSampler: num_samples is {num_samples}, without replacement the "
                f"{usable} weights above zero give no more than that many"
            )

    def __iter__(self) -> Iterator[int]:
        return iter(self._draw(self._begin()))

    def _draw(self, generator: Generator) -> list[int]:
        n = self.num_samples
        if not self.replacement:
            # Exponential clocks: the k smallest of E / w are a weighted draw without replacement.
            u = tinyfin.rand(
                len(self.weights), generator=generator, dtype=tinyfin.float64, device="cpu"
            )
            clocks = (-(-u).log1p() / self.weights).tolist()
            usable = [i for i, w in enumerate(self.weights.tolist()) if w > 0]
            return sorted(usable, key=clocks.__getitem__)[:n]
        ends = self.weights.cumsum(0)
        u = tinyfin.rand(n, generator=generator, dtype=tinyfin.float64, device="cpu") * ends[-1]
        return _rows_at(ends.tolist(), u.tolist())

    def __len__(self) -> int:
        return self.num_samples


def _as_tensor(weights: Any) -> Tensor:
    if not isinstance(weights, tinyfin.Tensor) and not hasattr(weights, "__array_interface__"):
        weights = list(weights)
    return tinyfin.as_tensor(weights, dtype=tinyfin.float64, device="cpu")


def _rows_at(ends: list[float], points: list[float]) -> list[int]:
    """For each point the row whose stretch [previous end, end) holds it; empty stretches are never
    hit.
    """
    from bisect import bisect_left, bisect_right

    last = bisect_left(ends, ends[-1])
    return [min(bisect_right(ends, p), last) for p in points]


class BatchSampler(Sampler):
    """Groups the indices of a sampler into lists of `batch_size`.

    Args:
        drop_last: leaves out a last batch that would be smaller.

    Raises:
        ValueError: `batch_size` is no positive integer, or `drop_last` is no bool.

    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _positive("BatchSampler", "batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last is {drop_last!r}, expected a bool")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        # Not itself a generator function: the pass, and its seed, begin here and not at the first
        # batch.
        return self._batches(iter(self.sampler))

    def _batches(self, indices: Iterator[int]) -> Iterator[list[int]]:
        from itertools import islice

        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # pyright: ignore[reportArgumentType]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """The state of the sampler below, if it has one."""
        below = getattr(self.sampler, "state_dict", None)
        return {"sampler": below()} if below else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next pass repeat the one that `state` was taken in."""
        if "sampler" in state:
            self.sampler.load_state_dict(state["sampler"])  # pyright: ignore[reportAttributeAccessIssue]


def _positive(owner: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{owner}: {name} is {value!r}, expected a positive integer")
