"""Generator: the state of random numbers, a seed and the number of the next draw.

Numbers are Philox 4x32-10 (Salmon et al., 2011): element i of a draw depends on (seed, draw number, i)
alone, so the stream is the same on every device and for every thread count.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from tinyfin.core.device import Device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tinyfin.core.tensor import Tensor

MASK = (1 << 64) - 1
DEFAULT_SEED = 67280421310721
LOCK = allocate_lock()
"""Two threads never get the same draw."""


def signed(word):
    """The signed number with the same 64 bits."""
    return word - (1 << 64) if word >> 63 else word


class Generator:
    """A stream of random numbers.

    >>> g = Generator().manual_seed(1)
    >>> g.initial_seed()
    1
    """

    __slots__ = ("_seed", "_draw", "device")

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device(device)
        self._seed, self._draw = DEFAULT_SEED, 0

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream that belongs to a seed; returns the generator."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise TypeError(f"manual_seed: seed is {seed!r}, expected an integer")
        seed = seed.__index__()
        if not -(1 << 63) <= seed <= MASK:
            raise RuntimeError(f"manual_seed: seed {seed} does not fit 64 bits")
        self._seed, self._draw = seed & MASK, 0
        return self

    def seed(self) -> int:
        """Starts a stream with a seed from the operating system, and returns it."""
        value = int.from_bytes(os.urandom(7), "little")
        self.manual_seed(value)
        return value

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self._seed

    def next_draw(self) -> tuple[int, int]:
        """(seed, draw number) of the next draw, as signed 64-bit integers; the stream moves on."""
        with LOCK:
            seed, draw = self._seed, self._draw
            self._draw = (draw + 1) & MASK
        return signed(seed), signed(draw)

    def state_dict(self) -> dict[str, int]:
        """Seed and draw number."""
        return {"seed": self._seed, "draw": self._draw}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Goes on from a saved state."""
        seed, draw = state["seed"], state["draw"]
        if not (
            isinstance(seed, int)
            and isinstance(draw, int)
            and 0 <= seed <= MASK
            and 0 <= draw <= MASK
        ):
            raise ValueError(f"load_state_dict: {state!r} is no generator state")
        self._seed, self._draw = seed, draw

    def clone_state(self) -> Generator:
        """A generator at the same place of the same stream."""
        other = Generator(self.device)
        other._seed, other._draw = self._seed, self._draw
        return other

    def get_state(self) -> Tensor:
        """The state as a tensor of 16 bytes."""
        from tinyfin.core.dtype import all_dtypes
        from tinyfin.core.exchange import from_bytes

        data = self._seed.to_bytes(8, "little") + self._draw.to_bytes(8, "little")
        return from_bytes(data, all_dtypes()["uint8"], (16,))

    def set_state(self, new_state: Tensor) -> Generator:
        """Goes on from a tensor that get_state gave; returns the generator."""
        if getattr(new_state, "shape", None) != (16,) or new_state.dtype.name != "uint8":
            raise TypeError("set_state: expected a uint8 tensor of 16 elements, as get_state gives")
        data = bytes(new_state.tolist())
        self._seed, self._draw = (
            int.from_bytes(data[:8], "little"),
            int.from_bytes(data[8:], "little"),
        )
        return self

    def __getstate__(self):
        return self.state_dict()

    def __setstate__(self, state):
        self.device = Device("cpu")
        self.load_state_dict(state)

    def __repr__(self) -> str:
        return f"<tinyfin.Generator seed={self._seed} draw={self._draw}>"


default_generator = Generator()
