"""Threads of kernels: how many, when they wake, forks, concurrent callers, scratch memory."""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from backends.isolated import run

import tinyfin as tf
from tinyfin.backends.cpu import threads
from tinyfin.nn import functional as F

BIG = 1 << 21


@pytest.fixture
def two():
    """Two threads for a test."""
    before = tf.get_num_threads()
    tf.set_num_threads(2)
    yield
    tf.set_num_threads(before)


def test_default_is_what_the_process_may_use():
    code = "import tinyfin as tf; print(tf.get_num_threads())"
    assert run(code)[0] == [str(threads.available_cores())]
    assert run(code, TINYFIN_THREADS="7")[0] == ["7"]
    assert run(code, TINYFIN_THREADS="0")[0] == [str(threads.available_cores())]
    assert run(code, TINYFIN_THREADS="99999")[0] == ["1024"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_is_respected():
    cpu = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{cpu}}}); import tinyfin as tf; print(tf.get_num_threads())"
    assert run(code)[0] == ["1"]


def test_control_groups_are_respected(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
    for granted, want in ((None, 64), (3, 3), (100, 64)):
        monkeypatch.setattr(threads, "cores", lambda granted=granted: granted)
        assert threads.available_cores() == want


@pytest.mark.parametrize("n, kind", [(0, RuntimeError), (-1, RuntimeError), (1025, RuntimeError), (1.5, TypeError),
                                     ("2", TypeError), (True, TypeError), (None, TypeError)])  # fmt: skip
def test_what_is_no_number_of_threads(n, kind):
    before = tf.get_num_threads()
    with pytest.raises(kind, match="set_num_threads: n is"):
        tf.set_num_threads(n)
    assert tf.get_num_threads() == before


def test_import_and_small_work_start_no_thread():
    out, _ = run("""
import os
def count():
    return len(os.listdir("/proc/self/task"))
import tinyfin as tf
tf.set_num_threads(2)
print(count())
x = tf.rand(64, 64, requires_grad=True)
for _ in range(50):
    y = (x + 1).exp().sum(0).softmax(0)
    z = x[:16, :16] @ x[:16, :16]
    y.sum().backward()
    tf.randn(500), x.sort(1), tf.cat([x, x]), x[x > 0.5], x.T.contiguous(), x.float().double(), x[:32].mean()
net = tf.nn.Sequential(tf.nn.Linear(8, 16), tf.nn.ReLU(), tf.nn.Linear(16, 4))
net(tf.rand(4, 8)).sum().backward()
print(count())
tf.rand(1 << 22).exp()
print(count())
tf.set_num_threads(1)
print(tf.rand(1 << 22).exp().shape)
""")
    assert out[:3] == ["1", "1", "2"]


def test_results_do_not_depend_on_the_number(rng):
    a = rng.standard_normal(BIG).astype("float32")
    before, seen = tf.get_num_threads(), []
    for n in (1, 2, 3, 8):
        tf.set_num_threads(n)
        x = tf.tensor(a)
        parts = (
            x.exp(),
            x.sum(),
            x.cumsum(0),
            x.view(1 << 11, -1).softmax(1),
            x.view(-1, 2).T.contiguous(),
            x.half(),
        )
        seen.append(b"".join(p.numpy().tobytes() for p in parts))
    tf.set_num_threads(before)
    assert len(set(seen)) == 1


FORK = """
import os, sys, tinyfin as tf
tf.set_num_threads(2)
x = tf.ones(1 << 21)
{before}
want = (x * 2).sum().item()
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        ok = (x * 2).sum().item() == want and (x[:1 << 20] @ x[:1 << 20]).item() == 1 << 20
        os._exit(0 if ok else 1)
    print(os.waitpid(pid, 0)[1], (x * 2).sum().item() == want)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("before", ["x.exp()", "pass"])
def test_children_of_a_fork_compute(before):
    assert run(FORK.format(before=before))[0] == ["0 True"] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_multiprocessing_after_parallel_work():
    out, _ = run("""
import multiprocessing as mp, tinyfin as tf
tf.set_num_threads(2)
def work(seed):
    tf.manual_seed(seed)
    return tf.rand(1 << 20).exp().sum().item()
tf.rand(1 << 22).exp()
with mp.get_context("fork").Pool(2) as pool:
    there = pool.map(work, range(4))
print(there == [work(s) for s in range(4)])
""")
    assert out == ["True"]


def test_a_fork_while_other_threads_compute():
    out, _ = run("""
import os, threading, tinyfin as tf
tf.set_num_threads(2)
stop = False
def busy():
    x = tf.ones(1 << 20)
    while not stop:
        x.exp()
t = [threading.Thread(target=busy) for _ in range(2)]
[u.start() for u in t]
codes = []
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if tf.ones(1 << 21).mul(3).sum().item() == 3 << 21 else 1)
    codes.append(os.waitpid(pid, 0)[1])
