"""Datasets: samples by index, joins, parts, random splits."""

import doctest

import pytest

import tinyfin
from tinyfin.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    dataset,
    random_split,
)


class Numbers(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i


class Stream(IterableDataset):
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def test_examples():
    assert doctest.testmod(dataset).failed == 0


def test_dataset_without_methods_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())
    assert Dataset[int].__origin__ is Dataset


def test_tensor_dataset_rows():
    x, y = tinyfin.arange(12).reshape(4, 3), tinyfin.arange(4)
    data = TensorDataset(x, y)
    assert len(data) == 4
    assert [t.tolist() for t in data[2]] == [[6, 7, 8], 2]
    assert [t.tolist() for t in data[-1]] == [[9, 10, 11], 3]
    assert [t.tolist() for t in data._gather([3, 0, -1])] == [
        [[9, 10, 11], [0, 1, 2], [9, 10, 11]],
        [3, 0, 3],
    ]


def test_tensor_dataset_gathers_the_same_as_it_indexes():
    x = tinyfin.arange(24).reshape(4, 3, 2).transpose(1, 2)
    data = TensorDataset(x)
    (batch,) = data._gather([2, 1])
    assert batch.tolist() == [data[2][0].tolist(), data[1][0].tolist()]


@pytest.mark.parametrize("bad", [[4], [0, -5]])
def test_gather_refuses_rows_out_of_range(bad):
    with pytest.raises(IndexError, match="out of range for 4 samples"):
        TensorDataset(tinyfin.arange(4))._gather(bad)


def test_subclass_that_changes_samples_is_not_gathered():
    class Doubled(TensorDataset):
        def __getitem__(self, i):
            return (self.tensors[0][i] * 2,)

    data = Doubled(tinyfin.arange(3))
    assert data._gather([0]) is None
    assert Subset(data, [1, 2])._gather([0]) is None


def test_tensor_dataset_errors():
    with pytest.raises(ValueError, match="at least one tensor"):
        TensorDataset()
    with pytest.raises(ValueError, match="tensor 0 has 3 rows, tensor 1 has 2"):
        TensorDataset(tinyfin.zeros(3), tinyfin.zeros(2))
    with pytest.raises(ValueError, match="tensor 1 has no dimensions"):
        TensorDataset(tinyfin.zeros(3), tinyfin.tensor(1.0))


def test_subset():
    part = Subset(Numbers(10), [7, 3, 5])
    assert [part[i] for i in range(3)] == [7, 3, 5] and len(part) == 3
    assert part.__getitems__([2, 0]) == [5, 7]
    assert Subset(part, [1, 2]).__getitems__([0, 1]) == [3, 5]
    rows = Subset(TensorDataset(tinyfin.arange(10) * 10), [7, 3])._gather([1, 0])
    assert rows[0].tolist() == [30, 70]


def test_concat():
    both = Numbers(3) + Numbers(2)
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(5)] == [0, 1, 2, 0, 1] and both[-1] == 1
    with pytest.raises(IndexError, match="index 5 is out of range for 5"):
        both[5]
    with pytest.raises(ValueError, match="at least one"):
        ConcatDataset([])
    with pytest.raises(ValueError, match="dataset 1 is an IterableDataset"):
        ConcatDataset([Numbers(1), Stream()])
    assert [ConcatDataset([Numbers(0), Numbers(2), Numbers(0)])[i] for i in (0, 1)] == [0, 1]


def test_chain():
    both = Stream(1, 2) + Stream(3)
    assert isinstance(both, ChainDataset)
    assert list(both) == [1, 2, 3] == list(both)


def test_random_split():
    def split(seed):
        return [
            list(p.indices)
            for p in random_split(Numbers(10), [6, 4], tinyfin.Generator().manual_seed(seed))
        ]

    assert split(1) == split(1) != split(2)
    assert sorted(i for part in split(1) for i in part) == list(range(10))
    assert [len(p) for p in random_split(Numbers(10), [0.5, 0.3, 0.2])] == [5, 3, 2]
    assert [len(p) for p in random_split(Numbers(7), [0.5, 0.5])] == [4, 3]
    assert [len(p) for p in random_split(Numbers(0), [0, 0])] == [0, 0]


@pytest.mark.parametrize(
    "lengths, text",
    [
        ([5, 4], "add up to 9"),
        ([-1, 11], "negative"),
        ([0.5, 0.6], "not to 1"),
        ([0.5, float("nan")], "negative"),
    ],
)
def test_random_split_errors(lengths, text):
    with pytest.raises(ValueError, match=text):
        random_split(Numbers(10), lengths)
