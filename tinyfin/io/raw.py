"""Tensors as bytes and bytes as tensors, without NumPy's dtypes in between. Knows nothing of
formats.
"""

from __future__ import annotations

import io
import math

import tinyfin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tinyfin import Tensor, dtype


def dtype_name(dt: dtype) -> str:
    """The bare name of a dtype.

    >>> import tinyfin
    >>> dtype_name(tinyfin.bfloat16)
    'bfloat16'
    """
    return str(dt).rpartition(".")[2]


def dtype_named(name: str) -> dtype | None:
    """The dtype of that name, or None where this build has none.

    >>> dtype_named("float8_of_tomorrow") is None
    True
    """
    return getattr(tinyfin, name, None)


def tensor_bytes(t: Tensor) -> memoryview:
    """The elements in row-major order as flat bytes; a copy only where the layout or the device
    makes one necessary.

    >>> import tinyfin
    >>> tensor_bytes(tinyfin.tensor([1, 2], dtype=tinyfin.int16)).tobytes()
    b'\\x01\\x00\\x02\\x00'
    """
    if t.numel() == 0:
        return memoryview(b"")
    dense = t.detach().to("cpu").contiguous()
    return memory(dense, 0, dense.numel())


def memory(t: Tensor, first: int, end: int) -> memoryview:
    """The bytes from `first` to `end`, counted in elements from the first one of a CPU tensor, in
    the memory that the tensor lies in.

    >>> import tinyfin
    >>> memory(tinyfin.tensor([1, 2, 3], dtype=tinyfin.uint8), 1, 3).tobytes()
    b'\\x02\\x03'
    """
    import ctypes

    width = t.dtype.itemsize
    block = (ctypes.c_char * ((end - first) * width)).from_address(t.data_ptr() + first * width)
    # the memory must live as long as it is looked at; ctypes arrays take attributes
    block.tensor = t  # pyright: ignore[reportAttributeAccessIssue]
    return memoryview(block).cast("B")


def tensor_from(buffer: Any, dt: dtype, shape: Sequence[int], offset: int = 0) -> Tensor:
    """A tensor over the bytes of a writable buffer, sharing them where their alignment allows.

    >>> import tinyfin
    >>> tensor_from(bytearray(b"\\x01\\x00\\x02\\x00"), tinyfin.int16, (2,)).tolist()
    [1, 2]
    """
    n = math.prod(shape)
    if n == 0:
        return tinyfin.empty(tuple(shape), dtype=dt, device="cpu")
    if offset % dt.itemsize:
        buffer, offset = bytearray(memoryview(buffer)[offset : offset + n * dt.itemsize]), 0
    return tinyfin.frombuffer(buffer, dtype=dt, count=n, offset=offset).reshape(tuple(shape))


def strided(flat: Tensor, size: Sequence[int], stride: Sequence[int], offset: int) -> Tensor:
    """The view of a flat tensor with these sizes, strides (not negative) and offset; it must lie
    within the tensor.

    >>> import tinyfin
    >>> strided(tinyfin.arange(6), (3, 2), (1, 3), 0).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    moving = [i for i, s in enumerate(stride) if s]
    span = 1 + sum((size[i] - 1) * stride[i] for i in moving)
    view = flat.narrow(0, offset, span)
    for i in moving:
        # Windows over all that the dimensions still to come reach, one window for each step of
        # this one.
        span -= (size[i] - 1) * stride[i]
        view = view.unfold(-1, span, stride[i])
    view = view.squeeze(-1)
    for i, s in enumerate(stride):
        if not s:
            view = view.unsqueeze(i)
    return view.expand(tuple(size))


def read_file(path: Any) -> bytearray:
    """The content of a file in memory of its own.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as f:
    ...     _ = f.write(b"abc"), f.flush()
    ...     read_file(f.name)
    bytearray(b'abc')
    """
    with open(path, "rb", buffering=0) as f:
        content = bytearray(f.seek(0, 2))
        f.seek(0)
        view, have = memoryview(content), 0
        while have < len(content) and (n := f.readinto(view[have:])):
            have += n
    return content[:have] if have < len(content) else content


def map_file(path: Any) -> Any:
    """The content of a file as a writable buffer: pages come when read, and writes to them never
    reach the file. Who cuts the file short meanwhile ends the process that reads on.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as f:
    ...     _ = f.write(b"abc"), f.flush()
    ...     bytes(map_file(f.name)[:2])
    b'ab'
    """
    import mmap

    with open(path, "rb") as f:
        if f.seek(0, 2) == 0:
            return bytearray()
        return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)


class BufferFile(io.RawIOBase):
    """A buffer seen as a file that can be read, without copying it first.

    >>> f = BufferFile(b"abcdef")
    >>> f.seek(-2, 2), f.read(), f.tell()
    (4, b'ef', 6)
    """

    def __init__(self, buffer: Any) -> None:
        self._view = memoryview(buffer)
        self._at = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """The position."""
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Moves the position and returns it."""
        at = offset + (0, self._at, len(self._view))[whence]
        if at < 0:
            raise OSError("seek before the beginning of the buffer")
        self._at = at
        return at

    def readinto(self, target: Any) -> int:
        """Fills `target` with the next bytes and returns how many there were."""
        chunk = self._view[self._at : self._at + len(target)]
        target[: len(chunk)] = chunk
        self._at += len(chunk)
        return len(chunk)


def place(t: Tensor, device: Any = None) -> Tensor:
    """The tensor on `device`, or on the default device if that is None.

    >>> import tinyfin
    >>> place(tinyfin.zeros(2), "cpu").tolist()
    [0.0, 0.0]
    """
    return t.to(tinyfin.default_device() if device is None else device)
