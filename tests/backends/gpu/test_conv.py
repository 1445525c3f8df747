"""Convolutions on a GPU beyond the table's samples: every body, several work groups, any strides."""

import warnings

import numpy as np
import pytest
import samples
from backends.gpu.alike import gpu

import tinyfin as tf
from tinyfin.backends.gpu.conv import only_parts
from tinyfin.ops import table

pytestmark = pytest.mark.usefixtures("gpu", "exact")
CONV, INPUT, WEIGHT = (
    table.OPS[name] for name in ("convolution", "conv_grad_input", "conv_grad_weight")
)


def same(run, *inputs):
    """Compares a function of tensors with the CPU; a fallback is an error."""
    want = run(*inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = run(*(t.to(gpu()) for t in inputs))
    assert samples.bits(got.cpu()) == samples.bits(want)


def random(*shape):
    return tf.randn(shape)


def grads(x, w, step):
    """A gradient of the result, of the shape that the steps give."""
    return random(*CONV(tf.zeros(x), tf.zeros(w), None, **step).shape)


@pytest.mark.parametrize(
    "x, w, step",
    [
        ((3, 5, 65, 67), (66, 5, 3, 3), {"padding": 1}),
        ((2, 3, 161, 80), (65, 3, 2, 3), {"stride": (1, 2), "dilation": 2}),
        ((1, 2, 8193), (129, 2, 2), {"padding": 3}),
        ((1, 6, 9, 41, 36), (99, 2, 1, 1, 2), {"groups": 3}),
        ((32, 2, 32, 32), (128, 2, 1, 1), {}),
    ],
)
def test_tiles(x, w, step):
    """64 x 128, and 128 x 128."""
    same(lambda *a: CONV(*a, **step), random(*x), random(*w), random(w[0]))


@pytest.mark.parametrize(
    "x, w, step",
    [
        ((3, 66, 65, 67), (5, 66, 3, 3), {"padding": 1}),
        ((2, 65, 161, 80), (3, 65, 2, 3), {"stride": (1, 2), "dilation": 2}),
        ((3, 33, 90, 91), (2, 33, 3, 3), {"stride": 2, "padding": 1}),
        ((1, 129, 8193), (2, 129, 2), {"padding": 3}),
        ((8, 33, 40, 40), (2, 33, 2, 2), {"stride": 2}),
    ],
)
def test_tiles_of_input_gradients(x, w, step):
    """With taps that reach nothing and without, with classes of places."""
    same(lambda *a: INPUT(*a, size=x[2:], **step), grads(x, w, step), random(*w))


@pytest.mark.parametrize(
    "x, w, step",
    [
        ((2, 469, 3, 3), (130, 469, 3, 3), {"padding": 1, "stride": 2}),
        ((1, 2, 400), (5, 2, 2), {}),
        ((5, 3, 17, 19), (18, 1, 3, 2), {"groups": 3, "padding": 1, "dilation": (2, 1)}),
    ],
)
def test_weight_gradients(x, w, step):
    """In tiles; chains of several tables; groups."""
    same(lambda *a: WEIGHT(*a, size=w[2:], **step), grads(x, w, step), random(*x))


def test_long_kernels():
    """Taps that are too many for the bits of a word."""
    x, w, b = random(1, 1, 2600), random(33, 1, 40), random(33)
    same(lambda *a: CONV(*a, padding=5), x, w, b)
    same(lambda x, w: CONV(x, w, None, padding=5, dilation=2), x[..., :300], w[:9])
    same(lambda g, w: INPUT(g, w, padding=5, size=(2600,)), random(1, 2, 2571), random(2, 33, 40))
    same(lambda g, x: WEIGHT(g, x, padding=(5,), size=(40,)), random(1, 5, 275), x[..., :304])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_in_tiles(dtype):
    kind = getattr(tf, dtype)
    x, w, b = (random(*s).to(kind) for s in ((3, 2, 65, 66), (66, 2, 2, 2), (66,)))
    same(lambda *a: CONV(*a, padding=1), x, w, b)
    same(lambda *a: INPUT(*a, size=(66, 66)), random(3, 2, 65, 65).to(kind), w[:2])


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.transpose(-1, -2),
        lambda t: t.flip(0, 1)[:, ::2],
        lambda t: t[:, :1].expand(t.shape),
        lambda t: t.transpose(0, 1),
    ],
)
def test_views(change):
    """Strides of images and channels are taken as they are, others copied."""
    x, w = random(4, 4, 9, 9), random(6, 4, 3, 3)
    channels = change(x).shape[1]
    same(lambda x, w: CONV(change(x), change(w)[:, :channels], None), x, w)
    g = random(4, 4, 7, 7)
    same(lambda g, w: INPUT(change(g), w, size=(9, 9)), g, random(change(g).shape[1], 2, 3, 3))
    same(lambda g, x: WEIGHT(change(g), change(x), size=(3, 3)), g, x)


