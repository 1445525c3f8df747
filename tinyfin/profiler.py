"""Where the time of a program goes: calls of kernels on the CPU, dispatches on devices, memory; as a table or a trace.

PyTorch's names. Calls of kernels are noted as they happen; devices with timestamps tell when each dispatch
began and ended. What Python itself takes is the rest.
"""

from __future__ import annotations

import json
from _thread import get_ident
from time import perf_counter_ns

from tinyfin.backends import base
from tinyfin.core import tensor
from tinyfin.core.device import SLOTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Literal, TypeVar

    from typing_extensions import Self

    Fn = TypeVar("Fn", bound=Callable[..., Any])
    Shapes = tuple[tuple[int, ...], ...]

SORTS = ("device_time_total", "cpu_time_total", "device_time", "cpu_time", "count", "bytes")
ALIASES = {
    "self_cpu_time_total": "cpu_time_total",
    "self_cpu_memory_usage": "bytes",
    "cpu_memory_usage": "bytes",
    **{
        f"{mine}{name}_{what}": f"device_{what}"
        for mine in ("", "self_")
        for name in ("cuda", "xpu", "device")
        for what in ("time_total", "time")
    },
    **{f"{mine}{n}_memory_usage": "bytes" for mine in ("", "self_") for n in ("cuda", "device")},
}
"""PyTorch's names of these; a call of a kernel has no others inside it."""
RANGE = -1
"""Slot of a range that the program named itself."""


class Event:
    """One call of a kernel, or one range that the program named.

    Attributes:
        name: of the operation or range.
        thread: number of the thread that called.
        start_ns, end_ns: on the CPU, nanoseconds of `time.perf_counter_ns()`.
        device: where it ran, such as 'vulkan:0'; None for a range.
        dispatches: (start, end) of each dispatch on the device, on the same clock.
        bytes: of the results.
        shapes: of the arguments, where they were asked for.
    """

    __slots__ = ("name", "thread", "start_ns", "end_ns", "device", "dispatches", "bytes", "shapes")

    def __init__(
        self,
        name: str,
        thread: int,
        start_ns: int,
        end_ns: int,
        device: str | None,
        dispatches: Sequence[tuple[int, int]],
        nbytes: int,
        shapes: Shapes | None,
    ) -> None:
        self.name, self.thread, self.start_ns, self.end_ns = name, thread, start_ns, end_ns
        self.device, self.dispatches, self.bytes, self.shapes = device, dispatches, nbytes, shapes

    @property
    def cpu_time(self) -> float:
        """Microseconds that the call took on the CPU; on a device, that is putting it on its way."""
        return (self.end_ns - self.start_ns) / 1e3

    @property
    def device_time(self) -> float:
        """Microseconds that its dispatches took on the device; 0 where nobody took the time."""
        return sum(end - start for start, end in self.dispatches) / 1e3

    def __repr__(self) -> str:
        times = f"cpu_time={self.cpu_time:.1f}, device_time={self.device_time:.1f}"
        return f"Event({self.name!r}, device={self.device!r}, {times})"


class Average:
    """All calls of one operation on one device (and, if asked for, with the same shapes); times in microseconds."""

    def __init__(self, key: str, device: str | None, shapes: Shapes | None = None) -> None:
        self.key, self.device, self.shapes = key, device, shapes
        self.count = self.bytes = 0
        self.cpu_time_total = self.device_time_total = 0.0

    def add(self, event: Event) -> None:
        """Counts one more call."""
        self.count += 1
        self.bytes += event.bytes
        self.cpu_time_total += event.cpu_time
        self.device_time_total += event.device_time

    @property
    def cpu_time(self) -> float:
        """Microseconds of a call on the CPU."""
        return self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """Microseconds of a call on its device."""
        return self.device_time_total / self.count

    def __repr__(self) -> str:
        times = f"cpu_time_total={self.cpu_time_total:.1f}, device_time_total={self.device_time_total:.1f}"
        return f"Average({self.key!r}, count={self.count}, {times})"


