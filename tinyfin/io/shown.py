"""What messages say of values that a file holds."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def shown(x: Any) -> str:
    """A value from a file in a few words, however large it is.

    >>> shown(((1, (2, 3)), "x" * 1000))
    "((1, (...)), 'xxxxxxxxxxxx...xxxxxxxxxxxxx')"
    """
    import reprlib

    short = reprlib.Repr()
    short.maxlevel = 2
    return short.repr(x)
