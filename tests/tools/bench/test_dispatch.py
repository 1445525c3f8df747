"""tools/bench/dispatch.py: every call runs on each device, and what is printed is what it took."""

import json

import programs
import pytest

import tinyfin as tf

dispatch = programs.bench("dispatch")


@pytest.mark.parametrize("where", ["null", "cpu"])
@pytest.mark.parametrize("call", dispatch.CALLS)
def test_calls_run(where, call):
    names = dispatch.namespace(tf, where)
    result = eval(dispatch.CALLS[call], names)
    if call == "x + y, with gradient":
        assert result.requires_grad
    elif result is not None:
        assert result.device.type == where and not result.requires_grad


def test_least_tells_a_short_statement_from_a_long_one():
    short, long = (dispatch.timeit.Timer(f"sum(range({n}))") for n in (10, 2000))
    a, b = dispatch.least([short, long], rounds=3, seconds=1e-4)
    assert 10 < a < b / 5


def test_frames_counts_functions_of_python():
    def inner():
        return len([1])

    assert dispatch.frames(lambda: (inner(), inner())) == 2


def test_command_line(tmp_path):
    out = tmp_path / "figures.json"
    done = programs.run(
        "dispatch", "--only", "x + y", "--rounds", 2, "--json", out, folder="tools/bench"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert list(found) == ["x + y", "x + y, with gradient"]
    assert all(10 < ns < 1e6 for row in found.values() for ns in row.values())
    assert "| x + y, with gradient |" in done.stdout and "Python functions" in done.stdout
