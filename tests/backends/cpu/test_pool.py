"""Pooling: PyTorch's values and places, exact orders, NaN, layouts, derivatives, errors."""

import itertools
import sys

import numpy as np
import pytest
from backends.cpu.chain import same_bits
from backends.cpu.fused import (
    array,
    check_derivatives,
    check_instruction_sets,
    check_threads,
    digest,
    layouts,
    torch,
)

import tinyfin as tf
from tinyfin.ops.row import F

# x; kernel, stride, padding, dilation, ceil_mode
CASES = [
    ((2, 3, 9), (2,), (2,), (0,), (1,), False),
    ((1, 2, 10), (3,), (2,), (1,), (1,), True),
    ((1, 1, 17), (4,), (3,), (2,), (1,), True),
    ((1, 2, 12), (2,), (1,), (1,), (3,), False),
    ((2, 3, 8, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),
    ((1, 2, 9, 33), (3, 3), (1, 1), (1, 1), (1, 1), False),
    ((1, 2, 7, 10), (3, 2), (2, 3), (1, 0), (1, 1), True),
    ((1, 1, 9, 8), (2, 3), (1, 2), (0, 1), (3, 2), True),
    ((2, 2, 5, 6, 7), (2, 3, 2), (2, 1, 2), (1, 1, 0), (1, 1, 1), True),
    ((1, 1, 4, 4, 4), (1, 1, 1), (2, 2, 2), (0, 0, 0), (1, 1, 1), False),
]
ADAPTIVE = [
    ((2, 3, 7), (3,)),
    ((1, 2, 4), (6,)),
    ((2, 2, 9, 8), (3, 4)),
    ((1, 3, 7, 5), (4, 2)),
    ((3, 40, 9, 11), (1, 1)),
    ((1, 2, 5, 6, 7), (2, 3, 4)),
    ((2, 3, 1, 1), (2, 2)),
]
MAXES = [(f"max_pool{n}d", n) for n in (1, 2, 3)]


def theirs(name, n):
    """PyTorch's function over n dimensions."""
    return getattr(torch.nn.functional, f"{name}{n}d")


def windows(size, out, kernel, stride, padding, dilation):
    """(place in the result, places in the input) of each window, in row-major order."""
    for o in itertools.product(*map(range, out)):
        axes = [
            [i * t - p + r * d for r in range(k) if 0 <= i * t - p + r * d < s]
            for i, s, k, t, p, d in zip(o, size, kernel, stride, padding, dilation)
        ]
        yield o, list(itertools.product(*axes))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_max(case, dtype, rng):
    shape, *window, ceil = case
    n = len(shape) - 2
    x = rng.permutation(int(np.prod(shape))).reshape(shape).astype("float32") - 50
    x[rng.random(shape) < 0.1] = np.nan
    x[rng.random(shape) < 0.3] = -np.inf
    x = tf.tensor(x).to(getattr(tf, dtype)).float().numpy()
    want, where = theirs("max_pool", n)(
        torch.tensor(x).double(), *window, ceil, return_indices=True
    )
    for t in layouts(x):
        y, places = F.max_pool(t.to(getattr(tf, dtype)), *window, ceil, n)
        assert places.dtype is tf.int64
        np.testing.assert_array_equal(array(y), array(tf.tensor(want.numpy()).to(y.dtype)))
        np.testing.assert_array_equal(places.numpy(), where.numpy())
        x2 = t.to(y.dtype)
        np.testing.assert_array_equal(array(F.pool_gather(x2, places, n)), array(y))


def test_max_of_signed_zeros_and_infinities():
    x = tf.tensor([[[-0.0, 0.0, -0.0, -np.inf, -np.inf, 1e-45, 0.0, np.nan, np.inf, np.nan]]])
    y, places = F.max_pool(x, 2, 2, 0, 1, False, 1)
    assert np.signbit(y.numpy()[0, 0, 0]) == np.False_ and places.flatten().tolist()[:3] == [
        1,
        2,
        5,
    ]
    assert y.flatten().tolist()[1] == 0 and np.signbit(y.numpy()[0, 0, 1])
    assert np.isnan(y.numpy()[0, 0, 3:]).all() and places.flatten().tolist()[3:] == [7, 9]
    y, places = F.max_pool(tf.tensor([[[-np.inf, -np.inf]]]), 2, 2, 0, 1, False, 1)
    assert y.item() == -np.inf and places.item() == 0
    y, places = F.max_pool(
        tf.tensor([[[5.0]]]), 2, 1, 1, 2, False, 1
    )  # windows beside the only element
    assert y.item() == -np.inf and places.item() == 0


@pytest.mark.parametrize("case", [c for c in CASES if set(c[4]) == {1}])
@pytest.mark.parametrize("include,divisor", [(True, None), (False, None), (True, 3)])
def test_mean_order(case, include, divisor, rng):
    """Row-major sums that start from the first element, one division."""
    shape, kernel, stride, padding, dilation, ceil = case
    n = len(shape) - 2
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 9, shape))).astype("float32")
    y = theirs("avg_pool", n)(
        torch.tensor(x).double(),
        kernel,
        stride,
        padding,
        ceil,
        include,
        *([divisor] if n > 1 else []),
    )
    if n == 1 and divisor:
        return
    want = np.empty(y.shape, "float32")
    for o, places in windows(shape[2:], y.shape[2:], kernel, stride, padding, dilation):
        total = x[(..., *places[0])]
        for at in places[1:]:
            total = total + x[(..., *at)]
        full = np.prod(
            [
                min(i * t - p + k, s + p) - (i * t - p)
                for i, s, k, t, p in zip(o, shape[2:], kernel, stride, padding)
            ]
        )
        want[(..., *o)] = total / np.float32(divisor or (full if include else len(places)))
    for t in layouts(x):
        got = F.avg_pool(t, kernel, stride, padding, ceil, include, divisor, n)
        assert same_bits(got, want)
        np.testing.assert_allclose(array(got), y.numpy(), 1e-3, 1e-3)


