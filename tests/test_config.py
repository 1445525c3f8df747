"""The environment switches: each in a process of its own, since they are read once."""

import pytest
from backends import isolated

import tinyfin as tf
from tinyfin import config


def run(code, **env):
    """(output, errors) of Python code under some switches."""
    lines, errors = isolated.run(code, **env)
    return "\n".join(lines), errors


def test_defaults():
    names = "BACKEND THREADS DETERMINISTIC ISA SCRATCH_BYTES FALLBACK CHECK"
    code = "from tinyfin import config; print([getattr(config, n) for n in %r.split()])" % names
    assert run(code)[0] == str(["", 0, False, "", 1 << 30, True, False])


@pytest.mark.parametrize(
    "text, want",
    [
        ("1", True),
        ("true", True),
        ("YES", True),
        ("on", True),
        ("0", False),
        ("False", False),
        ("off", False),
        ("", False),
    ],
)
def test_flags(text, want):
    out, err = run("import tinyfin as tf; print(tf.is_deterministic())", TINYFIN_DETERMINISTIC=text)
    assert out == str(want) and not err


@pytest.mark.parametrize(
    "name, text, wanted",
    [
        ("TINYFIN_DETERMINISTIC", "maybe", "0 or 1"), ("TINYFIN_FALLBACK", "2", "0 or 1"),
        ("TINYFIN_THREADS", "two", "a whole number"), ("TINYFIN_THREADS", "-1", "a whole number"),
        ("TINYFIN_SCRATCH_BYTES", "1.5", "a whole number"), ("TINYFIN_CHECK", "x", "0 or 1"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_reported_and_ignored(name, text, wanted):
    out, err = run("import tinyfin as tf; print(tf.ones(2).sum().item())", **{name: text})
    assert (
        out == "2.0"
        and err.strip() == f"tinyfin: {name}={text.lower()!r} is ignored, expected {wanted}"
    )


def test_scratch_bytes_bound_kernel_temporaries():
    code = """
import tinyfin as tf
from tinyfin.backends.cpu.threads import scratch_limit
try:
    y = tf.nn.functional.conv2d(tf.ones(1, 64, 200, 200), tf.ones(64, 64, 7, 7))
    print(scratch_limit(), "ran", y.sum().item() > 0)
except MemoryError as e:
    print(scratch_limit(), "refused", str(e).split()[1], "TINYFIN_SCRATCH_BYTES" in str(e))
"""
    first, verb, wanted, named = run(code, TINYFIN_SCRATCH_BYTES="16384")[0].split()
    assert (first, verb, named) == ("16384", "refused", "True") and int(wanted) > 16384
    less = str(int(wanted) - 1)
    assert run(code, TINYFIN_SCRATCH_BYTES=less)[0] == f"{less} refused {wanted} True"
    assert run(code)[0] == f"{1 << 30} ran True"
    small = "import tinyfin as tf; print(tf.rand(4, 4).sort(0)[0].shape)"
    assert run(small, TINYFIN_SCRATCH_BYTES="16384")[0] == "tinyfin.Size([4, 4])"


def test_check_finds_the_first_bad_operation():
    code = """
import tinyfin as tf
x = tf.tensor([1.0, 0.0])
y = x + 1
try:
    z = tf.log(x) * 0
    print("missed")
except Exception as e:
    print(type(e).__name__, "log" in str(e))
"""
    assert run(code, TINYFIN_CHECK="1")[0].endswith("True")
    assert run(code)[0] == "missed"


def test_no_switch_is_read_elsewhere():
    import pathlib

    root = pathlib.Path(tf.__file__).parent
    for path in root.rglob("*.py"):
        if path.name != "config.py":
            text = path.read_text()
            assert 'environ.get("TINYFIN' not in text and 'environ["TINYFIN' not in text, path


def test_every_switch_is_documented():
    assert all(isinstance(v, (str, int, bool)) for k, v in vars(config).items() if k.isupper())
    import pathlib

    docs = pathlib.Path(__file__).resolve().parent.parent / "docs" / "env.md"
    text = docs.read_text()
    for name in (
        "BACKEND",
        "THREADS",
        "DETERMINISTIC",
        "ISA",
        "SCRATCH_BYTES",
        "FALLBACK",
        "CHECK",
    ):
        assert f"TINYFIN_{name}" in text
