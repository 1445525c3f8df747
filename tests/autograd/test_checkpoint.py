"""checkpoint and hooks on saved tensors."""

import pytest

import tinyfin as tf
from tinyfin.autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential
from tinyfin.autograd.graph import save_on_cpu, saved_tensors_hooks


def block(calls, w):
    def run(x, *, scale=1.0):
        calls.append(1)
        y = (x @ w).tanh()
        return (y * y.exp()).sum(1, keepdim=True) * y * scale

    return run


@pytest.fixture
def parts(rng):
    w = tf.tensor(rng.standard_normal((3, 3)), requires_grad=True)
    x = tf.tensor(rng.standard_normal((4, 3)), requires_grad=True)
    return w, x


def gradients(f, *leaves):
    for t in leaves:
        t.grad = None
    f().sum().backward()
    return [t.grad for t in leaves]


@pytest.mark.parametrize("reentrant", [None, True, False])
def test_same_gradients(parts, reentrant):
    w, x = parts
    calls = []
    run = block(calls, w)
    want = gradients(lambda: run(x * 1, scale=2.0) ** 2, w, x)
    calls.clear()
    found = gradients(lambda: checkpoint(run, x * 1, scale=2.0, use_reentrant=reentrant) ** 2, w, x)
    assert len(calls) == 2
    assert all(tf.equal(a, b) for a, b in zip(want, found))


def test_through_grad_with_respect_to_parameters(parts):
    w, x = parts
    run = block([], w)
    (want,) = tf.autograd.grad(run(x).sum(), w)
    (found,) = tf.autograd.grad(checkpoint(run, x).sum(), w)
    assert tf.equal(want, found)


def test_nothing_is_kept(parts):
    w, x = parts
    seen = []
    with saved_tensors_hooks(lambda t: seen.append(tuple(t.shape)) or t, lambda t: t):
        checkpoint(block([], w), x * 1)
    assert seen == [(4, 3)] or seen == [(4, 3), (4, 3)]  # the argument, and what made it


def test_double_backward(parts):
    w, x = parts
    run = block([], w)

    def second(f):
        (g,) = tf.autograd.grad((f(x * 1) ** 2).sum(), x, create_graph=True)
        return tf.autograd.grad((g * g).sum(), [x, w])

    for a, b in zip(second(run), second(lambda t: checkpoint(run, t))):
        assert tf.allclose(a, b)


def test_second_walk(parts):
    w, x = parts
    y = checkpoint(block([], w), x * 1).sum()
    y.backward(retain_graph=True)
    first = w.grad.clone()
    w.grad = None
    y.backward()
    assert tf.equal(first, w.grad)
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_nested(parts):
    w, x = parts
    inner_calls, outer_calls = [], []
    inner, other = block(inner_calls, w), block(outer_calls, w)

    def outer(t):
        return checkpoint(inner, checkpoint(other, t) * 2).sin()

    want = gradients(lambda: inner(other(x * 1) * 2).sin(), w, x)
    inner_calls.clear()
    outer_calls.clear()
    found = gradients(lambda: checkpoint(outer, x * 1), w, x)
    assert all(tf.equal(a, b) for a, b in zip(want, found))
    deep = gradients(lambda: checkpoint(lambda t: checkpoint(outer, t), x * 1), w, x)
    assert all(tf.equal(a, b) for a, b in zip(want, deep))


def test_random_numbers_are_drawn_again(parts):
    w, x = parts

    def noisy(t):
        return tf.nn.functional.dropout(t @ w, 0.5) * tf.rand(4, 3, dtype=tf.float64)

    tf.manual_seed(3)
    want = gradients(lambda: noisy(x * 1), w, x)
    after = tf.rand(1)
    tf.manual_seed(3)
    found = gradients(lambda: checkpoint(noisy, x * 1), w, x)
    assert all(tf.equal(a, b) for a, b in zip(want, found))
    assert tf.equal(after, tf.rand(1))


def test_several_results_and_arguments(parts):
    w, x = parts

    def f(pair, k):
        return {"a": pair[0] * k, "b": (pair[1].exp(), None)}

    out = checkpoint(f, (x * 1, w * 1), 3)
    (out["a"].sum() + out["b"][0].sum()).backward()
    assert tf.allclose(x.grad, tf.full((4, 3), 3.0, dtype=tf.float64))
    assert tf.allclose(w.grad, w.detach().exp())


