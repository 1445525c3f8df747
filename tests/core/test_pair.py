"""Results that have names: Pair."""

import copy
import pickle

import pytest

import tinyfin as tf
from tinyfin.core.pair import Pair

CALLS = [
    lambda x: x.sort(),
    lambda x: tf.sort(x, 0, descending=True),
    lambda x: x.topk(2),
    lambda x: x.cummax(0),
    lambda x: tf.cummin(x, dim=1),
    lambda x: x.max(1),
    lambda x: x.min(dim=0),
]


@pytest.mark.parametrize("call", CALLS)
def test_values_and_indices(call):
    x = tf.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    found = call(x)
    values, indices = found
    assert found.values is values is found[0] and found.indices is indices is found[1]
    assert values.dtype is tf.float32 and indices.dtype is tf.int64
    assert isinstance(found, tuple) and len(found) == 2


def test_names_follow_into_transformations():
    x = tf.tensor([[3.0, 1.0], [0.0, 5.0]])
    assert tf.func.vmap(lambda row: row.sort().values)(x).tolist() == [[1.0, 3.0], [0.0, 5.0]]
    assert tf.func.grad(lambda x: x.topk(1).values.sum())(x).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert tf.aminmax(x).max.item() == 5.0


def test_copies_keep_the_names():
    pair = tf.tensor([2, 1]).sort()
    for again in (copy.copy(pair), copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert again.values.tolist() == [1, 2] and again.indices.tolist() == [1, 0]


def test_unknown_names():
    with pytest.raises(AttributeError, match="no result named 'places'; have values, indices"):
        _ = tf.tensor([2, 1]).sort().places
    assert Pair((tf.ones(1), tf.zeros(1)), ("a", "b")).a.item() == 1.0