def test_special_values():
    """NaN and infinity stay where their taps are: also the one that marks a tap that reaches nothing."""
    bits = np.array([0x7FEDCBA9, 0x7F800000, 0x80000000, 0x00000001], np.uint32)
    g = random(1, 26, 6, 6).numpy().copy()
    g[0, :4, 2, 2], g[0, 4:8, 0, 0] = bits.view(np.float32), np.inf
    w = random(26, 26, 3, 3).numpy().copy()
    w[5, 3], w[6, 4, 0, 0] = -np.inf, np.nan
    for shape in ((26, 26), (26, 2)):
        v = tf.tensor(w[: shape[0], : shape[1]].copy())
        same(lambda g, w: INPUT(g, w, padding=1, size=(6, 6)), tf.tensor(g), v)


def test_wide_steps():
    """A stride of more places than tiles take, a dilation beyond the input, nothing but padding."""
    same(lambda g, w: INPUT(g, w, stride=30, size=(62, 61)), random(2, 8, 2, 2), random(8, 9, 3, 4))
    same(
        lambda x, w: CONV(x, w, None, padding=7, dilation=9), random(2, 8, 5, 5), random(9, 8, 2, 2)
    )
    same(lambda x, w: CONV(x, w, None, padding=2), tf.zeros(2, 8, 0, 1), random(9, 8, 2, 2))
    same(lambda g, x: WEIGHT(g, x, size=(3, 3)), tf.zeros(0, 8, 2, 2), tf.zeros(0, 9, 4, 4))


@pytest.fixture
def parts():
    """Cuts the chains of gradients of weights; by the shape again afterwards."""
    yield only_parts
    only_parts()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    "x, w", [((4, 5, 16, 17), (20, 5, 3, 3)), ((3, 6, 19, 21), (140, 3, 3, 3))]
)
def test_parts(parts, x, w, dtype, gpu):
    """Chains that are cut, in normal mode alone; some parts are empty."""
    step = {"stride": (1, 2), "padding": 1, "groups": x[1] // w[1]}
    like = grads(x, w, step).shape
    for exact in (True, False):
        g, t = (tf.randint(-2, 3, s).float() if exact else random(*s) for s in (like, x))
        g, t = (v.to(getattr(tf, dtype)) for v in (g, t))
        found = []
        with tf.deterministic(False):
            for n in (1, 2, 32):
                parts(n)
                found.append(samples.bits(WEIGHT(g.to(gpu), t.to(gpu), size=w[2:], **step).cpu()))
        if exact:  # small whole numbers, which add up exactly in any order
            assert found == [samples.bits(WEIGHT(g, t, size=w[2:], **step))] * 3
        elif dtype == "float32":
            assert len(set(found)) == 3
    same(lambda g, x: WEIGHT(g, x, size=w[2:], **step), g, t)  # whole chains in deterministic mode


FLOAT64 = (
    ((2, 3, 9, 11), (4, 3, 3, 3), {"padding": 1}),
    ((2, 6, 17, 19), (34, 3, 3, 2), {"groups": 2, "stride": (1, 2), "padding": 1}),
    ((2, 20, 12, 9), (18, 20, 2, 3), {"stride": 2, "dilation": (3, 1), "padding": (2, 1)}),
    ((1, 5, 7, 6, 5), (20, 5, 2, 3, 1), {"padding": (0, 1, 0)}),
    ((1, 9, 300), (8, 9, 40), {"padding": 5, "dilation": 2}),
)
"""Results by themselves and in tiles, tap by tap and with too many for a word, that reach nothing and that all reach."""


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("x, w, step", FLOAT64)
def test_float64(x, w, step, tiny):
    """The bits, with subnormal numbers flushed where chains come near them."""
    scale = 2.0**-520 if tiny else 1.0
    wide = [(random(*s).double() / 3) * scale for s in (x, w)]
    g = (grads(x, w, step).double() / 3) * scale
    same(lambda *a: CONV(*a, **step), *wide, random(w[0]).double() * scale * scale)
    same(lambda g, w: INPUT(g, w, size=x[2:], **step), g, wide[1])
    same(lambda g, x: WEIGHT(g, x, size=w[2:], **step), g, wide[0])
    same(lambda g, x: WEIGHT(g.flip(2), x.flip(2), size=w[2:], **step), g, wide[0])


def test_float64_special_values():
    """NaN and infinity stay where their taps are, also the NaN that marks a tap that reaches nothing."""
    bits = np.array([0x7FFDCBA987654321, 0x7FF << 52, 1 << 63, 1], np.uint64)
    g, w = (random(*s).double().numpy().copy() for s in ((1, 26, 6, 6), (26, 26, 3, 3)))
    g[0, :4, 2, 2], g[0, 4:8, 0, 0] = bits.view(np.float64), np.inf
    w[5, 3], w[6, 4, 0, 0] = -np.inf, np.nan
    for columns in (26, 2):
        v = tf.tensor(w[:, :columns].copy())
        same(lambda g, w: INPUT(g, w, padding=1, size=(6, 6)), tf.tensor(g), v)


def test_float64_in_normal_mode(parts, gpu):
    """Roundings of links apart; chains are not cut."""
    x, w, step = FLOAT64[2]
    g, t = grads(x, w, step).double() / 3, random(*x).double() / 3
    parts(4)
    with tf.deterministic(False):
        near = WEIGHT(g.to(gpu), t.to(gpu), size=w[2:], **step).cpu()
        near = near - WEIGHT(g, t, size=w[2:], **step)
    assert near.abs().max() < 1e-12


def test_only_parts_refuses():
    with pytest.raises(ValueError, match="parts is 3"):
        only_parts(3)
