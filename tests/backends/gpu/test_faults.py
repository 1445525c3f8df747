"""Bad indices: each thread is told of its own, and what nobody waited for is told at exit."""

import subprocess
import sys
import threading

import pytest

import tinyfin as tf
from tinyfin.backends.gpu import faults

pytestmark = pytest.mark.usefixtures("gpu")


def bad(gpu, n):
    """Asks for element n of three."""
    return tf.ones(3).to(gpu)[tf.tensor([n]).to(gpu)]


def in_thread(fn, name="other"):
    """Runs a function in a thread that ends."""
    thread = threading.Thread(target=fn, name=name)
    thread.start()
    thread.join()


def test_each_thread_is_told_of_its_own(gpu):
    """While the others wait and are told nothing."""
    found, ready = {}, threading.Barrier(5)

    def work(k):
        for _ in range(5):
            y = bad(gpu, 10 + k) if k % 2 else bad(gpu, 0)
            ready.wait()
            try:
                y.cpu()
                found.setdefault(k, []).append(None)
            except IndexError as error:
                found.setdefault(k, []).append(str(error).partition(" is ")[0])
            ready.wait()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for _ in range(10):
        ready.wait()
        tf.synchronize(gpu)  # the main thread's own record is empty
    for t in threads:
        t.join()
    assert found == {k: [f"index: index {10 + k}" if k % 2 else None] * 5 for k in range(4)}


def test_what_a_thread_left_is_told_with_its_name(gpu):
    """To the next one that waits, once."""
    tf.synchronize(gpu)
    in_thread(lambda: bad(gpu, 8), "loader 3")
    with pytest.raises(
        IndexError, match="index 8 is out of range.*'loader 3', which has ended, is"
    ):
        tf.synchronize(gpu)
    tf.synchronize(gpu)
    assert tf.ones(2).to(gpu).tolist() == [1, 1]


def test_records_are_given_back(gpu):
    """More threads than there are records, one after another; then more at a time, which share one."""
    tf.synchronize(gpu)
    for _ in range(faults.RECORDS + 5):
        in_thread(lambda: bad(gpu, 0))
        tf.synchronize(gpu)
    tf.synchronize(gpu)  # the record of a thread that has ended is read twice
    free, go, seen = len(faults.FREE), threading.Event(), threading.Semaphore(0)

    def hold():
        bad(gpu, 0)
        seen.release()
        go.wait()

    threads = [threading.Thread(target=hold) for _ in range(faults.RECORDS + 5)]
    for t in threads:
        t.start()
    for _ in threads:
        seen.acquire()
    left = len(faults.FREE)
    go.set()
    for t in threads:
        t.join()
    assert left == 0 and len(faults.FREE) == free
    with pytest.raises(IndexError, match="index 7"):  # the record that this thread has already
        bad(gpu, 7).cpu()
    tf.synchronize(gpu)
    tf.synchronize(gpu)
    assert not any(f.ended for f in faults.ALL)


EXIT = """
import threading
import tinyfin as tf
x, at = tf.ones(3, device="{gpu}"), lambda n: tf.tensor([n], device="{gpu}")
kept = x[at(1)]
{more}
"""


@pytest.mark.parametrize(
    "more, told",
    [
        ("x[at(5)]", ["index 5 is out of range for size 3; nothing waited for {gpu}:0 since"]),
        ("x[at(5)]; x.gather(0, at(1)); kept.cpu()", None),
        ("kept.cpu()", []),
        ("t = threading.Thread(target=lambda: x[at(6)]); t.start(); t.join()", ["index 6 is out"]),
        ("import os; tf.synchronize(); x[at(9)]; os.fork() or os._exit(0)", ["index 9 is out"]),
    ],
)
def test_what_nobody_waited_for_is_told_at_exit(gpu, more, told):
    """On standard error, and the exit code stays; what was raised is not told again."""
    code = EXIT.format(gpu=gpu, more=more)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    lines = [n for n in done.stderr.splitlines() if n.startswith("tinyfin: ")]
    assert "Exception ignored" not in done.stderr
    if told is None:
        assert done.returncode == 1 and "index 5 is out of range" in done.stderr and not lines
        return
    assert done.returncode == 0 and len(lines) == len(told)
    for line, text in zip(lines, told):
        assert text.format(gpu=gpu) in line
