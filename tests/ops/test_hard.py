"""Inputs on which libraries of this kind have gone wrong: large, empty, narrow, odd, overlapping."""

import math

import numpy as np
import pytest

import tinyfin as tf

F = tf.nn.functional
INF, NAN = math.inf, math.nan


def close(got, want, rtol=1e-5, atol=1e-6):
    """Equal within a tolerance, NaN with NaN."""
    got = got.detach().to(tf.float64).numpy() if isinstance(got, tf.Tensor) else got
    np.testing.assert_allclose(
        np.asarray(got, "float64"), np.asarray(want, "float64"), rtol=rtol, atol=atol
    )


# ---- cancellation


@pytest.mark.parametrize("v", [0.0, 3e4, 5e7, -2e8, 1e21, -1e33, 3e38])
@pytest.mark.parametrize("n", [2, 5, 70])
def test_equal_logits_are_equally_likely(v, n):
    x = tf.full((1, n), v)
    close(F.log_softmax(x, dim=1), np.full((1, n), -math.log(n)))
    close(tf.softmax(x, 1), np.full((1, n), 1 / n))
    close(F.cross_entropy(x, tf.tensor([n - 1])), math.log(n))
    close(
        tf.logsumexp(x, 1) - v,
        [math.log(n)] if abs(v) < 1e6 else [0],
        atol=max(1e-5, abs(v) * 1e-7),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wide_logits(dtype):
    row = np.array([[-640.0, 1210.5, -2000.25, 1209.5, -1000.0]], dtype)
    want = row - 1210.5 - math.log(1 + math.exp(-1))
    close(F.log_softmax(tf.tensor(row), 1), want)
    close(F.log_softmax(tf.tensor(row.T.copy()), 0), want.T)
    close(F.log_softmax(tf.tensor(row.T.copy()).t(), 1), want)
    close(F.nll_loss(F.log_softmax(tf.tensor(row), 1), tf.tensor([0])), -want[0, 0])


NORMS = [
    (0, 1e-3, 1e-4),
    (100, 1e-3, 5e-3),
    (1000, 1e-3, 5e-2),
    (2000, 1.0, 1e-3),
    (40000, 1.0, 1e-2),
    (-1e5, 8.0, 2e-2),
]


@pytest.mark.parametrize(("mean", "step", "tolerance"), NORMS)
@pytest.mark.parametrize("n", [16, 100, 1000])
def test_norms_of_a_large_mean(mean, step, tolerance, n):
    """The mean is taken off before squaring."""
    x = (mean + np.arange(n) % 16 * step).astype("float32")
    d = x.astype("float64") - x.astype("float64").mean()
    want = d / np.sqrt((d**2).mean() + 1e-5)
    close(F.layer_norm(tf.tensor(x[None]), (n,)), want[None], tolerance, tolerance)
    close(F.group_norm(tf.tensor(x[None, :, None]), 1), want[None, :, None], tolerance, tolerance)
    close(
        F.batch_norm(tf.tensor(x[:, None]), None, None, training=True),
        want[:, None],
        tolerance,
        tolerance,
    )
    close(F.instance_norm(tf.tensor(x[None, None])), want[None, None], tolerance, tolerance)
    close(tf.tensor(x).var(), (d**2).sum() / (n - 1), max(tolerance, 1e-3), 1e-6)
    close(tf.tensor(x).std(correction=0), np.sqrt((d**2).mean()), max(tolerance, 1e-3), 1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0, 1234.0, -3e7, 1e-20])
def test_norms_of_constant_rows(value):
    x = tf.full((2, 256), value, requires_grad=True)
    y = F.layer_norm(x, (256,))
    close(y, np.zeros((2, 256)), 0, 0.05)
    y.sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_long_sums_stay_exact():
    """Blocks are added pairwise: a million equal numbers, and small ones after a large one."""
    close(tf.full((1_000_000,), 0.1).sum(), 100000.0, 1e-6)
    close(tf.full((1000, 1000), 0.1).sum(0), np.full(1000, 100.0), 1e-6)
    close(tf.full((3_000_000,), 1.0).mean(), 1.0, 1e-7)
    x = tf.ones(1 << 20)
    x[0] = 1e8
    close(x.sum(), 1e8 + (1 << 20) - 1, 1e-6)


