"""Collation: samples in, a batch out. Knows types of samples, never datasets."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import tinyfin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tinyfin import Tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Makes one batch of a list of samples that are built alike.

    Tensors, NumPy arrays and numbers become a tensor with a new first dimension (floats in
    float64, ints in int64); strings and bytes stay a list; mappings, namedtuples and sequences are
    collated field by field (a plain tuple gives a list).

    Raises:
        TypeError: a sample holds something else.
        RuntimeError: shapes or lengths differ between samples.
        ValueError: the batch is empty.

    >>> batch = default_collate([{"x": 1.5, "name": "a"}, {"x": 2.5, "name": "b"}])
    >>> batch["x"].tolist(), batch["name"]
    ([1.5, 2.5], ['a', 'b'])
    """
    if not len(batch):
        raise ValueError("default_collate: the batch is empty")
    first = batch[0]
    if isinstance(first, tinyfin.Tensor):
        return _stack(batch)
    if isinstance(first, float):
        return tinyfin.tensor(batch, dtype=tinyfin.float64)
    if isinstance(first, int):
        return tinyfin.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if _is_numpy(first):
        return _stack_arrays(batch)
    if isinstance(first, Mapping):
        return _rebuild_mapping(first, {k: default_collate([s[k] for s in batch]) for k in first})
    if isinstance(first, Sequence):
        return _collate_sequences(batch)
    raise TypeError(
        "default_collate: a batch can be made of tensors, NumPy arrays, numbers, strings, "
        f"mappings and sequences; found {type(first).__name__} (give the DataLoader a collate_fn)"
    )


def default_convert(data: Any) -> Any:
    """Turns NumPy arrays inside a single sample into tensors and leaves the rest as it is.

    >>> default_convert({"x": "text", "n": 3})
    {'x': 'text', 'n': 3}
    """
    if isinstance(data, (tinyfin.Tensor, str, bytes)):
        return data
    if _is_numpy(data):
        return data if data.dtype.kind in "SUO" else tinyfin.as_tensor(_native(data))
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple):
        return (
            type(data)(*map(default_convert, data))
            if hasattr(data, "_fields")
            else list(map(default_convert, data))
        )
    if isinstance(data, Sequence):
        return _rebuild_sequence(data, [default_convert(v) for v in data])
    return data


def _is_numpy(x: Any) -> bool:
    # What never imported NumPy cannot hold its arrays.
    np = sys.modules.get("numpy")
    return np is not None and isinstance(x, (np.ndarray, np.generic))


def _native(a: Any) -> Any:
    """The array in this machine's byte order."""
    return a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))


def _stack(batch: Sequence[Tensor]) -> Tensor:
    shape = batch[0].shape
    for i, t in enumerate(batch):
        if not isinstance(t, tinyfin.Tensor):
            raise TypeError(
                f"default_collate: sample 0 is a tensor, sample {i} a {type(t).__name__}"
            )
        if t.shape != shape:
            raise RuntimeError(
                f"default_collate: sample 0 has shape {tuple(shape)}, sample {i} has "
                f"{tuple(t.shape)}; tensors of one batch must have equal shapes"
            )
    return tinyfin.stack(list(batch), 0)


def _stack_arrays(batch: Sequence[Any]) -> Tensor:
    import numpy as np

    first = np.asarray(batch[0])
    if first.dtype.kind in "SUOMmV":
        raise TypeError(
            f"default_collate: NumPy arrays of dtype {first.dtype} cannot become a tensor"
        )
    arrays = [np.asarray(a) for a in batch]
    for i, a in enumerate(arrays):
        if a.shape != first.shape:
            raise RuntimeError(
                f"default_collate: sample 0 has shape {first.shape}, sample {i} has {a.shape}; "
                "arrays of one batch must have equal shapes"
            )
    if all(a.dtype == first.dtype for a in arrays):
        return tinyfin.from_numpy(_native(np.stack(arrays)))
    # Tensors of different dtypes promote as tensors do, not by NumPy's rules.
    return tinyfin.stack([tinyfin.as_tensor(_native(a)) for a in arrays], 0)


def _collate_sequences(batch: Sequence[Sequence[Any]]) -> Any:
    first = batch[0]
    for i, sample in enumerate(batch):
        if len(sample) != len(first):
            raise RuntimeError(
                f"default_collate: sample 0 has {len(first)} fields, sample {i} has "
                f"{len(sample)}; samples of one batch must have equal lengths"
            )
    fields = [default_collate(list(field)) for field in zip(*batch, strict=True)]
    if isinstance(first, tuple):
        return type(first)(*fields) if hasattr(first, "_fields") else fields
    return _rebuild_sequence(first, fields)


def _rebuild_mapping(like: Any, items: dict[Any, Any]) -> Any:
    """A mapping of the same type, or a dict where the type cannot be made from one."""
    if type(like) is dict:
        return items
    try:
        if isinstance(like, MutableMapping):
            twin = copy.copy(like)
            twin.update(items)
            return twin
        return type(like)(items)
    except TypeError:
        return items


def _rebuild_sequence(like: Any, items: list[Any]) -> Any:
    """A sequence of the same type, or a list where the type cannot be made from one."""
    if type(like) is list:
        return items
    try:
        if isinstance(like, MutableSequence):
            twin = copy.copy(like)
            for i, item in enumerate(items):
                twin[i] = item
            return twin
        return type(like)(items)
    except TypeError:
        return items


def move(data: Any, device: Any) -> Any:
    """The same batch with its tensors on `device`.

    >>> move(["text", 3], "cpu")
    ['text', 3]
    """
    if isinstance(data, tinyfin.Tensor):
        return data.to(device)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {k: move(v, device) for k, v in data.items()})
    if isinstance(data, tuple):
        items = [move(v, device) for v in data]
        return type(data)(*items) if hasattr(data, "_fields") else tuple(items)
    if isinstance(data, Sequence):
        return _rebuild_sequence(data, [move(v, device) for v in data])
    return data
