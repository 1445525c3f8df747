"""Compositions that are not rows, against PyTorch: values, gradients, errors."""

import itertools
import math

import numpy as np
import pytest

import tinyfin as tf

torch = pytest.importorskip("torch")

INF, NAN = float("inf"), float("nan")


def numbers(*shape, seed=0, special=False):
    """The same numbers in both libraries."""
    a = np.random.default_rng(seed).standard_normal(shape).astype("float32") * 3
    if special:
        a.flat[:5] = [NAN, INF, -INF, 0.0, -0.0]
    return tf.tensor(a), torch.tensor(a)


def same(got, want, rtol=1e-6):
    """Equal shapes, dtypes and elements, of one result or of several."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, rtol)
    elif isinstance(want, torch.Tensor):
        assert tuple(got.shape) == tuple(want.shape) and got.dtype.name == str(want.dtype)[6:]
        np.testing.assert_allclose(
            got.detach().numpy(), want.detach().numpy(), rtol=rtol, atol=1e-6
        )
    else:
        assert got == want


CALLS = [
    lambda t, x: x.clamp(-1, 1), lambda t, x: x.clamp(min=0), lambda t, x: x.clamp(max=0.5), lambda t, x: x.clamp(1, -1),
    lambda t, x: t.clamp(x, x[0], None), lambda t, x: x.clip(-2, 2), lambda t, x: x.clone().clamp_(-1, 1),
    lambda t, x: x.round(), lambda t, x: x.round(decimals=1), lambda t, x: t.round(x * 100, decimals=-1),
    lambda t, x: t.lerp(x, x[0], 0.25), lambda t, x: x.lerp(x[1], x[0]), lambda t, x: t.addcmul(x, x[0], x[1], value=2),
    lambda t, x: t.addcdiv(x, x[0], x[1] * 0 + 2, value=-1), lambda t, x: t.rsub(x, 1) if hasattr(t, "rsub") else 1 - x,
    lambda t, x: x.max(), lambda t, x: x.min(), lambda t, x: x.max(1), lambda t, x: x.min(0, True),
    lambda t, x: t.max(x, 1, keepdim=True), lambda t, x: t.max(x, x[0]), lambda t, x: t.min(x, other=x[1]),
    lambda t, x: x.max(dim=-1).values, lambda t, x: x.max(dim=-1).indices, lambda t, x: x[0, 0].max(0),
    lambda t, x: x.aminmax(dim=1), lambda t, x: x.aminmax(), lambda t, x: t.var_mean(x, 1), lambda t, x: t.std_mean(x),
    lambda t, x: t.var_mean(x, (0, 1), correction=0, keepdim=True), lambda t, x: x.diff(), lambda t, x: x.diff(2, 0),
    lambda t, x: (x > 0).diff(), lambda t, x: x.count_nonzero(), lambda t, x: (x > 0).count_nonzero(1),
    lambda t, x: t.isclose(x, x + 1e-9), lambda t, x: t.isclose(x, x * 1.1), lambda t, x: t.allclose(x, x),
    lambda t, x: t.equal(x, x), lambda t, x: t.equal(x, x[0]), lambda t, x: t.equal(x, x + 1),
    lambda t, x: t.isin(x.round(), t.tensor([1.0, 2.0])), lambda t, x: t.isin(x, x[0], invert=True),
    lambda t, x: t.div(x, 0.7, rounding_mode="floor"), lambda t, x: x.div(0.7, rounding_mode="trunc"),
    lambda t, x: x.masked_fill(x > 0, 5.0), lambda t, x: x.masked_select(x > 0), lambda t, x: t.logaddexp(x, x[0]),
    lambda t, x: x.multiply(2), lambda t, x: t.subtract(x, 1), lambda t, x: x.absolute(), lambda t, x: x.greater(0),
    lambda t, x: t.concat([x, x]), lambda t, x: t.arctan(x), lambda t, x: x.negative(), lambda t, x: x.fix(),
    lambda t, x: t.softmax(x, 1).swapaxes(0, 1), lambda t, x: x.clone().multiply_(3),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(CALLS)))
def test_agrees_with_pytorch(k):
    x, u = numbers(3, 4)
    same(CALLS[k](tf, x), CALLS[k](torch, u))


SPECIAL = [
    lambda t, x: x.clamp(-1, 1), lambda t, x: x.max(1), lambda t, x: x.min(0), lambda t, x: x.round(),
    lambda t, x: t.isclose(x, x), lambda t, x: t.isclose(x, x, equal_nan=True), lambda t, x: t.allclose(x, x),
    lambda t, x: t.allclose(x, x, equal_nan=True), lambda t, x: x.nansum(), lambda t, x: x.nansum(1),
    lambda t, x: x.nan_to_num(), lambda t, x: x.nan_to_num(1.0, 2.0, 3.0), lambda t, x: t.equal(x, x),
    lambda t, x: x.double().nan_to_num(), lambda t, x: x.half().nan_to_num(), lambda t, x: t.logaddexp(x, x),
    lambda t, x: t.div(x, 2.0, rounding_mode="floor"), lambda t, x: x.count_nonzero(), lambda t, x: t.maximum(x, x * 0),
    lambda t, x: x.amax(), lambda t, x: t.isin(x, x),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(SPECIAL)))
def test_special_values(k):
    x, u = numbers(3, 4, special=True)
    same(SPECIAL[k](tf, x), SPECIAL[k](torch, u))


def test_integers():
    a = np.array([[3, -7, 0], [5, 2, -1]])
    x, u = tf.tensor(a), torch.tensor(a)
    for f in (
        lambda t, x: x.clamp(-2, 3), lambda t, x: x.max(1), lambda t, x: x.min(), lambda t, x: x.diff(),
        lambda t, x: t.div(x, 2, rounding_mode="floor"), lambda t, x: t.div(x, 2, rounding_mode="trunc"),
        lambda t, x: x.aminmax(), lambda t, x: t.isin(x, t.tensor([2, 3])), lambda t, x: x.nansum(),
        lambda t, x: x.nan_to_num(), lambda t, x: t.isclose(x, x + 1), lambda t, x: x.clamp(0.5, 2.5),
    ):  # fmt: skip
        same(f(tf, x), f(torch, u))


def test_in_place():
    x = tf.tensor([1.4, -2.6])
    y = x
    assert x.round_() is y and x.tolist() == [1.0, -3.0] and x.lerp_(tf.zeros(2), 0.5) is y
    assert x.addcmul_(tf.ones(2), tf.ones(2), value=0.5).tolist() == [1.0, -1.0] and x.clip_(
        0, 9
    ).tolist() == [1.0, 0.0]
    assert tf.tensor([NAN]).nan_to_num_(3.0).tolist() == [3.0]
    assert x.clamp_(max=0.5).tolist() == [0.5, 0.0]


def test_result_type_and_can_cast():
    names = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
    for a, b in itertools.product(names, names):
        x, y, u, v = getattr(tf, a), getattr(tf, b), getattr(torch, a), getattr(torch, b)
        assert tf.can_cast(x, y) == torch.can_cast(u, v), (a, b)
        for s1, s2 in itertools.product([(), (2,)], repeat=2):
            got = tf.result_type(tf.zeros(s1, dtype=x), tf.zeros(s2, dtype=y))
            assert (
                got.name
                == str(torch.result_type(torch.zeros(s1, dtype=u), torch.zeros(s2, dtype=v)))[6:]
            )
        for n in (True, 1, 1.5):
            assert (
                tf.result_type(tf.zeros(2, dtype=x), n).name
                == str(torch.result_type(torch.zeros(2, dtype=u), n))[6:]
            )
            assert (
                tf.result_type(n, tf.zeros(2, dtype=x)).name
                == str(torch.result_type(n, torch.zeros(2, dtype=u)))[6:]
            )


def test_result_type_looks_at_dtypes_only():
    assert tf.result_type(tf.ones(2), tf.ones(3, dtype=tf.float64)) is tf.float64
    assert (
        tf.result_type(tf.ones(1 << 20).expand(1 << 30, -1), tf.ones(2, dtype=tf.int64))
        is tf.float32
    )
    for a, b in itertools.product([True, 2, 2.5], repeat=2):
        assert tf.result_type(a, b).name == str(torch.result_type(a, b))[6:]
    with pytest.raises(TypeError, match="^result_type: tensor2 is 'x' of type str"):
        tf.result_type(tf.ones(1), "x")


GRADS = [
    lambda t, x: x.clamp(-1, 1), lambda t, x: x.clamp(min=-0.5), lambda t, x: x.lerp(x[0], 0.3), lambda t, x: x.max(1)[0],
    lambda t, x: x.min(), lambda t, x: x.max(), lambda t, x: t.addcmul(x, x, x[0], value=2), lambda t, x: t.var_mean(x, 1)[0],
    lambda t, x: t.std_mean(x)[1], lambda t, x: x.diff(2), lambda t, x: x.nansum(1), lambda t, x: t.logaddexp(x, x[0]),
    lambda t, x: x.masked_fill(x > 0, 2.0) * x, lambda t, x: x.round(), lambda t, x: t.div(x, 2, rounding_mode="floor"),
    lambda t, x: t.addcdiv(x, x[0], x[1] * x[1] + 1), lambda t, x: x.aminmax(dim=0)[1], lambda t, x: x.nan_to_num(),
    lambda t, x: t.max(x, x[0]), lambda t, x: t.softmax(x, 0).max(1)[0],
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(GRADS)))
def test_gradients(k):
    x, u = numbers(3, 4, seed=3)
    x.requires_grad_(), u.requires_grad_()
    y, v = GRADS[k](tf, x), GRADS[k](torch, u)
    w = np.arange(1, 1 + v.numel(), dtype="float32").reshape(v.shape)
    if v.requires_grad and not y.requires_grad:  # steps: no gradient here, zeros there
        (v * torch.tensor(w)).sum().backward()
        assert not u.grad.any()
    elif v.requires_grad:
        (y * tf.tensor(w)).sum().backward()
        (v * torch.tensor(w)).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), u.grad.numpy(), rtol=2e-5, atol=1e-5)
    else:
        assert not y.requires_grad


@pytest.mark.parametrize(
    "call, kind, name",
    [
        (lambda x: x.clamp(), RuntimeError, "clamp"),
        (lambda x: x.clamp_(), RuntimeError, "clamp_"),
        (lambda x: x.clamp("a"), TypeError, "clamp: min"),
        (lambda x: tf.div(x, 2, rounding_mode="down"), RuntimeError, "div: rounding_mode"),
        (lambda x: tf.zeros(0).max(), (RuntimeError, IndexError), "max"),
        (lambda x: tf.zeros(0, 2).min(), (RuntimeError, IndexError), "min"),
        (lambda x: tf.zeros(0, 2).max(0), IndexError, "argmax|max"),
        (lambda x: x.max(5), IndexError, "max: dim 5"),
        (lambda x: x.max("a"), TypeError, "max"),
        (lambda x: tf.max(3), TypeError, "max: input is 3"),
        (lambda x: tf.allclose(x, "a"), TypeError, "eq|isclose|allclose"),
        (lambda x: tf.allclose(x, tf.ones(7)), RuntimeError, "broadcast"),
        (lambda x: tf.equal(x, 3), TypeError, "equal"),
        (lambda x: x.lerp("a", 1), TypeError, ""),
        (lambda x: x.diff(dim=4), IndexError, "diff"),
        (lambda x: x.diff(-1), RuntimeError, "diff"),
        (lambda x: x.round(decimals="a"), TypeError, ""),
        (lambda x: tf.result_type("a", x), TypeError, "result_type|mul"),
        (lambda x: tf.can_cast(1, tf.float32), TypeError, "can_cast"),
    ],
)
def test_what_is_refused(call, kind, name):
    with pytest.raises(kind, match=name):
        call(tf.ones(2, 3))


def test_named_results():
    r = tf.tensor([[1.0, 5.0], [7.0, 2.0]]).max(1)
    assert r.values.tolist() == [5.0, 7.0] and r.indices.tolist() == [1, 0]
    values, indices = r
    assert values is r[0] and indices is r[1] and isinstance(r, tuple)
    with pytest.raises(AttributeError, match="have values, indices"):
        r.other  # noqa: B018
    low, high = tf.arange(4.0).aminmax()
    assert (low.item(), high.item()) == (0, 3) and tf.arange(4.0).aminmax().max.item() == 3


def test_derivatives_of_lgamma_to_any_order():
    """Each equals PyTorch's; its trigamma is good to nine digits only."""

    def orders(m):
        x = m.tensor([0.3, -1.3, 4.0, -0.01, 30.0], dtype=m.float64, requires_grad=True)
        y, found = m.lgamma(x), []
        for _ in range(5):
            (y,) = m.autograd.grad(y.sum(), x, create_graph=True)
            found.append(y.tolist())
        return found

    np.testing.assert_allclose(orders(tf), orders(torch), rtol=1e-9)
    x = tf.rand(7, dtype=tf.float64, generator=tf.Generator().manual_seed(3)) * 9 - 4
    x.requires_grad_()
    (slope,) = tf.autograd.grad(tf.polygamma(4, x).sum(), x)
    np.testing.assert_allclose(slope.numpy(), tf.polygamma(5, x.detach()).numpy(), rtol=1e-13)


def test_polygamma_of_special_values():
    x = [0.0, -0.0, -1.0, -7.0, -1e300, 1e-300, math.inf]
    assert tf.polygamma(2, tf.tensor(x, dtype=tf.float64)).tolist() == [-math.inf] * 6 + [0.0]
    assert tf.polygamma(3, tf.tensor(x, dtype=tf.float64)).tolist() == [math.inf] * 6 + [0.0]
    assert (
        tf.tensor([1, 2]).polygamma(1).dtype is tf.float32
        and tf.ones(1).half().polygamma(1).dtype is tf.float16
    )
    assert math.isnan(tf.polygamma(1, tf.tensor(NAN)).item())
    assert tf.polygamma(170, tf.ones(1)).dtype is tf.float32
    for n in (-1, 171, 1 << 40):
        with pytest.raises(RuntimeError, match=f"^polygamma: n is {n}, expected 0 to 170"):
            tf.polygamma(n, tf.ones(1))
    with pytest.raises(TypeError, match="^polygamma: n is 1.5 of type float, expected an integer"):
        tf.polygamma(1.5, tf.ones(1))
    with pytest.raises(TypeError, match="^polygamma: input"):
        tf.polygamma(1, 2.0)
