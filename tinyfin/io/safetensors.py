"""The safetensors format: 8 bytes of header length, a JSON header, then the tensors' bytes without
gaps.

Own reader and writer; the reader trusts nothing in the header and maps the data instead of copying
it.
"""

from __future__ import annotations

import math

import tinyfin
from tinyfin.io.atomic import write_atomically
from tinyfin.io.raw import (
    dtype_name,
    dtype_named,
    map_file,
    place,
    read_file,
    tensor_bytes,
    tensor_from,
)
from tinyfin.io.shown import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from typing import Any, BinaryIO

    from tinyfin import Tensor

    Path = str | os.PathLike[str]

MAX_HEADER = 100_000_000
MAX_DIMS = 64
"""More sizes than any tensor has; their product, taken before anything else is known, stays small."""
_METADATA = "__metadata__"
# name in the file: our name, bytes per element
_DTYPES = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U64": ("uint64", 8),
    "U32": ("uint32", 4),
    "U16": ("uint16", 2),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
    "C64": ("complex64", 8),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
}
_NAMES = {ours: name for name, (ours, _) in _DTYPES.items()}


class SafetensorError(ValueError):
    """The file, or what should become one, breaks a rule of the safetensors format."""


class Entry:
    """What the header says of one tensor: dtype name, shape, and where its bytes begin and end in
    the data.
    """

    __slots__ = ("begin", "dtype", "end", "shape")

    def __init__(self, dtype: str, shape: list[int], begin: int, end: int) -> None:
        self.dtype = dtype
        self.shape = shape
        self.begin = begin
        self.end = end


class Header:
    """A checked header: entries by name, metadata, and where the data begins in the file."""

    def __init__(
        self, entries: dict[str, Entry], metadata: dict[str, str] | None, start: int
    ) -> None:
        self.entries = entries
        self.metadata = metadata
        self.start = start


def read_header(buffer: Any) -> Header:
    """Reads and checks the header of a whole safetensors file in memory.

    Raises:
        SafetensorError: with the first rule that is broken: sizes, JSON, duplicates, dtypes,
            overlaps, holes.

    >>> list(read_header(save({})).entries)
    []
    """
    total = len(buffer)
    if total < 8:
        raise SafetensorError(f"the file has {total} bytes; the header length alone takes 8")
    n = int.from_bytes(buffer[:8], "little")
    if n > MAX_HEADER:
        raise SafetensorError(
            f"the header claims {n} bytes; the format allows at most {MAX_HEADER}"
        )
    if 8 + n > total:
        raise SafetensorError(
            f"the header claims {n} bytes, {total - 8} follow: the file is cut off"
        )
    raw = _parse(bytes(buffer[8 : 8 + n]))
    metadata = _check_metadata(raw.pop(_METADATA, None))
    entries = {name: _check_entry(name, info) for name, info in raw.items()}
    _check_cover(entries, total - 8 - n)
    return Header(entries, metadata, 8 + n)


