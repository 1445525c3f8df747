"""Shapes: compositions over the views, joins and splits."""

from __future__ import annotations

from tinyfin.core import tensor
from tinyfin.core.signature import wrap
from tinyfin.core.size import Size
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, SupportsIndex

Tensor = tensor.Tensor


def needs_tensor(name: str, value: Any, argument: str = "input") -> Tensor:
    """A clear error for what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}: {argument} is {value!r} of type {type(value).__name__}, expected a Tensor"
        )
    return value


def need_tensors(name: str, **given: Any) -> None:
    """The same for several arguments."""
    for argument, value in given.items():
        needs_tensor(name, value, argument)


def sequence_of_tensors(name: str, values: Any) -> list[Tensor]:
    """A list from a sequence of tensors; a clear error for anything else."""
    if isinstance(values, Tensor) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name}: tensors is {values!r}, expected a sequence of Tensors")
    values = list(values)
    if not values:
        raise ValueError(f"{name}: tensors is empty, expected at least one Tensor")
    for i, x in enumerate(values):
        needs_tensor(name, x, f"tensors[{i}]")
    return values


LONGEST = 1 << 28
"""Most pieces or repeated places that are counted out in Python."""


def countable(name: str, what: str, count: int) -> int:
    """An error for counts that no list can hold."""
    if count > LONGEST:
        raise MemoryError(f"{name}: {what} is {count}, at most {LONGEST} are possible")
    return count


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Joins the axes from start_dim to end_dim into one.

    >>> import tinyfin
    >>> tinyfin.zeros(2, 3, 4).flatten(1).shape
    tinyfin.Size([2, 12])
    """
    if needs_tensor("flatten", input).ndim == 0:
        return input.reshape(1)
    first, last = wrap("flatten", start_dim, input.ndim), wrap("flatten", end_dim, input.ndim)
    if first > last:
        raise RuntimeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    if first == last:
        return input
    shape = tuple(input.shape)
    n = 1
    for s in shape[first : last + 1]:
        n *= s
    return F.reshape(input, shape[:first] + (n,) + shape[last + 1 :])


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Splits one axis into several; one size may be -1."""
    needs_tensor("unflatten", input)
    d = wrap("unflatten", dim, input.ndim)
    shape, sizes = tuple(input.shape), tuple(sizes)
    known = 1
    for s in sizes:
        known *= s if s != -1 else 1
    if (
        sizes.count(-1) > 1
        or (-1 in sizes and (known == 0 or shape[d] % known))
        or (-1 not in sizes and known != shape[d])
    ):
        raise RuntimeError(
            f"unflatten: sizes {sizes} do not multiply to {shape[d]}, the size of dim {d}"
        )
    return F.reshape(
        input,
        shape[:d] + sizes + shape[d + 1 :]
        if -1 not in sizes
        else shape[:d] + tuple(shape[d] // known if s == -1 else s for s in sizes) + shape[d + 1 :],
    )


def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Moves axes to new places, the others keep their order."""
    needs_tensor("movedim", input)
    src = [source] if isinstance(source, int) else list(source)
    dst = [destination] if isinstance(destination, int) else list(destination)
    src, dst = (
        [wrap("movedim", d, input.ndim) for d in src],
        [wrap("movedim", d, input.ndim) for d in dst],
    )
    if len(src) != len(dst) or len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise RuntimeError(
            f"movedim: source {source} and destination {destination} do not name as many distinct axes"
        )
    order = [-1] * input.ndim
    for s, d in zip(src, dst):
        order[d] = s
    rest = iter(d for d in range(input.ndim) if d not in src)
    return F.permute(input, tuple(next(rest) if o == -1 else o for o in order))


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of another tensor."""
    needs_tensor("expand_as", input)
    needs_tensor("expand_as", other, "other")
    return input.expand(other.shape)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Expanded to a shape."""
    needs_tensor("broadcast_to", input)
    return input.expand(tuple(size))


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape to which shapes broadcast.

    >>> import tinyfin
    >>> tinyfin.broadcast_shapes((2, 1), (3,))
    tinyfin.Size([2, 3])
    """
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    ndim = max(map(len, sizes), default=0)
    out = [1] * ndim
    for shape in sizes:
        for i, s in enumerate(shape, ndim - len(shape)):
            if s != 1 and out[i] not in (1, s):
                raise RuntimeError(
                    f"broadcast_shapes: shapes {sizes} do not broadcast: sizes {out[i]} and {s} differ in "
                    f"dimension {i}"
                )
            out[i] = s if s != 1 else out[i]
    return Size(out)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    given = sequence_of_tensors("broadcast_tensors", tensors)
    shape = broadcast_shapes(*(x.shape for x in given))
    return tuple(x.expand(shape) for x in given)


def select(input: Tensor, dim: int, index: SupportsIndex) -> Tensor:
    """One place of an axis; the axis goes."""
    d = wrap("select", dim, needs_tensor("select", input).ndim)
    if input.ndim == 0:
        raise IndexError("select: the tensor has no dimensions")
    size = input.shape[d]
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"select: index is {index!r}, expected an integer")
    index = index.__index__()
    if not -size <= index < size:
        raise IndexError(f"select: index {index} is out of range for dim {d} of size {size}")
    return F.select_view(input, d, index)


FEW = 4
"""Windows that are cut from one tensor directly."""


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of the given sizes, as views."""
    needs_tensor("split_with_sizes", input)
    d = wrap("split", dim, input.ndim)
    if sum(split_sizes) != input.shape[d] or any(s < 0 for s in split_sizes):
        raise RuntimeError(
            f"split: sizes {list(split_sizes)} do not add up to {input.shape[d]}, the size of dim {d}"
        )
    return pieces(input, d, tuple(split_sizes))