class Averages(list[Average]):
    """What `profile.key_averages()` gives; `table()` shows it."""

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """The text of a table, the row that takes most first.

        Args:
            sort_by: 'device_time_total', 'cpu_time_total', 'device_time', 'cpu_time', 'count' or 'bytes', or one of
                PyTorch's names for them, such as 'self_cuda_time_total'; default the time on the device where one
                was taken, else that on the CPU.
            row_limit: rows at most; -1 shows all.

        Raises:
            ValueError: `sort_by` is something else.
        """
        timed = any(a.device_time_total for a in self)
        sort_by = sort_by or ("device_time_total" if timed else "cpu_time_total")
        sort_by = ALIASES.get(sort_by, sort_by)
        if sort_by not in SORTS:
            raise ValueError(f"table: sort_by is {sort_by!r}, expected one of {', '.join(SORTS)}")
        total = {
            k: sum(getattr(a, k) for a in self) for k in ("cpu_time_total", "device_time_total")
        }
        share = "device_time_total" if timed else "cpu_time_total"
        head = ["operation", "device", "calls", "CPU total", "CPU mean"]
        head += ["device total", "device mean"] if timed else []
        head += ["share", "results"]
        rows = [head]
        ordered = sorted(self, key=lambda a: getattr(a, sort_by), reverse=True)
        shown = ordered if row_limit < 0 else ordered[:row_limit]
        for a in shown:
            name = a.key if a.shapes is None else f"{a.key} {' '.join(map(brief, a.shapes))}"
            row = [name, a.device or "", str(a.count), period(a.cpu_time_total), period(a.cpu_time)]
            if timed:  # "-" where nobody took the time
                row += [period(t) if t else "-" for t in (a.device_time_total, a.device_time)]
            part = getattr(a, share) / total[share] if total[share] else 0.0
            rows.append([*row, f"{part:.1%}", size(a.bytes)])
        width = [max(len(r[i]) for r in rows) for i in range(len(head))]
        lines = [
            "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(r, width)))
            for r in rows
        ]
        lines.insert(1, "-" * len(lines[0]))
        if len(shown) < len(ordered):
            lines.append(f"... {len(ordered) - len(shown)} more")
        lines.append(f"all kernels: CPU {period(total['cpu_time_total'])}")
        if timed:
            lines[-1] += f", device {period(total['device_time_total'])}"
        return "\n".join(line.rstrip() for line in lines)


def brief(shape: Iterable[int]) -> str:
    """(2, 3) as 2x3."""
    return "x".join(map(str, shape)) or "()"


