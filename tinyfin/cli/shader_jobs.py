"""Rows compared by several processes: a driver makes pipelines on one core of each, and the one that takes its
process down takes no other."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading

from tinyfin.backends.gpu import modules
from tinyfin.cli.shader_rows import NORMAL, Comparison, Outcome, dtypes_wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import Any, BinaryIO

    Share = tuple[str, str]
    Done = tuple[Share, Outcome]

LEAST = 16
"""Shares for which it is worth starting a process."""
START = "import sys; sys.path[:] = {path!r}; from tinyfin.cli.shader_jobs import work; work()"


def usual_jobs(shares: int) -> int:
    """Processes for so many shares, where nobody asks for a number.

    >>> usual_jobs(3)
    1
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, shares // LEAST))


def shares_of(rows: Sequence[str], only: Sequence[str]) -> list[Share]:
    """(row, dtype): what one process does at a time; each is by itself, with numbers of its own."""
    return [(name, dtype) for name in rows for dtype in dtypes_wanted(name, only)]


def compared(
    rows: Sequence[str],
    device: str,
    keeps: bool,
    only: Sequence[str],
    jobs: int,
    advance: Callable[[str], None],
) -> Generator[Outcome, None, None]:
    """What becomes of each row, in their order; it ends with a row that loses the device.

    Args:
        keeps: whether the device keeps subnormal numbers.
        only: dtypes to be tried; all by default.
        jobs: processes; with one, this one does all.
        advance: called with the row's name after each share.
    """
    shares = shares_of(rows, only)
    source = here(shares, device, keeps) if jobs == 1 else elsewhere(shares, device, keeps, jobs)
    ready: dict[Share, Outcome] = {}
    with contextlib.closing(source) as done:
        for name in rows:
            outcome = Outcome(name)
            for dtype in dtypes_wanted(name, only):
                while (name, dtype) not in ready:
                    share, part = next(done)
                    ready[share] = part
                    advance(share[0])
                outcome.add(ready.pop((name, dtype)))
                if outcome.lost:
                    break
            yield outcome
            if outcome.lost:
                return


def here(shares: Sequence[Share], device: str, keeps: bool) -> Generator[Done, None, None]:
    """In this process, one after another."""
    for name, dtype in shares:
        yield (name, dtype), Comparison(name, device, keeps, (dtype,)).run()


def elsewhere(
    shares: Sequence[Share], device: str, keeps: bool, jobs: int
) -> Generator[Done, None, None]:
    """In so many processes, each of which takes the next share when it is done with one."""
    todo: queue.SimpleQueue[Share] = queue.SimpleQueue()
    done: queue.SimpleQueue[Done] = queue.SimpleQueue()
    for share in shares:
        todo.put(share)
    workers = [Worker(todo, done, device, keeps) for _ in range(min(jobs, len(shares)))]
    try:
        for _ in shares:
            yield done.get()
    finally:
        for worker in workers:
            worker.stop()


class Worker:
    """One process, and the thread that talks to it. One that ends by itself is a fault of its share, and is
    started again."""

    def __init__(self, todo: Any, done: Any, device: str, keeps: bool) -> None:
        self.todo, self.done = todo, done
        self.about = (device, keeps)
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        """Shares until none is left."""
        while not self.stopped:
            try:
                share = self.todo.get_nowait()
            except queue.Empty:
                break
            try:
                outcome = self.ask(share)
            except Exception as error:
                outcome = fault(share, str(error) or repr(error))
            self.done.put((share, outcome))
        self.end()

    def ask(self, share: Share) -> Outcome:
        """What the process makes of a share."""
        process = self.process or self.start()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(share, process.stdin)
            process.stdin.flush()
            outcome, asked = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            code = process.wait()
            self.process = None
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return fault(share, f"the process that ran it ended by itself ({how})")
        modules.ASKED.update(asked)
        return outcome

    def start(self) -> subprocess.Popen[bytes]:
        """The process; what it prints goes to standard error."""
        code = START.format(path=sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TINYFIN_THREADS": "1"},
        )
        assert self.process.stdin is not None
        pickle.dump(self.about, self.process.stdin)
        return self.process

    def end(self) -> None:
        """Lets the process go."""
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            self.process.wait()

    def stop(self) -> None:
        """Ends the process, whatever it does, where shares are left."""
        self.stopped = True
        if self.thread.is_alive() and self.process is not None and not self.todo.empty():
            self.process.kill()
        self.thread.join()


def fault(share: Share, text: str) -> Outcome:
    """The outcome of a share that could not be run."""
    outcome = Outcome(share[0])
    outcome.asked.add(share[1])
    outcome.faults[NORMAL] = f"{share[0]} {share[1]}: {text}"
    return outcome


# ---- in the other process


def work() -> None:
    """Answers each share that comes on standard input, until that is closed."""
    from tinyfin.backends.base import REGISTRY, find_plugins

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and closes the pipe
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what drivers print must not stand between the answers
    source = sys.stdin.buffer
    device, keeps = pickle.load(source)
    name, _, index = device.partition(":")
    find_plugins()
    REGISTRY[name].open()
    REGISTRY[name].opened_device(int(index))  # pyright: ignore[reportAttributeAccessIssue]
    for row, dtype in shares_from(source):
        try:
            outcome = Comparison(row, device, keeps, (dtype,)).run()
        except Exception as error:
            outcome = fault((row, dtype), f"{type(error).__name__}: {error}")
        pickle.dump((outcome, dict(modules.ASKED)), answers)
        answers.flush()


def shares_from(source: BinaryIO) -> Iterator[Share]:
    """Shares until the other end is closed."""
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(source)