def pieces(x: Tensor, d: int, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """Neighbouring windows of one axis, from its first place on.

    Where gradients flow, halves are cut from halves: the gradient of each window is as large as what it is cut
    from, and n windows cut from the whole would take n times its size.
    """
    if len(sizes) <= FEW or not x.requires_grad:
        found, start = [], 0
        for s in sizes:
            found.append(F.narrow(x, d, start, s))
            start += s
        return tuple(found)
    half = len(sizes) // 2
    first = sum(sizes[:half])
    left = F.narrow(x, d, 0, first)
    right = F.narrow(x, d, first, sum(sizes[half:]))
    return pieces(left, d, sizes[:half]) + pieces(right, d, sizes[half:])


def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Pieces of one size (the last may be smaller) or of given sizes, as views.

    >>> import tinyfin
    >>> [p.tolist() for p in tinyfin.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    size = split_size_or_sections
    if not isinstance(size, int):
        return split_with_sizes(tensor, tuple(size), dim)
    d = wrap("split", dim, needs_tensor("split", tensor, "tensor").ndim)
    n = tensor.shape[d]
    if size < 0 or (size == 0 and n):
        raise RuntimeError(f"split: split_size is {size}, expected at least 1")
    return pieces(tensor, d, [min(size, n - i) for i in range(0, n, size or 1)]) or (tensor,)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of equal size, the last may be smaller."""
    needs_tensor("chunk", input)
    if chunks < 1:
        raise RuntimeError(f"chunk: chunks is {chunks}, expected at least 1")
    d = wrap("chunk", dim, input.ndim)
    n = input.shape[d]
    if n == 0:
        return split_with_sizes(input, (0,) * chunks, d)
    return split(input, max(-(-n // chunks), 1), dim)


def tensor_split(
    input: Tensor, indices_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Pieces cut at indices, or as many nearly equal ones."""
    needs_tensor("tensor_split", input)
    n = input.shape[wrap("tensor_split", dim, input.ndim)]
    if isinstance(indices_or_sections, int):
        k = indices_or_sections
        if k < 1:
            raise RuntimeError(f"tensor_split: sections is {k}, expected at least 1")
        countable("tensor_split", "sections", k)
        cuts = [i * (n // k) + min(i, n % k) for i in range(1, k)]
    else:
        cuts = list(indices_or_sections)
    bounds = [0] + [min(max(c + n if c < 0 else c, 0), n) for c in cuts] + [n]
    return tuple(
        F.narrow(input, dim, a, max(b - a, 0)) for a, b in zip(bounds[:-1], bounds[1:], strict=True)
    )


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The places of one axis as a tuple of views."""
    d = wrap("unbind", dim, needs_tensor("unbind", input).ndim)
    if input.ndim == 0:
        raise RuntimeError("unbind: the tensor has no dimensions")
    n = input.shape[d]
    if n <= FEW or not input.requires_grad:
        return tuple(F.select_view(input, d, i) for i in range(n))
    return tuple(F.select_view(piece, d, 0) for piece in pieces(input, d, (1,) * n))


def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate tensors of a grid."""
    given: Any = tensors
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        given = tensors[0]
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"meshgrid: indexing is {indexing!r}, expected 'ij' or 'xy'")
    flat = [x.reshape(-1) for x in sequence_of_tensors("meshgrid", given)]
    if indexing == "xy" and len(flat) > 1:
        flat[:2] = flat[1::-1]
    shape = tuple(x.numel() for x in flat)
    grids = [
        x.reshape((1,) * i + (-1,) + (1,) * (len(flat) - i - 1)).expand(shape)
        for i, x in enumerate(flat)
    ]
    if indexing == "xy" and len(flat) > 1:
        grids[:2] = grids[1::-1]
    return tuple(grids)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of another tensor."""
    needs_tensor("view_as", self, "self")
    needs_tensor("view_as", other, "other")
    return self.view(other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """In the shape of another tensor."""
    needs_tensor("reshape_as", self, "self")
    needs_tensor("reshape_as", other, "other")
    return self.reshape(other.shape)


def ravel(input: Tensor) -> Tensor:
    """All elements in one axis."""
    needs_tensor("ravel", input)
    return input.reshape(-1)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along axis 1, vectors along axis 0."""
    tensors = [x.reshape(1) if x.ndim == 0 else x for x in sequence_of_tensors("hstack", tensors)]
    return F.cat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along axis 0, vectors as rows."""
    rows = sequence_of_tensors("vstack", tensors)
    return F.cat([x.reshape(1, -1) if x.ndim < 2 else x for x in rows], 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along axis 2, after reshaping to at least three axes."""
    deep = [
        x.reshape(1, -1, 1) if x.ndim < 2 else x.unsqueeze(2) if x.ndim == 2 else x
        for x in sequence_of_tensors("dstack", tensors)
    ]
    return F.cat(deep, 2)


def repeat_interleave(
    input: Tensor, repeats: int | Sequence[int] | Tensor, dim: int | None = None
) -> Tensor:
    """Each place of an axis repeated; `repeats` is a number or one per place.

    >>> import tinyfin
    >>> tinyfin.arange(2).repeat_interleave(2).tolist()
    [0, 0, 1, 1]
    """
    needs_tensor("repeat_interleave", input)
    if dim is None:
        input, dim = input.reshape(-1), 0
    d = wrap("repeat_interleave", dim, input.ndim)
    n = input.shape[d] if input.ndim else 1
    counts = repeats.tolist() if isinstance(repeats, Tensor) else repeats
    counts = [counts] * n if isinstance(counts, int) else list(counts)
    if len(counts) == 1 and n != 1:
        counts *= n
    if len(counts) != n or any(not isinstance(c, int) or c < 0 for c in counts):
        raise RuntimeError(
            f"repeat_interleave: repeats is {repeats!r}, expected {n} integers that are not negative"
        )
    countable("repeat_interleave", "the number of places", sum(counts))
    places = [i for i, c in enumerate(counts) for _ in range(c)]
    return F.index_select(input, d, F.tensor(places, dtype=F.int64, device=input.device))


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as columns of a matrix."""
    columns = sequence_of_tensors("column_stack", tensors)
    return F.cat([x.reshape(-1, 1) if x.ndim < 2 else x for x in columns], 1)


def fliplr(input: Tensor) -> Tensor:
    """Columns in the opposite order."""
    return F.flip(input, (1,))


def flipud(input: Tensor) -> Tensor:
    """Rows in the opposite order."""
    return F.flip(input, (0,))


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotated by k quarter turns in the plane of two axes."""
    needs_tensor("rot90", input)
    places = [wrap("rot90", d, input.ndim) for d in dims]
    if len(places) != 2 or places[0] == places[1]:
        raise RuntimeError(f"rot90: dims is {dims}, expected two different axes")
    a, b = places
    k %= 4
    if k == 2:
        return F.flip(input, (a, b))
    if k == 0:
        return input.clone()
    return (
        F.transpose(F.flip(input, (b,)), a, b) if k == 1 else F.flip(F.transpose(input, a, b), (b,))
    )


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Another geometry over the tensor's storage; it must stay inside the storage."""
    needs_tensor("as_strided", input)
    offset = input.storage_offset() if storage_offset is None else storage_offset
    for what, given in (("size", size), ("stride", stride)):
        if not hasattr(given, "__iter__"):
            raise TypeError(f"as_strided: {what} is {given!r}, expected a sequence of integers")
    size, stride = tuple(size), tuple(stride)
    low = high = offset
    for n, s in zip(size, stride):
        low, high = low + min(s * (n - 1), 0), high + max(s * (n - 1), 0)
    if 0 not in size and (low < 0 or high >= input.storage_elements()):
        raise RuntimeError(
            f"as_strided: size {size}, stride {stride} and offset {offset} leave the storage of "
            f"{input.storage_elements()} elements"
        )
    return F.as_strided_view.run_with(
        (input,), (size, stride, offset, input.stride(), input.storage_offset())
    )


FUNCTIONS = (
    flatten,
    unflatten,
    movedim,
    broadcast_to,
    broadcast_shapes,
    broadcast_tensors,
    select,
    split,
    split_with_sizes,
    chunk,
    tensor_split,
    unbind,
    meshgrid,
    ravel,
    hstack,
    vstack,
    dstack,
    repeat_interleave,
    column_stack,
    fliplr,
    flipud,
    rot90,
    as_strided,
)
NO_METHODS = {
    "broadcast_shapes",
    "broadcast_tensors",
    "meshgrid",
    "hstack",
    "vstack",
    "dstack",
    "column_stack",
}
PUBLIC = {f.__name__: f for f in FUNCTIONS}
METHODS: dict[str, Callable] = {name: f for name, f in PUBLIC.items() if name not in NO_METHODS}
METHODS.update(expand_as=expand_as, view_as=view_as, reshape_as=reshape_as)
for _name, _value in METHODS.items():
    tensor.install_method(_name, _value)
tensor.install_method("T", property(lambda x: F.permute(x, tuple(range(x.ndim))[::-1])))
tensor.install_method("mT", property(lambda x: F.transpose(x, -2, -1)))
