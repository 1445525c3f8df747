"""Convolutions and their gradients: canonical chains, PyTorch's values, roads, layouts, errors."""

import itertools
import sys

import numpy as np
import pytest
from backends.cpu.chain import FMA, same_bits
from backends.cpu.fused import (
    check_derivatives,
    check_instruction_sets,
    check_threads,
    digest,
    layouts,
    torch,
)

import tinyfin as tf
from tinyfin.ops.row import F

# x, kernel, out channels; stride, padding, dilation; groups
CASES = [
    ((2, 3, 9), (3,), 4, (1,), (1,), (1,), 1),
    ((1, 2, 30), (4,), 2, (3,), (2,), (2,), 2),
    ((2, 3, 8, 9), (3, 3), 4, (3, 2), (0, 0), (1, 1), 1),
    ((1, 4, 16, 16), (7, 7), 4, (3, 3), (2, 2), (1, 1), 2),
    ((1, 2, 11, 6), (2, 3), 4, (4, 1), (1, 0), (3, 2), 1),
    ((1, 1, 5, 1), (1, 1), 4, (2, 2), (0, 0), (1, 1), 1),
    ((1, 2, 25), (3,), 3, (11,), (2,), (4,), 1),
    ((1, 2, 13, 29), (2, 3), 4, (9, 10), (1, 2), (5, 4), 2),
    ((2, 3, 6, 7), (3, 3), 4, (50, 60), (0, 1), (2, 3), 1),
    ((2, 16, 7, 7), (3, 3), 16, (1, 1), (1, 1), (1, 1), 1),
    ((1, 5, 14, 33), (3, 3), 70, (1, 1), (1, 1), (1, 1), 1),
    ((2, 40, 7, 7), (3, 3), 40, (1, 1), (1, 1), (1, 1), 1),
    ((2, 12, 9, 9), (3, 3), 12, (2, 2), (1, 1), (1, 1), 12),
    ((1, 20, 6, 7), (3, 3), 40, (1, 1), (1, 1), (1, 1), 20),
    ((2, 40, 5, 6), (1, 1), 24, (1, 1), (0, 0), (1, 1), 1),
    ((2, 6, 9, 9), (1, 1), 6, (2, 2), (1, 1), (1, 1), 3),
    ((1, 3, 6, 6), (2, 2), 5, (2, 2), (0, 0), (2, 2), 1),
    ((1, 1, 4, 4), (3, 3), 1, (1, 1), (5, 5), (1, 1), 1),
    ((1, 2, 4, 5, 6), (2, 3, 2), 3, (1, 2, 1), (1, 1, 0), (1, 1, 2), 1),
    ((1, 4, 3, 3, 3), (3, 1, 2), 4, (2, 1, 3), (1, 0, 1), (1, 2, 1), 2),
]


def steps(case):
    """The attributes of the rows."""
    return case[3:]


