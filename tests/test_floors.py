"""Imports go downwards only: every import and cimport in the package is read."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tinyfin"
FLOORS = {
    "core": 0,
    "config": 0,
    "ops": 1,
    "backends": 2,
    "autograd": 3,
    "face": 4,
    "jit": 5,
    "nn": 6,
    "optim": 7,
    "data": 7,
    "amp": 7,
    "io": 7,
    "onnx": 7,
    "distributed": 7,
    "cli": 8,
    "train": 8,
    "utils": 8,
    "__main__": 8,
    "__init__": 4,
}
APART = {"optim", "data", "amp", "io", "onnx", "distributed"}
IMPORT = re.compile(
    r"^\s*(?:from\s+(tinyfin[\w.]*)\s+c?import|c?import\s+(tinyfin[\w.]*))", re.MULTILINE
)
FROM_PACKAGE = re.compile(r"^\s*from\s+tinyfin\s+c?import\s+(\([^)]*\)|[^\n(]*)", re.MULTILINE)
WHOLE = re.compile(r"^\s*import\s+tinyfin\s*(?:as\s+\w+)?$", re.MULTILINE)
OPS_TABLE = {"table"}


def part_of(module):
    """tinyfin.core.x -> core; face modules -> face."""
    names = module.split(".")
    if len(names) == 1:
        return "face"
    return names[1] if names[1] in FLOORS else "face"


def sources():
    """(path, part, imported modules) of every source file."""
    for path in sorted(ROOT.rglob("*")):
        if path.suffix not in (".py", ".pyx", ".pxd", ".pxi"):
            continue
        relative = path.relative_to(ROOT)
        part = relative.parts[0] if len(relative.parts) > 1 else relative.stem
        part = part if part in FLOORS else "face"
        text = path.read_text()
        modules = [a or b for a, b in IMPORT.findall(text) if (a or b) != "tinyfin"]
        for names in FROM_PACKAGE.findall(text):
            modules += [
                "tinyfin." + name.split()[0]
                for name in names.strip("()").split(",")
                if name.split()
            ]
        modules += ["tinyfin"] * len(WHOLE.findall(text))
        yield relative, part, modules


def test_no_import_goes_up():
    """A file imports from its own floor or from below."""
    wrong = [
        f"{path}: imports {m}"
        for path, part, modules in sources()
        for m in modules
        if part != "__init__" and FLOORS[part_of(m)] > FLOORS[part]
    ]
    assert not wrong, "\n".join(wrong)


def test_training_helpers_stay_apart():
    """Folders of the floor around the training loop do not import one another."""
    wrong = [
        f"{path}: imports {m}"
        for path, part, modules in sources()
        for m in modules
        if part in APART and part_of(m) in APART - {part}
    ]
    assert not wrong, "\n".join(wrong)


def test_rows_know_only_rows():
    """Rows are read at build time, before anything is compiled."""
    wrong = [
        f"{path}: imports {m}"
        for path, part, modules in sources()
        for m in modules
        if part == "ops" and path.stem not in OPS_TABLE and not m.startswith("tinyfin.ops")
    ]
    assert not wrong, "\n".join(wrong)


def test_something_is_read():
    """The test itself sees the tree."""
    found = list(sources())
    assert len(found) > 80 and sum(len(m) for *_, m in found) > 300
