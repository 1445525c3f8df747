"""NumPy archives: .npz files of named arrays, and single .npy arrays. Never pickles."""

from __future__ import annotations

import math
import os
import zlib

import tinyfin
from tinyfin.io.atomic import write_atomically
from tinyfin.io.raw import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import RawIOBase
    from typing import Any, BinaryIO

    from tinyfin import Tensor

    Path = str | os.PathLike[str]

_DATE = (1980, 1, 1, 0, 0, 0)
# What NumPy's reader of headers and zlib raise; the header is a Python literal, which may be nested.
_DAMAGE = (ValueError, TypeError, SyntaxError, EOFError, MemoryError, RecursionError, zlib.error)


def save_npz(
    tensors: Mapping[str, Tensor], file: Path | BinaryIO, compressed: bool = False
) -> None:
    """Writes named tensors as a NumPy archive; the same tensors give the same bytes.

    Raises:
        TypeError: a name is no string, a value no tensor, or NumPy has no such dtype (bfloat16).

    >>> import io, tinyfin
    >>> f = io.BytesIO()
    >>> save_npz({"a": tinyfin.arange(3)}, f)
    >>> load_npz(f)["a"].tolist()
    [0, 1, 2]
    """
    arrays = {_checked_name(name): _array(name, t) for name, t in tensors.items()}
    if isinstance(file, (str, os.PathLike)):
        write_atomically(file, lambda f: _write(arrays, f, compressed))
    else:
        _write(arrays, file, compressed)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"save_npz: names are non-empty strings, got {name!r}")
    return name


def _array(name: str, t: Any) -> Any:
    if not isinstance(t, tinyfin.Tensor):
        raise TypeError(f"save_npz: {name!r} is {type(t).__name__}, expected a Tensor")
    if t.dtype == tinyfin.bfloat16:
        raise TypeError(
            f"save_npz: {name!r} is bfloat16, which NumPy lacks; convert it, or save as "
            ".safetensors"
        )
    return t.detach().to("cpu").numpy()


def _write(arrays: dict[str, Any], f: Any, compressed: bool) -> None:
    import zipfile

    from numpy.lib import format as npy

    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(f, "w", method, compresslevel=9 if compressed else None) as z:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(name + ".npy", _DATE)
            info.compress_type = method
            with z.open(info, "w", force_zip64=array.nbytes > 1 << 30) as record:
                npy.write_array(record, array, allow_pickle=False)


def load_npz(file: Path | BinaryIO | RawIOBase, device: Any = None) -> dict[str, Tensor]:
    """The tensors of a NumPy archive by name.

    Args:
        device: where the tensors go; the default device if None.

    Raises:
        ValueError: the archive is damaged, or holds something that is no plain array; nothing is
            unpickled.

    >>> import io, tinyfin
    >>> f = io.BytesIO()
    >>> save_npz({"x": tinyfin.ones(1, 2)}, f)
    >>> load_npz(f)["x"].tolist()
    [[1.0, 1.0]]
    """
    import zipfile

    from tinyfin.io.archive import ArchiveError, opened

    try:
        with opened(file) as z:
            names = [i for i in z.infolist() if i.filename.endswith(".npy")]
            return {i.filename[:-4]: place(_read_record(z, i), device) for i in names}
    except (ArchiveError, zipfile.BadZipFile, EOFError, OSError, RuntimeError) as e:
        # RuntimeError: what the archive calls encrypted, or packed in a way that is not known
        raise ValueError(f"load_npz: the archive is damaged: {e}") from e


def _read_record(z: Any, info: Any) -> Tensor:
    with z.open(info) as f:
        return _read_array(f, info.file_size, info.filename)


def load_npy(file: BinaryIO | RawIOBase, size: int, device: Any = None) -> Tensor:
    """The tensor in a .npy file of `size` bytes."""
    return place(_read_array(file, size, "the file"), device)


def _read_array(f: Any, size: int, what: str) -> Tensor:
    """Reads the header, checks that its promise fits the size, and only then makes room for the
    array.
    """
    import numpy as np
    from numpy.lib import format as npy

    from tinyfin.core.memory import available

    try:
        version = npy.read_magic(f)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        try:
            shape, fortran, dtype = read(f)
        except Exception as e:  # Python's own parser reads it, whose errors differ by version
            raise ValueError(f"its header cannot be read: {e}") from e
        if dtype.hasobject or dtype.kind not in "biufc" or dtype.char in "gG":
            raise ValueError(f"dtype {dtype} is no dtype of tensors")
        if any(n < 0 for n in shape):
            raise ValueError(f"shape {shape} is no shape")
        needed = math.prod(shape) * dtype.itemsize
        if needed > size:
            raise ValueError(
                f"{dtype} of shape {shape} takes {needed} bytes, the record has {size}"
            )
        if needed > available():
            raise ValueError(f"it takes {needed} bytes, of which {available()} are free")
        data = f.read(needed)
    except _DAMAGE as e:
        raise ValueError(f"load_npz: {what}: {str(e) or type(e).__name__}") from e
    if len(data) < needed:
        raise ValueError(f"load_npz: {what} is cut off: {len(data)} of {needed} bytes")
    array = np.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if fortran else "C")
    return tinyfin.from_numpy(array if dtype.isnative else array.astype(dtype.newbyteorder("=")))
