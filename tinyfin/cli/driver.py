"""What a GPU's driver makes of plain arithmetic, told in words: the faults that kernels are written around."""

from __future__ import annotations

import subprocess
import sys
import tempfile

import numpy as np

import tinyfin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from numpy.typing import NDArray

(
    FMA, PLAIN_SUM, INNER_SUM, MULTIPLY, ADD, LESS, CHOICE, ADD_ZERO, DIVIDE, ROOT, REMAINDER,
    TO_INTEGER, NOT_ITSELF, SHARED,
) = range(14)  # fmt: skip
"""Numbers of the computations in probe.comp."""
NAN, SUBNORMAL = 0x7FC00000, 0x000116C2
TIMEOUT = 120


class Fact:
    """One line: what was looked at, what was found, and whether kernels can live with it."""

    def __init__(self, name: str, text: str, good: bool = True) -> None:
        self.name, self.text, self.good = name, text, good


def words(values: Sequence[float] | NDArray[Any]) -> NDArray[Any]:
    """The bits of float32 numbers."""
    return np.asarray(values, np.float32).view(np.uint32)


class Prober:
    """Computations of probe.comp on one device, from bits to bits."""

    def __init__(self, device: str) -> None:
        from tinyfin.backends.gpu.probe import probe

        self.device, self.probe = device, probe

    def __call__(self, which: int, *operands: Any) -> NDArray[Any]:
        arrays = [np.asarray(v, np.uint32).reshape(-1) for v in operands]
        zero = np.zeros_like(arrays[0])
        a, b, c = [
            tinyfin.from_numpy(np.ascontiguousarray(v).view(np.int32)).to(self.device)
            for v in (*arrays, zero, zero)[:3]
        ]
        out = tinyfin.zeros(a.numel(), dtype=tinyfin.int32, device=self.device)
        self.probe(out, a, b, c, which)
        return out.cpu().numpy().view(np.uint32)


def facts(device: str, soft: bool, flush: int) -> list[Fact]:
    """All that is found out about a device, the dangerous last.

    Args:
        soft: whether the backend took the modules that emulate fused multiply-add.
        flush: the constant FLUSH that it took for deterministic mode, -1 where it refuses it.
    """
    ask = Prober(device)
    return [
        fused(ask, soft),
        contracted(ask),
        subnormal(ask),
        deterministic(flush),
        choice(ask),
        zero(ask),
        quotient(ask),
        remainder(ask),
        integers(ask),
        nan_test(ask),
        shared(ask),
        too_much_shared(device),
    ]


def residues() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Factors, the product rounded and negated, and what it lost: a * b + c in one rounding."""
    rng = np.random.default_rng(1)
    a, b = rng.uniform(1, 2, (2, 4096)).astype(np.float32)
    product = a * b
    rest = a.astype(np.float64) * b - product
    return words(a), words(b), words(-product), words(rest.astype(np.float32))


def fused(ask: Prober, soft: bool) -> Fact:
    """Whether fma has one rounding."""
    a, b, c, rest = residues()
    whole = bool((ask(FMA, a, b, c) == rest).all())
    text = "one rounding" if whole else "two roundings, split into product and sum"
    text += "; the modules that emulate it are used" if soft else ""
    return Fact("fused multiply-add", text, whole or soft)


def contracted(ask: Prober) -> Fact:
    """Whether a product and a sum become one operation unasked."""
    a, b, c, rest = residues()
    moving = rest & 0x7FFFFFFF != 0
    found = [
        where
        for which, where in ((PLAIN_SUM, "in place"), (INNER_SUM, "in called functions"))
        if (ask(which, a, b, c)[moving] != 0).any()
    ]
    text = " and ".join(found) if found else "never"
    return Fact("a * b + c made one operation", f"{text}; kernels forbid it")


def kept(ask: Prober) -> dict[str, bool]:
    """Operation -> whether it keeps subnormal numbers."""
    tiny, one = [SUBNORMAL], words([1.0])
    return {
        "*": bool(ask(MULTIPLY, tiny, one)[0] == SUBNORMAL),
        "+": bool(ask(ADD, tiny, [0])[0] == SUBNORMAL),
        "fma": bool(ask(FMA, tiny, one, [0])[0] == SUBNORMAL),
        "<": bool(ask(LESS, [0], tiny)[0] == 1),
    }


def keeps(device: str) -> bool:
    """Whether a device keeps subnormal numbers everywhere, so that normal mode has the CPU's bits."""
    return all(kept(Prober(device)).values())


def subnormal(ask: Prober) -> Fact:
    """Which operations keep subnormal numbers."""
    found = kept(ask)
    parts = [
        f"{', '.join(k for k, v in found.items() if v is wanted)} {word}"
        for wanted, word in ((True, "keep them"), (False, "flush them"))
        if any(v is wanted for v in found.values())
    ]
    return Fact("subnormal numbers", "; ".join(parts))


