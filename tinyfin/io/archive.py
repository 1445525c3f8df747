"""Zip archives: a table of contents that does not promise more than the file can hold. Knows
nothing of what the records mean.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HEAD = 30
"""Bytes before a record's name."""
_RATIO = 1032
"""Deflate writes at most so many bytes for one."""


class ArchiveError(ValueError):
    """A file is no zip archive, or its table of contents cannot be true."""


def opened(file: Any) -> Any:
    """The archive in a file, as a `zipfile.ZipFile` whose table of contents was checked.

    Records must lie one after another and must be able to hold what they promise, so that a small
    file cannot ask for a lot of memory.

    Raises:
        ArchiveError: with what is wrong.

    >>> import io
    >>> opened(io.BytesIO(b"PK and nothing more"))
    Traceback (most recent call last):
    tinyfin.io.archive.ArchiveError: File is not a zip file
    """
    import struct
    import zipfile

    try:
        z = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, struct.error) as e:
        raise ArchiveError(str(e)) from e
    try:
        _check(z.infolist())
    except ArchiveError:
        z.close()
        raise
    return z


def _check(infos: list[Any]) -> None:
    from zipfile import ZIP_DEFLATED, ZIP_STORED

    at, before = 0, ""
    for info in sorted(infos, key=lambda i: i.header_offset):
        name = info.filename
        if info.header_offset < at:
            raise ArchiveError(f"record {name!r} begins inside of record {before!r}")
        at, before = info.header_offset + _HEAD + info.compress_size, name
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise ArchiveError(
                f"record {name!r} is compressed by method {info.compress_type}; only stored and "
                "deflated ones are read"
            )
        ratio = 1 if info.compress_type == ZIP_STORED else _RATIO
        if info.file_size > info.compress_size * ratio:
            raise ArchiveError(
                f"record {name!r} promises {info.file_size} bytes, the {info.compress_size} in "
                "the file cannot hold as many"
            )


def directory(buffer: Any) -> dict[str, Any]:
    """The records of the zip archive in a buffer, by name.

    Raises:
        UnpicklingError: its table of contents is damaged or cut off.
    """
    from pickle import UnpicklingError

    from tinyfin.io.raw import BufferFile

    try:
        with opened(BufferFile(buffer)) as z:
            return {info.filename: info for info in z.infolist()}
    except (ArchiveError, OSError) as e:
        raise UnpicklingError(
            f"the file begins as a zip archive but is none: {e}; it is damaged or incomplete"
        ) from e
