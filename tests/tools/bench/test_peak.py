"""tools/bench/peak.py: the loop compiles, the product runs on the instruction set that was asked for."""

import shutil
import sys

import programs
import pytest

from tinyfin.backends.cpu.isa import isa_name

peak = programs.bench("peak")


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.skipif(isa_name() not in peak.FLAGS, reason="not a processor with AVX2")
def test_table(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["peak.py", "--sizes", "64", "96", "--rounds", "1"])
    peak.main()
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(r[0].strip(), r[2].strip()) for r in rows] == [
        ("avx2", "64 x 64"),
        ("avx2", "96 x 96"),
    ]
    assert all(float(r[1]) > 0 and float(r[3]) > 0 for r in rows)
