"""Checkpoints: the whole state of a training run in one file, a safetensors file with JSON beside
the tensors. Never pickle.

The metadata holds `format`, `version`, `sha256` and `state`. `state` is the JSON tree of
everything that is no tensor, in which a tensor stands as its name. `sha256` is taken over the
whole file with the digest itself written as 64 zeros.
"""

from __future__ import annotations

import os

import tinyfin
from tinyfin.io.atomic import write_atomically
from tinyfin.io.raw import dtype_named, read_file
from tinyfin.io.safetensors import SafetensorError, Writer, read_header, read_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from tinyfin import Tensor

    Path = str | os.PathLike[str]

FORMAT = "tinyfin-checkpoint"
VERSION = 1
_BLANK = "0" * 64
_NOT_OURS = "It was not written by save_checkpoint"
_PARTS = ("model", "optimizer", "scheduler", "generator", "loader")
# Keys that begin so mark what JSON has no form for.
_MARK = "$"


class CheckpointError(RuntimeError):
    """A checkpoint cannot be read: the message says what is wrong with it and what can be done."""


def save_checkpoint(
    path: Path,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    generator: Any = None,
    loader: Any = None,
    user: Any = None,
) -> None:
    """Writes the state of a training run to one file, atomically: a killed process leaves the old
    file or the new one.

    Args:
        model, optimizer, scheduler, loader: an object with `state_dict()`, or a dict of such
            objects by name.
        generator: a `Generator`, or True for the global one, or a dict of generators by name.
        user: the epoch, the best score, settings: tensors, numbers, strings, bytes, None, and
            dicts, lists and tuples of them; they come back as they are.

    Raises:
        TypeError: a state holds something that is neither tensor nor plain data; the message says
            where.
        OSError: the file cannot be written; an old one is then untouched.

    >>> import tempfile, tinyfin
    >>> model = tinyfin.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_checkpoint(folder + "/run.ckpt", model=model, user={"epoch": 3})
    ...     load_checkpoint(folder + "/run.ckpt", model=model)
    {'epoch': 3}
    """
    import json

    given = {
        "model": model,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "generator": generator,
        "loader": loader,
    }
    tensors: dict[str, Tensor] = {}
    tree: dict[str, Any] = {"user": _encode_user(user, tensors)}
    for part, x in given.items():
        if x is not None:
            tree[part] = _encode_part(x, part, tensors)
    text = json.dumps(tree, allow_nan=False, separators=(",", ":"))
    metadata = {"format": FORMAT, "version": str(VERSION), "sha256": _BLANK, "state": text}
    writer = Writer(tensors, metadata)
    write_atomically(path, lambda f: _write(writer, f))


def _write(writer: Writer, f: BinaryIO) -> None:
    """Writes the file with a blank digest, then the digest over it."""
    from hashlib import sha256

    digest = sha256(writer.header)
    f.write(writer.header)
    for chunk in writer.chunks():
        digest.update(chunk)
        f.write(chunk)
    f.seek(_digest_at(writer.header))
    f.write(digest.hexdigest().encode())


def _digest_at(header: bytes) -> int:
    """Where the digest stands in the file; the metadata come first, and `state`, which could hold
    anything, after it.
    """
    key = b'"sha256":"'
    at = header.find(key, 8)
    return at + len(key) if at >= 0 else -1


