"""Rows compared by several processes."""

import doctest
import json

import pytest

from tinyfin.cli import main, shader_jobs


def test_examples():
    assert doctest.testmod(shader_jobs).failed == 0


@pytest.mark.parametrize(
    "args, text",
    [
        (["--exhaustive", "--dtype", "float16"], "takes all float32 numbers, no others"),
        (["--exhaustive", "--jobs", "2"], "--exhaustive is split by --part"),
        (["--jobs", "0"], "--jobs 0: a number of processes, 1 or more"),
    ],
)
def test_wrong_arguments(args, text, capsys):
    assert main.main(["shaders", "validate", "--backend", "cpu", *args]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.usefixtures("vulkan")
def test_processes_find_what_one_finds(capsys, tmp_path):
    """Rows, calls and findings do not depend on how many processes share them."""
    found = {}
    for jobs in ("1", "2"):
        path = tmp_path / jobs
        args = [
            "--kernel",
            "reciprocal",
            "--dtype",
            "float16",
            "--dtype",
            "float32",
            "--jobs",
            jobs,
        ]
        assert main.main(["shaders", "validate", *args, "--json", str(path)]) == 0
        found[jobs] = json.loads(path.read_text())
        assert ("in 2 processes" in capsys.readouterr().out) == (jobs == "2")
    assert found["1"] == found["2"]
    assert found["1"]["rows"]["reciprocal"]["flushing"]  # what parts say is put together


def test_a_process_that_ends_is_a_fault_of_its_share(monkeypatch):
    """The other shares are run all the same."""
    monkeypatch.setattr(shader_jobs, "START", "import os; os._exit(7)  # {path!r}")
    names = []
    rows = ["signbit", "neg"]
    found = list(shader_jobs.compared(rows, "vulkan:0", True, ["int8", "int32"], 2, names.append))
    assert [o.name for o in found] == rows and sorted(names) == ["neg", "neg", "signbit", "signbit"]
    assert not any(o.passed for o in found)
    assert list(found[1].faults.values()) == [
        "neg int8: the process that ran it ended by itself (exit code 7)"
    ]


def test_a_device_that_cannot_be_opened_is_a_fault_too():
    """The process says why on standard error, and ends."""
    only = ["float32"]
    (found,) = shader_jobs.compared(["neg"], "vulkan:250", True, only, 2, lambda name: None)
    assert "ended by itself (exit code 1)" in next(iter(found.faults.values()))
