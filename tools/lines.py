"""Lines per floor, and files over their limit: lines.py."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = {"tinyfin/core/tensor.pyx": 900}
SUFFIXES = {".py", ".pyx", ".pxd", ".pxi", ".c", ".h", ".inc", ".comp", ".glsl"}
FLOORS = ("core", "ops", "backends/cpu", "backends", "autograd", "nn", "optim", "data", "io", "cli")


def floor_of(path):
    """The part of the house that a file belongs to."""
    name = path.relative_to(ROOT / "tinyfin").as_posix()
    return next((f for f in FLOORS if name.startswith(f + "/")), "face")


def main():
    """Prints the table; fails where a file is too long."""
    sizes, long = {}, []
    for folder in ("tinyfin", "shaders", "tools"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            n = len(path.read_text().splitlines())
            part = floor_of(path) if folder == "tinyfin" else folder
            sizes[part] = sizes.get(part, 0) + n
            name = path.relative_to(ROOT).as_posix()
            if n > LIMIT.get(name, 600):
                long.append(f"{name}: {n} lines, at most {LIMIT.get(name, 600)}")
    for part, n in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"{part:14} {n:6}")
    if long:
        sys.exit("\n".join(long))


if __name__ == "__main__":
    main()
