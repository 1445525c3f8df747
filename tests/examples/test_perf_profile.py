"""examples/perf_profile.py: every backend that is here has a rate for each work, and a trace is written."""

import json

import programs
import pytest

import tinyfin

example = programs.program("perf_profile")


def test_work_is_what_the_operations_do(monkeypatch):
    """Operations are counted by hand here, bytes from the tensors themselves."""
    for name, (inputs, function, amount, unit) in example.work(32).items():
        tensors = inputs()
        out = function(*tensors)
        if unit == "GB/s":
            assert amount == sum(t.numel() * t.element_size() for t in (*tensors, out)), name
        elif name.startswith("matmul"):
            assert amount == 2 * out.numel() * tensors[0].shape[1]
        else:
            assert amount == 2 * out.numel() * tensors[1][0].numel()


def test_the_median_of_the_rounds_counts(monkeypatch):
    clock = iter(
        [0, 9, 9, 10, 10, 11, 11, 14, 14, 16]
    )  # compiles, tries, then three rounds of one run
    monkeypatch.setattr(example.time, "perf_counter", lambda: next(clock))
    assert example.seconds(lambda: None, rounds=3, budget=0.1) == 2


def test_the_best_comes_first():
    rates = {"matmul 8": {"cpu": 2.0, "vulkan": 8.0}, "exp": {"cpu": 1.0}}
    lines = example.table(rates, {"matmul 8": "GFLOP/s", "exp": "GB/s"})[1:]
    assert [line.split() for line in lines] == [
        ["matmul", "8", "vulkan", "8", "GFLOP/s", "100%"],
        ["matmul", "8", "cpu", "2", "GFLOP/s", "25%"],
        ["exp", "cpu", "1", "GB/s", "100%"],
    ]


def test_command_line(tmp_path):
    trace = tmp_path / "trace.json"
    few = ["--size", 32, "--rounds", 2, "--backend", "cpu"]
    done = programs.run("perf_profile", *few, "--profile", trace)
    assert done.returncode == 0, done.stderr
    for text in ("matmul 32", "conv2d 3x3, 8 channels", "GFLOP/s", "GB/s", "100%", "all kernels"):
        assert text in done.stdout
    names = {e["name"] for e in json.loads(trace.read_text())["traceEvents"]}
    assert {"matmul", "conv2d", "add", "exp", "matmul 32 on cpu"} <= names


@pytest.mark.parametrize(
    "given", [("--backend", "none"), ("--backend", "cpu,null"), ("--size", "0")]
)
def test_what_cannot_be_measured(given):
    done = programs.run("perf_profile", *given)
    assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith(
        "perf_profile.py: error"
    )


def test_every_backend_that_is_here(gpu):
    before = tinyfin.backend_name()
    try:
        rates, units = example.measure(["cpu", gpu], 32, 1)
    finally:
        tinyfin.backend_set(before)
    assert rates.keys() == units.keys() == example.work(32).keys()
    assert all(found.keys() == {"cpu", gpu} and min(found.values()) > 0 for found in rates.values())
