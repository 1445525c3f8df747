"""The ring of staging memory: places do not overlap while the device may use them."""

import random

import pytest

from tinyfin.backends.gpu.staging import Ring


def test_places_do_not_overlap_before_their_value_is_reached():
    reached = [0]
    random.seed(3)

    def wait(value):
        reached[0] = max(reached[0], value)

    ring, living = Ring(4096, wait), []
    for value in range(1, 2000):
        n = random.choice((1, 100, 256, 257, 1500, 4096))
        start = ring.place(n, value)
        living = [p for p in living if p[2] > reached[0]]
        assert 0 <= start and start + n <= 4096
        assert all(start + n <= a or b <= start for a, b, _ in living)
        living.append((start, start + n, value))
    assert reached[0] < 1999


def test_waits_for_no_more_than_it_needs():
    waits = []
    ring = Ring(1024, waits.append)
    assert [ring.place(256, v) for v in (1, 2, 3, 4)] == [0, 256, 512, 768] and waits == []
    assert ring.place(300, 5) == 0 and waits == [1, 2]


def test_too_much():
    with pytest.raises(ValueError, match="5000 bytes do not fit into a ring of 4096"):
        Ring(4096, print).place(5000, 1)
