"""Datasets: where samples come from. Knows nothing of order, batches or devices."""

from __future__ import annotations

import bisect
import itertools
import math
from types import GenericAlias

import tinyfin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from tinyfin import Generator, Tensor


class Dataset:
    """A collection of samples reached by index: define `__getitem__`, and `__len__` where it is
    known.

    A subclass may also define `__getitems__(indices)`, which returns the samples of a whole batch
    as a list.

    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> [Squares()[i] for i in range(4)]
    [0, 1, 4, 9]
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} is a Dataset without __getitem__")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """A stream of samples: define `__iter__`; there is no random access and no shuffling.

    With several workers each one iterates over the whole stream, unless `__iter__` asks
    `get_worker_info()` which part is its own.

    >>> class Countdown(IterableDataset):
    ...     def __iter__(self):
    ...         return iter((3, 2, 1))
    >>> list(Countdown())
    [3, 2, 1]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} is an IterableDataset without __iter__")

    # PyTorch's design: a sum of streams is no ConcatDataset
    def __add__(self, other: Dataset) -> ChainDataset:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Tensors of equal first size, taken together: sample `i` is the tuple of their rows `i`.

    Raises:
        ValueError: no tensors were given, one has no first dimension, or the first sizes differ.

    >>> import tinyfin
    >>> data = TensorDataset(tinyfin.arange(6).reshape(3, 2), tinyfin.tensor([7, 8, 9]))
    >>> len(data), [t.tolist() for t in data[1]]
    (3, [[2, 3], 8])
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset: expected at least one tensor, got none")
        for i, t in enumerate(tensors):
            if t.ndim == 0:
                raise ValueError(f"TensorDataset: tensor {i} has no dimensions, so it has no rows")
            if t.shape[0] != tensors[0].shape[0]:
                raise ValueError(
                    f"TensorDataset: tensor 0 has {tensors[0].shape[0]} rows, tensor {i} has "
                    f"{t.shape[0]}"
                )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def _gather(self, indices: Sequence[int]) -> list[Tensor] | None:
        """The batch of these samples, one gather per tensor; None where a subclass changed what a
        sample is.
        """
        if type(self).__getitem__ is not TensorDataset.__getitem__ or hasattr(self, "__getitems__"):
            return None
        index = tinyfin.tensor(_checked(indices, len(self)), dtype=tinyfin.int64, device="cpu")
        return [t.index_select(0, index.to(t.device)) for t in self.tensors]


def _checked(indices: Sequence[int], n: int) -> list[int]:
    """Indices with negative ones counted from the end, as `t[i]` does for a single sample."""
    rows = [int(i) for i in indices]
    if rows and (min(rows) < 0 or max(rows) >= n):
        for i in rows:
            if not -n <= i < n:
                raise IndexError(f"TensorDataset: index {i} is out of range for {n} samples")
        rows = [i + n if i < 0 else i for i in rows]
    return rows


class Subset(Dataset):
    """The samples of `dataset` at `indices`, in that order.

    >>> Subset(["a", "b", "c"], [2, 0])[0]
    'c'
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        rows = [self.indices[i] for i in indices]
        if hasattr(self.dataset, "__getitems__"):
            return self.dataset.__getitems__(rows)
        return [self.dataset[i] for i in rows]

    def __len__(self) -> int:
        return len(self.indices)

    def _gather(self, indices: Sequence[int]) -> list[Tensor] | None:
        gather = getattr(self.dataset, "_gather", None)
        plain = (
            type(self).__getitem__ is Subset.__getitem__
            and type(self).__getitems__ is Subset.__getitems__
        )
        return gather([self.indices[i] for i in indices]) if gather and plain else None


class ConcatDataset(Dataset):
    """Datasets one after another, as one.

    Raises:
        ValueError: there are no datasets, or one of them is an `IterableDataset`.

    >>> data = ConcatDataset([[10, 11], [20]])
    >>> len(data), data[2], data[-3]
    (3, 20, 10)
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: expected at least one dataset, got none")
        for i, d in enumerate(self.datasets):
            if isinstance(d, IterableDataset):
                raise ValueError(
                    f"ConcatDataset: dataset {i} is an IterableDataset; use ChainDataset"
                )
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"ConcatDataset: index {index} is out of range for {n} samples")
        index %= n
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Iterable datasets one after another, as one stream.

    >>> list(ChainDataset([[1, 2], (3,)]))
    [1, 2, 3]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset]:
    """Splits a dataset at random into parts that do not overlap.

    Args:
        lengths: sizes that add up to `len(dataset)`, or fractions that add up to 1; what rounding
            leaves over goes to the first parts, one sample each.
        generator: where the order is drawn from; the global generator if None.

    Raises:
        ValueError: a size is negative, or the sizes do not add up.

    >>> import tinyfin
    >>> parts = random_split(range(10), [0.75, 0.25], tinyfin.Generator().manual_seed(0))
    >>> [len(p) for p in parts], sorted(x for p in parts for x in p)
    ([8, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    n = len(dataset)
    sizes = _sizes(n, lengths)
    if sum(sizes) != n:
        raise ValueError(
            f"random_split: lengths add up to {sum(sizes)}, the dataset has {n} samples"
        )
    order = tinyfin.randperm(n, generator=generator, device="cpu").tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def _sizes(n: int, lengths: Sequence[int | float]) -> list[int]:
    if any(not x >= 0 for x in lengths):
        raise ValueError(f"random_split: lengths are {list(lengths)}; none may be negative")
    if not any(isinstance(x, float) for x in lengths):
        return [int(x) for x in lengths]
    if not math.isclose(sum(lengths), 1.0):
        raise ValueError(
            f"random_split: fractions {list(lengths)} add up to {sum(lengths)}, not to 1"
        )
    sizes = [math.floor(n * x) for x in lengths]
    for i in range(n - sum(sizes)):
        sizes[i % len(sizes)] += 1
    return sizes
