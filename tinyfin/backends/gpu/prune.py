"""Texts for OpenGL without the functions of vmath that a module does not call: a compiler would read them each time."""

from __future__ import annotations

import re
from functools import lru_cache

HEAD = re.compile(r"^(?:FN |VD )?\w+ (v[md]_\w+)\([^()]*\) \{", re.MULTILINE)
NAME = re.compile(r"[A-Za-z_]\w*")


@lru_cache(maxsize=4096)
def names(text: str) -> frozenset[str]:
    """Every name in a text."""
    return frozenset(NAME.findall(text))


def end_of(text: str, start: int) -> int:
    """Behind the brace that closes the first one from `start` on."""
    depth, at = 0, text.index("{", start)
    while True:
        opening, closing = text.find("{", at), text.find("}", at)
        if closing < 0:
            return len(text)
        if 0 <= opening < closing:
            depth, at = depth + 1, opening + 1
        else:
            depth, at = depth - 1, closing + 1
            if depth == 0:
                return at


def pieces(text: str) -> list[tuple[str | None, str]]:
    """(name, definition) of each function, and (None, text) of what stands between them. A definition that
    holds another, since its braces depend on conditions, is not told apart."""
    found: list[tuple[str | None, str]] = []
    at = 0
    for match in HEAD.finditer(text):
        if match.start() < at:
            found[-1] = (None, found[-1][1])
            continue
        end = end_of(text, match.start())
        found += [(None, text[at : match.start()]), (match[1], text[match.start() : end])]
        at = end
    return [*found, (None, text[at:])]


def pruned(text: str) -> str:
    """The text with those functions of vmath alone that the rest of it leads to."""
    parts = pieces(text)
    calls: dict[str, set[str]] = {}
    for name, part in parts:
        if name is not None:
            calls.setdefault(name, set()).update(names(part))
    waiting = set().union(*(names(part) for name, part in parts if name is None)) & set(calls)
    kept: set[str] = set()
    while waiting:
        kept |= waiting
        waiting = set().union(*(calls[name] for name in waiting)) & set(calls) - kept
    return "".join(part for name, part in parts if name is None or name in kept)
