"""Runs rows on a device and on the CPU and compares the bits."""

from __future__ import annotations

import contextlib
import zlib

import numpy as np

import tinyfin
from tinyfin import config
from tinyfin.cli.shader_cases import (
    FLOATS,
    LAYOUTS,
    Bits,
    Call,
    dtypes_of,
    elementwise,
    mapped,
    placed,
)
from tinyfin.ops import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from numpy.typing import NDArray

NORMAL, DETERMINISTIC = "normal", "deterministic"
NEAR = 4
"""Ulps that a result in normal mode may be off where a device flushes subnormal numbers."""
QUOTIENTS = (
    "div",
    "trunc_divide",
    "floor_divide",
    "reciprocal",
    "sqrt",
    "root_or_flat",
    "hypot",
    "smooth_error",
)
"""Rows with quotients and roots of `vmath`: in normal mode they take subnormal numbers for zeros on every GPU,
while the CPU keeps them."""
TINY = {"float32": 2.0**-64, "float64": 2.0**-520}
"""Dtype -> factor that makes products of ordinary numbers subnormal."""
SMALLEST = {"float32": 0x00800000, "float16": 0x0400, "bfloat16": 0x0080, "float64": 1 << 52}
"""Bits of the smallest normal numbers."""
INFINITY = {"float32": 0x7F800000, "float16": 0x7C00, "bfloat16": 0x7F80, "float64": 0x7FF << 52}
REFUSAL = "forbids running it on the cpu"
MAIN = ("float32", "int64", "bool")
"""Dtypes that take every call of a row that is not elementwise; the others take a third of them each."""
CHAINS = ("matmul", "linear", "conv", "conv_grad_input", "conv_grad_weight")
"""Families whose chains of products may be rounded otherwise in normal mode: twice where a device does not fuse, in
the hardware's order where it multiplies matrices."""
CHAIN = 256 * 2.0**-23
"""Most error of these, as a part of the largest result, besides the rounding of the result itself."""
TWINS = ("dense", "sliced", "backwards")
"""Layouts in which operations are tried in place too."""


class Outcome:
    """What became of a row.

    Attributes:
        calls: that were compared.
        worst: mode -> the largest error in ulp; in steps for integers.
        differing: mode -> calls whose bits differ.
        first: mode -> the first call whose bits differ.
        flushing: whether flushing subnormal numbers explains differences in normal mode.
        refused: dtypes in which every call ran on the CPU.
        faults: what makes the row fail, the first of each mode.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.worst: dict[str, float] = {NORMAL: 0, DETERMINISTIC: 0}
        self.differing = {NORMAL: 0, DETERMINISTIC: 0}
        self.first: dict[str, str] = {}
        self.flushing = False
        self.tested: set[str] = set()
        self.asked: set[str] = set()
        self.faults: dict[str, str] = {}

    @property
    def refused(self) -> list[str]:
        return sorted(self.asked - self.tested)

    @property
    def passed(self) -> bool:
        return bool(self.calls) and not self.faults

    @property
    def lost(self) -> bool:
        """Whether the device answers no more."""
        return any("are lost" in f for f in self.faults.values())

    def add(self, part: Outcome) -> None:
        """Adds what became of more of the row's calls."""
        self.calls += part.calls
        self.flushing |= part.flushing
        self.tested |= part.tested
        self.asked |= part.asked
        for mode in (NORMAL, DETERMINISTIC):
            self.worst[mode] = max(self.worst[mode], part.worst[mode])
            self.differing[mode] += part.differing[mode]
        self.first = part.first | self.first
        self.faults = part.faults | self.faults

    def text(self) -> str:
        """The result in a line."""
        if not self.calls and not self.faults:
            return "UNTESTED: " + (
                "every call ran on the CPU" if self.asked else "no calls are known"
            )
        parts = [
            f"{mode}: "
            + ("bits equal" if not n else f"{n} calls differ, up to {self.worst[mode]:g} ulp")
            for mode, n in self.differing.items()
        ]
        if self.flushing and NORMAL not in self.faults:
            parts[0] += " (subnormal numbers)"
        if self.differing[NORMAL] == self.differing[DETERMINISTIC] == 0:
            parts = ["bits equal"]
        if self.refused:
            parts.append(f"on the CPU: {', '.join(self.refused)}")
        return f"{self.calls:5} calls  {'; '.join(parts)}"

    def as_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "passed": self.passed,
            "calls": self.calls,
            "ulp": self.worst,
            "differing": self.differing,
            "first": self.first,
            "flushing": self.flushing,
            "refused": self.refused,
            "faults": list(self.faults.values()),
        }


