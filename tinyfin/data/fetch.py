"""Fetching: from the indices of a batch to the batch, the same here and in a worker. Knows neither
order nor processes.
"""

from __future__ import annotations

import random
import sys
from itertools import islice

import tinyfin
from tinyfin.data.collate import default_collate
from tinyfin.data.dataset import IterableDataset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_MASK = (1 << 62) - 1
_GOLDEN = 0x9E3779B97F4A7C15


class EndOfStream(Exception):
    """An iterable dataset has no further batch."""


def batch_seed(seed: int, number: int) -> int:
    """The seed for batch `number` of a pass: the same in every process.

    >>> batch_seed(5, 0) == batch_seed(5, 0) != batch_seed(5, 1)
    True
    """
    x = (seed + (number + 1) * _GOLDEN) & _MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    return x ^ x >> 27


def seed_all(seed: int) -> None:
    """Seeds every global source of random numbers that dataset code draws from."""
    tinyfin.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        import numpy as np

        np.random.seed(seed & 0xFFFFFFFF)


class Seeded:
    """While it is entered, global random numbers follow from a seed; afterwards they go on as if
    nothing had been drawn.

    So random augmentation gives the same samples with any number of workers, and again when a run
    is resumed.
    """

    def __init__(self) -> None:
        self.seed = 0
        self.spare: Any = None
        self.state: Any = None
        self.python: Any = None
        self.numpy: Any = None

    def at(self, seed: int) -> Seeded:
        """The same scope, to be entered with `seed`."""
        self.seed = seed
        return self

    def __enter__(self) -> None:
        self.state = tinyfin.get_rng_state()
        self.python = random.getstate()
        if "numpy" in sys.modules:
            import numpy as np

            # Exchanging the bit generator costs a tenth of copying its state out and in.
            self.spare = self.spare or np.random.MT19937(0)
            # NumPy's stubs lack both functions
            self.numpy = np.random.get_bit_generator()  # pyright: ignore[reportAttributeAccessIssue]
            np.random.set_bit_generator(self.spare)  # pyright: ignore[reportAttributeAccessIssue]
        seed_all(self.seed)

    def __exit__(self, *exc: object) -> None:
        tinyfin.set_rng_state(self.state)
        random.setstate(self.python)
        if self.numpy is not None:
            import numpy as np

            np.random.set_bit_generator(self.numpy)  # pyright: ignore[reportAttributeAccessIssue]
            self.numpy = None


class MapFetch:
    """Takes samples by index and collates them."""

    def __init__(self, dataset: Any, collate_fn: Callable[[Any], Any], batched: bool) -> None:
        self.dataset = dataset
        self.collate_fn = collate_fn
        self.batched = batched
        self.gather = (
            getattr(dataset, "_gather", None) if batched and collate_fn is default_collate else None
        )

    def begin(self) -> None:
        """Nothing to rewind."""

    def quick(self, index: Any) -> Any:
        """The batch by the road that draws no random numbers and makes no single samples."""
        return self.gather(index) if self.gather else None

    def __call__(self, index: Any) -> Any:
        try:
            return self.collate_fn(self._samples(index))
        except StopIteration as e:
            raise RuntimeError(
                f"StopIteration out of {type(self.dataset).__name__}.__getitem__"
            ) from e

    def _samples(self, index: Any) -> Any:
        if not self.batched:
            return self.dataset[index]
        if getattr(self.dataset, "__getitems__", None):
            return self.dataset.__getitems__(index)
        return [self.dataset[i] for i in index]


class StreamFetch:
    """Takes the next samples of a stream and collates them; an index is ignored."""

    def __init__(
        self,
        dataset: Any,
        collate_fn: Callable[[Any], Any],
        batch_size: int | None,
        drop_last: bool,
    ) -> None:
        self.dataset = dataset
        self.collate_fn = collate_fn
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.stream: Iterator[Any] | None = None

    def begin(self) -> None:
        """Starts the stream anew."""
        self.stream = None

    def quick(self, index: Any) -> Any:
        """None: a stream has no such road."""

    def __call__(self, index: Any) -> Any:
        if self.stream is None:
            self.stream = iter(self.dataset)
        samples = list(islice(self.stream, self.batch_size or 1))
        if not samples or (self.drop_last and self.batch_size and len(samples) < self.batch_size):
            raise EndOfStream
        return self.collate_fn(samples if self.batch_size else samples[0])


def fetch_for(
    dataset: Any,
    collate_fn: Callable[[Any], Any],
    batch_size: int | None,
    drop_last: bool,
    batched: bool,
) -> MapFetch | StreamFetch:
    """The way to fetch that suits the kind of dataset."""
    if isinstance(dataset, IterableDataset):
        return StreamFetch(dataset, collate_fn, batch_size, drop_last)
    return MapFetch(dataset, collate_fn, batched)
