"""Rows of softmax and of the norms.

A formula computes half precision in float32, as the fused kernels do, and takes no statistics from
its arguments: gradients of gradients then flow through the input alone.
"""

from tinyfin.ops.row import DIM, DTYPE, F, attr, composite

EPS = attr("eps", "float", 1e-5)
EPS_OR_NONE = attr("eps", "optfloat", None)
SHAPE = attr("normalized_shape", "shape")
LEAST = {8: 2.220446049250313e-16, 4: 1.1920928955078125e-07}
"""Machine epsilon by size of the computing type."""


def wide(x):
    """x in the type that arithmetic is done in: float32 in place of half precision."""
    return x.float() if x.dtype.itemsize < 4 else x


# ---- softmax


def softmax_formula(x, dim, dtype):
    """exp(x - largest), divided by its sum."""
    x = x if dtype is None else x.to(dtype)
    a = wide(x)
    e = F.exp(a - F.amax(a, dim, True))
    return (e / F.sum(e, dim, True)).to(x.dtype)


def log_softmax_formula(x, dim, dtype):
    """(x - largest) - log of the sum of exp of that."""
    x = x if dtype is None else x.to(dtype)
    a = wide(x)
    d = a - F.amax(a, dim, True)
    return (d - F.log(F.sum(F.exp(d), dim, True))).to(x.dtype)


def softmax_grad_formula(g, y, dim):
    """y (g - sum of g y)."""
    a, b = wide(g), wide(y)
    return (b * (a - F.sum(a * b, dim, True))).to(y.dtype)


def log_softmax_grad_formula(g, y, dim):
    """g - exp(y) times the sum of g."""
    a = wide(g)
    return (a - F.exp(wide(y)) * F.sum(a, dim, True)).to(y.dtype)


composite(
    "softmax",
    "x",
    softmax_formula,
    attrs=(DIM, DTYPE),
    infer="softmax",
    family="softmax",
    amp="high",
    dtypes="fh",
    vjp=lambda g, y, dim: F.softmax_grad(g, y, dim),
    jvp=lambda y, x_t, dim: F.softmax_grad(x_t, y, dim),
    doc="exp(x) scaled to sum to one along an axis.",
)
composite(
    "log_softmax",
    "x",
    log_softmax_formula,
    attrs=(DIM, DTYPE),
    infer="softmax",
    family="log_softmax",
    amp="high",
    dtypes="fh",
    vjp=lambda g, y, dim: F.log_softmax_grad(g, y, dim),
    jvp=lambda y, x_t, dim: x_t - F.sum(F.exp(y) * x_t, dim, True),
    doc="Logarithm of softmax, exact for large inputs.",
)
composite(
    "softmax_grad",
    "g y",
    softmax_grad_formula,
    attrs=(DIM,),
    infer="softmax_grad",
    family="softmax_grad",
    dtypes="fh",
    function=False,
    method=False,
    doc="Gradient of softmax from its result.",
)
composite(
    "log_softmax_grad",
    "g y",
    log_softmax_grad_formula,
    attrs=(DIM,),
    infer="softmax_grad",
    family="log_softmax_grad",
    dtypes="fh",
    function=False,
    method=False,
    doc="Gradient of log_softmax from its result.",
)
composite(
    "softmin",
    "x",
    lambda x, dim, dtype: F.softmax(-x, dim, dtype),
    attrs=(DIM, DTYPE),
    amp="high",
    dtypes="fh",
    method=False,
    doc="Softmax of -x.",
)


# ---- layer norm and RMS norm


def last_dims(x, normalized_shape):
    """The dimensions that are normalised, and how many numbers each row has."""
    n = 1
    for size in normalized_shape:
        n *= size
    return tuple(range(x.ndim - len(normalized_shape), x.ndim)), n


def affine(y, w, b):
    """y w + b, where they are given."""
    y = y if w is None else y * w
    return y if b is None else y + b


def centred(x, dims, n):
    """x minus its mean over dims, and the mean."""
    mean = F.sum(x, dims, True) / n
    return x - mean, mean


