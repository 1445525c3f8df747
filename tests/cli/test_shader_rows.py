"""Rows on a device compared with the CPU: what counts as a fault, and float64, which has bodies of its own."""

import json

import numpy as np
import pytest
from cli.planted import altered, needs_compiler, needs_device, run

import tinyfin as tf
from tinyfin.cli import main, shader_cases, shader_rows


@needs_device
def test_a_device_that_flushes_may_differ_there():
    """What flushing does to results is no fault in normal mode, anything else is."""
    row = shader_rows.Comparison("square", "vulkan:0", False)
    row.outcome.calls = 1
    call = shader_cases.Call(np.array([1e-30, 2.0]))
    again = "square", call, "float32", "dense", 1.0, 0
    want = tf.tensor([1e-42, 4.0])
    row.compare(want, tf.tensor([0.0, 4.0]), shader_rows.NORMAL, "square", again)
    assert row.outcome.differing["normal"] == 1 and not row.outcome.faults
    assert "1 of 2 elements differ; element 0 is 00000000" in row.outcome.first["normal"]
    assert "(subnormal numbers)" in row.outcome.text()
    row.compare(want, tf.tensor([0.0, 4.1]), shader_rows.NORMAL, "square", again)
    assert "1 of 2 elements differ; element 1 is 40833333" in row.outcome.faults["normal"]
    assert "(subnormal numbers)" not in row.outcome.text()
    row.compare(want, tf.tensor([0.0, 4.0]), shader_rows.DETERMINISTIC, "square", again)
    assert "deterministic" in row.outcome.faults


def test_products_may_be_rounded_otherwise_in_normal_mode():
    """By so much and no more."""
    row = shader_rows.Comparison("matmul", "cpu", True)
    want, again = tf.tensor([100.0, 1.0]), ()
    row.compare(want, tf.tensor([100.0, 1.0001]), shader_rows.NORMAL, "matmul", again)
    assert row.outcome.differing["normal"] == 1 and not row.outcome.faults
    assert "1 of 2" in row.outcome.first["normal"] and not row.outcome.flushing
    for bad in ([100.0, 1.1], [100.0, float("nan")]):
        row.compare(want, tf.tensor(bad), shader_rows.NORMAL, "matmul", again)
        assert "1 of 2 elements differ; element 1" in row.outcome.faults.pop("normal")
    row.compare(want, tf.tensor([100.0, 1.0001]), shader_rows.DETERMINISTIC, "matmul", again)
    assert "deterministic" in row.outcome.faults


def test_distance():
    def far(a, b, dtype="float32"):
        t = [tf.tensor([v], dtype=getattr(tf, dtype)) for v in (a, b)]
        return shader_rows.distance(*map(shader_rows.bits_of, t), dtype)[0]

    assert far(1.0, 1.0 + 2**-22) == 2 and far(0.0, -0.0) == 0 and far(1.0, float("nan")) == np.inf
    assert far(float("nan"), float("nan")) == 0 and far(-1e-45, 1e-45) == 2
    assert far(1.0, 1.0078125, "bfloat16") == 1 and far(-3, 4, "int8") == 7


# ---- float64: text of its own for sums (float64.glsl) and functions (vmath64.inc)

ROWS = ["add", "exp", "mean", "cumsum"]


def test_float64(gpu, tmp_path, capsys):
    path = tmp_path / "found.json"
    rows = [word for row in ROWS for word in ("--kernel", row)]
    args = ["--backend", gpu, "--dtype", "float64", "--jobs", "1", "--json", str(path), *rows]
    assert main.main(["shaders", "validate", *args]) == 0
    assert f"verdict: passed ({len(ROWS)} rows" in capsys.readouterr().out
    found = json.loads(path.read_text())
    assert set(found["rows"]) == set(ROWS) and found["failed"] == []
    for row in found["rows"].values():
        assert row["passed"] and row["calls"] > 10 and not row["first"].get("deterministic")


FAULTS = {
    "a coefficient of a function": ("vmath64.inc", "2.480158709717703e-05", "2.580158709717703e-05", "exp", "exp"),
    "a sum rounded to float32": ("float64.glsl", "= tf_flushed(a) + tf_flushed(b);",
                                 "= double(float(tf_flushed(a) + tf_flushed(b)));", "scan*", "cumsum"),
}  # fmt: skip
"""Name -> text, what stands in it, what it is changed to, modules to compile, a row that notices it."""


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_of_float64(fault, gpu, tmp_path):
    """Found with float64, and with float64 alone."""
    file, old, new, kernel, row = FAULTS[fault]
    texts, path = altered(tmp_path / "texts", file, old, new), str(tmp_path / "shaders.zip")
    code, out, err = run("build", "--texts", texts, "--kernel", kernel, "--output", path)
    assert code == 0, out + err
    for dtype, wrong in (("float64", 1), ("float32", 0)):
        args = ["validate", "--backend", gpu, "--kernel", row, "--dtype", dtype]
        code, out, err = run(*args, TINYFIN_SHADERS=path)
        assert code == wrong, out + err
        assert ("verdict: FAILED" in out.splitlines()[-1]) == bool(wrong)