def _encode_part(x: Any, part: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """{"one": state} of an object, or {"each": {name: state}} of a dict of objects."""
    state_of = _generator_state if part == "generator" else _state_of
    if not isinstance(x, dict):
        return {"one": _encode(state_of(x), part, tensors)}
    return {"each": {k: _encode(state_of(v), f"{part}.{k}", tensors) for k, v in x.items()}}


def _state_of(x: Any) -> Any:
    if not hasattr(x, "state_dict"):
        raise TypeError(f"save_checkpoint: {type(x).__name__} has no state_dict()")
    return x.state_dict()


def _generator_state(g: Any) -> Any:
    return tinyfin.get_rng_state() if g is True else g.get_state()


def _encode_user(x: Any, tensors: dict[str, Tensor]) -> Any:
    """The user's data, if they come back as what they are."""
    try:
        _check_exact(x, "user")
    except RecursionError:
        raise TypeError("save_checkpoint: user holds itself, or is nested too deep") from None
    return _encode(x, "user", tensors)


def _check_exact(x: Any, where: str) -> None:
    """Raises TypeError for anything that a file gives back as another type: a named tuple, a set."""
    if type(x) is dict:
        for k, v in x.items():
            _check_exact(k, f"a key of {where}")
            _check_exact(v, f"{where}.{k}")
    elif type(x) in (list, tuple):
        for i, v in enumerate(x):
            _check_exact(v, f"{where}.{i}")
    elif type(x) not in (type(None), bool, int, float, str, bytes, tinyfin.Tensor, tinyfin.dtype):
        raise TypeError(
            f"save_checkpoint: {where} is a {type(x).__name__}; user data must be tensors, "
            "numbers, strings, bytes, None, and dicts, lists and tuples of them"
        )


def _encode(x: Any, where: str, tensors: dict[str, Tensor]) -> Any:
    """The JSON form of nested state; tensors are put into `tensors` under the path by which they
    were reached.
    """
    if x is None or isinstance(x, (bool, str)):
        return x
    if isinstance(x, tinyfin.Tensor):
        name, k = where, 1
        while name in tensors:
            name, k = f"{where}#{k}", k + 1
        tensors[name] = x
        return {"$tensor": name}
    if isinstance(x, int):
        # JSON readers give up on numbers of thousands of digits.
        return int(x) if abs(x) < 1 << 64 else {"$int": hex(x)}
    if isinstance(x, float):
        return float(x) if abs(x) < float("inf") else {"$float": repr(float(x))}
    if isinstance(x, dict):
        return _encode_dict(x, where, tensors)
    if isinstance(x, (list, tuple)):
        items = [_encode(v, f"{where}.{i}", tensors) for i, v in enumerate(x)]
        return {"$tuple": items} if isinstance(x, tuple) else items
    if isinstance(x, bytes):
        return {"$bytes": x.hex()}
    if isinstance(x, tinyfin.dtype):
        return {"$dtype": str(x).rpartition(".")[2]}
    if hasattr(x, "dtype") and hasattr(x, "item") and getattr(x, "ndim", 1) == 0:
        return _encode(x.item(), where, tensors)
    raise TypeError(
        f"save_checkpoint: {where} is a {type(x).__name__}; state must be tensors and plain data"
    )


def _encode_dict(x: dict[Any, Any], where: str, tensors: dict[str, Tensor]) -> Any:
    pairs = [(k, _encode(v, f"{where}.{k}", tensors)) for k, v in x.items()]
    if all(isinstance(k, str) and not k.startswith(_MARK) for k in x):
        return dict(pairs)
    return {"$dict": [[_encode(k, f"a key of {where}", tensors), v] for k, v in pairs]}


def _decode(x: Any, tensor: Any) -> Any:
    """State from its JSON form; `tensor` gives the tensor of a name."""
    if isinstance(x, list):
        return [_decode(v, tensor) for v in x]
    if not isinstance(x, dict):
        return x
    if len(x) != 1 or not next(iter(x)).startswith(_MARK):
        return {k: _decode(v, tensor) for k, v in x.items()}
    ((kind, value),) = x.items()
    if kind == "$tensor":
        return tensor(value)
    if kind == "$tuple":
        return tuple(_decode(v, tensor) for v in value)
    if kind == "$dict":
        return {_decode(k, tensor): _decode(v, tensor) for k, v in value}
    return _SCALARS[kind](value)


def _dtype(name: str) -> Any:
    dt = dtype_named(name)
    if not isinstance(dt, tinyfin.dtype):
        raise ValueError(f"no dtype {name!r}")
    return dt


_SCALARS = {
    "$int": lambda text: int(text, 16),
    "$float": float,
    "$bytes": bytes.fromhex,
    "$dtype": _dtype,
}


def load_checkpoint(
    path: Path,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    generator: Any = None,
    loader: Any = None,
) -> Any:
    """Reads a checkpoint into the objects given, and returns the `user` data saved with it.

    The file is checked as a whole, every part asked for must be in it, and what it holds must fit,
    before the first object is touched; if it raises, nothing has changed. Parts that are in the
    file and not asked for are left alone.

    Args:
        model, optimizer, scheduler, loader: an object with `load_state_dict()`, or a dict of such
            objects by name.
        generator: a `Generator`, or True for the global one, or a dict of generators by name.

    Raises:
        CheckpointError: the file is damaged, cut off, no checkpoint, from a later format, or lacks
            a part.
        FileNotFoundError: there is no such file.
        RuntimeError, ValueError, TypeError: the state does not fit an object; as its own
            `load_state_dict()` raises.

    >>> import tempfile, tinyfin
    >>> a, b = tinyfin.nn.Linear(2, 1), tinyfin.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_checkpoint(folder + "/run.ckpt", model=a)
    ...     load_checkpoint(folder + "/run.ckpt", model=b)
    >>> bool((a.weight == b.weight).all())
    True
    """
    given = {
        "model": model,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "generator": generator,
        "loader": loader,
    }
    buffer, header, tree = _open(path)
    states = {}
    for part, x in given.items():
        if x is not None:
            if part not in tree:
                held = ", ".join(p for p in _PARTS if p in tree) or "nothing"
                raise CheckpointError(
                    f"{path} holds no {part}: it was saved with {held}. Leave {part} out, or use "
                    "another file"
                )
            _check_names(path, part, x, tree[part])
            states[part] = _decode_part(path, tree[part], part, buffer, header)
    user = _decode_part(path, {"one": tree["user"]}, "user", buffer, header)
    _restore([pair for part, state in states.items() for pair in _pairs(part, given[part], state)])
    return user


def _check_names(path: Path, part: str, x: Any, saved: Any) -> None:
    if not isinstance(saved, dict) or not ("one" in saved or isinstance(saved.get("each"), dict)):
        raise CheckpointError(f"{path}: {part} is not as save_checkpoint writes it. {_NOT_OURS}")
    held = sorted(saved["each"]) if "each" in saved else "one object"
    asked = sorted(x) if isinstance(x, dict) else "one object"
    if held != asked:
        raise CheckpointError(f"{path}: {part} was saved as {held}, asked for is {asked}")


def _decode_part(path: Path, saved: dict[str, Any], part: str, buffer: Any, header: Any) -> Any:
    """One state, or the states of several objects by name."""

    def tensor(name: str) -> Tensor:
        t = read_tensor(buffer, header, name)
        # A model copies what it is given; others may keep it, so they get memory of their own.
        return t if part == "model" else t.clone()

    try:
        if "each" in saved:
            return {name: _decode(state, tensor) for name, state in saved["each"].items()}
        return _decode(saved["one"], tensor)
    except (KeyError, TypeError, ValueError, RecursionError) as e:
        raise CheckpointError(f"{path}: {part} cannot be read ({e!r}). {_NOT_OURS}") from e


class _Generator:
    """A generator, or the global one, as an object with `state_dict()`."""

    def __init__(self, g: Any) -> None:
        self.g = g

    def state_dict(self) -> Any:
        return _generator_state(self.g)

    def load_state_dict(self, state: Tensor) -> None:
        tinyfin.set_rng_state(state) if self.g is True else self.g.set_state(state)


def _pairs(part: str, x: Any, state: Any) -> list[tuple[Any, Any]]:
    """Each object of a part with its state."""
    pairs = [(one, state[name]) for name, one in x.items()] if isinstance(x, dict) else [(x, state)]
    return [(_Generator(one), s) for one, s in pairs] if part == "generator" else pairs


def _restore(pairs: list[tuple[Any, Any]]) -> None:
    """Puts every state in its object, or none.

    Modules and optimizers look through a state before they take it. Of other objects the present
    state is kept until all have theirs, so that it can be put back.
    """
    from copy import deepcopy

    for x, _ in pairs:
        if not hasattr(x, "load_state_dict"):
            raise TypeError(f"load_checkpoint: {type(x).__name__} has no load_state_dict()")
    own = [(x, state) for x, state in pairs if _looks_first(x)]
    ready = [x._loading(state) for x, state in own]
    before: list[tuple[Any, Any]] = []
    try:
        for x, state in pairs:
            if not _looks_first(x):
                before.append((x, deepcopy(x.state_dict())))
                x.load_state_dict(state)
        for commit in ready:
            commit()
    except BaseException:
        for x, state in reversed(before):
            x.load_state_dict(state)
        raise


def _looks_first(x: Any) -> bool:
    """Whether loading is tinyfin's own: a class may have put another `load_state_dict` there."""
    own = ("tinyfin.nn.state", "tinyfin.optim.optimizer")
    return type(x).load_state_dict.__module__ in own


def _open(path: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Buffer, header and state of a checkpoint that has passed every test."""
    import json

    buffer = read_file(path)
    _check_kind(path, buffer)
    try:
        header = read_header(buffer)
    except SafetensorError as e:
        raise CheckpointError(
            f"{path} is damaged or was not written to its end ({e}). Use an earlier checkpoint, "
            "or copy the file again"
        ) from e
    metadata = header.metadata or {}
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is a plain safetensors file, no checkpoint. Read its tensors with tinyfin.load"
        )
    version = metadata.get("version", "")
    if not version.isdecimal() or not 1 <= int(version) <= VERSION:
        raise CheckpointError(
            f"{path} has checkpoint format {version!r}; this tinyfin ({tinyfin.__version__}) "
            f"reads up to {VERSION}. Read it with the version that wrote it, or a later one"
        )
    _check_digest(path, buffer, metadata.get("sha256", ""), header.start)
    try:
        tree = json.loads(metadata["state"])
        tree["user"]
    except (KeyError, TypeError, ValueError, RecursionError) as e:
        raise CheckpointError(f"{path} has no readable state ({e!r}). {_NOT_OURS}") from e
    return buffer, header, tree


def _check_kind(path: Path, buffer: Any) -> None:
    if not len(buffer):
        raise CheckpointError(f"{path} is empty. Use an earlier checkpoint")
    start = bytes(buffer[:9])
    if start[:2] == b"PK" or (start[:1] == b"\x80" and start[8:] != b"{"):
        raise CheckpointError(
            f"{path} is a PyTorch or NumPy file, no checkpoint. Read its tensors with tinyfin.load"
        )
    if start[8:] != b"{":
        raise CheckpointError(
            f"{path} is no checkpoint, or its beginning is damaged. Use an earlier checkpoint"
        )


def _check_digest(path: Path, buffer: Any, claimed: str, start: int) -> None:
    from hashlib import sha256

    head = bytes(buffer[:start])
    at = _digest_at(head)
    digest = sha256()
    if at >= 0:
        digest.update(head[:at] + _BLANK.encode() + head[at + 64 :])
        with memoryview(buffer) as view, view[start:] as rest:
            digest.update(rest)
    if at < 0 or digest.hexdigest() != claimed:
        raise CheckpointError(
            f"{path} is damaged: its content does not match its checksum. Use an earlier "
            "checkpoint, or copy the file again"
        )
