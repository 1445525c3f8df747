"""Elementwise loops built for aarch64 and run under qemu give the bits of the native ones."""

import pathlib
import platform
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CPU = ROOT / "tinyfin" / "backends" / "cpu"
FLAGS = [
    "-O2",
    "-std=gnu11",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-w",
    f"-I{CPU}",
    f"-I{ROOT / 'tinyfin' / 'core'}",
    f"-I{ROOT / 'shaders'}",
    "-DTF_ISA=probe",
]
HERE = pathlib.Path(__file__).parent
GROUPS = ("f32", "f64", "int")


def hashes(folder, compiler, runner, extra, rows):
    """One line per row: compiled with `compiler`, run by `runner`."""
    program = folder / ("probe_" + compiler)
    sources = [str(folder / f"loops_{g}.c") for g in GROUPS] + [str(HERE / "loops_driver.c")]
    subprocess.run([compiler, *FLAGS, *extra, *sources, "-lm", "-o", str(program)], check=True)
    run = subprocess.run(
        [*runner, str(program), str(rows)], check=True, capture_output=True, text=True
    )
    return run.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("aarch64-linux-gnu-gcc") or not shutil.which("qemu-aarch64"),
    reason="needs Debian's gcc-aarch64-linux-gnu and qemu-user",
)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="compares with x86-64's loops")
def test_neon_loops_give_the_same_bits(tmp_path):
    """Every row with an expression, float32, float64 and integers, over fixed inputs."""
    generator = ROOT / "tools" / "gen_loops.py"
    for group in (*GROUPS, "names"):
        out = tmp_path / (f"loops_{group}.c" if group != "names" else "names")
        subprocess.run([sys.executable, str(generator), group, str(out)], check=True)
    names = (tmp_path / "names").read_text().split()
    native = hashes(tmp_path, "gcc", [], ["-mavx2", "-mfma"], len(names))
    neon = hashes(tmp_path, "aarch64-linux-gnu-gcc", ["qemu-aarch64"], ["-static"], len(names))
    assert len(native) == len(names) > 80
    differing = [name for name, a, b in zip(names, native, neon) if a != b]
    assert not differing, f"rows whose bits differ on aarch64: {differing}"