def period(microseconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= scale:
            return f"{microseconds / scale:.3f} {unit}"
    return f"{microseconds:.3f} us"


def size(nbytes: float) -> str:
    """A number of bytes in the unit that suits it."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale:
            return f"{nbytes / scale:.1f} {unit}"
    return f"{nbytes} B"


class ProfilerActivity:
    """What a profile takes the time of: PyTorch's names.

    >>> from tinyfin.profiler import ProfilerActivity
    >>> ProfilerActivity.CPU
    'cpu'
    """

    CPU = "cpu"
    CUDA = XPU = DEVICE = "device"


class profile:
    """Notes every call of a kernel while it is open, in all threads.

    Args:
        record_shapes: note the shapes of arguments too.
        profile_memory: keep what each device's tensors hold at the begin, at the end and at most.
        activities: `ProfilerActivity.CPU` alone leaves the times on devices out; calls are noted always.

    The time of a dispatch is that from the end of the work before it, or from its own begin, to its end.

    Raises:
        RuntimeError: another profile is open.
        ValueError: an activity is none of `ProfilerActivity`.

    >>> import tinyfin
    >>> from tinyfin.profiler import profile
    >>> with profile() as p:
    ...     y = (tinyfin.ones(3) + 1).sum()
    >>> [(a.key, a.count) for a in p.key_averages() if a.key in ("add", "sum")]
    [('add', 1), ('sum', 1)]
    """

    open: list[profile] = []

    def __init__(
        self,
        record_shapes: bool = False,
        profile_memory: bool = False,
        *,
        activities: Iterable[str] | None = None,
    ) -> None:
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.activities = ("cpu", "device") if activities is None else tuple(activities)
        for activity in self.activities:
            if activity not in ("cpu", "device"):
                raise ValueError(
                    f"profile: activities has {activity!r}, expected ProfilerActivity.CPU or .DEVICE"
                )
        self.found: list[Event] = []
        self.timed: dict[str, tuple[base.Backend, int]] = {}
        self.without_times: list[str] = []
        self.begin_ns = self.end_ns = 0
        self.memory: dict[str, dict[str, int]] = {}

    def start(self) -> None:
        """Begins to note."""
        if profile.open:
            raise RuntimeError("profile: another profile is open; stop it first")
        self.found, self.timed, self.memory, self.without_times = [], {}, {}, []
        for backend, index in used():
            self.watch(backend, index)
        if self.profile_memory:
            self.measure("before")
        profile.open.append(self)
        base.WATCHERS.append(self.watch)
        tensor.take_notes()
        self.begin_ns = perf_counter_ns()
        tensor.note_calls(2 if self.record_shapes else 1)

    def stop(self) -> None:
        """Ends it, when the devices have done all that was asked of them."""
        if self not in profile.open:
            return
        tensor.note_calls(0)
        self.end_ns = perf_counter_ns()
        profile.open.remove(self)
        base.WATCHERS.remove(self.watch)
        times = {}
        for name, (backend, index) in self.timed.items():
            try:
                times[name] = backend.untime(index)
            except RuntimeError as error:  # what ended the device was raised where it was used
                base.warn(f"profile: {name} has no times: {error}")
                continue
            spans = times[name][1]
            if spans and all(start == end for start, end in spans):  # a clock that stands still
                self.without_times.append(name)
                del times[name]
        if self.profile_memory:
            self.measure("after")
        names = {slot: name for name, slot in SLOTS.items()}
        for (
            name,
            thread,
            start,
            end,
            slot,
            index,
            first,
            last,
            nbytes,
            shapes,
        ) in tensor.take_notes():
            device = (
                None
                if slot == RANGE
                else names[slot] + (f":{index}" if names[slot] != "cpu" else "")
            )
            begin, spans = times.get(device or "", (0, []))
            spans = spans[first - begin : last - begin] if last > first >= begin else []
            self.found.append(Event(name, thread, start, end, device, spans, nbytes, shapes))

    def watch(self, backend: base.Backend, index: int) -> None:
        """Takes the times of a device, if it can and they are asked for."""
        if "device" not in self.activities:
            return
        name = f"{backend.device}:{index}"
        if name in self.timed:
            return
        self.timed[name] = backend, index
        try:
            if backend.time(index):
                return
        except RuntimeError as error:
            base.warn(f"profile: {name} has no times: {error}")
        del self.timed[name]

    def measure(self, when: str) -> None:
        """Keeps what tensors hold."""
        for name in ["cpu", *(f"{backend.device}:{index}" for backend, index in used())]:
            stats = base.memory_stats(name)
            self.memory.setdefault(name, {}).update(
                {when: stats["live"] or 0, "peak": stats["peak"] or 0}
            )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        self.stop()
        return False

    def events(self) -> list[Event]:
        """Every call, in the order in which they ended."""
        return self.found

    def key_averages(self, group_by_input_shape: bool = False) -> Averages:
        """The calls of each operation on each device together.

        Args:
            group_by_input_shape: those with other shapes apart; needs `record_shapes`.
        """
        groups: dict[Any, Average] = {}
        for e in self.found:
            if e.device is None:
                continue
            shapes = e.shapes if group_by_input_shape else None
            key = (e.name, e.device, shapes)
            if key not in groups:
                groups[key] = Average(*key)
            groups[key].add(e)
        return Averages(groups.values())

    def summary(self) -> str:
        """Lines on the whole: time that passed, in kernels and outside of them, ranges, and memory."""
        wall = (self.end_ns - self.begin_ns) / 1e3
        kernels = sum(e.cpu_time for e in self.found if e.device is not None)
        text = f"{period(wall)} passed, {period(kernels)} of it in calls of kernels"
        lines = [text if kernels <= wall else text + " (of several threads)"]
        ranges: dict[str, Average] = {}
        for e in self.found:
            if e.device is None:
                ranges.setdefault(e.name, Average(e.name, None)).add(e)
        for a in ranges.values():
            lines.append(f"range {a.key}: {a.count} times, {period(a.cpu_time_total)}")
        for name in self.without_times:
            lines.append(f"{name} has no times: its driver gives 0 for every dispatch")
        for name, m in self.memory.items():
            lines.append(
                f"memory of {name}: {size(m.get('before', 0))} before, {size(m['after'])} after, {size(m['peak'])} at most so far"
            )
        return "\n".join(lines)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a JSON file for chrome://tracing or https://ui.perfetto.dev: a row for each thread and device.

        Format: Trace Event Format, complete events, microseconds.
        """
        threads = {e.thread: i for i, e in reversed(list(enumerate(self.found)))}
        rows = {t: k for k, t in enumerate(sorted(threads, key=lambda t: threads[t]))}
        devices = sorted({e.device for e in self.found if e.device and e.dispatches})
        found: list[dict[str, Any]] = [
            about("process_name", 0, 0, "calls"),
            *(about("thread_name", 0, k, f"thread {k}") for k in rows.values()),
        ]
        for k, name in enumerate(devices, 1):
            found += [about("process_name", k, 0, name), about("thread_name", k, 0, "dispatches")]
        for e in self.found:
            args = {"bytes": e.bytes, **({"device": e.device} if e.device else {})}
            if e.shapes is not None:
                args["shapes"] = [list(s) for s in e.shapes]
            found.append(self.span(e.name, 0, rows[e.thread], e.start_ns, e.end_ns, args))
            for start, end in e.dispatches:
                found.append(
                    self.span(e.name, devices.index(e.device or "") + 1, 0, start, end, {})
                )
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"traceEvents": found, "displayTimeUnit": "ms"}, f)

    def span(
        self, name: str, pid: int, tid: int, start: int, end: int, args: dict[str, Any]
    ) -> dict[str, Any]:
        """A complete event of the trace."""
        ts, duration = (start - self.begin_ns) / 1e3, (end - start) / 1e3
        return {
            "ph": "X",
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": ts,
            "dur": duration,
            "args": args,
        }


def about(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    """What a row of the trace is called."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def used() -> list[tuple[base.Backend, int]]:
    """(backend, number) of each device besides the CPU that is open."""
    return [
        (backend, index)
        for backend in base.REGISTRY.values()
        if backend.opened and backend.device != "cpu"
        for index in backend.used()
    ]


class record_function:
    """Gives a range of a program a name in profiles; a `with` block or a decorator.

    >>> from tinyfin.profiler import profile, record_function
    >>> with profile() as p:
    ...     with record_function("warm-up"):
    ...         pass
    >>> [e.name for e in p.events()]
    ['warm-up']
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function: name is {name!r}, expected a str")
        self.name = name
        self.begun: dict[int, list[int]] = {}

    def __enter__(self) -> Self:
        self.begun.setdefault(get_ident(), []).append(perf_counter_ns())
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        tensor.note(self.name, self.begun[get_ident()].pop(), perf_counter_ns())
        return False

    def __call__(self, function: Fn) -> Fn:
        from functools import wraps

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped  # pyright: ignore[reportReturnType]
