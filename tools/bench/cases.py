"""What the CPU's benches run, written once for tinyfin and PyTorch: `lib` is either module.

A case is a builder that prepares its tensors and gives the function to time. Shapes are those of everyday programs, not of kernels.
"""

import models
import numpy as np

CASES = {}
"""name -> (group, builder)."""
GOALS = {"overhead": (6.0, 3.0), "memory": (1.2, 0.9), "compute": (1.0, 0.8), "train": (1.3, 1.0)}
"""group -> how many times as fast as PyTorch: in the geometric mean, and at least."""


def case(group, name):
    """Registers a builder under its name."""

    def register(build):
        CASES[name] = (group, build)
        return build

    return register


def normal(lib, *shape, seed=0, grad=False):
    """Normal numbers, the same for both libraries."""
    values = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return lib.from_numpy(values).requires_grad_(grad)


def on(group, name, call, *shapes):
    """A case that calls `call(lib, *tensors)` on tensors of the given shapes."""

    @case(group, name)
    def build(lib):
        tensors = [normal(lib, *shape, seed=seed) for seed, shape in enumerate(shapes)]
        return lambda: call(lib, *tensors)


def with_backward(group, name, call, *shapes):
    """A case whose run is `call(lib, *tensors)` and the backward pass of its sum; its result are the gradients."""

    @case(group, name)
    def build(lib):
        tensors = [normal(lib, *shape, seed=seed, grad=True) for seed, shape in enumerate(shapes)]

        def run():
            for t in tensors:
                t.grad = None
            call(lib, *tensors).sum().backward()
            return [t.grad for t in tensors]

        return run


# -- what a call costs, on tensors that are too small to matter

on("overhead", "x + y, 16", lambda lib, x, y: x + y, (16,), (16,))


@case("overhead", "200 additions in a row, 16")
def _(lib):
    x, y = normal(lib, 16), normal(lib, 16, seed=1)

    def run():
        z = x
        for _ in range(200):
            z = z + y
        return z

    return run


with_backward("overhead", "(x * y).sum().backward(), 16", lambda lib, x, y: x * y, (16,), (16,))
on("overhead", "reshape", lambda lib, x: x.reshape(16, 256), (64, 64))
on("overhead", "transpose", lambda lib, x: x.transpose(0, 1), (64, 64))
on("overhead", "x[3:17, 5]", lambda lib, x: x[3:17, 5], (64, 64))
on("overhead", "matmul 8", lambda lib, x, y: x @ y, (8, 8), (8, 8))
on(
    "overhead",
    "linear 4 x 16",
    lambda lib, *a: lib.nn.functional.linear(*a),
    (4, 16),
    (16, 16),
    (16,),
)


