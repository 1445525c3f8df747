"""Rows of group norm: layer norm of groups of channels, with weights by channel."""

from tinyfin.ops.norm import EPS, affine, batch_dims, by_channel, check_channels, count, wide
from tinyfin.ops.row import F, attr, composite

GROUPS = attr("num_groups", "int")


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
    """Layer norm's gradient of g w; sums of g xhat and of g by channel; empty where not wanted."""
    a, (rows, n) = wide(g), grouped(wide(x), num_groups)
    h = a if w is None else a * by_channel(w, x)
    statistics = F.unsqueeze(mean, -1), F.unsqueeze(rstd, -1)
    gx = F.layer_norm_grad(
        grouped(h, num_groups)[0].to(rows.dtype), rows, *statistics, None, (n,), eps, False, False
    )[0]
    kept = (x if w is None else w).dtype
    gw = gb = F.zeros_of((0,), x).to(kept)
    if weight_grad:
        xhat = F.reshape(F.native_layer_norm(rows, (n,), None, None, eps)[0], tuple(x.shape))
        gw = F.sum(a * xhat, batch_dims(x)).to(kept)
    if bias_grad:
        gb = F.sum(a, batch_dims(x)).to(kept)
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
