"""The progress bar: only on a terminal, never in the way of printed lines."""

import doctest
import io
import sys

import pytest

from tinyfin.cli import progress
from tinyfin.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_examples():
    assert doctest.testmod(progress).failed == 0


def test_nothing_is_drawn_without_a_terminal(capsys):
    with Progress(2, "work") as bar:
        bar.advance("note")
        bar.print("a line")
        bar.print("another", sys.stderr)
    shown = capsys.readouterr()
    assert shown.out == "a line\n" and shown.err == "another\n"


def test_plain_bar(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_rich_bar", lambda: None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(4, "work") as bar:
        for k in range(4):
            bar.advance(f"note {k}")
        bar.print("a line")
    drawn = sys.stderr.getvalue()
    assert "\r\x1b[Kwork [" in drawn and "100% 0:00 note 3" in drawn
    assert drawn.endswith("\r\x1b[K"), "the bar is wiped away at the end"
    assert capsys.readouterr().out == "a line\n"


def test_bar_by_rich(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with Progress(2, "work") as bar:
        bar.advance("note [1]")
        bar.print("not a terminal")
        bar.print("[bold] above the bar", sys.stderr)
        bar.advance("note [2]")
    assert "[bold] above the bar" in sys.stderr.getvalue()
    assert capsys.readouterr().out == "not a terminal\n"


def test_an_error_passes_through():
    with pytest.raises(ValueError), Progress(2) as bar:
        bar.advance()
        raise ValueError
