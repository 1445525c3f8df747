"""Levels: which transformations are open in this thread, and which one answers a call.

A wrapper stands for a tensor inside one transformation: a dual carries (level, primal, tangent), a
batched tensor (level, value, dim). The greatest level among a call's arguments is the innermost
transformation; it answers by calls on what its wrappers hold.
"""

from __future__ import annotations

from _thread import _local

from tinyfin.core import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
DUAL, BATCH = "dual", "batch"
BITS = {DUAL: 16, BATCH: 32}
THREAD = _local()
COUNT = [0]
RANDOM = {"uniform", "normal", "exponential", "randint", "bernoulli", "random_bits", "dropout"}
"""Families whose results differ within a batch, or not, as vmap's `randomness` says."""
RULES = {}
"""kind -> function(level, op, args, attrs), entered by forward.py and vmap.py."""


class Level:
    """One open transformation; greater numbers are further inside."""

    __slots__ = ("kind", "number", "open", "size", "randomness", "former")

    def __init__(self, kind: str, size: int = 0, randomness: str = "error") -> None:
        self.kind, self.size, self.randomness = kind, size, randomness
        COUNT[0] += 1
        self.number = COUNT[0]
        self.open = True
        stack().append(self)
        self.former = tensor.set_mode(BITS[kind], BITS[kind])

    def close(self) -> None:
        """Ends the level: its duals are plain tensors from now on."""
        self.open = False
        if self in stack():
            stack().remove(self)
        tensor.set_mode(self.former, BITS[self.kind])

    def __enter__(self) -> Level:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self.kind} level {self.number}{'' if self.open else ', closed'}>"


class reopened:
    """Levels of an earlier time, open again for a block: for what must run once more as it did then."""

    def __init__(self, levels: list[Level]) -> None:
        self.levels = levels

    def __enter__(self) -> None:
        self.added = [k for k in self.levels if k not in stack()]
        self.former = [k.open for k in self.added]
        self.bits = tensor.mode()
        for k in self.added:
            k.open = True
            stack().append(k)
            tensor.set_mode(BITS[k.kind], BITS[k.kind])
        stack().sort(key=lambda k: k.number)

    def __exit__(self, *exc: object) -> None:
        for k, was_open in zip(self.added, self.former):
            k.open = was_open
            stack().remove(k)
        tensor.set_mode(self.bits, BITS[DUAL] | BITS[BATCH])


def stack() -> list[Level]:
    """The open levels of this thread, outermost first."""
    try:
        return THREAD.stack
    except AttributeError:
        THREAD.stack = []
        return THREAD.stack


def innermost(kind: str, limit: int | None = None) -> Level | None:
    """The innermost open level of a kind, of those with numbers below `limit`."""
    for level in reversed(stack()):
        if level.kind == kind and (limit is None or level.number < limit):
            return level
    return None


def ceiling() -> int | None:
    """Below which level random numbers are drawn now; None for all."""
    return getattr(THREAD, "ceiling", None)


class below:
    """Random numbers are drawn below a level that has had its say."""

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> None:
        self.former, THREAD.ceiling = ceiling(), self.level.number

    def __exit__(self, *exc: object) -> None:
        THREAD.ceiling = self.former


def live(t: Tensor) -> Tensor:
    """The tensor without wrappers of levels that were closed."""
    extra = t.extra_
    while extra is not None and DUAL in extra and not extra[DUAL][0].open:
        t = extra[DUAL][1]
        extra = t.extra_
    return t


def level_of(t: Tensor) -> Level | None:
    """The level of a tensor's outermost wrapper, after views have followed their base."""
    base = t.base
    if base is not None and base.extra_ is not None and DUAL in base.extra_:
        from tinyfin.autograd.forward import follow

        follow(t, base)
    extra = t.extra_
    if extra is None:
        return None
    entry = extra.get(DUAL) or extra.get(BATCH)
    if entry is None:
        return None
    if not entry[0].open:
        raise RuntimeError("vmap: a batched tensor is used after its vmap has returned")
    return entry[0]


def call(op, args: tuple, attrs: tuple):
    """Hands a call to the greatest level among its arguments; NotImplemented where there is
    none."""
    top = None
    changed = False
    for i, a in enumerate(args):
        if not isinstance(a, Tensor) or (a.extra_ is None and a.base is None):
            continue
        t = live(a)
        if t is not a:
            args, changed = (*args[:i], t, *args[i + 1 :]), True
        level = level_of(t)
        if level is not None and (top is None or level.number > top.number):
            top = level
    if op.family in RANDOM:
        drawing = innermost(BATCH, ceiling())
        if drawing is not None and (top is None or drawing.number >= top.number):
            top = drawing
    if top is not None:
        return RULES[top.kind](top, op, args, attrs)
    return rerun(op, args, attrs) if changed else NotImplemented


def rerun(op, args: tuple, attrs: tuple):
    """The call on other arguments."""
    if op.name == "assign":
        return tensor.assign(*args)
    return op.run_with(args, attrs)


def entry_at(t: Any, level: Level) -> Any:
    """(level, held tensor, tangent or dim) where t is a wrapper of this level, else None."""
    extra = t.extra_ if isinstance(t, Tensor) else None
    if extra is None:
        return None
    entry = extra.get(level.kind)
    return entry if entry is not None and entry[0] is level else None


def detached(t: Tensor, plain: Tensor) -> Tensor:
    """detach(): no history and no tangents at any level; batches stay."""
    t = live(t)
    extra = t.extra_ or {}
    if DUAL in extra:
        return extra[DUAL][1].detach()
    if BATCH in extra:
        level, value, dim = extra[BATCH]
        value = value.detach()
        return tensor.wrap(value, BATCH, (level, value, dim), dim)
    return t.detach()


tensor.install_hook("detach", detached)
