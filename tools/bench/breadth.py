"""Many operations, dtypes and sizes, where `cases.py` has the few of everyday programs: `cpu.py --breadth` runs them.

They are there to find what was left behind: kernels that are not vectorised, roads that copy, layers composed of too many operations.
"""

import numpy as np
from cases import normal

CASES = {}
"""name -> (group, builder)."""
GOALS = {
    group: (1.2, 0.8) for group in ("elementwise", "reductions", "moves", "layers", "products")
}
SIZES = {"64k": (256, 256), "4M": (2048, 2048)}
HALVES, FLOATS = ("float16", "bfloat16"), ("float32", "float16", "bfloat16")
NUMBERS = (*FLOATS, "float64", "int64", "int32", "uint8")


def typed(lib, dtype, *shape, seed=0):
    """Numbers of any dtype; those of floating point are above zero, as logarithms want them."""
    rng = np.random.default_rng(seed)
    if "float" in dtype:
        values = np.abs(rng.standard_normal(shape, np.float32)) + np.float32(0.1)
    else:
        values = rng.integers(1, 100, shape)
    return lib.from_numpy(values).to(getattr(lib, dtype))


def on(group, name, call, *inputs, backward=False):
    """A case: `call(lib, *tensors)` on tensors of (dtype, *shape), or of shapes (normal numbers), and its backward pass."""

    def build(lib):
        made = [
            typed(lib, *i, seed=n)
            if isinstance(i[0], str)
            else normal(lib, *i, seed=n, grad=backward)
            for n, i in enumerate(inputs)
        ]
        if not backward:
            return lambda: call(lib, *made)
        leaves = [t for t in made if t.requires_grad]
        # not that of a sum: a norm's gradient would be nothing but roundings
        gradient = normal(lib, *call(lib, *made).shape, seed=len(made))

        def run():
            for t in leaves:
                t.grad = None
            call(lib, *made).backward(gradient)
            return [t.grad for t in leaves]

        return run

    CASES[f"{name}, backward" if backward else name] = (group, build)


def both(group, name, call, *inputs):
    """A case without and one with the backward pass."""
    on(group, name, call, *inputs)
    on(group, name, call, *inputs, backward=True)


def named(name):
    """A function of the library's own."""
    return lambda lib, *args: getattr(lib, name)(*args)


def layer(name, *more, **how):
    """A function of nn.functional."""
    return lambda lib, *args: getattr(lib.nn.functional, name)(*args, *more, **how)


# -- elementwise

for size, shape in SIZES.items():
    for op in (
        "relu",
        "exp",
        "tanh",
        "sigmoid",
        "log",
        "sqrt",
        "rsqrt",
        "abs",
        "neg",
        "sin",
        "erf",
        "floor",
        "square",
    ):
        for dtype in FLOATS if op in ("relu", "exp", "neg", "sqrt") else ("float32", "bfloat16"):
            on("elementwise", f"{op} {dtype} {size}", named(op), (dtype, *shape))
    for op in (
        "gelu",
        "silu",
        "leaky_relu",
        "elu",
        "softplus",
        "hardtanh",
        "mish",
        "hardswish",
        "logsigmoid",
    ):
        on("elementwise", f"{op} bfloat16 {size}", layer(op), ("bfloat16", *shape))
        both("elementwise", f"{op} float32 {size}", layer(op), shape)
    for op in ("add", "mul", "div", "maximum"):
        for dtype in NUMBERS if op in ("add", "mul") else FLOATS:
            on("elementwise", f"{op} {dtype} {size}", named(op), (dtype, *shape), (dtype, *shape))
    for dtype in NUMBERS:
        on("elementwise", f"add {dtype} {size}, a number", lambda lib, x: x + 2, (dtype, *shape))
        on(
            "elementwise",
            f"add {dtype} {size}, a column",
            lambda lib, x, y: x + y,
            (dtype, *shape),
            (dtype, shape[0], 1),
        )
        on(
            "elementwise",
            f"add {dtype} {size}, transposed",
            lambda lib, x, y: x + y.t(),
            (dtype, *shape),
            (dtype, *shape),
        )
    for dtype in (*FLOATS, "int64"):
        on(
            "elementwise",
            f"less {dtype} {size}",
            lambda lib, x, y: x < y,
            (dtype, *shape),
            (dtype, *shape),
        )
        on("elementwise", f"clamp {dtype} {size}", lambda lib, x: x.clamp(1, 2), (dtype, *shape))
        on(
            "elementwise",
            f"where {dtype} {size}",
            lambda lib, x, y: lib.where(x < y, x, y),
            (dtype, *shape),
            (dtype, *shape),
        )
    for source in ("float32", "float16", "bfloat16", "float64", "int64", "uint8"):
        for target in ("float32", "float16", "bfloat16", "float64", "int64"):
            if source != target:
                on(
                    "elementwise",
                    f"{source} to {target} {size}",
                    lambda lib, x, t=target: x.to(getattr(lib, t)),
                    (source, *shape),
                )

