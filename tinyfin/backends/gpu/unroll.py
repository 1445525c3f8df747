"""Loops of shaders written out, for OpenGL drivers that keep what a loop indexes in memory instead of registers.

Texts have no macros any more (see `compile.flattened`), but the constants' names.
"""

from __future__ import annotations

import operator
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NEXT = re.compile(
    r"UNROLL\s+for \((?P<u>u?)int (?P<name>\w+) = (?P<first>[^;]*); (?P=name) < (?P<end>[^;]*); (?P=name)\+\+\)"
    r"|\bif\s*(?=\()"
)
"""What is looked for: a loop to write out, or a condition that may be known."""
MARK = re.compile(r"\bUNROLL\b")
HEAD = re.compile(r"\s*(?:UNROLL\s+)?(for|if|while)\s*\(")
ELSE = re.compile(r"\s*else\b")
LEFT = re.compile(r"\b(?:break|continue)\b")
TOKEN = re.compile(r"\s*(?:(\d+)u?\b|(\w+)|([<>=!]=|&&|\|\||[-+*/%<>?:()]))")
ORDER: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"||": operator.or_},
    {"&&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.floordiv, "%": operator.mod},
)
"""Binary operators of unsigned numbers, those that bind least first."""


class Unknown(Exception):
    """An expression with something else than numbers and constants."""


class Value:
    """The number that a constant expression stands for; `constants` has the names' values."""

    def __init__(self, text: str, constants: Mapping[str, int]) -> None:
        self.constants = constants
        self.tokens = ["".join(m) for m in TOKEN.findall(text)]
        if re.sub(r"\s", "", TOKEN.sub("", text)):
            raise Unknown(text)
        self.at = 0
        self.number = self.choice()
        if self.at != len(self.tokens):
            raise Unknown(text)

    def taken(self, *wanted: str) -> str:
        """The next token where it is one of these."""
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def choice(self) -> int:
        """condition ? a : b"""
        value = self.binary(0)
        if self.taken("?"):
            yes = self.choice()
            if not self.taken(":"):
                raise Unknown
            no = self.choice()
            return yes if value else no
        return value

    def binary(self, level: int) -> int:
        if level == len(ORDER):
            return self.single()
        value = self.binary(level + 1)
        while sign := self.taken(*ORDER[level]):
            try:
                value = int(ORDER[level][sign](value, self.binary(level + 1)))
            except ZeroDivisionError:
                raise Unknown from None
            if value < 0:  # unsigned numbers wrap
                raise Unknown
        return value

    def single(self) -> int:
        if self.taken("("):
            value = self.choice()
            if self.taken(")"):
                return value
        elif self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.isdigit():
                return int(token)
            if token in self.constants:
                return self.constants[token]
        raise Unknown


def closed(text: str, at: int) -> int:
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "({") - (text[i] in ")}")
        if depth == 0:
            return i + 1
    raise ValueError(f"a bracket is not closed: {text[at : at + 80]}")


def statement(text: str, at: int) -> int:
    """Behind the statement that begins at `at`."""
    if head := HEAD.match(text, at):
        end = statement(text, closed(text, head.end() - 1))
        if head[1] == "if" and (other := ELSE.match(text, end)):
            end = statement(text, other.end())
        return end
    start = at + len(text[at:]) - len(text[at:].lstrip())
    if text[start] == "{":
        return closed(text, start)
    return text.index(";", start) + 1


def value(text: str, constants: Mapping[str, int]) -> int | None:
    """The number of an expression, where it is known."""
    try:
        return Value(text, constants).number
    except Unknown:
        return None


def unrolled(text: str, constants: Mapping[str, int]) -> str:
    """The text with a copy of its body for each turn of a loop marked UNROLL, and of what depends on constants
    alone only what is reached: in what is not, an index may be out of range, which compilers refuse.

    Loops whose number of turns is not known, that count otherwise, or that are left early, stay.
    """
    out, at = [], 0
    while found := NEXT.search(text, at):
        out.append(text[at : found.start()])
        if found["name"]:
            part, at = turns(text, found, constants)
        else:
            part, at = choice(text, found, constants)
        out.append(part)
    return MARK.sub("", "".join(out) + text[at:])


def turns(text: str, loop: re.Match[str], constants: Mapping[str, int]) -> tuple[str, int]:
    """(every turn of a loop, the place behind it)."""
    end = statement(text, loop.end())
    body = text[loop.end() : end]
    first, last = value(loop["first"], constants), value(loop["end"], constants)
    if first is None or last is None or LEFT.search(body):
        return loop[0] + unrolled(body, constants), end
    name = re.compile(rf"(?<![.\w]){loop['name']}\b")
    copies = (name.sub(f"{n}{loop['u']}", body) for n in range(first, last))
    return "{" + "".join("{" + unrolled(copy, constants) + "}" for copy in copies) + "}", end


def choice(text: str, start: re.Match[str], constants: Mapping[str, int]) -> tuple[str, int]:
    """(the branch that is taken, the place behind all) where the condition is known, else (it, its end)."""
    head = closed(text, start.end())
    condition = value(text[start.end() : head], constants)
    if condition is None:
        return text[start.start() : head], head
    yes = statement(text, head)
    other = ELSE.match(text, yes)
    no = statement(text, other.end()) if other else yes
    taken = text[head:yes] if condition else text[other.end() : no] if other else ""
    return "{" + unrolled(taken, constants) + "}", rest_of_block(text, no) if returns(taken) else no


def returns(text: str) -> bool:
    """Whether a statement surely ends the function."""
    inner, at = text.strip(), 0
    if inner.startswith("{"):
        inner = inner[1:-1]
    last = ""
    while inner[at:].strip():
        end = statement(inner, at)
        last, at = inner[at:end], end
    return last.strip().startswith("return")


def rest_of_block(text: str, at: int) -> int:
    """At the brace that closes the block around `at`: what is not reached may break rules of the language."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth < 0:
            return i
    return len(text)
