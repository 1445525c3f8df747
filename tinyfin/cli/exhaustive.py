"""All 2**32 float32 numbers through a function, as checksums: equal ones prove equal bits.

Deterministic mode, where every device has to give the same. NaN counts as one value.
"""

from __future__ import annotations

import json
import pathlib
import zlib

import numpy as np

import tinyfin
from tinyfin.ops import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from numpy.typing import NDArray

CHUNK_BITS = 24
CHUNKS = 1 << (32 - CHUNK_BITS)
"""Checksums of a function; each is over the numbers whose bits begin alike."""
PIECE = 1 << 18
"""Numbers that the CPU takes at a time: they stay in its cache."""
STORED = pathlib.Path(__file__).parent / "checksums.json"


def functions() -> list[str]:
    """The functions of one float32 number.

    >>> "exp" in functions() and "add" not in functions()
    True
    """
    return [
        row.name
        for row in table.TABLE.values()
        if row.expr is not None and len(row.arg_names) == 1 and "f" in row.dtypes
    ]


def stored(path: str | pathlib.Path = STORED) -> dict[str, list[int]]:
    """Function -> the checksum of each chunk."""
    path = pathlib.Path(path)
    if not path.exists():
        return {}
    texts = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: [int(text[8 * i : 8 * i + 8], 16) for i in range(len(text) // 8)]
        for name, text in texts.items()
    }


def store(name: str, sums: Sequence[int], path: str | pathlib.Path = STORED) -> None:
    """Writes the checksums of all chunks of a function."""
    path = pathlib.Path(path)
    texts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    texts[name] = "".join(f"{s:08x}" for s in sums)
    lines = ",\n".join(f'"{k}": "{texts[k]}"' for k in sorted(texts))
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def combined(sums: Sequence[int]) -> str:
    """One checksum over those of the chunks."""
    return f"{zlib.crc32(b''.join(s.to_bytes(4, 'little') for s in sums)):08x}"


def results(name: str, first: int, count: int, device: str) -> NDArray[Any]:
    """What a function gives for the numbers with the bits from `first` on, one NaN for all."""
    from tinyfin.io.raw import tensor_bytes

    bits = np.arange(first, first + count, dtype=np.uint32)
    x = tinyfin.from_numpy(bits.view(np.float32)).to(device)
    y = table.OPS[name](x)
    if y.dtype is not tinyfin.float32:
        return np.frombuffer(tensor_bytes(y), np.uint8)
    out = np.frombuffer(tensor_bytes(y), np.uint32).copy()
    out[(out & 0x7FFFFFFF) > 0x7F800000] = 0x7FC00000
    return out


def checksum(name: str, chunk: int, device: str) -> int:
    """CRC32 of one chunk's results."""
    count = PIECE if device == "cpu" else 1 << CHUNK_BITS
    found = 0
    with tinyfin.deterministic():
        for first in range(chunk << CHUNK_BITS, (chunk + 1) << CHUNK_BITS, count):
            found = zlib.crc32(results(name, first, count, device).tobytes(), found)
    return found


def checksums(name: str, chunks: Sequence[int], device: str) -> Iterator[tuple[int, int]]:
    """(chunk, its checksum), one after another."""
    for chunk in chunks:
        yield chunk, checksum(name, chunk, device)


def first_difference(name: str, chunk: int, device: str) -> str | None:
    """The first number of a chunk whose result is not this CPU's."""
    with tinyfin.deterministic():
        for first in range(chunk << CHUNK_BITS, (chunk + 1) << CHUNK_BITS, PIECE):
            want, got = (results(name, first, PIECE, d) for d in ("cpu", device))
            if not np.array_equal(want, got):
                k = int(np.flatnonzero(want != got)[0])
                return f"{name}({first + k:#010x}) is {got[k]:#010x}, the CPU has {want[k]:#010x}"
    return None


def part(text: str) -> range:
    """The chunks of part i of n.

    >>> part("2/64")
    range(4, 8)
    """
    i, _, n = text.partition("/")
    if not (i.isdecimal() and n.isdecimal() and 1 <= int(i) <= int(n) <= CHUNKS):
        raise ValueError(f"{text!r} is no part such as 1/16; at most {CHUNKS} parts")
    return range((int(i) - 1) * CHUNKS // int(n), int(i) * CHUNKS // int(n))