def layer_norm_formula(x, w, b, normalized_shape, eps):
    """((x - mean) rstd) w + b, where rstd = 1 / sqrt(mean square + eps); mean; rstd."""
    dims, n = last_dims(x, normalized_shape)
    d, mean = centred(wide(x), dims, n)
    rstd = 1 / F.sqrt(F.sum(d * d, dims, True) / n + eps)
    return affine(d * rstd, w, b).to(x.dtype), mean.detach(), rstd.detach()


def layer_norm_grad_formula(g, x, mean, rstd, w, normalized_shape, eps, weight_grad, bias_grad):
    """With h = g w: ((h - mean of h) - xhat (mean of h xhat)) rstd; sums of g xhat and of g."""
    dims, n = last_dims(x, normalized_shape)
    d, _ = centred(wide(x), dims, n)
    return norm_grads(wide(g), d, w, dims, n, eps, (weight_grad, bias_grad), x, True)


def norm_grads(g, d, w, dims, n, eps, wanted, x, is_centred):
    """Gradients of x, w and b, in that order; empty where not wanted."""
    rstd = 1 / F.sqrt(F.sum(d * d, dims, True) / n + eps)
    xhat, h = d * rstd, g if w is None else g * w
    first = h - F.sum(h, dims, True) / n if is_centred else h
    gx = (first - xhat * (F.sum(h * xhat, dims, True) / n)) * rstd
    out = [gx.to(x.dtype)]
    lead = tuple(range(dims[0]))
    kept = (w if w is not None else x).dtype
    for part, want in zip((g * xhat, g), wanted):
        if not want:
            out.append(F.zeros_of((0,), x).to(kept))
        else:
            out.append((F.sum(part, lead) if lead else part).to(kept))
    return tuple(out)


def layer_norm_all(g, x, w, b, y1, y2, normalized_shape, eps):
    """Gradients of x, w, b by the fused kernel."""
    gx, gw, gb = F.layer_norm_grad(
        g, x, y1, y2, w, normalized_shape, eps, w is not None, b is not None
    )
    return gx, None if w is None else gw, None if b is None else gb


composite(
    "native_layer_norm",
    "x w? b?",
    layer_norm_formula,
    attrs=(SHAPE, EPS),
    infer="layer_norm",
    order="x normalized_shape w b eps",
    family="layer_norm",
    nout=3,
    dtypes="fh",
    amp="high",
    public={"b": "bias"},
    vjp_all=layer_norm_all,
    method=False,
    doc="Layer norm, with each row's mean and 1 / standard deviation.",
)
composite(
    "layer_norm_grad",
    "g x mean rstd w?",
    layer_norm_grad_formula,
    attrs=(SHAPE, EPS, attr("weight_grad", "bool"), attr("bias_grad", "bool")),
    infer="layer_norm_grad",
    family="layer_norm_grad",
    nout=3,
    dtypes="fh",
    function=False,
    method=False,
    doc="Gradients of layer norm.",
)
composite(
    "layer_norm",
    "x w? b?",
    lambda x, w, b, normalized_shape, eps: F.native_layer_norm(x, normalized_shape, w, b, eps)[0],
    attrs=(SHAPE, EPS),
    order="x normalized_shape w b eps",
    public={"b": "bias"},
    dtypes="fh",
    method=False,
    doc="Rows over the last dimensions brought to mean 0 and variance 1, then w y + b.",
)


def rms_eps(x, eps):
    """PyTorch's default: the machine epsilon of the computing type."""
    return LEAST[max(x.dtype.itemsize, 4)] if eps is None else eps


def rms_norm_formula(x, w, normalized_shape, eps):
    """(x rstd) w, where rstd = 1 / sqrt(mean square + eps); rstd."""
    dims, n = last_dims(x, normalized_shape)
    a = wide(x)
    rstd = 1 / F.sqrt(F.sum(a * a, dims, True) / n + rms_eps(x, eps))
    return affine(a * rstd, w, None).to(x.dtype), rstd.detach()


def rms_norm_grad_formula(g, x, rstd, w, normalized_shape, eps, weight_grad):
    """As for layer norm, without the mean."""
    dims, n = last_dims(x, normalized_shape)
    return norm_grads(wide(g), wide(x), w, dims, n, rms_eps(x, eps), (weight_grad,), x, False)


def rms_norm_all(g, x, w, y1, normalized_shape, eps):
    """Gradients of x and w by the fused kernel."""
    gx, gw = F.rms_norm_grad(g, x, y1, w, normalized_shape, eps, w is not None)
    return gx, None if w is None else gw


