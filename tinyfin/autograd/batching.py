"""Rules of vmap: one for each family of rows; each gives values with the batch in front."""

from __future__ import annotations

from tinyfin.autograd.levels import Level, below, entry_at
from tinyfin.autograd.vmap import aligned, by_loop, finish, front, moved, padded, unpacked
from tinyfin.core import tensor
from tinyfin.core.dtype import promote_types
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
SHIFTABLE = {"dim", "dim1", "dims", "bool", "int", "float", "optfloat", "dtype", "choice"}
AXES = {"dim", "dim1", "dims"}


def rule_of(level: Level, op, args: tuple, attrs: tuple):
    """The rule that answers a call; None where the row's formula does."""
    if by_formula(op, args):
        return None
    rule = RULES.get(op.name)
    if rule is not None:
        wanted = CONDITIONS.get(op.name)
        if wanted is None or wanted(level, args, attrs):
            return rule
        return None if op.formula is not None else by_loop
    if op.elementwise:
        return elementwise
    kinds = {a.kind for a in op.attrs}
    ranks = {a.ndim for a in args if isinstance(a, Tensor)}
    if kinds & AXES and kinds <= SHIFTABLE and len(ranks) == 1 and not op.view:
        return along_axes
    return None if op.formula is not None else by_loop


def by_formula(op, args: tuple) -> bool:
    """Whether the inner operations of a row's formula must be batched, and recorded: it has no gradient itself."""
    if op.formula is None or op.row.nondiff or op.vjp is not None or op.vjp_all is not None:
        return False
    tensors = [a for a in args if isinstance(a, Tensor)]
    return any(a.requires_grad for a in tensors) or not op.has_kernel(tensors[0].device.slot)


# ---- families


def elementwise(level: Level, op, args: tuple, attrs: tuple):
    """Samples broadcast as they would alone, and promote as they would alone."""
    values = aligned(level, args)
    dtypes = {a.dtype for a in args if isinstance(a, Tensor)}
    ranks = {a.ndim for a in args if isinstance(a, Tensor)}
    if len(dtypes) > 1 and 0 in ranks and len(ranks) > 1:
        values = demoted(level, op, args, values)
    return op.run_with(values, attrs)


def rank_of(dtype) -> int:
    """0 bool, 1 integers, 2 floating point."""
    return 2 if dtype.is_floating_point else 0 if dtype.name == "bool" else 1


def demoted(level: Level, op, args: tuple, values: tuple) -> tuple:
    """A sample without dimensions promotes by category only: its value takes the others' dtype."""
    first = 1 if op.name == "where" else 0
    common = None
    for a in args[first:]:
        if isinstance(a, Tensor) and a.ndim:
            common = a.dtype if common is None else promote_types(common, a.dtype)
    out = list(values)
    for i, a in enumerate(args):
        if (
            i >= first
            and common is not None
            and entry_at(a, level)
            and a.ndim == 0
            and rank_of(a.dtype) <= rank_of(common)
        ):
            out[i] = values[i].to(common)
    return tuple(out)


def shifted(op, args: tuple, attrs: tuple) -> tuple:
    """Attributes with axes counted behind the batch."""
    ndim = next(a.ndim for a in args if isinstance(a, Tensor))
    out = []
    for a, v in zip(op.attrs, attrs):
        if a.kind in ("dim", "dim1"):
            v += 1
        elif a.kind == "dims":
            v = tuple(d + 1 for d in (v or range(max(ndim, 1))))  # no axis means every axis
        out.append(v)
    return tuple(out)


def along_axes(level: Level, op, args: tuple, attrs: tuple):
    """Reductions, scans, sorts: axes move up by one; samples without dimensions get one for the
    while."""
    flat = next(a.ndim for a in args if isinstance(a, Tensor)) == 0
    values = tuple(front(level, a, True) for a in args)
    if flat:
        values = tuple(F.unsqueeze(v, 1) if isinstance(v, Tensor) else v for v in values)
    result = op.run_with(values, shifted(op, args, attrs))
    if not flat:
        return result
    return tuple(map(without_axis, result)) if isinstance(result, tuple) else without_axis(result)


def without_axis(y: Tensor) -> Tensor:
    """The helping axis taken away where it is still there."""
    return F.squeeze(y, 1) if y.ndim > 1 else y


def direct(level: Level, op, args: tuple, attrs: tuple):
    """Rows that treat leading axes as a batch anyway."""
    return op.run_with(tuple(front(level, a, True) for a in args), attrs)


def first_only(level: Level, args: tuple, attrs: tuple) -> bool:
    """Whether only the first argument is batched."""
    return not any(entry_at(a, level) for a in args[1:])


