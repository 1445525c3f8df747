"""Rules of vmap for rows that pick and place by index."""

from __future__ import annotations

from tinyfin.autograd.levels import Level, entry_at
from tinyfin.autograd.vmap import by_loop, front, moved
from tinyfin.core import tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor


def shared_index(level: Level, args: tuple) -> bool:
    """Whether the index is the same for the whole batch."""
    return entry_at(args[1], level) is None


def offsets(level: Level, ndim: int, step: int, device: Any) -> Tensor:
    """0, step, 2 step ... for each sample, with `ndim` axes of size one behind."""
    return F.reshape(F.arange(0, level.size, device=device) * step, (level.size, *(1,) * ndim))


def joined(value: Tensor, dim: int) -> Tensor:
    """(B, ..., n, ...) with axis `dim` of the sample as (B n, ...)."""
    value = moved(value, dim + 1, 1)
    return F.reshape(value, (value.shape[0] * value.shape[1], *value.shape[2:]))


def split(value: Tensor, size: int, dim: int) -> Tensor:
    """The inverse of joined."""
    value = F.reshape(value, (size, value.shape[0] // max(size, 1), *value.shape[1:]))
    return moved(value, 1, dim + 1)


def index_select(level: Level, op, args: tuple, attrs: tuple):
    """One index for all moves the axis up; indices of their own count through all samples."""
    x, index = args
    if x.ndim == 0:
        return F.squeeze(index_select(level, op, (F.unsqueeze(x, 0), index), (0,)), 1)
    value = front(level, x, True)
    if shared_index(level, args):
        return op.run_with((value, index), (attrs[0] + 1,))
    n = x.shape[attrs[0]]
    here = F.reshape(front(level, index) + offsets(level, 1, n, x.device), (-1,))
    return split(op.run_with((joined(value, attrs[0]), here), (0,)), level.size, attrs[0])


def index_embed(level: Level, op, args: tuple, attrs: tuple):
    """The adjoint of index_select."""
    x, index = args
    shape, dim = attrs
    value = front(level, x, True)
    if shared_index(level, args):
        return op.run_with((value, index), ((level.size, *shape), dim + 1))
    here = F.reshape(front(level, index) + offsets(level, 1, shape[dim], x.device), (-1,))
    rest = (*shape[:dim], *shape[dim + 1 :])
    placed = op.run_with((joined(value, dim), here), ((level.size * shape[dim], *rest), 0))
    return split(placed, level.size, dim)


def index_add(level: Level, op, args: tuple, attrs: tuple):
    """The source put into zeros, then added."""
    x, index, src = args
    dim, alpha = attrs
    placed = F.index_embed.run_with((src, index), (tuple(x.shape), dim))
    return front(level, x + (placed if alpha == 1 else placed * alpha), True)


def index_copy(level: Level, op, args: tuple, attrs: tuple):
    """index_copy, index_fill: written at the same places in all samples, or at their own."""
    x, index, src = args
    dim, filling = attrs[0], op.name == "index_fill"
    if x.ndim == 0:
        return by_loop(level, op, args, attrs)
    if filling and entry_at(src, level):
        shape = (*x.shape[:dim], index.numel(), *x.shape[dim + 1 :])
        rows = F.expand(F.reshape(src.to(x.dtype), (1,) * x.ndim), shape)
        return front(level, F.index_copy.run_with((x, index, rows), attrs), True)
    value = front(level, x, True)
    new = src if filling else front(level, src, True)
    if shared_index(level, args):
        return op.run_with((value, index, new), (dim + 1,))
    here = front(level, index) + offsets(level, 1, x.shape[dim], x.device)
    new = new if filling else joined(new, dim)
    written = op.run_with((joined(value, dim), F.reshape(here, (-1,)), new), (0,))
    return split(written, level.size, dim)


def along(level: Level, op, args: tuple, attrs: tuple):
    """gather, scatter: everything batched, the axis one further back."""
    flat = args[0].ndim == 0 and args[1].ndim == 0
    values = tuple(front(level, a, True) for a in args)
    if flat:
        values = tuple(
            F.unsqueeze(v, 1) if isinstance(v, Tensor) and v.ndim == 1 else v for v in values
        )
    y = op.run_with(values, (attrs[0] + 1,))
    return F.squeeze(y, 1) if flat else y


def scatter_embed(level: Level, op, args: tuple, attrs: tuple):
    """As gather, with the batch in front of the shape."""
    shape, dim = attrs
    values = tuple(front(level, a, True) for a in args)
    if shape:
        return op.run_with(values, ((level.size, *shape), dim + 1))
    values = tuple(F.unsqueeze(v, 1) if v.ndim == 1 else v for v in values)
    return F.squeeze(op.run_with(values, ((level.size, 1), 1)), 1)


def embedding(level: Level, op, args: tuple, attrs: tuple):
    """A table for each sample is one long table."""
    index, w = args
    if entry_at(w, level) is None:
        return op.run_with((front(level, index), w), attrs)
    table = front(level, w)
    here = front(level, index, True)
    here = here + offsets(level, index.ndim, w.shape[0], w.device)
    y = op.run_with((here, F.reshape(table, (-1, w.shape[1]))), (None,))
    if attrs[0] is None:
        return y
    hit = F.unsqueeze(front(level, index, True) == attrs[0] % w.shape[0], -1)
    return F.where(hit, F.detach(y), y)


# ---- advanced indexing


def indexed_axes(mask: int, ndim: int) -> list[int]:
    """The axes whose bits are set."""
    return [d for d in range(ndim) if mask >> d & 1]


def place_of(mask: int, ndim: int) -> int:
    """Where the indices' axes stand in the result: at the first indexed axis, or in front where
    they are apart."""
    axes = indexed_axes(mask, ndim)
    return axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0


def own_indices(level: Level, indices: tuple) -> tuple:
    """The number of the sample, and the indices, all batched and of one shape."""
    values = tuple(front(level, i, True) for i in indices)
    number = offsets(level, indices[0].ndim, 1, indices[0].device)
    return (F.expand(number, values[0].shape), *values)


def batch_first(value: Tensor, count: int, place: int) -> Tensor:
    """(B, rest a, indices, rest b) with the `count` axes of indices right behind the batch."""
    order = [
        0,
        *range(1 + place, 1 + place + count),
        *range(1, 1 + place),
        *range(1 + place + count, value.ndim),
    ]
    return F.permute(value, tuple(order))


def index_back(value: Tensor, count: int, place: int) -> Tensor:
    """The inverse of batch_first."""
    order = [
        0,
        *range(1 + count, 1 + count + place),
        *range(1, 1 + count),
        *range(1 + count + place, value.ndim),
    ]
    return F.permute(value, tuple(order))


def index(level: Level, op, args: tuple, attrs: tuple):
    """Advanced indexing."""
    x, *indices = args
    mask, count = attrs[0], indices[0].ndim
    place = place_of(mask, x.ndim)
    if not any(entry_at(i, level) for i in indices):
        y = op.run_with((front(level, x), *indices), (mask << 1,))
        return y if place_of(mask << 1, x.ndim + 1) else moved(y, count, 0)
    if entry_at(x, level) is None:
        y = op.run_with((x, *(front(level, i, True) for i in indices)), attrs)
        return moved(y, place, 0)
    y = op.run_with((front(level, x), *own_indices(level, tuple(indices))), (mask << 1 | 1,))
    return index_back(y, count, place)


def put_embed(level: Level, op, args: tuple, attrs: tuple):
    """The adjoint of advanced indexing."""
    x, *indices = args
    shape, mask = attrs
    shape, count, place = tuple(shape), indices[0].ndim, place_of(mask, len(shape))
    selected = (*indices[0].shape, *(s for d, s in enumerate(shape) if not mask >> d & 1))
    rest = selected[count:]
    logical = (*rest[:place], *indices[0].shape, *rest[place:])
    value = F.expand(
        front(level, x if tuple(x.shape) == logical else F.expand(x, logical), True),
        (level.size, *logical),
    )
    if not any(entry_at(i, level) for i in indices):
        if not place_of(mask << 1, len(shape) + 1):
            value = moved(value, 0, count)
        return op.run_with((value, *indices), ((level.size, *shape), mask << 1))
    value = batch_first(value, count, place)
    return op.run_with(
        (value, *own_indices(level, tuple(indices))), ((level.size, *shape), mask << 1 | 1)
    )


def index_put(level: Level, op, args: tuple, attrs: tuple):
    """Writing by index: every sample has its own indices."""
    x, value, *indices = args
    mask, accumulate = attrs
    count, place = indices[0].ndim, place_of(mask, x.ndim)
    if isinstance(value, Tensor):
        rest = [s for d, s in enumerate(x.shape) if not mask >> d & 1]
        logical = (*rest[:place], *indices[0].shape, *rest[place:])
        value = F.expand(value, logical) if tuple(value.shape) != logical else value
        value = batch_first(front(level, value, True), count, place)
    own = own_indices(level, tuple(indices))
    return op.run_with((front(level, x, True), value, *own), (mask << 1 | 1, accumulate))


RULES = {
    "index_select": index_select,
    "index_embed": index_embed,
    "index_add": index_add,
    "index_copy": index_copy,
    "index_fill": index_copy,
    "gather": along,
    "scatter": along,
    "scatter_add": along,
    "scatter_embed": scatter_embed,
    "embedding": embedding,
    "index": index,
    "put_embed": put_embed,
    "index_put": index_put,
}
"""name -> rule."""
