"""Whether a file can be written, before it is."""

import doctest
import os

from tinyfin.cli import files


def test_examples():
    assert doctest.testmod(files).failed == 0


def test_files_and_folders(tmp_path):
    there = tmp_path / "there"
    there.write_text("text")
    assert files.unwritable(str(there)) is None and there.read_text() == "text"
    assert files.unwritable(str(tmp_path / "new")) is None and os.listdir(tmp_path) == ["there"]
    assert files.unwritable(str(tmp_path)) == "Is a directory"
    assert files.unwritable(str(there / "x")) is not None
