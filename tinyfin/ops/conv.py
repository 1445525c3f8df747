"""Rows of convolutions and pooling, over one, two or three spatial dimensions."""

from tinyfin.ops.row import F, attr, composite, row

STEPS = (
    attr("stride", "ints3", 1),
    attr("padding", "ints3", 0),
    attr("dilation", "ints3", 1),
    attr("groups", "int", 1),
)
SIZE = attr("size", "ints3")


def spatial(shape):
    """The sizes behind batch and channels."""
    return shape[2:]


def conv_db(g):
    """g summed over images and places."""
    return F.sum(g, (0, *range(2, g.ndim)))


def conv_jvp(x, w, x_t, w_t, bias_t, stride, padding, dilation, groups):
    """Bilinear in input and weight, linear in bias."""
    steps = (stride, padding, dilation, groups)
    y_t = F.add_tangents(
        None if x_t is None else F.convolution(x_t, w, None, *steps),
        None if w_t is None else F.convolution(x, w_t, None, *steps),
    )
    if bias_t is None:
        return y_t
    bias_t = bias_t.reshape((-1,) + (1,) * (x.ndim - 2))
    return bias_t.expand(F.convolution(x, w, None, *steps).shape) if y_t is None else y_t + bias_t


def convolution(name, doc, **fields):
    """A row over the one kernel family `conv`."""
    row(
        name,
        "x w bias?",
        attrs=STEPS,
        infer="convolution",
        family="conv",
        amp="low",
        dtypes="fh",
        method=False,
        vjp=(
            lambda g, w, x_shape, stride, padding, dilation, groups: F.conv_grad_input(
                g, w, stride, padding, dilation, groups, spatial(x_shape)
            ),
            lambda g, x, w_shape, stride, padding, dilation, groups: F.conv_grad_weight(
                g, x, stride, padding, dilation, groups, spatial(w_shape)
            ),
            conv_db,
        ),
        jvp=conv_jvp,
        doc=doc,
        **fields,
    )


convolution(
    "convolution", "Cross-correlation of (N, C, ...) with (K, C / groups, ...).", function=False
)
for _n in (1, 2, 3):
    convolution(
        f"conv{_n}d",
        f"Cross-correlation over {_n} spatial dimension{'s' if _n > 1 else ''}.",
        function=False,
    )

row(
    "conv_grad_input",
    "u w",
    attrs=(*STEPS, SIZE),
    infer="conv_grad_input",
    family="conv_grad_input",
    dtypes="fh",
    function=False,
    method=False,
    jvp="linear",
    vjp=(
        lambda g, w, stride, padding, dilation, groups: F.convolution(
            g, w, None, stride, padding, dilation, groups
        ),
        lambda g, u, w_shape, stride, padding, dilation, groups: F.conv_grad_weight(
            u, g, stride, padding, dilation, groups, spatial(w_shape)
        ),
    ),
    doc="What a convolution's input gets from the cotangent u; also the transposed convolution.",
)
row(
    "conv_grad_weight",
    "u x",
    attrs=(*STEPS, SIZE),
    infer="conv_grad_weight",
    family="conv_grad_weight",
    dtypes="fh",
    function=False,
    method=False,
    jvp="linear",
    vjp=(
        lambda g, x, stride, padding, dilation, groups: F.convolution(
            x, g, None, stride, padding, dilation, groups
        ),
        lambda g, u, x_shape, stride, padding, dilation, groups: F.conv_grad_input(
            u, g, stride, padding, dilation, groups, spatial(x_shape)
        ),
    ),
    doc="What a convolution's weight gets from the cotangent u.",
)


def transposed(name, n):
    """A transposed convolution over n dimensions: the gradient of conv as a function of its own."""

    def formula(x, w, bias, stride, padding, output_padding, groups, dilation):
        size = []
        for i in range(n):
            if not 0 <= output_padding[i] < max(stride[i], dilation[i]):
                raise RuntimeError(
                    f"{name}: output_padding is {output_padding[i]}, expected less than stride "
                    f"{stride[i]} or dilation {dilation[i]}"
                )
            size.append(
                (x.shape[2 + i] - 1) * stride[i]
                - 2 * padding[i]
                + dilation[i] * (w.shape[2 + i] - 1)
                + output_padding[i]
                + 1
            )
            if size[i] < 0:
                raise RuntimeError(f"{name}: the result would have size {size[i]} in dimension {i}")
        y = F.conv_grad_input(x, w, stride, padding, dilation, groups, tuple(size))
        return y if bias is None else y + bias.reshape((-1,) + (1,) * n)

    composite(
        name,
        "x w bias?",
        formula,
        function=False,
        method=False,
        dtypes="fh",
        attrs=(
            attr("stride", "ints3", 1),
            attr("padding", "ints3", 0),
            attr("output_padding", "ints3", 0),
            attr("groups", "int", 1),
            attr("dilation", "ints3", 1),
        ),
        doc=f"Transposed convolution over {n} spatial dimensions.",
    )


for _n in (1, 2, 3):
    transposed(f"conv_transpose{_n}d", _n)

# ---- pooling

ND = attr("nd", "int")
WINDOW = (attr("kernel_size", "ints3"), attr("stride", "ints3"), attr("padding", "ints3", 0))
MEAN = (
    attr("ceil_mode", "bool", False),
    attr("count_include_pad", "bool", True),
    attr("divisor", "optint", None),
)

