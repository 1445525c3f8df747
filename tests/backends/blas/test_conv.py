"""Convolutions and their gradients by the library, against our own kernels."""

import numpy as np
import pytest
from backends.blas.close import both, close
from backends.isolated import run

import tinyfin as tf
from tinyfin.nn import functional as F

DTYPES = ["float32", "float64"]
CASES = {
    "3x3": ((2, 5, 9, 8), (6, 5, 3, 3), {"padding": 1}),
    "1x1": ((3, 5, 9, 8), (6, 5, 1, 1), {}),
    "1x1 of large planes": ((2, 5, 19, 18), (6, 5, 1, 1), {}),
    "1x1 with stride": ((2, 5, 9, 8), (6, 5, 1, 1), {"stride": 2}),
    "1x1 with padding": ((2, 5, 9, 8), (6, 5, 1, 1), {"padding": 2}),
    "1x1 of one channel": ((3, 1, 9, 8), (6, 1, 1, 1), {}),
    "one channel of y": ((2, 5, 9, 8), (1, 5, 3, 3), {}),
    "stride, padding, dilation": ((2, 4, 17, 19), (3, 4, 3, 2), {"stride": (2, 3), "padding": (3, 1), "dilation": (2, 1)}),
    "stride beyond the kernel": ((2, 4, 17, 19), (3, 4, 2, 2), {"stride": 5, "padding": 1}),
    "padding beyond the kernel": ((2, 4, 3, 3), (3, 4, 2, 2), {"padding": 4}),
    "one place": ((4, 5, 3, 3), (6, 5, 3, 3), {}),
    "wide rows": ((1, 3, 4, 700), (5, 3, 3, 3), {"padding": 1}),
    "1 dimension": ((3, 4, 50), (5, 4, 7), {"stride": 2, "padding": 3}),
    "1 dimension, 1 tap": ((3, 4, 50), (5, 4, 1), {}),
    "3 dimensions": ((2, 3, 6, 7, 8), (5, 3, 2, 3, 2), {"stride": (1, 2, 1), "padding": (1, 0, 1)}),
    "3 dimensions, 1 tap": ((2, 3, 6, 7, 8), (5, 3, 1, 1, 1), {}),
    "many images to a block": ((40, 3, 7, 7), (5, 3, 3, 3), {"padding": 1}),
    "many parts of an image": ((2, 64, 56, 56), (8, 64, 3, 5), {"padding": (1, 2)}),
    "copies of some images at a time": ((5, 8, 364, 364), (2, 8, 3, 3), {}),
}  # fmt: skip
"""name -> shapes of x and w, and keywords."""


def conv(x, *args, **kwargs):
    return getattr(F, f"conv{x.ndim - 2}d")(x, *args, **kwargs)


def numbers(rng, *shape, dtype="float32"):
    return tf.tensor(rng.integers(-8, 9, shape).astype(dtype))


def outcome(x, w, bias, g, **kwargs):
    """y and the three gradients."""
    x, w, bias = (t.detach().requires_grad_() for t in (x, w, bias))
    y = conv(x, w, bias, **kwargs)
    return (y, *tf.autograd.grad(y, (x, w, bias), g))


@pytest.fixture(params=[1, 3])
def threads(request):
    """One thread, where the library computes block after block, and a team that shares them."""
    before = tf.get_num_threads()
    tf.set_num_threads(request.param)
    yield request.param
    tf.set_num_threads(before)


