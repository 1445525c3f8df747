"""Worker processes that fetch batches. Knows how to fetch and how to talk to processes, not what
order batches come in.

Each worker has one pipe of its own and shares nothing, no lock, no queue: it can die or be killed
at any moment without harm to the others. Two threads in the worker keep the pipe moving while its
main thread fetches, so neither side can block the other.
"""

from __future__ import annotations

import os
import weakref

import tinyfin
from tinyfin.data.fetch import EndOfStream, batch_seed, seed_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from queue import SimpleQueue
    from typing import Any

_GRACE = 1.0
_PULSE = 1.0
_info: WorkerInfo | None = None


class WorkerInfo:
    """What a worker knows of itself: `id`, `num_workers`, `seed` and its copy of the `dataset`."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed})"


class WorkerTraceback(Exception):
    """The traceback of an error in a worker, as text; it stands as the cause of the error raised
    here.
    """

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def _pack(message: Any) -> bytes:
    import pickle

    return pickle.dumps(message, 5)


def _unpack(data: bytes) -> Any:
    import pickle

    return pickle.loads(data)


def get_worker_info() -> WorkerInfo | None:
    """What the current DataLoader worker knows of itself, or None in the main process.

    >>> get_worker_info() is None
    True
    """
    return _info


class Pool:
    """Workers that fetch; `submit` and `receive` name the worker, and answers come in the order of
    the questions.
    """

    def __init__(
        self,
        fetch: Any,
        num_workers: int,
        seed: int,
        init_fn: Callable[[int], None] | None = None,
        context: Any = None,
    ) -> None:
        import multiprocessing

        ctx = context if hasattr(context, "Process") else multiprocessing.get_context(context)
        forks = ctx.get_start_method() == "fork"
        self.pipes: list[Any] = []
        self.processes: list[Any] = []
        self.close = weakref.finalize(self, _close, self.pipes, self.processes, os.getpid())
        self.passes = 0
        for i in range(num_workers):
            ours, theirs = ctx.Pipe()
            self.pipes.append(ours)
            # A forked child inherits our ends of all pipes and must close them, or no one would
            # ever see an end of file.
            args = (
                theirs,
                list(self.pipes) if forks else [],
                fetch,
                i,
                num_workers,
                seed,
                init_fn,
                os.getpid() if forks else None,
            )
            process = ctx.Process(target=_work, args=args, daemon=True, name=f"tinyfin-loader-{i}")
            process.start()
            self.processes.append(process)
            theirs.close()

    def begin(self) -> int:
        """Opens a pass; answers that belong to earlier passes are dropped from now on."""
        self.passes += 1
        for i in range(len(self.pipes)):
            self._send(i, ("begin", self.passes, None, None, None))
        return self.passes

    def submit(self, worker: int, number: int, index: Any, seed: int) -> None:
        """Asks a worker for batch `number`."""
        self._send(worker, ("batch", self.passes, number, index, seed))

    def _send(self, worker: int, task: tuple[Any, ...]) -> None:
        try:
            self.pipes[worker].send_bytes(_pack(task))
        except OSError:
            pass  # it is gone; what it said last, or how it ended, is for `receive` to find

    def receive(self, worker: int, number: int, timeout: float = 0) -> Any:
        """The batch asked of `worker`.

        Raises:
            EndOfStream: its stream has ended.
            RuntimeError: it died, or gave nothing for `timeout` seconds (0: waits for ever).
        """
        while True:
            tag, kind, payload = _unpack(self._receive_bytes(worker, timeout))
            if kind == "error" and (tag is None or tag[0] == self.passes):
                raise_from_worker(payload, worker)
            if tag == (self.passes, number):
                if kind == "end":
                    raise EndOfStream
                return payload

    def _receive_bytes(self, worker: int, timeout: float) -> bytes:
        from multiprocessing.connection import wait

        pipe, process = self.pipes[worker], self.processes[worker]
        ready = wait([pipe, process.sentinel], timeout or None)
        if not ready:
            raise RuntimeError(
                f"DataLoader: worker {worker} (pid {process.pid}) gave no batch within "
                f"timeout={timeout} seconds"
            )
        try:
            if pipe in ready:
                return pipe.recv_bytes()
        except (EOFError, OSError):
            pass
        return self._mourn(worker)

    def _mourn(self, worker: int) -> Any:
        process = self.processes[worker]
        process.join(10 * _GRACE)
        code = process.exitcode
        how = (
            f"was killed by signal {-code}"
            if code is not None and code < 0
            else f"ended with exit code {code}"
        )
        raise RuntimeError(
            f"DataLoader: worker {worker} (pid {process.pid}) {how} before it gave its batch. If "
            "it was not killed from outside (too little memory?), dataset code ended it; "
            "num_workers=0 shows such errors where they happen"
        ) from None


def _close(pipes: list[Any], processes: list[Any], owner: int) -> None:
    """Ends the workers: asks, waits a moment, insists. In a forked copy of their owner it does
    nothing.
    """
    if os.getpid() != owner:
        return
    stop = _pack(None)
    for pipe in pipes:
        try:
            pipe.send_bytes(stop)
        except OSError:
            pass
        pipe.close()
    for process in processes:
        process.join(_GRACE)
        if process.is_alive():
            process.terminate()
            process.join(_GRACE)
        if process.is_alive():
            process.kill()
            process.join()


def raise_from_worker(payload: tuple[bytes | None, str], worker: int) -> None:
    """Raises an error of a worker here, as the type it had there, caused by its traceback."""
    pickled, text = payload
    error = None
    try:
        error = _unpack(pickled) if pickled else None
    except Exception:
        pass
    if not isinstance(error, Exception):
        error = RuntimeError(f"DataLoader: worker {worker} failed: {text.strip().splitlines()[-1]}")
    raise error from WorkerTraceback(text)


def _work(
    pipe: Any,
    inherited: list[Any],
    fetch: Any,
    worker: int,
    num_workers: int,
    seed: int,
    init_fn: Callable[[int], None] | None,
    parent: int | None,
) -> None:
    """What a worker process does from beginning to end."""
    import signal
    from queue import SimpleQueue
    from threading import Thread

    for other in inherited:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks: SimpleQueue[bytes] = SimpleQueue()
    answers: SimpleQueue[bytes | None] = SimpleQueue()
    Thread(target=_listen, args=(pipe, tasks, parent), daemon=True).start()
    speaker = Thread(target=_speak, args=(pipe, answers), daemon=True)
    speaker.start()
    try:
        _prepare(fetch, worker, num_workers, seed, init_fn)
    except Exception as e:
        answers.put(_pack((None, "error", _describe(e))))
    else:
        _serve(fetch, tasks, answers)
    answers.put(None)
    speaker.join()


def _prepare(
    fetch: Any, worker: int, num_workers: int, seed: int, init_fn: Callable[[int], None] | None
) -> None:
    global _info
    # Devices do not survive a fork, and the processes share the cores: host memory and one thread
    # each.
    tinyfin.set_num_threads(1)
    tinyfin.backend_set("cpu")
    seed_all(batch_seed(seed, -2 - worker))
    _info = WorkerInfo(worker, num_workers, seed + worker, fetch.dataset)
    if init_fn is not None:
        init_fn(worker)


def _serve(fetch: Any, tasks: SimpleQueue[bytes], answers: SimpleQueue[bytes | None]) -> None:
    while (task := _unpack(tasks.get())) is not None:
        what, pass_number, number, index, seed = task
        if what == "begin":
            fetch.begin()
            continue
        tag = (pass_number, number)
        try:
            seed_all(batch_seed(seed, number))
            batch = fetch.quick(index)
            answer = _pack((tag, "batch", fetch(index) if batch is None else batch))
        except EndOfStream:
            answer = _pack((tag, "end", None))
        except Exception as e:
            answer = _pack((tag, "error", _describe(e)))
        answers.put(answer)


def _describe(error: Exception) -> tuple[bytes | None, str]:
    import traceback

    text = "".join(traceback.format_exception(error))
    error.__traceback__ = None
    try:
        return _pack(error), text
    except Exception:
        return None, text


def _listen(pipe: Any, tasks: SimpleQueue[bytes], parent: int | None) -> None:
    """Passes tasks on, and ends the process when its owner is gone.

    The sentinel tells of the owner's end, except where another process that the owner forked holds
    a copy of it open; a forked worker is the owner's child, and sees its parent change.
    """
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    sentinel: Any = parent_process().sentinel  # type: ignore[union-attr]
    try:
        while True:
            ready = wait([pipe, sentinel], _PULSE)
            if pipe in ready:
                tasks.put(pipe.recv_bytes())
            elif ready or (parent is not None and os.getppid() != parent):
                os._exit(1)
    except (EOFError, OSError):
        tasks.put(_pack(None))


def _speak(pipe: Any, answers: SimpleQueue[bytes | None]) -> None:
    try:
        while (answer := answers.get()) is not None:
            pipe.send_bytes(answer)
    except OSError:
        os._exit(1)
