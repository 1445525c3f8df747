"""Pair: two results that have names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tinyfin.core.tensor import Tensor

    Base = tuple[Tensor, Tensor]
else:
    Base = tuple


class Pair(Base):
    """Results that can be taken by name, as PyTorch's return types.

    >>> import tinyfin
    >>> tinyfin.tensor([3, 1]).sort().values
    tensor([1, 3])
    """

    names: tuple[str, str]

    def __new__(cls, items: Base, names: tuple[str, str]) -> Pair:
        self = tuple.__new__(cls, items)
        self.names = names
        return self

    def __getattr__(self, name: str) -> Tensor:
        names = self.__dict__.get("names", ())
        if name in names:
            return self[names.index(name)]
        raise AttributeError(f"no result named '{name}'; have {', '.join(names)}")

    def __reduce__(self):
        return Pair, (tuple(self), self.names)
