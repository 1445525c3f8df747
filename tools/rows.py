"""Imports the rows without building the package: shared by the generators."""

import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPS = ROOT / "tinyfin" / "ops"


def _load(name):
    spec = importlib.util.spec_from_file_location(f"tinyfin.ops.{name}", OPS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


HOMES = {}


def home_of(row):
    """The module that a row stands in."""
    return HOMES[row.name]


def table():
    """name -> Row, from the modules that `ops/modules.py` lists, read as plain files."""
    import types

    for package in ("tinyfin", "tinyfin.ops"):
        sys.modules.setdefault(package, types.ModuleType(package))
    row = _load("row")
    for name in _load("modules").MODULES:
        before = set(row.TABLE)
        _load(name)
        HOMES.update(dict.fromkeys(set(row.TABLE) - before, name))
    return row.TABLE
