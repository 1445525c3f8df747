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
