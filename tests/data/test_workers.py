"""Workers: errors, deaths and timeouts reach the main process; nothing is left running."""

import doctest
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

import tinyfin
from tinyfin.data import DataLoader, Dataset, get_worker_info, workers


class Fault(Exception):
    def __init__(self, number, why):
        super().__init__(number, why)
        self.number = number


class Unpicklable(Exception):
    def __init__(self):
        super().__init__()
        self.made = lambda: None


class Faulty(Dataset):
    """Eight numbers, the fifth of which does what it is told."""

    def __init__(self, act):
        self.act = act

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 5 and self.act != "none":
            getattr(self, self.act)()
        return i

    def throw(self):
        raise Fault(5, "bad sample")

    def odd(self):
        raise Unpicklable

    def kill(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def exit(self):
        os._exit(3)

    def sleep(self):
        time.sleep(60)


class Who(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        info = get_worker_info()
        return info.id, info.num_workers, len(info.dataset), os.getpid(), tinyfin.get_num_threads()


def collect(act, **options):
    return list(DataLoader(Faulty(act), batch_size=2, num_workers=2, **options))


def alive():
    return [p for p in multiprocessing.active_children() if p.name.startswith("tinyfin-loader")]


@pytest.fixture(autouse=True)
def nothing_left_running():
    yield
    deadline = time.monotonic() + 10
    while alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive()


def test_examples():
    assert doctest.testmod(workers).failed == 0


def test_error_keeps_its_type_and_shows_where_it_was():
    with pytest.raises(Fault) as e:
        collect("throw")
    assert e.value.number == 5
    assert "in throw" in str(e.value.__cause__)


def test_error_that_cannot_travel():
    with pytest.raises(RuntimeError, match="worker 0 failed") as e:
        collect("odd")
    assert "in odd" in str(e.value.__cause__)


@pytest.mark.parametrize("act, text", [("kill", "killed by signal 9"), ("exit", "exit code 3")])
def test_death_is_reported(act, text):
    with pytest.raises(RuntimeError, match=text):
        collect(act)


def test_timeout():
    began = time.monotonic()
    with pytest.raises(RuntimeError, match=r"worker 0 .* no batch within timeout=1 seconds"):
        collect("sleep", timeout=1)
    assert time.monotonic() - began < 15


def test_worker_info():
    seen = [
        [x[0] for x in batch]
        for batch in DataLoader(Who(), num_workers=2, collate_fn=lambda b: list(zip(*b)))
    ]
    assert [s[0] for s in seen] == [0, 1, 0, 1, 0, 1]
    assert (
        {s[1] for s in seen} == {2} and {s[2] for s in seen} == {6} and {s[4] for s in seen} == {1}
    )
    assert len({s[3] for s in seen}) == 2 and os.getpid() not in {s[3] for s in seen}
    assert get_worker_info() is None
    assert repr(workers.WorkerInfo(1, 2, 3, None)) == "WorkerInfo(id=1, num_workers=2, seed=3)"


def fail_in_init(worker):
    raise Fault(worker, "init")


def die_in_init(worker):
    os._exit(3)


def disarm(worker):
    get_worker_info().dataset.act = "none"


def test_worker_init_runs_in_the_worker():
    assert [b.tolist() for b in collect("throw", worker_init_fn=disarm)] == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
    ]
    with pytest.raises(Fault):
        collect("throw", worker_init_fn=fail_in_init)


@pytest.mark.parametrize(
    "init, error, text", [(fail_in_init, Fault, "init"), (die_in_init, RuntimeError, "exit code 3")]
)
def test_a_worker_that_was_gone_before_its_first_task(init, error, text):
    """What it said last counts, not that nothing can be sent to it any more."""
    fetch = DataLoader(Faulty("none"))._fetch()
    pool = workers.Pool(fetch, 1, 0, init, "fork")
    try:
        pool.processes[0].join(30)
        pool.begin()
        pool.submit(0, 0, [0], 0)
        with pytest.raises(error, match=text):
            pool.receive(0, 0)
    finally:
        pool.close()


def test_leaving_early_ends_the_workers():
    batches = iter(DataLoader(Faulty("none"), batch_size=1, num_workers=2))
    next(batches)
    assert len(alive()) == 2
    del batches


class Slow(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        time.sleep(0.2 if i % 2 == 0 else 0)
        return i


def test_a_slow_worker_does_not_change_the_order():
    assert [b.item() for b in DataLoader(Slow(), num_workers=2)] == [0, 1, 2, 3]


SCRIPT = """
import multiprocessing, os, sys, time
from tinyfin.data import DataLoader, Dataset

class Sleepy(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        time.sleep(1.3 if i < 2 else 30)
        return i

if __name__ == "__main__":
    loader = DataLoader(Sleepy(), num_workers=1, multiprocessing_context=sys.argv[1], timeout=60)
    batches = iter(loader)
    print(next(batches).item(), next(batches).item())
    print(multiprocessing.active_children()[0].pid, flush=True)
    os._exit(0)
"""


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_worker_lives_as_long_as_its_owner(method, tmp_path):
    """A sample may take longer than the pulse at which a worker looks for its owner, who is not its
    parent process under every method; and a worker whose owner was killed does not stay behind.
    """
    script = tmp_path / "owner.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, script, method], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    zero, one, pid = run.stdout.split()
    assert (zero, one) == ("0", "1")
    deadline = time.monotonic() + 20
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert gone(pid)


class Large(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return tinyfin.full((500_000,), float(i))


def test_batches_larger_than_a_pipe():
    loader = DataLoader(Large(), num_workers=2, prefetch_factor=3)
    assert [b[0, -1].item() for b in loader] == [0, 1, 2, 3, 4, 5]


class Index(Dataset):
    def __len__(self):
        return 300_000

    def __getitem__(self, i):
        return i


def test_tasks_larger_than_a_pipe():
    loader = DataLoader(Index(), batch_size=60_000, num_workers=1, prefetch_factor=5)
    assert [len(b) for b in loader] == [60_000] * 5


def parent_that_dies(path):
    batches = iter(DataLoader(Slow(), num_workers=2))
    next(batches)
    with open(path, "w") as f:
        f.write(" ".join(str(p.pid) for p in multiprocessing.active_children()))
    os._exit(0)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_workers_end_when_their_parent_is_gone(tmp_path):
    path = tmp_path / "pids"
    process = multiprocessing.get_context("fork").Process(target=parent_that_dies, args=(path,))
    process.start()
    process.join(30)
    pids = path.read_text().split()
    assert len(pids) == 2
    deadline = time.monotonic() + 20
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert all(map(gone, pids))


class Summing(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return tinyfin.ones(1_000_000).sum().item()


def two_threads(worker):
    tinyfin.set_num_threads(2)


def test_threads_of_the_parent_do_not_hang_the_workers():
    before = tinyfin.get_num_threads()
    tinyfin.set_num_threads(2)
    try:
        tinyfin.ones(1_000_000).sum().item()
        for init in (None, two_threads):
            loader = DataLoader(Summing(), num_workers=2, worker_init_fn=init, timeout=30)
            assert [b.item() for b in loader] == [1e6, 1e6]
    finally:
        tinyfin.set_num_threads(before)