def cases(name: str, dtype: str) -> Iterator[tuple[Call, str]]:
    """(call, layout) of a row in a dtype, the same ones in every run."""
    from tinyfin.cli import shader_calls_nn
    from tinyfin.cli.shader_calls import CALLS

    assert shader_calls_nn.calls  # its calls are in the table
    rng = np.random.default_rng(zlib.crc32(f"{name} {dtype}".encode()))
    row = table.TABLE[name]
    if row.expr is not None:
        yield from elementwise(name, dtype, rng)
        return
    odd = [n for n in LAYOUTS if n != "dense" and not (n == "broadcast" and row.mutates)]
    share, wanted = (1, 0) if dtype in MAIN else (3, zlib.crc32(dtype.encode()) % 3)
    for k, call in enumerate(CALLS[name](rng, name) if name in CALLS else ()):
        if call.meant_for(dtype) and k % share == wanted:
            yield call, "dense"
            if call.layouts:
                yield call, odd[k % len(odd)]


def dtypes_wanted(name: str, only: Sequence[str]) -> list[str]:
    """Dtypes in which a row is tried: those of `only`, or all that devices compute in."""
    return [d for d in dtypes_of(name) if not only or d in only]


@contextlib.contextmanager
def no_fallback() -> Iterator[None]:
    """What a kernel refuses is an error."""
    old, config.FALLBACK = config.FALLBACK, False
    try:
        yield
    finally:
        config.FALLBACK = old


def results(
    name: str, call: Call, dtype: str, layout: str, device: str, scale: float = 1.0
) -> list[Any]:
    """Tensors that a call gives; for rows that write their arguments, what is written."""
    args, kwargs = mapped(call, lambda a: placed(a, dtype, layout, device, scale))
    row = table.TABLE.get(name)
    found = table.OPS[name](*args, **kwargs)
    if row is not None and row.mutates:
        return [a for a, n in zip(args, row.arg_names) if n in row.mutates and a is not None]
    return list(found) if isinstance(found, (tuple, list)) else [found]


def bits_of(t: Any) -> NDArray[Any]:
    """The elements' bits; one NaN for all."""
    from tinyfin.io.raw import tensor_bytes

    bits = np.frombuffer(tensor_bytes(t), f"u{t.dtype.itemsize}")
    name = t.dtype.name
    if name not in FLOATS:
        return bits
    infinity = INFINITY[name]
    sign = bits.dtype.type(1 << (8 * t.dtype.itemsize - 1))
    return np.where((bits & ~sign) > infinity, bits.dtype.type(infinity | infinity >> 1), bits)


