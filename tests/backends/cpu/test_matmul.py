"""Matrix products: the canonical chain on every road, layouts, batches, dtypes, errors."""

import sys

import numpy as np
import pytest
from backends.cpu.chain import few_results, product, same_bits
from backends.cpu.fused import (
    check_derivatives,
    check_instruction_sets,
    check_threads,
    digest,
    layouts,
)

import tinyfin as tf
from tinyfin.ops.row import F

RNG = np.random.default_rng(11)
SIZES = [
    (8, 8, 8),
    (1, 1, 1),
    (5, 3, 2),
    (16, 16, 16),
    (1, 37, 300),
    (300, 37, 1),
    (1, 600, 1),
    (7, 70, 9),
    (35, 588, 17),
    (3, 33, 65),
    (129, 20, 127),
    (64, 64, 64),
    (12, 9, 1500),
    (1, 5, 2100),
    (31, 1023, 33),
    (70, 5, 70),
    (257, 16, 1),
    (2, 400, 40),
    (15, 390, 33),
]


def numbers(rng, *shape, dtype="float32"):
    """Normal numbers of very different sizes, so that any other order gives other bits."""
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 9, shape))).astype(dtype)


@pytest.mark.parametrize("m,k,n", SIZES)
def test_chain(m, k, n, rng):
    a, b = numbers(rng, m, k), numbers(rng, k, n)
    want = product(a, b)
    layer, want = want, few_results(a, b) if m * n <= 4 and k >= 256 else want
    for x in layouts(a):
        assert same_bits(x @ tf.tensor(b), want)
    for y in layouts(b):
        assert same_bits(tf.tensor(a) @ y, want)
    bias = numbers(rng, n)
    w = np.ascontiguousarray(b.T)
    for y in layouts(w):
        assert same_bits(F.linear(tf.tensor(a), y), layer)
        assert same_bits(F.linear(tf.tensor(a), y, tf.tensor(bias)), layer + bias)


def test_chain_float64(rng):
    for m, k, n in ((5, 9, 4), (1, 30, 40), (17, 40, 9)):
        a, b = numbers(rng, m, k, dtype="float64"), numbers(rng, k, n, dtype="float64")
        assert same_bits(tf.tensor(a) @ tf.tensor(b), product(a, b))
        assert same_bits(F.linear(tf.tensor(a), tf.tensor(b.T.copy())), product(a, b))


def test_chain_of_tiny_results(rng):
    """Products that underflow: subnormal results and the signs of zeros."""
    a, b = numbers(rng, 20, 50) * np.float32(1e-22), numbers(rng, 50, 40) * np.float32(1e-22)
    assert same_bits(tf.tensor(a) @ tf.tensor(b), product(a, b))
    a, b = a * np.float32(1e-9), b * np.float32(1e-9)
    assert same_bits(tf.tensor(a) @ tf.tensor(b), product(a, b))
    a, b = np.round(numbers(rng, 20, 50)), np.round(numbers(rng, 50, 40))
    assert same_bits(tf.tensor(a) @ tf.tensor(b), product(a, b))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("m,k,n", [(8, 8, 8), (1, 50, 70), (30, 900, 40), (9, 20, 1)])
