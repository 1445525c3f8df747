"""`tinyfin profile`: a script's output, exit code and table."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import tinyfin as tf
x = tf.ones(8, 8)
with tf.profiler.record_function("products"):
    for _ in range(3):
        x = x @ x
print(sys.argv[1:], __name__)
"""


@pytest.fixture
def profiled(tmp_path):
    """Runs the command on a script's text."""

    def run(text, *options, args=()):
        (tmp_path / "script.py").write_text(text)
        command = [sys.executable, "-m", "tinyfin", "profile", *options, "script.py", *args]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    return run


def test_a_script(profiled):
    done = profiled(SCRIPT, args=("--rows", "7"))
    assert done.returncode == 0 and done.stdout == "['--rows', '7'] __main__\n"
    lines = done.stderr.splitlines()
    assert any(line.split()[:3] == ["matmul", "cpu", "3"] for line in lines)
    assert any(line.startswith("range products: 1 times") for line in lines)
    assert any(line.startswith("memory of cpu:") for line in lines)


def test_shapes_rows_and_a_trace(profiled, tmp_path):
    done = profiled(SCRIPT, "--shapes", "--rows", "1", "--sort", "count", "--trace", "t.json")
    assert "matmul 8x8 8x8" in done.stderr and "more" in done.stderr and "perfetto" in done.stderr
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(e["name"] == "matmul" for e in events) == 3


def test_a_module(tmp_path):
    (tmp_path / "some.py").write_text(
        "import tinyfin\nprint(tinyfin.ones(2).exp().tolist()[0] > 2.7)\n"
    )
    code = (
        "import sys; from tinyfin.cli.main import main; sys.exit(main(['profile', '-m', 'some']))"
    )
    (tmp_path / "elsewhere").mkdir()
    script = (
        tmp_path / "elsewhere" / "command.py"
    )  # as installed: its folder is on the path, the current one is not
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0 and done.stdout == "True\n" and "exp" in done.stderr


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (
            "import tinyfin; tinyfin.ones(2).exp(); raise ValueError('no')",
            1,
            ["ValueError: no", "exp"],
        ),
        ("import sys, tinyfin; tinyfin.ones(2).exp(); sys.exit(3)", 3, ["exp"]),
        ("raise SystemExit('stopped')", 1, ["stopped", "all kernels"]),
        (
            "import tinyfin; tinyfin.ones(2).exp(); raise KeyboardInterrupt",
            130,
            ["interrupted", "exp"],
        ),
        ("raise SystemExit", 0, ["all kernels"]),
    ],
)
def test_how_a_script_ends(profiled, text, code, words):
    done = profiled(text)
    assert done.returncode == code and all(w in done.stderr for w in words), done.stderr


def test_no_script(profiled, tmp_path):
    command = [sys.executable, "-m", "tinyfin", "profile", "absent.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "there is no file absent.py" in done.stderr
    for name in ("absent", "absent.part"):
        command[4:] = ["-m", name]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 2 and f"there is no module {name}\n" in done.stderr
    done = profiled(SCRIPT, "--sort", "time")
    assert done.returncode == 2 and "invalid choice: 'time'" in done.stderr
    (tmp_path / "kept.json").write_text('{"a": 1}')
    for path, why in (("new.py", "the name of a Python"), ("kept.json", "there, and is no trace")):
        done = profiled(SCRIPT, "--trace", path)
        assert (
            done.returncode == 2
            and f"--trace {path}: cannot be written: it is {why}" in done.stderr
        )
    assert (tmp_path / "kept.json").read_text() == '{"a": 1}'
    done = profiled(SCRIPT, "--trace", "no/such/folder/t.json")
    assert done.returncode == 2 and "--trace no/such/folder/t.json: cannot be" in done.stderr
    assert done.stdout == ""  # told before the script runs
