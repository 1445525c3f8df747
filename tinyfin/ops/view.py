"""Rows of views: no bytes move."""

from tinyfin.ops.row import DIMS, F, attr, view

SHAPE = attr("shape", "shape")


view(
    "reshape",
    "Another shape with the same elements; copies only where strides do not allow a view.",
    attrs=(SHAPE,),
    varargs=True,
    copies=True,
    vjp=lambda g, x_shape: F.reshape(g, x_shape),
)
view(
    "view",
    "Another shape over the same bytes; an error where strides do not allow it.",
    function=False,
    attrs=(SHAPE,),
    varargs=True,
    infer="reshape",
    vjp=lambda g, x_shape: F.reshape(g, x_shape),
)
view(
    "rows",
    "All axes but the last as one; copies only where strides do not allow a view.",
    copies=True,
    function=False,
    method=False,
    vjp=lambda g, x_shape: F.reshape(g, x_shape),
)
view(
    "permute",
    "Reorder axes.",
    attrs=(attr("dims", "dims"),),
    varargs=True,
    vjp=lambda g, dims: F.permute_back(g, dims),
)
view(
    "permute_back",
    "Axes as they were before permute.",
    attrs=(attr("dims", "dims"),),
    function=False,
    method=False,
    vjp=lambda g, dims: F.permute(g, dims),
)
view(
    "transpose",
    "Exchange two axes.",
    attrs=(attr("dim0", "dim"), attr("dim1", "dim")),
    vjp=lambda g, dim0, dim1: F.transpose(g, dim0, dim1),
)
view(
    "t",
    "The transpose of a matrix; vectors and numbers stay as they are.",
    vjp=lambda g: F.t(g),
)
view(
    "expand",
    "Repeat axes of size one without copying.",
    attrs=(attr("size", "shape"),),
    varargs=True,
    function=False,
    vjp=lambda g, x_shape: F.sum_to(g, x_shape),
)
view(
    "unsqueeze",
    "A new axis of size one.",
    attrs=(attr("dim", "dim1"),),
    vjp=lambda g, dim: F.squeeze(g, dim),
)
view(
    "squeeze",
    "Without the axes of size one, or without the named ones of size one.",
    attrs=(DIMS,),
    vjp=lambda g, x_shape: F.reshape(g, x_shape),
)
view(
    "flip",
    "The order of elements turned round along axes.",
    attrs=(attr("dims", "dims"),),
    varargs=True,
    vjp=lambda g, dims: F.flip(g, dims),
)
view(
    "getitem_view",
    "Basic indexing: integers, slices, new axes.",
    attrs=(attr("spec", "spec"),),
    symbol="[]",
    function=False,
    method=False,
    vjp=lambda g, x_shape, spec: F.embed_slice(g, x_shape, spec),
)
view(
    "select_view",
    "One place of an axis; the axis goes.",
    attrs=(attr("dim", "dim"), attr("index", "int")),
    function=False,
    method=False,
    vjp=lambda g, x_shape, dim, index: F.narrow_embed(F.unsqueeze(g, dim), x_shape, dim, index, 1),
)
view(
    "narrow",
    "Part of one axis.",
    attrs=(attr("dim", "dim"), attr("start", "int"), attr("length", "int")),
    vjp=lambda g, x_shape, dim, start, length: F.narrow_embed(g, x_shape, dim, start, length),
)
view(
    "diagonal",
    "The diagonal of two axes, as the last axis.",
    attrs=(attr("offset", "int", 0), attr("dim1", "dim", 0), attr("dim2", "dim", 1)),
    vjp=lambda g, x_shape, offset, dim1, dim2: F.embed_diagonal(g, x_shape, offset, dim1, dim2),
)
view(
    "unfold",
    "Windows of `size` every `step` along an axis; the window is the last axis.",
    function=False,
    attrs=(attr("dimension", "dim"), attr("size", "int"), attr("step", "int")),
    vjp=lambda g, x_shape, dimension, size, step: F.embed_unfold(g, x_shape, dimension, size, step),
)
view("alias", "The same view in a new tensor.", function=False, method=False, vjp=lambda g: g)

view(
    "unreduce",
    "Undoes a reduction's shape: the value stands at every reduced place.",
    attrs=(SHAPE, attr("dim", "shape"), attr("keepdim", "bool", False)),
    function=False,
    method=False,
    vjp=lambda g, dim, keepdim: F.sum(g, dim, keepdim) if dim else g,
)
