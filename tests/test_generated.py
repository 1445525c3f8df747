"""Stubs and docs/ops.md are what the rows say."""

import pathlib
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parent.parent / "tools"


@pytest.mark.parametrize("tool", ["gen_stubs.py", "gen_docs.py"])
def test_generated_files_are_current(tool):
    run = subprocess.run(
        [sys.executable, str(TOOLS / tool), "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_no_file_is_too_long():
    run = subprocess.run([sys.executable, str(TOOLS / "lines.py")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_build_of_other_rows_is_refused():
    """Loops are numbered in the order of the rows: a stale build would run other operations."""
    script = (
        "import tinyfin.ops.row as row\n"
        "binary = row.binary\n"
        "def other(name, expr, *args, **fields):\n"
        "    return binary(name, expr if name != 'add' else 'a + b + 0', *args, **fields)\n"
    )
    stale = (
        "import sys, types, importlib.util, pathlib\n"
        "spec = importlib.util.find_spec('tinyfin')\n"
        "package = types.ModuleType('tinyfin')\n"
        "package.__path__ = spec.submodule_search_locations\n"
        "sys.modules['tinyfin'] = package\n" + script + "row.binary = other\n"
        "spec.loader.exec_module(package)\n"
    )
    run = subprocess.run([sys.executable, "-c", stale], capture_output=True, text=True)
    assert run.returncode and "generated from other rows" in run.stderr, run.stderr
    whole = stale.replace("row.binary = other\n", "")
    run = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_unknown_functions_in_expressions_are_refused():
    """A misspelt call would build, and be missing when the package is loaded."""
    code = (
        "import gen_loops, rows\n"
        "row = rows.table()['square']\n"
        "row.expr = 'square(x)'\n"
        "gen_loops.expression(row, 'f32')"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=TOOLS, capture_output=True, text=True)
    assert run.returncode == 1
    assert "row square: its expression calls square, which f32 does not have; known" in run.stderr