def test_functions_inside(parts):
    w, x = parts

    class Square(tf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * 2 * x + 0 * y

    want = gradients(lambda: Square.apply((x * 1) @ w), w, x)
    found = gradients(lambda: checkpoint(lambda t: Square.apply(t @ w), x * 1), w, x)
    assert all(tf.allclose(a, b) for a, b in zip(want, found))


def test_changes_are_noticed(parts):
    _w, x = parts
    state = [1]

    def fickle(t):
        state[0] += 1
        return (t[: state[0]] * 2).exp()

    y = checkpoint(fickle, x * 1)
    with pytest.raises(CheckpointError, match="second run"):
        y.sum().backward()

    def forgetful(t):
        state[0] += 1
        return t.exp().sin() if state[0] % 2 else t * 1

    state[0] = 0
    y = checkpoint(forgetful, x * 1)
    with pytest.raises(CheckpointError, match="fewer"):
        y.sum().backward()


def test_argument_written_in_between(parts):
    w, x = parts
    a = x * 1
    y = checkpoint(block([], w), a)
    a.add_(1.0)
    with pytest.raises(RuntimeError, match="modified in place"):
        y.sum().backward()


def test_without_recording(parts):
    w, x = parts
    with tf.no_grad():
        assert not checkpoint(block([], w), x).requires_grad
    assert not checkpoint(lambda t: t.exp(), x.detach()).requires_grad


def test_context_fn(parts):
    _w, x = parts
    seen = []

    class Note:
        def __init__(self, what):
            self.what = what

        def __enter__(self):
            seen.append(self.what)

        def __exit__(self, *exc):
            seen.append(None)

    y = checkpoint(lambda t: t.exp(), x, context_fn=lambda: (Note("first"), Note("second")))
    assert seen == ["first", None]
    y.sum().backward()
    assert seen == ["first", None, "second", None]
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda t: t, x, determinism_check="no")


def test_under_transformations(parts):
    """The walk comes after the levels of vmap and forward mode were closed."""
    w, x = (t.detach() for t in parts)
    t = x.cos()

    def f(w, x):
        return ((x @ w).tanh() * x.exp()).sum()

    def saved(w, x):
        return checkpoint(lambda a, b: f(a * 1, b * 1), w * 1, x * 1)

    func = tf.func
    for transform in (
        lambda f: func.grad(lambda w: func.vmap(lambda r: f(w, r))(x).sum())(w),
        lambda f: func.vmap(func.grad(f), (None, 0))(w, x),
        lambda f: func.grad(lambda w: func.jvp(lambda x: f(w, x), (x,), (t,))[1])(w),
        lambda f: func.jvp(func.grad(lambda x: f(w, x)), (x,), (t,))[1],
        lambda f: func.hessian(lambda r: f(w, r))(x[0]),
        lambda f: func.jacrev(lambda w: func.vmap(lambda r: f(w, r))(x))(w),
    ):
        assert tf.allclose(transform(saved), transform(f), atol=1e-10)


def test_sequential(rng):
    layers = [tf.nn.Linear(4, 4) for _ in range(5)]
    model = tf.nn.Sequential(*layers)
    x = tf.tensor(rng.standard_normal((2, 4)), dtype=tf.float32, requires_grad=True)
    want = gradients(lambda: model(x), x, layers[0].weight)
    for segments in (1, 2, 5):
        found = gradients(
            lambda n=segments: checkpoint_sequential(model, n, x), x, layers[0].weight
        )
        assert all(tf.equal(a, b) for a, b in zip(want, found))
    with pytest.raises(ValueError, match="segments"):
        checkpoint_sequential(model, 6, x)
    from tinyfin.utils.checkpoint import checkpoint as same

    assert same is checkpoint


def test_long_chain():
    x = tf.tensor(0.5, dtype=tf.float64, requires_grad=True)
    y = x
    for _ in range(500):
        y = checkpoint(lambda t: t.sin() * 1.0 + 0.1, y)
    y.backward()
    assert 0 < x.grad.item() < 1


# ---- hooks on saved tensors


def test_hooks_see_what_is_saved():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    a = x * 1
    packed, unpacked = [], []

    def pack(t):
        assert not t.requires_grad and not tf.is_grad_enabled()
        packed.append(t.tolist())
        return len(packed) - 1

    def unpack(k):
        unpacked.append(k)
        return tf.tensor(packed[k])

    with saved_tensors_hooks(pack, unpack):
        y = (a * a).exp()
    y.sum().backward()
    assert len(packed) == 3 and sorted(unpacked) == [0, 1, 2]
    assert tf.allclose(x.grad, (2 * x * (x * x).exp()).detach())


def test_hooks_with_double_backward():
    x = tf.tensor([1.0, 2.0], dtype=tf.float64, requires_grad=True)
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = ((x * 1).exp() * (x * 2)).sum()
        (g,) = tf.autograd.grad(y, x, create_graph=True)
        (h,) = tf.autograd.grad(g.sum(), x)
    want = (4 + 2 * x) * x.exp()
    assert tf.allclose(h, want.detach())


def test_innermost_hooks_win_and_leave():
    x = tf.tensor([1.0], requires_grad=True)
    seen = []

    def tag(name):
        return saved_tensors_hooks(lambda t: seen.append(name) or t, lambda t: t)

    with tag("outer"):
        (x * 1).exp()
        with tag("inner"):
            (x * 1).exp()
        (x * 1).exp()
    (x * 1).exp()
    assert seen == ["outer", "inner", "outer"]


def test_bad_unpack():
    x = tf.tensor([1.0], requires_grad=True)
    with saved_tensors_hooks(lambda t: t, lambda t: None):
        y = (x * 1).exp()
    with pytest.raises(TypeError, match="unpack"):
        y.backward()


def test_save_on_cpu():
    x = tf.tensor([1.0], requires_grad=True)
    with save_on_cpu():
        y = (x * 1).exp()
    y.backward()
    assert tf.allclose(x.grad, x.detach().exp())


def test_old_value_of_an_in_place_call_is_packed():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        a = x * 1
        a.mul_(x)
    a.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
