"""The same bits for any number of threads and any instruction set, over the samples of every subject."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest
import samples

import tinyfin as tf

SCRIPT = pathlib.Path(samples.__file__).with_name("hashes.py")
SETTINGS = [
    {"TINYFIN_THREADS": "1"},
    {"TINYFIN_THREADS": "3"},
    {"TINYFIN_THREADS": "8"},
    *({"TINYFIN_ISA": name} for name in ("sse2", "avx2", "avx512", "neon")),
]


@functools.cache
def hashes(**settings):
    """What the script prints under these switches, in a process of its own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TINYFIN_")}
    run = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**env, **settings},
        capture_output=True,
        text=True,
        cwd=SCRIPT.parent,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: "=".join(next(iter(s.items()))))
def test_same_bits(setting):
    ((switch, value),) = setting.items()
    if switch == "TINYFIN_ISA" and (value, True) not in tf.isa_list():
        pytest.skip(f"this processor or build has no {value}")
    want, got = hashes(TINYFIN_THREADS="2"), hashes(**{"TINYFIN_THREADS": "2", **setting})
    assert str(got["threads" if switch == "TINYFIN_THREADS" else "isa"]) == value
    assert set(got["hashes"]) == set(samples.subjects())
    different = [name for name, digest in want["hashes"].items() if got["hashes"][name] != digest]
    assert not different, f"other bits with {switch}={value}: {', '.join(different)}"