def distance(want: NDArray[Any], got: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Ulps between numbers, infinitely many between a number and NaN; for integers their difference."""
    if dtype not in FLOATS:
        if dtype != "bool":
            want, got = want.view(dtype), got.view(dtype)
        return np.abs(want.astype(np.float64) - got.astype(np.float64))
    size = want.dtype.type((1 << (8 * want.dtype.itemsize - 1)) - 1)
    a, b = ((v & size).astype(np.int64) for v in (want, got))
    apart = (want > size) != (got > size)
    steps = np.where(apart, a.astype(float) + b.astype(float), np.abs(a - b).astype(float))
    is_nan = [v > INFINITY[dtype] for v in (a, b)]
    return np.where(is_nan[0] != is_nan[1], np.inf, steps)


def explained(
    want: NDArray[Any], got: NDArray[Any], flushed: NDArray[Any], dtype: str
) -> NDArray[Any]:
    """Which elements of a device are what flushing makes of them, from the bits that the CPU has without and with it.

    Where a subnormal number passes a device as it is, it counts as a zero there.
    """
    allowed = got == flushed
    if dtype in FLOATS:
        size = (1 << (8 * want.dtype.itemsize - 1)) - 1
        tiny = [(bits & size) < SMALLEST[dtype] for bits in (want, got, flushed)]
        allowed |= tiny[1] & (tiny[0] | tiny[2])
    return allowed


def values(bits: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Floats of a dtype as float64."""
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(dtype).astype(np.float64)


def chained(want: NDArray[Any], got: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Which differences are no more than another rounding of long sums makes."""
    if dtype not in FLOATS:
        return want == got
    a, b = values(want, dtype), values(got, dtype)
    largest = np.abs(a[np.isfinite(a)]).max(initial=0)
    rounding = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(dtype, 0.0)
    chain = CHAIN * 2.0**-29 if dtype == "float64" else CHAIN
    with np.errstate(invalid="ignore"):
        return np.abs(a - b) <= largest * chain + np.abs(a) * rounding


class Comparison:
    """One row on one device.

    Args:
        keeps: whether the device keeps subnormal numbers, so that normal mode has the CPU's bits too.
        only: dtypes to be tried; all by default.
    """

    def __init__(self, name: str, device: str, keeps: bool, only: Sequence[str] = ()) -> None:
        self.device, self.keeps = device, keeps
        self.dtypes = dtypes_wanted(name, only)
        self.outcome = Outcome(name)

    def run(self) -> Outcome:
        """All dtypes, calls, layouts and modes."""
        name = self.outcome.name
        structured = table.TABLE[name].expr is None
        with no_fallback():
            for dtype in self.dtypes:
                for k, (call, layout) in enumerate(cases(name, dtype)):
                    self.one(name, call, dtype, layout, NORMAL)
                    if self.twice(dtype, layout, structured, k == 0):
                        self.one(name, call, dtype, layout, DETERMINISTIC)
                    if structured and layout == "dense" and dtype in TINY:
                        self.one(name, call, dtype, layout, DETERMINISTIC, TINY[dtype])
                    if table.TABLE[name].inplace and layout in TWINS and is_solid(call):
                        self.one(name + "_", call, dtype, layout, NORMAL)
                    if self.outcome.lost:
                        return self.outcome
        return self.outcome

    def twice(self, dtype: str, layout: str, structured: bool, first: bool) -> bool:
        """Whether deterministic mode is tried as well: integers have only one mode, and each mode wants pipelines
        of its own, which cost more than the calls."""
        row = table.TABLE[self.outcome.name]
        if structured:
            return layout == "dense"
        return first or dtype in FLOATS or row.result == "float"

    def one(
        self, name: str, call: Call, dtype: str, layout: str, mode: str, scale: float = 1.0
    ) -> None:
        """One call in one mode."""
        out = self.outcome
        with tinyfin.deterministic(mode == DETERMINISTIC):
            try:
                want = results(name, call, dtype, layout, "cpu", scale)
            except Exception:  # a call that the CPU refuses is none
                return
            out.asked.add(dtype)
            try:
                there = results(name, call, dtype, layout, self.device, scale)
                got = [t.cpu() for t in there]
            except Exception as error:
                if REFUSAL not in str(error):
                    out.faults.setdefault(mode, f"{describe(name, call, dtype, layout)}: {error}")
                return
        out.calls += 1
        out.tested.add(dtype)
        about = describe(name, call, dtype, layout)
        if [(t.dtype.name, tuple(t.shape)) for t in want] != [
            (t.dtype.name, tuple(t.shape)) for t in got
        ]:
            out.faults.setdefault(mode, f"{about}: another shape or dtype than on the CPU")
            return
        for k, (a, b) in enumerate(zip(want, got)):
            self.compare(a, b, mode, f"{about} result {k}", (name, call, dtype, layout, scale, k))

    def compare(self, want: Any, got: Any, mode: str, about: str, again: tuple[Any, ...]) -> None:
        """Bits, and where they differ, how far."""
        out = self.outcome
        a, b = bits_of(want), bits_of(got)
        if np.array_equal(a, b):
            return
        far = distance(a, b, want.dtype.name)
        out.differing[mode] += 1
        out.worst[mode] = max(out.worst[mode], float(far.max()))
        differs = a != b
        wrong = differs.copy()
        if mode == NORMAL and table.TABLE[out.name].family in CHAINS:
            wrong &= ~chained(a, b, want.dtype.name)
        if mode == NORMAL and (not self.keeps or out.name in QUOTIENTS):
            flushed = wrong & self.flushed(a, b, want.dtype.name, again)
            out.flushing |= bool(flushed.any())
            wrong &= ~flushed
            if want.dtype.name in FLOATS:
                wrong &= far > NEAR
        seen = wrong if wrong.any() else differs
        k = int(np.flatnonzero(seen)[0])
        digits = 2 * want.dtype.itemsize
        (out.faults if wrong.any() else out.first).setdefault(
            mode,
            f"{about}: {int(seen.sum())} of {a.size} elements differ; element {k} is "
            f"{int(b[k]):0{digits}x}, the CPU has {int(a[k]):0{digits}x}",
        )

    def flushed(
        self,
        want: NDArray[Any],
        got: NDArray[Any],
        dtype: str,
        again: tuple[Any, ...],
    ) -> NDArray[Any]:
        """Which elements are what flushing subnormal numbers makes of them."""
        name, call, wanted, layout, scale, k = again
        with tinyfin.deterministic():
            other = bits_of(results(name, call, wanted, layout, "cpu", scale)[k])
        return explained(want, got, other, dtype)


def is_solid(call: Call) -> bool:
    """Whether the first argument has three axes: the calls that try layouts."""
    first = call.args[0]
    return isinstance(first, Bits) and first.values.ndim == 3 and first.values.shape[1] > 1


def describe(name: str, call: Call, dtype: str, layout: str) -> str:
    """A call in a few words."""

    def short(v: Any) -> str:
        if isinstance(v, Bits):
            return str(list(v.values.shape))
        if isinstance(v, np.ndarray):
            return f"{'' if v.dtype == np.float64 else v.dtype}{list(v.shape)}"
        if isinstance(v, (list, tuple)):
            return f"[{', '.join(map(short, v))}]"
        return repr(v)

    parts = [*map(short, call.args), *(f"{k}={short(v)}" for k, v in call.kwargs.items())]
    return f"{name}({', '.join(parts)}) {dtype} {layout}"
