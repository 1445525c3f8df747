"""Rows of reductions, scans and sorts."""

from tinyfin.ops.row import DIM, DIM_LAST, DIMS, DTYPE, KEEPDIM, F, attr, composite, reduce, row

CORRECTION = attr("correction", "float", 1)
DIM_OR_NONE = attr("dim", "optint", None)


def axes_of(shape, dim):
    """The reduced axes of a `dim` attribute: no axes at all means every one."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(len(shape)))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(sorted(d % len(shape) for d in dims)) if shape else ()


def count(shape, dim):
    """How many elements one result stands for."""
    n = 1
    for d in axes_of(shape, dim):
        n *= shape[d]
    return n


def spread(g, shape, dim, keepdim):
    """A reduction's result, or its cotangent, at every reduced place; no axes are all of them."""
    return F.unreduce(g, shape, dim or tuple(range(len(shape))), keepdim)


def share_of_ties(g, y, x, dim, keepdim):
    """The cotangent of an extremum, in equal parts to the elements that attain it; NaN along a row with a NaN, which
    none of its elements equals, as PyTorch has it."""
    hit = x == spread(y, x.shape, dim, keepdim)
    part = g / F.sum(hit, axes_of(x.shape, dim), keepdim).to(g.dtype)
    return spread(part, x.shape, dim, keepdim) * hit


def share_of_nans(g, y, x, dim, keepdim):
    """The same where NaN attain an extremum that is one: it is only where there are some."""
    hit = F.logical_or(x == spread(y, x.shape, dim, keepdim), F.isnan(x))
    part = g / F.sum(hit, axes_of(x.shape, dim), keepdim).to(g.dtype)
    return F.where(hit, spread(part, x.shape, dim, keepdim), 0.0)


def products_of_others(x):
    """For each element of the last axis, the product of all others: of those before and those
    after."""
    before = F.cumprod(F.pad_constant(x, (1, -1), 1.0), -1)
    after = F.flip(F.cumprod(F.pad_constant(F.flip(x, (-1,)), (1, -1), 1.0), -1), (-1,))
    return before * after


def prod_vjp(g, x, dim, keepdim):
    """Without a division, so that zeros and derivatives of any order come out right."""
    dims = axes_of(x.shape, dim)
    order = tuple(d for d in range(x.ndim) if d not in dims) + dims
    back = tuple(order.index(d) for d in range(x.ndim))
    moved = F.permute(x, order)
    n = count(x.shape, dims)
    flat = F.reshape(moved, moved.shape[: x.ndim - len(dims)] + (n,))
    others = F.permute(F.reshape(products_of_others(flat), moved.shape), back)
    return spread(g, x.shape, dim, keepdim) * others


def var_vjp(g, x, dim, correction, keepdim):
    """2 (x - mean) / (n - correction)."""
    dims = axes_of(x.shape, dim)
    free = count(x.shape, dims) - correction
    distance = x - F.mean(x, dims, True)
    return spread(g, x.shape, dims, keepdim) * (
        distance * (2.0 / free if free > 0 else float("nan"))
    )


def std_vjp(g, y, x, dim, correction, keepdim):
    """The derivative of the root is zero where the deviation is; 1 keeps 0 / 0 out of the way."""
    none = y == 0
    half = F.where(none, 0.0, g / (2 * F.where(none, 1.0, y)))
    return var_vjp(half, x, dim, correction, keepdim)


def logsumexp_formula(x, dim, keepdim):
    """log sum exp(x - m) + m, where m is the greatest element, or 0 if that is infinite."""
    dims = axes_of(x.shape, dim)
    x = x if x.is_floating_point() else x.float()
    half = x.dtype.itemsize < 4
    a = x.float() if half else x
    if count(a.shape, dims) == 0:
        return F.log(F.sum(F.exp(a), dims, keepdim)).to(x.dtype)
    m = F.amax(F.detach(a), dims, True)
    m = F.where(F.isfinite(m), m, 0.0)
    total = F.sum(F.exp(a - m), dims, keepdim)
    if not keepdim:
        m = F.reshape(m, total.shape)
    none = total == 0  # all of the row is -inf: no gradient, not NaN
    y = F.where(none, float("-inf"), F.log(F.where(none, 1.0, total))) + m
    return y.to(x.dtype) if half else y


