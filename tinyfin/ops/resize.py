"""Rows of linear interpolation along an axis: slices that lie between two others."""

from tinyfin.ops.row import DIM, F, attr, composite


def weights_of(part, x, dim):
    """A vector of an axis in a shape that broadcasts with x."""
    return F.reshape(part, (part.shape[0],) + (1,) * (x.ndim - 1 - dim))


def select_between(x, low, high, part, dim):
    """x[low] (1 - part) + x[high] part."""
    dim, p = dim % x.ndim, weights_of(part, x, dim % x.ndim)
    return F.index_select(x, dim, low) * (1 - p) + F.index_select(x, dim, high) * p


def between_embed(u, low, high, part, shape, dim):
    """u (1 - part) added at low, and u part at high."""
    dim, p = dim % u.ndim, weights_of(part, u, dim % u.ndim)
    return F.index_embed(u * (1 - p), low, shape, dim) + F.index_embed(u * p, high, shape, dim)


def select_between_all(g, low, high, part, x_shape, dim):
    """Places and weights are constants."""
    return F.between_embed(g, low, high, part, x_shape, dim), None, None, None


def between_embed_all(g, low, high, part, dim):
    """The adjoint of the adjoint."""
    return F.select_between(g, low, high, part, dim), None, None, None


composite(
    "select_between",
    "x low high part",
    select_between,
    attrs=(DIM,),
    infer="select_between",
    family="select_between",
    dtypes="f",
    vjp_all=select_between_all,
    function=False,
    method=False,
    doc="Slices of an axis between two others each, by vectors of indices and of the second's weight.",
)
composite(
    "between_embed",
    "u low high part",
    between_embed,
    attrs=(attr("shape", "shape"), DIM),
    infer="between_embed",
    family="between_embed",
    dtypes="f",
    vjp_all=between_embed_all,
    function=False,
    method=False,
    doc="Slices in two parts, added at indices of a tensor of zeros: first parts, then second ones.",
)