def deterministic(flush: int) -> Fact:
    """Who flushes them in deterministic mode."""
    text = {
        1: "the device flushes subnormal numbers as the CPU does",
        2: "kernels flush subnormal numbers",
    }.get(flush, "refused: the device gives other bits than the CPU")
    return Fact("deterministic mode", text, flush > 0)


def choice(ask: Prober) -> Fact:
    """Whether a choice of floats becomes a maximum."""
    found = ask(CHOICE, [NAN, *words([1.0])], [*words([1.0]), NAN])
    kept = found[0] == words([1.0])[0] and found[1] & 0x7FFFFFFF > 0x7F800000
    text = "as written" if kept else "becomes a maximum and loses NaN; kernels choose by bits"
    return Fact("a > b ? a : b", text)


def zero(ask: Prober) -> Fact:
    """Whether adding 0.0 is left out."""
    folded = ask(ADD_ZERO, [0x80000000])[0] != 0
    text = "taken for x; kernels never write it" if folded else "computed"
    return Fact("x + 0.0", text)


def quotient(ask: Prober) -> Fact:
    """How far the driver's quotients and roots are off."""
    rng = np.random.default_rng(2)
    a, b = rng.uniform(1, 2, (2, 4096)).astype(np.float32)
    off = [
        np.abs(ask(which, *map(words, given)).astype(np.int64) - words(wanted)).max()
        for which, given, wanted in ((DIVIDE, (a, b), a / b), (ROOT, (a,), np.sqrt(a)))
    ]
    if not any(off):
        return Fact(
            "division, square root", "rounded correctly on a sample; kernels bring their own"
        )
    return Fact(
        "division, square root", f"up to {off[0]} and {off[1]} ulp off; kernels bring their own"
    )


def remainder(ask: Prober) -> Fact:
    """What % makes of negative integers."""
    a, b = np.array([7, -7, 7, -7], np.int32), np.array([3, 3, -3, -3], np.int32)
    same = np.array_equal(
        ask(REMAINDER, a.view(np.uint32), b.view(np.uint32)).view(np.int32), np.fmod(a, b)
    )
    return Fact(
        "% of negative integers", "as in C" if same else "not as in C; kernels never write it"
    )


def integers(ask: Prober) -> Fact:
    """What becomes of floats beyond the integers."""
    found = ask(TO_INTEGER, words([3e9, -3e9, float("nan")]))
    return Fact(
        "integers of 3e9, -3e9, NaN", ", ".join(f"{v:08x}" for v in found) + "; kernels clamp first"
    )


def nan_test(ask: Prober) -> Fact:
    """Whether NaN differs from itself."""
    found = ask(NOT_ITSELF, [NAN, *words([1.0])])
    text = "true for NaN alone" if found.tolist() == [1, 0] else "wrong; kernels test bits"
    return Fact("x != x", text)


def shared(ask: Prober) -> Fact:
    """Whether values pass between the invocations of a work group."""
    rows = np.arange(640, dtype=np.uint32)
    right = np.array_equal(ask(SHARED, rows), rows.reshape(-1, 64)[:, ::-1].reshape(-1))
    return Fact(
        "shared memory", "passes values across a barrier" if right else "loses values", right
    )


LARGE = """
import tinyfin
from tinyfin.backends.base import REGISTRY
from tinyfin.backends.gpu.modules import shader
backend = REGISTRY[{name!r}]
backend.open()
device = backend.opened_device({index})
if not hasattr(device, "pipelines"):
    print("unknown", flush=True)
    raise SystemExit
make = device.pipelines.make
extra = backend.find()[0][{index}].limits()["shared_bytes"] // 4
try:
    make(shader("probe"), (0, 13, extra))
    print("made", flush=True)
except Exception as error:
    print("refused", flush=True)
"""
"""Asks for more shared memory than there is. Nothing runs: a device may be lost by that."""


def too_much_shared(device: str, run: Callable[..., Any] = subprocess.run) -> Fact:
    """In a process of its own, which a driver may take down."""
    name, _, index = device.partition(":")
    code = LARGE.format(name=name, index=int(index or 0))
    try:
        done = run(
            [sys.executable, "-c", code],
            cwd=tempfile.gettempdir(),  # not where a source folder may hide the package
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        said = done.stdout.strip()
    except subprocess.TimeoutExpired:
        said = ""
    text = {
        "made": "not noticed by the driver; sizes are checked below",
        "refused": "refused by the driver",
        "unknown": "not tried",
    }.get(said, "takes the driver down; sizes are checked below")
    return Fact("more shared memory than there is", text)