def sum_of_squares_formula(x, dim, keepdim, dtype):
    """Halves are squared and summed in float32."""
    wide = x.float() if x.dtype.itemsize < 4 else x
    return F.sum(F.square(wide), dim, keepdim).to(dtype or x.dtype)


def norm2_formula(x, dim, keepdim):
    """The squares of halves would overflow soon: their root is rounded once."""
    if x.dtype.itemsize >= 4:
        return F.root_or_flat(F.sum_of_squares(x, dim, keepdim))
    return F.root_or_flat(F.sum_of_squares(x, dim, keepdim, F.float32)).to(x.dtype)


# ---- sums and products

reduce(
    "sum",
    "Sum over axes, in the canonical order; integers are summed as int64.",
    attrs=(DIMS, KEEPDIM, DTYPE),
    infer="reduce_sum",
    combine="a + b",
    init="T(0)",
    jvp="linear",
    vjp=lambda g, x_shape, dim, keepdim: spread(g, x_shape, dim, keepdim),
)
composite(
    "sum_of_squares",
    "x",
    sum_of_squares_formula,
    attrs=(DIMS, KEEPDIM, DTYPE),
    infer="reduce_sum",
    family="reduce_sum_of_squares",
    vjp=lambda g, x, dim, keepdim: (spread(g, x.shape, dim, keepdim) * (x * 2.0)).to(x.dtype),
    jvp=lambda y, x, x_t, dim, keepdim: F.sum(x * x_t * 2.0, dim, keepdim).to(y.dtype),
    function=False,
    method=False,
    dtypes="fh",
    doc="Sum of the squares over axes; of halves in float32.",
)
composite(
    "norm2",
    "x",
    norm2_formula,
    attrs=(DIMS, KEEPDIM),
    function=False,
    method=False,
    dtypes="fh",
    doc="Euclidean length along axes.",
)
reduce(
    "mean",
    "Sum over axes divided by the number of elements.",
    attrs=(DIMS, KEEPDIM, DTYPE),
    infer="reduce_mean",
    jvp="linear",
    amp="keep",
    dtypes="fh",
    vjp=lambda g, x_shape, x_per_y, dim, keepdim: spread(g / x_per_y, x_shape, dim, keepdim),
)
reduce(
    "prod",
    "Product over axes; integers are multiplied as int64.",
    attrs=(DIMS, KEEPDIM, DTYPE),
    infer="reduce_sum",
    combine="a * b",
    init="T(1)",
    vjp=prod_vjp,
)
reduce(
    "count_nonzero",
    "Number of elements that are not zero.",
    attrs=(DIMS,),
    infer="reduce_count",
    nondiff=True,
)

# ---- spread

reduce(
    "var",
    "Mean squared distance from the mean, over n - correction.",
    attrs=(DIMS, CORRECTION, KEEPDIM),
    infer="reduce_float",
    dtypes="fh",
    vjp=var_vjp,
    overload=lambda x, dim=None, *, unbiased=True, keepdim=False: F.var(
        x, dim, float(unbiased), keepdim
    ),
)
reduce(
    "std",
    "Square root of the variance.",
    attrs=(DIMS, CORRECTION, KEEPDIM),
    infer="reduce_float",
    dtypes="fh",
    vjp=std_vjp,
    overload=lambda x, dim=None, *, unbiased=True, keepdim=False: F.std(
        x, dim, float(unbiased), keepdim
    ),
)

# ---- extrema