# -- reductions and moves

for size, shape in SIZES.items():
    for dtype in (*FLOATS, "int64"):
        for op in ("sum", "mean", "amax", "argmax"):
            if (op, dtype) == ("mean", "int64"):
                continue
            on(
                "reductions",
                f"{op} {dtype} {size}",
                lambda lib, x, op=op: getattr(x, op)(),
                (dtype, *shape),
            )
            for dim in (0, 1):
                on(
                    "reductions",
                    f"{op} {dtype} {size}, axis {dim}",
                    lambda lib, x, op=op, d=dim: getattr(x, op)(d),
                    (dtype, *shape),
                )
    for dtype in ("float32", "bfloat16"):
        for op in ("softmax", "log_softmax", "logsumexp", "var", "cumsum", "norm"):
            for dim in (0, 1):
                on(
                    "reductions",
                    f"{op} {dtype} {size}, axis {dim}",
                    lambda lib, x, op=op, d=dim: getattr(x, op)(dim=d),
                    (dtype, *shape),
                )
        on(
            "reductions",
            f"layer norm {dtype} {size}",
            lambda lib, x: lib.nn.functional.layer_norm(x, x.shape[1:]),
            (dtype, *shape),
        )
        on(
            "moves",
            f"transposed copy {dtype} {size}",
            lambda lib, x: x.t().contiguous(),
            (dtype, *shape),
        )
        on("moves", f"roll {dtype} {size}", lambda lib, x: lib.roll(x, 7, 1), (dtype, *shape))
        on("moves", f"stack {dtype} {size}", lambda lib, x: lib.stack([x, x], 1), (dtype, *shape))
        on("moves", f"topk {dtype} {size}", lambda lib, x: lib.topk(x, 10)[0], (dtype, *shape))
        indices = ("int64", *shape)
        on(
            "moves",
            f"rows {dtype} {size}",
            lambda lib, x, i: x[i],
            (dtype, *shape),
            ("int64", shape[0]),
        )
        on(
            "moves",
            f"gather {dtype} {size}",
            lambda lib, x, i: lib.gather(x, 1, i),
            (dtype, *shape),
            indices,
        )
        on(
            "moves",
            f"scatter_add {dtype} {size}",
            lambda lib, x, i: lib.scatter_add(x * 0, 1, i, x),
            (dtype, *shape),
            indices,
        )

# -- layers