def shared(level: Level, op, args: tuple, attrs: tuple):
    """The first argument batched, the others the same for all."""
    return op.run_with((front(level, args[0]), *args[1:]), attrs)


def check(level: Level, op, args: tuple, attrs: tuple):
    """One look at all samples; the answer for each."""
    y = op.run_with(tuple(front(level, a) for a in args), attrs)
    return F.expand(y, (level.size,))


def extremum_place(level: Level, op, args: tuple, attrs: tuple):
    """argmax, argmin: dim None flattens each sample."""
    x, (dim, keepdim) = args[0], attrs
    value = front(level, x)
    if dim is None:
        y = op.run_with((F.reshape(value, (level.size, x.numel())),), (1, False))
        return F.reshape(y, (level.size, *(1,) * x.ndim)) if keepdim else y
    if x.ndim == 0:
        return without_axis(op.run_with((F.unsqueeze(value, 1),), (1, keepdim)))
    return op.run_with((value,), (dim % x.ndim + 1, keepdim))


def cat(level: Level, op, args: tuple, attrs: tuple):
    """All tensors batched, the axis one further back."""
    ndim = max(a.ndim for a in args)
    kept = [a for a in args if a.ndim == ndim]
    return op.run_with(tuple(front(level, a, True) for a in kept), (attrs[0] % ndim + 1,))


# ---- views


