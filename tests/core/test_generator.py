"""Generators: seeds, draws, saved states."""

import copy
import pickle

import pytest

import tinyfin as tf

MAX = (1 << 64) - 1


def test_a_generator_is_a_seed_and_a_draw_number():
    g = tf.Generator()
    assert g.manual_seed(5) is g and g.initial_seed() == 5
    assert [g.next_draw() for _ in range(3)] == [(5, 0), (5, 1), (5, 2)]
    assert g.state_dict() == {"seed": 5, "draw": 3}
    g.manual_seed(6)
    assert g.next_draw() == (6, 0) and "seed=6 draw=1" in repr(g)


def test_fresh_generators_are_alike():
    assert tf.Generator().state_dict() == tf.Generator().state_dict()
    assert (
        tf.rand(3, generator=tf.Generator()).tolist()
        == tf.rand(3, generator=tf.Generator()).tolist()
    )


def test_all_64_bits_of_a_seed_count():
    first = {
        tuple(tf.rand(4, generator=tf.Generator().manual_seed(s)).tolist())
        for s in (0, 1, 1 << 32, 1 << 63, MAX)
    }
    assert len(first) == 5
    a, b = tf.Generator().manual_seed(-1), tf.Generator().manual_seed(MAX)
    assert a.initial_seed() == b.initial_seed() == MAX
    assert tf.rand(2, generator=a).tolist() == tf.rand(2, generator=b).tolist()


@pytest.mark.parametrize(
    "seed, kind",
    [
        (1.5, TypeError),
        ("1", TypeError),
        (True, TypeError),
        (None, TypeError),
        (1 << 64, RuntimeError),
        (-(1 << 63) - 1, RuntimeError),
    ],
)
def test_what_is_no_seed(seed, kind):
    g = tf.Generator().manual_seed(3)
    for target in (g.manual_seed, tf.manual_seed):
        with pytest.raises(kind, match="manual_seed: seed"):
            target(seed)
    assert g.initial_seed() == 3


def test_seed_from_the_system():
    a, b = tf.Generator(), tf.Generator()
    assert a.seed() != b.seed() and a.initial_seed() < 1 << 56


def test_states_go_on_where_they_were():
    g = tf.Generator().manual_seed(1 << 63)
    tf.rand(5, generator=g)
    saved = [g.state_dict(), g.get_state(), pickle.dumps(g), copy.deepcopy(g), g.clone_state()]
    want = tf.rand(5, generator=g).tolist()
    h = tf.Generator()
    h.load_state_dict(saved[0])
    assert tf.rand(5, generator=h).tolist() == want
    assert h.set_state(saved[1]) is h and tf.rand(5, generator=h).tolist() == want
    for other in (pickle.loads(saved[2]), saved[3], saved[4]):
        assert tf.rand(5, generator=other).tolist() == want
    assert saved[1].dtype is tf.uint8 and saved[1].shape == (16,)


@pytest.mark.parametrize(
    "state",
    [
        {"seed": -1, "draw": 0},
        {"seed": 0, "draw": 1 << 64},
        {"seed": 1.0, "draw": 0},
        {"seed": "a", "draw": 0},
    ],
)
def test_broken_states(state):
    g = tf.Generator().manual_seed(3)
    with pytest.raises(ValueError, match="load_state_dict"):
        g.load_state_dict(state)
    assert g.state_dict() == {"seed": 3, "draw": 0}


def test_broken_state_tensors():
    g = tf.Generator().manual_seed(3)
    for bad in (
        3,
        None,
        tf.zeros(16),
        tf.zeros(15, dtype=tf.uint8),
        tf.zeros(2, 8, dtype=tf.uint8),
    ):
        with pytest.raises(TypeError, match="set_state"):
            g.set_state(bad)
    with pytest.raises(KeyError):
        g.load_state_dict({})
    assert g.state_dict() == {"seed": 3, "draw": 0}


def test_the_draw_number_wraps():
    g = tf.Generator()
    g.load_state_dict({"seed": 1, "draw": MAX})
    a = tf.rand(2, generator=g)
    assert g.state_dict()["draw"] == 0 and a.tolist() != tf.rand(2, generator=g).tolist()
