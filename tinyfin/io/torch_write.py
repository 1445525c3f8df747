"""Writes PyTorch's zip format: a pickle of plain containers, and one record for each storage."""

from __future__ import annotations

import struct
import sys
from collections import OrderedDict

import tinyfin
from tinyfin.io.raw import dtype_name, memory, tensor_bytes
from tinyfin.io.torch_file import STORAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from tinyfin import Tensor

_ROOT = "archive"
_ALIGNMENT = 64
_KINDS = {dt: kind for kind, dt in STORAGES.items() if "Untyped" not in kind}
_ZIP64_LIMIT = (1 << 31) - 1


class Storages:
    """Decides for each tensor which storage it is written as a view of, and collects the bytes of
    these.

    Tensors whose memory is one block are written as views of one storage, which holds the block
    from the first element that one of them shows to the last. A tensor that is alone in its block
    is written without what it does not show.
    """

    def __init__(self, obj: Any) -> None:
        self.contents: list[Any] = []
        self.keys: dict[tuple[int, str], tuple[str, int, int]] = {}
        self.users: dict[tuple[int, str], dict[int, Tensor]] = {}
        for t in _tensors_in(obj):
            if (block := _block(t)) is not None:
                self.users.setdefault(block, {})[id(t)] = t

    def add(self, t: Tensor) -> tuple[str, int, int, tuple[int, ...]]:
        """Key and number of elements of the storage, offset and strides of the tensor in it."""
        block = _block(t)
        if block is None or len(self.users.get(block, ())) < 2:
            self.contents.append(tensor_bytes(t))
            return str(len(self.contents) - 1), t.numel(), 0, _dense_strides(t.shape)
        if block not in self.keys:
            self.keys[block] = self._keep(list(self.users[block].values()))
        key, numel, first = self.keys[block]
        return key, numel, t.storage_offset() - first, tuple(t.stride())

    def _keep(self, tensors: list[Tensor]) -> tuple[str, int, int]:
        """Collects the part of a block that these tensors span: key, number of elements, first
        element.
        """
        first = min(t.storage_offset() for t in tensors)
        end = max(t.storage_offset() + _span(t) for t in tensors)
        at = tensors[0].storage_offset()
        self.contents.append(memory(tensors[0], first - at, end - at))
        return str(len(self.contents) - 1), end - first, first


def _block(t: Tensor) -> tuple[int, str] | None:
    """What tensors over one block of host memory have in common; None for one that has to be
    copied in any case.
    """
    if t.device.type != "cpu" or t.numel() == 0 or any(s < 0 for s in t.stride()):
        return None
    return t.data_ptr() - t.storage_offset() * t.dtype.itemsize, dtype_name(t.dtype)


def _span(t: Tensor) -> int:
    """The number of elements from the first one to the last."""
    return 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))


def _dense_strides(shape: Any) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _tensors_in(obj: Any) -> list[Tensor]:
    """All tensors in nested containers, each container looked into once."""
    found: list[Tensor] = []
    seen: set[int] = set()
    todo = [obj]
    while todo:
        x = todo.pop()
        if isinstance(x, tinyfin.Tensor):
            found.append(x)
        elif isinstance(x, (dict, list, tuple)) and id(x) not in seen:
            seen.add(id(x))
            todo.extend(x.values() if isinstance(x, dict) else x)
    return found