def _parse(text: bytes) -> dict[str, Any]:
    import json

    if text[:1] != b"{":
        raise SafetensorError("the header does not begin with '{'")
    try:
        raw = json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except SafetensorError:
        raise
    except UnicodeDecodeError as e:
        raise SafetensorError(f"the header is not UTF-8: {e}") from e
    except (ValueError, RecursionError) as e:
        raise SafetensorError(f"the header is not JSON: {e}") from e
    return raw


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(k for k, _ in pairs if k in seen or seen.add(k))
        raise SafetensorError(f"the header holds the name {twice!r} twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise SafetensorError(f"the header holds {name}, which is no JSON")


def _check_metadata(raw: Any) -> dict[str, str] | None:
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise SafetensorError(f"{_METADATA} is {type(raw).__name__}, expected an object of strings")
    for key, value in raw.items():
        if not isinstance(value, str):
            raise SafetensorError(
                f"{_METADATA}[{key!r}] is {type(value).__name__}, expected a string"
            )
    return raw


def _is_size(x: Any) -> bool:
    return type(x) is int and 0 <= x < 1 << 63


def _check_entry(name: str, info: Any) -> Entry:
    if not isinstance(info, dict) or not {"dtype", "shape", "data_offsets"} <= info.keys():
        raise SafetensorError(
            f"tensor {name!r}: expected an object with dtype, shape and data_offsets"
        )
    dt, shape, offsets = info["dtype"], info["shape"], info["data_offsets"]
    if not isinstance(dt, str) or dt not in _DTYPES:
        raise SafetensorError(
            f"tensor {name!r}: dtype {shown(dt)} is unknown; known are {', '.join(_DTYPES)}"
        )
    if not isinstance(shape, list) or len(shape) > MAX_DIMS or not all(map(_is_size, shape)):
        raise SafetensorError(f"tensor {name!r}: shape {shown(shape)} is no list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_size, offsets)):
        raise SafetensorError(
            f"tensor {name!r}: data_offsets {shown(offsets)} are not [begin, end]"
        )
    begin, end = offsets
    size = math.prod(shape) * _DTYPES[dt][1]
    if end - begin != size:
        raise SafetensorError(
            f"tensor {name!r}: {dt} of shape {shape} takes {size} bytes, data_offsets [{begin}, "
            f"{end}] hold {end - begin}"
        )
    return Entry(dt, shape, begin, end)


def _check_cover(entries: dict[str, Entry], size: int) -> None:
    """The tensors must cover the data from its first byte to its last, each byte once."""
    at = 0
    for name, e in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if e.begin < at:
            raise SafetensorError(
                f"tensor {name!r} begins at byte {e.begin}, inside the one before, which ends at "
                f"{at}"
            )
        if e.begin > at:
            raise SafetensorError(
                f"tensor {name!r} begins at byte {e.begin}; bytes {at} to {e.begin} belong to no "
                "tensor"
            )
        at = e.end
    if at > size:
        raise SafetensorError(
            f"the tensors need {at} bytes of data, {size} follow the header: the file is cut off"
        )
    if at < size:
        raise SafetensorError(f"{size - at} bytes after the last tensor belong to no tensor")


def read_tensor(buffer: Any, header: Header, name: str) -> Tensor:
    """The tensor of that name over the buffer's own bytes, on the CPU.

    >>> import tinyfin
    >>> data = bytearray(save({"a": tinyfin.arange(3)}))
    >>> read_tensor(data, read_header(data), "a").tolist()
    [0, 1, 2]
    """
    e = header.entries[name]
    ours = _DTYPES[e.dtype][0]
    dt = dtype_named(ours)
    try:
        if dt is None:
            raise NotImplementedError
        return tensor_from(buffer, dt, e.shape, header.start + e.begin)
    except NotImplementedError:
        raise SafetensorError(
            f"tensor {name!r} is {e.dtype}, and this version of tinyfin has no tensors of {ours}"
        ) from None


class Writer:
    """Tensors laid out for writing: `header` is the beginning of the file, `chunks()` gives the
    rest.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
    ) -> None:
        import json

        entries: dict[str, Any] = {}
        if metadata is not None:
            entries[_METADATA] = _metadata_of(metadata)
        # Widest first, so that each tensor begins at a multiple of its element size.
        for name, t in tensors.items():
            _check_tensor(name, t)
        self.order = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
        at = 0
        for name, t in self.order:
            size = t.numel() * t.dtype.itemsize
            kind = _NAMES[dtype_name(t.dtype)]
            entries[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        if len(text) > MAX_HEADER:
            raise SafetensorError(
                f"the header takes {len(text)} bytes; the format allows at most {MAX_HEADER}"
            )
        self.header = len(text).to_bytes(8, "little") + text

    def chunks(self) -> Iterator[memoryview]:
        """The bytes of the tensors, in the order of the file."""
        for _, t in self.order:
            yield tensor_bytes(t)

    def write(self, f: BinaryIO) -> None:
        """Writes the whole file."""
        f.write(self.header)
        for chunk in self.chunks():
            f.write(chunk)


def _metadata_of(metadata: Mapping[str, str]) -> dict[str, str]:
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(
                f"safetensors: metadata must map strings to strings, got {key!r}: {value!r}"
            )
    return dict(metadata)


def _check_tensor(name: Any, t: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"safetensors: tensor names are strings, got {name!r}")
    if name == _METADATA:
        raise SafetensorError(f"the name {_METADATA} is taken by the format")
    if not isinstance(t, tinyfin.Tensor):
        raise TypeError(f"safetensors: {name!r} is {type(t).__name__}, expected a Tensor")
    if dtype_name(t.dtype) not in _NAMES:
        raise SafetensorError(f"tensor {name!r}: the format has no name for dtype {t.dtype}")


def save_file(
    tensors: Mapping[str, Tensor], filename: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Writes named tensors to a safetensors file, atomically.

    Tensors that share memory are written in full each.

    Raises:
        TypeError: a value is no tensor, or a name or metadata no string.
        SafetensorError: the format has no name for a dtype.

    >>> import tempfile, tinyfin
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"w": tinyfin.ones(2, 2)}, folder + "/a.safetensors")
    ...     load_file(folder + "/a.safetensors")["w"].tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    write_atomically(filename, Writer(tensors, metadata).write)


def load_file(filename: Path, device: Any = None, *, mmap: bool = False) -> dict[str, Tensor]:
    """Reads the tensors of a safetensors file.

    Args:
        device: where the tensors go; the default device if None.
        mmap: map the file in place of reading it: elements come when they are used, and what is
            written into a tensor stays in this process. The file must not change or be cut while
            its tensors live.

    Raises:
        SafetensorError: the file breaks a rule of the format.

    >>> import tempfile, tinyfin
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"b": tinyfin.tensor([1, 2])}, folder + "/a.safetensors")
    ...     load_file(folder + "/a.safetensors")["b"].tolist()
    [1, 2]
    """
    buffer = (map_file if mmap else read_file)(filename)
    return _load_all(buffer, _header_of(buffer, filename), device)


def _header_of(buffer: Any, filename: Path) -> Header:
    try:
        return read_header(buffer)
    except SafetensorError as e:
        raise SafetensorError(f"{filename}: {e}") from e


def _load_all(buffer: Any, header: Header, device: Any) -> dict[str, Tensor]:
    return {name: place(read_tensor(buffer, header, name), device) for name in header.entries}


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with these tensors.

    >>> len(save({}))
    16
    """
    writer = Writer(tensors, metadata)
    return b"".join([writer.header, *writer.chunks()])