composite(
    "native_rms_norm",
    "x w?",
    rms_norm_formula,
    attrs=(SHAPE, EPS_OR_NONE),
    infer="rms_norm",
    family="rms_norm",
    nout=2,
    dtypes="fh",
    amp="high",
    vjp_all=rms_norm_all,
    function=False,
    method=False,
    doc="RMS norm, with each row's factor.",
)
composite(
    "rms_norm_grad",
    "g x rstd w?",
    rms_norm_grad_formula,
    attrs=(SHAPE, EPS_OR_NONE, attr("weight_grad", "bool")),
    infer="rms_norm_grad",
    family="rms_norm_grad",
    nout=2,
    dtypes="fh",
    function=False,
    method=False,
    doc="Gradients of RMS norm.",
)
composite(
    "rms_norm",
    "x w?",
    lambda x, w, normalized_shape, eps: F.native_rms_norm(x, w, normalized_shape, eps)[0],
    attrs=(SHAPE, EPS_OR_NONE),
    order="x normalized_shape w eps",
    dtypes="fh",
    method=False,
    doc="Rows over the last dimensions divided by their root mean square, then times w.",
)


# ---- batch and instance norm


def by_channel(v, x):
    """A vector of channels in a shape that broadcasts with x."""
    return v.reshape((1, -1) + (1,) * (x.ndim - 2))


def count(x):
    """Numbers in a channel."""
    n = 1
    for i, size in enumerate(x.shape):
        n *= 1 if i == 1 else size
    return n


def batch_dims(x):
    """All dimensions but the channels'."""
    return (0, *range(2, x.ndim))


def batch_norm_formula(x, w, b, eps):
    """((x - mean) rstd) w + b by channel; mean; biased variance."""
    d, mean = centred(wide(x), batch_dims(x), count(x))
    var = F.sum(d * d, batch_dims(x), True) / count(x)
    y = affine(
        d * (1 / F.sqrt(var + eps)),
        None if w is None else by_channel(w, x),
        None if b is None else by_channel(b, x),
    )
    return y.to(x.dtype), mean.detach().reshape((-1,)), var.detach().reshape((-1,))


def batch_norm_apply_formula(x, mean, var, w, b, eps):
    """The same with given statistics."""
    rstd = by_channel(1 / F.sqrt(wide(var) + eps), x)
    return affine(
        (wide(x) - by_channel(mean, x)) * rstd,
        None if w is None else by_channel(w, x),
        None if b is None else by_channel(b, x),
    ).to(x.dtype)


def batch_norm_grad_formula(g, x, mean, var, w, eps):
    """((g - mean of g) - xhat (mean of g xhat)) (rstd w); sums of g xhat and of g."""
    dims, n = batch_dims(x), count(x)
    d, _ = centred(wide(x), dims, n)
    g, rstd = wide(g), 1 / F.sqrt(F.sum(d * d, dims, True) / n + eps)
    xhat = d * rstd
    gb, gw = F.sum(g, dims, True), F.sum(g * xhat, dims, True)
    scale = rstd if w is None else rstd * by_channel(w, x)
    gx = ((g - gb / n) - xhat * (gw / n)) * scale
    kept = g.dtype if w is None else w.dtype
    return gx.to(x.dtype), gw.reshape((-1,)).to(kept), gb.reshape((-1,)).to(kept)


def batch_norm_all(g, x, w, b, y1, y2, eps):
    """Gradients of x, w, b by the fused kernel."""
    gx, gw, gb = F.batch_norm_grad(g, x, y1, y2, w, eps)
    return gx, None if w is None else gw, None if b is None else gb


composite(
    "native_batch_norm",
    "x w? b?",
    batch_norm_formula,
    attrs=(EPS,),
    infer="batch_norm",
    family="batch_norm",
    nout=3,
    dtypes="fh",
    vjp_all=batch_norm_all,
    function=False,
    method=False,
    public={"b": "bias"},
    doc="Batch norm by the batch's own statistics, with mean and biased variance.",
)
composite(
    "batch_norm_apply",
    "x mean var w? b?",
    batch_norm_apply_formula,
    attrs=(EPS,),
    infer="batch_norm_apply",
    family="batch_norm_apply",
    dtypes="fh",
    function=False,
    method=False,
    public={"b": "bias"},
    doc="Batch norm by given statistics.",
)
composite(
    "batch_norm_grad",
    "g x mean var w?",
    batch_norm_grad_formula,
    attrs=(EPS,),
    infer="batch_norm_grad",
    family="batch_norm_grad",
    nout=3,
    dtypes="fh",
    function=False,
    method=False,
    doc="Gradients of batch norm.",
)