@case("overhead", "step of a 64-32-10 network, Adam")
def _(lib):
    nn = lib.nn
    net = models.fill(lib, nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    optimizer = lib.optim.Adam(net.parameters(), lr=1e-3)
    x, y = normal(lib, 32, 64), lib.from_numpy(np.arange(32) % 10)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


# -- what memory's speed decides

MILLION, SQUARE, ROWS = (1 << 20,), (4096, 4096), (4096, 1024)
for name, call, shape in [
    ("relu 4M", lambda lib, x: lib.relu(x), (4 << 20,)),
    ("exp 4M", lambda lib, x: lib.exp(x), (4 << 20,)),
    ("tanh 4M", lambda lib, x: lib.tanh(x), (4 << 20,)),
    ("gelu 4M", lambda lib, x: lib.nn.functional.gelu(x), (4 << 20,)),
    ("silu 1M", lambda lib, x: lib.nn.functional.silu(x), MILLION),
    ("sum 16M", lambda lib, x: x.sum(), (16 << 20,)),
    ("sum of columns 4096", lambda lib, x: x.sum(0), SQUARE),
    ("sum of rows 4096", lambda lib, x: x.sum(1), SQUARE),
    ("variance of rows 4096 x 1024", lambda lib, x: x.var(1), ROWS),
    ("argmax of rows 4096 x 1024", lambda lib, x: x.argmax(1), ROWS),
    ("softmax 4096 x 1024", lambda lib, x: lib.softmax(x, 1), ROWS),
    ("log_softmax 4096 x 1024", lambda lib, x: lib.log_softmax(x, 1), ROWS),
    ("layer norm 4096 x 1024", lambda lib, x: lib.nn.functional.layer_norm(x, (1024,)), ROWS),
    ("transposed copy 4096", lambda lib, x: x.transpose(0, 1).contiguous(), SQUARE),
    ("NCHW to NHWC 32 x 64 x 56 x 56", lambda lib, x: x.permute(0, 2, 3, 1).contiguous(), (32, 64, 56, 56)),
    ("cumsum of rows 4096 x 1024", lambda lib, x: x.cumsum(1), ROWS),
    ("sort of rows 512 x 1024", lambda lib, x: x.sort(1)[0], (512, 1024)),
    ("to float64 and back 4M", lambda lib, x: x.double().float(), (4 << 20,)),
]:  # fmt: skip
    on("memory", name, call, shape)
on("memory", "x + y, 16M", lambda lib, x, y: x + y, (16 << 20,), (16 << 20,))
on("memory", "x + row, 4096", lambda lib, x, y: x + y, SQUARE, (4096,))
on("memory", "where 1M", lambda lib, x, y: lib.where(x > 0, x, y), MILLION, MILLION)
on("memory", "cat of columns 2048 x 1024", lambda lib, *xs: lib.cat(xs, 1), *[(2048, 1024)] * 2)
with_backward("memory", "gelu 1M, with backward", lambda lib, x: lib.nn.functional.gelu(x), MILLION)


@case("memory", "embedding 32000 x 256")
def _(lib):
    weight = normal(lib, 32000, 256)
    index = lib.from_numpy(np.random.default_rng(1).integers(0, 32000, (16, 512)))
    return lambda: lib.nn.functional.embedding(index, weight)


@case("memory", "cross entropy 1024 x 8192, with backward")
def _(lib):
    x = normal(lib, 1024, 8192, grad=True)
    target = lib.from_numpy(np.random.default_rng(1).integers(0, 8192, 1024))

    def run():
        x.grad = None
        lib.nn.functional.cross_entropy(x, target).backward()
        return x.grad

    return run


# -- what arithmetic decides

for size in (128, 256, 512, 1024, 2048):
    on("compute", f"matmul {size}", lambda lib, x, y: x @ y, (size, size), (size, size))
on(
    "compute",
    "matmul 1024, x transposed",
    lambda lib, x, y: x.transpose(0, 1) @ y,
    *[(1024,) * 2] * 2,
)
on("compute", "matmul 8 x 4096 x 4096", lambda lib, x, y: x @ y, (8, 4096), SQUARE)
on("compute", "matmul 1000 x 30 x 1000", lambda lib, x, y: x @ y, (1000, 30), (30, 1000))
on("compute", "64 products of 128", lambda lib, x, y: x @ y, *[(64, 128, 128)] * 2)
on("compute", "matrix and vector 2048", lambda lib, x, y: x @ y, (2048, 2048), (2048,))
for name, x, w, how in [
    ("3x3, 64 of 64 channels, 56", (4, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
    ("1x1, 256 of 256 channels, 14", (8, 256, 14, 14), (256, 256, 1, 1), {}),
    ("7x7 stride 2, 64 of 3 channels, 224", (1, 3, 224, 224), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
    ("3x3 depthwise, 64 channels, 56", (4, 64, 56, 56), (64, 1, 3, 3), {"padding": 1, "groups": 64}),
    ("5x5, 16 of 1 channel, 28", (64, 1, 28, 28), (16, 1, 5, 5), {}),
]:  # fmt: skip

    def call(lib, x, w, how=how):
        """The convolution."""
        return lib.nn.functional.conv2d(x, w, **how)

    on("compute", f"conv {name}", call, x, w)
    with_backward("compute", f"conv {name}, with backward", call, x, w)
PICTURES, HEADS = (16, 64, 56, 56), [(4, 8, 256, 64)] * 3
on("compute", "max pool 2x2", lambda lib, x: lib.nn.functional.max_pool2d(x, 2), PICTURES)
on("compute", "average pool 2x2", lambda lib, x: lib.nn.functional.avg_pool2d(x, 2), PICTURES)


def attention(lib, q, k, v):
    """Causal attention."""
    return lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


on("compute", "causal attention 4 x 8 x 256 x 64", attention, *HEADS)
with_backward("compute", "causal attention 4 x 8 x 256 x 64, with backward", attention, *HEADS)


@case("compute", "LSTM 64 to 128, 16 sequences of 64")
def _(lib):
    net = models.fill(lib, lib.nn.LSTM(64, 128, batch_first=True))
    x = normal(lib, 16, 64, 64)
    return lambda: net(x)[0]


# -- whole steps of training

for title in models.BATCHES:

    @case("train", f"step: {title}")
    def _(lib, title=title):
        return models.training_step(lib, title, "cpu")