def test_halves_accumulate_in_float32(m, k, n, dtype, rng):
    half = getattr(tf, dtype)
    a, b, c = (
        tf.tensor(rng.standard_normal(s).astype("float32")).to(half) for s in ((m, k), (k, n), (n,))
    )
    want = product(a.float().numpy(), b.float().numpy())
    for x in (a, a.t().contiguous().t()):
        assert tf.equal(x @ b, tf.tensor(want).to(half))
    y = F.linear(a, b.t(), c)
    assert y.dtype is half and tf.equal(y, (tf.tensor(want) + c.float()).to(half))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "m,k,n", [(1, 700, 1500), (1, 97, 40), (3, 130, 33), (4, 66, 1100), (5, 40, 40), (12, 9, 800)]
)
def test_few_rows_of_halves(m, k, n, dtype, rng):
    half = getattr(tf, dtype)
    a, b, c = (tf.tensor(numbers(rng, *s)).to(half) for s in ((m, k), (k, n), (n,)))
    want = product(a.float().numpy(), b.float().numpy())
    out, moved = tf.tensor(want).to(half), (tf.tensor(want) + c.float()).to(half)
    wide = tf.zeros(n, k + 3).to(half)
    wide[:, 1 : k + 1] = b.t()  # columns begin anywhere in a cache line
    for y in (b, b.t().contiguous().t(), wide[:, 1 : k + 1].t()):
        assert tf.equal(a @ y, out) and tf.equal(F.linear(a, y.t(), c), moved)
        assert tf.equal((y.t() @ a.t()).t(), out)
    assert tf.equal(a.t().contiguous().t() @ b, out)


@pytest.mark.parametrize("scale", [1.0, 1e-19, 1e-22, 1e-38, 1e19])
def test_bfloat16_keeps_what_is_tiny_or_huge(scale, rng):
    """Instructions for bfloat16 flush subnormal numbers: results must not."""
    a, b = (
        tf.tensor(numbers(rng, *s) * np.float32(scale)).bfloat16() for s in ((30, 65), (65, 40))
    )
    want = tf.tensor(product(a.float().numpy(), b.float().numpy())).bfloat16()
    assert tf.equal(a @ b, want)
    assert tf.equal(a @ b.t().contiguous().t(), want)
    one = tf.eye(65).bfloat16()
    assert tf.equal(a @ one, a) and tf.equal(one @ b, b)
    a[3, 7], b[9, 2] = float("inf"), float("nan")
    y = (a @ b).float().numpy()
    assert np.isnan(y[:, 2]).all() and not np.isfinite(y[3]).any()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_wrap(dtype, rng):
    info = np.iinfo(dtype)
    for m, k, n in ((3, 4, 5), (1, 70, 33), (40, 1342, 14), (199, 273, 34), (20, 5, 1)):
        a, b = (rng.integers(info.min, info.max, s, dtype, endpoint=True) for s in ((m, k), (k, n)))
        with np.errstate(all="ignore"):
            want = a @ b
        for x, y in zip(layouts(a), layouts(b)):
            assert np.array_equal((x @ y).numpy(), want)


