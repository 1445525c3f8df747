"""What messages say of values from files: a few words, however much the value holds."""

import doctest

from tinyfin.io import shown as module
from tinyfin.io.shown import shown


def test_examples():
    assert doctest.testmod(module).failed == 0


def test_values_that_hold_more_than_memory_could_print():
    many = "x" * 10
    for _ in range(200):
        many = (many, many)
    for x in (many, [many] * 1000, {"k": many}, "y" * 10**6):
        assert len(shown(x)) < 400


def test_small_values_are_shown_whole():
    for x in (3, (2, -1), "text", None, [1.5], {"a": 1}):
        assert shown(x) == repr(x)