def arrays(rng, case, dtype="float32"):
    """x, w and g of a case."""
    x, kernel, out, stride, padding, dilation, groups = case
    sizes = [
        (s + 2 * p - d * (k - 1) - 1) // t + 1
        for s, k, t, p, d in zip(x[2:], kernel, stride, padding, dilation)
    ]
    shapes = x, (out, x[1] // groups, *kernel), (x[0], out, *sizes)
    return [
        (rng.standard_normal(s) * np.exp2(rng.integers(-6, 7, s))).astype(dtype) for s in shapes
    ]


def padded(x, padding):
    """x among zeros."""
    return np.pad(x, ((0, 0), (0, 0), *[(p, p) for p in padding]))


def taps(kernel):
    """Places of a kernel in row-major order."""
    return itertools.product(*map(range, kernel))


def window(tap, out, stride, dilation):
    """What one tap reads of a padded plane."""
    return tuple(
        slice(r * d, r * d + (o - 1) * t + 1, t) for r, o, t, d in zip(tap, out, stride, dilation)
    )


def chain_forward(x, w, case):
    """The chain over (channel, row, column) of the kernel; padding takes part."""
    stride, padding, dilation, groups = steps(case)
    fma, n, o, cg = FMA[x.dtype], x.shape[0], w.shape[0], w.shape[1]
    big = padded(x, padding)
    out = [
        (s - d * (k - 1) - 1) // t + 1
        for s, k, t, d in zip(big.shape[2:], w.shape[2:], stride, dilation)
    ]
    y = np.zeros((n, o, *out), x.dtype)
    for q in range(o):
        for c, tap in itertools.product(range(cg), taps(w.shape[2:])):
            part = big[
                (slice(None), q // (o // groups) * cg + c, *window(tap, out, stride, dilation))
            ]
            y[:, q] = fma(np.full_like(part, w[(q, c, *tap)]), part, y[:, q])
    return y


def chain_input(g, w, size, case):
    """The chain over (channel of y, row, column) of the taps that reach an output."""
    stride, padding, dilation, groups = steps(case)
    fma, o, cg = FMA[g.dtype], w.shape[0], w.shape[1]
    x = np.zeros((g.shape[0], cg * groups, *size), g.dtype)
    for q, tap in itertools.product(range(o), taps(w.shape[2:])):
        into, of = [], []
        for r, s, n, t, p, d in zip(tap, size, g.shape[2:], stride, padding, dilation):
            places = [i for i in range(n) if 0 <= i * t - p + r * d < s]
            of.append(places)
            into.append([i * t - p + r * d for i in places])
        if all(of):
            part = g[:, q][(slice(None), *np.ix_(*of))]
            for c in range(cg):
                at = (slice(None), q // (o // groups) * cg + c)
                view = x[at]
                ix = (slice(None), *np.ix_(*into))
                view[ix] = fma(np.full_like(part, w[(q, c, *tap)]), part, view[ix])
    return x


def chain_weight(g, x, kernel, case):
    """The chain over (image, row, column) of y; padding takes part."""
    stride, padding, dilation, groups = steps(case)
    fma, o, cg = FMA[g.dtype], g.shape[1], x.shape[1] // groups
    big = padded(x, padding)
    w = np.zeros((o, cg, *kernel), g.dtype)
    for n, place in itertools.product(range(g.shape[0]), taps(g.shape[2:])):
        at = tuple(
            slice(i * t, i * t + d * (k - 1) + 1, d)
            for i, t, d, k in zip(place, stride, dilation, kernel)
        )
        for q in range(o):
            first = q // (o // groups) * cg
            part = big[(n, slice(first, first + cg), *at)]
            w[q] = fma(np.full_like(part, g[(n, q, *place)]), part, w[q])
    return w


@pytest.mark.parametrize("case", CASES)
def test_chains(case, rng):
    x, w, g = arrays(rng, case)
    s = steps(case)
    want = chain_forward(x, w, case)
    bias = rng.standard_normal(w.shape[0]).astype("float32")
    added = want + bias.reshape(-1, *[1] * (x.ndim - 2))
    for a, b in zip(layouts(x), layouts(w)):
        assert same_bits(F.convolution(a, b, None, *s), want)
        assert same_bits(F.convolution(a, b, tf.tensor(bias), *s), added)
    want = chain_input(g, w, x.shape[2:], case)
    for a, b in zip(layouts(g), layouts(w)):
        assert same_bits(F.conv_grad_input(a, b, *s, x.shape[2:]), want)
    want = chain_weight(g, x, w.shape[2:], case)
    for a, b in zip(layouts(g), layouts(x)):
        assert same_bits(F.conv_grad_weight(a, b, *s, w.shape[2:]), want)


@pytest.mark.parametrize("case", [CASES[3], CASES[4], CASES[9], CASES[15]])
def test_chains_in_float64(case, rng):
    x, w, g = arrays(rng, case, "float64")
    x, w, g = (np.float64(a) * 1.000000119 for a in (x[:1], w, g[:1]))
    s = steps(case)
    assert same_bits(F.convolution(tf.tensor(x), tf.tensor(w), None, *s), chain_forward(x, w, case))
    assert same_bits(
        F.conv_grad_input(tf.tensor(g), tf.tensor(w), *s, x.shape[2:]),
        chain_input(g, w, x.shape[2:], case),
    )
    assert same_bits(
        F.conv_grad_weight(tf.tensor(g), tf.tensor(x), *s, w.shape[2:]),
        chain_weight(g, x, w.shape[2:], case),
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", CASES[2:12:3])
def test_halves_accumulate_in_float32(case, dtype, rng):
    half = getattr(tf, dtype)
    x, w, g = (
        tf.tensor(rng.standard_normal(a.shape).astype("float32")).to(half)
        for a in arrays(rng, case)
    )
    s, b = steps(case), tf.tensor(rng.standard_normal(w.shape[0]).astype("float32")).to(half)
    wide = [t.float() for t in (x, w, g)]
    assert tf.equal(F.convolution(x, w, None, *s), F.convolution(*wide[:2], None, *s).to(half))
    assert tf.equal(F.convolution(x, w, b, *s), F.convolution(*wide[:2], b.float(), *s).to(half))
    size, kernel = tuple(x.shape[2:]), tuple(w.shape[2:])
    assert tf.equal(
        F.conv_grad_input(g, w, *s, size), F.conv_grad_input(wide[2], wide[1], *s, size).to(half)
    )
    assert tf.equal(
        F.conv_grad_weight(g, x, *s, kernel),
        F.conv_grad_weight(wide[2], wide[0], *s, kernel).to(half),
    )


def test_unused_rows_get_no_gradient(rng):
    """A stride that does not use the last rows leaves +0 there."""
    case = CASES[2]
    _, w, g = arrays(rng, case)
    y = F.conv_grad_input(tf.tensor(g), tf.tensor(w), *steps(case), (8, 9)).numpy()
    assert y[:, :, :6].any() and y[:, :, 6:].tobytes() == bytes(y[:, :, 6:].nbytes)


def test_neighbours_do_not_leak(rng):
    for case in CASES[2:14]:
        x, w, g = arrays(rng, case)
        s = steps(case)
        fields = []
        for a in (x, w, g):
            field = np.full([n + 2 for n in a.shape], np.nan, "float32")
            inner = tuple(slice(1, -1) for _ in a.shape)
            field[inner] = a
            fields.append(tf.tensor(field)[inner])
        fx, fw, fg = fields
        assert tf.equal(
            F.convolution(fx, fw, None, *s), F.convolution(tf.tensor(x), tf.tensor(w), None, *s)
        )
        for a, b, name, size in ((fg, fw, "conv_grad_input", x), (fg, fx, "conv_grad_weight", w)):
            row = getattr(F, name)
            y = row(a, b, *s, size.shape[2:])
            assert tf.equal(y, row(a.contiguous(), b.contiguous(), *s, size.shape[2:]))


def test_padding_takes_part_only_where_it_says():
    """An infinite weight meets zeros in y and gw; gx skips taps that reach no output."""
    w = tf.tensor([[[np.inf, 1.0, 1.0]]])
    y = F.convolution(tf.ones(1, 1, 3), w, None, 1, 1).flatten().tolist()
    assert np.isnan(y[0]) and y[1:] == [np.inf, np.inf]
    gx = F.conv_grad_input(tf.ones(1, 1, 3), w, 1, 1, 1, 1, (3,)).flatten().tolist()
    assert gx == [np.inf, np.inf, 2.0]


@pytest.mark.parametrize("case", [CASES[0], CASES[2], CASES[4], CASES[9], CASES[15], CASES[16]])
def test_derivatives(case, rng):
    x, w, _ = arrays(rng, case, "float64")
    b = rng.standard_normal(w.shape[0])
    s, n = steps(case), x.ndim - 2
    theirs = getattr(torch.nn.functional, f"conv{n}d")
    check_derivatives(
        lambda x, w, b: F.convolution(x, w, b, *s),
        lambda x, w, b: theirs(x, w, b, *s),
        x,
        w,
        b,
        tolerance=1e-8,
    )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_transposed(n, rng):
    x, w, b = (
        rng.standard_normal((2, 4, *[4] * n)),
        rng.standard_normal((4, 3, *[3] * n)),
        rng.standard_normal(6),
    )
    ours, theirs = (
        getattr(F, f"conv_transpose{n}d"),
        getattr(torch.nn.functional, f"conv_transpose{n}d"),
    )
    how = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2, "dilation": 2}
    check_derivatives(
        lambda x, w, b: ours(x, w, b, **how),
        lambda x, w, b: theirs(x, w, b, **how),
        x,
        w,
        b,
        orders=1,
    )


def test_empty():
    assert F.convolution(tf.zeros(0, 3, 5, 5), tf.zeros(2, 3, 3, 3), None).shape == (0, 2, 3, 3)
    assert F.convolution(tf.zeros(1, 3, 5, 5), tf.zeros(0, 3, 3, 3), None).shape == (1, 0, 3, 3)
    assert (
        not F.conv_grad_weight(tf.zeros(0, 2, 3, 3), tf.zeros(0, 3, 5, 5), 1, 0, 1, 1, (3, 3))
        .any()
        .item()
    )


HUGE = [1 << 20, 1 << 31, 1 << 40, 1 << 61, (1 << 63) - 1]


@pytest.mark.parametrize("stride", HUGE)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_stride_that_is_never_taken_may_be_any(n, stride):
    """It costs nothing, forward and backward, and transposed."""
    rng = np.random.default_rng(n)
    x, w = (
        tf.tensor(rng.standard_normal(s + (5,) * n).astype("float32"), requires_grad=True)
        for s in ((2, 3), (4, 3))
    )
    conv = getattr(tf.nn.functional, f"conv{n}d")
    wide = conv(x, w, stride=stride, padding=1)
    near = conv(x, w, stride=9, padding=1)
    assert wide.shape == (2, 4, *(1,) * n) and tf.equal(wide, near)
    for a, b in zip(tf.autograd.grad(wide.sum(), (x, w)), tf.autograd.grad(near.sum(), (x, w))):
        assert tf.equal(a, b)
    back = getattr(tf.nn.functional, f"conv_transpose{n}d")
    g = wide.detach()
    assert tf.equal(back(g, w, stride=stride), back(g, w, stride=9))


def test_a_dilation_that_is_never_taken_may_be_any():
    x, w = tf.randn(1, 2, 6, 6), tf.randn(3, 2, 1, 1)
    for dilation in HUGE:
        assert tf.equal(
            F.convolution(x, w, None, 2, 1, dilation, 1), F.convolution(x, w, None, 2, 1, 1, 1)
        )


def test_large_padding_with_a_stride_as_large():
    y = tf.nn.functional.conv2d(
        tf.ones(1, 1, 1, 3), tf.ones(1, 1, 1, 3), padding=(0, 1 << 40), stride=1 << 40
    )
    assert y.tolist() == [[[[0, 3, 0]]]]


@pytest.mark.parametrize("value", [(1 << 48) + 1, 1 << 58, 1 << 62, (1 << 63) - 1])
def test_steps_beyond_all_memory_are_refused(value):
    x, w, g = tf.ones(1, 1, 9, 9), tf.ones(1, 1, 3, 3), tf.ones(1, 1, 1, 1)
    for name in "padding", "dilation":
        at = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, name: value}
        for call in (
            lambda at: F.convolution(x, w, None, **at),
            lambda at: F.conv_grad_input(g, w, size=(9, 9), **at),
            lambda at: F.conv_grad_weight(g, x, size=(3, 3), **at),
        ):
            with pytest.raises(RuntimeError, match=name):
                call(at)
    with pytest.raises(RuntimeError, match="padded input would be"):
        F.convolution(x, w, None, 1 << 40, 1 << 40, 1, 1)
    with pytest.raises(RuntimeError, match="size"):
        F.conv_grad_input(g, w, 1, 0, 1, 1, (value, 9))
    with pytest.raises(RuntimeError, match="kernel size"):
        F.conv_grad_weight(g, x, 1, 0, 2, 1, (value, 3))


def test_errors_say_what_came():
    x, w = tf.zeros(1, 5, 8, 8), tf.zeros(4, 3, 3, 3)
    with pytest.raises(
        RuntimeError,
        match=r"convolution: weight is \(4, 3, 3, 3\) and groups is 2: input has 5 channels, "
        "expected 6",
    ):
        F.convolution(x, w, None, groups=2)
    with pytest.raises(
        RuntimeError, match="convolution: kernel of reach 9 in dimension 0 exceeds the padded input"
    ):
        F.convolution(tf.zeros(1, 3, 8, 8), w, None, dilation=4)
    with pytest.raises(RuntimeError, match=r"convolution: .*dtype"):
        F.convolution(tf.zeros(1, 3, 8, 8), w.double(), None)
    with pytest.raises(RuntimeError, match=r"convolution: bias is \(3,\), expected \(4,\)"):
        F.convolution(tf.zeros(1, 3, 8, 8), w, tf.zeros(3))
    with pytest.raises(RuntimeError, match="convolution: stride is 0"):
        F.convolution(tf.zeros(1, 3, 8, 8), w, None, stride=0)


def make():
    """Results on every road, large ones too."""
    rng = np.random.default_rng(9)
    found = []
    more = [
        ((3, 30, 28, 28), (3, 3), 70, (1, 1), (1, 1), (1, 1), 1),
        ((2, 64, 14, 14), (3, 3), 130, (2, 2), (1, 1), (1, 1), 1),
        ((2, 70, 20, 20), (3, 3), 70, (1, 1), (1, 1), (1, 1), 70),
        ((1, 3, 60, 60), (7, 7), 20, (2, 2), (3, 3), (1, 1), 1),
        ((4, 130, 7, 7), (3, 3), 130, (1, 1), (1, 1), (1, 1), 1),
        ((3, 64, 14, 14), (1, 1), 64, (1, 1), (0, 0), (1, 1), 1),
    ]
    for case in CASES + more:
        x, w, g = (tf.tensor(a) for a in arrays(rng, case))
        s = steps(case)
        found += [
            F.convolution(x, w, None, *s),
            F.conv_grad_input(g, w, *s, tuple(x.shape[2:])),
            F.conv_grad_weight(g, x, *s, tuple(w.shape[2:])),
        ]
    return found


def test_threads():
    check_threads(make)


def test_instruction_sets():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    sys.stdout.write(digest(make()))


@pytest.mark.parametrize("n", [511, 513, 600, 640, 641, 1300])
def test_weight_gradients_of_single_columns(n, rng):
    """Every position is a run of its own, as many as a block of the product is deep."""
    x, g = rng.standard_normal((n, 3, 5)), rng.standard_normal((n, 4, 1))
    w = tf.zeros(4, 3, 5, dtype=tf.float64, requires_grad=True)
    for kind, tolerance in ((tf.float64, 1e-11), (tf.float32, 1e-3)):
        v = w.detach().to(kind).requires_grad_()
        y = tf.nn.functional.conv1d(tf.tensor(x).to(kind), v)
        y.backward(tf.tensor(g).to(kind))
        want = np.einsum("no,nck->ock", g[:, :, 0], x)
        np.testing.assert_allclose(v.grad.numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "n, stride, padding", [(2, 2, 1), (3, 2, 1), (4, 3, 4), (1, 2, 0), (5, 1, 0)]
)
def test_single_taps_with_strides_and_padding(n, stride, padding, rng):
    """As many results as inputs, which are not those."""
    x, w = rng.standard_normal((2, 12, n)), rng.standard_normal((45, 12, 1))
    padded = np.pad(x, [(0, 0), (0, 0), (padding, padding)])[:, :, ::stride]
    y = tf.nn.functional.conv1d(tf.tensor(x), tf.tensor(w), stride=stride, padding=padding)
    np.testing.assert_allclose(y.numpy(), np.einsum("oc,ncl->nol", w[:, :, 0], padded), atol=1e-12)
