"""Rows of matrix products."""

from tinyfin.ops.row import F, attr, composite, row


def matmul_da(g, b, a_shape):
    """g b^T, with vectors as matrices of one row or column."""
    if len(a_shape) == 1 and b.ndim == 1:
        return g * b
    if b.ndim == 1:
        return F.mul(g.unsqueeze(-1), b)
    if len(a_shape) == 1:
        return F.matmul(b, g.unsqueeze(-1)).squeeze(-1)
    return F.matmul(g, F.transpose(b, -2, -1))


def matmul_db(g, a, b_shape):
    """a^T g, with vectors as matrices of one row or column."""
    if len(b_shape) == 1 and a.ndim == 1:
        return g * a
    if a.ndim == 1:
        return F.mul(a.unsqueeze(-1), g.unsqueeze(-2))
    if len(b_shape) == 1:
        return F.matmul(F.transpose(a, -2, -1), g.unsqueeze(-1)).squeeze(-1)
    if len(b_shape) == 2 and a.ndim > 2:  # one chain over all rows, not a sum of batches
        return F.matmul(F.transpose(flat(a), 0, 1), flat(g))
    return F.matmul(F.transpose(a, -2, -1), g)


def flat(x):
    """Leading axes joined."""
    return x if x.ndim == 2 else F.rows(x)


row(
    "matmul",
    "a b",
    infer="matmul",
    family="matmul",
    symbol="@",
    amp="low",
    dtypes="ifh",
    jvp="linear",
    vjp=(matmul_da, matmul_db),
    doc="Matrix product of the last two axes; leading axes broadcast, vectors act as in NumPy.",
)


def int_mm_formula(a, b):
    """Cast, then multiply."""
    return F.matmul(eight_bits(a, "input"), eight_bits(b, "other"))


def eight_bits(x, what):
    """An argument of int_mm as int32."""
    if x.dtype not in (F.int8, F.uint8):
        raise RuntimeError(f"int_mm: {what} has dtype {x.dtype}, expected int8 or uint8")
    return F.cast(x, F.int32)


composite(
    "int_mm",
    "a b",
    int_mm_formula,
    infer="int_mm",
    family="int_mm",
    nondiff=True,
    method=False,
    dtypes="i",
    doc="Matrix product of 8-bit integers, signed or not, in int32, which wraps; shapes as of matmul.",
)


def linear_dw(g, x):
    """g^T x over all leading axes."""
    return F.matmul(F.transpose(flat(g), 0, 1), flat(x)) if x.ndim > 1 else F.outer(g, x)


def linear_db(g):
    """g summed over all leading axes."""
    return F.sum(g, tuple(range(g.ndim - 1))) if g.ndim > 1 else g


def linear_jvp(x, w, x_t, w_t, bias_t):
    """Bilinear in input and weight, linear in bias."""
    return F.add_tangents(
        None if x_t is None else F.linear(x_t, w), None if w_t is None else F.linear(x, w_t), bias_t
    )


row(
    "linear",
    "x w bias?",
    infer="linear",
    family="linear",
    amp="low",
    dtypes="fh",
    method=False,
    function=False,
    vjp=(lambda g, w: F.matmul(g, w), linear_dw, linear_db),
    jvp=linear_jvp,
    doc="x w^T + bias, over the last axis.",
)


def need(name, x, ndim, what):
    """A check of dimensions with the argument's name."""
    if x.ndim != ndim:
        raise RuntimeError(
            f"{name}: {what} has {x.ndim} dimensions ({tuple(x.shape)}), expected {ndim}"
        )


def product(name, na, nb):
    """matmul that insists on dimensions."""

    def formula(a, b):
        need(name, a, na, "input")
        need(name, b, nb, "other")
        return F.matmul(a, b)

    return formula


def bmm(a, b):
    """Batches of equal size."""
    need("bmm", a, 3, "input")
    need("bmm", b, 3, "mat2")
    if a.shape[0] != b.shape[0]:
        raise RuntimeError(
            f"bmm: input is {tuple(a.shape)}, mat2 is {tuple(b.shape)}: batch sizes differ"
        )
    return F.matmul(a, b)


def outer(a, b):
    """Column times row."""
    need("outer", a, 1, "input")
    need("outer", b, 1, "vec2")
    return F.mul(a.unsqueeze(1), b.unsqueeze(0))


def scaled(name, x, factor, what):
    """x times a number; integers take whole numbers only."""
    if factor == 1:
        return x
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return x * factor
    if factor != int(factor):
        raise RuntimeError(
            f"{name}: {what} is {factor}, expected a whole number for {x.dtype} matrices"
        )
    return x * int(factor)


