"""Rows that change type or place, copy, fill."""

from tinyfin.ops.row import DTYPE, F, attr, row, view

row(
    "cast",
    "x",
    attrs=(DTYPE,),
    infer="cast",
    family="copy",
    jvp="linear",
    dtypes="any",
    vjp=lambda g, x_dtype: F.cast(g, x_dtype),
    function=False,
    method=False,
    doc="The same values in another dtype, always in new memory.",
)

row(
    "contiguous_copy",
    "x",
    infer="like_input",
    family="copy",
    jvp="linear",
    dtypes="any",
    vjp=lambda g: g,
    function=False,
    method=False,
    copies=True,
    doc="A row-major copy; where it is large, it shares bytes until one side is written.",
)

row(
    "assign",
    "x a",
    infer="like_input",
    family=None,
    dtypes="any",
    public={"a": "src"},
    function=False,
    method=False,
    vjp=(lambda g, x_shape: F.zeros_of(x_shape, g), lambda g: g),
    jvp=lambda a_t: a_t,
    doc="What `copy_` records: nothing flows to the old value, everything to the source.",
)

row(
    "zero_gradient",
    "x",
    infer="like_input",
    family=None,
    dtypes="any",
    function=False,
    method=False,
    vjp=lambda g, x_shape: F.zeros_of(x_shape, g),
    doc="What random fills record: the new value does not depend on the old one.",
)

view(
    "as_strided_view",
    "Another geometry over the same storage; the base's own is kept for the gradient.",
    infer="as_strided",
    function=False,
    method=False,
    attrs=(
        attr("size", "shape"),
        attr("stride", "shape"),
        attr("storage_offset", "int"),
        attr("base_stride", "shape"),
        attr("base_offset", "int"),
    ),
    vjp=lambda g, x_shape, size, stride, storage_offset, base_stride, base_offset: F.strided_embed(
        g, x_shape, size, stride, storage_offset, base_stride, base_offset
    ),
)