stop = True
[u.join() for u in t]
print(codes)
""")
    assert out == ["[0, 0, 0, 0, 0]"]


@pytest.mark.usefixtures("two")
def test_concurrent_callers_get_right_results():
    """Python threads that compute, differentiate, allocate and fail at the same time."""
    shared = tf.arange(1 << 17, dtype=tf.float64)
    wrong = []

    def work(k):
        for i in range(15):
            x = tf.full((1 << 17,), float(k), dtype=tf.float64, requires_grad=True)
            y = (x * shared).sum()
            y.backward()
            if y.item() != k * ((1 << 17) - 1) * (1 << 16) or not tf.equal(x.grad, shared):
                wrong.append((k, i))
            small = tf.full((8, 8), k) @ tf.eye(8, dtype=tf.int64)
            if small.sum().item() != 64 * k:
                wrong.append((k, i, "small"))
            try:
                x + tf.ones(3)
                wrong.append("no error")
            except RuntimeError:
                pass

    workers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert not wrong


def shared_work(k):
    """Bits of kernels that split their work, values and gradients, from numbers that depend on k."""
    rng = np.random.default_rng(k)
    x, y = (tf.tensor(rng.standard_normal((300, 400), np.float32)) for _ in range(2))
    picture = tf.tensor(rng.standard_normal((4, 16, 30, 30), np.float32), requires_grad=True)
    weight = tf.tensor(rng.standard_normal((24, 16, 3, 3), np.float32), requires_grad=True)
    F.conv2d(picture, weight, padding=1).relu().sum().backward()
    made = [x @ y.T, x.sum(), x.sum(0), x.exp() + y, x.softmax(1), x.T.contiguous(), x.cumsum(0)]
    made += [picture.grad, weight.grad, F.layer_norm(x, (400,)), x.sort(1)[0], x[x > y]]
    return b"".join(t.numpy().tobytes() for t in made)


def team_driver(folder, *flags):
    """The team alone, in a program of its own; skips where it cannot be built."""
    if not shutil.which("gcc"):
        pytest.skip("gcc, which builds the driver, is not installed")
    here = pathlib.Path(__file__).resolve().parent
    package = here.parents[2] / "tinyfin"
    folders = [f"-I{package / name}" for name in ("core", "backends/cpu")]
    driver = folder / "driver"
    command = ["gcc", "-O1", *flags, *folders, here / "team_driver.c", "-lpthread", "-o", driver]
    built = subprocess.run(command, capture_output=True, text=True)
    if "cannot find" in built.stderr:
        pytest.skip(f"gcc has no libraries for {' '.join(flags)} here")
    assert built.returncode == 0, built.stderr
    return driver


def driven(driver, *args):
    """What the driver prints."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run([driver, *args], capture_output=True, text=True, timeout=300, env=env)
    return done.stdout + done.stderr


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_each_task_runs_once(sanitizer, tmp_path):
    """Four callers at a time, under a sanitizer that sees unguarded accesses."""
    driver = team_driver(tmp_path, f"-fsanitize={sanitizer}")
    assert driven(driver) == "each task ran once\n"


def test_small_jobs_wake_a_worker_where_they_follow_closely(tmp_path):
    """One that comes alone is not worth the waking; the first of a series are run by one thread."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    assert driven(team_driver(tmp_path), str(cores)) == "woken by a series\n"


@pytest.mark.parametrize("team", [2, 5])
def test_eight_python_threads_get_the_bits_of_one(team):
    """Each finds the team busy with another's job now and then, and runs its own tasks."""
    before = tf.get_num_threads()
    tf.set_num_threads(1)
    want = [shared_work(k) for k in range(8)]
    tf.set_num_threads(team)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(3):
                assert list(pool.map(shared_work, range(8))) == want
    finally:
        tf.set_num_threads(before)


def test_the_number_may_change_at_any_time():
    """Workers that are not wanted any more stay asleep, whoever computes meanwhile."""
    before = tf.get_num_threads()
    tf.set_num_threads(1)
    want, end = shared_work(0), time.monotonic() + 1
    try:
        with ThreadPoolExecutor(3) as pool:
            done = [pool.submit(repeated, want, end) for _ in range(3)]
            for n in itertools.cycle((1, 2, 7, 3, 16)):
                tf.set_num_threads(n)
                time.sleep(0.003)
                if time.monotonic() > end:
                    break
        assert min(d.result() for d in done) > 0
    finally:
        tf.set_num_threads(before)


def repeated(want, end):
    """Asserts the same bits again and again; how often."""
    n = 0
    while not n or time.monotonic() < end:
        assert shared_work(0) == want
        n += 1
    return n


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_more_threads_than_cores_do_not_collapse():
    """Who waits leaves the core: three threads on one core take little longer than one."""
    out, _ = run("""
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import tinyfin as tf
x = [tf.rand(n) for n in (1 << 16, 1 << 18, 1 << 20)]
def took():
    used = time.process_time()
    for _ in range(30):
        for a in x:
            a.exp(), a.sum(), a.view(-1, 64).softmax(1)
    return time.process_time() - used
best = {}
for _ in range(5):
    for n in (1, 3):
        tf.set_num_threads(n)
        best[n] = min(took(), best.get(n, 1e9))
print(best[3] / best[1])
""")
    assert float(out[0]) < 1.12


