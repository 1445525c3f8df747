"""Instructions of one call, counted by callgrind: a check on dispatch that the machine's load does not change.

    python tools/bench/instructions.py            # the table; exit code 1 where a count is over its bound
    python tools/bench/instructions.py --write    # keeps the counts as the new ones, in instructions.json

Each call of dispatch.py runs a few and many times in one process under valgrind; the difference is divided by how many
more, so that start-up and the first calls cancel, and the empty loop is taken off. A bound is the kept count and
MARGIN: another compiler or another build of Python moves counts by a few per cent. Counts are kept by
instruction set (valgrind knows none above AVX2) and version of Python; where none are kept there is nothing to compare.
"""

import argparse
import gc
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import timeit

from dispatch import CALLS, namespace

MARGIN = 0.10
KEPT = pathlib.Path(__file__).with_suffix(".json")
FEW, MANY = 200, 700
MARK = "getloadavg"
"""A function of the C library that nothing else here calls: callgrind closes a part of its counts when it is entered."""


def worker():
    """Runs under callgrind: between two marks are FEW or MANY runs of one statement."""
    import tinyfin
    from tinyfin.backends.cpu import isa

    names = namespace(tinyfin, "cpu")
    timers = [timeit.Timer(s, globals=names) for s in ("pass", *CALLS.values())]
    gc.collect()
    gc.freeze()
    for timer in timers:
        timer.timeit(FEW)  # fills pools and the interpreter's caches
        os.getloadavg()
        timer.timeit(FEW)
        os.getloadavg()
        timer.timeit(MANY)
        os.getloadavg()
    print(isa.isa_name())


def parts(folder):
    """Instructions of each part that callgrind wrote, in their order."""
    files = sorted(glob.glob(f"{folder}/out.*"), key=lambda name: int(name.rpartition(".")[2]))
    return [int(re.search(r"^summary: (\d+)", pathlib.Path(f).read_text(), re.M)[1]) for f in files]


def counted():
    """The key of this machine's counts, and name -> instructions of one call, in a new process."""
    if not shutil.which("valgrind"):
        sys.exit("instructions are counted by valgrind, which is not installed")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TINYFIN_", "PYTHON", "LD_"))}
    env.update(PYTHONHASHSEED="0", TINYFIN_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--dump-before={MARK}"]
        command += [f"--callgrind-out-file={folder}/out", sys.executable, __file__, "--worker"]
        done = subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, timeout=600
        )
        if done.returncode:
            raise RuntimeError(f"callgrind ended with {done.returncode}: {done.stderr[-2000:]}")
        found = parts(folder)
    if len(found) != 3 * (1 + len(CALLS)):
        raise RuntimeError(f"callgrind wrote {len(found)} parts, expected {3 * (1 + len(CALLS))}")
    few, many = (
        found[1::3],
        found[2::3],
    )  # before each: start-up or what came before, and warming up
    each = [(b - a) / (MANY - FEW) for a, b in zip(few, many)]
    key = f"{done.stdout.strip()}, Python {sys.version_info.major}.{sys.version_info.minor}"
    return key, {name: round(n - each[0]) for name, n in zip(CALLS, each[1:])}


def kept(key):
    """name -> kept count for an instruction set and a Python; empty where there is none."""
    return json.loads(KEPT.read_text()).get(key, {})


def over(found, before):
    """Lines for the calls that take more than their bound."""
    return [
        f"{name}: {n} instructions, at most {before[name] * (1 + MARGIN):.0f}"
        for name, n in found.items()
        if n > before[name] * (1 + MARGIN)
    ]


def main():
    """Prints the table and compares, or keeps the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="keep the counts as the new ones")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker()
    key, found = counted()
    before = kept(key)
    print(f"| {key} | instructions | kept | change |\n|---|---|---|---|")
    for name, n in found.items():
        change = f"{n / before[name] - 1:+.1%}" if name in before else ""
        print(f"| {name} | {n} | {before.get(name, '')} | {change} |")
    if options.write:
        counts = sorted({**json.loads(KEPT.read_text()), key: found}.items())
        KEPT.write_text(json.dumps(dict(counts), indent=1) + "\n")
        return None
    if not before:
        return print(f"no counts are kept for {key}: --write keeps these")
    return sys.exit("\n".join(over(found, before)))


if __name__ == "__main__":
    main()
