"""Index checks in parallel, and additions to halves, bool and integers."""

import numpy as np
import pytest

import tinyfin as tf


@pytest.mark.parametrize("place", [0, 4, 40000, 69999])
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_the_first_wrong_index_is_named(place, kind):
    index = tf.zeros(70000, dtype=getattr(tf, kind))
    index[place] = 9
    index[69999] = -9 if place < 69999 else 9
    for threads in (1, 2):
        before = tf.get_num_threads()
        tf.set_num_threads(threads)
        with pytest.raises(IndexError, match="index 9 is out of range for dim 0 of size 3"):
            tf.ones(3).gather(0, index)
        tf.set_num_threads(before)


@pytest.mark.parametrize("bad", [2**63 - 1, -(2**63), 3, -1])
def test_extreme_indices(bad):
    for i in (tf.tensor([0, bad]), tf.tensor([[0, 0], [bad, bad]]).t()[1]):
        with pytest.raises(IndexError, match=f"index {bad} is out of range"):
            tf.index_select(tf.ones(3), 0, i)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_halves_are_added_in_float32_and_rounded_once(dtype):
    one = tf.ones(5000, dtype=dtype)
    zeros = tf.zeros(5000, dtype=tf.int64)
    want = tf.tensor(5000.0).to(dtype).item()
    assert tf.zeros(2, dtype=dtype).index_add(0, zeros, one)[0].item() == want
    assert tf.zeros(2, dtype=dtype).scatter_add(0, zeros, one)[0].item() == want
    assert tf.zeros(2, dtype=dtype).index_put((zeros,), one, accumulate=True)[0].item() == want


def test_integers_wrap_and_bool_is_or():
    i = tf.tensor([0, 0, 1])
    assert tf.zeros(2, dtype=tf.uint8).index_add(
        0, i, tf.tensor([200, 100, 1], dtype=tf.uint8)
    ).tolist() == [44, 1]
    assert tf.zeros(2, dtype=tf.int8).scatter_add(
        0, i, tf.tensor([100, 100, -1], dtype=tf.int8)
    ).tolist() == [-56, -1]
    assert tf.tensor([True, False]).index_add(0, i, tf.tensor([False, False, True])).tolist() == [
        True,
        True,
    ]
    big = tf.tensor([2**62, 2**62, 2**62]).index_add(0, i, tf.tensor([2**62, 1, 2], dtype=tf.int64))
    assert big.tolist() == [-(2**63) + 1, 2**62 + 2, 2**62]


def test_scaled_additions():
    i = tf.tensor([1, 1])
    assert tf.zeros(2, dtype=tf.int32).index_add(
        0, i, tf.tensor([3, 4], dtype=tf.int32), alpha=-2
    ).tolist() == [0, -14]
    got = tf.zeros(2, 3).index_add(0, i, tf.ones(2, 3), alpha=0.1)
    assert np.array_equal(got.numpy()[1], np.full(3, np.float32(0.1) + np.float32(0.1)))
