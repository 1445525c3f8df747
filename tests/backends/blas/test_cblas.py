"""Calls into the library: widths of integers, thread counts, concurrent callers, forks."""

import pytest
from backends.isolated import run

CALLS = """
import ctypes, warnings
import numpy as np
import tinyfin as tf
from tinyfin.backends import base
from tinyfin.backends.blas import cblas
assert tf.backend_set("blas")
found = base.REGISTRY["blas"].library
def calls():
    return ctypes.CDLL(found.path).fake_calls()
before = calls()
"""


@pytest.mark.parametrize("integer", ["int32_t", "int64_t"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_widths_compute(built, integer, dtype):
    """Every product of every orientation reaches the library, with the arguments where it expects them."""
    code = f"""{CALLS}
rng = np.random.default_rng(0)
a, b = (tf.tensor(rng.integers(-9, 9, s).astype("{dtype}")) for s in ((70, 80), (80, 90)))
ways = (a, a.t().contiguous().t()), (b, b.t().contiguous().t())
got = [x @ y for x in ways[0] for y in ways[1]]
made = calls() - before
tf.backend_set("cpu")
print(made, all(tf.equal(y, a @ b) for y in got))
"""
    assert run(code, TINYFIN_BLAS=built(INT=integer))[0] == ["4 True"]


@pytest.mark.parametrize("integer", ["int32_t", "int64_t"])
def test_strides_that_32_bits_do_not_count(built, integer, tmp_path):
    """A library of 32-bit integers is not asked; the result is the same."""
    code = f"""{CALLS}
cblas.set_eager(True)
wide = np.memmap("{tmp_path / "sparse"}", "float32", "w+", shape=(2, (1 << 31) + 8))
wide[:, :3] = [[1, 2, 3], [4, 5, 6]]
y = tf.from_numpy(wide)[:, :3] @ tf.ones(3, 2)
print(calls() - before, y.tolist())
"""
    made = int(integer == "int64_t")
    assert run(code, TINYFIN_BLAS=built(INT=integer))[0] == [f"{made} [[6.0, 6.0], [15.0, 15.0]]"]


def test_thread_count_is_ours_and_goes_back(built):
    """It is set when the backend is chosen and when ours changes; what it was before comes back."""
    code = f"""{CALLS}
said = [found.threads()]
tf.set_num_threads(2)
said.append(found.threads())
tf.backend_set("blas")
said.append(found.threads())
tf.backend_set("cpu")
said.append(found.threads())
tf.set_num_threads(4)
print(said, found.threads())
"""
    path = built(OPENBLAS="1")
    assert run(code, TINYFIN_BLAS=path, TINYFIN_THREADS="3")[0] == ["[3, 2, 2, 5] 5"]


def test_our_team_splits_what_is_many_products(built):
    """The library keeps to each caller's thread meanwhile, and has its threads back afterwards; where its
    count is each caller's own, it computes one product after the other with them."""
    code = f"""{CALLS}
fake = ctypes.CDLL(found.path)
a, b = tf.ones(100, 100), tf.ones(9, 100, 100)
x, w = tf.ones(9, 64, 17, 17, requires_grad=True), tf.ones(64, 64, 5, 5, requires_grad=True)
fake.fake_seen()
said = []
def conv():
    tf.nn.functional.conv2d(x, w).square().sum().backward()
for call in (lambda: a @ a, lambda: b @ b, conv, lambda: a @ a):
    call()
    said.append(fake.fake_seen())
print(said, found.threads())
"""
    for kind, many in (("1", 1 << 1), ("2", 1 << 3)):
        said = [1 << 3, many, many, 1 << 3]
        path = built(OPENBLAS=kind)
        assert run(code, TINYFIN_BLAS=path, TINYFIN_THREADS="3")[0] == [f"{said} 3"]
    path = built(OPENBLAS="1")
    assert run(code, TINYFIN_BLAS=path, TINYFIN_THREADS="1")[0] == ["[2, 2, 2, 2] 1"]


def test_threads_of_openmp_are_not_used_after_a_fork(built):
    """OpenBLAS makes its own anew, a team of OpenMP would be waited for in vain."""
    code = f"""{CALLS}
import os
def child():
    pid = os.fork()
    if pid == 0:
        tf.set_num_threads(2)
        os._exit(found.threads())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(child(), found.threads())
"""
    for kind, want in (("1", "2 3"), ("2", "1 3")):
        path = built(OPENBLAS=kind)
        assert run(code, TINYFIN_BLAS=path, TINYFIN_THREADS="3")[0] == [want]


STRESS = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import tinyfin as tf
assert tf.backend_set("blas")
tf.set_num_threads(2)
rng = np.random.default_rng(0)
a, b = (tf.tensor(rng.integers(-9, 9, s).astype("float32")) for s in ((150, 160), (160, 170)))
x, w = (tf.tensor(rng.integers(-9, 9, s).astype("float32")) for s in ((2, 8, 20, 20), (64, 8, 3, 3)))
tf.backend_set("cpu")
product, images = a @ b, tf.nn.functional.conv2d(x, w)
tf.backend_set("blas")
wrong, stop = [], []

def right():
    return tf.equal(a @ b, product) and tf.equal(tf.nn.functional.conv2d(x, w), images)

def work():
    while not stop:
        if not right():
            wrong.append(1)

def change():
    n = 1
    while not stop:
        n = n % 3 + 1
        tf.set_num_threads(n)
        time.sleep(0.002)

threads = [threading.Thread(target=work) for _ in range(3)] + [threading.Thread(target=change)]
for t in threads:
    t.start()
codes = []
for _ in range(12):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if right() and right() else 1)
    until = time.time() + 30
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done or time.time() > until:
            codes.append(os.waitstatus_to_exitcode(status) if done else "hangs")
            break
        time.sleep(0.002)
    if codes[-1] == "hangs":
        os.kill(pid, 9)
stop.append(1)
for t in threads:
    t.join()
print(codes == [0] * 12, codes, wrong)
"""
"""Whole numbers: every order of a sum gives the same."""


def test_threads_and_forks_together():
    """Products in three threads, a changing thread count, and forks in the midst of it, by OpenBLAS itself:
    without the gate, the fork never returns."""
    out, _ = run(STRESS)
    assert out[0].startswith("True "), out


def test_what_knows_no_threads_is_called_by_one_at_a_time(built):
    """The library counts how many are inside."""
    code = f"""{CALLS}
import threading
a = tf.ones(300, 300)
def work():
    for _ in range(6):
        a @ a
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(calls() - before, ctypes.CDLL(found.path).fake_most())
"""
    for kind in ("0", "1"):
        made, most = run(code, TINYFIN_BLAS=built(OPENBLAS=kind))[0][0].split()
        assert made == "24" and (int(most) > 1) == (kind == "1")
