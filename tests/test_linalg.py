"""einsum, norms and products against NumPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyfin as tf

settings.register_profile("linalg", deadline=None, max_examples=150)
settings.load_profile("linalg")

INF = float("inf")
SIZES = {c: n for c, n in zip("abcdefg", (2, 3, 4, 1, 2, 3, 2))}


def numbers(*shape, seed=0):
    """Float64 numbers in both libraries."""
    a = np.random.default_rng(seed).standard_normal(shape)
    return tf.tensor(a), a


EQUATIONS = [
    "ab,bc->ac", "ab,bc", "ab,bc->ca", "ab,cb->ac", "ab,ab->ab", "ab,ab->", "ab->ba", "ab->", "ab->a", "ab->b", "a,b->ab",
    "a,a->", "a,a", "aa->a", "aa->", "aa", "aab->b", "aab->ab", "abb,b->a", "abc,cd,de->abe", "abc,abd->acd", "ab,bc,cd->ad",
    "ab,ac,ad->abcd", "ab,b->a", "abc->cab", "abc,c->ab", "abc,abc->abc", "abc,abc->b", "ab,ab,ab->ab", ",ab->ab",
    "a,,a->a", "abcd,abcd->ad", "abab->ab", "abab->", "...ab,...bc->...ac", "...ab->...ba", "...a->...", "a...->a",
    "...,...->...", "...a,a->...", "a...b,b...->a...", "...ab,bc->...ac", "ab...->...", "ab , bc -> ac", "ba", "cab",
    "ab,ba", "abc,ad->dcb", "ad,d->a", "ab,cd->abcd", "aa,bb->ab", "...aa->...a",
]  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_agrees_with_numpy(equation):
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    for dots in ((), (2,), (3, 2)):
        if "..." not in equation and dots:
            break
        operands = []
        for k, term in enumerate(terms):
            before, mark, after = term.partition("...")
            middle = dots if mark else ()
            shape = [SIZES[c] for c in before] + list(middle) + [SIZES[c] for c in after]
            operands.append(numbers(*shape, seed=k))
        try:
            want = np.einsum(equation, *(a for _, a in operands))
        except ValueError:
            continue
        got = tf.einsum(equation, *(t for t, _ in operands))
        assert tuple(got.shape) == want.shape
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            tf.einsum(equation, [t for t, _ in operands]).numpy(), want, rtol=1e-10, atol=1e-12
        )


@given(st.data())
def test_random_equations(data):
    terms = [
        "".join(data.draw(st.lists(st.sampled_from("abcdef"), min_size=0, max_size=4)))
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    known = sorted(set("".join(terms)))
    result = "".join(data.draw(st.permutations(known)))[: data.draw(st.integers(0, len(known)))]
    zero = data.draw(st.sampled_from([None, *"abcdef"]))
    operands = [
        numbers(*(0 if c == zero else SIZES[c] for c in term), seed=k)
        for k, term in enumerate(terms)
    ]
    for equation in (",".join(terms) + "->" + result, ",".join(terms)):
        want = np.einsum(equation, *(a for _, a in operands))
        got = tf.einsum(equation, *(t for t, _ in operands))
        assert tuple(got.shape) == want.shape, equation
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-9)


def test_einsum_gradients():
    torch = pytest.importorskip("torch")
    for equation in (
        "ab,bc->ac",
        "aab->b",
        "ab,cb->",
        "abc,cd->bd",
        "aa->a",
        "a,b,ab->",
        "...a,ab->...b",
    ):
        terms = equation.partition("->")[0].split(",")
        arrays = [
            numbers(*(SIZES[c] for c in t.replace("...", "ab")), seed=k)[1]
            for k, t in enumerate(terms)
        ]
        xs = [tf.tensor(a, requires_grad=True) for a in arrays]
        us = [torch.tensor(a, requires_grad=True) for a in arrays]
        (tf.einsum(equation, *xs) ** 2).sum().backward()
        (torch.einsum(equation, *us) ** 2).sum().backward()
        for x, u in zip(xs, us):
            np.testing.assert_allclose(x.grad.numpy(), u.grad.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "args, kind, words",
    [
        (("ab,bc", tf.ones(2, 3)), RuntimeError, "2 operands, 1 were given"),
        (("ab", tf.ones(2, 3), tf.ones(1)), RuntimeError, "1 operands, 2 were given"),
        (("abc", tf.ones(2, 3)), RuntimeError, "names 3 axes"),
        (("a", tf.ones(2, 3)), RuntimeError, "names 1 axes"),
        (("ab,bc->ac", tf.ones(2, 3), tf.ones(4, 2)), RuntimeError, "'b' has sizes 3 and 4"),
        (("aa->a", tf.ones(2, 3)), RuntimeError, "'a' has sizes 2 and 3"),
        (("ab->ac", tf.ones(2, 3)), RuntimeError, "unknown"),
        (("ab->aa", tf.ones(2, 3)), RuntimeError, "repeats"),
        (("a1", tf.ones(2, 3)), RuntimeError, "characters"),
        (("ab->a->b", tf.ones(2, 3)), RuntimeError, "einsum"),
        (("a...b...", tf.ones(2, 3)), RuntimeError, "einsum"),
        ((tf.ones(2), "a"), TypeError, "equation is"),
        (("a", 3), TypeError, "operand is 3"),
        (("a",), RuntimeError, "0 were given"),
        (("ab,ab->ab", tf.ones(2, 3), tf.ones(2, 3).long()), RuntimeError, "einsum|matmul|mul"),
    ],
)
def test_bad_equations(args, kind, words):
    with pytest.raises(kind, match=words):
        tf.einsum(*args)


DIMS = [None, 0, 1, -1, (0, 1), (0, 2), (0, 1, 2)]
ORDERS = [2, 1, 0, 3, 0.5, -1, -2, INF, -INF, 2.5]


@pytest.mark.parametrize("order", ORDERS)
def test_vector_norms(order):
    t, a = numbers(2, 3, 4)
    for dim, keep in itertools.product(DIMS, (False, True)):
        axes = tuple(range(3)) if dim is None else dim if isinstance(dim, tuple) else (dim % 3,)
        rest = [i for i in range(3) if i not in axes]
        flat = np.transpose(a, (*rest, *axes)).reshape(*(a.shape[i] for i in rest), -1)
        want = np.linalg.norm(flat, order, axis=-1)
        got = tf.linalg.vector_norm(t, order, dim, keep)
        assert tuple(got.shape) == tuple(
            (1 if i in axes else n) for i, n in enumerate(a.shape) if keep or i in rest
        )
        np.testing.assert_allclose(got.numpy().reshape(want.shape), want, rtol=1e-12)
        np.testing.assert_allclose(
            tf.norm(t, order, dim, keep).numpy().reshape(want.shape), want, rtol=1e-12
        )
    np.testing.assert_allclose(t.norm().item(), np.linalg.norm(a))
    assert tf.linalg.vector_norm(t.float(), order, dtype=tf.float64).dtype is tf.float64


@pytest.mark.parametrize("order", [2, 1, 3, 1.5, INF, 0])
def test_norms_of_zero_vectors_have_gradient_zero(order):
    x = tf.zeros(3, requires_grad=True)
    y = tf.linalg.vector_norm(x, order)
    assert y.item() == 0
    if y.requires_grad:
        y.backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]
    m = tf.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    n = tf.linalg.vector_norm(m, order, 1)
    if n.requires_grad:
        n.sum().backward()
        assert m.grad[0].tolist() == [0.0, 0.0] and m.grad.isfinite().all()


@pytest.mark.parametrize("order", [1, 2, 3, 0.5, INF, -INF, -1])
def test_gradients_of_norms(order):
    torch = pytest.importorskip("torch")
    _, a = numbers(3, 4, seed=5)
    x, u = tf.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    tf.linalg.vector_norm(x, order, 1).sum().backward()
    torch.linalg.vector_norm(u, order, 1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), u.grad.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_norms_of_halves(dtype):
    """Squares that float16 cannot hold."""
    x = tf.tensor([[300.0, -400.0], [1e-4, 0.0]], dtype=getattr(tf, dtype))
    assert x.norm().item() == 500 and x.norm().dtype is x.dtype
    assert x.norm(dim=1).tolist() == [500, x[1, 0].item()]


def test_norms_of_large_and_empty_vectors():
    assert tf.zeros(0).norm().item() == 0 and tf.zeros(0, 3).norm(dim=0).tolist() == [0.0] * 3
    assert tf.zeros(0).norm(1).item() == 0 and tf.tensor(-3.0).norm().item() == 3
    with pytest.raises((RuntimeError, IndexError)):
        tf.zeros(0).norm(INF)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: tf.linalg.vector_norm(3), TypeError, "vector_norm: x is 3"),
        (lambda: tf.linalg.vector_norm(tf.ones(2).long()), RuntimeError, "int64"),
        (lambda: tf.linalg.vector_norm(tf.ones(2), "fro"), (TypeError, RuntimeError), "ord"),
        (lambda: tf.norm(tf.ones(2, 2), "nuc"), NotImplementedError, "nuc"),
        (lambda: tf.ones(2).norm(dim=3), IndexError, "dim 3"),
        (lambda: tf.trace(tf.ones(2)), RuntimeError, "trace"),
        (lambda: tf.diag(tf.ones(1, 1, 1)), RuntimeError, "diag"),
        (lambda: tf.diag(3), TypeError, "diag"),
        (lambda: tf.tensordot(tf.ones(2, 3), tf.ones(2, 3), 1), RuntimeError, "tensordot"),
        (lambda: tf.tensordot(tf.ones(2, 3), tf.ones(2, 3), 3), RuntimeError, "tensordot"),
        (
            lambda: tf.tensordot(tf.ones(2, 3), tf.ones(2, 3), ([0], [0, 1])),
            RuntimeError,
            "tensordot",
        ),
    ],
)
def test_what_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_trace_and_diagonals():
    t, a = numbers(3, 4)
    assert abs(t.trace().item() - np.trace(a)) < 1e-12
    for k in range(-3, 5):
        np.testing.assert_array_equal(tf.diag(t, k).numpy(), np.diag(a, k))
        np.testing.assert_array_equal(tf.diag(t[0], k).numpy(), np.diag(a[0], k))
    d = tf.diag_embed(t, 1)
    assert (
        d.shape == (3, 5, 5)
        and tf.equal(d.diagonal(1, 1, 2), t)
        and d.sum().item() == pytest.approx(a.sum())
    )
    x = tf.ones(2, requires_grad=True)
    (tf.diag(x) * tf.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [1.0, 4.0]


def test_tensordot():
    (t, a), (u, b) = numbers(2, 3, 4, seed=1), numbers(4, 3, 2, seed=2)
    for dims in (0, 1, ([2], [0]), ([1, 2], [1, 0]), ([0, 2, 1], [2, 0, 1]), (2, 0), ([-1], [-3])):
        want = np.tensordot(a, b, dims if not isinstance(dims, tuple) else tuple(dims))
        got = tf.tensordot(t, u, dims)
        assert tuple(got.shape) == want.shape
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    assert tf.tensordot(tf.ones(2, 0), tf.ones(0, 3), 1).tolist() == [[0.0] * 3] * 2
