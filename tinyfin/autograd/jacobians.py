"""Jacobians and Hessians: one product for each direction, all directions at once by vmap."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from tinyfin.autograd import tree
from tinyfin.autograd.transforms import checked_leaves, jvp, picked, placed, tree_of_tensors, vjp
from tinyfin.autograd.vmap import vmap
from tinyfin.core import tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor


def unit_vectors(leaves: list) -> list:
    """For each leaf, the part of all unit vectors of the joined space: (n, *shape)."""
    sizes = [x.numel() for x in leaves]
    total, start, parts = sum(sizes), 0, []
    for x, n in zip(leaves, sizes):
        rows = F.zeros(total, n, dtype=x.dtype, device=x.device)
        if n:
            rows.narrow(0, start, n).copy_(F.eye(n, dtype=x.dtype, device=x.device))
        parts.append(rows.reshape((total, *x.shape)))
        start += n
    return parts


def in_blocks(columns: list, leaves: list) -> list:
    """Per leaf, the rows of each column that belong to it: tensors (*leaf shape, *column shape)."""
    blocks, start = [], 0
    for x in leaves:
        n = x.numel()
        blocks.append([c.narrow(0, start, n).reshape((*x.shape, *c.shape[1:])) for c in columns])
        start += n
    return blocks


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of func by reverse mode, a block for each output and
    input.

    Args:
        argnums: which positional arguments to differentiate by.
        has_aux: func returns (output, aux), and the result is (Jacobian, aux).
        chunk_size: at most so many rows at a time, to save memory.

    Raises:
        RuntimeError: an output or argument is no floating-point tensor.

    >>> import tinyfin
    >>> tinyfin.func.jacrev(lambda x: x * x)(tinyfin.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_chunk("jacrev", chunk_size)

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        at = picked("jacrev", args, argnums)
        inputs = checked_leaves("jacrev", "the argument to differentiate by", at)

        def partial(*values: Any) -> Any:
            value = tree.unflatten(at, list(values))
            return func(*placed(args, argnums, value), **kwargs)

        found = vjp(partial, *inputs, has_aux=has_aux)
        result, pull = found[0], found[1]
        outs = tree_of_tensors("jacrev", result)

        def row(*cots: Tensor) -> tuple:
            return pull(tree.unflatten(result, list(cots)))

        rows = each_row(row, unit_vectors(outs), inputs, chunk_size)
        blocks = in_blocks(rows, outs)
        jacobian = tree.unflatten(result, [tree.unflatten(at, block) for block in blocks])
        return (jacobian, found[2]) if has_aux else jacobian

    return wrapped


def each_row(row: Callable, basis: list, likes: list, chunk_size: int | None) -> list:
    """row of each unit vector, stacked; by vmap, or one by one where that is no gain."""
    n = basis[0].shape[0]
    if n == 0:
        return [F.zeros(0, *x.shape, dtype=x.dtype, device=x.device) for x in likes]
    if n == 1 or chunk_size == 1:
        rows = [row(*(b[i] for b in basis)) for i in range(n)]
        return [F.stack(list(column), 0) for column in zip(*rows)]
    return list(vmap(row, chunk_size=chunk_size)(*basis))


def check_chunk(name: str, chunk_size: int | None) -> None:
    """chunk_size must be a positive number."""
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(
            f"{name}: chunk_size is {chunk_size!r}, expected a positive integer or None"
        )


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of func by forward mode, a block for each output and
    input.

    Args:
        argnums: which positional arguments to differentiate by.
        has_aux: func returns (output, aux), and the result is (Jacobian, aux).
        randomness: as for vmap, for random operations in func.
        chunk_size: at most so many columns at a time, to save memory.

    Raises:
        RuntimeError: an output or argument is no floating-point tensor.

    >>> import tinyfin
    >>> tinyfin.func.jacfwd(lambda x: x * x)(tinyfin.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_chunk("jacfwd", chunk_size)

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        at = picked("jacfwd", args, argnums)
        inputs = tuple(checked_leaves("jacfwd", "the argument to differentiate by", at))
        seen: dict = {}

        def partial(*values: Any) -> Any:
            return func(*placed(args, argnums, tree.unflatten(at, list(values))), **kwargs)

        def column(*tangents: Tensor) -> tuple:
            pushed = jvp(partial, inputs, tangents, has_aux=has_aux)
            seen["result"] = pushed[1]
            outs = tuple(tree.flatten(pushed[1]))
            return (outs, pushed[2]) if has_aux else outs

        columns, aux = each_column(
            column, unit_vectors(list(inputs)), has_aux, randomness, chunk_size
        )
        blocks = in_blocks(columns, list(inputs))
        per_output = [
            [last_first(block[k], x) for block, x in zip(blocks, inputs)]
            for k in range(len(columns))
        ]
        jacobian = tree.unflatten(
            seen["result"], [tree.unflatten(at, block) for block in per_output]
        )
        return (jacobian, aux) if has_aux else jacobian

    return wrapped


def each_column(
    column: Callable, basis: list, has_aux: bool, randomness: str, chunk_size: int | None
) -> tuple:
    """column of each unit vector, stacked, and func's aux."""
    if basis[0].shape[0] == 0:
        result = column(*(F.zeros(x.shape[1:], dtype=x.dtype, device=x.device) for x in basis))
        outs, aux = result if has_aux else (result, None)
        return [F.zeros(0, *y.shape, dtype=y.dtype, device=y.device) for y in outs], aux
    if not has_aux:
        return list(vmap(column, randomness=randomness, chunk_size=chunk_size)(*basis)), None
    outs, aux = vmap(column, randomness=randomness, chunk_size=chunk_size)(*basis)
    return list(outs), tree.mapped(lambda y: y[0] if isinstance(y, Tensor) else y, aux)


def last_first(block: Tensor, x: Tensor) -> Tensor:
    """(*input shape, *output shape) to (*output shape, *input shape)."""
    n = x.ndim
    return F.permute(block, (*range(n, block.ndim), *range(n))) if n else block


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of func, by forward mode over reverse mode.

    >>> import tinyfin
    >>> tinyfin.func.hessian(lambda x: (x ** 3).sum())(tinyfin.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(func, argnums), argnums)
