"""Pictures of digits: half blocks, greys or plain characters, whatever the terminal can show."""

import doctest
import io

import pytest

from tinyfin.cli import picture
from tinyfin.cli.picture import render

IMAGE = [[16, 0, 16, 0], [16, 16, 0, 0]]


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding):
        super().__init__(io.BytesIO(), encoding)

    def isatty(self):
        return True


def test_examples():
    assert doctest.testmod(picture).failed == 0


def test_half_blocks():
    file = io.TextIOWrapper(io.BytesIO(), "utf-8")
    assert render([IMAGE, IMAGE], ["7", "1"], file) == "█▄▀    █▄▀\n 7      1"


def test_plain_characters():
    file = io.TextIOWrapper(io.BytesIO(), "ascii")
    assert render([IMAGE], ["7"], file).splitlines()[0] == "#.'"
    assert render([IMAGE], ["7"], io.StringIO()).splitlines()[0] == "#.'"


def test_greys(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    shown = render([IMAGE], ["7"], Terminal("utf-8"))
    assert "\x1b[38;5;255;48;5;255m▀\x1b[38;5;232;48;5;255m▀" in shown and "\x1b[0m" in shown


@pytest.mark.parametrize("name, value", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colours_where_they_are_not_wanted(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    assert "\x1b" not in render([IMAGE], ["7"], Terminal("utf-8"))


def test_a_terminal_without_blocks():
    assert "\x1b" not in render([IMAGE], ["7"], Terminal("latin-1"))