@pytest.mark.usefixtures("eager", "threads")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, dtype, rng):
    """Of whole numbers, whose sums are exact in every order: so is each result."""
    x, w, kwargs = CASES[name]
    x, w, bias = (numbers(rng, *s, dtype=dtype) for s in (x, w, w[:1]))
    g = numbers(rng, *conv(x, w, **kwargs).shape, dtype=dtype)
    if x.numel() > 1 << 20:
        g = g * (tf.rand(g.shape) < 0.01).to(g.dtype)  # gradients of w stay exact
    for got, want in zip(*both(lambda: outcome(x, w, bias, g, **kwargs))):
        assert got.dtype == want.dtype and tf.equal(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "x, w, kwargs",
    [
        ((4, 64, 20, 20), (64, 64, 3, 5), {"padding": 1}), ((2, 3, 60, 60), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((3, 64, 14, 14), (96, 64, 1, 1), {}), ((9, 64, 7, 7), (96, 64, 1, 1), {}), ((2, 64, 500), (64, 64, 5), {}),
    ],
)  # fmt: skip
def test_sizes_that_gain(blas, x, w, kwargs, dtype, rng):
    x, w, bias = (tf.tensor(rng.standard_normal(s).astype(dtype)) for s in (x, w, w[:1]))
    g = tf.tensor(rng.standard_normal(conv(x, w, **kwargs).shape).astype(dtype))
    for got, want in zip(*both(lambda: outcome(x, w, bias, g, **kwargs))):
        close(got, want)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", ["3x3", "1x1", "1x1 of large planes", "3 dimensions"])
def test_layouts(name, rng):
    """Channels last, planes apart, backwards, expanded: of x, w, the bias and the gradient of y."""
    x, w, kwargs = CASES[name]
    x, w, bias = (numbers(rng, *s) for s in (x, w, w[:1]))
    g = numbers(rng, *conv(x, w, **kwargs).shape)

    def last(t):
        return t.movedim(1, -1).contiguous().movedim(-1, 1)

    def apart(t):
        return tf.stack([t, t + 1], 2)[:, :, 0] if t.ndim > 1 else tf.stack([t, t], 1)[:, 0]

    def backwards(t):
        axes = tuple(range(t.ndim))
        return tf.from_numpy(np.flip(np.ascontiguousarray(np.flip(t.numpy(), axes)), axes))

    def one_image(t):
        return t[:1].expand(t.shape)

    def one_number(t):
        return t.flatten()[:1].expand(t.numel()).reshape(t.shape)

    for change in (last, apart, backwards, one_image, one_number):
        for changed in range(4):
            values = [x, w, bias, g]
            if change is last and changed == 2:
                continue
            values[changed] = change(values[changed])
            for got, want in zip(*both(lambda v=values: outcome(*v, **kwargs))):
                assert tf.equal(got, want), f"{change.__name__} of argument {changed}"


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("groups", [2, 4])
def test_groups_are_ours(groups, rng):
    x, w, bias = numbers(rng, 2, 8, 6, 6), numbers(rng, 8, 8 // groups, 3, 3), numbers(rng, 8)
    g = numbers(rng, 2, 8, 4, 4)
    for got, want in zip(*both(lambda: outcome(x, w, bias, g, groups=groups))):
        assert tf.equal(got, want)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "x, w", [((0, 3, 5, 5), (4, 3, 3, 3)), ((2, 0, 5, 5), (4, 0, 3, 3)), ((2, 3, 5, 5), (0, 3, 3, 3))]
)  # fmt: skip
def test_nothing(x, w):
    x, w, bias = tf.ones(x), tf.ones(w), tf.ones(w[0])
    g = tf.ones(conv(x, w).shape)
    for got, want in zip(*both(lambda: outcome(x, w, bias, g))):
        assert got.shape == want.shape and tf.equal(got, want)


@pytest.mark.usefixtures("eager")
def test_nan_stays_where_it_belongs():
    """Padding is a zero that takes part; what no tap reaches is zero; old memory is not read."""
    x, w = tf.ones(1, 2, 6, 6), tf.ones(3, 2, 3, 3)
    x[0, 1, 2, 3] = float("nan")
    w[1, 0, 0, 0] = float("inf")
    g = tf.ones(1, 3, 6, 6)
    g[0, 2, 5, 0] = float("nan")
    for got, want in zip(*both(lambda: outcome(x, w, tf.zeros(3), g, padding=1))):
        close(got, want)
    for _ in range(3):
        old = tf.full((64, 64, 30, 30), float("nan"))
        del old
        y = F.conv2d(tf.ones(2, 64, 30, 30), tf.ones(64, 64, 3, 3))
        assert (y == 576).all()


@pytest.mark.usefixtures("eager")
def test_gradients(rng):
    for name in ("3x3", "1x1", "stride, padding, dilation"):
        x, w, kwargs = CASES[name]
        inputs = [tf.tensor(rng.standard_normal(s)).requires_grad_() for s in (x, w, w[:1])]
        assert tf.autograd.gradcheck(lambda *t, k=kwargs: conv(*t, **k), inputs, fast_mode=True)
        assert tf.autograd.gradgradcheck(lambda *t, k=kwargs: conv(*t, **k), inputs, fast_mode=True)


@pytest.mark.usefixtures("eager")
def test_transposed(rng):
    x, w, bias = numbers(rng, 2, 5, 6, 7), numbers(rng, 5, 4, 3, 3), numbers(rng, 4)
    close(*both(lambda: F.conv_transpose2d(x, w, bias, stride=2, padding=1, output_padding=1)))


def test_what_the_library_computes(built):
    """Convolutions that gain; not those in Winograd's form, groups, few channels, halves, or small ones."""
    code = """
import ctypes
import tinyfin as tf
from tinyfin.backends import base
from tinyfin.nn import functional as F
assert tf.backend_set("blas")
calls = ctypes.CDLL(base.REGISTRY["blas"].library.path).fake_calls
x, w = tf.ones(2, 64, 16, 16, requires_grad=True), tf.ones(64, 64, 3, 5, requires_grad=True)
made = [calls()]
for call in (
    lambda: F.conv2d(x, w), lambda: F.conv2d(x, w).square().sum().backward(), lambda: F.conv2d(x, w[:, :, :1, :1]),
    lambda: F.conv2d(x, w[:, :32], groups=2), lambda: F.conv2d(x, w[:48]), lambda: F.conv2d(x.half(), w.half()),
    lambda: F.conv2d(x[:1, :, :4, :5], w), lambda: F.conv2d(x, w[..., :3].contiguous()),
):
    call()
    made.append(calls())
print([after - before for before, after in zip(made, made[1:])])
"""
    # each image is a block; a tap of one needs none, but its weight is copied
    assert run(code, TINYFIN_BLAS=built())[0] == ["[2, 6, 2, 0, 0, 0, 0, 0]"]


def test_memory_is_bounded(blas):
    """Columns of all places would take nine times x; scratch stays near a copy of x."""
    code = """
import tinyfin as tf
assert tf.backend_set("blas")
x, w = tf.ones(1, 64, 256, 256, requires_grad=True), tf.ones(64, 64, 3, 3, requires_grad=True)
tf.nn.functional.conv2d(x, w, padding=1).square().sum().backward()
print("ran")
"""
    limit = str(24 << 20)  # x has 16 MiB, all columns 144
    assert run(code, TINYFIN_SCRATCH_BYTES=limit)[0] == ["ran"]
    tight = """
import tinyfin as tf
assert tf.backend_set("blas")
try:
    tf.nn.functional.conv2d(tf.ones(1, 64, 256, 256), tf.ones(64, 64, 3, 3))
except MemoryError as error:
    print("TINYFIN_SCRATCH_BYTES" in str(error))
"""
    assert run(tight, TINYFIN_SCRATCH_BYTES=str(1 << 20))[0] == ["True"]
