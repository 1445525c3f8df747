"""Size: a tensor's shape."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, SupportsIndex, overload


class Size(tuple[int, ...]):
    """A tuple of sizes.

    >>> Size((2, 3)).numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """The product of the sizes."""
        n = 1
        for size in self:
            n *= size
        return n

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, key: SupportsIndex) -> int: ...
        @overload
        def __getitem__(self, key: slice) -> Size: ...

    def __getitem__(self, key: Any) -> Any:
        value = tuple.__getitem__(self, key)
        return Size(value) if type(key) is slice else value

    def __add__(self, other: Iterable[Any]) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __repr__(self) -> str:
        return f"tinyfin.Size({list(self)})"

    __str__ = __repr__
