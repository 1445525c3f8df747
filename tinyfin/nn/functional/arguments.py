"""Arguments in the forms that PyTorch takes, brought into one; what does not fit is refused."""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])


PARTS = {"broadcast_shapes", "norm", "vector_norm"}
"""Functions that errors of composed functions are not to name."""


def composed(function: Function) -> Function:
    """Decorates a function made of operations: their errors speak of the function that was called."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            from tinyfin.core.errors import rename
            from tinyfin.ops.table import OPS

            rename(error, function.__name__, OPS.keys() | PARTS)
            raise

    return call  # pyright: ignore[reportReturnType]


def check_counts(what: str, least: int = 0, **counts: Any) -> None:
    """Whole numbers that are not too small, for the sizes of layers.

    Raises:
        TypeError: one is no integer.
        RuntimeError: one is below `least`; of PyTorch's type.
    """
    for name, value in counts.items():
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{what}: {name} is {value!r}, expected an integer")
        if value < least:
            raise RuntimeError(f"{what}: {name} is {value}, expected at least {least}")


def check_numbers(what: str, **numbers: Any) -> None:
    """Numbers, or what becomes one.

    Raises:
        TypeError: one is nothing of the kind.
    """
    for name, value in numbers.items():
        if not hasattr(value, "__float__"):
            raise TypeError(f"{what}: {name} is {value!r}, expected a number")


def sizes(what: str, name: str, value: Any, n: int) -> tuple[int, ...]:
    """`n` integers from one, or from `n` of them.

    >>> from tinyfin.nn.functional.arguments import sizes
    >>> sizes("conv2d", "stride", 2, 2), sizes("conv2d", "stride", [1, 2], 2)
    ((2, 2), (1, 2))
    """
    if type(value) is tuple and len(value) == n:
        return value  # the rows look at the elements
    if hasattr(value, "__index__"):
        # tuples have none: a checker believes that the line above let them pass
        return (value.__index__(),) * n  # pyright: ignore[reportAttributeAccessIssue]
    values: tuple[Any, ...] = tuple(value) if isinstance(value, (tuple, list)) else (None,)
    if not all(hasattr(v, "__index__") for v in values):
        raise TypeError(f"{what}: {name} is {value!r}, expected an int or {n} of them")
    if len(values) == 1:
        values *= n
    if len(values) != n:
        raise RuntimeError(f"{what}: {name} is {value!r}, expected an int or {n} of them")
    return tuple(v.__index__() for v in values)
