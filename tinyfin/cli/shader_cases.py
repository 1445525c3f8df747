"""Inputs for the check of kernels: values, dtypes, layouts; and the calls of elementwise rows.

An input is the bits of its elements. A call is made on two devices from the same bits, in the same layout.
"""

from __future__ import annotations

import itertools

import numpy as np

import tinyfin
from tinyfin.ops import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from numpy.random import Generator
    from numpy.typing import NDArray

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float16", "bfloat16", "float64")
ALL = ("bool", *INTEGERS, *FLOATS)
"""What devices compute in, float64 where they have it."""
LETTERS = {"b": ("bool",), "i": INTEGERS, "f": ("float32", "float64"), "h": ("float16", "bfloat16")}
WIDTH = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float64": 8}
SIZES = (0, 1, 3, 63, 64, 65, 257, 2049, 5003)
"""Around a lane, a work group, a block of a sum, and none of them."""


class Bits:
    """An array of elements of a dtype as unsigned integers.

    Args:
        dtype: its name; None is the dtype under test, and the values are then float64 numbers.
    """

    __slots__ = ("dtype", "values")

    def __init__(self, values: NDArray[Any], dtype: str | None) -> None:
        self.values, self.dtype = values, dtype


class Call:
    """One call of a row: NumPy arrays and `Bits` stand for tensors.

    float64 arrays take the dtype under test, others stay as they are; `only` names the letters of the
    dtypes that the call is meant for, `layouts` says whether odd layouts may be tried.
    """

    __slots__ = ("args", "kwargs", "layouts", "only")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self.only: str | None = None
        self.layouts = True

    def but(self, only: str | None = None, layouts: bool = True) -> Call:
        """The call with other settings."""
        self.only, self.layouts = only, layouts
        return self

    def meant_for(self, dtype: str) -> bool:
        """Whether it makes sense in a dtype."""
        return self.only is None or any(dtype in LETTERS[c] for c in self.only)


# ---- bits


def width(dtype: str) -> int:
    """Bytes of an element."""
    return WIDTH.get(dtype) or (4 if dtype == "float32" else 2)


