"""Advanced indexing: masks, index tensors and lists, read and written."""

from tinyfin.core import exchange, tensor
from tinyfin.core.dtype import all_dtypes
from tinyfin.ops.row import F

Tensor = tensor.Tensor
DTYPES = all_dtypes()
BOOL, UINT8, INT64 = DTYPES["bool"], DTYPES["uint8"], DTYPES["int64"]


def as_index(item):
    """A list, array or tensor as an index tensor; None for what a basic key handles."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return None
    if isinstance(item, bool):
        return exchange.from_sequence(item, None)
    if isinstance(item, Tensor):
        t = item
    elif hasattr(item, "__array_interface__"):
        t = exchange.from_buffer(item).clone()
    elif isinstance(item, (list, tuple, range)):
        t = exchange.from_sequence(list(item), None)
        t = t.to(INT64) if t.numel() == 0 else t
    elif hasattr(item, "__index__"):
        return int(item)
    elif isinstance(item, float):
        raise IndexError(
            f"index: {item!r} is no integer; expected integers, slices, None, Ellipsis, lists or tensors"
        )
    else:
        raise TypeError(
            f"index: {item!r} of type {type(item).__name__} is no index; expected integers, slices, None, "
            "Ellipsis, lists or tensors"
        )
    if t.is_floating_point():
        raise IndexError(f"index: index tensors must be integers or bool, got {t.dtype}")
    return t


def consumed(item):
    """How many axes of the tensor an item takes up."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Tensor) and item.dtype in (BOOL, UINT8):
        return item.ndim
    return 1


def prepare(x, key):
    """A view of x and, per view axis, its index tensor or None."""
    items = list(key) if isinstance(key, tuple) else [key]
    items = [item if as_index(item) is None else as_index(item) for item in items]
    taken = sum(map(consumed, items))
    if taken > x.ndim:
        raise IndexError(f"index: too many indices: {taken} for a tensor of {x.ndim} dimensions")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("index: an index can only have a single ellipsis ('...')")
    place = dots[0] if dots else len(items)
    items[place : place + len(dots)] = [slice(None)] * (x.ndim - taken)
    basic, indices, axis = [], [], 0
    for item in items:
        if isinstance(item, Tensor) and item.dtype in (BOOL, UINT8):
            basic += [None] if item.ndim == 0 else [slice(None)] * item.ndim
            indices += mask_indices(x, item, axis)
            axis += item.ndim
        elif isinstance(item, (Tensor, int)):
            basic.append(slice(None))
            indices.append(item)
            axis += 1
        else:
            basic.append(item)
            indices.append(None)
            axis += item is not None
    return x[tuple(basic)], indices


def mask_indices(x, mask, axis):
    """A mask as the index tensors of its true elements."""
    if mask.ndim == 0:
        return [F.arange(1 if bool(mask) else 0)]
    have = tuple(x.shape[axis : axis + mask.ndim])
    if have != tuple(mask.shape):
        raise IndexError(
            f"index: mask of shape {tuple(mask.shape)} does not fit the tensor's {have} at dimension {axis}"
        )
    places = F.nonzero(mask)
    return [places[:, i] for i in range(mask.ndim)]


def broadcast_indices(indices):
    """Integers and tensors in one common shape, and the bits of the axes they index."""
    tensors = [F.tensor(i) if isinstance(i, int) else i for i in indices if i is not None]
    bits = sum(1 << k for k, i in enumerate(indices) if i is not None)
    tensors = [t.to(INT64) for t in tensors]
    try:
        shape = F.broadcast_shapes(*(t.shape for t in tensors))
    except RuntimeError:
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        raise IndexError(f"index: index tensors of shapes {shapes} do not broadcast") from None
    return [t if t.shape == shape else t.expand(shape) for t in tensors], bits


def getitem(x, key):
    """x[key] for keys that hold masks, lists or tensors."""
    view, indices = prepare(x, key)
    if all(i is None for i in indices):
        return view
    tensors, bits = broadcast_indices(indices)
    return F.index(view, tensors, bits)


def setitem(x, key, value):
    """x[key] = value for keys that hold masks, lists or tensors."""
    view, indices = prepare(x, key)
    if not isinstance(value, Tensor):
        if hasattr(value, "__array_interface__"):
            value = exchange.from_buffer(value).clone()
        else:
            value = exchange.from_sequence(value, None)
    tensors, bits = broadcast_indices(indices)
    value = value.to(view.dtype) if value.dtype is not view.dtype else value
    while (
        value.ndim
        and value.shape[0] == 1
        and value.ndim > tensors[0].ndim + view.ndim - len(tensors)
    ):
        value = value.squeeze(0)
    F.index_put_(view, value, tensors, bits, False)


def index_put(self, indices, values, accumulate=False):
    """A copy with values written (or added, with `accumulate`) at the indexed places."""
    return index_put_(self.clone(), indices, values, accumulate)


def index_put_(self, indices, values, accumulate=False):
    """Writes values (or adds them, with `accumulate`) at the indexed places."""
    view, found = prepare(self, tuple(slice(None) if i is None else i for i in indices))
    tensors, bits = broadcast_indices(found)
    F.index_put_(
        view,
        values if isinstance(values, Tensor) else F.tensor(values),
        tensors,
        bits,
        bool(accumulate),
    )
    return self


tensor.install_hook("getitem", getitem)
tensor.install_hook("setitem", setitem)
METHODS = {"index_put": index_put, "index_put_": index_put_}
for _name, _value in METHODS.items():
    tensor.install_method(_name, _value)