def reshape(level: Level, op, args: tuple, attrs: tuple):
    """The batch stays in front of the new shape."""
    shape, n = attrs[0], args[0].numel()
    if -1 in shape and level.size == 0:
        known = 1
        for s in shape:
            known *= 1 if s == -1 else s
        shape = tuple(n // max(known, 1) if s == -1 else s for s in shape)
    return op.run_with((front(level, args[0]),), ((level.size, *shape),))


def rows(level: Level, op, args: tuple, attrs: tuple):
    """The batch stays in front, the sample's leading axes are joined."""
    value = front(level, args[0])
    n = 1
    for size in value.shape[1:-1]:
        n *= size
    return F.reshape(value, (level.size, n, value.shape[-1]))


def narrow_embed(level: Level, op, args: tuple, attrs: tuple):
    """The axis moves up by one."""
    shape, dim, *part = attrs
    return op.run_with((front(level, args[0]),), ((level.size, *shape), dim + 1, *part))


def permute(level: Level, op, args: tuple, attrs: tuple):
    """Axes move up by one."""
    return op.run_with((front(level, args[0]),), ((0, *(d + 1 for d in attrs[0])),))


def transpose(level: Level, op, args: tuple, attrs: tuple):
    """Axes move up by one; a sample without dimensions stays."""
    value = front(level, args[0])
    return op.run_with((value,), tuple(d + 1 for d in attrs)) if args[0].ndim else F.alias(value)


def t(level: Level, op, args: tuple, attrs: tuple):
    """The sample's axes, which are the last two."""
    if args[0].ndim > 2:
        return by_loop(level, op, args, attrs)
    value = front(level, args[0])
    return F.transpose(value, 1, 2) if args[0].ndim == 2 else F.alias(value)


def expand(level: Level, op, args: tuple, attrs: tuple):
    """New axes come between the batch and the sample's own."""
    value = padded(front(level, args[0]), args[0], len(attrs[0]))
    return op.run_with((value,), ((level.size, *attrs[0]),))


def unsqueeze(level: Level, op, args: tuple, attrs: tuple):
    """The axis moves up by one."""
    return op.run_with((front(level, args[0]),), (attrs[0] + 1,))


def axes_up(level: Level, op, args: tuple, attrs: tuple):
    """squeeze, flip: the named axes move up by one."""
    return op.run_with((front(level, args[0]),), (tuple(d + 1 for d in attrs[0]),))


def getitem_view(level: Level, op, args: tuple, attrs: tuple):
    """All of the batch, then the sample's own key."""
    spec = attrs[0]
    return op.run_with((front(level, args[0]),), ((0, 1, level.size, *spec[:21], spec[24] << 1),))


def one_axis(level: Level, op, args: tuple, attrs: tuple):
    """narrow, unfold, select_view: the first attribute is an axis."""
    value = front(level, args[0])
    if args[0].ndim == 0:
        return by_loop(level, op, args, attrs)
    return op.run_with((value,), (attrs[0] + 1, *attrs[1:]))


def diagonal(level: Level, op, args: tuple, attrs: tuple):
    """Both axes move up by one."""
    return op.run_with((front(level, args[0]),), (attrs[0], attrs[1] + 1, attrs[2] + 1))


def unreduce(level: Level, op, args: tuple, attrs: tuple):
    """Reduced axes move up by one."""
    shape, dims, keepdim = attrs
    return op.run_with(
        (front(level, args[0]),), ((level.size, *shape), tuple(d + 1 for d in dims), keepdim)
    )


def as_strided(level: Level, op, args: tuple, attrs: tuple):
    """The sample's geometry, once for each step of the batch's own stride."""
    value = front(level, args[0])
    size, stride, offset, base_stride, base_offset = attrs
    step = value.stride(0)
    return op.run_with(
        (value,), ((level.size, *size), (step, *stride), offset, (step, *base_stride), base_offset)
    )


# ---- products


def matmul(level: Level, op, args: tuple, attrs: tuple):
    """Vectors become matrices of one row or column, leading axes broadcast."""
    a, b = args
    x, y = front(level, a), front(level, b)
    x = F.unsqueeze(x, -2) if a.ndim == 1 else x
    y = F.unsqueeze(y, -1) if b.ndim == 1 else y
    ranks = max(a.ndim, 2), max(b.ndim, 2)
    x = grown(x, entry_at(a, level), ranks[0], max(ranks))
    y = grown(y, entry_at(b, level), ranks[1], max(ranks))
    z = op.run_with((x, y), attrs)
    z = F.squeeze(z, -1) if b.ndim == 1 else z
    return F.squeeze(z, -1 if b.ndim == 1 else -2) if a.ndim == 1 else z


def grown(value: Tensor, is_batched: Any, ndim: int, most: int) -> Tensor:
    """Axes of size one between the batch and a sample's own."""
    if not is_batched or ndim == most:
        return value
    return F.reshape(value, (value.shape[0], *(1,) * (most - ndim), *value.shape[1:]))


def linear(level: Level, op, args: tuple, attrs: tuple):
    """One product where the weight is shared, else a batched one."""
    x, w, bias = args
    if first_only(level, args, attrs):
        return op.run_with((front(level, x), w, bias), attrs)
    y = F.matmul(x, F.transpose(w, -2, -1))
    return front(level, y if bias is None else y + bias, True)


def folded(value: Tensor, k: int) -> Tensor:
    """The batch joined with the axis k behind it: (B, n, ...) to (B n, ...) where k is 0."""
    value = moved(value, 0, k)
    return F.reshape(
        value, (*value.shape[:k], value.shape[k] * value.shape[k + 1], *value.shape[k + 2 :])
    )


def unfolded(value: Tensor, k: int, size: int) -> Tensor:
    """The batch taken out of axis k again, to the front."""
    shape = value.shape
    value = F.reshape(value, (*shape[:k], size, shape[k] // size, *shape[k + 1 :]))
    return moved(value, k, 0)


def with_groups(attrs: tuple, times: int) -> tuple:
    """A convolution's attributes with more groups."""
    return (*attrs[:3], attrs[3] * times, *attrs[4:])


def convolution(level: Level, op, args: tuple, attrs: tuple):
    """A batch of images is more images; a batch of weights is more groups."""
    x, w, bias = args
    n = level.size
    if first_only(level, args, attrs):
        return unfolded(op.run_with((folded(front(level, x), 0), w, bias), attrs), 0, n)
    if entry_at(x, level) is None and entry_at(w, level) and attrs[3] == 1:
        y = unfolded(op.run_with((x, folded(front(level, w), 0), None), attrs), 1, n)
    elif entry_at(w, level) is None:
        y = unfolded(op.run_with((folded(front(level, x, True), 0), w, None), attrs), 0, n)
    else:
        many = folded(front(level, x, True), 1), folded(front(level, w), 0), None
        y = unfolded(op.run_with(many, with_groups(attrs, n)), 1, n)
    if bias is None:
        return y
    b = front(level, bias, True)
    return y + F.reshape(b, (n, 1, b.shape[1], *(1,) * (x.ndim - 2)))


def conv_grad_input(level: Level, op, args: tuple, attrs: tuple):
    """As for the convolution: images or groups."""
    u, w = args
    if first_only(level, args, attrs):
        return unfolded(op.run_with((folded(front(level, u), 0), w), attrs), 0, level.size)
    many = folded(front(level, u, True), 1), folded(front(level, w), 0)
    return unfolded(op.run_with(many, with_groups(attrs, level.size)), 1, level.size)


def conv_grad_weight(level: Level, op, args: tuple, attrs: tuple):
    """Cotangents alone are more channels; with images they are more groups."""
    u, x = args
    if entry_at(x, level) is None and attrs[3] == 1:
        return unfolded(op.run_with((folded(front(level, u), 1), x), attrs), 0, level.size)
    if entry_at(u, level) is None and attrs[3] == 1:
        return unfolded(op.run_with((u, folded(front(level, x), 1)), attrs), 1, level.size)
    many = folded(front(level, u, True), 1), folded(front(level, x, True), 1)
    return unfolded(op.run_with(many, with_groups(attrs, level.size)), 0, level.size)


def attention(level: Level, op, args: tuple, attrs: tuple):
    """Leading axes are a batch anyway; a mask gets the axes that it lacks."""
    k = 3 if op.name == "sdpa_forward" else 4
    ndim = args[k - 1].ndim
    values = [front(level, a, i != k) for i, a in enumerate(args)]
    if args[k] is not None and entry_at(args[k], level):
        values[k] = padded(values[k], args[k], ndim)
    return op.run_with(tuple(values), attrs)


# ---- random numbers


def random(level: Level, op, args: tuple, attrs: tuple):
    """Refused, drawn for the whole batch, or drawn once, as vmap's `randomness` says."""
    x = args[0]
    if level.randomness == "error":
        raise RuntimeError(
            f"vmap: {op.name} draws random numbers; say vmap(..., randomness='different') or 'same'"
        )
    is_batched = entry_at(x, level) is not None
    with below(level):
        if level.randomness == "same" and not is_batched:
            return op.run_with(args, attrs)
        if op.mutates:
            return fill(level, op, x, attrs, is_batched)
        if level.randomness == "different":
            return finish(level, op, args, attrs, op.run_with((front(level, x, True),), attrs))
        pattern = op.run_with((F.full_of(x.shape, 1.0, sample(level, x)),), attrs)
    return x * pattern


def sample(level: Level, x: Tensor) -> Tensor:
    """One sample's value, without history."""
    value, dim = unpacked(level, x)
    return F.detach(value[(slice(None),) * dim + (0,)])


def fill(level: Level, op, x: Tensor, attrs: tuple, is_batched: bool):
    """A random fill of x."""
    if level.randomness == "same":
        one = F.zeros_of(x.shape, sample(level, x))
        op.run_with((one,), attrs)
        tensor.assign(front(level, x), one)
        return x
    if is_batched:
        op.run_with((front(level, x),), attrs)
        return x
    if x._version or x.base is not None:
        raise RuntimeError(
            f"vmap: {op.name} cannot fill a tensor that is the same for the whole batch with "
            "different "
            "numbers; make it inside, or from a batched tensor"
        )
    value = F.contiguous_copy(F.expand(F.unsqueeze(x, 0), (level.size, *x.shape)))
    op.run_with((value,), attrs)
    tensor.rewrap(x, value, "batch", (level, value, 0), 0)
    return x


def refuse(level: Level, op, args: tuple, attrs: tuple):
    """Results whose shape depends on values."""
    raise RuntimeError(
        f"vmap: {op.name}: the shape of the result depends on the values of a batched tensor"
    )


from tinyfin.autograd import batching_index as index  # noqa: E402  (its rules use those above)

RULES = {
    "argmax": extremum_place,
    "argmin": extremum_place,
    "cat": cat,
    "reshape": reshape,
    "view": reshape,
    "rows": rows,
    "permute": permute,
    "permute_back": permute,
    "transpose": transpose,
    "t": t,
    "expand": expand,
    "unsqueeze": unsqueeze,
    "squeeze": axes_up,
    "flip": axes_up,
    "getitem_view": getitem_view,
    "narrow": one_axis,
    "select_view": one_axis,
    "unfold": one_axis,
    "diagonal": diagonal,
    "alias": direct,
    "unreduce": unreduce,
    "as_strided_view": as_strided,
    "matmul": matmul,
    "int_mm": matmul,
    "linear": linear,
    "sdpa_forward": attention,
    "sdpa_grad": attention,
    "convolution": convolution,
    "conv1d": convolution,
    "conv2d": convolution,
    "conv3d": convolution,
    "conv_grad_input": conv_grad_input,
    "conv_grad_weight": conv_grad_weight,
    "cast": direct,
    "contiguous_copy": direct,
    "zero_gradient": direct,
    "tril": direct,
    "triu": direct,
    "pad_constant": direct,
    "narrow_embed": narrow_embed,
    "max_pool": direct,
    "pool_scatter": direct,
    "pool_gather": direct,
    "avg_pool": direct,
    "avg_pool_grad": direct,
    "adaptive_avg_pool": direct,
    "adaptive_avg_pool_grad": direct,
    "adaptive_max_pool": direct,
    "check_not_nan": check,
    "check_unit_interval": check,
    "native_layer_norm": shared,
    "native_rms_norm": shared,
    "nonzero_sized": refuse,
    **index.RULES,
}
"""name -> rule, for rows whose family does not say enough."""

CONDITIONS = {"native_layer_norm": first_only, "native_rms_norm": first_only}
"""name -> when the rule may be used; else the row's formula, or a loop."""
