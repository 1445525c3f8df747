"""The five loops: areas, blocks of k and strips beyond one each, and accumulators between them."""

import pathlib
import platform
import shutil
import subprocess

import numpy as np
import pytest
from backends.cpu.chain import product, same_bits

import tinyfin as tf


@pytest.mark.parametrize(
    "m,k,n",
    [
        *((1100, 30, 40), (30, 3, 2200), (130, 800, 130), (40, 1200, 300), (1030, 2, 2060)),
        *((16, 700, 90), (128, 1300, 70), (31, 9, 600)),  # the last tile would have few rows
    ],
)
def test_areas_and_blocks(m, k, n, rng):
    a, b = (rng.standard_normal(s).astype("float32") for s in ((m, k), (k, n)))
    want = product(a, b)
    assert same_bits(tf.tensor(a) @ tf.tensor(b), want)
    assert same_bits(tf.tensor(a.T.copy()).t() @ tf.tensor(b.T.copy()).t(), want)


def test_half_results_keep_their_accumulators(rng):
    """Rounding to half happens once, after the last block of k."""
    a, b = (
        tf.tensor(rng.standard_normal(s).astype("float32")).half()
        for s in ((40, 1500), (1500, 2100))
    )
    want = tf.tensor(product(a.float().numpy(), b.float().numpy())).half()
    assert tf.equal(a @ b, want)


def test_integers_across_blocks(rng):
    for dtype in ("int8", "int64"):
        a, b = (rng.integers(-100, 100, s).astype(dtype) for s in ((130, 900), (900, 2100)))
        with np.errstate(all="ignore"):
            assert np.array_equal((tf.tensor(a) @ tf.tensor(b)).numpy(), a @ b)


def hashes(folder, compiler, runner, *flags):
    """What the driver prints: tiles and roads built with `compiler`, run by `runner`."""
    root = pathlib.Path(__file__).resolve().parents[3]
    cpu, program = root / "tinyfin" / "backends" / "cpu", folder / f"gemm_{compiler}{len(flags)}"
    include = [f"-I{p}" for p in (cpu, root / "tinyfin" / "core", root / "shaders")]
    exact = ["-O2", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
    sources = [pathlib.Path(__file__).with_name("gemm_driver.c"), cpu / "gemm_loops.c"]
    command = [compiler, *exact, "-w", "-DTF_ISA=probe", *include, *flags, *sources, "-lm"]
    subprocess.run([*command, "-o", program], check=True)
    return subprocess.run([*runner, program], check=True, capture_output=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("aarch64-linux-gnu-gcc") or not shutil.which("qemu-aarch64"),
    reason="needs Debian's gcc-aarch64-linux-gnu and qemu-user",
)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="compares with x86-64's tiles")
def test_neon_gives_the_same_bits(tmp_path):
    want = hashes(tmp_path, "gcc", [])
    assert want.count(b"\n") == 360
    assert hashes(tmp_path, "aarch64-linux-gnu-gcc", ["qemu-aarch64"], "-static") == want
