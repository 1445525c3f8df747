"""Convolutions with one channel per group: canonical chains on every road of rows, lines and bands."""

import numpy as np
import pytest
from backends.cpu.chain import same_bits
from backends.cpu.fused import check_instruction_sets, check_threads, digest, layouts
from backends.cpu.test_conv import arrays, chain_forward, chain_input, steps

import tinyfin as tf
from tinyfin.ops.row import F

# as in test_conv: x, kernel, out channels; stride, padding, dilation; groups
CASES = [
    ((2, 3, 9, 9), (3, 3), 3, (1, 1), (1, 1), (1, 1), 3),
    ((1, 2, 28, 28), (5, 5), 2, (1, 1), (2, 2), (1, 1), 2),
    ((1, 3, 17, 33), (7, 7), 6, (1, 1), (3, 3), (1, 1), 3),
    ((2, 2, 28, 30), (3, 3), 4, (2, 2), (1, 1), (1, 1), 2),
    ((1, 2, 21, 40), (5, 4), 2, (2, 1), (2, 0), (1, 1), 2),
    ((1, 2, 19, 23), (4, 3), 2, (3, 2), (1, 2), (1, 1), 2),
    ((1, 2, 23, 19), (2, 2), 2, (4, 5), (0, 1), (1, 1), 2),
    ((1, 2, 20, 21), (3, 3), 2, (1, 1), (2, 4), (2, 4), 2),
    ((1, 2, 20, 21), (3, 3), 2, (2, 3), (2, 2), (2, 2), 2),
    ((1, 2, 25, 20), (3, 3), 2, (2, 1), (1, 2), (1, 3), 2),
    ((1, 2, 150, 90), (3, 3), 2, (1, 1), (1, 1), (1, 1), 2),
    ((1, 1, 90, 150), (5, 3), 1, (2, 2), (2, 1), (1, 1), 1),
    ((1, 2, 12, 70), (3, 50), 2, (1, 1), (1, 20), (1, 1), 2),
    ((1, 2, 5, 6), (3, 3), 2, (1, 1), (4, 5), (1, 1), 2),
    ((3, 4, 40), (4,), 4, (1,), (3,), (1,), 4),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_chains(case, dtype, rng):
    x, w, g = arrays(rng, case, dtype)
    s = steps(case)
    want = chain_forward(x, w, case)
    bias = rng.standard_normal(w.shape[0]).astype(dtype)
    added = want + bias.reshape(-1, *[1] * (x.ndim - 2))
    for a, b in zip(layouts(x), layouts(w)):
        assert same_bits(F.convolution(a, b, None, *s), want)
        assert same_bits(F.convolution(a, b, tf.tensor(bias), *s), added)
    want = chain_input(g, w, x.shape[2:], case)
    for a, b in zip(layouts(g), layouts(w)):
        assert same_bits(F.conv_grad_input(a, b, *s, x.shape[2:]), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_halves_accumulate_in_float32(case, dtype, rng):
    half = getattr(tf, dtype)
    x, w, g = (
        tf.tensor(rng.standard_normal(a.shape).astype("float32")).to(half)
        for a in arrays(rng, case)
    )
    s, size = steps(case), tuple(x.shape[2:])
    assert tf.equal(
        F.convolution(x, w, None, *s), F.convolution(x.float(), w.float(), None, *s).to(half)
    )
    wide = F.conv_grad_input(g.float(), w.float(), *s, size)
    assert tf.equal(F.conv_grad_input(g, w, *s, size), wide.to(half))


@pytest.mark.parametrize("case", CASES)
def test_deterministic_mode(case, rng):
    x, w, g = (tf.tensor(a) for a in arrays(rng, case))
    s, size = steps(case), tuple(x.shape[2:])
    y, gx = F.convolution(x, w, None, *s), F.conv_grad_input(g, w, *s, size)
    with tf.deterministic():
        assert same_bits(F.convolution(x, w, None, *s), y.numpy())
        assert same_bits(F.conv_grad_input(g, w, *s, size), gx.numpy())


@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[7]])
def test_weights_that_are_not_finite_meet_no_zeros_beside_g(case, rng):
    _, w, g = arrays(rng, case)
    for value in (np.inf, np.nan):
        w[0, 0, 0, 0] = value
        y = F.conv_grad_input(tf.tensor(g), tf.tensor(w), *steps(case), case[0][2:])
        assert same_bits(y, chain_input(g, w, case[0][2:], case))


def test_neighbours_do_not_leak(rng):
    for case in CASES:
        x, w, g = arrays(rng, case)
        s, fields = steps(case), []
        for a in (x, g):
            field = np.full([n + 2 for n in a.shape], np.nan, "float32")
            inner = tuple(slice(1, -1) for _ in a.shape)
            field[inner] = a
            fields.append(tf.tensor(field)[inner])
        assert same_bits(
            F.convolution(fields[0], tf.tensor(w), None, *s), chain_forward(x, w, case)
        )
        gx = F.conv_grad_input(fields[1], tf.tensor(w), *s, x.shape[2:])
        assert same_bits(gx, chain_input(g, w, x.shape[2:], case))


def make():
    """Results on every road, of many planes too."""
    rng = np.random.default_rng(11)
    found = []
    more = [
        ((5, 50, 28, 28), (3, 3), 50, (2, 2), (1, 1), (1, 1), 50),
        ((4, 60, 14, 14), (7, 7), 60, (1, 1), (3, 3), (1, 1), 60),
    ]
    for case in CASES + more:
        x, w, g = (tf.tensor(a) for a in arrays(rng, case))
        s = steps(case)
        found += [F.convolution(x, w, None, *s), F.conv_grad_input(g, w, *s, tuple(x.shape[2:]))]
    return found


def test_threads():
    check_threads(make)


def test_instruction_sets():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    print(digest(make()), end="")