class Emitter:
    """Writes plain containers, numbers, strings and tensors as a pickle of protocol 2 that calls
    PyTorch's own rebuilders.

    >>> import pickle
    >>> pickle.loads(Emitter([1, 2.5, {"a": (None, True)}]).pickle())
    [1, 2.5, {'a': (None, True)}]
    """

    def __init__(self, obj: Any) -> None:
        self.storages = Storages(obj)
        self.out = bytearray(b"\x80\x02")
        self.memo: dict[Any, int] = {}
        self.kept: list[Any] = []
        self.root = obj

    def pickle(self) -> bytes:
        """The whole pickle.

        Raises:
            TypeError: the object holds something that is neither tensor nor plain data.
        """
        self.emit(self.root, "the object")
        return bytes(self.out + b".")

    def emit(self, x: Any, where: str) -> None:
        """Writes one value."""
        if x is None or x is True or x is False:
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[x]
        elif isinstance(x, tinyfin.Tensor):
            self._once(("object", id(x)), x, lambda: self._tensor(x))
        elif isinstance(x, int):
            self._int(int(x))
        elif isinstance(x, float):
            self.out += b"G" + struct.pack(">d", x)
        elif isinstance(x, str):
            self._once(("text", x), x, lambda: self._text(x))
        elif isinstance(x, (dict, list, tuple)):
            self._container(x, where)
        else:
            self._rare(x, where)

    def _container(self, x: Any, where: str) -> None:
        key = ("object", id(x))
        if key in self.memo:
            self._get(key)
        elif isinstance(x, dict):
            self._dict(x, where)
        elif isinstance(x, list):
            self.out += b"]"
            self._put(key, x)
            self._group(x, where, b"e")
        else:
            self._tuple(x, where)
            self._put(key, x)

    def _rare(self, x: Any, where: str) -> None:
        if isinstance(x, bytes):
            self._call("_codecs", "encode", (x.decode("latin-1"), "latin1"), where)
        elif isinstance(x, bytearray):
            self._call("__builtin__", "bytearray", (x.decode("latin-1"), "latin-1"), where)
        elif isinstance(x, complex):
            self._call("__builtin__", "complex", (x.real, x.imag), where)
        elif isinstance(x, set):
            self._call("__builtin__", "set", (sorted(x, key=repr),), where)
        elif isinstance(x, tinyfin.dtype):
            self._global("torch", dtype_name(x))
        elif isinstance(x, tinyfin.device):
            self._call("torch", "device", (str(x),), where)
        elif _is_numpy_scalar(x):
            self.emit(x.item(), where)
        else:
            raise TypeError(
                f"save: {where} is a {type(x).__name__}; only tensors, numbers, strings, bytes, "
                "None, lists, tuples, sets and dicts of them can be saved (of a module or an "
                "optimizer, its state_dict())"
            )

    def _once(self, key: Any, x: Any, write: Any) -> None:
        if key in self.memo:
            self._get(key)
        else:
            write()
            self._put(key, x)

    def _put(self, key: Any, x: Any) -> None:
        index = self.memo[key] = len(self.memo)
        self.kept.append(x)
        self.out += b"q" + bytes((index,)) if index < 256 else b"r" + struct.pack("<I", index)

    def _get(self, key: Any) -> None:
        index = self.memo[key]
        self.out += b"h" + bytes((index,)) if index < 256 else b"j" + struct.pack("<I", index)

    def _int(self, x: int) -> None:
        if -(1 << 31) <= x < 1 << 31:
            self.out += b"J" + struct.pack("<i", x)
            return
        data = x.to_bytes(x.bit_length() // 8 + 1, "little", signed=True)
        if len(data) > 255:
            raise ValueError(
                f"save: an integer of {x.bit_length()} bits is too large for the format"
            )
        self.out += b"\x8a" + bytes((len(data),)) + data

    def _text(self, x: str) -> None:
        data = x.encode("utf-8", "surrogatepass")
        self.out += b"X" + struct.pack("<I", len(data)) + data

    def _group(self, items: Any, where: str, close: bytes) -> None:
        self.out += b"("
        for i, item in enumerate(items):
            self.emit(item, f"{where}[{i}]")
        self.out += close

    def _tuple(self, x: Any, where: str) -> None:
        if x:
            self._group(x, where, b"t")
        else:
            self.out += b")"

    def _dict(self, x: dict[Any, Any], where: str) -> None:
        ordered = isinstance(x, OrderedDict)
        if ordered:
            self._global("collections", "OrderedDict")
            self.out += b")R"
        else:
            self.out += b"}"
        self._put(("object", id(x)), x)
        self.out += b"("
        for k, v in x.items():
            self.emit(k, f"a key of {where}")
            self.emit(v, f"{where}[{k!r}]")
        self.out += b"u"
        metadata = getattr(x, "_metadata", None) if ordered else None
        if metadata is not None:
            self.emit({"_metadata": metadata}, where)
            self.out += b"b"

    def _global(self, module: str, name: str) -> None:
        text = f"c{module}\n{name}\n".encode()
        self._once(("global", text), None, lambda: self.out.extend(text))

    def _call(self, module: str, name: str, args: tuple[Any, ...], where: str) -> None:
        self._global(module, name)
        self._group(args, where, b"t")
        self.out += b"R"

    def _tensor(self, t: Tensor) -> None:
        parameter = _is_parameter(t)
        if parameter:
            self._global("torch._utils", "_rebuild_parameter")
            self.out += b"("
        self._plain_tensor(t, False if parameter else bool(t.requires_grad))
        if parameter:
            self.out += b"\x88" if t.requires_grad else b"\x89"
            self._hooks()
            self.out += b"tR"

    def _plain_tensor(self, t: Tensor, requires_grad: bool) -> None:
        key, numel, offset, stride = self.storages.add(t)
        name = dtype_name(t.dtype)
        kind = _KINDS.get(name)
        self._global("torch._utils", "_rebuild_tensor_v2" if kind else "_rebuild_tensor_v3")
        self.out += b"(("
        self.emit("storage", "")
        self._global("torch" if kind else "torch.storage", kind or "UntypedStorage")
        self.emit(key, "")
        self.emit("cpu", "")
        self._int(numel if kind else numel * t.dtype.itemsize)
        self.out += b"tQ"
        self._int(offset)
        self._tuple(tuple(t.shape), "")
        self._tuple(stride, "")
        self.out += b"\x88" if requires_grad else b"\x89"
        self._hooks()
        if not kind:
            self._global("torch", name)
        self.out += b"tR"

    def _hooks(self) -> None:
        self._global("collections", "OrderedDict")
        self.out += b")R"


def _is_parameter(t: Any) -> bool:
    # Where nn was never loaded there are no parameters.
    nn = sys.modules.get("tinyfin.nn")
    return nn is not None and isinstance(t, nn.Parameter)


def _is_numpy_scalar(x: Any) -> bool:
    np = sys.modules.get("numpy")
    return np is not None and isinstance(x, np.generic)


def write_zip(obj: Any, f: BinaryIO) -> None:
    """Writes an object of tensors and plain containers as a PyTorch file, which
    `torch.load(weights_only=True)` reads.

    Raises:
        TypeError: the object holds something else.

    >>> import io, tinyfin
    >>> f = io.BytesIO()
    >>> write_zip({"w": tinyfin.ones(2)}, f)
    >>> f.getvalue()[:2]
    b'PK'
    """
    import zipfile

    emitter = Emitter(obj)
    data = emitter.pickle()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as z:
        _record(z, "data.pkl", data)
        _record(z, ".format_version", b"1")
        _record(z, ".storage_alignment", str(_ALIGNMENT).encode())
        _record(z, "byteorder", sys.byteorder.encode())
        for key, content in enumerate(emitter.storages.contents):
            _record(z, f"data/{key}", content)
        _record(z, "version", b"3\n")


def _record(z: Any, name: str, data: Any) -> None:
    """Adds a record whose content begins at a multiple of the alignment, padded as PyTorch pads
    it.
    """
    import zipfile

    info = zipfile.ZipInfo(f"{_ROOT}/{name}", (1980, 1, 1, 0, 0, 0))
    size = info.file_size = len(data)
    big = size * 1.05 > _ZIP64_LIMIT
    header = 30 + len(info.filename.encode()) + 4 + (20 if big else 0)
    padding = -(z.start_dir + header) % _ALIGNMENT
    info.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
    with z.open(info, "w", force_zip64=big) as record:
        record.write(data)
