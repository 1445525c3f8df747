"""A progress bar on standard error: drawn by `rich` where that is installed, else in one plain
line; none without a terminal.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

_WIDTH = 30
_REDRAW_SECONDS = 0.1


class Progress:
    """A bar over `total` steps; a context manager. Lines printed through it stay above the bar.

    >>> with Progress(2, "epoch") as bar:
    ...     bar.advance("loss 1.5")
    ...     bar.print("half done")
    half done
    """

    def __init__(self, total: int, label: str = "") -> None:
        self.total = total
        self.label = label
        self.done = 0
        self.note = ""
        self._bar: Any = None
        self._task: Any = None
        self._drawn = 0.0
        self._began = time.monotonic()
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Progress:
        self._bar = _rich_bar() if self._terminal else None
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self.label, total=self.total, note="")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._terminal:
            self._clear()

    def advance(self, note: str = "", steps: int = 1) -> None:
        """Says that steps are done, with a note beside the bar."""
        self.done += steps
        self.note = note
        if self._bar is not None:
            self._bar.update(self._task, advance=steps, description=self.label, note=note)
        elif self._terminal:
            self._draw()

    def print(self, text: str, file: TextIO | None = None) -> None:
        """Prints a line without tearing the bar."""
        out = sys.stdout if file is None else file
        if self._bar is not None and out.isatty():
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
            return
        if self._terminal:
            self._clear()
        print(text, file=out, flush=True)

    def _draw(self) -> None:
        now = time.monotonic()
        if now - self._drawn < _REDRAW_SECONDS and self.done < self.total:
            return
        self._drawn = now
        part = self.done / max(self.total, 1)
        filled = round(part * _WIDTH)
        bar = "#" * filled + "." * (_WIDTH - filled)
        left = left_text((now - self._began) / part * (1 - part)) if part else "-:--"
        sys.stderr.write(f"\r\x1b[K{self.label} [{bar}] {part:4.0%} {left} {self.note}")
        sys.stderr.flush()

    def _clear(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def left_text(seconds: float) -> str:
    """A time as minutes and seconds, or hours before them.

    >>> left_text(75.2), left_text(3675)
    ('1:15', '1:01:15')
    """
    whole = round(seconds)
    minutes = f"{whole // 60 % 60}:{whole % 60:02}"
    return minutes if whole < 3600 else f"{whole // 3600}:{minutes:0>5}"


def _rich_bar() -> Any:
    """A bar of rich, or None where rich is not installed."""
    try:
        from rich.console import Console  # pyright: ignore[reportMissingImports]
        from rich.progress import (  # pyright: ignore[reportMissingImports]
            BarColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True)
    return RichProgress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    )
