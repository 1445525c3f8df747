"""Random arguments for every operation, function and method: an error at worst, never the end of the process."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import fuzz
import pytest
import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SCRIPT = pathlib.Path(fuzz.__file__)
NAMES = [n for n in fuzz.names() if n not in fuzz.TRUSTED]
QUICK = int(os.environ.get("TINYFIN_FUZZ", "500"))
QUIET = {
    "deadline": None,
    "database": None,
    "derandomize": True,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
}


class Worker:
    """A process that runs calls, started anew when it died."""

    def __init__(self):
        self.process = self.errors = None

    def start(self):
        """A fresh process."""
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=SCRIPT.parent,
        )

    def ask(self, case):
        """How the call ended; the signal and the last words where it ended the process."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if answer:
            return json.loads(answer)
        code = self.process.wait()
        self.errors.seek(0)
        return f"the process ended with {code}: {self.errors.read()[-1500:]}"

    def stop(self):
        """Ends the process."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait(20)
            self.process.stdout.close()
            self.errors.close()


@pytest.fixture(scope="module")
def worker():
    one = Worker()
    yield one
    one.stop()


sizes = st.one_of(st.integers(0, 5), st.sampled_from([0, 1, 1, 2, 3, 33]))
integers = st.one_of(st.integers(-4, 9), st.sampled_from([1 << 31, -(1 << 31), 1 << 40, 255]))
constants = st.sampled_from(sorted(fuzz.NUMBERS)).map(lambda c: {"c": c})
views = st.lists(
    st.tuples(
        st.sampled_from(["transpose", "flip", "step", "expand", "unsqueeze"]),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    max_size=3,
)
tensors = st.builds(
    lambda shape, dtype, fill, views, grad: {
        "t": {"shape": shape, "dtype": dtype, "fill": fill, "views": views, "grad": grad}
    },
    st.lists(sizes, max_size=5).filter(lambda s: sum(v > 5 for v in s) < 2),
    st.sampled_from(samples.ALL),
    st.sampled_from(["ramp", "ramp", "index", "zero", "nan", "inf", "large"]),
    views,
    st.booleans(),
)
scalars = st.one_of(
    integers,
    st.floats(-3, 3),
    constants,
    st.sampled_from(["mean", "sum", "none", "ij,jk->ik", "reflect"]),
)
lists = st.lists(st.one_of(integers, tensors), max_size=4)
values = st.one_of(tensors, tensors, scalars, lists, lists.map(lambda v: {"tuple": v}))
KEYWORDS = [
    "dim",
    "keepdim",
    "dtype",
    "other",
    "index",
    "weight",
    "reduction",
    "stride",
    "padding",
    "k",
    "out",
    "value",
    "size",
]
calls = st.builds(
    lambda name, args, kwargs: {"name": name, "args": args, "kwargs": kwargs},
    st.sampled_from(NAMES),
    st.lists(values, min_size=1, max_size=4),
    st.dictionaries(st.sampled_from(KEYWORDS), values, max_size=1),
)
COUNTS = {name: len(samples.samples_of(name)) for name in samples.subjects()}
changed = st.builds(
    lambda name, k, dtype, changes, grad: {
        "name": name,
        "sample": k % max(COUNTS[name], 1),
        "dtype": dtype,
        "changes": changes,
        "grad": grad,
    },
    st.sampled_from(sorted(n for n, count in COUNTS.items() if count and n not in fuzz.TRUSTED)),
    st.integers(0, 99),
    st.sampled_from(samples.ALL),
    st.lists(st.tuples(st.integers(0, 9), values), max_size=2),
    st.booleans(),
)


def check(worker, case):
    """A call may succeed or be refused."""
    answer = worker.ask(case)
    assert answer in ("fine", "fair", "not built"), f"{json.dumps(case)}\n{answer}"


@given(case=changed)
@settings(max_examples=QUICK, **QUIET)
def test_changed_samples(worker, case):
    """Good calls with one or two arguments exchanged, in any dtype: these reach the kernels."""
    check(worker, case)


@given(case=calls)
@settings(max_examples=QUICK, **QUIET)
def test_any_call(worker, case):
    """Any arguments for any name."""
    check(worker, case)


EXTREMES = [0, -1, 1 << 31, 1 << 60, 1 << 62, (1 << 63) - 1, -(1 << 63)]
"""Integers that overflow in sums, products or bytes."""
PLACES = {name: list(fuzz.places(name, 12)) for name in COUNTS if name not in fuzz.TRUSTED}


@pytest.mark.parametrize("name", [name for name, found in PLACES.items() if found])
def test_extreme_integers(worker, name):
    """Every integer of every sample, exchanged for extreme ones, forward and backward."""
    for number, *place in PLACES[name]:
        for integer in EXTREMES:
            case = {"name": name, "sample": number, "dtype": samples.main_dtype(name)}
            check(worker, {**case, "changes": [], "grad": True, "integer": [*place, integer]})


@pytest.mark.long
@given(case=st.one_of(changed, calls))
@settings(max_examples=50_000, **{**QUIET, "derandomize": False})
def test_many_calls(worker, case):
    """The same for a long time, from another seed every time (printed on failure)."""
    check(worker, case)


def test_a_crash_would_be_seen(worker):
    """The harness itself: a process that dies is reported with its signal, and replaced."""
    worker.start()
    worker.process.kill()
    worker.process.wait()
    answer = worker.ask({"name": "add", "args": [1, 2], "kwargs": {}})
    assert answer == "fair"
    code = "import os; os.abort()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert run.returncode < 0