@pytest.mark.parametrize(
    "a,b",
    [
        ((3,), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((2, 3), (5, 3, 4)),
        ((6, 2, 3), (3, 4)),
        ((6, 2, 3), (3,)),
        ((3,), (6, 3, 4)),
        ((2, 1, 4, 3), (5, 3, 2)),
        ((1, 2, 3), (7, 3, 2)),
        ((2, 0, 3), (3, 4)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((0,), (0,)),
        ((4, 1, 1, 3), (1, 5, 3, 1)),
        ((40, 9, 8), (40, 8, 7)),
    ],
)
def test_shapes_and_batches(a, b, rng):
    x, y = numbers(rng, *a), numbers(rng, *b)
    want = np.matmul(x.astype("float64"), y.astype("float64"))
    got = tf.tensor(x) @ tf.tensor(y)
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.numpy(), want, 1e-4, 1e-3)
    if len(a) > 1 and len(b) > 1:
        assert same_bits(got, product(x, y))


def test_broadcast_and_negative_strides(rng):
    a, b = numbers(rng, 3, 1, 5, 6), numbers(rng, 4, 6, 7)
    want = product(a, b)
    x = tf.tensor(a).expand(3, 4, 5, 6)
    assert same_bits(x @ tf.tensor(b), want)
    flipped = tf.tensor(a[:, :, ::-1, ::-1].copy()).flip((2, 3))
    assert same_bits(flipped @ tf.tensor(b), want)
    row = tf.tensor(numbers(rng, 1, 6)).expand(9, 6)
    assert same_bits(row @ tf.tensor(b[0]), product(row.numpy(), b[0]))


def test_neighbours_do_not_leak(rng):
    """Odd sizes in a field of NaN: nothing beyond the views counts."""
    for m, k, n in ((35, 588, 17), (1, 4097, 1), (7, 1, 9), (5, 5, 5), (13, 70, 33)):
        big = np.full((m + 2, k + 3), np.nan, "float32")
        wide = np.full((k + 1, n + 2), np.nan, "float32")
        big[1 : m + 1, 1 : k + 1], wide[:k, :n] = numbers(rng, m, k), numbers(rng, k, n)
        x, y = tf.tensor(big)[1 : m + 1, 1 : k + 1], tf.tensor(wide)[:k, :n]
        a, b = big[1 : m + 1, 1 : k + 1], wide[:k, :n]
        want = (few_results if m * n == 1 else product)(a, b)
        assert same_bits(x @ y, want)
        assert same_bits(y.t() @ x.t(), want.T)
        assert same_bits(F.linear(x, y.t()), product(a, b))


def test_empty_chain_is_zero():
    for y in (
        tf.zeros(2, 0) @ tf.zeros(0, 3),
        tf.zeros(1, 0) @ tf.zeros(0, 300),
        tf.zeros(0) @ tf.zeros(0),
        F.linear(tf.zeros(2, 0), tf.zeros(3, 0)),
    ):
        assert y.numpy().tobytes() == bytes(4 * y.numel())
    assert (
        F.linear(tf.zeros(2, 0), tf.zeros(3, 0), tf.tensor([1.0, 2, 3])).tolist() == [[1, 2, 3]] * 2
    )


def test_infinity_and_nan():
    a = tf.tensor([[np.inf, 1.0], [np.nan, 0.0], [np.inf, -np.inf]])
    y = (a @ tf.tensor([[1.0], [1.0]])).flatten().tolist()
    assert y[0] == np.inf and np.isnan(y[1]) and np.isnan(y[2])


def test_errors_say_what_came():
    a, b = tf.zeros(2, 3), tf.zeros(4, 5)
    with pytest.raises(
        RuntimeError, match=r"matmul: input is \(2, 3\), other is \(4, 5\): inner sizes 3 and 4"
    ):
        a @ b
    with pytest.raises(RuntimeError, match=r"matmul: .* do not broadcast"):
        tf.zeros(2, 2, 3) @ tf.zeros(3, 3, 2)
    with pytest.raises(RuntimeError, match=r"matmul: .*dtype"):
        a @ tf.zeros(3, 2, dtype=tf.float64)
    with pytest.raises(RuntimeError, match="matmul: both arguments need at least one dimension"):
        tf.zeros(()) @ a
    with pytest.raises(RuntimeError, match=r"mm: other has 3 dimensions|mm: mat2 has 3 dimensions"):
        tf.mm(a, tf.zeros(1, 3, 2))
    with pytest.raises(RuntimeError, match=r"bmm: .*batch sizes"):
        tf.bmm(tf.zeros(2, 2, 3), tf.zeros(1, 3, 2))
    with pytest.raises(RuntimeError, match=r"linear: bias is \(2,\)"):
        F.linear(a, tf.zeros(4, 3), tf.zeros(2))


def test_addmm_rules():
    a, b = tf.ones(2, 3, dtype=tf.int64), tf.ones(3, 2, dtype=tf.int64)
    y = tf.addmm(tf.ones(2, dtype=tf.int64), a, b, beta=2, alpha=3)
    assert y.dtype is tf.int64 and y.tolist() == [[11, 11], [11, 11]]
    with pytest.raises(RuntimeError, match=r"addmm: alpha is 0\.5, expected a whole number"):
        tf.addmm(a[:, :2], a, b, alpha=0.5)
    with pytest.raises(RuntimeError, match="addmm: input has dtype"):
        tf.addmm(tf.ones(2), a, b)
    with pytest.raises(RuntimeError, match=r"addmm: .*does not expand"):
        tf.addmm(tf.ones(1, 2, 2, dtype=tf.int64), a, b)
    y = tf.addmm(tf.full((2,), float("nan")), tf.ones(2, 3), tf.ones(3, 2), beta=0)
    assert y.tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize(
    "a,b",
    [
        ((3,), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3,)),
        ((2, 3), (3, 4)),
        ((2, 2, 3), (3, 4)),
        ((2, 3), (2, 3, 2)),
        ((3,), (2, 3, 2)),
        ((2, 2, 3), (3,)),
        ((2, 1, 2, 3), (2, 3, 2)),
    ],
)
def test_derivatives(a, b, rng):
    check_derivatives(
        lambda x, y: x @ y, lambda x, y: x @ y, rng.standard_normal(a), rng.standard_normal(b)
    )