def rounded(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The bits of float64 numbers in a dtype; integers are three times as large, so that they differ."""
    if dtype == "bool":
        return (values > 0).astype(np.uint8)
    if dtype in INTEGERS:
        whole = values if (values == np.rint(values)).all() else np.rint(values * 3)
        whole = np.abs(whole) if dtype == "uint8" else whole
        return whole.astype(dtype).view(f"u{width(dtype)}")
    from tinyfin.io.raw import tensor_bytes

    t = tinyfin.from_numpy(np.ascontiguousarray(values)).to(getattr(tinyfin, dtype))
    return np.frombuffer(tensor_bytes(t), f"u{width(dtype)}").reshape(values.shape)


def uploaded(bits: NDArray[Any], dtype: str, device: str) -> Any:
    """A dense tensor of these elements."""
    from tinyfin.core import exchange

    t = exchange.from_bytes(bits.tobytes(), getattr(tinyfin, dtype), bits.shape)
    return t if device == "cpu" else t.to(device)


# ---- layouts: each makes a view of something that was uploaded densely, so that no kernel has a part in it


def dense(bits: NDArray[Any], upload: Callable[[NDArray[Any]], Any]) -> Any:
    """As it is."""
    return upload(bits)


def transposed(bits: NDArray[Any], upload: Callable[[NDArray[Any]], Any]) -> Any:
    """Column-major storage."""
    dims = tuple(reversed(range(bits.ndim)))
    return upload(np.ascontiguousarray(bits.transpose())).permute(dims) if dims else upload(bits)


def backwards(bits: NDArray[Any], upload: Callable[[NDArray[Any]], Any]) -> Any:
    """Negative strides on every axis."""
    dims = tuple(range(bits.ndim))
    return upload(np.ascontiguousarray(np.flip(bits))).flip(dims) if dims else upload(bits)


def sliced(bits: NDArray[Any], upload: Callable[[NDArray[Any]], Any]) -> Any:
    """Every second element of a larger storage that is full of ones (NaN, -1)."""
    if not bits.ndim:
        return offset(bits, upload)
    wide = np.full([2 * s + 1 for s in bits.shape], ~np.zeros((), bits.dtype), bits.dtype)
    every = (slice(1, None, 2),) * bits.ndim
    wide[every] = bits
    return upload(wide)[every]


def offset(bits: NDArray[Any], upload: Callable[[NDArray[Any]], Any]) -> Any:
    """Dense, behind other elements and not aligned."""
    flat = np.concatenate([bits.reshape(-1)[:1].repeat(3), bits.reshape(-1)])
    return upload(flat)[min(3, len(flat)) :].view(bits.shape)


def broadcast(bits: NDArray[Any], upload: Callable[[NDArray[Any]], Any]) -> Any:
    """The first axis of several repeats its first element: stride 0. Other values, the same on both devices."""
    axis = next((k for k, s in enumerate(bits.shape) if s > 1), None)
    if axis is None:
        return upload(bits)
    return upload(np.ascontiguousarray(np.take(bits, [0], axis))).expand(bits.shape)


LAYOUTS = {f.__name__: f for f in (dense, transposed, backwards, sliced, offset, broadcast)}


def placed(a: Any, dtype: str, layout: str, device: str, scale: float = 1.0) -> Any:
    """A tensor of an array or of bits; those that keep their dtype (indices) are never repeated."""
    if isinstance(a, Bits):
        bits, name = a.values, a.dtype or dtype
    elif a.dtype == np.float64:
        bits, name = rounded(a * scale if scale != 1 else a, dtype), dtype
    else:
        if a.dtype == np.float32 and dtype == "float64":
            a = a.astype(np.float64)
        name = a.dtype.name
        bits = a.view(f"u{a.dtype.itemsize}") if a.dtype != np.bool_ else a.view(np.uint8)
        layout = "dense" if layout == "broadcast" else layout
    if name == "bool" and layout == "sliced":
        layout = "transposed"
    return LAYOUTS[layout](bits, lambda b: uploaded(b, name, device))


def mapped(call: Call, fn: Callable[[Any], Any]) -> tuple[list[Any], dict[str, Any]]:
    """(args, kwargs) with every array replaced by fn(array)."""

    def change(v: Any) -> Any:
        if isinstance(v, (np.ndarray, Bits)):
            return fn(v)
        if isinstance(v, (list, tuple)) and any(isinstance(w, (np.ndarray, Bits)) for w in v):
            return type(v)(map(change, v))
        return v

    return [change(a) for a in call.args], {k: change(v) for k, v in call.kwargs.items()}


# ---- elementwise rows: from the number of their arguments

SPECIAL = {
    "float32": (
        0x00000000, 0x3F800000, 0x3F000000, 0x40000000, 0x40490FDB, 0x42FE0000, 0x4B000000, 0x5F800000,
        0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x00000001, 0x007FFFFF, 0x00800000, 0x00800001, 0x33800000,
        0x3F7FFFFF, 0x3F800001,
    ),
    "float16": (
        0x0000, 0x3C00, 0x3800, 0x4000, 0x4248, 0x57F0, 0x6400, 0x7BFF, 0x7C00, 0x7E00, 0x0001, 0x03FF, 0x0400,
    ),
    "bfloat16": (
        0x0000, 0x3F80, 0x3F00, 0x4000, 0x4049, 0x42FE, 0x4B00, 0x7F7F, 0x7F80, 0x7FC0, 0x0001, 0x007F, 0x0080,
    ),
    "float64": (
        0x0000000000000000, 0x3FF0000000000000, 0x3FE0000000000000, 0x4000000000000000, 0x400921FB54442D18,
        0x4086000000000000, 0x4330000000000000, 0x43E0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000,
        0x7FF8000000000000, 0x0000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x0010000000000001,
        0x3CA0000000000000, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000001,
    ),
    "bool": (0, 1),
}  # fmt: skip
"""Bits of numbers at which functions change; with either sign."""
NO_ZERO = {"floor_divide", "trunc_divide", "remainder", "fmod"}
"""Rows of which the second argument must not be an integer 0: the CPU raises."""
SHIFTS = {"bitwise_left_shift", "bitwise_right_shift"}
ATTRIBUTES = {
    "leaky_relu": ({"negative_slope": 0.3}, {"negative_slope": -0.5}),
    "elu": ({"alpha": 0.7}, {"alpha": 1.3, "scale": 1.1, "input_scale": 0.8}),
    "smooth_error": ({"beta": 0.5},),
    "huber_error": ({"delta": 0.7},),
}
"""Attributes besides those by default."""
MASKS = {"where": (0,)}
"""Row -> arguments that are conditions."""


def special(dtype: str) -> NDArray[Any]:
    """Bits of special values of a dtype."""
    if dtype in SPECIAL:
        found = np.array(SPECIAL[dtype], f"u{width(dtype)}")
        sign = 8 * width(dtype) - 1
        return found if dtype == "bool" else np.concatenate([found, found | (1 << sign)])
    info = np.iinfo(dtype)
    around = [
        0,
        1,
        2,
        3,
        7,
        info.max,
        info.max - 1,
        info.min,
        info.min + 1,
        -1 if info.min else 255,
    ]
    return np.array(around, dtype).view(f"u{width(dtype)}")


def random_bits(rng: Generator, dtype: str, size: int | tuple[int, ...]) -> NDArray[Any]:
    """Any bits, and as many ordinary numbers."""
    if dtype == "bool":
        return rng.integers(0, 2, size, dtype=np.uint8)
    unsigned = f"u{width(dtype)}"
    wild = rng.integers(0, np.iinfo(unsigned).max, size, unsigned, endpoint=True)
    usual = rounded(rng.normal(0, 3, size), dtype)
    return np.where(rng.integers(0, 2, size, dtype=bool), wild, usual)


def acceptable(name: str, position: int, bits: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Bits that an argument of a row may have."""
    if position == 1 and dtype in INTEGERS:
        if name in NO_ZERO:
            return np.where(bits == 0, bits.dtype.type(3), bits)
        if name in SHIFTS:
            return bits % bits.dtype.type(8)
    return bits


def elementwise(name: str, dtype: str, rng: Generator) -> Iterator[tuple[Call, str]]:
    """(call, layout) of a row with an expression, in one dtype."""
    row = table.TABLE[name]
    n = len(row.arg_names)

    def arguments(make: Callable[[str], NDArray[Any]]) -> list[Bits]:
        kinds = ["bool" if k in MASKS.get(name, ()) else dtype for k in range(n)]
        return [Bits(acceptable(name, k, make(d), d), d) for k, d in enumerate(kinds)]

    yield Call(*specials(name, dtype, n)), "dense"
    for size in SIZES:
        yield Call(*arguments(lambda d, s=size: random_bits(rng, d, s))), "dense"
    for layout in LAYOUTS:
        yield Call(*arguments(lambda d: random_bits(rng, d, (7, 5, 9)))), layout
    if n > 1:
        shapes = itertools.cycle([(5, 1, 4), (3, 1), (1,)])
        yield Call(*arguments(lambda d: random_bits(rng, d, next(shapes)))), "dense"
    for attributes in ATTRIBUTES.get(name, ()):
        yield Call(*arguments(lambda d: random_bits(rng, d, 257)), **attributes), "dense"
    if row.scalars and n == 2:
        a, b = arguments(lambda d: random_bits(rng, d, 65))
        yield Call(a, 3), "dense"
        yield Call(5, b), "dense"


def specials(name: str, dtype: str, n: int) -> list[Bits]:
    """All halves, or special values of each argument with each of the others."""
    if n == 1 and width(dtype) == 2:
        return [Bits(np.arange(1 << 16, dtype=np.uint16), dtype)]
    kinds = ["bool" if k in MASKS.get(name, ()) else dtype for k in range(n)]
    lists = [acceptable(name, k, special(d), d) for k, d in enumerate(kinds)]
    if n == 3:
        lists = [values[:: max(1, len(values) // 12)] for values in lists]
    grids = np.meshgrid(*lists, indexing="ij")
    return [Bits(np.ascontiguousarray(g).reshape(-1), d) for g, d in zip(grids, kinds)]


def dtypes_of(name: str) -> tuple[str, ...]:
    """Names of the dtypes of a row that devices compute in."""
    if name == "int_mm":  # of the integers that its letter stands for, those of 8 bits
        return tuple(d for d in ALL if d in ("uint8", "int8"))
    row = table.TABLE[name]
    if row.dtypes == "any" or row.result == "float":
        return ALL
    return tuple(d for d in ALL if any(d in LETTERS[c] for c in row.dtypes))
