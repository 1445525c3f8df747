"""Collation: every kind of sample, alike in tensors, arrays, numbers, strings and containers."""

import doctest
from collections import OrderedDict, UserDict, UserList, namedtuple

import numpy as np
import pytest

import tinyfin
from tinyfin.data import collate, default_collate, default_convert
from tinyfin.data.collate import move

Point = namedtuple("Point", "x y")


def test_examples():
    assert doctest.testmod(collate).failed == 0


def test_tensors_are_stacked():
    batch = default_collate([tinyfin.tensor([1.0, 2.0]), tinyfin.tensor([3.0, 4.0])])
    assert batch.tolist() == [[1, 2], [3, 4]] and batch.dtype == tinyfin.float32
    assert default_collate([tinyfin.tensor(1), tinyfin.tensor(2)]).tolist() == [1, 2]


@pytest.mark.parametrize(
    "name", ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool"]
)
def test_arrays_keep_their_dtype(name):
    a = np.arange(3).astype(name)
    batch = default_collate([a, a])
    assert batch.dtype == getattr(tinyfin, name)
    assert batch.tolist() == [a.tolist(), a.tolist()]


def test_arrays_of_any_layout():
    a = np.arange(12).reshape(3, 4)
    for layout in (a.T, a[::-1], a[:, ::2], np.asfortranarray(a), a.astype(">i8")):
        assert default_collate([layout, layout])[1].tolist() == layout.tolist()
    assert default_collate([np.array(3), np.array(4)]).tolist() == [3, 4]
    assert default_collate([np.float32(1), np.float32(2)]).dtype == tinyfin.float32
    assert default_collate([np.int16(1), np.int16(2)]).dtype == tinyfin.int16


def test_arrays_of_several_dtypes_promote_as_tensors_do():
    batch = default_collate([np.arange(2, dtype="int32"), np.ones(2, dtype="float32")])
    assert batch.dtype == tinyfin.float32 and batch.tolist() == [[0, 1], [1, 1]]


def test_a_batch_is_a_copy():
    a = np.zeros(2, dtype="float32")
    batch = default_collate([a])
    batch += 1
    assert a.tolist() == [0, 0]


def test_numbers():
    assert default_collate([1, 2]).dtype == tinyfin.int64
    assert default_collate([1.5, 2]).dtype == tinyfin.float64
    assert default_collate([True, False]).dtype == tinyfin.bool
    assert default_collate([2**62]).tolist() == [2**62]


def test_strings_stay():
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]


def test_containers():
    batch = default_collate([(1, {"a": 2.0}), (3, {"a": 4.0})])
    assert (
        isinstance(batch, list) and batch[0].tolist() == [1, 3] and batch[1]["a"].tolist() == [2, 4]
    )
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert isinstance(point, Point) and point.y.tolist() == [2, 4]
    pair = default_collate([[1, "a"], [2, "b"]])
    assert isinstance(pair, list) and pair[1] == ["a", "b"]
    for kind in (OrderedDict, UserDict):
        got = default_collate([kind(k=1), kind(k=2)])
        assert type(got) is kind and got["k"].tolist() == [1, 2]
    got = default_collate([UserList([1]), UserList([2])])
    assert type(got) is UserList and got[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    "samples, error, text",
    [
        ([], ValueError, "empty"),
        (
            [tinyfin.zeros(2), tinyfin.zeros(3)],
            RuntimeError,
            r"sample 0 has shape \(2,\), sample 1 has \(3,\)",
        ),
        ([tinyfin.zeros(2), 1.0], TypeError, "sample 1 a float"),
        (
            [np.zeros(2), np.zeros((2, 1))],
            RuntimeError,
            r"sample 0 has shape \(2,\), sample 1 has \(2, 1\)",
        ),
        ([np.array(["a"])], TypeError, "dtype <U1"),
        ([np.array([None])], TypeError, "dtype object"),
        ([(1, 2), (1,)], RuntimeError, "sample 0 has 2 fields, sample 1 has 1"),
        ([None], TypeError, "NoneType"),
        ([object()], TypeError, "collate_fn"),
    ],
)
def test_what_cannot_be_collated(samples, error, text):
    with pytest.raises(error, match=text):
        default_collate(samples)


def test_convert():
    got = default_convert(
        {"a": np.ones(2, dtype="float32"), "b": [1, "x"], "c": Point(np.int64(3), None)}
    )
    assert got["a"].tolist() == [1, 1] and got["b"] == [1, "x"]
    assert got["c"].x.item() == 3 and got["c"].y is None
    assert default_convert((1, np.zeros(1)))[1].tolist() == [0]
    assert default_convert(np.array(["a"]))[0] == "a"


def test_move_keeps_structure():
    got = move(
        {"a": tinyfin.zeros(1), "b": (tinyfin.ones(1), "x"), "c": Point(1, [tinyfin.ones(2)])},
        "cpu",
    )
    assert got["b"][1] == "x" and isinstance(got["b"], tuple) and isinstance(got["c"], Point)