# ---- integers


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32"])
@pytest.mark.parametrize("n", [1, 300, 4321])
def test_small_integers_are_summed_as_int64(dtype, n):
    high = {"bool": 1, "uint8": 255, "int8": 127}.get(dtype, 30000)
    x = tf.full((2, n), high, dtype=getattr(tf, dtype))
    for y, want in (
        (x.sum(), 2 * n * high),
        (x.sum(1), [n * high] * 2),
        (x.cumsum(1)[:, -1], [n * high] * 2),
    ):
        assert y.dtype is tf.int64 and y.tolist() == want
    assert (x > 0).sum().item() == 2 * n and x.count_nonzero().item() == 2 * n
    with pytest.raises(RuntimeError, match="^mean: "):
        x.mean()
    assert x.prod(0)[0].item() == high**2


def test_integers_wrap_in_their_own_type():
    for dtype, a, b, total, product in (
        ("uint8", 250, 10, 4, 196),
        ("int8", 127, 2, -127, -2),
        ("int32", 2**31 - 1, 1, -(2**31), 2**31 - 1),
    ):
        x, y = (tf.tensor([v], dtype=getattr(tf, dtype)) for v in (a, b))
        assert (x + y).tolist() == [total] and (x * y).tolist() == [product]
    low = tf.tensor([-(1 << 63)])
    assert (-low).tolist() == [-(1 << 63)] and abs(low).tolist() == [-(1 << 63)]
    assert (low // -1).tolist() == [-(1 << 63)] and (low % -1).tolist() == [0]


@pytest.mark.parametrize("a", [-7, 7, 0, -6, 1])
@pytest.mark.parametrize("b", [-3, 3, 2, -2, 7])
def test_integer_division_is_pythons(a, b):
    x, y = tf.tensor([a]), tf.tensor([b])
    assert (
        (x // y).item() == a // b
        and (x % y).item() == a % b
        and math.isclose((x / y).item(), a / b, rel_tol=1e-6)
    )
    assert tf.fmod(x, y).item() == math.fmod(a, b)
    assert tf.div(x, y, rounding_mode="trunc").item() == int(a / b)
    f, g = x.double(), y.double()
    assert (f // g).item() == a // b and (f % g).item() == a % b


# ---- empty tensors


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (2, 0, 3)])
def test_reductions_of_nothing(shape):
    """Identities where there are any, empty results along other axes, errors where neither."""
    e, empty = tf.zeros(*shape), np.zeros(shape)
    assert e.sum().item() == 0 and e.prod().item() == 1 and math.isnan(e.mean().item())
    assert bool((e > 0).all()) and not bool((e > 0).any())
    assert math.isnan(e.var().item()) and e.logsumexp(tuple(range(e.ndim))).item() == -INF
    for name in "max", "min", "argmax", "argmin", "amax":
        with pytest.raises((RuntimeError, IndexError), match=f"^a?{name.removeprefix('a')}|^arg"):
            getattr(e, name)()
    for d in range(e.ndim):
        close(e.sum(d), empty.sum(d))
        close(e.prod(d), empty.prod(d))
        rest = tuple(s for k, s in enumerate(shape) if k != d)
        if shape[d]:
            assert (
                tuple(e.max(d)[0].shape)
                == tuple(e.argmax(d).shape)
                == tuple(e.amax(d).shape)
                == rest
            )
            assert tuple(e.sort(d)[0].shape) == tuple(e.cumsum(d).shape) == shape
        else:
            for call in (
                lambda d=d: e.amax(d),
                lambda d=d: e.argmax(d),
                lambda d=d: e.max(d),
                lambda d=d: e.min(d),
            ):
                with pytest.raises(IndexError):
                    call()


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ((3, 0), (0, 2), (3, 2)),
        ((0, 3), (3, 2), (0, 2)),
        ((2, 3), (3, 0), (2, 0)),
        ((0,), (0,), ()),
        ((2, 3, 0), (2, 0, 4), (2, 3, 4)),
        ((0, 2, 3), (3, 2), (0, 2, 2)),
        ((3, 0), (0,), (3,)),
        ((0,), (0, 4), (4,)),
    ],
)
def test_products_over_nothing_are_zero(a, b, want):
    x, y = tf.ones(*a, requires_grad=True), tf.ones(*b, requires_grad=True)
    z = x @ y
    close(z, np.zeros(want))
    z.sum().backward()
    close(x.grad, np.zeros(a) if 0 in a else np.full(a, b[-1]))
    assert tuple(y.grad.shape) == b