reduce(
    "amax",
    "Largest element over axes; NaN wins; ties share the gradient.",
    infer="reduce_extremum",
    combine="max(a, b)",
    vjp=lambda g, y, x, dim, keepdim: share_of_ties(g, y, x, dim, keepdim),
)
reduce(
    "amin",
    "Smallest element over axes; NaN wins; ties share the gradient.",
    infer="reduce_extremum",
    combine="min(a, b)",
    vjp=lambda g, y, x, dim, keepdim: share_of_ties(g, y, x, dim, keepdim),
)
for _name, _what in (("max", "Largest"), ("min", "Smallest")):
    reduce(
        f"{_name}_over",
        f"{_what} element over axes; NaN wins; ties share the gradient, and so do NaN.",
        infer="reduce_extremum",
        family=f"reduce_a{_name}",
        vjp=lambda g, y, x, dim, keepdim: share_of_nans(g, y, x, dim, keepdim),
        function=False,
        method=False,
    )
reduce(
    "argmax",
    "Place of the first largest element along an axis, or in the flattened tensor.",
    attrs=(DIM_OR_NONE, KEEPDIM),
    infer="reduce_arg",
    family="argmax",
    nondiff=True,
)
reduce(
    "argmin",
    "Place of the first smallest element along an axis, or in the flattened tensor.",
    attrs=(DIM_OR_NONE, KEEPDIM),
    infer="reduce_arg",
    family="argmin",
    nondiff=True,
)


def keep_axis(t, dim, keepdim):
    """A result of one axis, with that axis again."""
    return t if keepdim else F.unsqueeze(t, dim)


def extremum_vjp(g, y1, x_shape, dim, keepdim):
    """The whole cotangent to the element that was chosen."""
    if not x_shape:
        return g
    return F.scatter_embed(keep_axis(g, dim, keepdim), keep_axis(y1, dim, keepdim), x_shape, dim)


for _name, _what in (("max_dim", "Largest"), ("min_dim", "Smallest")):
    reduce(
        _name,
        f"{_what} element along an axis and the place of the first such.",
        attrs=(DIM, KEEPDIM),
        infer="reduce_pair",
        family=_name,
        nout=2,
        method=False,
        function=False,
        vjp=extremum_vjp,
    )

# ---- logic

reduce(
    "any",
    "Whether an element over axes is not zero.",
    infer="reduce_bool",
    combine="a || b",
    init="false",
    nondiff=True,
)
reduce(
    "all",
    "Whether no element over axes is zero.",
    infer="reduce_bool",
    combine="a && b",
    init="true",
    nondiff=True,
)

composite(
    "logsumexp",
    "x",
    logsumexp_formula,
    attrs=(DIMS, KEEPDIM),
    dtypes="fh",
    amp="high",
    doc="Logarithm of the sum of exponentials over axes; infinities are taken as they are.",
)


# ---- scans


def reversed_cumsum(g, dim):
    """Sum from each element to the end."""
    return F.flip(F.cumsum(F.flip(g, (dim,)), dim), (dim,))


def shifted(x, dim, by, value):
    """Moved along an axis by one (1 or -1); `value` enters."""
    last = F.transpose(x, dim, -1)
    return F.transpose(F.pad_constant(last, (1, -1) if by > 0 else (-1, 1), value), dim, -1)


def linear_scan_back(a, g, dim):
    """u with u[i] = g[i] + a[i + 1] u[i + 1]: the adjoint of the recurrence."""
    turned = F.flip(shifted(a, dim, -1, 0.0), (dim,))
    return F.flip(F.linear_scan(turned, F.flip(g, (dim,)), dim), (dim,))


def cumprod_vjp(g, x, dim):
    """Product of what comes before, times a recurrence over what comes after: no division, zeros
    are fine."""
    if not x.ndim:
        return g
    before = F.cumprod(shifted(x, dim, 1, 1.0), dim)
    return before * linear_scan_back(x, g, dim)


