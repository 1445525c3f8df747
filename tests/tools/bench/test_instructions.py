"""tools/bench/instructions.py: dispatch takes no more instructions than its bounds allow."""

import shutil
import sys

import programs
import pytest

instructions = programs.bench("instructions")


@pytest.fixture(scope="module")
def counts():
    """The key of this machine and the counts of all calls; once for the module."""
    if not shutil.which("valgrind"):
        pytest.skip("valgrind, which counts instructions, is not installed")
    return instructions.counted()


def test_dispatch_keeps_its_bounds(counts):
    """`python tools/bench/instructions.py --write` keeps new counts, where more are wanted."""
    key, found = counts
    before = instructions.kept(key)
    if not before:
        pytest.skip(f"no counts are kept for {key}")
    assert found.keys() == before.keys()
    assert not instructions.over(found, before)


def test_counts_are_those_of_single_calls(counts):
    """Start-up, 100 million instructions, is not in them; more work is more instructions."""
    _, found = counts
    assert all(200 < n < 10_000 for name, n in found.items() if "backward" not in name)
    assert found["x + y"] < found["x + y, with gradient"] < found["backward of an MLP"] < 500_000


def test_what_is_over_its_bound():
    before = {"a": 1000, "b": 1000, "c": 1000}
    lines = instructions.over({"a": 1100, "b": 1101, "c": 500}, before)
    assert lines == ["b: 1101 instructions, at most 1100"]


def test_the_command_compares_and_keeps(tmp_path, monkeypatch, capsys):
    kept = tmp_path / "instructions.json"
    kept.write_text("{}")
    monkeypatch.setattr(instructions, "KEPT", kept)
    monkeypatch.setattr(instructions, "counted", lambda: ("here", {"x + y": 10}))
    monkeypatch.setattr(sys, "argv", ["instructions.py"])
    instructions.main()
    assert "--write keeps these" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["instructions.py", "--write"])
    instructions.main()
    assert instructions.kept("here") == {"x + y": 10}
    monkeypatch.setattr(sys, "argv", ["instructions.py"])
    monkeypatch.setattr(instructions, "counted", lambda: ("here", {"x + y": 12}))
    with pytest.raises(SystemExit, match="x \\+ y: 12 instructions, at most 11"):
        instructions.main()
    assert "| x + y | 12 | 10 | +20.0% |" in capsys.readouterr().out
