"""Rows that pick, place and add elements by index.

Indices arrive as int64 (int32 is taken too). Rows named `*_embed` put their argument into zeros:
they are the adjoints of the picking rows, and have the picking rows as theirs.
"""

from tinyfin.ops.row import DIM, F, attr, composite, row

SHAPE = attr("shape", "shape")
MASK = attr("mask", "int")
DIAGONAL = attr("diagonal", "int", 0)
PADDING = attr("padding_idx", "optint", None)


# ---- whole slices


def scaled(g, alpha):
    """g times a number."""
    return g if alpha == 1 else g * alpha


row(
    "index_select",
    "x index",
    attrs=(DIM,),
    order="x dim index",
    infer="index_select",
    family="index_select",
    dtypes="any",
    vjp=lambda g, index, x_shape, dim: F.index_embed(g, index, x_shape, dim),
    jvp="linear",
    doc="Slices of an axis, in the order of a vector of indices.",
)
row(
    "index_embed",
    "x index",
    attrs=(SHAPE, DIM),
    infer="index_embed",
    family="index_embed",
    method=False,
    function=False,
    vjp=lambda g, index, dim: F.index_select(g, dim, index),
    jvp="linear",
    doc="Slices added at indices of a tensor of zeros, in rising order of the indices' places.",
)
row(
    "index_add",
    "x index src",
    attrs=(DIM, attr("alpha", "float", 1)),
    order="x dim index src alpha",
    public={"src": "source"},
    infer="index_add",
    family="index_add",
    inplace=True,
    vjp=(
        lambda g: g,
        None,
        lambda g, index, dim, alpha: scaled(F.index_select(g, dim, index), alpha),
    ),
    doc="Slices times alpha added at indices of an axis, in rising order of the indices' places.",
)

row(
    "index_copy",
    "x index src",
    attrs=(DIM,),
    order="x dim index src",
    public={"src": "source"},
    infer="index_copy",
    family="index_copy",
    dtypes="any",
    inplace=True,
    vjp=(
        lambda g, index, dim: F.index_fill(g, dim, index, 0.0),
        None,
        lambda g, index, dim: F.index_select(g, dim, index),
    ),
    doc="x with slices of an axis replaced, by a vector of indices; the last of equal ones stays.",
)
row(
    "index_fill",
    "x index value",
    attrs=(DIM,),
    order="x dim index value",
    infer="index_fill",
    family="index_copy",
    dtypes="any",
    scalars=True,
    inplace=True,
    vjp=(
        lambda g, index, dim: F.index_fill(g, dim, index, 0.0),
        None,
        lambda g, index, dim: F.sum(F.index_select(g, dim, index), None, False),
    ),
    doc="x with slices of an axis filled with a number.",
)


def embedding_vjp(g, index, w_shape, padding_idx):
    """Rows of the cotangent added up by index; the padding row stays zero."""
    flat, rows = F.reshape(index, (-1,)), F.rows(g)
    if padding_idx is not None:
        rows = F.where(F.unsqueeze(flat == padding_idx % w_shape[0], 1), 0.0, rows)
    return F.index_embed(rows, flat, w_shape, 0)


row(
    "embedding",
    "index w",
    attrs=(PADDING,),
    public={"index": "input", "w": "weight"},
    infer="embedding",
    family="embedding",
    dtypes="fh",
    method=False,
    function=False,
    vjp=(None, embedding_vjp),
    jvp="linear",
    doc="Rows of a matrix by index; the row padding_idx gets no gradient.",
)

# ---- along an axis, element by element

row(
    "gather",
    "x index",
    attrs=(DIM,),
    order="x dim index",
    infer="gather",
    family="gather",
    dtypes="any",
    vjp=lambda g, index, x_shape, dim: F.scatter_embed(g, index, x_shape, dim),
    jvp="linear",
    overload=lambda x, dim, index, *, sparse_grad=False: F.gather(x, dim, index),
    doc="y[i, j] = x[index[i, j], j] for dim 0, and likewise for others.",
)
row(
    "scatter_embed",
    "x index",
    attrs=(SHAPE, DIM),
    infer="scatter_embed",
    family="scatter_embed",
    method=False,
    function=False,
    vjp=lambda g, index, dim: F.gather(g, dim, index),
    jvp="linear",
    doc="Elements added at indices along an axis of a tensor of zeros.",
)


def scatter_overload(x, dim, index, src=None, *, value=None, reduce=None):
    """scatter(value=) and scatter(reduce=)."""
    src = value if src is None else src
    if reduce is None:
        return F.scatter(x, dim, index, src)
    if reduce == "add":
        return F.scatter_add(
            x, dim, index, F.full_of(index.shape, src, x) if isinstance(src, (int, float)) else src
        )
    raise NotImplementedError(f"scatter: reduce is {reduce!r}, expected None or 'add'")


def grown(g, shape):
    """A cotangent of the part that an index uses, with zeros for the rest of the source."""
    pads = [p for have, want in zip(reversed(g.shape), reversed(shape)) for p in (0, want - have)]
    return F.pad_constant(g, tuple(pads), 0.0) if any(pads) else g


