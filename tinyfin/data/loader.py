"""DataLoader: batches of a dataset, in order, from this process or from workers."""

from __future__ import annotations

from collections import deque
from itertools import islice, repeat
from types import GenericAlias

import tinyfin
from tinyfin.data.collate import default_collate, default_convert, move
from tinyfin.data.dataset import IterableDataset
from tinyfin.data.fetch import EndOfStream, Seeded, batch_seed, fetch_for
from tinyfin.data.sampler import BatchSampler, RandomSampler, SequentialSampler, draw_seed
from tinyfin.data.workers import Pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from tinyfin import Generator


class DataLoader:
    """Batches of a dataset, one after another; iterate over it once an epoch.

    With `num_workers` above 0, that many processes fetch ahead. Order and values do not depend on
    their number: every batch has a seed of its own, from which tinyfin's global generator,
    `random` and NumPy's global generator are set while its samples are made. `state_dict()` tells
    the position within an epoch, and a loader that was given it by `load_state_dict()` goes on
    with exactly the batches that were left. Batches lie on the default device.

    Args:
        dataset: something with `__getitem__` and `__len__`, or an `IterableDataset`.
        batch_size: samples in a batch; None gives single samples, not collated.
        shuffle: a new random order in each epoch.
        sampler: an order of indices, in place of `shuffle`.
        batch_sampler: an order of lists of indices, in place of `batch_size`, `shuffle`, `sampler`
            and `drop_last`.
        num_workers: processes that fetch; 0 fetches here.
        collate_fn: makes a batch of a list of samples; `default_collate` if None.
        pin_memory: accepted; on the CPU there is nothing to pin.
        drop_last: leaves out a last batch that is smaller.
        timeout: seconds to wait for a batch from a worker; 0 waits for ever.
        worker_init_fn: called in each worker with its number, once.
        multiprocessing_context: how workers start: "fork", "spawn", "forkserver" or a context.
        generator: where each epoch draws its seeds from; the global generator if None.
        prefetch_factor: batches that each worker has under way; 2 if None.
        persistent_workers: keeps the workers from one epoch to the next.
        pin_memory_device: accepted, like `pin_memory`.
        in_order: accepted; batches always come in order.

    Raises:
        ValueError: arguments exclude one another or are out of range.
        TypeError: the dataset has neither `__getitem__` nor `__iter__`.

    >>> import tinyfin
    >>> from tinyfin.data import TensorDataset
    >>> data = TensorDataset(tinyfin.arange(5))
    >>> [x.tolist() for [x] in DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.dataset, self.generator, self.drop_last = dataset, generator, drop_last
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor, self.persistent_workers = prefetch_factor, persistent_workers
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.in_order = in_order
        self._check_workers()
        _check_order(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self._choose_order(batch_size, shuffle, sampler, batch_sampler)
        if collate_fn is None:
            collate_fn = (
                default_convert
                if self.batch_sampler is None and self.batch_size is None
                else default_collate
            )
        self.collate_fn = collate_fn
        self._pool: Pool | None = None
        self._position: dict[str, Any] | None = None
        self._resume: dict[str, Any] | None = None

    def _check_workers(self) -> None:
        n = self.num_workers
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ValueError(f"DataLoader: num_workers is {n!r}, expected 0 or a positive integer")
        if not self.timeout >= 0:
            raise ValueError(f"DataLoader: timeout is {self.timeout!r}, expected 0 or more seconds")
        if n == 0:
            for name in (
                "timeout",
                "prefetch_factor",
                "persistent_workers",
                "multiprocessing_context",
            ):
                if getattr(self, name):
                    raise ValueError(f"DataLoader: {name} is for workers, and num_workers is 0")
        if self.prefetch_factor is not None and not self.prefetch_factor >= 1:
            raise ValueError(
                f"DataLoader: prefetch_factor is {self.prefetch_factor!r}, expected 1 or more"
            )

    def _choose_order(
        self, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any
    ) -> None:
        streams = isinstance(self.dataset, IterableDataset)
        if sampler is None and not streams:
            if shuffle:
                sampler = RandomSampler(self.dataset, generator=self.generator)
            else:
                sampler = SequentialSampler(self.dataset)
        self.sampler = sampler
        self.batch_size = None if batch_sampler is not None else batch_size
        if batch_sampler is None and batch_size is not None and not streams:
            # the sampler is None for streams alone
            batch_sampler = BatchSampler(sampler, batch_size, self.drop_last)  # pyright: ignore[reportArgumentType]
        self.batch_sampler = batch_sampler

    def __iter__(self) -> Iterator[Any]:
        return _Pass(self)

    def __len__(self) -> int:
        order = self.sampler if self.batch_sampler is None else self.batch_sampler
        if order is not None:
            return len(order)
        n, size = len(self.dataset), self.batch_size or 1
        return n // size if self.drop_last else -(-n // size)

    def state_dict(self) -> dict[str, Any]:
        """The position: how many batches of the epoch under way were given, and all that decides
        which remain.

        Where the dataset is a stream, or the sampler one of your own without `state_dict`, the
        position is a count alone: a resumed epoch goes through what is skipped, and it is up to
        them to give the same again.
        """
        state: dict[str, Any] = dict(
            self._resume or self._position or {"batches": None, "seed": None}
        )
        if self._resume is None:
            order = getattr(self._order(), "state_dict", None)
            state["sampler"] = order() if order else None
        state["batch_size"] = self.batch_size
        state["generator"] = None if self.generator is None else self.generator.get_state()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next epoch go on where `state` was taken; between epochs, that is at the
        beginning of the next.

        Raises:
            ValueError: the state was taken with another batch size.
        """
        if state["batch_size"] != self.batch_size:
            raise ValueError(
                f"DataLoader: the state was taken with batch_size={state['batch_size']}, this "
                f"loader has batch_size={self.batch_size}; the position would mean other samples"
            )
        if state["generator"] is not None and self.generator is not None:
            self.generator.set_state(state["generator"])
        self._position = None
        self._resume = dict(state) if state["batches"] is not None else None

    def _order(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _begin(self) -> dict[str, Any]:
        """The position that a new pass starts from."""
        resume, self._resume = self._resume, None
        if resume is None:
            self._position = {"batches": 0, "seed": draw_seed(self.generator)}
        else:
            self._position = {"batches": resume["batches"], "seed": resume["seed"]}
            if resume["sampler"] is not None:
                self._order().load_state_dict(resume["sampler"])
        return self._position

    def _workers(self, seed: int) -> Pool:
        if self._pool is not None:
            return self._pool
        fetch = self._fetch()
        pool = Pool(
            fetch, self.num_workers, seed, self.worker_init_fn, self.multiprocessing_context
        )
        if self.persistent_workers:
            self._pool = pool
        return pool

    def _fetch(self) -> Any:
        batched = self.batch_sampler is not None
        return fetch_for(self.dataset, self.collate_fn, self.batch_size, self.drop_last, batched)


def _check_order(
    dataset: Any, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any
) -> None:
    if isinstance(dataset, IterableDataset):
        for name, value in (
            ("shuffle", shuffle),
            ("sampler", sampler),
            ("batch_sampler", batch_sampler),
        ):
            if value:
                raise ValueError(
                    f"DataLoader: {name} was given, but an IterableDataset has its own order"
                )
    elif not hasattr(dataset, "__getitem__"):
        raise TypeError(
            f"DataLoader: dataset is {type(dataset).__name__}, which has no __getitem__ to take "
            "samples by"
        )
    if sampler is not None and shuffle:
        raise ValueError(
            "DataLoader: shuffle and sampler exclude one another: both decide the order"
        )
    if batch_sampler is not None and (
        batch_size != 1 or shuffle or sampler is not None or drop_last
    ):
        raise ValueError(
            "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last"
        )
    if batch_size is None:
        if drop_last:
            raise ValueError("DataLoader: drop_last needs batches, and batch_size is None")
    elif isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
        raise ValueError(
            f"DataLoader: batch_size is {batch_size!r}, expected a positive integer or None"
        )


class _Pass:
    """One pass over a loader: an iterator of batches that keeps the loader's position."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        self.position = loader._begin()
        order = loader._order()
        tasks = enumerate(repeat(None) if order is None else iter(order))
        skip = self.position["batches"]
        if order is not None:
            tasks = islice(tasks, skip, None)
        # The generator does not know this object: so it, and the workers, end when this does.
        give = _from_workers if loader.num_workers else _from_here
        self.batches = give(loader, tasks, self.position["seed"])
        if order is None:
            for _ in range(skip):
                next(self.batches, None)

    def __iter__(self) -> _Pass:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        try:
            batch = next(self.batches)
        except StopIteration:
            if self.loader._position is self.position:
                self.loader._position = None
            raise
        self.position["batches"] += 1
        device = tinyfin.default_device()
        return batch if str(device).startswith("cpu") else move(batch, device)


def _from_here(loader: DataLoader, tasks: Iterator[tuple[int, Any]], seed: int) -> Iterator[Any]:
    """Batch by batch, fetched in this process."""
    fetch, scope = loader._fetch(), Seeded()
    for number, index in tasks:
        batch = fetch.quick(index)
        if batch is None:
            try:
                with scope.at(batch_seed(seed, number)):
                    batch = fetch(index)
            except EndOfStream:
                return
        yield batch


def _from_workers(loader: DataLoader, tasks: Iterator[tuple[int, Any]], seed: int) -> Iterator[Any]:
    """Batch by batch in the order of the tasks, several of which are under way in each worker."""
    pool = loader._workers(seed)
    mine = pool.begin()
    turn = deque(range(loader.num_workers))
    pending: deque[tuple[int, int]] = deque()

    def submit() -> None:
        task = next(tasks, None) if turn else None
        if task is not None:
            turn.rotate(-1)
            pool.submit(turn[-1], *task, seed)
            pending.append((turn[-1], task[0]))

    try:
        for _ in range((loader.prefetch_factor or 2) * loader.num_workers):
            submit()
        while pending:
            if pool.passes != mine:
                raise RuntimeError(
                    "DataLoader: a later pass has taken this one's persistent workers"
                )
            worker, number = pending.popleft()
            try:
                batch = pool.receive(worker, number, loader.timeout)
            except EndOfStream:
                if worker in turn:
                    turn.remove(worker)
                submit()
                continue
            submit()
            yield batch
    finally:
        if not loader.persistent_workers:
            pool.close()