def test_modes_belong_to_their_thread():
    seen = {}

    def work():
        seen["grad"] = tf.is_grad_enabled()
        seen["recorded"] = (tf.ones(1, requires_grad=True) * 2).requires_grad
        with tf.no_grad():
            started.set()
            done.wait(10)

    started, done = threading.Event(), threading.Event()
    with tf.no_grad():
        t = threading.Thread(target=work)
        t.start()
        started.wait(10)
    assert tf.is_grad_enabled() and seen == {"grad": True, "recorded": True}
    done.set()
    t.join()


def test_threads_give_their_scratch_memory_back():
    """A thread that ends leaves no chunk of its arena behind."""
    code = """
import threading, tinyfin as tf
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
def work():
    tf.rand(200, 2000).sort(0)
    x @ x
x = tf.rand(300, 300)
def many(n):
    for _ in range(n):
        t = threading.Thread(target=work)
        t.start()
        t.join()
tf.set_num_threads(1)
many(20)
before = rss()
many(200)
print(rss() - before < 40 << 20)
"""
    # the address sanitizer keeps freed memory back, far more than is looked for here
    options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
    assert run(code, ASAN_OPTIONS=options)[0] == ["True"]


def keeping():
    """How many threads keep memory for temporaries of kernels."""
    return threads.kept_scratch()[1]


def test_the_cache_s_release_reaches_other_threads():
    """A Python thread that has computed and goes on living."""
    computed, done = threading.Event(), threading.Event()

    def work():
        tf.rand(200, 2000).sort(0)
        computed.set()
        done.wait(60)
        tf.rand(200, 2000).sort(0)  # its memory was taken away: it takes new

    other = threading.Thread(target=work)
    tf.empty_cache()
    before = threads.kept_scratch()
    other.start()
    assert computed.wait(60)
    assert before == (0, 0) and keeping() >= 1
    tf.empty_cache()
    assert threads.kept_scratch() == (0, 0)
    done.set()
    other.join()
    tf.empty_cache()


def test_the_cache_s_release_reaches_workers(two):
    x = tf.rand(300, 2000)
    want = x.sort(0)[0].numpy().tobytes()
    end = time.monotonic() + 60
    while keeping() < 2 and time.monotonic() < end:  # until the machine has woken a worker in time
        assert x.sort(0)[0].numpy().tobytes() == want
    assert keeping() >= 2
    tf.empty_cache()
    assert threads.kept_scratch() == (0, 0)
    assert x.sort(0)[0].numpy().tobytes() == want


def test_kernels_may_ask_for_no_temporaries_first():
    """Gradients of attention over nothing take none, and then some."""
    q, k, v = (tf.rand(2, 2, n, 4, requires_grad=True) for n in (5, 0, 0))
    F.scaled_dot_product_attention(q, k, v).sum().backward()
    assert q.grad.tolist() == tf.zeros(2, 2, 5, 4).tolist()
    q, k, v = (tf.rand(2, 2, n, 4, requires_grad=True) for n in (0, 5, 5))
    F.scaled_dot_product_attention(q, k, v).sum().backward()
    assert k.grad.tolist() == v.grad.tolist() == tf.zeros(2, 2, 5, 4).tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_the_child_of_a_fork_releases_what_its_parent_s_threads_kept():
    code = """
import os, threading, tinyfin as tf
from tinyfin.backends.cpu import threads
tf.set_num_threads(1)
computed, done = threading.Event(), threading.Event()
def work():
    tf.rand(200, 2000).sort(0)
    computed.set()
    done.wait(60)
threading.Thread(target=work).start()
computed.wait(60)
child = os.fork()
if child == 0:
    before = threads.kept_scratch()[1]
    tf.empty_cache()
    tf.rand(200, 2000).sort(0)
    os._exit(0 if before >= 1 and threads.kept_scratch()[1] == 1 else 1)
print(os.waitpid(child, 0)[1])
done.set()
"""
    assert run(code)[0] == ["0"]


def test_interpreter_ends_after_parallel_work():
    code = "import tinyfin as tf; tf.set_num_threads(4); x = tf.rand(1 << 22).exp(); print('done')"
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd="/"
        )
        assert out.returncode == 0 and out.stdout == "done\n" and not out.stderr


def test_scratch_limit_is_the_switch_s():
    assert threads.scratch_limit() == tf._config.SCRATCH_BYTES
    code = "from tinyfin.backends.cpu import threads; print(threads.scratch_limit())"
    assert run(code, TINYFIN_SCRATCH_BYTES="123456")[0] == ["123456"]
