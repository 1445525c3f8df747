"""DataLoader: batches, order, any number of workers, and resuming in the middle of an epoch."""

import doctest
import random

import numpy as np
import pytest

import tinyfin
from tinyfin.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    get_worker_info,
    loader,
)


class Noisy(Dataset):
    """Samples with random parts out of every global generator."""

    def __init__(self, n=23):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return np.array(i), random.random(), np.random.rand(), tinyfin.rand(2), {"name": str(i)}


class Stream(IterableDataset):
    """Numbers up to n, shared out among the workers."""

    def __init__(self, n=11):
        self.n = n

    def __len__(self):
        return self.n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))


def seeded(seed):
    return tinyfin.Generator().manual_seed(seed)


def plain(batch):
    return [x if isinstance(x, dict) else x.tolist() for x in batch]


def lists(batches):
    return [b.tolist() for b in batches]


def test_examples():
    assert doctest.testmod(loader).failed == 0


def test_batches():
    data = list(range(7))
    assert lists(DataLoader(data, 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert lists(DataLoader(data, 3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert list(DataLoader(data, None)) == data
    assert lists(DataLoader(data, sampler=[5, 2])) == [[5], [2]]
    assert lists(DataLoader(data, batch_sampler=[[6, 1], [0]])) == [[6, 1], [0]]
    assert list(DataLoader(data, 4, collate_fn=tuple)) == [(0, 1, 2, 3), (4, 5, 6)]
    assert lists(DataLoader([], 2)) == []


def test_lengths():
    data = list(range(7))
    for batches, n in (
        (DataLoader(data, 3), 3),
        (DataLoader(data, 3, drop_last=True), 2),
        (DataLoader(data, None), 7),
        (DataLoader(data, batch_sampler=[[1]]), 1),
        (DataLoader(Stream(7), 3), 3),
        (DataLoader(Stream(7), 3, drop_last=True), 2),
    ):
        assert len(batches) == n == len(list(batches)) == len(iter(batches))


def test_parts_are_seen_from_outside():
    assert isinstance(DataLoader([1]).sampler, SequentialSampler)
    loader = DataLoader([1], shuffle=True, batch_size=4)
    assert isinstance(loader.sampler, RandomSampler) and isinstance(
        loader.batch_sampler, BatchSampler
    )
    assert loader.batch_size == 4 and loader.batch_sampler.batch_size == 4 and not loader.drop_last


def test_tensor_datasets_take_the_quick_road():
    x, y = tinyfin.arange(40).reshape(10, 4), tinyfin.arange(10)
    for data in (TensorDataset(x, y), Subset(TensorDataset(x, y), list(range(10)))):
        quick = [plain(b) for b in DataLoader(data, 4, shuffle=True, generator=seeded(1))]
        slow = DataLoader(list(zip(x, y)), 4, shuffle=True, generator=seeded(1))
        assert quick == [plain(b) for b in slow]
        assert isinstance(next(iter(DataLoader(data, 4))), list)


def test_batches_do_not_share_memory_with_the_dataset():
    x = tinyfin.zeros(4)
    for (batch,) in DataLoader(TensorDataset(x), 2):
        batch += 1
    assert x.tolist() == [0, 0, 0, 0]


def test_shuffling_follows_from_the_seed():
    def epochs(seed):
        loader = DataLoader(range(20), 6, shuffle=True, generator=seeded(seed))
        return [[i for b in lists(loader) for i in b] for _ in range(2)]

    first, second = epochs(1)
    assert epochs(1) == [first, second] != epochs(2)
    assert sorted(first) == sorted(second) == list(range(20)) and first != second != list(range(20))
    tinyfin.manual_seed(4)
    a = lists(DataLoader(range(20), 20, shuffle=True))
    tinyfin.manual_seed(4)
    assert a == lists(DataLoader(range(20), 20, shuffle=True))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_same_order_and_values_for_any_number_of_workers(workers):
    def run(n):
        tinyfin.manual_seed(3)
        loader = DataLoader(Noisy(), 4, shuffle=True, num_workers=n, persistent_workers=n == 3)
        return [[plain(b) for b in loader] for _ in range(2)]

    assert run(workers) == run(0)


def test_dataset_code_does_not_disturb_the_global_generators():
    def run(data):
        random.seed(1), np.random.seed(1), tinyfin.manual_seed(1)
        for _ in DataLoader(data, 4):
            pass
        return random.random(), np.random.rand(), tinyfin.rand(1).item()

    assert run(Noisy()) == run(list(range(5)))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method):
    data = list(range(7))
    loader = DataLoader(
        data, 2, shuffle=True, num_workers=2, multiprocessing_context=method, generator=seeded(1)
    )
    assert lists(loader) == lists(DataLoader(data, 2, shuffle=True, generator=seeded(1)))


@pytest.mark.parametrize("cut", range(7))
@pytest.mark.parametrize("before, after", [(0, 0), (0, 2), (2, 0)])
def test_resume(cut, before, after):
    def make(workers):
        return DataLoader(Noisy(), 4, shuffle=True, num_workers=workers)

    tinyfin.manual_seed(3)
    loader = make(before)
    batches = iter(loader)
    for _ in range(cut):
        next(batches)
    state, rng = loader.state_dict(), tinyfin.get_rng_state()
    rest = [plain(b) for b in batches]
    following = [plain(b) for b in loader]

    tinyfin.manual_seed(99)
    resumed = make(after)
    resumed.load_state_dict(state)
    tinyfin.set_rng_state(rng)
    assert resumed.state_dict()["batches"] == cut, "the position survives being saved again"
    assert [plain(b) for b in resumed] == rest
    assert [plain(b) for b in resumed] == following


def test_resume_between_epochs():
    loader = DataLoader(range(9), 2, shuffle=True, generator=seeded(1))
    list(loader)
    state = loader.state_dict()
    following = lists(loader)
    resumed = DataLoader(range(9), 2, shuffle=True, generator=seeded(5))
    resumed.load_state_dict(state)
    assert lists(resumed) == following


def test_resume_with_samplers_of_ones_own():
    def random_batches():
        return DataLoader(
            range(9),
            batch_sampler=BatchSampler(RandomSampler(range(9), generator=seeded(2)), 2, False),
        )

    def unbatched():
        return DataLoader(range(9), None, sampler=RandomSampler(range(9), generator=seeded(2)))

    class Backwards(Sampler):
        def __iter__(self):
            return iter(range(8, -1, -1))

    for make in (random_batches, unbatched, lambda: DataLoader(range(9), 2, sampler=Backwards())):
        loader = make()
        batches = iter(loader)
        next(batches), next(batches)
        state = loader.state_dict()
        rest = [str(b) for b in batches]
        following = [str(b) for b in loader]
        resumed = make()
        resumed.load_state_dict(state)
        assert [str(b) for b in resumed] == rest
        assert [str(b) for b in resumed] == following


@pytest.mark.parametrize("workers", [0, 2])
def test_resume_of_a_stream(workers):
    loader = DataLoader(Stream(), 2, num_workers=workers)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    resumed = DataLoader(Stream(), 2, num_workers=workers)
    resumed.load_state_dict(state)
    assert lists(resumed) == lists(batches)


def test_leaving_an_epoch_keeps_the_position():
    loader = DataLoader(range(6), 2, generator=seeded(1))
    for _ in loader:
        break
    assert loader.state_dict()["batches"] == 1
    assert len(lists(loader)) == 3, "a new pass begins at the beginning"
    assert loader.state_dict()["batches"] is None


def test_state_of_another_batch_size_is_refused():
    loader = DataLoader(range(6), 2)
    next(iter(loader))
    with pytest.raises(ValueError, match="batch_size=2, this loader has batch_size=3"):
        DataLoader(range(6), 3).load_state_dict(loader.state_dict())


def test_streams():
    assert lists(DataLoader(Stream(5), 2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Stream(5), 2, num_workers=2)) == [[0, 2], [1, 3], [4]]
    assert lists(DataLoader(Stream(5), 2, num_workers=2, drop_last=True)) == [[0, 2], [1, 3]]
    assert list(DataLoader(Stream(3), None)) == [0, 1, 2]
    assert lists(DataLoader(Stream(0), 2, num_workers=2)) == []


def test_persistent_workers_are_kept():
    class Where(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            import os

            return os.getpid()

    loader = DataLoader(Where(), num_workers=2, persistent_workers=True)
    assert lists(loader) == lists(loader)
    stale = iter(loader)
    next(stale)
    assert len(lists(loader)) == 4
    with pytest.raises(RuntimeError, match="later pass"):
        next(stale)
    loader._pool.close()


@pytest.mark.parametrize(
    "options, text",
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 2.0}, "batch_size is 2.0"),
        ({"num_workers": -1}, "num_workers is -1"),
        ({"timeout": -1}, "timeout is -1"),
        ({"timeout": 3}, "timeout is for workers"),
        ({"prefetch_factor": 2}, "prefetch_factor is for workers"),
        ({"persistent_workers": True}, "persistent_workers is for workers"),
        ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor is 0"),
        ({"shuffle": True, "sampler": [0]}, "shuffle and sampler exclude"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler excludes"),
        ({"batch_sampler": [[0]], "shuffle": True}, "batch_sampler excludes"),
        ({"batch_size": None, "drop_last": True}, "drop_last needs batches"),
    ],
)
def test_arguments_that_do_not_fit(options, text):
    with pytest.raises(ValueError, match=text):
        DataLoader([1, 2, 3], **options)


def test_datasets_that_do_not_fit():
    for name, value in (("shuffle", True), ("sampler", [0]), ("batch_sampler", [[0]])):
        with pytest.raises(ValueError, match=f"{name} was given"):
            DataLoader(Stream(), **{name: value})
    with pytest.raises(TypeError, match="no __getitem__"):
        DataLoader(object())


def test_errors_of_the_dataset_come_through():
    with pytest.raises(IndexError, match="out of range"):
        list(DataLoader(TensorDataset(tinyfin.zeros(3)), sampler=[3]))
    with pytest.raises(RuntimeError, match="sample 0 has shape"):
        list(DataLoader([tinyfin.zeros(1), tinyfin.zeros(2)], 2))


def test_accepted_without_effect():
    loader = DataLoader([1, 2], 1, pin_memory=True, pin_memory_device="", in_order=False)
    assert lists(loader) == [[1], [2]] and loader.pin_memory
