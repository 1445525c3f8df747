"""Host memory through which bytes pass to a device: a ring, so that uploads need not wait for the device."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ALIGN = 256


class Ring:
    """Places in `nbytes` of staging memory, given out in order and again when the device is done with them.

    Args:
        wait: function of a value of the device's timeline that returns when it is reached.
        upcoming: function that gives the value at which the work recorded next is done.
    """

    def __init__(
        self, nbytes: int, wait: Callable[[int], None], upcoming: Callable[[], int]
    ) -> None:
        self.nbytes, self.wait, self.upcoming = nbytes, wait, upcoming
        self.head = 0
        self.busy: deque[tuple[int, int, int]] = deque()

    def place(self, nbytes: int) -> int:
        """Where `nbytes` may be written that the work recorded next uses."""
        room = -(-nbytes // ALIGN) * ALIGN
        if room > self.nbytes:
            raise ValueError(f"{nbytes} bytes do not fit into a ring of {self.nbytes}")
        start = self.head if self.head + room <= self.nbytes else 0
        end = start + room
        if (
            start < self.head
        ):  # what lies behind the head is skipped, and free as soon as its users are done
            while self.busy and self.busy[0][0] >= self.head:
                self.wait(self.busy.popleft()[2])
        while self.busy and self.busy[0][0] < end and start < self.busy[0][1]:
            self.wait(self.busy.popleft()[2])
        self.busy.append((start, end, self.upcoming()))
        self.head = end
        return start
