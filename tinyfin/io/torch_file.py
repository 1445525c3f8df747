"""Reads PyTorch's files, zip archives and the older plain pickles, and executes nothing of what
they hold.

Tensors come out over the file's own mapped bytes; those that shared a storage when they were saved
share it again.
"""

from __future__ import annotations

import sys
import zlib
from pickle import UnpicklingError

import tinyfin
from tinyfin.io.archive import directory
from tinyfin.io.raw import dtype_name, dtype_named, place, strided, tensor_from
from tinyfin.io.shown import shown
from tinyfin.io.unpickle import PLAIN, Call, Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tinyfin import Tensor

MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
    "_UntypedStorage": "uint8",
}
_DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
]
_OLD_DTYPES = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}


class StorageType:
    """What a storage class is named in a file, and the dtype of its elements."""

    __slots__ = ("dtype", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtype = STORAGES[name]


class TensorType:
    """Stands for Tensor and Parameter, which a file may name but not build by itself."""

    __slots__ = ()


class Storage:
    """The bytes of one storage in the file, and a flat tensor over them for each dtype they are
    read as.
    """

    def __init__(self, buffer: Any, start: int, size: int, kind: StorageType, device: Any) -> None:
        self.buffer = buffer
        self.start = start
        self.size = size
        self.kind = kind
        self.device = device
        self._flat: dict[str, Tensor] = {}

    def part(self, offset: int, numel: int) -> Storage:
        """Some of the elements; they stay in the memory of the whole, aligned once for all."""
        name = self.kind.dtype
        flat = self.flat(name).narrow(0, offset, numel)
        part = Storage(self.buffer, self.start, self.size, self.kind, self.device)
        part._flat[name] = flat
        return part

    def flat(self, name: str) -> Tensor:
        """All elements in one dimension, as the dtype of that name."""
        if name not in self._flat:
            dt = dtype_named(name)
            try:
                if dt is None:
                    raise NotImplementedError
                whole = tensor_from(self.buffer, dt, (self.size // dt.itemsize,), self.start)
            except NotImplementedError:
                raise UnpicklingError(
                    f"the file holds a tensor of {name}, which this version of tinyfin cannot hold"
                ) from None
            self._flat[name] = place(whole, self.device)
        return self._flat[name]


def _view(storage: Any, name: str, offset: Any, size: Any, stride: Any) -> Tensor:
    """The strided view that a file describes, checked against the storage."""
    if type(storage) is not Storage:
        raise UnpicklingError(f"a tensor is built on a {type(storage).__name__}, not on a storage")
    if type(size) is not tuple or type(stride) is not tuple:
        raise UnpicklingError(f"a tensor has size {shown(size)} and stride {shown(stride)}")
    numbers = (offset, *size, *stride)
    if len(size) != len(stride) or not all(type(x) is int and 0 <= x < 1 << 62 for x in numbers):
        raise UnpicklingError(
            f"a tensor has offset {shown(offset)}, size {shown(size)} and stride {shown(stride)}"
        )
    flat = storage.flat(name)
    if 0 in size:
        return tinyfin.empty(tuple(size), dtype=flat.dtype, device=flat.device)
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if last >= flat.numel():
        raise UnpicklingError(
            f"a tensor reaches element {last} of a storage that has {flat.numel()}"
        )
    return strided(flat, size, stride, offset)


def _flagged(t: Tensor, requires_grad: Any) -> Tensor:
    return t.requires_grad_(True) if requires_grad is True else t


def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """PyTorch's first way to write a tensor."""
    return _view(
        storage, getattr(storage, "kind", StorageType("ByteStorage")).dtype, offset, size, stride
    )


def rebuild_tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """PyTorch's way to write a tensor whose storage knows its dtype."""
    return _flagged(rebuild_tensor(storage, offset, size, stride), requires_grad)


def rebuild_tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dt: Any,
    metadata: Any = None,
) -> Tensor:
    """PyTorch's way to write a tensor of a dtype that has no storage class."""
    name = dtype_name(dt) if isinstance(dt, tinyfin.dtype) else None
    if name not in _DTYPES:
        raise UnpicklingError(f"a tensor has {shown(dt)} for its dtype")
    return _flagged(_view(storage, name, offset, size, stride), requires_grad)


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Any:
    """A parameter over the tensor that was built for it."""
    if not isinstance(data, tinyfin.Tensor):
        raise UnpicklingError(f"a parameter is built on a {type(data).__name__}")
    from tinyfin.nn import Parameter

    return Parameter(data, requires_grad=requires_grad is True)


_REBUILD = (rebuild_tensor, rebuild_tensor_v2, rebuild_tensor_v3, rebuild_parameter)


def rebuild_from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor that carried attributes: the tensor, without them."""
    allowed = type(function) is Call and function.function in _REBUILD
    if not allowed or type(kind) is not TensorType or not isinstance(args, tuple):
        raise UnpicklingError("a tensor of a class of its own is not plain data")
    return function.function(*args)


def _device(kind: str, index: int | None = None) -> Any:
    if type(kind) is not str or type(index) not in (int, type(None)):
        raise UnpicklingError(f"a device is given as {shown(kind)}, {shown(index)}")
    text = kind if index is None else f"{kind}:{index}"
    try:
        return tinyfin.device(text)
    except (RuntimeError, ValueError):
        return text


def _size(items: Sequence[int] = ()) -> tuple[int, ...]:
    return tuple(int(n) for n in items)


def _table() -> dict[tuple[str, str], Any]:
    """Every name that a file may refer to, and what it stands for here."""
    kinds = {
        (module, name): StorageType(name)
        for name in STORAGES
        for module in ("torch", "torch.cuda", "torch.storage")
    }
    dtypes = {("torch", n): dt for n in _DTYPES if (dt := dtype_named(n)) is not None}
    old = {("torch", n): dtype_named(ours) for n, ours in _OLD_DTYPES.items()}
    tensor = TensorType()
    return {
        **PLAIN,
        **kinds,
        **dtypes,
        **old,
        ("torch._utils", "_rebuild_tensor"): Call(rebuild_tensor),
        ("torch._utils", "_rebuild_tensor_v2"): Call(rebuild_tensor_v2),
        ("torch._utils", "_rebuild_tensor_v3"): Call(rebuild_tensor_v3),
        ("torch._utils", "_rebuild_parameter"): Call(rebuild_parameter),
        ("torch._utils", "_rebuild_parameter_with_state"): Call(rebuild_parameter),
        ("torch._tensor", "_rebuild_from_type_v2"): Call(rebuild_from_type),
        ("torch", "Tensor"): tensor,
        ("torch.nn.parameter", "Parameter"): tensor,
        ("torch", "Size"): Call(_size),
        ("torch", "device"): Call(_device),
    }


class Archive:
    """The records of an uncompressed zip archive, found in place in a buffer."""

    def __init__(self, buffer: Any, names: dict[str, Any], prefix: str) -> None:
        self.buffer = buffer
        self.names = names
        self.prefix = prefix

    def find(self, name: str) -> tuple[int, int]:
        """Where a record begins, and its size; its checksum is verified."""
        info = self.names.get(f"{self.prefix}/{name}")
        if info is None:
            raise UnpicklingError(
                f"the archive has no record {name!r}: the file is damaged or incomplete"
            )
        if info.compress_type != 0 or info.flag_bits & 1:
            raise UnpicklingError(
                f"the archive's record {name!r} is compressed or encrypted; PyTorch writes neither"
            )
        header = bytes(self.buffer[info.header_offset : info.header_offset + 30])
        start = (
            info.header_offset
            + 30
            + int.from_bytes(header[26:28], "little")
            + int.from_bytes(header[28:30], "little")
        )
        if header[:4] != b"PK\x03\x04" or start + info.file_size > len(self.buffer):
            raise UnpicklingError(
                f"the archive's record {name!r} is cut off: the file is damaged or incomplete"
            )
        content = memoryview(self.buffer)[start : start + info.file_size]
        # Zero means that the writer was told to leave checksums out.
        if info.CRC and zlib.crc32(content) != info.CRC:
            raise UnpicklingError(
                f"the archive's record {name!r} does not match its checksum: the file is damaged"
            )
        return start, info.file_size

    def read(self, name: str) -> bytes:
        """The bytes of a record."""
        start, size = self.find(name)
        return bytes(self.buffer[start : start + size])


def open_archive(buffer: Any) -> Archive:
    """The archive in a buffer, which must hold one PyTorch pickle.

    Raises:
        UnpicklingError: it is damaged, or a TorchScript program, or something else in a zip file.
    """
    names = directory(buffer)
    pickles = [n for n in names if n.endswith("/data.pkl") and n.count("/") == 1]
    if len(pickles) != 1:
        raise UnpicklingError("the zip archive holds no PyTorch tensors: it has no record data.pkl")
    prefix = pickles[0].partition("/")[0]
    if f"{prefix}/constants.pkl" in names:
        raise UnpicklingError(
            "the file is a TorchScript program, not plain tensors; save the module's state_dict "
            "instead"
        )
    return Archive(buffer, names, prefix)


def _swapped(buffer: Any, start: int, size: int, kind: StorageType) -> bytearray:
    """The bytes of a storage with each element's bytes turned round."""
    dt = dtype_named(kind.dtype)
    width = dt.itemsize if dt is not None else 1
    if kind.dtype.startswith("complex"):
        width //= 2
    part = bytes(buffer[start : start + size])
    turned = bytearray(size)
    for i in range(width):
        turned[i::width] = part[width - 1 - i :: width]
    return turned


def _storage_id(pid: Any) -> tuple[StorageType, str, int, Any]:
    """Kind, key, number of elements and view of the storage that a persistent id names."""
    if (
        not isinstance(pid, tuple)
        or len(pid) not in (5, 6)
        or pid[0] not in ("storage", b"storage")
    ):
        raise UnpicklingError("the pickle refers to outside data other than a storage")
    _, kind, key, _, numel, *view = pid
    if type(kind) is not StorageType or type(key) is not str or type(numel) is not int or numel < 0:
        raise UnpicklingError(f"the pickle describes a storage as {shown(pid[1:])}")
    return kind, key, numel, view[0] if view else None


def _width(kind: StorageType) -> int:
    dt = dtype_named(kind.dtype)
    if dt is None:
        raise UnpicklingError(
            f"the file holds a storage of {kind.dtype}, which this version of tinyfin does not have"
        )
    return dt.itemsize


def read_zip(buffer: Any, device: Any = None) -> Any:
    """The object in a PyTorch zip archive.

    Raises:
        UnpicklingError: the archive is damaged, or its pickle asks for more than plain data;
            nothing was executed.
    """
    archive = open_archive(buffer)
    order = (
        archive.read("byteorder").decode("ascii", "replace")
        if f"{archive.prefix}/byteorder" in archive.names
        else "little"
    )
    storages: dict[str, Storage] = {}

    def persistent(pid: Any) -> Storage:
        kind, key, numel, _ = _storage_id(pid)
        if key not in storages:
            start, size = archive.find(f"data/{key}")
            if size < numel * _width(kind):
                raise UnpicklingError(
                    f"storage {key} has {size} bytes, its {numel} elements take "
                    f"{numel * _width(kind)}"
                )
            if order == sys.byteorder:
                storages[key] = Storage(buffer, start, size, kind, device)
            else:
                storages[key] = Storage(_swapped(buffer, start, size, kind), 0, size, kind, device)
        return storages[key]

    start, size = archive.find("data.pkl")
    return Machine(memoryview(buffer)[start : start + size], 0, _table(), persistent).load()


def read_legacy(buffer: Any, device: Any = None) -> Any:
    """The object in a file from before PyTorch 1.6: five pickles, then the bytes of the storages.

    Raises:
        UnpicklingError: the file is damaged or no such file, or asks for more than plain data;
            nothing was executed.
    """
    at, head = 0, []
    for _ in range(3):
        machine = Machine(buffer, at)
        head.append(machine.load())
        if len(head) == 1 and head[0] != MAGIC:
            raise UnpicklingError(
                "the file is a pickle, but not one that PyTorch wrote: tensors cannot be read "
                "from it"
            )
        at = machine.at
    _, protocol, system = head
    if protocol != _LEGACY_PROTOCOL or not isinstance(system, dict):
        raise UnpicklingError(
            f"the file has PyTorch's old format in version {shown(protocol)}; {_LEGACY_PROTOCOL} can "
            "be read"
        )
    found: dict[str, tuple[Any, ...]] = {}
    machine = Machine(
        buffer,
        at,
        _dry_table(),
        lambda pid: found.setdefault(_storage_id(pid)[1], _storage_id(pid)[0::2]),
    )
    machine.load()
    keys = Machine(buffer, machine.at)
    listed = keys.load()
    little = system.get("little_endian", True)
    storages = _legacy_storages(buffer, keys.at, listed, found, little, device)
    return Machine(buffer, at, _table(), lambda pid: _legacy_storage(storages, pid)).load()


def _dry_table() -> dict[tuple[str, str], Any]:
    """The same names, with calls that make nothing: for finding out which storages a pickle speaks
    of.
    """
    return {
        name: Call(_nothing) if type(x) is Call and name not in PLAIN else x
        for name, x in _table().items()
    }


def _nothing(*args: Any) -> None:
    return None


def _legacy_storages(
    buffer: Any,
    at: int,
    keys: Any,
    found: dict[str, tuple[StorageType, int]],
    little: bool,
    device: Any,
) -> dict[str, Storage]:
    if not isinstance(keys, list) or not all(type(k) is str and k in found for k in keys):
        raise UnpicklingError(
            "the list of storages does not match the tensors: the file is damaged"
        )
    storages: dict[str, Storage] = {}
    for key in keys:
        kind, numel = found[key]
        claimed = int.from_bytes(buffer[at : at + 8], "little")
        size = numel * _width(kind)
        if claimed != numel or at + 8 + size > len(buffer):
            raise UnpicklingError(
                f"storage {key} should hold {numel} elements: the file is cut off or damaged"
            )
        if little == (sys.byteorder == "little"):
            storages[key] = Storage(buffer, at + 8, size, kind, device)
        else:
            storages[key] = Storage(_swapped(buffer, at + 8, size, kind), 0, size, kind, device)
        at += 8 + size
    return storages


def _legacy_storage(storages: dict[str, Storage], pid: Any) -> Storage:
    kind, key, _, view = _storage_id(pid)
    if key not in storages:
        raise UnpicklingError(f"the file has no bytes for storage {key}: it is damaged")
    whole = storages[key]
    if view is None:
        return whole
    # Old files name part of a storage: (its key, offset, number of elements).
    _, offset, numel = view
    if not 0 <= offset <= offset + numel <= whole.size // _width(kind):
        raise UnpicklingError(f"a view reaches beyond storage {key}")
    return whole.part(offset, numel)