def test_other_things_of_nothing():
    e = tf.zeros(0, 3)
    assert tf.cat([e, tf.ones(2, 3)]).shape == (2, 3) and tf.stack([e, e]).shape == (2, 0, 3)
    assert F.linear(e, tf.ones(4, 3)).shape == (0, 4) and F.relu(e).shape == (0, 3)
    assert F.conv2d(tf.zeros(0, 2, 5, 5), tf.ones(3, 2, 3, 3)).shape == (0, 3, 3, 3)
    assert F.layer_norm(e, (3,)).shape == (0, 3) and tf.softmax(e, 1).shape == (0, 3)
    assert (
        e[:, 1].shape == (0,)
        and e.t().contiguous().shape == (3, 0)
        and e.repeat(2, 2).shape == (0, 6)
    )
    assert e.nonzero().shape == (0, 2) and tf.gather(
        e, 0, tf.zeros(0, 3, dtype=tf.int64)
    ).shape == (0, 3)
    assert math.isnan(F.mse_loss(e, e).item()) and F.mse_loss(e, e, reduction="sum").item() == 0
    assert F.embedding(tf.zeros(0, dtype=tf.int64), tf.ones(3, 2)).shape == (0, 2)


# ---- sizes beyond limits, and odd ones


@pytest.mark.parametrize("rows", [65_535, 65_537, 131_073])
def test_more_rows_than_a_grid_has(rows):
    rng = np.random.default_rng(12)
    a = rng.standard_normal((rows, 2, 3)).astype("float32")
    close(
        tf.bmm(tf.tensor(a), tf.tensor(a.swapaxes(1, 2).copy())), a @ a.swapaxes(1, 2), 1e-4, 1e-5
    )
    r = a.reshape(-1, 3)
    t = tf.tensor(r)
    close(t.sum(1), r.sum(1), 1e-4, 1e-5)
    e = np.exp(r.astype("float64"))
    close(tf.softmax(t, 1), e / e.sum(1, keepdims=True), 1e-4, 1e-6)
    close(tf.tensor(r.T.copy()).amax(0), r.max(1))
    close(t.t().contiguous(), r.T)
    close(
        F.layer_norm(t, (3,))[-1],
        ((r - r.mean(1, keepdims=True)) / np.sqrt(r.var(1, keepdims=True) + 1e-5))[-1],
        1e-3,
        1e-4,
    )
    assert t.argmax(1).tolist()[-3:] == r.argmax(1).tolist()[-3:]


SIZES = [
    (35, 588, 17),
    (535, 33, 70),
    (1, 1, 1),
    (3, 33, 65),
    (129, 257, 127),
    (1, 4097, 1),
    (64, 64, 64),
    (7, 1, 9),
    (31, 1023, 33),
    (257, 16, 1),
    (2, 2, 2),
    (5, 7, 3),
    (16, 17, 15),
    (97, 3, 97),
]


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_products_of_odd_sizes_beside_nan(m, k, n):
    """Neighbours in memory must not leak in, in any of the four layouts."""
    rng = np.random.default_rng(m * k + n)
    big = np.full((m + 1, k + 3), np.nan, "float32")
    big[:m, :k] = rng.standard_normal((m, k))
    wide = np.full((k + 2, n + 1), np.nan, "float32")
    wide[:k, :n] = rng.standard_normal((k, n))
    a, b = tf.tensor(big)[:m, :k], tf.tensor(wide)[:k, :n]
    want = big[:m, :k].astype("float64") @ wide[:k, :n]
    at, bt = tf.tensor(big[:m, :k].T.copy()).t(), tf.tensor(wide[:k, :n].T.copy()).t()
    for x in a, at:
        for y in b, bt:
            close(x @ y, want, 1e-3, 1e-3)
            close(y.t() @ x.t(), want.T, 1e-3, 1e-3)
            close(F.linear(x, y.t()), want, 1e-3, 1e-3)
    close(a @ b[:, 0], want[:, 0], 1e-3, 1e-3)
    close(a[0] @ b, want[0], 1e-3, 1e-3)
    close(tf.addmm(tf.ones(n), a, b, beta=2, alpha=-1), 2 - want, 1e-3, 1e-3)