def load(data: bytes, device: Any = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file given as bytes; they own a copy.

    >>> import tinyfin
    >>> load(save({"a": tinyfin.tensor([True, False])}))["a"].tolist()
    [True, False]
    """
    return load_buffer(bytearray(data), device)


def load_buffer(buffer: Any, device: Any = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file in a writable buffer, over the buffer's own bytes.

    >>> load_buffer(bytearray(save({})))
    {}
    """
    return _load_all(buffer, read_header(buffer), device)


class safe_open:
    """A safetensors file from which single tensors are taken by name; usable in a `with` statement.

    The file is mapped while it is open and must not be cut short; the tensors own copies.

    >>> import tempfile, tinyfin
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = folder + "/x.safetensors"
    ...     save_file({"a": tinyfin.zeros(3), "b": tinyfin.ones(1)}, path, {"made": "here"})
    ...     with safe_open(path) as f:
    ...         sorted(f.keys()), f.metadata(), f.get_tensor("b").tolist()
    (['a', 'b'], {'made': 'here'}, [1.0])
    """

    def __init__(self, filename: Path, framework: str = "tinyfin", device: Any = None) -> None:
        self._buffer = map_file(filename)
        self._header = _header_of(self._buffer, filename)
        self._device = device

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exc: object) -> None:
        self._buffer = None

    def keys(self) -> list[str]:
        """The names of the tensors, in the order of the header."""
        return list(self._header.entries)

    def metadata(self) -> dict[str, str] | None:
        """The strings that were saved beside the tensors, or None."""
        return self._header.metadata

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of that name.

        Raises:
            KeyError: the file has none.
            ValueError: the file was closed.
        """
        if self._buffer is None:
            raise ValueError("safe_open: the file is closed")
        if name not in self._header.entries:
            raise KeyError(
                f"no tensor {name!r} in the file; it has {', '.join(self.keys()) or 'none'}"
            )
        return place(read_tensor(self._buffer, self._header, name).clone(), self._device)