row(
    "scatter",
    "x index src",
    attrs=(DIM,),
    order="x dim index src",
    infer="scatter",
    family="scatter",
    dtypes="any",
    scalars=True,
    inplace=True,
    overload=scatter_overload,
    vjp=(
        lambda g, index, dim: F.scatter(g, dim, index, 0.0),
        None,
        lambda g, index, src_shape, dim: grown(F.gather(g, dim, index), src_shape),
    ),
    doc="x with the elements of src (or a number) written at indices along an axis; the last of "
    "equal ones stays.",
)
row(
    "scatter_add",
    "x index src",
    attrs=(DIM,),
    order="x dim index src",
    infer="scatter",
    family="scatter_add",
    inplace=True,
    vjp=(
        lambda g: g,
        None,
        lambda g, index, src_shape, dim: grown(F.gather(g, dim, index), src_shape),
    ),
    doc="x with the elements of src added at indices along an axis, in rising order.",
)

# ---- advanced indexing: `mask` has a bit for each indexed axis

row(
    "index",
    "x *indices",
    attrs=(MASK,),
    infer="index",
    family="index",
    dtypes="any",
    method=False,
    function=False,
    vjp=(lambda g, indices, x_shape, mask: F.put_embed(g, indices, x_shape, mask), None),
    jvp="linear",
    doc="Advanced indexing by tensors of one shape; negative indices count from the end.",
)
row(
    "put_embed",
    "x *indices",
    attrs=(SHAPE, MASK),
    infer="put_embed",
    family="put_embed",
    method=False,
    function=False,
    vjp=(lambda g, indices, mask: F.index(g, indices, mask), None),
    jvp="linear",
    doc="Elements added at indices of a tensor of zeros.",
)


row(
    "index_put",
    "x value *indices",
    attrs=(MASK, attr("accumulate", "bool", False)),
    infer="index_put",
    family="index_put",
    dtypes="any",
    scalars=True,
    inplace=True,
    method=False,
    function=False,
    vjp=(
        lambda g, indices, mask, accumulate: (
            g if accumulate else F.index_put(g, 0.0, indices, mask, False)
        ),
        lambda g, indices, mask: F.index(g, indices, mask),
        None,
    ),
    doc="x with value, which broadcasts, written or added at indices; the last of equals stays.",
)

# ---- by mask and by shape


def columns(places):
    """Coordinates as one vector per axis."""
    return tuple(F.narrow(places, 1, k, 1).squeeze(1) for k in range(places.shape[1]))


row(
    "nonzero_sized",
    "x",
    attrs=(attr("count", "int"),),
    infer="nonzero",
    family="nonzero",
    dtypes="any",
    method=False,
    function=False,
    nondiff=True,
    doc="Coordinates of the first `count` elements that are not zero, in row-major order.",
)
composite(
    "nonzero",
    "x",
    lambda x: F.nonzero_sized(x, int(F.sum(F.ne(x, 0)))),
    dtypes="any",
    nondiff=True,
    overload=lambda x, *, as_tuple=False: columns(F.nonzero(x)) if as_tuple else F.nonzero(x),
    doc="Coordinates of the elements that are not zero, one row each, in row-major order.",
)
row(
    "tril",
    "x",
    attrs=(DIAGONAL,),
    infer="triangle",
    family="tril",
    jvp="linear",
    dtypes="any",
    inplace=True,
    vjp=lambda g, diagonal: F.tril(g, diagonal),
    doc="The part of the last two axes on and below a diagonal, zeros elsewhere.",
)
row(
    "triu",
    "x",
    attrs=(DIAGONAL,),
    infer="triangle",
    family="triu",
    jvp="linear",
    dtypes="any",
    inplace=True,
    vjp=lambda g, diagonal: F.triu(g, diagonal),
    doc="The part of the last two axes on and above a diagonal, zeros elsewhere.",
)
composite(
    "take",
    "x index",
    lambda x, index: F.index(F.reshape(x, (-1,)), (index,), 1),
    dtypes="any",
    doc="Elements of the flattened tensor by index.",
)
composite(
    "take_along_dim",
    "x index",
    lambda x, index, dim: take_along(x, index, dim),
    public={"index": "indices"},
    attrs=(attr("dim", "optint", None),),
    dtypes="any",
    doc="gather, where axes other than dim broadcast; without dim, of the flattened tensors.",
)


def take_along(x, index, dim):
    """Broadcasts all axes but one, then gathers."""
    if dim is None:
        return F.gather(F.reshape(x, (-1,)), 0, F.reshape(index, (-1,)))
    dim %= max(x.ndim, 1)
    sizes = [
        max(a, b) if 1 in (a, b) and 0 not in (a, b) else min(a, b) if 1 in (a, b) else a
        for a, b in zip(x.shape, index.shape)
    ]
    wide_x = [-1 if d == dim else s for d, s in enumerate(sizes)]
    wide_i = [-1 if d == dim else s for d, s in enumerate(sizes)]
    return F.gather(F.expand(x, tuple(wide_x)), dim, F.expand(index, tuple(wide_i)))
