"""Size: a tensor's shape."""


class Size(tuple):
    """A tuple of sizes.

    >>> Size((2, 3)).numel()
    6
    """

    __slots__ = ()

    def numel(self):
        """The product of the sizes."""
        n = 1
        for size in self:
            n *= size
        return n

    def __getitem__(self, key):
        value = tuple.__getitem__(self, key)
        return Size(value) if type(key) is slice else value

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __repr__(self):
        return f"tinyfin.Size({list(self)})"

    __str__ = __repr__
