"""Rows of random numbers: in-place fills, and dropout.

A draw is named by `seed` and `draw`; element i of it depends on these and i alone. Choosing them is
the face's task.
"""

from tinyfin.ops.row import F, attr, row

SEED, DRAW = attr("seed", "int"), attr("draw", "int")
FILL = {"mutates": ("x",), "nout": 0, "method": False, "function": False}

row(
    "uniform_",
    "x",
    attrs=(attr("low", "float"), attr("high", "float"), SEED, DRAW),
    infer="uniform",
    family="uniform",
    dtypes="fh",
    **FILL,
    doc="Numbers from low to below high, each equally likely.",
)
row(
    "normal_",
    "x",
    attrs=(attr("mean", "float"), attr("std", "float"), SEED, DRAW),
    infer="normal",
    family="normal",
    dtypes="fh",
    **FILL,
    doc="Normally distributed numbers.",
)
row(
    "exponential_",
    "x",
    attrs=(attr("lambd", "float"), SEED, DRAW),
    infer="exponential",
    family="exponential",
    dtypes="fh",
    **FILL,
    doc="Exponentially distributed numbers of rate lambd; never 0.",
)
row(
    "randint_",
    "x",
    attrs=(attr("low", "int"), attr("high", "int"), SEED, DRAW),
    infer="randint",
    family="randint",
    dtypes="any",
    **FILL,
    doc="Whole numbers from low to below high.",
)
row(
    "bernoulli_",
    "x",
    attrs=(attr("p", "float"), SEED, DRAW),
    infer="bernoulli",
    family="bernoulli",
    dtypes="any",
    **FILL,
    doc="1 with probability p, else 0.",
)
row(
    "random_bits_",
    "x",
    attrs=(SEED, DRAW, attr("first", "int", 0)),
    infer="random_bits",
    family="random_bits",
    dtypes="i",
    **FILL,
    doc="The words of the draw, from block `first` of four words on.",
)
row(
    "dropout_apply",
    "x",
    attrs=(attr("p", "float"), SEED, DRAW),
    infer="dropout",
    family="dropout",
    dtypes="fh",
    method=False,
    function=False,
    jvp="linear",
    vjp=lambda g, p, seed, draw: F.dropout_apply(g, p, seed, draw),
    doc="Zeros with probability p, else x / (1 - p); the pattern is drawn again for the gradient.",
)
