"""Fetching: one batch, seeded, without traces in the global generators."""

import doctest
import random

import numpy as np
import pytest

import tinyfin
from tinyfin.data import IterableDataset, TensorDataset, default_collate, fetch
from tinyfin.data.fetch import EndOfStream, MapFetch, Seeded, StreamFetch, batch_seed, fetch_for


def draw():
    return random.random(), float(np.random.rand()), tinyfin.rand(1).item()


def test_examples():
    assert doctest.testmod(fetch).failed == 0


def test_seeds_of_batches_differ():
    seeds = {batch_seed(seed, number) for seed in (0, 1, 2**62 - 1) for number in range(1000)}
    assert len(seeds) == 3000 and all(0 <= s < 2**62 for s in seeds)


def test_seeded_scope_leaves_no_trace():
    random.seed(1), np.random.seed(1), tinyfin.manual_seed(1)
    expected = [draw() for _ in range(2)]
    random.seed(1), np.random.seed(1), tinyfin.manual_seed(1)
    scope = Seeded()
    first = draw()
    inside = []
    for _ in range(2):
        with scope.at(7):
            inside.append(draw())
    assert [first, draw()] == expected
    assert inside[0] == inside[1] != first
    with pytest.raises(KeyError), scope.at(7):
        raise KeyError


def test_map_fetch():
    class Items:
        def __getitem__(self, i):
            if i > 3:
                raise StopIteration
            return i

    assert MapFetch(Items(), default_collate, True)([1, 2]).tolist() == [1, 2]
    assert MapFetch(Items(), str, False)(3) == "3"
    with pytest.raises(RuntimeError, match="StopIteration out of Items"):
        MapFetch(Items(), default_collate, True)([4])


def test_batches_of_samples_at_once():
    class Items:
        def __getitem__(self, i):
            raise AssertionError("not by single sample")

        def __getitems__(self, indices):
            return [i * 2 for i in indices]

    assert MapFetch(Items(), list, True)([1, 2]) == [2, 4]


def test_quick_road_only_with_the_default_collation():
    data = TensorDataset(tinyfin.arange(4))
    assert MapFetch(data, default_collate, True).quick([1, 3])[0].tolist() == [1, 3]
    assert MapFetch(data, list, True).quick([1]) is None
    assert MapFetch(data, default_collate, False).quick(1) is None


@pytest.mark.parametrize(
    "size, drop, want",
    [
        (2, False, [[0, 1], [2, 3], [4]]),
        (2, True, [[0, 1], [2, 3]]),
        (None, False, [0, 1, 2, 3, 4]),
    ],
)
def test_stream_fetch(size, drop, want):
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    f = fetch_for(Stream(), lambda x: x, size, drop, size is not None)
    assert isinstance(f, StreamFetch) and f.quick(None) is None
    for _ in range(2):
        f.begin()
        got = []
        with pytest.raises(EndOfStream):
            while True:
                got.append(f(None))
        assert got == want