def need_several(name, what, n, x):
    """An error where statistics would come from one number."""
    if n == 1:
        raise ValueError(
            f"{name}: input is {tuple(x.shape)}: expected more than 1 value per {what} to train on"
        )


def check_channels(name, x, **given):
    """An error where an argument has not one number for each channel."""
    for argument, v in given.items():
        if v is not None and tuple(v.shape) != (x.shape[1],):
            raise RuntimeError(
                f"{name}: {argument} is {tuple(v.shape)}, expected ({x.shape[1]},) "
                f"for input {tuple(x.shape)}"
            )


def running(stat, value, momentum):
    """Moves a running statistic towards a batch's; in place, without history."""
    stat = stat.detach()
    stat.copy_(stat * (1 - momentum) + value.detach().to(stat.dtype) * momentum)


def batch_norm(x, running_mean, running_var, w, b, training, momentum, eps):
    """By the batch's statistics when training, which move the running ones; else by those."""
    if not training:
        if running_mean is None or running_var is None:
            missing = "running_mean" if running_mean is None else "running_var"
            raise RuntimeError(
                f"batch_norm: {missing} is None, expected a Tensor when not training"
            )
        return F.batch_norm_apply(x, running_mean, running_var, w, b, eps)
    if x.ndim < 2:
        raise RuntimeError(f"batch_norm: input is {tuple(x.shape)}, expected at least 2 dimensions")
    n = count(x)
    need_several("batch_norm", "channel", n, x)
    check_channels("batch_norm", x, running_mean=running_mean, running_var=running_var)
    y, mean, var = F.native_batch_norm(x, w, b, eps)
    if running_mean is not None:
        running(running_mean, mean, momentum)
    if running_var is not None:
        running(running_var, var * (n / (n - 1)), momentum)
    return y


TRAINING = attr("training", "bool", False)
MOMENTUM = attr("momentum", "float", 0.1)
composite(
    "batch_norm",
    "x running_mean? running_var? w? b?",
    batch_norm,
    attrs=(TRAINING, MOMENTUM, EPS),
    public={"b": "bias"},
    dtypes="fh",
    method=False,
    doc="Each channel brought to mean 0 and variance 1, then w y + b.",
)


def instance_norm(x, running_mean, running_var, w, b, use_input_stats, momentum, eps):
    """Batch norm of each sample alone; running statistics take the mean over samples."""
    if x.ndim < 3:
        raise RuntimeError(
            f"instance_norm: input is {tuple(x.shape)}, expected at least 3 dimensions"
        )
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, w, b, False, momentum, eps)
    check_channels(
        "instance_norm", x, running_mean=running_mean, running_var=running_var, weight=w, bias=b
    )
    n, c = x.shape[0], x.shape[1]
    size = count(x) // max(n, 1)
    need_several("instance_norm", "channel and sample", size, x)
    if running_mean is None and running_var is None and x.dtype.itemsize >= 4:
        return F.native_group_norm(x, w, b, c, eps)[0]
    y, mean, var = F.native_batch_norm(x.reshape((1, n * c) + tuple(x.shape[2:])), None, None, eps)
    if running_mean is not None:
        running(running_mean, F.mean(mean.reshape((n, c)), 0), momentum)
    if running_var is not None:
        running(running_var, F.mean(var.reshape((n, c)), 0) * (size / (size - 1)), momentum)
    return affine(
        y.reshape(x.shape),
        None if w is None else by_channel(w, x),
        None if b is None else by_channel(b, x),
    )


composite(
    "instance_norm",
    "x running_mean? running_var? w? b?",
    instance_norm,
    attrs=(attr("use_input_stats", "bool", True), MOMENTUM, EPS),
    public={"b": "bias"},
    dtypes="fh",
    method=False,
    doc="Each channel of each sample brought to mean 0 and variance 1, then w y + b.",
)
