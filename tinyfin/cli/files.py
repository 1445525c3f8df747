"""Files that commands write: whether they can be written is found out before minutes of work."""

from __future__ import annotations

import errno
import os


def unwritable(path: str) -> str | None:
    """Why a file cannot be written, or None; what is there stays as it is.

    >>> unwritable("no such folder/x.json")
    'No such file or directory'
    """
    import tempfile

    try:
        if os.path.isdir(path):
            return os.strerror(errno.EISDIR)
        if os.path.isfile(path):
            with open(path, "ab"):
                return None
        if not os.path.exists(path):  # else a pipe, whose reader would take closing for the end
            with tempfile.TemporaryFile(dir=os.path.dirname(path) or "."):
                return None
    except OSError as error:
        return error.strerror or str(error)
    return None
