"""What numbers a dtype can hold: finfo, iinfo."""

from __future__ import annotations

from tinyfin.core.dtype import DType, get_default_dtype

# digits of the fraction, exponent of the largest power of two, decimal digits that are kept
FLOATS = {"float16": (10, 15, 3), "bfloat16": (7, 127, 2), "float32": (23, 127, 6)}
FLOATS["float64"] = (52, 1023, 15)


class finfo:
    """Limits of a floating-point dtype, the default one where none is given.

    Attributes are Python numbers: `bits`; `eps`, the step after 1; `max`, `min`; `tiny` and
    `smallest_normal`, the least positive normal number; `resolution`; and `dtype`, a name.

    Raises:
        TypeError: the dtype is no floating-point one.

    >>> import tinyfin
    >>> tinyfin.finfo(tinyfin.float16).max
    65504.0
    """

    def __init__(self, type: DType | None = None) -> None:
        dtype = get_default_dtype() if type is None else type
        name = getattr(dtype, "name", None)
        if name not in FLOATS:
            raise TypeError(f"finfo: type is {type!r}, expected a floating-point dtype")
        digits, top, decimals = FLOATS[name]
        self.dtype, self.bits = name, dtype.itemsize * 8
        self.eps = 2.0**-digits
        self.max = (2.0 - self.eps) * 2.0**top
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - top)
        self.resolution = float(f"1e-{decimals}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution}, min={self.min}, max={self.max}, eps={self.eps}, "
            f"smallest_normal={self.smallest_normal}, tiny={self.tiny}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype: `bits`, `min`, `max` and `dtype`, a name.

    Raises:
        TypeError: the dtype is no integer one.

    >>> import tinyfin
    >>> tinyfin.iinfo(tinyfin.int8).max
    127
    """

    def __init__(self, type: DType) -> None:
        if not isinstance(type, DType) or "int" not in type.name:
            raise TypeError(f"iinfo: type is {type!r}, expected an integer dtype")
        self.dtype, self.bits = type.name, type.itemsize * 8
        self.max = (1 << (self.bits - type.is_signed)) - 1
        self.min = -self.max - 1 if type.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
