"""Trees: nested tuples, lists and dicts of tensors, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_leaf(tree: Any) -> bool:
    """Whether an object is no tuple, list or dict."""
    return not isinstance(tree, (tuple, list, dict))


def children(tree: Any) -> list:
    """The parts of a tuple, list or dict in order."""
    return list(tree.values()) if isinstance(tree, dict) else list(tree)


def rebuilt(tree: Any, parts: list) -> Any:
    """A container of the same kind and keys with other parts."""
    if isinstance(tree, dict):
        made = dict(zip(tree, parts))
        return made if type(tree) is dict else type(tree)(made)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*parts)
    return type(tree)(parts)


def flatten(tree: Any) -> list:
    """The leaves, from left to right.

    >>> flatten({"a": 1, "b": (2, [3])})
    [1, 2, 3]
    """
    if is_leaf(tree):
        return [tree]
    return [leaf for part in children(tree) for leaf in flatten(part)]


def unflatten(tree: Any, leaves: list) -> Any:
    """A tree of the same build with other leaves.

    >>> unflatten((1, [2]), [5, 6])
    (5, [6])
    """
    return fill(tree, iter(leaves))


def fill(tree: Any, leaves: Any) -> Any:
    """unflatten from an iterator."""
    if is_leaf(tree):
        return next(leaves)
    return rebuilt(tree, [fill(part, leaves) for part in children(tree)])


def mapped(fn: Callable, tree: Any) -> Any:
    """A tree of the same build with fn of each leaf.

    >>> mapped(abs, (-1, [2]))
    (1, [2])
    """
    if is_leaf(tree):
        return fn(tree)
    return rebuilt(tree, [mapped(fn, part) for part in children(tree)])


def same_build(a: Any, b: Any) -> bool:
    """Whether two trees differ in their leaves only."""
    if is_leaf(a) or is_leaf(b):
        return is_leaf(a) and is_leaf(b)
    if isinstance(a, dict) != isinstance(b, dict) or (isinstance(a, dict) and list(a) != list(b)):
        return False
    x, y = children(a), children(b)
    return len(x) == len(y) and all(map(same_build, x, y))


def spread(prefix: Any, tree: Any) -> list | None:
    """One entry of `prefix` for each leaf of `tree`; None where the prefix does not fit.

    >>> spread((0, None), (1, [2, 3]))
    [0, None, None]
    """
    if is_leaf(prefix):
        return [prefix] * len(flatten(tree))
    if is_leaf(tree) or isinstance(prefix, dict) != isinstance(tree, dict):
        return None
    if isinstance(prefix, dict) and list(prefix) != list(tree):
        return None
    x, y = children(prefix), children(tree)
    if len(x) != len(y):
        return None
    found: list = []
    for p, t in zip(x, y):
        part = spread(p, t)
        if part is None:
            return None
        found += part
    return found
