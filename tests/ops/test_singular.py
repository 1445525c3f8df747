"""Gradients where formulas divide by zero, tie, saturate or meet infinities; values by hand."""

import itertools
import math

import numpy as np
import pytest

import tinyfin as tf

F = tf.nn.functional
INF, NAN = math.inf, math.nan


def grads(fn, *data, weights=None, dtype="float32"):
    """Gradients of a weighted sum of fn(leaves)."""
    leaves = [tf.tensor(np.array(d, dtype)).requires_grad_() for d in data]
    y = fn(*leaves)
    y.backward(tf.ones_like(y) if weights is None else tf.tensor(np.array(weights, dtype)))
    return [None if t.grad is None else t.grad.tolist() for t in leaves]


def same(got, want):
    """Equal numbers, NaN with NaN."""
    np.testing.assert_allclose(
        np.array(got, "float64"), np.array(want, "float64"), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [2, 1, 3, 2.5, 0.5, -1, -2, INF, -INF, "fro", None])
def test_norm_at_zero(p, dtype):
    """A subgradient, not NaN; alone, by rows, and for a zero row among others."""
    same(grads(lambda x: x.norm(p), [0.0, 0.0, 0.0], dtype=dtype)[0], [0, 0, 0])
    rows = grads(lambda x: tf.norm(x, p, dim=1), [[0.0, 0.0], [3.0, 4.0]], dtype=dtype)[0]
    assert np.isfinite(rows).all() and rows[0] == [0, 0]