for shape in ((64, 64, 32, 32), (16, 256, 14, 14)):
    tag, vector = "x".join(map(str, shape)), (shape[1],)
    both(
        "layers",
        f"batch norm {tag}",
        lambda lib, x, w, b: lib.nn.functional.batch_norm(x, None, None, w, b, True),
        shape,
        vector,
        vector,
    )
    both(
        "layers",
        f"group norm {tag}",
        lambda lib, x, w, b: lib.nn.functional.group_norm(x, 8, w, b),
        shape,
        vector,
        vector,
    )
    both("layers", f"max pool 3 stride 2 {tag}", layer("max_pool2d", 3, 2, 1), shape)
    both("layers", f"average pool 2 {tag}", layer("avg_pool2d", 2), shape)
    both("layers", f"average pool to 1 {tag}", layer("adaptive_avg_pool2d", 1), shape)
    both("layers", f"average pool to 7 {tag}", layer("adaptive_avg_pool2d", 7), shape)
    both("layers", f"nearest x 2 {tag}", layer("interpolate", None, 2.0, "nearest"), shape)
    both("layers", f"bilinear x 2 {tag}", layer("interpolate", None, 2.0, "bilinear"), shape)
    both("layers", f"pad {tag}", layer("pad", (1, 1, 1, 1)), shape)
CONVOLUTIONS = [  # batch, channels, side, channels of the result, then kernel, stride, padding, groups
    (32, 3, 32, 32, 3, 1, 1, 1), (32, 64, 16, 128, 3, 2, 1, 1), (8, 256, 14, 256, 3, 1, 1, 1), (8, 512, 7, 512, 3, 1, 1, 1),
    (1, 256, 14, 512, 1, 1, 0, 1), (8, 64, 56, 128, 1, 2, 0, 1), (8, 96, 28, 96, 3, 1, 1, 96), (8, 96, 28, 96, 3, 2, 1, 96),
    (8, 96, 28, 96, 5, 1, 2, 96), (8, 144, 14, 144, 7, 1, 3, 144), (8, 3, 64, 64, 4, 4, 0, 1), (8, 64, 28, 64, 3, 1, 1, 4),
    (8, 128, 28, 256, 3, 2, 1, 1),
]  # fmt: skip
for n, c, side, o, k, stride, padding, groups in CONVOLUTIONS:
    tag = f"conv {n}x{c}x{side}x{side} to {o}, {k}x{k} stride {stride}" + (
        f" groups {groups}" if groups > 1 else ""
    )
    both(
        "layers",
        tag,
        layer("conv2d", None, stride, padding, 1, groups),
        (n, c, side, side),
        (o, c // groups, k, k),
    )
both(
    "layers",
    "conv_transpose 8x64x16x16 to 32, 4x4 stride 2",
    layer("conv_transpose2d", None, 2, 1),
    (8, 64, 16, 16),
    (64, 32, 4, 4),
)
both(
    "layers",
    "conv3d 2x16x16x28x28 to 32, 3x3x3",
    layer("conv3d", None, 1, 1),
    (2, 16, 16, 28, 28),
    (32, 16, 3, 3, 3),
)
both(
    "layers",
    "attention 2 x 8 x 512 x 64",
    layer("scaled_dot_product_attention"),
    *[(2, 8, 512, 64)] * 3,
)

# -- products

for a, b in (
    ((64, 64), (64, 64)), ((1000, 1000), (1000, 1000)), ((1, 4096), (4096, 4096)), ((4096, 4096), (4096, 1)),
    ((32, 100, 64), (32, 64, 100)), ((12, 512, 64), (12, 64, 512)), ((16, 20000), (20000, 16)), ((64, 1, 512), (64, 512, 1)),
    ((2000, 16), (16, 2000)),
):  # fmt: skip
    tag = f"{'x'.join(map(str, a))} by {'x'.join(map(str, b))}"
    for dtype in ("float32", "bfloat16"):
        on("products", f"{tag} {dtype}", named("matmul"), (dtype, *a), (dtype, *b))
for n, k, m in ((1, 1024, 512), (32, 64, 10), (512, 512, 512), (8, 4096, 64)):
    both("products", f"linear {n}x{k} to {m}", layer("linear"), (n, k), (m, k), (m,))
on("products", "dot 64k", named("dot"), (65536,), (65536,))
on("products", "outer 512", named("outer"), (512,), (512,))
