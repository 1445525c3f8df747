"""Linear algebra as compositions: einsum, norms, products."""

from __future__ import annotations

from tinyfin.core import tensor
from tinyfin.ops.row import F
from tinyfin.shaping import needs_tensor, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tinyfin.core.dtype import DTypeLike

Tensor = tensor.Tensor
INF = float("inf")


def parse_equation(equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str]]:
    """Index letters of each operand and of the result; an ellipsis becomes capital-free private letters."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(
            f"einsum: the equation '{equation}' has {len(terms)} operands, {len(operands)} were given"
        )
    widest = 0
    for term, x in zip(terms, operands):
        if "..." in term:
            widest = max(widest, x.ndim - len(term.replace("...", "")))
    dots = [chr(0x100 + i) for i in range(widest)]
    parsed = []
    for term, x in zip(terms, operands):
        named = term.replace("...", "", 1)
        if not all(c.isalpha() and c.isascii() for c in named):
            raise RuntimeError(
                f"einsum: '{term}' in '{equation}' has characters other than letters and one ellipsis"
            )
        here = x.ndim - len(named)
        if here < 0 or (here and "..." not in term):
            raise RuntimeError(
                f"einsum: '{term}' names {len(named)} axes, its operand has {x.ndim} dimensions"
            )
        before, _, after = term.partition("...")
        parsed.append(list(before) + (dots[widest - here :] if "..." in term else []) + list(after))
    if arrow:
        before, mark, after = right.partition("...")
        result = list(before) + (dots if mark else []) + list(after)
    else:
        letters = [c for term in parsed for c in term]
        result = dots + sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots)
    known = {c for term in parsed for c in term}
    if len(set(result)) != len(result) or not set(result) <= known:
        raise RuntimeError(
            f"einsum: the result of '{equation}' repeats an index or names an unknown one"
        )
    return parsed, result


def take_diagonals(x: Tensor, letters: Sequence[str]) -> tuple[Tensor, list[str]]:
    """Repeated letters of one operand become diagonals."""
    letters = list(letters)
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            if x.shape[i] != x.shape[j]:
                raise RuntimeError(f"einsum: index '{c}' has sizes {x.shape[i]} and {x.shape[j]}")
            x = F.diagonal(x, 0, i, j)
            letters = [d for k, d in enumerate(letters) if k not in (i, j)] + [c]
    return x, letters


def contract(
    a: Tensor, la: list[str], b: Tensor, lb: list[str], keep: set[str]
) -> tuple[Tensor, list[str]]:
    """Two operands to one: shared kept letters are batch axes, shared dropped ones are summed by a product."""
    sizes = {}
    for letters, x in ((la, a), (lb, b)):
        for c, n in zip(letters, x.shape):
            if sizes.setdefault(c, n) != n:
                if 1 not in (n, sizes[c]):
                    raise RuntimeError(f"einsum: index '{c}' has sizes {sizes[c]} and {n}")
                sizes[c] = max(n, sizes[c])
    a, la = sum_out(a, la, [c for c in la if c not in lb and c not in keep])
    b, lb = sum_out(b, lb, [c for c in lb if c not in la and c not in keep])
    a, b = (x.expand(tuple(sizes[c] for c in letters)) for x, letters in ((a, la), (b, lb)))
    batch = [c for c in la if c in lb and c in keep]
    inner = [c for c in la if c in lb and c not in keep]
    rows, cols = [c for c in la if c not in lb], [c for c in lb if c not in la]

    def arrange(x: Tensor, letters: list[str], *groups: list[str]) -> Tensor:
        x = F.permute(x, tuple(letters.index(c) for g in groups for c in g))
        return x.reshape(
            tuple(sizes[c] for c in groups[0])
            + tuple(product(sizes[c] for c in g) for g in groups[1:])
        )

    y = F.matmul(arrange(a, la, batch, rows, inner), arrange(b, lb, batch, inner, cols))
    out = batch + rows + cols
    return y.reshape(tuple(sizes[c] for c in out)), out


def product(values: Iterable[int]) -> int:
    """The product of integers."""
    n = 1
    for v in values:
        n *= v
    return n


def sum_out(x: Tensor, letters: list[str], dropped: list[str]) -> tuple[Tensor, list[str]]:
    """Sums over letters that nobody else needs."""
    if not dropped:
        return x, letters
    return F.sum(x, tuple(letters.index(c) for c in dropped)), [
        c for c in letters if c not in dropped
    ]


def einsum(equation: str, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """Sums of products by index letters: 'ij,jk->ik'.

    >>> import tinyfin
    >>> a = tinyfin.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tinyfin.einsum("ii->i", a).tolist()
    [1.0, 4.0]
    """
    if not isinstance(equation, str):
        raise TypeError(f"einsum: equation is {equation!r}, expected a string such as 'ij,jk->ik'")
    xs: Any = operands
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        xs = tuple(operands[0])
    for x in xs:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"einsum: operand is {x!r} of type {type(x).__name__}, expected a Tensor"
            )
    terms, result = parse_equation(equation, xs)
    pairs = [take_diagonals(x, letters) for x, letters in zip(xs, terms)]
    y, letters = pairs[0]
    for k in range(1, len(pairs)):
        later = {c for _, other in pairs[k + 1 :] for c in other}
        y, letters = contract(y, letters, *pairs[k], set(result) | later)
    y, letters = sum_out(y, letters, [c for c in letters if c not in result])
    return F.permute(y, tuple(letters.index(c) for c in result))


# ---- norms


def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The ord-norm of vectors along axes, of all elements where dim is None.

    >>> import tinyfin
    >>> tinyfin.linalg.vector_norm(tinyfin.tensor([3.0, 4.0])).item()
    5.0
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"vector_norm: x is {x!r}, expected a Tensor")
    x = x if dtype is None else x.to(dtype)
    if not x.is_floating_point():
        raise RuntimeError(f"vector_norm: x is {x.dtype}, expected a floating-point tensor")
    if isinstance(ord, str) or not hasattr(ord, "__float__"):
        raise TypeError(f"vector_norm: ord is {ord!r}, expected a number")
    if ord == 2:
        return F.norm2(x, dim, keepdim)
    if ord == INF:
        return F.max_over(F.abs(x), dim, keepdim)
    if ord == -INF:
        return F.min_over(F.abs(x), dim, keepdim)
    if ord == 0:
        return F.sum(F.where(F.ne(x, 0), 1.0, x * 0), dim, keepdim)  # its gradient is zero
    if ord == 1:
        return F.sum(F.abs(x), dim, keepdim)
    half = x.dtype.itemsize < 4  # powers of float16 would overflow soon
    a = F.abs(x.float() if half else x)
    if ord < 1:  # zeros have no derivative: none flows to them
        none = a == 0
        a = F.where(none, 0.0 if ord > 0 else INF, F.pow(F.where(none, 1.0, a), float(ord)))
    else:
        a = F.pow(a, float(ord))
    total = F.sum(a, dim, keepdim)
    flat = total == 0  # a subgradient at the zero vector, not NaN
    y = F.where(flat, total, F.pow(F.where(flat, 1.0, total), 1.0 / ord))
    return y.to(x.dtype) if half else y


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The p-norm along axes (Euclidean by default), as torch.norm."""
    order = 2 if p in ("fro", None) else p
    if isinstance(order, str):
        raise NotImplementedError(f"norm: p is {p!r}, expected a number or 'fro'")
    return vector_norm(input, order, dim, keepdim, dtype=dtype)


