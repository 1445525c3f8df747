"""Rows that join, pad and repeat tensors."""

from tinyfin.ops.row import F, attr, composite, row

DIM0 = attr("dim", "int", 0)
PAD = attr("pad", "shape")


def cat_vjp(g, xs_shape, dim):
    """To each tensor its part of the cotangent."""
    dim %= g.ndim
    parts, at = [], 0
    for shape in xs_shape:
        if shape == (0,) and g.ndim != 1:
            parts.append(F.zeros_of(shape, g))
            continue
        parts.append(F.narrow(g, dim, at, shape[dim]))
        at += shape[dim]
    return parts


row(
    "cat",
    "*xs",
    attrs=(DIM0,),
    infer="cat",
    family="cat",
    dtypes="any",
    method=False,
    vjp_all=cat_vjp,
    doc="Tensors one after the other along an axis; dtypes are promoted.",
)


def stack_formula(*args):
    """Each tensor with a new axis, joined along it."""
    *xs, dim = args
    n = xs[0].ndim + 1
    if not -n <= dim < n:
        raise IndexError(f"stack: dim {dim} is out of range (expected {-n} to {n - 1})")
    for i, x in enumerate(xs):
        if x.shape != xs[0].shape:
            raise RuntimeError(
                f"stack: tensor {i} has shape {tuple(x.shape)}, tensor 0 has {tuple(xs[0].shape)}, "
                "expected the same"
            )
    return F.cat([F.unsqueeze(x, dim) for x in xs], dim)


composite(
    "stack",
    "*xs",
    stack_formula,
    attrs=(DIM0,),
    dtypes="any",
    method=False,
    doc="Tensors of one shape side by side along a new axis.",
)

row(
    "pad_constant",
    "x",
    attrs=(PAD, attr("value", "float", 0.0)),
    infer="pad_constant",
    family="pad_constant",
    dtypes="any",
    method=False,
    function=False,
    vjp=lambda g, pad: F.pad_constant(g, tuple(-p for p in pad), 0.0),
    jvp=lambda x_t, pad: F.pad_constant(x_t, pad, 0.0),
    doc="A border of one value: before and after for the last axis, then the one before; negative "
    "sizes crop.",
)


row(
    "narrow_embed",
    "x",
    attrs=(attr("shape", "shape"), attr("dim", "dim"), attr("start", "int"), attr("length", "int")),
    infer="narrow_embed",
    family="narrow_embed",
    dtypes="any",
    method=False,
    function=False,
    vjp=lambda g, dim, start, length: F.narrow(g, dim, start, length),
    jvp="linear",
    doc="A tensor of zeros with x in a part of one axis.",
)


def places(sizes):
    """How many elements a shape has."""
    n = 1
    for size in sizes:
        n *= size
    return n


def repeat_formula(x, repeats):
    """A broadcast copy for each axis that has more than one place, then one for the others."""
    lead = len(repeats) - x.ndim
    if lead < 0:
        raise RuntimeError(
            f"repeat: repeats {tuple(repeats)} has fewer entries than the tensor has dimensions "
            f"({x.ndim})"
        )
    if any(r < 0 for r in repeats):
        raise RuntimeError(f"repeat: repeats {tuple(repeats)} has a negative entry")
    whole = x = F.reshape(x, (1,) * lead + tuple(x.shape))
    for d, r in enumerate(repeats):
        size = x.shape[d]
        if r != 1 and size != 1:
            before, after = tuple(x.shape[:d]), tuple(x.shape[d + 1 :])
            outer, inner = places(before), places(after)
            x = F.expand(F.reshape(x, (outer, 1, size, inner)), (outer, r, size, inner))
            x = F.reshape(x, (*before, r * size, *after))
    sizes = tuple(r if s == 1 else r * s for s, r in zip(whole.shape, repeats))
    fresh = x.shape == sizes and x is not whole and 0 not in sizes  # an empty reshape is a view
    return x if fresh else F.contiguous_copy(F.expand(x, sizes))


def tile_formula(x, dims):
    """repeat, with missing leading entries taken as 1."""
    return repeat_formula(x, (1,) * (x.ndim - len(dims)) + tuple(dims))


composite(
    "repeat",
    "x",
    repeat_formula,
    attrs=(attr("repeats", "shape"),),
    varargs=True,
    dtypes="any",
    function=False,
    doc="The tensor several times along each axis.",
)
composite(
    "tile",
    "x",
    tile_formula,
    attrs=(attr("dims", "shape"),),
    varargs=True,
    dtypes="any",
    doc="The tensor several times along its last axes.",
)


def roll_formula(x, shifts, dims):
    """The two parts of each axis, exchanged."""
    if not dims:
        if len(shifts) != 1:
            raise RuntimeError(f"roll: {len(shifts)} shifts for the flattened tensor, expected one")
        return F.reshape(roll_formula(F.reshape(x, (-1,)), shifts, (0,)), tuple(x.shape))
    if len(shifts) != len(dims):
        raise RuntimeError(f"roll: {len(shifts)} shifts for {len(dims)} dims, expected as many")
    moved = False
    for shift, dim in zip(shifts, dims):
        if not -x.ndim <= dim < x.ndim:
            raise IndexError(
                f"roll: dim {dim} is out of range (expected {-x.ndim} to {x.ndim - 1})"
            )
        size = x.shape[dim]
        cut = -shift % size if size else 0
        if cut:
            x = F.cat([F.narrow(x, dim, cut, size - cut), F.narrow(x, dim, 0, cut)], dim)
            moved = True
    return x if moved else F.contiguous_copy(x)


composite(
    "roll",
    "x",
    roll_formula,
    attrs=(attr("shifts", "shape"), attr("dims", "shape", ())),
    dtypes="any",
    doc="Elements moved along axes; what leaves at one end enters at the other.",
)
