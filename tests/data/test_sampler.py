"""Samplers: orders that depend on the seed alone, and batches of them."""

import doctest
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinyfin
from tinyfin.data import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    sampler,
)

KINDS = {
    "random": lambda g: RandomSampler(range(50), generator=g),
    "replacement": lambda g: RandomSampler(range(50), replacement=True, generator=g),
    "more": lambda g: RandomSampler(range(50), num_samples=120, generator=g),
    "subset": lambda g: SubsetRandomSampler(list(range(100, 150)), generator=g),
    "weighted": lambda g: WeightedRandomSampler([1.0] * 50, 50, generator=g),
    "weighted once": lambda g: WeightedRandomSampler(
        range(1, 51), 40, replacement=False, generator=g
    ),
}


def seeded(seed):
    return tinyfin.Generator().manual_seed(seed)


def test_examples():
    assert doctest.testmod(sampler).failed == 0


def test_sampler_needs_iter():
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler())


def test_sequential():
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    assert len(SequentialSampler("abc")) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_order_follows_from_the_seed(kind):
    make = KINDS[kind]
    first, again, other = make(seeded(1)), make(seeded(1)), make(seeded(2))
    a = list(first)
    assert a == list(again) != list(other)
    assert a != list(first), "each pass has an order of its own"
    assert len(a) == len(first)


@pytest.mark.parametrize("kind", KINDS)
def test_global_generator_is_the_default(kind):
    tinyfin.manual_seed(5)
    a = list(KINDS[kind](None))
    tinyfin.manual_seed(5)
    assert a == list(KINDS[kind](None))


@pytest.mark.parametrize("kind", KINDS)
def test_pass_can_be_repeated_from_its_state(kind):
    s = KINDS[kind](seeded(3))
    passes = iter(s)
    begun = [next(passes)]
    state = s.state_dict()
    begun += passes
    following = list(s)
    again = KINDS[kind](seeded(99))
    again.load_state_dict(state)
    assert list(again) == begun
    assert list(again) == following


@pytest.mark.parametrize("kind", KINDS)
def test_order_does_not_depend_on_draws_between(kind):
    a, b = KINDS[kind](seeded(1)), KINDS[kind](seeded(1))
    passes = iter(a)
    tinyfin.rand(3, generator=a.generator)
    assert list(passes) == list(b)


@given(st.integers(0, 40), st.integers(0, 2**31))
def test_random_sampler_permutes(n, seed):
    assert sorted(RandomSampler(range(n), generator=seeded(seed))) == list(range(n))


def test_random_sampler_beyond_one_permutation():
    drawn = list(RandomSampler(range(4), num_samples=10))
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3]
    assert len(set(drawn[8:])) == 2
    assert list(RandomSampler([], num_samples=3)) == []


def test_replacement_draws_in_range_and_repeats():
    drawn = list(RandomSampler(range(10), replacement=True, num_samples=9000, generator=seeded(0)))
    counts = Counter(drawn)
    assert set(counts) == set(range(10)) and min(counts.values()) > 700


def test_weights_set_the_odds():
    drawn = Counter(WeightedRandomSampler([1, 0, 3], 8000, generator=seeded(0)))
    assert set(drawn) == {0, 2} and 0.7 < drawn[2] / 8000 < 0.8
    once = WeightedRandomSampler([1, 0, 3], 1, replacement=False, generator=seeded(0))
    firsts = Counter(next(iter(once)) for _ in range(800))
    assert set(firsts) == {0, 2} and 0.7 < firsts[2] / 800 < 0.8


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: RandomSampler([1], replacement=1), TypeError),
        (lambda: RandomSampler([1], num_samples=0), ValueError),
        (lambda: RandomSampler([1], num_samples=2.5), ValueError),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError),
        (lambda: WeightedRandomSampler([1.0, -1.0], 1), ValueError),
        (lambda: WeightedRandomSampler([0.0], 1), ValueError),
        (lambda: WeightedRandomSampler([float("nan")], 1), ValueError),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError),
        (lambda: WeightedRandomSampler([1.0, 0.0], 2, replacement=False), ValueError),
        (lambda: WeightedRandomSampler([1.0], 1, replacement=None), TypeError),
        (lambda: BatchSampler([1], 0, False), ValueError),
        (lambda: BatchSampler([1], True, False), ValueError),
        (lambda: BatchSampler([1], 2, None), ValueError),
    ],
)
def test_arguments_out_of_range(make, error):
    with pytest.raises(error):
        make()


@given(st.integers(0, 30), st.integers(1, 10), st.booleans())
def test_batches(n, size, drop_last):
    s = BatchSampler(range(n), size, drop_last)
    batches = list(s)
    assert len(batches) == len(s)
    assert all(len(b) == size for b in batches[:-1])
    whole = n // size * size if drop_last else n
    assert [i for b in batches for i in b] == list(range(whole))


def test_batch_sampler_passes_state_on():
    s = BatchSampler(RandomSampler(range(9), generator=seeded(1)), 4, False)
    begun = list(s)
    again = BatchSampler(RandomSampler(range(9), generator=seeded(7)), 4, False)
    again.load_state_dict(s.state_dict())
    assert list(again) == begun
    assert BatchSampler(range(3), 2, False).state_dict() == {}