def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    needs_tensor("trace", input)
    if input.ndim != 2:
        raise RuntimeError(f"trace: input has {input.ndim} dimensions, expected 2")
    return F.sum(F.diagonal(input))


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix's diagonal, or the matrix with a vector on its diagonal."""
    needs_tensor("diag", input)
    if input.ndim == 2:
        return F.diagonal(input, diagonal).clone()
    if input.ndim != 1:
        raise RuntimeError(f"diag: input has {input.ndim} dimensions, expected 1 or 2")
    return diag_embed(input, diagonal)


def diag_embed(input: Tensor, offset: int = 0) -> Tensor:
    """Matrices with the last axis of `input` on a diagonal."""
    needs_tensor("diag_embed", input)
    n = input.shape[-1] + abs(offset)
    return F.embed_diagonal(
        input, tuple(input.shape[:-1]) + (n, n), offset, input.ndim - 1, input.ndim
    )


def tensordot(
    a: Tensor, b: Tensor, dims: int | Sequence[int] | Sequence[Sequence[int]] = 2
) -> Tensor:
    """Contracts the last `dims` axes of a with the first of b, or named pairs of axes."""
    needs_tensor("tensordot", a, "a")
    needs_tensor("tensordot", b, "b")
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise RuntimeError(
                f"tensordot: dims is {dims}, the tensors have {a.ndim} and {b.ndim} dimensions"
            )
        da, db = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        da, db = ([d] if isinstance(d, int) else list(d) for d in dims)
    da = [wrap("tensordot", d, a.ndim) for d in da]
    db = [wrap("tensordot", d, b.ndim) for d in db]
    if len(da) != len(db) or len(set(da)) != len(da) or len(set(db)) != len(db):
        raise RuntimeError(
            f"tensordot: dims {dims} do not name as many distinct axes of each tensor"
        )
    for i, j in zip(da, db):
        if a.shape[i] != b.shape[j]:
            raise RuntimeError(
                f"tensordot: dim {i} of a has size {a.shape[i]}, dim {j} of b {b.shape[j]}"
            )
    fa, fb = [d for d in range(a.ndim) if d not in da], [d for d in range(b.ndim) if d not in db]
    k = product(a.shape[d] for d in da)
    y = F.matmul(
        F.permute(a, tuple(fa + da)).reshape(-1 if k else product(a.shape[d] for d in fa), k),
        F.permute(b, tuple(db + fb)).reshape(k, -1 if k else product(b.shape[d] for d in fb)),
    )
    return y.reshape(tuple(a.shape[d] for d in fa) + tuple(b.shape[d] for d in fb))


FUNCTIONS = (einsum, norm, trace, diag, diag_embed, tensordot)
PUBLIC = {f.__name__: f for f in FUNCTIONS}
for _function in (norm, trace, diag, diag_embed):
    tensor.install_method(_function.__name__, _function)