def expanded(name, base, shape):
    """base in the shape of a product."""
    if base.shape == shape:
        return base
    try:
        return base.expand(shape)
    except RuntimeError:
        raise RuntimeError(
            f"{name}: input is {tuple(base.shape)}, which does not expand to the product's {shape}"
        ) from None


def added(name, product):
    """beta base + alpha product(a, b); a zero beta ignores base, NaN and all."""

    def formula(base, a, b, beta, alpha):
        y = product(a, b)
        if base.dtype != y.dtype:
            raise RuntimeError(
                f"{name}: input has dtype {base.dtype}, the product {y.dtype}; expected the same"
            )
        base = expanded(name, base, tuple(y.shape))
        y = scaled(name, y, alpha, "alpha")
        return y + F.zeros_of((), y) if beta == 0 else y + scaled(name, base, beta, "beta")

    return formula


def addmm(base, a, b, beta, alpha):
    """By one kernel where it has the dtype and the shapes are right."""
    dtype = a.dtype
    if (
        beta != 0
        and a.ndim == b.ndim == 2
        and a.shape[1] == b.shape[0]
        and dtype is b.dtype
        and dtype is base.dtype
        and dtype.is_floating_point
        and dtype.itemsize >= 4
    ):
        base = expanded("addmm", base, (a.shape[0], b.shape[1]))
        return F.matmul_onto(a, b, base, beta, alpha)
    return added("addmm", lambda a, b: F.mm(a, b))(base, a, b, beta, alpha)


BETA_ALPHA = (attr("beta", "float", 1.0), attr("alpha", "float", 1.0))
composite(
    "matmul_onto",
    "a b base",
    lambda a, b, base, beta, alpha: (
        scaled("addmm", F.matmul(a, b), alpha, "alpha") + scaled("addmm", base, beta, "beta")
    ),
    attrs=BETA_ALPHA,
    infer="matmul",
    family="matmul_onto",
    vjp=(
        lambda g, b, beta, alpha: F.matmul(g * alpha, F.transpose(b, 0, 1)),
        lambda g, a, beta, alpha: F.matmul(F.transpose(a, 0, 1), g * alpha),
        lambda g, beta, alpha: g * beta,
    ),
    function=False,
    method=False,
    dtypes="f",
    doc="beta base + alpha (a @ b) for matrices of the same shape as the product, in one pass.",
)
composite(
    "linear_relu",
    "x w bias?",
    lambda x, w, bias: F.relu(F.linear(x, w, bias)),
    infer="linear",
    family="linear_relu",
    function=False,
    method=False,
    dtypes="f",
    doc="relu(x w^T + bias), in one pass; gradients are those of its two operations.",
)
composite(
    "mm",
    "a b",
    product("mm", 2, 2),
    public={"b": "mat2"},
    dtypes="ifh",
    doc="Product of two matrices.",
)
composite(
    "bmm",
    "a b",
    bmm,
    public={"b": "mat2"},
    dtypes="ifh",
    doc="Products of two equal batches of matrices.",
)
composite(
    "mv",
    "a b",
    product("mv", 2, 1),
    public={"b": "vec"},
    dtypes="ifh",
    doc="Product of a matrix and a vector.",
)
composite(
    "dot",
    "a b",
    product("dot", 1, 1),
    public={"b": "tensor"},
    dtypes="ifh",
    doc="Product of two vectors.",
)
composite(
    "inner",
    "a b",
    lambda a, b: F.mul(a, b) if 0 in (a.ndim, b.ndim) else F.tensordot(a, b, ([-1], [-1])),
    dtypes="ifh",
    doc="Sums of products over the last axes of both.",
)
composite(
    "outer",
    "a b",
    outer,
    public={"b": "vec2"},
    dtypes="ifh",
    doc="All products of two vectors' elements.",
)
composite(
    "addmm",
    "base a b",
    addmm,
    attrs=BETA_ALPHA,
    public={"base": "input", "a": "mat1", "b": "mat2"},
    dtypes="ifh",
    doc="beta input + alpha (mat1 @ mat2).",
)
composite(
    "baddbmm",
    "base a b",
    added("baddbmm", lambda a, b: F.bmm(a, b)),
    attrs=BETA_ALPHA,
    public={"base": "input", "a": "batch1", "b": "batch2"},
    dtypes="ifh",
    doc="beta input + alpha (batch1 @ batch2).",
)
composite(
    "addmv",
    "base a b",
    added("addmv", lambda a, b: F.mv(a, b)),
    attrs=BETA_ALPHA,
    public={"base": "input", "a": "mat", "b": "vec"},
    dtypes="ifh",
    doc="beta input + alpha (mat @ vec).",
)
