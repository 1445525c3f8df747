"""Prints files below a folder for meson: those to install, or those of the suffixes given."""

import pathlib
import sys

SUFFIXES = {".py", ".pyi", ".pxd", ".typed", ".npz", ".txt", ".h", ".json"}

root = pathlib.Path(sys.argv[1])
wanted = set(sys.argv[2:]) or SUFFIXES
for path in sorted(root.rglob("*")):
    if path.suffix in wanted and path.name != "meson.build" and "__pycache__" not in path.parts:
        print(path.relative_to(root).as_posix())