def test_derivatives_of_linear(rng):
    import torch

    for x in ((2, 3), (3,), (2, 2, 3)):
        arrays = [rng.standard_normal(s) for s in (x, (4, 3), (4,))]
        check_derivatives(F.linear, torch.nn.functional.linear, *arrays)
        check_derivatives(F.linear, torch.nn.functional.linear, *arrays[:2])


def make():
    """Results on every road, large ones too."""
    rng = np.random.default_rng(5)
    found = []
    for m, k, n in (*SIZES, (300, 400, 350), (1300, 70, 90), (40, 50, 2300), (20, 1500, 3000)):
        a, b = tf.tensor(numbers(rng, m, k)), tf.tensor(numbers(rng, k, n))
        found += [
            a @ b,
            a.t().contiguous().t() @ b,
            F.linear(a, b.t().contiguous()),
            a.to(tf.bfloat16) @ b.to(tf.bfloat16),
        ]
        if m * k * n < 1 << 20:
            found.append(a.double() @ b.double())
    found.append(tf.tensor(numbers(rng, 30, 20, 40)) @ tf.tensor(numbers(rng, 30, 40, 20)))
    with tf.deterministic():  # subnormal operands and results are flushed
        for scale in (1e-19, 1e-22, 1e-30):
            a = tf.tensor(numbers(rng, 40, 70) * np.float32(scale))
            b = tf.tensor(numbers(rng, 70, 50) * np.float32(scale))
            found += [a @ b, a[:1] @ b, (a @ b) @ b.t() * 1e30]
    return found


def test_threads():
    check_threads(make)


def test_instruction_sets():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    sys.stdout.write(digest(make()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m,k,n", [*SIZES, (5, 0, 3)])
def test_epilogues(m, k, n, dtype, rng):
    """Scaled, added to and cut off at zero in the pass that makes them: the bits of one after another."""
    a, b = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype)
    x, y, w = tf.tensor(a), tf.tensor(b), tf.tensor(np.ascontiguousarray(b.T))
    with tf.deterministic():
        plain = x @ y
        for base in (
            numbers(rng, m, n, dtype=dtype),
            numbers(rng, n, dtype=dtype),
            numbers(rng, m, 1, dtype=dtype),
        ):
            c = tf.tensor(base)
            assert tf.equal(tf.addmm(c, x, y), plain + c)
            assert tf.equal(tf.addmm(c, x, y, beta=0.3, alpha=-0.7), plain * -0.7 + c * 0.3)
        for bias in (None, tf.tensor(numbers(rng, n, dtype=dtype))):
            assert tf.equal(F.linear_relu(x, w, bias), F.linear(x, w, bias).relu())


def test_epilogues_of_infinities():
    x, w = tf.tensor([[float("nan"), 1.0], [-0.0, 0.0], [float("-inf"), 0.0]]), tf.eye(2)
    assert repr(F.linear_relu(x, w)) == repr(F.linear(x, w).relu())
    c = tf.full((3, 2), float("nan"))
    assert tf.addmm(c, tf.ones(3, 2), w).isnan().all()
    assert tf.addmm(c, tf.ones(3, 2), w, beta=0).eq(1).all()
