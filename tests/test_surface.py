"""The everyday names are all there, as functions and as methods, wherever PyTorch has them."""

import pathlib

import pytest

import tinyfin as tf

LIST = pathlib.Path(__file__).with_name("surface.txt")
NAMES = [line.split() for line in LIST.read_text().splitlines() if not line.startswith("#")]
EVERYDAY = [(name, where) for tier, where, name in NAMES if tier == "1"]
ELSEWHERE = {
    "bool": "a dtype here and there",
    "float": "a dtype here and there",
    "double": "a dtype",
    "long": "a dtype",
}
"""Names that are dtypes as attributes of the package."""


def find(home, name):
    """The object behind a dotted name, or None."""
    for part in name.split("."):
        home = getattr(home, part, None)
    return home


@pytest.mark.parametrize(("name", "where"), EVERYDAY)
def test_everyday_name(name, where):
    if "f" in where and name not in ELSEWHERE:
        assert callable(find(tf, name)), f"there is no function tinyfin.{name}"
    if "m" in where:
        assert hasattr(tf.Tensor, name), f"there is no method Tensor.{name}"


def test_the_list_is_whole():
    """The data themselves: three tiers, no name twice."""
    assert len({name for *_, name in NAMES}) == len(NAMES) > 500
    assert [sum(t == tier for t, *_ in NAMES) for tier in "123"] == [155, 173, 225]


@pytest.mark.parametrize("name", dir(tf))
def test_listed_names_exist(name):
    """What dir(tinyfin) lists can be had."""
    getattr(tf, name)


def test_names_of_autograd():
    """Everything that tinyfin.autograd and tinyfin.func list is there, and says what it is."""
    for package in (tf.autograd, tf.func):
        assert set(package.__all__) <= set(dir(package))
        assert all(getattr(package, name).__doc__ for name in package.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        tf.autograd.nothing  # noqa: B018
