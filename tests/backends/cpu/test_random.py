"""Random numbers: Philox's published vectors, every fill from its words, layouts, moments,
gradients."""

import math

import numpy as np
import pytest

import tinyfin as tf
from tinyfin.ops.table import OPS

MASK = 0xFFFFFFFF
SEED, DRAW, N = 12345678901234, 77, 5003


def philox(counter, key):
    """Philox 4x32-10 as published (Salmon et al., 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & MASK, p >> 32 ^ c[3] ^ k[1], p & MASK]
        k = [k[0] + 0x9E3779B9 & MASK, k[1] + 0xBB67AE85 & MASK]
    return c


def words(n):
    """The first n words of the draw that the tests use."""
    out = []
    for block in range((n + 3) // 4):
        out += philox((block, 0, DRAW, 0), (SEED & MASK, SEED >> 32))
    return np.array(out[:n], "uint64")


W = words(2 * N)


def fill(name, shape, dtype, *attrs):
    """A fresh tensor after one of the fills."""
    t = tf.zeros(shape, dtype=getattr(tf, dtype))
    assert OPS[name](t, *attrs, SEED, DRAW) is t
    return t


def signed(v):
    """64 bits as a signed number."""
    return v - (1 << 64) if v >> 63 else v


@pytest.mark.parametrize(
    "seed,draw,first,want",
    [
        (0, 0, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (
            MASK << 32 | MASK,
            MASK << 32 | MASK,
            MASK << 32 | MASK,
            [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        ),
        (
            0x299F31D0A4093822,
            0x0370734413198A2E,
            0x85A308D3243F6A88,
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_published_vectors(seed, draw, first, want):
    t = tf.zeros(4, dtype=tf.int32)
    OPS["random_bits_"](t, signed(seed), signed(draw), signed(first))
    assert [v & MASK for v in t.tolist()] == want
    counter = (first & MASK, first >> 32, draw & MASK, draw >> 32)
    assert philox(counter, (seed & MASK, seed >> 32)) == want


def test_words():
    narrow, wide = tf.zeros(N, dtype=tf.int32), tf.zeros(N, dtype=tf.int64)
    OPS["random_bits_"](narrow, SEED, DRAW)
    OPS["random_bits_"](wide, SEED, DRAW)
    assert np.array_equal(narrow.numpy().view("uint32"), W[:N])
    assert np.array_equal(wide.numpy().view("uint64"), W[::2] << np.uint64(32) | W[1::2])


def test_uniform():
    assert np.array_equal(
        fill("uniform_", N, "float32", 0.0, 1.0).numpy(), (W[:N] >> 8).astype("float32") * 2.0**-24
    )
    double = (W[::2] << np.uint64(32) | W[1::2]) >> np.uint64(11)
    assert np.array_equal(
        fill("uniform_", N, "float64", -2.0, 3.0).numpy(),
        double.astype("float64") * 2.0**-53 * 5 - 2,
    )
    assert np.array_equal(
        fill("uniform_", N, "float16", 0.0, 1.0).numpy(), (W[:N] >> 21).astype("float32") / 2048
    )
    assert np.array_equal(
        fill("uniform_", N, "bfloat16", 0.0, 1.0).float().numpy(),
        (W[:N] >> 24).astype("float32") / 256,
    )


@pytest.mark.parametrize(
    "low,high", [(0, 10), (-5, 7), (0, 2**40 + 3), (-(2**62), 2**62), (3, 4), (0, 2**32)]
)
def test_randint(low, high):
    pairs = [int(a) << 32 | int(b) for a, b in zip(W[::2], W[1::2])]
    assert fill("randint_", N, "int64", low, high).tolist() == [
        low + (v * (high - low) >> 64) for v in pairs
    ]


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64", "float16", "uint8"])
def test_bernoulli(dtype):
    for p in (0.0, 0.3, 1.0, 1e-3):
        assert np.array_equal(
            fill("bernoulli_", N, dtype, p).numpy(), (W[:N] < math.ceil(p * 2**32)).astype(dtype)
        )


@pytest.mark.parametrize("dtype,near", [("float32", 1e-6), ("float64", 1e-13)])
def test_normal(dtype, near):
    """Box-Muller: cosine and sine of one angle."""
    got = fill("normal_", 1000, dtype, 1.0, 2.0).numpy()
    if dtype == "float32":
        u, v = ((W[0:1000:2] >> 8) + 1) * 2.0**-24, (W[1:1000:2] >> 8) * 2.0**-24
    else:
        pair = (W[:2000:2] << np.uint64(32) | W[1:2000:2]) >> np.uint64(11)
        u, v = (pair[::2].astype("float64") + 1) * 2.0**-53, pair[1::2].astype("float64") * 2.0**-53
    r = np.sqrt(-2 * np.log(u))
    want = np.stack([r * np.cos(2 * np.pi * v), r * np.sin(2 * np.pi * v)], 1).reshape(-1) * 2 + 1
    assert np.abs(got - want).max() < near * 10


@pytest.mark.parametrize(
    "name,attrs",
    [
        ("uniform_", (0.0, 1.0)),
        ("normal_", (0.0, 1.0)),
        ("exponential_", (1.0,)),
        ("bernoulli_", (0.5,)),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_an_element_depends_on_its_number_alone(name, attrs, dtype):
    whole = fill(name, N, dtype, *attrs)
    for n in (1, 3, 1023, 1025, 2047):
        assert tf.equal(fill(name, n, dtype, *attrs), whole[:n])
    big = tf.full((6, 1700), 9, dtype=whole.dtype)
    view = big[1:4, 10:1677]
    OPS[name](view, *attrs, SEED, DRAW)
    assert tf.equal(view.reshape(-1), whole[:5001])
    assert (big[0] == 9).all() and (big[:, 1677:] == 9).all()
    turned = tf.zeros(1667, 3, dtype=whole.dtype).t().flip(0)
    OPS[name](turned, *attrs, SEED, DRAW)
    assert tf.equal(turned.reshape(-1), whole[:5001])
    before = tf.get_num_threads()
    tf.set_num_threads(1)
    large = fill(name, 100001, dtype, *attrs)
    tf.set_num_threads(3)
    same = tf.equal(fill(name, 100001, dtype, *attrs), large)
    tf.set_num_threads(before)
    assert same


def test_moments():
    n = 1 << 20
    for seed in range(3):
        for dtype in (tf.float32, tf.float64):
            t = tf.zeros(n, dtype=dtype)
            u = OPS["uniform_"](t, 0.0, 1.0, seed, 0).double().numpy()
            assert abs(u.mean() - 0.5) < 5 * math.sqrt(1 / 12 / n) and u.min() >= 0 and u.max() < 1
            z = OPS["normal_"](t, 0.0, 1.0, seed, 1).double().numpy()
            for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
                assert abs((z**power).mean() - moment) < 5 * math.sqrt(spread / n)
            assert abs((z[::2] * z[1::2]).mean()) < 5 / math.sqrt(n / 2)
            e = OPS["exponential_"](t, 2.0, seed, 2).double().numpy()
            assert abs(e.mean() - 0.5) < 5 * 0.5 / math.sqrt(n)
            assert e.min() > 0 and np.isfinite(e).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dropout(dtype):
    drop = OPS["dropout_apply"]
    x = tf.arange(1, N + 1).to(getattr(tf, dtype)).requires_grad_()
    keep = W[:N] >= math.ceil(0.3 * 2**32)
    y = drop(x, 0.3, SEED, DRAW)
    scale = 1 / (1 - 0.3)
    want = (
        x.detach().double() if dtype == "float64" else x.detach().float() * np.float32(scale).item()
    )
    want = (want * scale if dtype == "float64" else want).to(x.dtype)
    assert np.array_equal((y != 0).numpy(), keep) and tf.equal(
        y, tf.where(tf.tensor(keep), want, tf.zeros_like(want))
    )
    y.sum().backward()
    assert np.array_equal((x.grad != 0).numpy(), keep)
    strided = tf.stack([x.detach(), x.detach()], 1)[:, 0]
    assert tf.equal(drop(strided, 0.3, SEED, DRAW), y)
    assert not drop(tf.tensor([math.inf, math.nan]), 1.0, 0, 0).any() and tf.equal(
        drop(x, 0.0, 0, 0), x
    )


def test_errors_say_what_came():
    with pytest.raises(
        RuntimeError, match=r"uniform_: input has dtype tinyfin.int64, expected a floating"
    ):
        OPS["uniform_"](tf.arange(3), 0.0, 1.0, 0, 0)
    with pytest.raises(RuntimeError, match=r"randint_: low is 3, high is 3, expected low < high"):
        OPS["randint_"](tf.arange(3), 3, 3, 0, 0)
    with pytest.raises(RuntimeError, match=r"bernoulli_: p is 1.5, expected 0 to 1"):
        OPS["bernoulli_"](tf.ones(3), 1.5, 0, 0)
    with pytest.raises(RuntimeError, match=r"normal_: std is -1.0"):
        OPS["normal_"](tf.ones(3), 0.0, -1.0, 0, 0)
    with pytest.raises(RuntimeError, match=r"exponential_: lambd is 0.0"):
        OPS["exponential_"](tf.ones(3), 0.0, 0, 0)
    with pytest.raises(RuntimeError, match=r"random_bits_: input has dtype tinyfin.float32"):
        OPS["random_bits_"](tf.ones(3), 0, 0)
