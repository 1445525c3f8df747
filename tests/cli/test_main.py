"""The command line as a user meets it: `python -m tinyfin ...` in a process of its own."""

import doctest
import subprocess
import sys

import pytest
from backends import isolated

import tinyfin
from tinyfin.cli import main


def run(*args, cwd=None, **options):
    command = [sys.executable, "-m", "tinyfin", *args]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", cwd=cwd, timeout=300, **options
    )


def test_examples():
    assert doctest.testmod(main).failed == 0


def test_version_and_help(tmp_path):
    shown = run("--version", cwd=tmp_path)
    assert shown.returncode == 0 and shown.stdout == f"tinyfin {tinyfin.__version__}\n"
    shown = run("--help", cwd=tmp_path)
    assert shown.returncode == 0 and "demo" in shown.stdout and "info" in shown.stdout


@pytest.mark.parametrize(
    "args", [(), ("unknown",), ("shaders",), ("info", "--nonsense"), ("demo", "3")]
)
def test_wrong_arguments(args, tmp_path):
    shown = run(*args, cwd=tmp_path)
    assert shown.returncode == 2 and shown.stdout == "" and "usage: tinyfin" in shown.stderr
    if args == ("unknown",):
        assert "info" in shown.stderr and "demo" in shown.stderr and args[0] in shown.stderr


def test_importing_the_package_leaves_the_command_line_alone():
    code = (
        "import sys, tinyfin\n"
        "print([m for m in sys.modules if m.startswith(('tinyfin.cli', 'argparse', 'rich'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert shown.stdout.strip() == "[]"


def interrupted(args):
    raise KeyboardInterrupt


def unwritable(args):
    raise PermissionError(13, "Permission denied", "/nowhere")


@pytest.mark.parametrize(
    "fault, code, text", [(interrupted, 130, "interrupted"), (unwritable, 1, "/nowhere")]
)
def test_exit_codes(fault, code, text, monkeypatch, capsys):
    from tinyfin.cli import info

    monkeypatch.setattr(info, "run", fault)
    assert main.main(["info"]) == code
    assert text in capsys.readouterr().err


def test_help_loads_no_numpy():
    """What a command needs is loaded when it runs."""
    code = "import sys; from tinyfin.cli.main import build_parser; build_parser(); print('numpy' in sys.modules)"
    assert isolated.run(code)[0] == ["False"]
