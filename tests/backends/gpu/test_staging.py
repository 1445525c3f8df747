"""The ring of staging memory: places do not overlap while the device may use them."""

import random

import numpy as np
import pytest

from tinyfin.backends.gpu.staging import Ring, copy_in, copy_out


def test_places_do_not_overlap_before_their_value_is_reached():
    reached = [0]
    random.seed(3)

    def wait(value):
        reached[0] = max(reached[0], value)

    ring, living = Ring(4096, wait), []
    for value in range(1, 2000):
        n = random.choice((1, 100, 256, 257, 1500, 4096))
        start = ring.place(n)
        ring.until(value)
        living = [p for p in living if p[2] > reached[0]]
        assert 0 <= start and start + n <= 4096
        assert all(start + n <= a or b <= start for a, b, _ in living)
        living.append((start, start + n, value))
    assert reached[0] < 1999


def test_waits_for_no_more_than_it_needs():
    waits = []
    ring, places = Ring(1024, waits.append), []
    for value in (1, 2, 3, 4):
        places.append(ring.place(256))
        ring.until(value)
    assert places == [0, 256, 512, 768] and waits == []
    assert ring.place(300) == 0 and waits == [1, 2]


def test_too_much():
    with pytest.raises(ValueError, match="5000 bytes do not fit into a ring of 4096"):
        Ring(4096, print).place(5000)


@pytest.mark.parametrize("nbytes", [0, 1, 1 << 20, (5 << 20) + 3])
def test_copies_by_several_threads(nbytes):
    source = np.random.default_rng(1).integers(0, 256, nbytes, np.uint8)
    there, back = np.zeros(nbytes + 1, np.uint8), np.zeros(nbytes, np.uint8)
    copy_in(there.ctypes.data, memoryview(source))
    assert there[-1] == 0
    copy_out(memoryview(back), there.ctypes.data)
    assert np.array_equal(back, source)
