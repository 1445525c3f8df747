"""vmap: a function of one sample on a batch of them, by a rule for each row.

A batched tensor holds a value with one axis more than it shows. Rules move that axis to the front;
a row without rule or formula runs once for each sample, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from tinyfin.autograd import levels, tree
from tinyfin.autograd.levels import BATCH, DUAL, Level, entry_at, level_of, live
from tinyfin.backends.base import warn
from tinyfin.core import tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor


# ---- batched tensors


def batched(level: Level, value: Tensor, dim: int = 0) -> Tensor:
    """A batched tensor over a value; one whose value has a history requires grad too."""
    t = tensor.wrap(value, BATCH, (level, value, dim), dim)
    if value.requires_grad and tensor.mode() & 1:
        tensor.attach(t, tensor.python_node("vmap", refuse, (value,), (t,)), 0)
    return t


def refuse(grads: tuple, node: Any) -> tuple:
    """Gradients do not leave a vmap from inside: the batch would be lost."""
    raise RuntimeError(
        "backward: inside vmap, a gradient is asked of a tensor outside; differentiate outside "
        "vmap, "
        "or with respect to a tensor made inside"
    )


def unpacked(level: Level, a: Any) -> tuple:
    """(value, dim) of an argument; dim None where it is the same for the whole batch."""
    entry = entry_at(a, level)
    return (a, None) if entry is None else (entry[1], entry[2])


def to_front(value: Tensor, dim: int) -> Tensor:
    """The value with the batch as its first axis."""
    if dim == 0:
        return value
    return F.permute(value, (dim, *(d for d in range(value.ndim) if d != dim)))


def moved(value: Tensor, source: int, target: int) -> Tensor:
    """One axis at another place."""
    order = [d for d in range(value.ndim) if d != source]
    order.insert(target, source)
    return value if source == target else F.permute(value, tuple(order))


def front(level: Level, a: Any, expand: bool = False) -> Any:
    """An argument's value with the batch in front; with `expand` also where it is the same for
    all."""
    value, dim = unpacked(level, a)
    if dim is not None:
        return to_front(value, dim)
    if expand and isinstance(value, Tensor):
        return F.expand(F.unsqueeze(value, 0), (level.size, *value.shape))
    return value


def aligned(level: Level, args: tuple, expand: bool = False) -> tuple:
    """Values in which samples broadcast as the arguments do: batch in front, then axes of size
    one."""
    most = max((a.ndim for a in args if isinstance(a, Tensor)), default=0)
    return tuple(padded(front(level, a, expand), a, most) for a in args)


def padded(value: Any, a: Any, ndim: int) -> Any:
    """A value with axes of size one behind the batch, so that samples have `ndim` axes."""
    if not isinstance(value, Tensor) or value.ndim == a.ndim or a.ndim == ndim:
        return value
    return F.reshape(value, (value.shape[0], *(1,) * (ndim - a.ndim), *value.shape[1:]))


def batches(t: Tensor) -> set:
    """The open levels of vmap in which a tensor, its primal or its tangent is batched."""
    extra = live(t).extra_ or {}
    if BATCH in extra:
        level, value, _ = extra[BATCH]
        return batches(value) | ({level} if level.open else set())
    if DUAL in extra:
        _, primal, tangent = extra[DUAL]
        return batches(primal) | batches(tangent)
    return set()


def spread(out: Tensor, like: Tensor) -> Tensor:
    """A new tensor in the batches of another one, so that samples can be written one by one."""
    have = batches(out)
    missing = sorted(batches(like) - have, key=lambda level: level.number)
    wide = F.zeros(*out.shape, dtype=out.dtype, device=out.device) if have and missing else out
    for level in missing:
        wide = batched(
            level, F.contiguous_copy(F.expand(F.unsqueeze(wide, 0), (level.size, *out.shape)))
        )
    return out + wide if have and missing else wide


# ---- one call


def call(level: Level, op, args: tuple, attrs: tuple):
    """One call with batched tensors of this level among its arguments."""
    from tinyfin.autograd import batching

    if op.name == "assign":
        return assign(level, *args)
    if op.inplace:
        return inplace(op, args, attrs)
    if op.family in levels.RANDOM:
        return batching.random(level, op, args, attrs)
    if op.mutates:
        return (
            op.formula(*args, *attrs) if any(entry_at(a, level) for a in args) else NotImplemented
        )
    if op.batch is not None:
        pairs = [unpacked(level, a) for a in args]
        return finish(
            level, op, args, attrs, op.batch([v for v, _ in pairs], [d for _, d in pairs], attrs)
        )
    rule = batching.rule_of(level, op, args, attrs)
    if rule is None:
        return op.formula(*args, *attrs)
    return finish(level, op, args, attrs, rule(level, op, args, attrs))


def finish(level: Level, op, args: tuple, attrs: tuple, result):
    """Batched tensors over a rule's results, with the history of the call."""
    values = result if isinstance(result, tuple) else (result,)
    outs = tuple(tensor.wrap(v, BATCH, (level, v, 0), 0) for v in values)
    tensor.record(op, args, attrs, outs)
    return outs if isinstance(result, tuple) else outs[0]


