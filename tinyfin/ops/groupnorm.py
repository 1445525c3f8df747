"""Rows of group norm: layer norm of groups of channels, with weights by channel."""

from tinyfin.ops.norm import EPS, affine, by_channel, centred, check_channels, count, wide
from tinyfin.ops.row import F, attr, composite

GROUPS = attr("num_groups", "int")
RUN = 64
"""Places of a channel from which on a group's sums are those of its channels'."""


def grouped(x, num_groups):
    """x with a row for each group of each sample, and the length of a row."""
    n = count(x) * x.shape[1] // max(x.shape[0] * num_groups, 1)
    return F.reshape(x, (x.shape[0], num_groups, n)), n


def group_norm_formula(x, w, b, num_groups, eps):
    """((x - mean) rstd) w + b with the mean and rstd of groups, w and b by channel; mean; rstd."""
    rows, n = grouped(wide(x), num_groups)
    y, mean, rstd = F.native_layer_norm(rows, (n,), None, None, eps)
    w, b = None if w is None else by_channel(w, x), None if b is None else by_channel(b, x)
    y = affine(F.reshape(y, tuple(x.shape)), w, b).to(x.dtype)
    return y, mean.detach()[:, :, 0], rstd.detach()[:, :, 0]


def group_norm_grad_formula(g, x, mean, rstd, w, num_groups, eps, weight_grad, bias_grad):
    """((h - mean of h) - xhat (mean of h xhat)) rstd with h = g w; sums of g xhat and of g by channel.

    Both begin with sums over the places of each channel of each sample, but for those of a group of
    channels with few places.
    """
    a, (rows, n) = wide(g), grouped(wide(x), num_groups)
    places = (*x.shape[:2], n * num_groups // max(x.shape[1], 1))
    d, _ = centred(rows, (2,), n)
    rstd = 1 / F.sqrt(F.sum(d * d, (2,), True) / n + eps)
    xhat, h = d * rstd, grouped(a if w is None else a * by_channel(w, x), num_groups)[0]
    sums = [F.sum(F.reshape(t, places), (2,)) for t in (a * F.reshape(xhat, x.shape), a)]
    if places[2] < RUN:
        products, total = F.sum(h * xhat, (2,), True), F.sum(h, (2,), True)
    else:
        by_group = (*rows.shape[:2], x.shape[1] // num_groups)
        products, total = (
            F.sum(F.reshape(s if w is None else s * w, by_group), (2,), True) for s in sums
        )
    gx = ((h - total / n) - xhat * (products / n)) * rstd
    kept = (x if w is None else w).dtype
    gw, gb = (
        (F.sum(s, (0,)) if want else F.zeros_of((0,), x)).to(kept)
        for s, want in zip(sums, (weight_grad, bias_grad))
    )
    return F.reshape(gx, tuple(x.shape)).to(x.dtype), gw, gb


def group_norm_all(g, x, w, b, y1, y2, num_groups, eps):
    """Gradients of x, w, b by the fused kernel."""
    gx, gw, gb = F.group_norm_grad(g, x, y1, y2, w, num_groups, eps, w is not None, b is not None)
    return gx, None if w is None else gw, None if b is None else gb.to(b.dtype)


composite(
    "native_group_norm",
    "x w? b?",
    group_norm_formula,
    attrs=(GROUPS, EPS),
    infer="group_norm",
    family="group_norm",
    nout=3,
    dtypes="fh",
    amp="high",
    public={"b": "bias"},
    vjp_all=group_norm_all,
    whole=True,
    function=False,
    method=False,
    doc="Group norm, with the mean and 1 / standard deviation of each group of each sample.",
)
composite(
    "group_norm_grad",
    "g x mean rstd w?",
    group_norm_grad_formula,
    attrs=(GROUPS, EPS, attr("weight_grad", "bool"), attr("bias_grad", "bool")),
    infer="group_norm_grad",
    family="group_norm_grad",
    nout=3,
    dtypes="fh",
    function=False,
    method=False,
    doc="Gradients of group norm.",
)


def group_norm(x, w, b, num_groups, eps):
    """Checked as PyTorch does; of no numbers there is nothing to do."""
    if x.ndim < 2 or num_groups < 1 or x.shape[1] % num_groups:
        raise RuntimeError(
            f"group_norm: input is {tuple(x.shape)}, num_groups is {num_groups}: "
            "expected the second size to be divisible by it"
        )
    check_channels("group_norm", x, weight=w, bias=b)
    return F.native_group_norm(x, w, b, num_groups, eps)[0]


composite(
    "group_norm",
    "x w? b?",
    group_norm,
    attrs=(GROUPS, EPS),
    order="x num_groups w b eps",
    public={"b": "bias"},
    dtypes="fh",
    method=False,
    doc="Groups of channels brought to mean 0 and variance 1, then w y + b by channel.",
)
