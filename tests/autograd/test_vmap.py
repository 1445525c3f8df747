"""vmap: the rules of all kinds of rows, axes, randomness, nesting; against PyTorch."""

import warnings

import numpy as np
import pytest
from autograd.both import functional, numbers, run, torch

import tinyfin as tf

vmap = tf.func.vmap


@pytest.fixture(autouse=True)
def loops_are_errors():
    """No operation here may fall back to one call for each sample."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*has no rule for batches.*")
        yield


def mapped(f, *arrays, in_dims=0, out_dims=0, tolerance=1e-9, **options):
    """vmap(f(module, ...)) in both libraries."""

    def program(m, F, *tensors):
        return F.vmap(lambda *a: f(m, *a), in_dims, out_dims, **options)(*tensors)

    return run(program, *arrays, tolerance=tolerance)


ONE = {
    "elementwise": lambda m, x: (x.sin() + 1).exp() * x - 2 / (x * x + 1),
    "compare": lambda m, x: (x > 0) & (x < 1),
    "clamp": lambda m, x: x.clamp(-0.5, 0.5),
    "masked_fill": lambda m, x: x.masked_fill(x > 0, 0.0),
    "where": lambda m, x: m.where(x > 0, x, -x),
    "sum": lambda m, x: (x.sum(), x.sum(0), x.sum(-1, keepdim=True), x.sum((0, 1))),
    "mean": lambda m, x: (x.mean(), x.mean(1), x.var(0), x.std()),
    "prod": lambda m, x: (x.prod(), x.prod(1, keepdim=True)),
    "extrema": lambda m, x: (x.amax(0), x.amin((0, 1)), tuple(x.max(1)), tuple(x.min(0))),
    "argmax": lambda m, x: (x.argmax(), x.argmax(0), x.argmin(1, keepdim=True)),
    "logic": lambda m, x: ((x > 0).any(0), (x > 0).all()),
    "logsumexp": lambda m, x: x.logsumexp(0),
    "norm": lambda m, x: x.norm(),
    "softmax": lambda m, x: (x.softmax(-1), x.log_softmax(0)),
    "scans": lambda m, x: (x.cumsum(0), x.cumprod(1)),
    "sort": lambda m, x: (tuple(x.sort(1)), x.argsort(0), tuple(x.topk(2, 1))),
    "reshape": lambda m, x: (x.reshape(5, 3), x.reshape(-1), x.contiguous().view(5, -1), x.flatten()),
    "transpose": lambda m, x: (x.transpose(0, 1), x.t(), x.permute(1, 0), x.mT),
    "expand": lambda m, x: (x.expand(2, 3, 5), x[:1].expand(4, -1)),
    "axes": lambda m, x: (x.unsqueeze(-1), x.unsqueeze(0).squeeze(), x.flip((0,))),
    "slices": lambda m, x: (x[1:, ::2], x[0], x[..., -1], x[None, :, 1]),
    "narrow": lambda m, x: (x.narrow(1, 1, 3), x.diagonal(), x.unfold(1, 2, 2), x.chunk(2, 1)),
    "triangles": lambda m, x: (x.tril(), x.triu(1)),
    "pad": lambda m, x: functional(m).pad(x, (1, 2)),
    "roll": lambda m, x: (x.roll(1, 0), x.repeat(2, 2)),
    "cast": lambda m, x: (x.float(), x.long(), x.clone()),
    "activations": lambda m, x: (
        functional(m).gelu(x), functional(m).silu(x), functional(m).relu(x), functional(m).elu(x)),
    "layer_norm": lambda m, x: functional(m).layer_norm(x, (5,)),
    "likes": lambda m, x: (m.zeros_like(x), m.ones_like(x) * x),
    "einsum": lambda m, x: m.einsum("ij,kj->ik", x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_one_argument(name, dim, rng):
    shape = [3, 5]
    shape.insert(dim, 4)
    tolerance = 1e-6 if name == "cast" else 1e-9
    mapped(ONE[name], rng.standard_normal(shape), in_dims=dim, tolerance=tolerance)


SCALARS = {
    "sum": lambda m, x: (x.sum(), x.sum(0), x.sum(0, keepdim=True), x.mean(), x.prod(0)),
    "places": lambda m, x: (x.argmax(), x.argmax(0), tuple(x.max(0))),
    "scans": lambda m, x: (x.cumsum(0), x.softmax(0), x.log_softmax(0), x.logsumexp(0)),
    "sort": lambda m, x: tuple(x.sort(0)),
    "views": lambda m, x: (x.reshape(1, 1), x.expand(2, 2), x.unsqueeze(0), x[None], x[...]),
    "arithmetic": lambda m, x: x * 2 + x.exp(),
}


@pytest.mark.parametrize("name", SCALARS)
def test_samples_without_dimensions(name, rng):
    mapped(SCALARS[name], rng.standard_normal(4))


TWO = {
    "add": lambda m, x, y: x + y,
    "reversed": lambda m, x, y: y * x - y / 2,
    "where": lambda m, x, y: m.where(x > 0, x, y),
    "cat": lambda m, x, y: m.cat([x, y[None]], 0),
    "in_place": lambda m, x, y: x.clone().mul_(2).add_(y),
}


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (2, 1)])
def test_two_arguments(name, in_dims, rng):
    if name == "in_place" and in_dims == (None, 0):
        pytest.skip("the target is the same for all")
    x = rng.standard_normal([3, 5]) if in_dims[0] is None else None
    if x is None:
        shape = [3, 5]
        shape.insert(in_dims[0], 4)
        x = rng.standard_normal(shape)
    y = rng.standard_normal({0: (4, 5), 1: (5, 4), None: (5,)}[in_dims[1]])
    mapped(TWO[name], x, y, in_dims=in_dims)


@pytest.mark.parametrize("a", [(5,), (3, 5), (2, 3, 5)])
@pytest.mark.parametrize("b", [(5,), (5, 4), (2, 5, 4)])
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_matmul(a, b, in_dims, rng):
    x, y = (rng.standard_normal(s if d is None else (6, *s)) for s, d in zip((a, b), in_dims))
    mapped(lambda m, x, y: x @ y, x, y, in_dims=in_dims)


@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("i8", "f4"), ("f4", "i8"), ("i4", "i8")])
@pytest.mark.parametrize("shapes", [((4, 3), (4,)), ((4,), (4, 3)), ((4,), (4,))])
def test_promotion_is_that_of_the_samples(dtypes, shapes, rng):
    x, y = ((3 * rng.standard_normal(s)).astype(d) for s, d in zip(shapes, dtypes))
    mapped(lambda m, x, y: (x * y, x > y), x, y, tolerance=1e-6)


PLACES = [(i, j, k) for i in (0, None) for j in (0, None) for k in (0, None)][:-1]


@pytest.mark.parametrize("in_dims", PLACES)
@pytest.mark.parametrize("name", ["linear", "conv", "grouped", "transposed", "conv1d"])
def test_weights(name, in_dims, rng):
    shapes = {
        "linear": ((3, 5), (7, 5), (7,)),
        "conv": ((2, 4, 6, 6), (6, 4, 3, 3), (6,)),
        "grouped": ((2, 4, 6, 6), (6, 2, 3, 3), (6,)),
        "transposed": ((2, 4, 6, 6), (4, 3, 3, 3), (6,)),
        "conv1d": ((2, 4, 6), (6, 4, 3), (6,)),
    }[name]
    calls = {
        "linear": lambda m, x, w, b: functional(m).linear(x, w, b),
        "conv": lambda m, x, w, b: functional(m).conv2d(x, w, b),
        "grouped": lambda m, x, w, b: functional(m).conv2d(x, w, b, 2, 1, groups=2),
        "transposed": lambda m, x, w, b: functional(m).conv_transpose2d(x, w, b, 2, 1, groups=2),
        "conv1d": lambda m, x, w, b: functional(m).conv1d(x, w, b, padding=1),
    }
    arrays = [rng.standard_normal(s if d is None else (4, *s)) for s, d in zip(shapes, in_dims)]
    mapped(calls[name], *arrays, in_dims=in_dims)


IMAGES = {
    "max_pool": lambda m, x: functional(m).max_pool2d(x, 2),
    "avg_pool": lambda m, x: functional(m).avg_pool2d(x, 2),
    "adaptive": lambda m, x: functional(m).adaptive_avg_pool2d(x, 2),
    "batch_norm": lambda m, x: functional(m).batch_norm(x, None, None, training=True),
    "group_norm": lambda m, x: functional(m).group_norm(x, 2),
    "resize": lambda m, x: functional(m).interpolate(
        x, scale_factor=2, mode="bilinear", align_corners=False),
}  # fmt: skip


@pytest.mark.parametrize("name", IMAGES)
def test_images(name, rng):
    mapped(IMAGES[name], rng.standard_normal((3, 2, 4, 6, 6)))


def test_losses(rng):
    x = rng.standard_normal((4, 3, 5))
    mapped(lambda m, x, t: functional(m).cross_entropy(x, t), x, rng.integers(0, 5, (4, 3)))
    mapped(lambda m, x, t: functional(m).cross_entropy(x, t), x[:, 0], rng.integers(0, 5, 4))
    mapped(lambda m, x, t: functional(m).mse_loss(x, t), x, x + 1)


@pytest.mark.parametrize("in_dims", [(0, 0, 0, None), (0, None, None, None), (0, 0, 0, 0)])
def test_attention(in_dims, rng):
    shapes = (2, 6, 8), (2, 5, 8), (2, 5, 8), (6, 5)
    arrays = [rng.standard_normal(s if d is None else (4, *s)) for s, d in zip(shapes, in_dims)]

    def f(m, q, k, v, mask):
        return functional(m).scaled_dot_product_attention(q, k, v, attn_mask=mask)

    mapped(f, *arrays, in_dims=in_dims)


INDEXED = {
    "index_select": lambda m, x, i: x.index_select(0, i),
    "index_select_1": lambda m, x, i: x.index_select(1, i),
    "first": lambda m, x, i: x[i],
    "second": lambda m, x, i: x[:, i],
    "both": lambda m, x, i: x[i, i],
    "apart": lambda m, x, i: x.reshape(3, 1, 3)[i, :, i],
    "new_axis": lambda m, x, i: x[None, i, 1:],
    "gather": lambda m, x, i: x.gather(0, i[:, None].expand(2, 3)),
    "scatter": lambda m, x, i: x.scatter(0, i[:1, None].expand(1, 3), x[:1] * 2),
    "scatter_add": lambda m, x, i: x.scatter_add(1, i[None].expand(3, 2), x[:, :2]),
    "index_add": lambda m, x, i: x.index_add(0, i, x[:2] * 3),
    "index_put": lambda m, x, i: x.index_put((i,), x[0, 0].exp()),
    "index_put_add": lambda m, x, i: x.index_put((i, i), x[0, :2], accumulate=True),
    "take": lambda m, x, i: m.take(x, i),
    "take_along": lambda m, x, i: m.take_along_dim(x, i[None].expand(3, 2), 1),
    "embedding": lambda m, x, i: functional(m).embedding(i, x),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_indices(name, in_dims, rng):
    x = rng.standard_normal((3, 3) if in_dims[0] is None else (4, 3, 3))
    i = np.array([[0, 2], [1, 0], [2, 1], [2, 0]])
    mapped(INDEXED[name], x, i[0] if in_dims[1] is None else i, in_dims=in_dims)


@pytest.mark.parametrize("name", [n for n in INDEXED if n != "take_along"])
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_gradients_of_indices(name, in_dims, rng):
    """Per-sample gradients through indexing: the adjoint rows have rules too."""
    x = tf.tensor(rng.standard_normal((3, 3) if in_dims[0] is None else (4, 3, 3)))
    i = tf.tensor([[0, 2], [1, 0], [2, 1], [2, 0]])
    i = i[0] if in_dims[1] is None else i

    def loss(x, i):
        return (INDEXED[name](tf, x, i) ** 3).sum()

    together = vmap(tf.func.grad(loss), in_dims)(x, i)
    for b in range(4):
        one = tf.func.grad(loss)(
            x if in_dims[0] is None else x[b], i if in_dims[1] is None else i[b]
        )
        assert tf.allclose(together[b], one, atol=1e-10)


# ---- writes


def test_writes(rng):
    def f(m, x, y):
        z = x.clone()
        z.mul_(2)
        z[0] = y
        z[:, 1] += 1
        w = m.zeros_like(x)
        w[1] = y
        w[0].copy_(y * 2)
        w.t()[2].fill_(7.0)
        return z, w

    mapped(f, rng.standard_normal((4, 3, 5)), rng.standard_normal((4, 5)))


def test_writes_reach_the_argument():
    x = tf.zeros(2, 3)
    vmap(lambda row: row.add_(1.0))(x)
    assert x.tolist() == [[1.0] * 3] * 2


def test_a_shared_tensor_is_not_written():
    out = tf.zeros(3)
    with pytest.raises(RuntimeError, match="same for the whole batch"):
        vmap(lambda row: out.add_(row))(tf.ones(2, 3))
    assert out.tolist() == [0.0] * 3


# ---- axes, trees, chunks


@pytest.mark.parametrize("out_dims", [0, 1, -1, 2])
def test_out_dims(out_dims, rng):
    mapped(lambda m, x: x * 2, rng.standard_normal((4, 3, 5)), out_dims=out_dims)


def test_trees(rng):
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((3, 4))

    def program(m, F, x, y):
        def f(d, c, *, scale):
            return {"p": d["a"] * c, "q": (d["b"][0].sum(), d["a"] + scale)}

        return F.vmap(f, in_dims=({"a": 0, "b": (1,)}, None), out_dims={"p": 1, "q": (0, 0)})(
            {"a": x, "b": (y,)}, 2.0, scale=x
        )

    run(program, x, y)


def test_results_that_do_not_depend_on_the_batch(rng):
    mapped(lambda m, x: (x, m.ones(2)), rng.standard_normal((4, 3)), out_dims=(1, 0))
    assert vmap(lambda x: tf.ones(2), out_dims=None)(tf.ones(3)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("chunk_size", [1, 3, 4, 100])
def test_chunks(chunk_size, rng):
    mapped(lambda m, x: (x * 2, x.sum()), rng.standard_normal((4, 3)), chunk_size=chunk_size,
           out_dims=(1, 0))  # fmt: skip


def test_empty_batch():
    assert tuple(vmap(lambda x: x.sum() * 2)(tf.ones(0, 3)).shape) == (0,)


def test_nested(rng):
    x, y = rng.standard_normal((4, 3, 5)), rng.standard_normal((6, 5))

    def program(m, F, x, y):
        inner = F.vmap(lambda p, q: (p @ q).sum() + p.sum() * q, in_dims=(None, 0))
        return F.vmap(inner, in_dims=(0, None))(x, y)

    run(program, x, y)


def test_deeply_nested(rng):
    def program(m, F, x):
        return F.vmap(F.vmap(F.vmap(lambda t: t.softmax(0)[1])))(x)

    run(program, rng.standard_normal((2, 3, 4, 5)))


# ---- with derivatives

MODELS = {
    "per_sample": lambda m, F, X, w: F.vmap(F.grad(lambda w, x: (w @ x).tanh()), (None, 0))(w, X),
    "outside": lambda m, F, X, w: F.grad(lambda w: F.vmap(lambda x: (w @ x).tanh())(X).sum())(w),
    "both": lambda m, F, X, w: F.grad(
        lambda w: F.vmap(F.grad(lambda x: (w @ x).tanh()))(X).sum())(w),
    "jvp_inside": lambda m, F, X, w: F.vmap(
        lambda x: F.jvp(lambda z: z.cumsum(0) * w, (x,), (w,)))(X),
    "jvp_outside": lambda m, F, X, w: F.jvp(
        lambda w: F.vmap(lambda x: (x * w).softmax(0))(X), (w,), (w,)),
    "hessians": lambda m, F, X, w: F.vmap(F.hessian(lambda x: (x**3).sum() * x.prod()))(X),
    "jacrev": lambda m, F, X, w: F.vmap(F.jacrev(lambda x: x.softmax(0)))(X),
    "jacfwd": lambda m, F, X, w: F.vmap(F.jacfwd(lambda x: x.softmax(0)))(X),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_derivatives(name, rng):
    run(MODELS[name], rng.standard_normal((3, 4)), rng.standard_normal(4))


def test_gradients_of_images(rng):
    def program(m, F, w, x):
        def loss(w, x):
            y = functional(m).conv2d(x[None], w, padding=1)
            return (functional(m).max_pool2d(y.relu(), 2) ** 2).mean()

        return F.vmap(F.grad(loss), in_dims=(None, 0))(w, x)

    run(program, rng.standard_normal((4, 2, 3, 3)), rng.standard_normal((5, 2, 6, 6)))


def test_vmap_over_cotangents():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    rows = vmap(lambda v: tf.autograd.grad(y, x, v, retain_graph=True)[0])(tf.eye(2))
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_results_take_part_in_recording_outside():
    w = tf.tensor([1.0, 2.0], requires_grad=True)
    y = vmap(lambda x: (x * w).sum())(tf.ones(3, 2))
    y.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_gradients_do_not_leave_from_inside():
    w = tf.ones(3, 2, requires_grad=True)

    def f(x):
        (x * x).sum().backward()
        return x

    with pytest.raises(RuntimeError, match="inside vmap"):
        vmap(f)(w)


# ---- random numbers


def test_randomness_is_refused_at_first():
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda x: x + tf.rand(3))(tf.ones(4, 3))
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda x: tf.nn.functional.dropout(x))(tf.ones(4, 3))
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda x: x, randomness="maybe")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 0 + tf.rand(8),
        lambda x: x * 0 + tf.randn(8),
        lambda x: tf.rand_like(x),
        lambda x: tf.nn.functional.dropout(x, 0.5),
        lambda x: tf.empty_like(x).uniform_(),
        lambda x: x.clone().normal_(),
        lambda x: x * tf.randint(0, 100, (8,)),
    ],
)
def test_different_and_same(f):
    x = tf.ones(3, 8)
    y = vmap(f, randomness="different")(x)
    assert not tf.equal(y[0], y[1]) or not tf.equal(y[1], y[2])
    y = vmap(f, randomness="same")(x)
    assert tf.equal(y[0], y[1]) and tf.equal(y[1], y[2])


def test_nested_randomness():
    def inner(x):
        return vmap(lambda t: t * 0 + tf.rand(16), randomness="same")(x)

    y = vmap(inner, randomness="different")(tf.ones(2, 3, 16))
    assert tf.equal(y[0, 0], y[0, 2]) and not tf.equal(y[0, 0], y[1, 0])


def test_different_dropout_has_the_right_gradient():
    def f(x):
        return tf.nn.functional.dropout(x, 0.5).sum()

    g = vmap(tf.func.grad(f), randomness="different")(tf.ones(4, 32))
    assert set(g.flatten().tolist()) == {0.0, 2.0} and not tf.equal(g[0], g[1])


# ---- refusals and fallbacks


def test_values_cannot_steer():
    for read in (bool, float, lambda t: t.item(), lambda t: t.tolist(), lambda t: t.numpy()):
        with pytest.raises(RuntimeError, match="batched"):
            vmap(lambda x, read=read: x * read(x.sum()))(tf.ones(2, 3))


def test_repr_of_a_batched_tensor():
    seen = []
    vmap(lambda x: seen.append(repr(x)) or x)(tf.ones(2, 3))
    assert "vmap" in seen[0] or "batched" in seen[0]


def test_leaked_tensor():
    kept = []
    vmap(lambda x: kept.append(x) or x)(tf.ones(2))
    with pytest.raises(RuntimeError, match="after its vmap"):
        vmap(lambda x: x + kept[0])(tf.ones(2))


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t * 2,
        lambda t: t[0],
        lambda t: t.view(2, 2),
        lambda t: t.detach() + 1,
        lambda t: t.add_(1),
        lambda t: t.zero_(),
        lambda t: t.uniform_(),
        lambda t: t.copy_(tf.zeros(4)),
        lambda t: tf.zeros(4).copy_(t),
        lambda t: tf.zeros(4).add_(t),
        lambda t: t.sum().backward(),
        lambda t: t.__setitem__(0, 1.0),
        lambda t: tf.cat([t, t]),
    ],
)
@pytest.mark.parametrize("double", [False, True])
def test_leaked_tensor_computes_nothing(use, double):
    """Neither reads nor writes the first sample where no vmap is open any more."""
    kept = []
    x = tf.ones(3, 4)
    vmap(lambda x: kept.append(x * 2 if double else x) or x)(x)
    with pytest.raises(RuntimeError, match="after its vmap has returned"):
        use(kept[0])
    assert x.tolist() == [[1.0] * 4] * 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: vmap(lambda x: x, in_dims=None)(x), ValueError, "no argument|in_dims"),
        (lambda x: vmap(lambda x: x, in_dims=3)(x), ValueError, "in_dims is 3"),
        (lambda x: vmap(lambda x: x)(x.sum()), ValueError, "in_dims is 0 for a tensor without dim"),
        (lambda x: vmap(lambda x: x, in_dims=(0, 0))(x), ValueError, "does not fit"),
        (lambda x: vmap(lambda x, y: x)(x, 2.0), ValueError, "only tensors"),
        (lambda x: vmap(lambda x, y: x)(x, x.t()), ValueError, "sizes"),
        (lambda x: vmap(lambda x: 1.0)(x), ValueError, "expected Tensors"),
        (lambda x: vmap(lambda x: x, out_dims=5)(x), IndexError, "out_dims"),
        (lambda x: vmap(lambda x: x, out_dims=None)(x), ValueError, "out_dims is None"),
        (lambda x: vmap(lambda x: x, out_dims=(0, 0))(x), ValueError, "does not fit"),
        (lambda x: vmap(lambda x: x, chunk_size=0)(x), ValueError, "chunk_size"),
        (lambda x: vmap(lambda x: x.nonzero())(x), RuntimeError, "batched"),
        (lambda x: vmap(lambda x: x @ tf.ones(7))(x), RuntimeError, "matmul"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(tf.ones(2, 3))


def test_levels_are_closed_after_errors():
    from tinyfin.core import tensor

    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: 1 // 0)(tf.ones(2))
    assert not tensor.mode() & 32


def test_loop_where_there_is_no_rule(rng):
    from tinyfin.autograd import batching
    from tinyfin.autograd.vmap import by_loop

    x = tf.tensor(rng.standard_normal((3, 4)))
    kept = batching.RULES.pop("tril")
    try:
        with pytest.warns(RuntimeWarning, match="tril has no rule"):
            warnings.simplefilter("always")
            y = vmap(lambda v: tf.outer(v, v).tril())(x)
    finally:
        batching.RULES["tril"] = kept
    assert tf.allclose(y, vmap(lambda v: tf.outer(v, v).tril())(x)) and by_loop


def test_numbers_helper():
    assert numbers(torch.ones(2)).tolist() == [1.0, 1.0]