def inplace(op, args: tuple, attrs: tuple) -> Tensor:
    """x.op_(...) as the plain operation, written over x."""
    from tinyfin.autograd.forward import inplace as through

    return through(op, args, attrs)


def assign(level: Level, x: Tensor, src: Tensor) -> Tensor:
    """x.copy_(src), sample by sample."""
    if entry_at(x, level) is None:
        raise RuntimeError(
            "vmap: a batched tensor cannot be written into one that is the same for the whole "
            "batch; make the "
            "tensor from a batched one (zeros_like, clone), or use an operation that is not in "
            "place"
        )
    tensor.check_write(x, "copy_")
    value, dim = unpacked(level, x)
    target = to_front(value, dim)
    source = front(level, src)
    if source.ndim > src.ndim:
        source = padded(source, src, max(x.ndim, src.ndim))
    tensor.assign(target, source)
    tensor.record_assign(x, src)
    return x


# ---- the transformation


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps func over an axis of its arguments.

    Args:
        in_dims: the axis of each argument (a number, None for "not mapped", or a tree of them);
            keyword arguments are not mapped.
        out_dims: where the axis stands in each result.
        randomness: random operations inside are an 'error', 'different' or the 'same' for each
            sample.
        chunk_size: at most so many samples at a time, to save memory.

    Raises:
        ValueError: the dims do not fit the arguments, or mapped sizes differ.
        RuntimeError: what func does cannot be mapped.

    >>> import tinyfin
    >>> x = tinyfin.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tinyfin.func.vmap(lambda row: row.dot(row))(x).tolist()
    [5.0, 25.0]
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"vmap: randomness is {randomness!r}, expected 'error', 'different' or 'same'"
        )
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"vmap: chunk_size is {chunk_size!r}, expected a positive integer or None")

    @wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, size = mapped_leaves(args, kwargs, in_dims)
        build = (args, kwargs)
        if chunk_size is None or chunk_size >= size:
            return run(func, build, leaves, dims, size, out_dims, randomness)
        pieces = []
        for start in range(0, size, chunk_size):
            n = min(chunk_size, size - start)
            part = [x if d is None else F.narrow(x, d, start, n) for x, d in zip(leaves, dims)]
            pieces.append(run(func, build, part, dims, n, out_dims, randomness))
        return joined(pieces, out_dims)

    return mapped


def mapped_leaves(args: tuple, kwargs: dict, in_dims: Any) -> tuple:
    """(leaves, their mapped axes or None, size of the batch) of a call's arguments."""
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap: in_dims is {in_dims!r}, expected an integer or a tuple with one entry for "
            "each argument"
        )
    dims = tree.spread(in_dims, args)
    if dims is None:
        raise ValueError(
            f"vmap: in_dims {in_dims!r} does not fit the arguments, {len(args)} of them"
        )
    leaves = tree.flatten(args) + tree.flatten(kwargs)
    dims += [None] * len(tree.flatten(kwargs))
    checked = [mapped_axis(x, d) for x, d in zip(leaves, dims)]
    sizes = {x.shape[d] for x, d in zip(leaves, checked) if d is not None}
    if not sizes:
        raise ValueError(
            "vmap: no argument is mapped; in_dims must name an axis of at least one tensor"
        )
    if len(sizes) > 1:
        raise ValueError(
            f"vmap: the mapped axes have sizes {sorted(sizes)}, expected the same for all"
        )
    return leaves, checked, sizes.pop()