def test_norm_elsewhere_is_unchanged():
    same(
        grads(lambda x: tf.linalg.vector_norm(x, dim=1), [[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])[0],
        [[0.6, 0.8], [0, 0], [0, -1]],
    )
    same(
        grads(lambda x: x.norm(dim=0, keepdim=True), [[3.0, 0.0], [4.0, 0.0]])[0],
        [[0.6, 0], [0.8, 0]],
    )


PRODUCTS = [
    ([2, 5, 4], [20, 8, 10]),
    ([4, 0, 7], [0, 28, 0]),
    ([0, 6, 0], [0, 0, 0]),
    ([5, 0], [0, 5]),
    ([0], [1]),
    ([3], [1]),
    ([0, 0, 0, 0], [0, 0, 0, 0]),
    ([-1, 0, -2, 3], [0, 6, 0, 0]),
    ([1e-30, 1e30, 0], [0, 0, 1]),
]


@pytest.mark.parametrize(("data", "want"), PRODUCTS)
def test_prod_with_zeros(data, want):
    same(grads(lambda x: x.prod(), data)[0], want)
    same(grads(lambda x: x.prod(0), data)[0], want)
    same(grads(lambda x: x.prod(1).sum(), [data, data])[0], [want, want])
    same(grads(lambda x: x.prod(0, keepdim=True).sum(), np.array([data]).T)[0], np.array([want]).T)
    n = len(data)
    want_scan = np.zeros(n)
    for k in range(n):
        for i in range(k + 1):
            want_scan[i] += np.prod([float(data[j]) for j in range(k + 1) if j != i])
    if max(map(abs, data)) < 1e3:
        same(grads(lambda x: x.cumprod(0).sum(), data)[0], want_scan)


def test_prod_by_rows_of_a_matrix():
    same(
        grads(lambda x: x.prod(1), [[1, 2, 0], [3, 0, 0], [2, 2, 2]])[0],
        [[0, 0, 2], [0, 0, 0], [4, 4, 4]],
    )
    same(grads(lambda x: x.prod((0, 1)), [[1, 2], [0, 4]])[0], [[0, 0], [8, 0]])


TIES = [
    ("maximum", [1, 2, 5], [1, 3, 4], [0.5, 0, 1], [0.5, 1, 0]),
    ("minimum", [1, 2, 5], [1, 3, 4], [0.5, 1, 0], [0.5, 0, 1]),
    ("fmax", [1, 2, NAN], [1, 3, 4], [1, 0, 0], [0, 1, 1]),
    ("fmin", [1, 2, NAN], [1, 3, 4], [1, 1, 0], [0, 0, 1]),
]


@pytest.mark.parametrize(("name", "a", "b", "ga", "gb"), TIES)
def test_ties_of_two(name, a, b, ga, gb):
    same(grads(getattr(tf, name), a, b), [ga, gb])


def test_ties_share_evenly():
    same(
        grads(lambda x: tf.amax(x, 1), [[2, 2, 1], [0, 3, 3], [5, 5, 5]])[0],
        [[0.5, 0.5, 0], [0, 0.5, 0.5], [1 / 3] * 3],
    )
    same(grads(lambda x: tf.amin(x, (0, 1)), [[2, 1], [1, 4]])[0], [[0, 0.5], [0.5, 0]])
    same(grads(lambda x: x.max(), [2, 2, 1])[0], [0.5, 0.5, 0])
    same(grads(lambda x: x.min(), [2, 1, 1])[0], [0, 0.5, 0.5])


def test_extremum_along_a_dim_takes_one():
    same(grads(lambda x: x.max(1)[0], [[2, 2, 1], [0, 3, 3]])[0], [[1, 0, 0], [0, 1, 0]])
    same(grads(lambda x: x.min(0)[0], [[2, 2], [2, 1]])[0], [[1, 0], [0, 1]])


def test_clamp_at_and_beyond_its_bounds():
    """The gradient passes on the bounds, not beyond; NaN passes everything."""
    same(grads(lambda x: x.clamp(-1, 1), [-2, -1, 0, 1, 2])[0], [0, 1, 1, 1, 0])
    same(grads(lambda x: x.clamp(min=0), [-1, 0, 1])[0], [0, 1, 1])
    x, lo = tf.tensor([1.0, NAN, 3.0]), tf.tensor([NAN, 0.0, 2.0])
    same(tf.clamp(x, min=lo).tolist(), [NAN, NAN, 3])
    same(tf.clamp(x, max=lo).tolist(), [NAN, NAN, 2])
    for size in 4, 37:
        big, bound = np.zeros(size, "float32"), np.ones(size, "float32")
        bound[0], big[2] = NAN, NAN
        same(tf.clamp(tf.tensor(big), min=tf.tensor(bound)).tolist(), np.maximum(big, bound))
        same(tf.maximum(tf.tensor(big), tf.tensor(bound)).tolist(), np.maximum(big, bound))


@pytest.mark.parametrize(
    ("name", "x", "want"),
    [
        ("relu", [-1, 0, 1], [0, 0, 1]),
        ("abs", [-2, 0, 3], [-1, 0, 1]),
        ("sign", [-2, 0, 3], [0, 0, 0]),
        ("sqrt", [0, 4], [INF, 0.25]),
        ("rsqrt", [0.25], [-4]),
        ("log", [0, 1], [INF, 1]),
        ("reciprocal", [0.5], [-4]),
        ("sigmoid", [-1000, 1000], [0, 0]),
        ("tanh", [-1000, 1000], [0, 0]),
        ("exp", [-1000], [0]),
        ("floor", [0.5], [0]),
        ("square", [0], [0]),
        ("log1p", [0], [1]),
        ("erf", [0, 100], [2 / math.sqrt(math.pi), 0]),
    ],
)
def test_elementary_at_the_edge(name, x, want):
    same(grads(getattr(tf, name), x)[0], want)


@pytest.mark.parametrize(
    ("name", "x", "want"),
    [
        ("relu6", [-1, 0, 3, 6, 7], [0, 0, 1, 0, 0]),
        ("hardtanh", [-1, 0, 1], [0, 1, 0]),
        ("leaky_relu", [-1, 0, 1], [0.01, 0.01, 1]),
        ("elu", [-1000, 0, 1], [0, 1, 1]),
        ("softplus", [-1000, 1000], [0, 1]),
        ("silu", [-1000, 0, 1000], [0, 0.5, 1]),
        ("gelu", [-1000, 0, 1000], [0, 0.5, 1]),
        ("logsigmoid", [-1000, 0, 1000], [1, 0.5, 0]),
        ("mish", [-1000, 1000], [0, 1]),
        ("hardswish", [-4, 0, 4], [0, 0.5, 1]),
        ("hardsigmoid", [-4, 0, 4], [0, 1 / 6, 0]),
    ],
)
def test_activations_at_the_edge(name, x, want):
    same(grads(getattr(F, name), x)[0], want)


POWERS = [
    (0.0, 2.0, 0.0),
    (0.0, 1.0, 1.0),
    (0.0, 0.0, 0.0),
    (2.0, 0.0, 0.0),
    (-2.0, 3.0, 12.0),
    (0.0, 0.5, INF),
    (-1.0, 2.0, -2.0),
]


@pytest.mark.parametrize(("a", "b", "want"), POWERS)
def test_power(a, b, want):
    """By the base, for a number and for a tensor as exponent; by the exponent at zero."""
    same(grads(lambda x: x**b, [a])[0], [want])
    same(grads(lambda x: x ** tf.tensor([b]), [a])[0], [want])
    same(grads(lambda e: tf.tensor([0.0]) ** e, [2.0])[0], [0])
    same(grads(lambda e: 0.0**e, [2.0])[0], [0])
    same(grads(lambda e: 2.0**e, [3.0])[0], [8 * math.log(2)])


def test_selection_masks_bad_cotangents():
    """Infinite or NaN cotangents do not leak into what was not selected."""
    mask = tf.tensor([True, False, False])
    a, b = grads(lambda a, b: tf.where(mask, a, b), [1, 2, 3], [4, 5, 6], weights=[2, INF, NAN])
    same([a, b], [[2, 0, 0], [0, INF, NAN]])
    same(grads(lambda x: x.masked_fill(mask, 9.0), [1, 2, 3], weights=[NAN, 5, 7])[0], [0, 5, 7])
    same(grads(lambda x: x.clamp(0, 2), [-1, 1, 3], weights=[NAN, 5, INF])[0], [0, 5, 0])
    same(grads(F.relu, [-1, 1], weights=[NAN, 2])[0], [0, 2])
    same(grads(lambda x: tf.where(x > 0, x, 0.0).sqrt(), [4, -1], weights=[1, 0])[0], [0.25, 0])
    index = tf.tensor([2, 0])
    same(grads(lambda x: x[index], [1, 2, 3], weights=[INF, 4])[0], [4, 0, INF])
    same(grads(lambda x: x[1:], [1, 2, 3], weights=[INF, 4])[0], [0, INF, 4])
    same(
        grads(lambda x: x.tril(), [[1, 2], [3, 4]], weights=[[1, NAN], [2, 3]])[0], [[1, 0], [2, 3]]
    )
    same(grads(lambda x: F.pad(x, (1, 1)), [1, 2], weights=[NAN, 1, 2, NAN])[0], [1, 2])


def test_repeated_indices_add_up():
    weights = [1, 2, 4, 8]
    want = [11, 0, 4]
    i = tf.tensor([0, 0, 2, 0])
    for pick in (
        lambda x: x[i],
        lambda x: x[[0, 0, 2, 0]],
        lambda x: tf.index_select(x, 0, i),
        lambda x: tf.gather(x, 0, i),
        lambda x: tf.take(x, i),
        lambda x: x[i - 3],
        lambda x: F.embedding(i, x[:, None])[:, 0],
    ):
        same(grads(pick, [10, 20, 30], weights=weights)[0], want)
    m = tf.tensor([[0, 1], [1, 1]])
    same(
        grads(lambda x: x[m], np.zeros((3, 2)), weights=np.ones((2, 2, 2)))[0],
        [[1, 1], [3, 3], [0, 0]],
    )
    same(
        grads(lambda x: x[m, 1], np.zeros((3, 2)), weights=[[1, 2], [4, 8]])[0],
        [[0, 1], [0, 14], [0, 0]],
    )
    same(grads(lambda x: tf.gather(x, 1, tf.tensor([[1, 1, 0]])), [[1, 2]])[0], [[1, 2]])
    same(grads(lambda x: x.expand(3, 2), [1, 2], weights=[[1, 2], [3, 4], [5, 6]])[0], [9, 12])
    same(grads(lambda x: x.unfold(0, 2, 1), [1, 2, 3], weights=[[1, 2], [4, 8]])[0], [1, 6, 8])
    same(grads(lambda x: tf.cat([x, x]), [1], weights=[2, 3])[0], [5])


def test_embedding_padding_row_gets_nothing():
    i = tf.tensor([0, 2, 2, 1])
    same(
        grads(lambda w: F.embedding(i, w, padding_idx=2), np.ones((3, 2)))[0],
        [[1, 1], [1, 1], [0, 0]],
    )
    same(
        grads(lambda w: F.embedding(i, w, padding_idx=-1), np.ones((3, 2)))[0],
        [[1, 1], [1, 1], [0, 0]],
    )


def test_infinite_logits():
    """log(0 + 0) is -inf, not NaN; the finite rows keep their gradient."""
    x = [[-INF, -INF], [-INF, 2.0], [INF, 1.0], [1000.0, 1000.0]]
    y = tf.logsumexp(tf.tensor(x), 1)
    same(y.tolist(), [-INF, 2, INF, 1000 + math.log(2)])
    g = grads(lambda t: tf.logsumexp(t, 1), x, weights=[1, 1, 0, 1])[0]
    same([g[1], g[3]], [[0, 1], [0.5, 0.5]])
    assert np.isfinite(g[0]).all()
    a, b = tf.tensor([-INF, -INF, INF, INF]), tf.tensor([-INF, 2.0, INF, -INF])
    same(tf.logaddexp(a, b).tolist(), [-INF, 2, INF, INF])
    same(tf.softmax(tf.tensor([[-INF, 0.0, 0.0]]), 1).tolist(), [[0, 0.5, 0.5]])
    g = grads(lambda t: F.cross_entropy(t, tf.tensor([1])), [[-INF, 0.0, 1.0]])[0]
    assert np.isfinite(g).all() and g[0][0] == 0


def test_masked_softmax_row():
    """A query that may see no key: zeros here, never NaN in the other rows' gradients."""
    q = k = v = tf.ones(1, 1, 2, 2)
    mask = tf.tensor([[True, False], [False, False]])
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert y[0, 0, 0].tolist() == [1, 1]
    x = tf.ones(1, 1, 2, 2).requires_grad_()
    F.scaled_dot_product_attention(x, k, v, attn_mask=mask)[0, 0, 0].sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_spread_of_equal_numbers():
    """std of equal numbers has no derivative: zero is taken, as for norms; var has zero."""
    same(grads(lambda x: x.std(), [2, 2, 2])[0], [0, 0, 0])
    same(grads(lambda x: x.var(), [2, 2, 2])[0], [0, 0, 0])
    same(grads(lambda x: F.layer_norm(x, (3,)), [[5, 5, 5]])[0], [[0, 0, 0]])
    for value in 0.0, 1234.0, 1e6:
        g = grads(lambda x: F.layer_norm(x, (256,)).sum(), np.full((2, 256), value))[0]
        assert np.isfinite(g).all()


def test_bce_saturates():
    """Logarithms are held at -100, gradients stay finite."""
    y = F.binary_cross_entropy(
        tf.tensor([0.0, 1.0, 0.0, 1.0]), tf.tensor([0.0, 1.0, 1.0, 0.0]), reduction="none"
    )
    same(y.tolist(), [0, 0, 100, 100])
    g = grads(lambda x: F.binary_cross_entropy(x, tf.tensor([1.0, 0.0])), [0.0, 1.0])[0]
    assert np.isfinite(g).all()
    g = grads(lambda x: F.binary_cross_entropy_with_logits(x, tf.tensor([1.0, 0.0])), [-1e4, 1e4])[
        0
    ]
    same(g, [-0.5, 0.5])


def test_atan2_and_hypot_around_the_origin():
    same(grads(tf.atan2, [1.0], [0.0]), [[0], [-1]])
    same(grads(tf.hypot, [3.0], [4.0]), [[0.6], [0.8]])
    same(
        tf.atan2(tf.tensor([0.0, -0.0, 0.0]), tf.tensor([-1.0, -1.0, 1.0])).tolist(),
        [math.pi, -math.pi, 0],
    )
    same(
        tf.hypot(tf.tensor([1e30, 3e-30]), tf.tensor([1e30, 4e-30])).tolist(),
        [math.hypot(1e30, 1e30), 5e-30],
    )


@pytest.mark.parametrize(
    "fn, want",
    [
        (lambda x: x.clamp(min=-1.0), 0),
        (lambda x: x.clamp(max=1.0), 0),
        (lambda x: x.clamp(-1.0, 1.0), 0),
        (F.relu, 1),
        (F.relu6, 1),
        (F.hardtanh, 1),
        (F.elu, 1),
        (lambda x: F.selu(x) / 1.0507009873554805, 1),
        (F.celu, 1),
        (lambda x: tf.maximum(x, tf.tensor(2.0)), 1),
        (lambda x: tf.minimum(tf.tensor(2.0), x), 1),
    ],
)
def test_gradient_at_nan(fn, want):
    """As PyTorch's: a NaN is not between bounds, and is not cut off elsewhere."""
    same(grads(fn, [NAN, NAN])[0], [want, want])


def test_gradients_beside_nan():
    same(grads(tf.maximum, [1.0, NAN, 3.0], [NAN, 1.0, 3.0]), [[1, 1, 0.5], [1, 1, 0.5]])
    same(grads(tf.atan2, [0.0, -0.0, 1.0], [0.0, 0.0, 0.0]), [[0, 0, 0], [0, 0, -1]])


def test_hardsigmoid_and_elu_at_the_seams():
    same(grads(F.hardsigmoid, [NAN, -3.0, 3.0, 0.0])[0], [0, 0, 0, 1 / 6])
    x = tf.tensor([0.0, -0.0, -1.0]).requires_grad_()
    (first,) = tf.autograd.grad(F.elu(x, 2.0).sum(), x, create_graph=True)
    (second,) = tf.autograd.grad(first.sum(), x)
    same(second.tolist(), [0, 0, 2 * math.exp(-1)])


def test_norm_of_order_zero_has_no_slope():
    same(grads(lambda x: x.norm(0), [0.0, 2.0, -1.0])[0], [0, 0, 0])


ROWS = [[1.0, NAN, 2.0], [3.0, 3.0, 1.0], [NAN, NAN, NAN]]
EXTREMA = [
    ("amax", (1,), [[NAN] * 3, [0.5, 0.5, 0], [NAN] * 3]),
    ("amin", (1,), [[NAN] * 3, [0, 0, 1], [NAN] * 3]),
    ("amax", (), [[NAN] * 3] * 3),
    ("max", (), [[0, 0.25, 0], [0, 0, 0], [0.25, 0.25, 0.25]]),
    ("min", (), [[0, 0.25, 0], [0, 0, 0], [0.25, 0.25, 0.25]]),
    ("max", (1,), [[0, 1, 0], [1, 0, 0], [1, 0, 0]]),
    ("min", (1,), [[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    ("norm", (INF, 1), [[0, 0, 0], [0.5, 0.5, 0], [0, 0, 0]]),
]
"""Name, arguments, gradients: PyTorch's, whose amax finds no element that equals NaN, and divides by their number."""
X = [0.0, 1.0, 2.0, 0.0, 3.0, 1.0, NAN, 1.0, 2.0]
LOW = [1.0, 1.0, 1.0, 2.0, 1.0, 2.0, 1.0, NAN, 2.0]
HIGH = [2.0, 1.0, 2.0, 2.0, 2.0, 0.0, 2.0, 2.0, NAN]
BOUNDED = [
    (True, True, [[0, 1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0, 0]]),
    (True, False, [[0, 1, 1, 0, 1, 0, 0, 0, 1], [1, 0, 0, 1, 0, 1, 0, 0, 0]]),
    (False, True, [[1, 1, 1, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 1, 0, 0, 0]]),
]  # fmt: skip
"""Whether there are bounds below and above, and gradients of x and of those."""


@pytest.fixture(params=["cpu", "vulkan", "opengl"])
def place(request):
    """Each device that is here."""
    if request.param != "cpu":
        request.getfixturevalue(request.param)
    return request.param


def ways(fn, device, *data):
    """Gradients of a sum of elements that depend on themselves alone, by reverse and by forward mode."""
    leaves = [tf.tensor(d, device=device).requires_grad_() for d in data]
    back = tf.autograd.grad(fn(*leaves).sum(), leaves)
    ahead = []
    for i, leaf in enumerate(leaves):
        primals = tuple(t.detach() for t in leaves)
        tangents = [tf.zeros_like(t) for t in primals]
        tangents[i] = tf.ones_like(leaf)
        ahead.append(tf.func.jvp(fn, primals, tuple(tangents))[1])
    return [t.cpu().tolist() for t in back], [t.cpu().tolist() for t in ahead]


@pytest.mark.parametrize("name, args, want", EXTREMA)
def test_extrema_of_nan(name, args, want, place):
    """Forward mode is the transpose of the same rule."""

    def fn(x):
        y = getattr(x, name)(*args)
        return y.values if isinstance(y, tuple) else y

    back, ahead = ways(fn, place, ROWS)
    same(back[0], want)
    rows = np.array(want, "float64")
    same(ahead[0], rows.sum(1) if args else rows.sum())


@pytest.mark.parametrize("low, high, want", BOUNDED)
def test_clamp_at_its_bounds(low, high, want, place):
    """An element at a bound keeps its gradient; bounds that are equal get none from below, and NaN gets none."""
    data = [X, *([LOW] if low else []), *([HIGH] if high else [])]

    def fn(x, *bounds):
        return x.clamp(bounds[0] if low else None, bounds[-1] if high else None)

    back, ahead = ways(fn, place, *data)
    same(back, want)
    same(ahead, want)


@pytest.mark.parametrize("name, args", [case[:2] for case in EXTREMA])
def test_extrema_of_nan_as_pytorch(name, args):
    torch = pytest.importorskip("torch")
    x = torch.tensor(ROWS, requires_grad=True)
    y = getattr(x, name)(*args)
    (y if isinstance(y, torch.Tensor) else y.values).sum().backward()
    same(x.grad.tolist(), next(want for n, a, want in EXTREMA if (n, a) == (name, args)))


def test_clamp_as_pytorch():
    """All triples of ends, NaN and infinities."""
    torch = pytest.importorskip("torch")
    numbers = [-1.0, 0.0, 1.0, NAN, INF, -INF]
    data = [list(column) for column in zip(*itertools.product(numbers, repeat=3))]
    for low, high in ((True, True), (True, False), (False, True)):

        def fn(x, a, b, low=low, high=high):
            return x.clamp(a if low else None, b if high else None)

        leaves = [torch.tensor(d, requires_grad=True) for d in data]
        theirs = torch.autograd.grad(fn(*leaves).sum(), leaves, allow_unused=True)
        mine = [tf.tensor(d, requires_grad=True) for d in data]
        ours = tf.autograd.grad(fn(*mine).sum(), mine, allow_unused=True)
        for a, b in zip(ours, theirs):
            assert (a is None) == (b is None)
            if a is not None:
                same(a.tolist(), b.tolist())