row(
    "cumsum",
    "x",
    attrs=(DIM, DTYPE),
    infer="scan",
    family="cumsum",
    jvp="linear",
    inplace=True,
    vjp=lambda g, dim: reversed_cumsum(g, dim) if g.ndim else g,
    doc="Running sum along an axis, one element after the other.",
)
row(
    "cumprod",
    "x",
    attrs=(DIM, DTYPE),
    infer="scan",
    family="cumprod",
    inplace=True,
    vjp=cumprod_vjp,
    doc="Running product along an axis.",
)
row(
    "linear_scan",
    "a x",
    attrs=(DIM,),
    infer="linear_scan",
    family="linear_scan",
    dtypes="fh",
    method=False,
    public={"a": "factor", "x": "input"},
    vjp=(
        lambda g, y, a, dim: linear_scan_back(a, g, dim) * shifted(y, dim, 1, 0.0),
        lambda g, a, dim: linear_scan_back(a, g, dim),
    ),
    doc="The recurrence y[i] = factor[i] y[i - 1] + input[i] along an axis; y[0] = input[0].",
)
for _name, _what in (("cummax", "Largest"), ("cummin", "Smallest")):
    row(
        _name,
        "x",
        attrs=(DIM,),
        infer="scan_pair",
        family=_name,
        nout=2,
        names=("values", "indices"),
        vjp=lambda g, y1, x_shape, dim: F.scatter_embed(g, y1, x_shape, dim) if x_shape else g,
        doc=f"{_what} element so far along an axis, and the place of the last such.",
    )

# ---- order

row(
    "sort",
    "x",
    attrs=(DIM_LAST, attr("descending", "bool", False), attr("stable", "bool", True)),
    infer="scan_pair",
    family="sort",
    nout=2,
    names=("values", "indices"),
    vjp=lambda g, y1, x_shape, dim: F.scatter_embed(g, y1, x_shape, dim) if x_shape else g,
    doc="Elements in order along an axis and their old places; equal ones keep their order, NaN is "
    "greatest.",
)
row(
    "topk",
    "x",
    attrs=(attr("k", "int"), DIM_LAST, attr("largest", "bool", True), attr("sorted", "bool", True)),
    infer="topk",
    family="topk",
    nout=2,
    names=("values", "indices"),
    vjp=lambda g, y1, x_shape, dim: F.scatter_embed(g, y1, x_shape, dim) if x_shape else g,
    doc="The k largest (or smallest) elements along an axis, in order, and their places; ties by "
    "lowest place.",
)
composite(
    "argsort",
    "x",
    lambda x, dim, descending, stable: F.sort(x, dim, descending, True)[1],
    attrs=(DIM_LAST, attr("descending", "bool", False), attr("stable", "bool", True)),
    nondiff=True,
    doc="Places of the elements in order along an axis.",
)


def searchsorted_overload(x, a, *, out_int32=False, right=False, side=None, sorter=None):
    """PyTorch's other keywords."""
    if sorter is not None:
        x = F.take_along_dim(x, sorter, -1)
    if side is not None and (side not in ("left", "right") or (side == "left" and right)):
        raise RuntimeError(f"searchsorted: side is {side!r} and right is {right}: they disagree")
    found = F.searchsorted(x, a, right or side == "right")
    return F.cast(found, F.int32) if out_int32 else found


row(
    "searchsorted",
    "x a",
    attrs=(attr("right", "bool", False),),
    infer="searchsorted",
    family="searchsorted",
    dtypes="any",
    nondiff=True,
    method=False,
    scalars=True,
    public={"x": "sorted_sequence", "a": "input"},
    overload=searchsorted_overload,
    doc="Where elements belong in sorted sequences: before equal ones, or (right) after them.",
)
composite(
    "bucketize",
    "x a",
    lambda x, a, right: F.searchsorted(a, x, right),
    attrs=(attr("right", "bool", False),),
    dtypes="any",
    nondiff=True,
    method=False,
    public={"x": "input", "a": "boundaries"},
    overload=lambda x, a, *, out_int32=False, right=False: searchsorted_overload(
        a, x, out_int32=out_int32, right=right
    ),
    doc="The bucket of each element between sorted boundaries.",
)
