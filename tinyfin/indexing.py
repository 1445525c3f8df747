"""Advanced indexing: masks, index tensors and lists, read and written."""

from __future__ import annotations

from tinyfin.core import exchange, tensor
from tinyfin.core.dtype import all_dtypes
from tinyfin.creation import from_array
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tinyfin.core.device import Device

Tensor = tensor.Tensor
DTYPES = all_dtypes()
BOOL, UINT8, INT64 = DTYPES["bool"], DTYPES["uint8"], DTYPES["int64"]
WANTED = "expected integers, slices, None, Ellipsis, lists or tensors"


def as_index(item: Any, device: Device) -> Any:
    """A list, array or tensor as an index tensor, an integer as int; what is basic stays."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, Tensor):
        t = item
    elif isinstance(item, bool) or type(item).__name__ == "bool_":
        t = exchange.from_sequence(bool(item))
    elif hasattr(item, "__array_interface__"):
        t = from_array(item).clone()
    elif isinstance(item, (list, tuple, range)):
        t = exchange.from_sequence(list(item))
        t = t.to(INT64) if t.numel() == 0 else t
    elif hasattr(item, "__index__"):
        return item.__index__()
    elif isinstance(item, float):
        raise IndexError(f"index: {item!r} is no integer; {WANTED}")
    else:
        raise TypeError(f"index: {item!r} of type {type(item).__name__} is no index; {WANTED}")
    if t.is_floating_point():
        raise IndexError(f"index: index tensors must be integers or bool, got {t.dtype}")
    if t.ndim == 0 and t.dtype not in (BOOL, UINT8) and not (t.extra_ and "batch" in t.extra_):
        return int(t)
    return t if t.device == device else t.to(device)


def is_mask(item: Any) -> bool:
    """Whether an item picks by truth values."""
    return isinstance(item, Tensor) and item.dtype in (BOOL, UINT8)


def consumed(item: Any) -> int:
    """How many axes of the tensor an item takes up."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if is_mask(item) else 1


def items_of(x: Tensor, key: Any) -> list[Any]:
    """The key's items, with slices in place of an ellipsis and of what is left out."""
    items = [as_index(i, x.device) for i in (key if isinstance(key, tuple) else (key,))]
    taken = sum(map(consumed, items))
    if taken > x.ndim:
        raise IndexError(f"index: too many indices: {taken} for a tensor of {x.ndim} dimensions")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("index: an index can only have a single ellipsis ('...')")
    place = dots[0] if dots else len(items)
    items[place : place + len(dots)] = [slice(None)] * (x.ndim - taken)
    return items


def prepare(x: Tensor, key: Any) -> tuple[Tensor, list[Tensor | None]]:
    """A view of x and, per view axis, its index tensor or None."""
    basic, indices, axis = [], [], 0
    for item in items_of(x, key):
        if is_mask(item):
            basic += [slice(None)] * item.ndim if item.ndim else [None]
            indices += mask_indices(x, item, axis)
        elif isinstance(item, Tensor):
            basic.append(slice(None))
            indices.append(item)
        else:
            basic.append(item)
            if not isinstance(item, int):  # an integer's axis is gone from the view
                indices.append(None)
        axis += consumed(item)
    return x[tuple(basic)], indices


def mask_indices(x: Tensor, mask: Tensor, axis: int) -> list[Tensor]:
    """A mask as the index tensors of its true elements."""
    if mask.ndim == 0:
        return [F.arange(1 if bool(mask) else 0, device=x.device)]
    have = tuple(x.shape[axis : axis + mask.ndim])
    if have != tuple(mask.shape):
        raise IndexError(
            f"index: mask of shape {tuple(mask.shape)} does not fit the tensor's {have} "
            f"at dimension {axis}"
        )
    places = F.nonzero(mask)
    return [places[:, i] for i in range(mask.ndim)]


def broadcast_indices(indices: list[Tensor | None]) -> tuple[list[Tensor], int]:
    """The index tensors in one common shape, and the bits of the axes they index."""
    tensors = [i.to(INT64) for i in indices if i is not None]
    bits = sum(1 << k for k, i in enumerate(indices) if i is not None)
    try:
        shape = F.broadcast_shapes(*(t.shape for t in tensors))
    except RuntimeError:
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        raise IndexError(f"index: index tensors of shapes {shapes} do not broadcast") from None
    return [t if t.shape == shape else t.expand(shape) for t in tensors], bits


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key] for keys that hold masks, lists or tensors."""
    view, indices = prepare(x, key)
    if all(i is None for i in indices):
        return view
    return F.index(view, *broadcast_indices(indices))


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """x[key] = value for keys that hold masks, lists or tensors."""
    view, indices = prepare(x, key)
    if all(i is None for i in indices):
        view[...] = value
        return
    tensors, bits = broadcast_indices(indices)
    value = value_for(view, value)
    while value.ndim > tensors[0].ndim + view.ndim - len(tensors) and value.shape[0] == 1:
        value = value.squeeze(0)
    F.index_put_(view, value, tensors, bits, False)


def value_for(view: Tensor, value: Any) -> Tensor:
    """What is written, as a tensor of the view's dtype and device."""
    if isinstance(value, Tensor):
        return value.to(device=view.device, dtype=view.dtype)
    if hasattr(value, "__array_interface__"):
        return from_array(value).to(device=view.device, dtype=view.dtype)
    return exchange.from_sequence(value, view.dtype).to(view.device)


def index_put(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """A copy with values written (or added, with `accumulate`) at the indexed places."""
    view, tensors, bits = put_places(self, indices, values)
    result = F.index_put(view, values, tensors, bits, bool(accumulate))
    return result if result.shape == self.shape else result.reshape(self.shape)


def index_put_(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Writes values (or adds them, with `accumulate`) at the indexed places."""
    view, tensors, bits = put_places(self, indices, values)
    F.index_put_(view, values, tensors, bits, bool(accumulate))
    return self


def put_places(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> tuple[Tensor, list[Tensor], int]:
    """(a view, index tensors of one shape, bits of the axes that they index) of index_put."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put_: indices is {indices!r}, expected a tuple of Tensors")
    if not isinstance(values, Tensor):
        raise TypeError(f"index_put_: values is {values!r}, expected a Tensor")
    key = tuple(slice(None) if i is None else one_axis(i) for i in indices)
    view, found = prepare(self, key)
    if all(i is None for i in found):
        raise IndexError("index_put_: indices has no index tensor")
    return view, *broadcast_indices(found)


def one_axis(index: Tensor) -> Tensor:
    """An index tensor that keeps its axis: a number alone would be taken out of the view."""
    if not isinstance(index, Tensor):
        raise TypeError(f"index_put_: an index is {index!r}, expected a Tensor")
    return index.reshape(1) if index.ndim == 0 and index.dtype not in (BOOL, UINT8) else index


tensor.install_hook("getitem", getitem)
tensor.install_hook("setitem", setitem)
METHODS = {"index_put": index_put, "index_put_": index_put_}
for _name, _value in METHODS.items():
    tensor.install_method(_name, _value)
