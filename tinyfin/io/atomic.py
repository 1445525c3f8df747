"""Writing files so that a reader finds the old content or the new, never a part. Knows nothing of
formats.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

_STALE_SECONDS = 3600


def write_atomically(path: str | os.PathLike[str], write: Callable[[BinaryIO], None]) -> None:
    """Calls `write` with a new file in the folder of `path`, makes it last on disk, and only then
    gives it that name.

    A process killed at any moment leaves the file that was there before, or the new one. What it
    may leave beside it is a hidden `.NAME.*.tmp`, which a later call removes when an hour old.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full; the old file is then
            untouched.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.bin")
    ...     write_atomically(path, lambda f: f.write(b"whole"))
    ...     os.path.getsize(path), os.listdir(folder)
    (5, ['a.bin'])
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    _remove_stale(folder, name)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        try:
            fd = os.open(temporary, flags, 0o666)
        except OSError as e:  # in the user's words, not those of the hidden file
            raise type(e)(e.errno, e.strerror, path) from None
        with os.fdopen(fd, "wb") as f:
            write(f)
            f.flush()
            _to_disk(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise
    _folder_to_disk(folder)


def _to_disk(fd: int) -> None:
    try:
        # On macOS fsync leaves the data in the drive's cache; this does not.
        from fcntl import F_FULLFSYNC, fcntl  # pyright: ignore[reportAttributeAccessIssue]

        fcntl(fd, F_FULLFSYNC)
    except (ImportError, OSError):
        os.fsync(fd)


def _folder_to_disk(folder: str) -> None:
    """Makes the new name itself last; Windows offers no way, and needs none."""
    if os.name != "posix":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError:
        pass  # some network file systems refuse this for folders
    finally:
        os.close(fd)


def _remove_stale(folder: str, name: str) -> None:
    """Removes what killed writers of this file left; a live writer touches its own far more often
    than hourly.
    """
    oldest = time.time() - _STALE_SECONDS
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    for entry in entries:
        if entry.startswith(f".{name}.") and entry.endswith(".tmp"):
            path = os.path.join(folder, entry)
            try:
                if os.stat(path).st_mtime < oldest:
                    os.unlink(path)
            except OSError:
                pass
