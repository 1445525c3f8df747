"""tools/bench/threads.py: every row runs, sizes that lose are told from noise, the number of threads is put back."""

import json
import math

import programs
import pytest

import tinyfin as tf

threads = programs.bench("threads")


@pytest.mark.parametrize("name", threads.ROWS)
def test_rows_do_more_with_size(name):
    """Each builder takes any size of the sweep, and its work is that of a program."""
    results = [threads.ROWS[name](n)() for n in (256, 5000)]
    sizes = [sum(t.numel() for t in tensors(r)) for r in results]
    assert sizes[0] <= sizes[1] or "Adam" in name


def tensors(result):
    """The tensors in a result."""
    if isinstance(result, tf.Tensor):
        return [result]
    return [t for part in result or () for t in tensors(part)]


def rounds(monkeypatch, *pairs):
    """What the sweep makes of these times, on one thread and on several, at a single size."""
    monkeypatch.setattr(threads, "seconds", lambda *args: 2 * threads.MOST)
    monkeypatch.setattr(threads, "one_and_several", lambda *args: zip(*pairs))
    before = tf.get_num_threads()
    (found,) = threads.swept(lambda n: lambda: None, 2, len(pairs), 0.001, 0)
    tf.set_num_threads(before)
    return found


def test_what_loses(monkeypatch):
    size, one, ratio, lost = rounds(monkeypatch, *[(0.010, 0.012)] * 3, (0.010, 0.009))
    assert (size, one, lost) == (256, 0.010, True) and math.isclose(ratio, 1.2)
    assert rounds(monkeypatch, *[(0.010, 0.006)] * 4)[3] is False
    noisy = [(0.010, 0.020), (0.010, 0.020), (0.010, 0.008), (0.010, 0.009)]
    assert rounds(monkeypatch, *noisy)[3] is False


def test_line():
    found = [(256, 1e-5, 1.01, False), (512, 2e-5, 1.5, True), (1024, 4e-5, 0.6, False)]
    assert (
        threads.line("row", found) == "| row | 1 of 3 | 1.50 at 512, 20 us | 1024, 40 us | 0.60 |"
    )
    assert threads.line("row", found[:1]) == "| row | 0 of 1 |  | nowhere | 1.01 |"
    assert threads.line("row", []) == "| row | 0 of 0 |  | nowhere |  |"


def test_runs_apart_leave_the_gap_out():
    taken = threads.apart(lambda: None, budget=0.001, gap=0.002)
    assert 0 < taken < 0.0005


def test_command_line(tmp_path):
    out = tmp_path / "figures.json"
    few = ["--only", "gelu", "--rounds", 2, "--budget", 1e-5, "--all", "--json", out]
    done = programs.run("threads", *few, folder="tools/bench")
    assert done.returncode == 0, done.stderr
    sizes = json.loads(out.read_text())["gelu"]
    assert len(sizes) > 4 and f"of {len(sizes)} sizes lost" in done.stdout
    assert len(done.stdout.splitlines()) == len(sizes) + 4
