"""A file of modules that cannot be used costs the GPUs, with a reason, and nothing else."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

import tinyfin as tf
from tinyfin.backends.base import REGISTRY
from tinyfin.backends.gpu import modules

SCRIPT = """
import json, sys, warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import tinyfin as tf
    took = [tf.backend_set(name) for name in ("vulkan", "opengl")]
from tinyfin.cli import main
code = main.main(["shaders", "list", "--kernel", "probe"])
try:
    tf.ones(2, device="opengl")
    error = None
except RuntimeError as e:
    error = str(e)
sys.stdout.write("\\n" + json.dumps({
    "took": took, "told": [str(w.message) for w in told], "missing": tf.backend_list(), "code": code,
    "error": error, "backend": tf.backend_name(), "sum": tf.ones(3, device="cpu").sum().item(),
}))
"""


def found(path, backend="opengl"):
    """What a process says whose TINYFIN_SHADERS is a file, and what it writes as errors."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "TINYFIN_SHADERS": str(path), "TINYFIN_BACKEND": backend},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def copied(path, change):
    """The package's file with some members changed, or left out where `change` gives None."""
    with zipfile.ZipFile(modules.OWN) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)


def entries(change):
    """A change of the index alone."""
    return lambda name, data: json.dumps(change(json.loads(data))) if name == "index.json" else data


def without(name):
    return lambda index: [e for e in index if e["name"] != name]


def longer(name):
    return lambda index: [
        {**e, "words": [*e["words"], ["uint", "more", 1]]} if e["name"] == name else e
        for e in index
    ]


def garbage(path):
    path.write_bytes(b"no archive")


def damaged(path):
    """One byte of a member is another one."""
    copied(path, lambda name, data: data)
    with zipfile.ZipFile(path) as file:
        info = file.getinfo("text/probe.comp")
    data = bytearray(path.read_bytes())
    data[info.header_offset + 30 + len(info.filename) + info.file_size // 2] ^= 0x55
    path.write_bytes(data)


def packed_and_damaged(path):
    """The same where the member is compressed: no checksum is reached."""
    with zipfile.ZipFile(modules.OWN) as file:
        info = file.getinfo("text/probe.comp")
    data = bytearray(modules.OWN.read_bytes())
    start = info.header_offset + 30 + len(info.filename)
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)


FILES = {
    "no archive": (garbage, "no archive of shaders, or damaged (File is not a zip file)"),
    "no index": (
        lambda path: zipfile.ZipFile(path, "w").close(),
        "(There is no item named 'index.json' in the archive)",
    ),
    "a strange index": (
        lambda path: copied(path, entries(lambda index: {"probe": 1})),
        "no archive of shaders",
    ),
    "a module too few": (
        lambda path: copied(path, entries(without("softmax_f32"))),
        "was made for another version of tinyfin (module softmax_f32 is missing)",
    ),
    "other parameters": (
        lambda path: copied(path, entries(longer("softmax_f32"))),
        "was made for another version of tinyfin (module softmax_f32 takes other parameters)",
    ),
    "a text too few": (
        lambda path: copied(path, lambda name, data: None if name == "text/probe.comp" else data),
        "lacks text/probe.comp",
    ),
    "a damaged text": (damaged, "is damaged at text/probe.comp"),
    "a damaged packed text": (packed_and_damaged, "damaged"),
}
"""Name -> what writes the file, words of the reason."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_used(name, tmp_path):
    make, words = FILES[name]
    path = tmp_path / "shaders.zip"
    make(path)
    got, errors = found(path)
    reason = got["missing"]["opengl"]
    assert reason.startswith(f"{path} ") and words in reason
    assert "unset TINYFIN_SHADERS" in reason and "tinyfin shaders build" in reason
    assert got["took"] == [False, False] and got["backend"] == "cpu" and got["sum"] == 3
    assert any(reason in text for text in got["told"]) and reason in got["error"]
    assert got["code"] == 1 and errors == f"tinyfin shaders: {reason}\n"
    if tf.backend_list()["vulkan"] is None:
        assert got["missing"]["vulkan"] == reason


def test_a_file_without_spirv(tmp_path, opengl):
    """It does for OpenGL."""
    path = tmp_path / "shaders.zip"
    copied(path, lambda name, data: None if name.startswith("spirv/") else data)
    got, _ = found(path)
    assert got["code"] == 0 and got["missing"]["opengl"] is None and got["error"] is None
    assert got["took"] == [False, True]
    if tf.backend_list()["vulkan"] is None:
        assert got["missing"]["vulkan"].startswith(f"{path} has no SPIR-V: unset TINYFIN_SHADERS")


def test_a_whole_file(tmp_path, opengl):
    path = tmp_path / "shaders.zip"
    copied(path, lambda name, data: data)
    got, errors = found(path)
    assert got["code"] == 0 and got["error"] is None and got["took"][1] and not errors


def test_what_is_damaged_later_is_named(tmp_path, monkeypatch):
    """The archive is named, and what to do."""
    path = tmp_path / "shaders.zip"
    damaged(path)
    monkeypatch.setattr(modules, "FILE", path)
    with zipfile.ZipFile(path) as file:
        monkeypatch.setattr(modules, "archive", lambda: file)
        with pytest.raises(RuntimeError, match="probe.comp cannot be read") as caught:
            modules.read("text/probe.comp")
        assert str(caught.value).startswith(f"{path}: text/probe.comp")
        with pytest.raises(RuntimeError, match="no item named 'spirv/none.spv'.*install"):
            modules.read("spirv/none.spv")


def test_the_package_has_what_it_needs():
    assert modules.wrong() is None
    with pytest.raises(LookupError, match="has no module nonsense, as it was made for another"):
        modules.shader("nonsense")


def test_constants_that_a_module_does_not_read_make_no_program(gpu):
    """Who flushes subnormal numbers is nothing to integers, and OpenGL has no elements before the first."""
    device = REGISTRY[gpu].opened_device(0)
    whole, real = (modules.shader(f"elementwise_add_{kind}") for kind in ("int", "f32"))
    rest = (3, 3, 3, 0, 3, 0) + (0,) * 4
    make = device.stream.make
    assert make(whole, (0, 0, *rest)) == make(whole, (2, 0, *rest))
    assert make(real, (0, 0, *rest)) != make(real, (2, 0, *rest))
    assert (make(whole, (0, 1, *rest)) == make(whole, (0, 2, *rest))) == (gpu == "opengl")
