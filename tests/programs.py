"""The example programs and benches as modules, and what their tests share."""

import argparse
import importlib
import importlib.util
import pathlib
import subprocess
import sys

import pytest
from lazy import INSTALLED

ROOT = pathlib.Path(__file__).resolve().parent.parent


def program(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bench(name):
    """A bench as a module; benches import one another by their bare names."""
    folder = str(ROOT / "tools" / "bench")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def options(**given):
    """What the command line would give, seed 0."""
    return argparse.Namespace(seed=0, **given)


def run(name, *args, folder="examples"):
    """The example, or another program, run as its documentation says."""
    command = [sys.executable, str(ROOT / folder / f"{name}.py"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def compare(module, capsys, count=20, **given):
    """Asserts that the first losses are PyTorch's within 1e-4, which `--compare-torch` prints."""
    if not INSTALLED:
        pytest.skip("compares with PyTorch, which is not installed")
    code = module.compare(options(**given), count)
    lines = capsys.readouterr().out.splitlines()
    assert code == 0, lines[-1]
    rows = [line.split() for line in lines[1:-1]]
    assert [int(row[0]) for row in rows] == list(range(count))
    for _, ours, theirs, _ in rows:
        assert abs(float(ours) - float(theirs)) <= 1e-4 * abs(float(theirs))