row(
    "max_pool",
    "x",
    attrs=(*WINDOW, attr("dilation", "ints3", 1), attr("ceil_mode", "bool", False), ND),
    nout=2,
    infer="max_pool",
    family="max_pool",
    function=False,
    method=False,
    dtypes="fh",
    vjp=lambda g, y1, x_shape, nd: F.pool_scatter(g, y1, x_shape[-nd:], nd),
    jvp=lambda x_t, y1, nd: F.pool_gather(x_t, y1, nd),
    doc="The largest of each window, and its flat place among the spatial axes.",
)
row(
    "pool_scatter",
    "u indices",
    attrs=(SIZE, ND),
    infer="pool_resize",
    family="pool_scatter",
    function=False,
    method=False,
    dtypes="fh",
    vjp=lambda g, indices, nd: F.pool_gather(g, indices, nd),
    jvp=lambda u_t, indices, size, nd: F.pool_scatter(u_t, indices, size, nd),
    doc="Zeros, with values added at flat spatial places in rising order.",
)
row(
    "pool_gather",
    "x indices",
    attrs=(ND,),
    infer="pool_gather",
    family="pool_gather",
    function=False,
    method=False,
    dtypes="fh",
    vjp=lambda g, indices, x_shape, nd: F.pool_scatter(g, indices, x_shape[-nd:], nd),
    jvp=lambda x_t, indices, nd: F.pool_gather(x_t, indices, nd),
    doc="Values at flat spatial places.",
)
row(
    "adaptive_max_pool",
    "x",
    attrs=(SIZE, ND),
    nout=2,
    infer="adaptive_max",
    family="adaptive_max_pool",
    function=False,
    method=False,
    dtypes="fh",
    vjp=lambda g, y1, x_shape, nd: F.pool_scatter(g, y1, x_shape[-nd:], nd),
    jvp=lambda x_t, y1, nd: F.pool_gather(x_t, y1, nd),
    doc="The largest of windows chosen so that the result has a given size, and its flat place.",
)


def avg_pool_vjp(
    g, x_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, nd
):
    """Each window's cotangent, shared among its elements."""
    window = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, nd)
    return F.avg_pool_grad(g, *window, x_shape[-nd:])


row(
    "avg_pool",
    "x",
    attrs=(*WINDOW, *MEAN, ND),
    infer="avg_pool",
    family="avg_pool",
    function=False,
    method=False,
    dtypes="fh",
    jvp="linear",
    vjp=avg_pool_vjp,
    doc="The mean of each window.",
)
row(
    "avg_pool_grad",
    "u",
    attrs=(*WINDOW, *MEAN, ND, SIZE),
    infer="avg_pool_grad",
    family="avg_pool_grad",
    function=False,
    method=False,
    dtypes="fh",
    jvp="linear",
    vjp=lambda g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, nd: (
        F.avg_pool(g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, nd)
    ),
    doc="What avg_pool's input gets from the cotangent u.",
)
row(
    "adaptive_avg_pool",
    "x",
    attrs=(SIZE, ND),
    infer="adaptive",
    family="adaptive_avg_pool",
    function=False,
    method=False,
    dtypes="fh",
    jvp="linear",
    vjp=lambda g, x_shape, nd: F.adaptive_avg_pool_grad(g, x_shape[-nd:], nd),
    doc="Means of windows chosen so that the result has a given size.",
)
row(
    "adaptive_avg_pool_grad",
    "u",
    attrs=(SIZE, ND),
    infer="pool_resize",
    family="adaptive_avg_pool_grad",
    function=False,
    method=False,
    dtypes="fh",
    jvp="linear",
    vjp=lambda g, u_shape, nd: F.adaptive_avg_pool(g, u_shape[-nd:], nd),
    doc="What adaptive_avg_pool's input gets from the cotangent u.",
)


def adaptive_avg(x, size, n):
    """Of one window there is the mean: a canonical sum, where windows are chains."""
    places = tuple(x.shape[-n:])
    if x.ndim > n and x.dtype.is_floating_point and all(size) and max(size) == 1 and all(places):
        return F.mean(x, tuple(range(x.ndim - n, x.ndim)), True)
    return F.adaptive_avg_pool(x, size, n)


def public_pools(n):
    """The names with a number, over the rows that take it as an attribute."""
    composite(
        f"max_pool{n}d",
        "x",
        lambda x, k, s, p, d, ceil: F.max_pool(x, k, s, p, d, ceil, n),
        attrs=(*WINDOW, attr("dilation", "ints3", 1), attr("ceil_mode", "bool", False)),
        nout=2,
        function=False,
        method=False,
        dtypes="fh",
        doc=f"The largest of each window over {n} axes, with its place.",
    )
    composite(
        f"avg_pool{n}d",
        "x",
        lambda x, k, s, p, ceil, pad, div: F.avg_pool(x, k, s, p, ceil, pad, div, n),
        attrs=(*WINDOW, *MEAN),
        function=False,
        method=False,
        dtypes="fh",
        doc=f"The mean of each window over {n} axes.",
    )
    composite(
        f"adaptive_max_pool{n}d",
        "x",
        lambda x, size: F.adaptive_max_pool(x, size, n),
        attrs=(SIZE,),
        nout=2,
        function=False,
        method=False,
        dtypes="fh",
        doc=f"The largest of windows over {n} axes, to a given size.",
    )
    composite(
        f"adaptive_avg_pool{n}d",
        "x",
        lambda x, size: adaptive_avg(x, size, n),
        attrs=(SIZE,),
        function=False,
        method=False,
        dtypes="fh",
        doc=f"Means over {n} axes, to a given size.",
    )


for _n in (1, 2, 3):
    public_pools(_n)