def mapped_axis(x: Any, d: Any) -> int | None:
    """One argument's axis, counted from the front."""
    if d is None:
        return None
    if not isinstance(d, int):
        raise ValueError(f"vmap: in_dims holds {d!r}, expected integers or None")
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap: in_dims is {d} for an argument of type {type(x).__name__}, expected None: "
            "only tensors "
            "can be mapped"
        )
    if x.ndim == 0:
        raise ValueError(
            f"vmap: in_dims is {d} for a tensor without dimensions, expected None: it is the same "
            "for the whole batch"
        )
    if not -x.ndim <= d < x.ndim:
        raise ValueError(
            f"vmap: in_dims is {d} for a tensor of shape {tuple(x.shape)}, expected {-x.ndim} to "
            f"{x.ndim - 1}"
        )
    return d % x.ndim


def run(
    func: Callable[..., Any],
    build: tuple,
    leaves: list,
    dims: list,
    size: int,
    out_dims: Any,
    randomness: str,
) -> Any:
    """One pass of func over batched arguments."""
    with Level(BATCH, size, randomness) as level:
        inside = [x if d is None else batched(level, x, d) for x, d in zip(leaves, dims)]
        args, kwargs = tree.unflatten(build, inside)
        result = func(*args, **kwargs)
        outs = tree.flatten(result)
        places = tree.spread(out_dims, result)
        if places is None:
            raise ValueError(
                f"vmap: out_dims {out_dims!r} does not fit the result, {len(outs)} tensors"
            )
        return tree.unflatten(result, [taken_out(level, x, d) for x, d in zip(outs, places)])


def taken_out(level: Level, x: Any, place: Any) -> Any:
    """A result's value with the batch at its place."""
    if x is None:
        return None
    if not isinstance(x, Tensor):
        raise ValueError(f"vmap: func returned {x!r} of type {type(x).__name__}, expected Tensors")
    x = live(x)
    level_of(x)
    value, dim = unpacked(level, x)
    if place is None:
        if dim is not None:
            raise ValueError("vmap: out_dims is None for a result that differs within the batch")
        return value
    if not -x.ndim - 1 <= place <= x.ndim:
        raise IndexError(
            f"vmap: out_dims is {place} for a result of {x.ndim} dimensions, expected "
            f"{-x.ndim - 1} to "
            f"{x.ndim}"
        )
    place %= x.ndim + 1
    if dim is None:
        shape = (*value.shape[:place], level.size, *value.shape[place:])
        return F.expand(F.unsqueeze(value, place), shape)
    return moved(value, dim, place)


def joined(pieces: list, out_dims: Any) -> Any:
    """The results of several chunks, one behind the other."""
    places = tree.spread(out_dims, pieces[0])
    columns = zip(*map(tree.flatten, pieces))
    leaves = []
    # each chunk was refused where the places do not fit
    for d, parts in zip(places, columns):  # pyright: ignore[reportArgumentType]
        if d is None or parts[0] is None:
            leaves.append(parts[0])
        else:
            leaves.append(F.cat(list(parts), d % parts[0].ndim))
    return tree.unflatten(pieces[0], leaves)


def by_loop(level: Level, op, args: tuple, attrs: tuple):
    """One call for each sample, and one warning for each operation."""
    warn(f"vmap: {op.name} has no rule for batches and runs once for each sample")
    pairs = [unpacked(level, a) for a in args]
    if level.size == 0:
        raise RuntimeError(
            f"vmap: {op.name} has no rule for batches and cannot run on an empty one"
        )
    rows = []
    for b in range(level.size):
        rows.append(
            op.run_with(
                tuple(v if d is None else v[(slice(None),) * d + (b,)] for v, d in pairs), attrs
            )
        )
    if isinstance(rows[0], tuple):
        return tuple(F.stack(list(column), 0) for column in zip(*rows))
    return F.stack(rows, 0)


levels.RULES[BATCH] = call