@pytest.mark.parametrize("case", [c for c in CASES if set(c[4]) == {1}])
def test_mean_gradient_order(case, rng):
    """An element adds the shares of its windows in rising order."""
    shape, kernel, stride, padding, dilation, ceil = case
    n = len(shape) - 2
    y = F.avg_pool(tf.zeros(shape), kernel, stride, padding, ceil, False, None, n)
    g = rng.standard_normal(tuple(y.shape)).astype("float32")
    want = np.zeros(shape, "float32")
    for o, places in windows(shape[2:], y.shape[2:], kernel, stride, padding, dilation):
        for at in places:
            want[(..., *at)] += g[(..., *o)] / np.float32(len(places))
    for t in layouts(g):
        assert same_bits(
            F.avg_pool_grad(t, kernel, stride, padding, ceil, False, None, n, shape[2:]), want
        )


@pytest.mark.parametrize("shape,size", ADAPTIVE)
def test_adaptive(shape, size, rng):
    n = len(size)
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 9, shape))).astype("float32")
    want = np.empty((*shape[:2], *size), "float32")
    for o in itertools.product(*map(range, size)):
        box = [range(i * s // t, -(-(i + 1) * s // t)) for i, s, t in zip(o, shape[2:], size)]
        places = list(itertools.product(*box))
        total = x[(..., *places[0])]
        for at in places[1:]:
            total = total + x[(..., *at)]
        want[(..., *o)] = total / np.float32(len(places))
    top, where = theirs("adaptive_max_pool", n)(torch.tensor(x), size, return_indices=True)
    for t in layouts(x):
        assert same_bits(F.adaptive_avg_pool(t, size, n), want)
        y, places = F.adaptive_max_pool(t, size, n)
        assert same_bits(y, top.numpy()) and same_bits(places, where.numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_summed_in_float32(dtype, rng):
    half = getattr(tf, dtype)
    x = tf.tensor(rng.standard_normal((2, 20, 9, 8)).astype("float32")).to(half)
    assert tf.equal(
        F.avg_pool(x, 3, 2, 1, True, True, None, 2),
        F.avg_pool(x.float(), 3, 2, 1, True, True, None, 2).to(half),
    )
    assert tf.equal(
        F.adaptive_avg_pool(x, (1, 1), 2), F.adaptive_avg_pool(x.float(), (1, 1), 2).to(half)
    )
    g = F.avg_pool(x, 3, 2, 1, False, True, None, 2)
    args = (3, 2, 1, False, True, None, 2, (9, 8))
    assert tf.equal(F.avg_pool_grad(g, *args), F.avg_pool_grad(g.float(), *args).to(half))


def test_scatter_adds_in_rising_order(rng):
    g = (rng.standard_normal((2, 3, 4, 50)) * 1e3).astype("float32")
    places = rng.integers(0, 6, g.shape)
    want = np.zeros((6, 6), "float32")
    for plane, (a, b) in enumerate(zip(g.reshape(6, -1), places.reshape(6, -1))):
        for value, at in zip(a, b):
            want[plane, at] += value
    for t, i in zip(layouts(g), layouts(places)):
        assert same_bits(F.pool_scatter(t, i, (2, 3), 2), want.reshape(2, 3, 2, 3))


@pytest.mark.parametrize("case", [CASES[1], CASES[4], CASES[6], CASES[8]])
def test_derivatives(case, rng):
    shape, *window, ceil = case
    n = len(shape) - 2
    x = rng.permutation(int(np.prod(shape))).reshape(shape) / 7
    check_derivatives(
        lambda x: F.max_pool(x * x, *window, ceil, n)[0],
        lambda x: theirs("max_pool", n)(x * x, *window, ceil),
        x,
    )
    kernel, stride, padding, _ = window
    check_derivatives(
        lambda x: F.avg_pool(x * x, kernel, stride, padding, ceil, True, None, n),
        lambda x: theirs("avg_pool", n)(x * x, kernel, stride, padding, ceil),
        x,
    )


@pytest.mark.parametrize("shape,size", ADAPTIVE[:4])
def test_adaptive_derivatives(shape, size, rng):
    n = len(size)
    x = rng.permutation(int(np.prod(shape))).reshape(shape) / 7
    check_derivatives(
        lambda x: F.adaptive_avg_pool(x * x, size, n),
        lambda x: theirs("adaptive_avg_pool", n)(x * x, size),
        x,
    )
    check_derivatives(
        lambda x: F.adaptive_max_pool(x * x, size, n)[0],
        lambda x: theirs("adaptive_max_pool", n)(x * x, size),
        x,
    )


def test_neighbours_do_not_leak(rng):
    field = np.full((3, 4, 11, 12), np.nan, "float32")
    field[1:, 1:, 1:-1, 1:-1] = x = rng.standard_normal((2, 3, 9, 10)).astype("float32")
    t = tf.tensor(field)[1:, 1:, 1:-1, 1:-1]
    for y, want in zip(
        F.max_pool(t, 3, 2, 1, 1, True, 2), F.max_pool(tf.tensor(x), 3, 2, 1, 1, True, 2)
    ):
        assert tf.equal(y, want)
    assert not tf.isnan(F.avg_pool(t, 3, 2, 1, True, True, None, 2)).any().item()
    assert not tf.isnan(F.adaptive_avg_pool(t, (4, 3), 2)).any().item()
    assert not tf.isnan(F.adaptive_avg_pool(t, (1, 1), 2)).any().item()


def test_ceil_mode_may_exceed_a_short_input():
    x = tf.tensor([[[1.0, 3.0, 2.0]]])
    assert F.max_pool(x, 4, 2, 0, 1, True, 1)[0].tolist() == [[[3]]]
    assert F.avg_pool(x, 4, 2, 0, True, True, None, 1).tolist() == [[[2]]]


@pytest.mark.parametrize("stride", [1 << 31, 1 << 62, (1 << 63) - 1])
@pytest.mark.parametrize("ceil", [False, True])
def test_a_stride_that_is_never_taken_may_be_any(stride, ceil):
    x = tf.randn(1, 2, 5, 5)
    for pool in (
        lambda stride: F.max_pool(x, 5, stride, 2, 1, ceil, 2)[0],
        lambda stride: F.avg_pool(x, 5, stride, 2, ceil, True, None, 2),
        lambda stride: F.avg_pool_grad(x[..., :1, :1], 5, stride, 2, ceil, True, None, 2, (5, 5)),
    ):
        assert tf.equal(pool(stride), pool(7))


def test_windows_may_reach_far_beyond_the_input_in_ceil_mode():
    x = tf.randn(1, 2, 4)
    for kernel in (1 << 20, 1 << 47):
        assert tf.equal(F.max_pool(x, kernel, 1 << 62, 0, 1, True, 1)[0], x.amax(2, True))
        y = F.avg_pool(x, kernel, 1 << 62, 0, True, True, None, 1)
        assert tf.equal(y, F.avg_pool(x, 4, 4, 0, True, True, None, 1))


@pytest.mark.parametrize("value", [(1 << 48) + 1, 1 << 60, 1 << 62, (1 << 63) - 1])
def test_steps_beyond_all_memory_are_refused(value):
    x = tf.ones(1, 1, 9)
    for kernel, padding, dilation in ((3, value, 1), (3, 0, value), (value, value // 2, 1)):
        with pytest.raises(RuntimeError, match="max_pool: .* at most"):
            F.max_pool(x, kernel, 1, padding, dilation, True, 1)
    for kernel, padding in ((3, value), (value, value // 2)):
        with pytest.raises(RuntimeError, match="avg_pool: .* at most"):
            F.avg_pool(x, kernel, 1, padding, True, True, None, 1)
        with pytest.raises(RuntimeError, match="avg_pool_grad: .* at most"):
            F.avg_pool_grad(x, kernel, 1, padding, True, True, None, 1, 9)
    with pytest.raises(RuntimeError, match="avg_pool_grad: size"):
        F.avg_pool_grad(x, 3, 1, 0, True, True, None, 1, value)


def test_errors_say_what_came():
    x = tf.zeros(1, 1, 5)
    with pytest.raises(
        RuntimeError, match="max_pool: padding is 2, expected at most half of the kernel size 3"
    ):
        F.max_pool(x, 3, 1, 2, 1, False, 1)
    with pytest.raises(
        RuntimeError, match="max_pool: window of reach 7 exceeds the padded input of size 5"
    ):
        F.max_pool(x, 4, 1, 0, 2, False, 1)
    with pytest.raises(RuntimeError, match="avg_pool: divisor is 0"):
        F.avg_pool(x, 2, 2, 0, False, True, 0, 1)
    with pytest.raises((IndexError, RuntimeError), match=r"pool_gather: .*7"):
        F.pool_gather(x, tf.tensor([[[7]]]), 1)
    with pytest.raises((IndexError, RuntimeError), match=r"pool_scatter: .*-1"):
        F.pool_scatter(tf.ones(1, 1, 1), tf.tensor([[[-1]]]), 4, 1)


def make():
    """Results of every family."""
    rng = np.random.default_rng(3)
    found = []
    for shape, *window, ceil in [*CASES, ((4, 40, 28, 30), (3, 3), (2, 2), (1, 1), (1, 1), False)]:
        n = len(shape) - 2
        x = tf.tensor(rng.standard_normal(shape).astype("float32"))
        y, places = F.max_pool(x, *window, ceil, n)
        found += (
            [y, places, F.pool_scatter(y * y, places, shape[2:], n)]
            if np.isfinite(array(y)).all()
            else [y]
        )
        if set(window[3]) == {1}:
            m = F.avg_pool(x, *window[:3], ceil, True, None, n)
            found += [m, F.avg_pool_grad(m, *window[:3], ceil, True, None, n, shape[2:])]
    for shape, size in [*ADAPTIVE, ((5, 70, 20, 20), (1, 1)), ((5, 70, 20, 20), (3, 7))]:
        x, n = tf.tensor(rng.standard_normal(shape).astype("float32")), len(size)
        y = F.adaptive_avg_pool(x, size, n)
        found += [y, F.adaptive_avg_pool_grad(y, shape[2:], n), *F.adaptive_max_pool(x, size, n)]
    return found


def test_threads():
    check_threads(make)


def test_instruction_sets():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    sys.stdout.write(digest(make()))
