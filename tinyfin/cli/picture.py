"""Small grey pictures in a terminal, two pixels to a character."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    Image = Sequence[Sequence[int]]

_BLOCKS = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
_ASCII = {(False, False): " ", (True, False): "'", (False, True): ".", (True, True): "#"}
_GAP = "   "


def render(images: Sequence[Image], captions: Sequence[str], file: TextIO, top: int = 16) -> str:
    """The images side by side with a caption under each, in what `file` can show: greys, half
    blocks or plain characters.

    Args:
        images: rows of pixels from 0 to `top`; an even number of rows.

    >>> import io
    >>> print(render([[[16, 0], [16, 16]]], ["a"], io.TextIOWrapper(io.BytesIO(), "ascii")))
    #.
    a
    """
    grey = file.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    marks = _BLOCKS if _can_show("█", file) else _ASCII
    grey = grey and marks is _BLOCKS
    lines = []
    for row in range(0, len(images[0]), 2):
        cells = []
        for image in images:
            pairs = list(zip(image[row], image[row + 1], strict=True))
            cells.append(
                _grey_cells(pairs, top)
                if grey
                else "".join(marks[a > top / 2, b > top / 2] for a, b in pairs)
            )
        lines.append(_GAP.join(cells).rstrip())
    width = len(images[0][0])
    lines.append(_GAP.join(c.center(width)[:width] for c in captions).rstrip())
    return "\n".join(lines)


def _can_show(text: str, file: TextIO) -> bool:
    try:
        text.encode(getattr(file, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _grey_cells(pairs: list[tuple[int, int]], top: int) -> str:
    """Upper half in the foreground's grey, lower half in the background's; 232 to 255 are the
    greys of 256 colours.
    """
    cells = (f"\x1b[38;5;{232 + a * 23 // top};48;5;{232 + b * 23 // top}m▀" for a, b in pairs)
    return "".join(cells) + "\x1b[0m"
