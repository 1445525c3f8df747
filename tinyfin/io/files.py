"""`save` and `load`: one pair of functions for all formats. Knows which format is which, nothing
of how they are built.
"""

from __future__ import annotations

import os

import tinyfin
from tinyfin.io.atomic import write_atomically
from tinyfin.io.raw import BufferFile, map_file, read_file

# The instructions that a pickle without a protocol mark can begin with.
_TEXT_PICKLES = (
    b"(",
    b"c",
    b"]",
    b"}",
    b")",
    b"I",
    b"L",
    b"F",
    b"S",
    b"V",
    b"N",
    b"K",
    b"J",
    b"X",
    b"U",
    b"G",
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    Path = str | os.PathLike[str]


def save(obj: Any, f: Path | BinaryIO) -> None:
    """Writes tensors to a file, atomically; the suffix chooses the format.

    `.safetensors` and `.npz` take a dict of tensors. Any other name, and a file object, takes
    nested dicts, lists and tuples of tensors, numbers, strings, bytes and None, and gives a file
    that PyTorch reads with `torch.load(..., weights_only=True)`; tensors that share memory share
    it again when loaded.

    Raises:
        TypeError: the object holds what the format cannot.
        OSError: the file cannot be written; an old one is then untouched.

    >>> import tempfile, tinyfin
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"step": 3, "w": tinyfin.ones(2)}, folder + "/a.pt")
    ...     load(folder + "/a.pt")["step"]
    3
    """
    from tinyfin.io.torch_write import write_zip

    if not isinstance(f, (str, os.PathLike)):
        _check_file("save", f, "write")
        write_zip(obj, f)
        return
    suffix = os.path.splitext(os.fspath(f))[1].lower()
    if suffix in (".safetensors", ".npz"):
        _check_flat(obj, suffix)
    if suffix == ".safetensors":
        from tinyfin.io.safetensors import save_file

        save_file(obj, f)
    elif suffix == ".npz":
        from tinyfin.io.npz import save_npz

        save_npz(obj, f)
    else:
        write_atomically(f, lambda out: write_zip(obj, out))


def _check_file(what: str, f: Any, method: str) -> None:
    if not hasattr(f, method):
        raise TypeError(f"{what}: f is {f!r}, expected a path or a binary file with {method}()")


def _check_flat(obj: Any, suffix: str) -> None:
    if not isinstance(obj, dict) or not all(isinstance(t, tinyfin.Tensor) for t in obj.values()):
        raise TypeError(
            f"save: a {suffix} file holds a dict of tensors and nothing else; use .pt for nested "
            "containers"
        )


def load(
    f: Path | BinaryIO,
    map_location: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
) -> Any:
    """Reads a file of tensors, whatever its name: PyTorch's (zip or older), safetensors, .npz or
    .npy.

    Nothing in the file is executed.

    Args:
        map_location: where the tensors go; the default device if None.
        weights_only: accepted; always true here.
        mmap: True maps the file in place of reading it: elements come when they are used, and
            what is written into a tensor stays in this process. The file must not change or be
            cut while its tensors live.

    Raises:
        pickle.UnpicklingError: a PyTorch file is damaged, or asks for more than plain data.
        ValueError: another file is damaged, or of no known format.

    >>> import io, tinyfin
    >>> f = io.BytesIO()
    >>> save([tinyfin.zeros(2), "text"], f)
    >>> _ = f.seek(0)
    >>> load(f)[1]
    'text'
    """
    from pickle import UnpicklingError

    if not weights_only:
        raise ValueError(
            "load: weights_only=False would run code out of the file, which tinyfin never does"
        )
    if isinstance(f, (str, os.PathLike)):
        buffer, name = (map_file if mmap else read_file)(f), os.fspath(f)
    else:
        _check_file("load", f, "read")
        buffer, name = bytearray(f.read()), "the file"
    try:
        return _load_buffer(buffer, map_location)
    except UnpicklingError as e:
        raise UnpicklingError(f"load: {name}: {e}") from e.__cause__
    except ValueError as e:
        raise ValueError(f"load: {name}: {e}") from e


def _load_buffer(buffer: Any, device: Any) -> Any:
    start = bytes(buffer[:9])
    if start[:4] == b"PK\x03\x04":
        return _load_archive(buffer, device)
    if start[:6] == b"\x93NUMPY":
        from tinyfin.io.npz import load_npy

        return load_npy(BufferFile(buffer), len(buffer), device)
    if start[:1] == b"\x80" and start[8:] != b"{":
        from tinyfin.io.torch_file import read_legacy

        return read_legacy(buffer, device)
    if start[8:] == b"{":
        from tinyfin.io.safetensors import load_buffer

        return load_buffer(buffer, device)
    if start[:1] in _TEXT_PICKLES and bytes(buffer[-1:]) == b".":
        from pickle import UnpicklingError

        raise UnpicklingError(
            "it is a pickle of protocol 0 or 1, which no file of tensors is; nothing of it was "
            "executed"
        )
    raise ValueError(_unknown(buffer))


def _unknown(buffer: Any) -> str:
    if not len(buffer):
        return "it is empty"
    if bytes(buffer[257:262]) == b"ustar":
        return (
            "it is a tar archive, the format of PyTorch before 0.2; save it again with a later "
            "PyTorch"
        )
    return (
        "no known format: neither PyTorch, safetensors, .npz nor .npy; it may be damaged or cut off"
    )


def _load_archive(buffer: Any, device: Any) -> Any:
    from tinyfin.io.archive import directory
    from tinyfin.io.torch_file import read_zip

    names = directory(buffer)
    if names and all(n.endswith(".npy") for n in names):
        from tinyfin.io.npz import load_npz

        return load_npz(BufferFile(buffer), device)
    return read_zip(buffer, device)
