"""Host memory through which bytes pass to a device: a ring, so that uploads need not wait for the device."""

from __future__ import annotations

from collections import deque

from tinyfin.backends.cpu.threads import get_num_threads
from tinyfin.backends.gpu.slabs import to_device, to_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

ALIGN = 256
SLICE = 1 << 20
"""Bytes from which another thread is worth waking."""
MOST = 4
"""Threads that copy together: more do not make memory faster."""
TEAM: list[ThreadPoolExecutor] = []


def copy_in(address: int, data: memoryview) -> None:
    """Bytes into mapped memory, by several threads where there are many of them."""
    together(lambda part, at: to_device(at, part), data, address)


def copy_out(out: memoryview, address: int) -> None:
    """Bytes out of mapped memory, by several threads where there are many of them."""
    together(to_host, out, address)


def together(copy: Callable[[memoryview, int], None], host: memoryview, address: int) -> None:
    """Copies slices at the same time; the copies leave the GIL to others."""
    n = min(len(host) // SLICE, MOST, get_num_threads())
    if n < 2:
        copy(host, address)
        return
    if not TEAM:
        from concurrent.futures import ThreadPoolExecutor

        TEAM.append(ThreadPoolExecutor(MOST, "tinyfin copies"))
    size = -(-len(host) // n)
    starts = range(0, len(host), size)
    for done in [TEAM[0].submit(copy, host[i : i + size], address + i) for i in starts]:
        done.result()


class Ring:
    """Places in `nbytes` of staging memory, given out in order and again when the device is done with them.

    Args:
        wait: function of a value of the device's timeline that returns when it is reached.
    """

    def __init__(self, nbytes: int, wait: Callable[[int], None]) -> None:
        self.nbytes, self.wait = nbytes, wait
        self.head = 0
        self.busy: deque[tuple[int, int, int]] = deque()

    def place(self, nbytes: int) -> int:
        """Where `nbytes` may be written; `until` tells then how long. Callers take turns."""
        room = -(-nbytes // ALIGN) * ALIGN
        if room > self.nbytes:
            raise ValueError(f"{nbytes} bytes do not fit into a ring of {self.nbytes}")
        start = self.head if self.head + room <= self.nbytes else 0
        end = start + room
        if start < self.head:
            # what lies behind the head is skipped, and free as soon as its users are done
            while self.busy and self.busy[0][0] >= self.head:
                self.wait(self.busy.popleft()[2])
        while self.busy and self.busy[0][0] < end and start < self.busy[0][1]:
            self.wait(self.busy.popleft()[2])
        self.busy.append((start, end, 0))
        self.head = end
        return start

    def until(self, value: int) -> None:
        """The device uses the last place until its timeline has come to a value."""
        start, end, _ = self.busy.pop()
        self.busy.append((start, end, value))