POOLS = [
    (5, 2, 2, 1),
    (6, 1, 2, 0),
    (7, 1, 2, 0),
    (8, 3, 4, 0),
    (10, 3, 2, 1),
    (5, 3, 3, 1),
    (4, 2, 3, 0),
    (1, 1, 1, 0),
    (9, 4, 3, 2),
    (2, 2, 5, 1),
    (11, 5, 2, 2),
    (3, 2, 1, 1),
]


@pytest.mark.parametrize(("n", "k", "s", "p"), POOLS)
@pytest.mark.parametrize("ceil", [False, True])
def test_pool_windows(n, k, s, p, ceil):
    """In ceil mode the last window starts inside the input or its left padding: no column of -inf."""
    x = np.random.default_rng(n + k).standard_normal((1, 2, n)).astype("float32")
    o = (-(-(n + 2 * p - k) // s) if ceil else (n + 2 * p - k) // s) + 1
    o -= bool(ceil and (o - 1) * s >= n + p)
    parts = [x[..., max(i * s - p, 0) : i * s - p + k] for i in range(o)]
    y, j = F.max_pool1d(tf.tensor(x), k, s, p, ceil_mode=ceil, return_indices=True)
    want = np.stack([w.max(-1) for w in parts], -1)
    close(y, want)
    close(np.take_along_axis(x, j.numpy(), -1), want)
    deep = np.repeat(x[:, :, None], 3, 2)
    close(
        F.max_pool2d(tf.tensor(deep), (1, k), (1, s), (0, p), ceil_mode=ceil),
        np.repeat(want[:, :, None], 3, 2),
    )
    inside = np.stack([w.mean(-1) for w in parts], -1)
    close(F.avg_pool1d(tf.tensor(x), k, s, p, ceil_mode=ceil, count_include_pad=False), inside)


# ---- memory: overlap and strided writes


WRITES = {
    "forward": (slice(1, None), slice(None, -1)),
    "backward": (slice(None, -1), slice(1, None)),
    "reversed": (slice(None), slice(None, None, -1)),
    "two apart": (slice(2, None), slice(None, -2)),
}


@pytest.mark.parametrize("shape", [(10,), (5000, 100), (3, 4, 5), (2,)])
@pytest.mark.parametrize("where", WRITES)
def test_overlapping_slices(shape, where):
    """As if the source had been copied first, by assignment, arithmetic and copy_."""
    to, source = WRITES[where]
    a = np.arange(1.0, 1 + np.prod(shape)).reshape(shape).astype("float32")
    for act, expect in (
        (lambda t: t.__setitem__(to, t[source]), lambda v: v[source]),
        (lambda t: t[to].copy_(t[source]), lambda v: v[source]),
        (lambda t: t[to].div_(t[source]), lambda v: v[to] / v[source]),
        (lambda t: t[to].add_(t[source]), lambda v: v[to] + v[source]),
    ):
        want = a.copy()
        want[to] = expect(a)
        t = tf.tensor(a)
        act(t)
        close(t, want)


@pytest.mark.parametrize(
    "dtype", ["int16", "uint8", "int64", "float32", "float64", "bool", "float16"]
)
def test_writes_into_columns(dtype):
    kind = getattr(tf, dtype)
    z = tf.zeros(10, 2, dtype=kind)
    want = np.zeros((10, 2))
    want[:, 0] = 1
    if dtype == "bool":
        z[:, 0] ^= True
    elif "float" in dtype:
        z[:, 0] += 1
    else:
        z[:, 0] ^= 1
    close(z, want)
    z[:, 1].fill_(1)
    close(z, np.ones((10, 2)))
    base = tf.zeros(4, 6, dtype=kind)
    base[1:3, ::2].fill_(1)
    base[0, ::-1][1:3] = 1
    w = np.zeros((4, 6))
    w[1:3, ::2] = 1
    w[0, 3:5] = 1
    close(base, w)


def test_in_place_on_transposed_operands():
    a = np.arange(1.0, 7).reshape(2, 3).astype("float32")
    x, y, d = tf.tensor(a).t(), tf.tensor(a * 2).t(), tf.full((3, 2), 4.0)
    close(x.addcdiv_(y, d, value=3.0), a.T + 3 * a.T * 2 / 4)
    close(tf.tensor(a).t().mul_(y).sub_(1), a.T * a.T * 2 - 1)
    m = tf.arange(9.0).reshape(3, 3)
    m.add_(m.t())
    close(m, np.arange(9).reshape(3, 3) + np.arange(9).reshape(3, 3).T)
