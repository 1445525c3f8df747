"""Functions of the user, and custom_vjp, under every transformation."""

import gc
import weakref

import pytest

import tinyfin as tf
from tinyfin.autograd import Function, custom_vjp, once_differentiable


class Cube(Function):
    """The old style, with a factor that is not quite the derivative's: 3.5 x^2."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.5 * x * x * g


class Scale(Function):
    """The new style, with jvp, a number and a result that is saved."""

    @staticmethod
    def forward(x, w, power):
        return x.detach() * w.detach() ** power

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, ctx.power = inputs
        ctx.save_for_backward(x, w, output)
        ctx.save_for_forward(x, w)

    @staticmethod
    def backward(ctx, g):
        _x, w, y = ctx.saved_tensors
        return g * w**ctx.power, g * (ctx.power * y / w), None

    @staticmethod
    def jvp(ctx, x_t, w_t, _):
        x, w = ctx.saved_tensors
        return x_t * w**ctx.power + ctx.power * x * w ** (ctx.power - 1) * w_t


class Split(Function):
    """Two results, one without gradient."""

    @staticmethod
    def forward(ctx, x):
        y, i = x * 2, (x > 0).float()
        ctx.mark_non_differentiable(i)
        return y, i

    @staticmethod
    def backward(ctx, g, gi):
        assert gi.tolist() == [0.0, 0.0]
        return g * 2


F64 = tf.float64


def leaf(*values):
    return tf.tensor(values, dtype=F64, requires_grad=True)


def test_both_styles():
    x, w = leaf(1.0, 2.0), leaf(2.0, 3.0)
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [3.5, 14.0]
    x.grad = None
    Scale.apply(x, w, 2).sum().backward()
    assert x.grad.tolist() == [4.0, 9.0] and w.grad.tolist() == [4.0, 12.0]
    assert Cube.apply(x).grad_fn.name() == "Cube"


def test_double_backward():
    x = leaf(1.0, 2.0)
    (g,) = tf.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (h,) = tf.autograd.grad(g.sum(), x)
    assert h.tolist() == [7.0, 14.0]
    w = leaf(2.0, 3.0)
    assert tf.autograd.gradcheck(lambda x, w: Scale.apply(x, w, 3), (x, w), check_forward_ad=True)
    assert tf.autograd.gradgradcheck(
        lambda x, w: Scale.apply(x, w, 3), (x, w), check_fwd_over_rev=True
    )


def test_several_results():
    x = leaf(1.0, -2.0)
    y, i = Split.apply(x)
    assert y.requires_grad and not i.requires_grad and i.tolist() == [1.0, 0.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_needs_input_grad():
    seen = []

    class Look(Function):
        @staticmethod
        def forward(ctx, a, b, c):
            return a * b

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, None

    Look.apply(leaf(1.0), tf.ones(1, dtype=F64), "text").backward()
    assert seen == [(True, False, False)]


def test_missing_gradients():
    class Pair(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(ctx_wants[0])
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            got.append(b)
            return a

    got, ctx_wants = [], [True]
    x = leaf(1.0)
    Pair.apply(x)[0].backward()
    assert got[-1].tolist() == [0.0]
    ctx_wants[0] = False
    Pair.apply(x)[0].backward()
    assert got[-1] is None


def test_argument_returned_as_it_is():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    y.backward()
    assert x.grad.tolist() == [10.0] and x.is_leaf


def test_view_as_a_result():
    class First(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.n = x.shape[0]
            return x[:1]

        @staticmethod
        def backward(ctx, g):
            return tf.cat([g, tf.zeros(ctx.n - 1, dtype=g.dtype)])

    x = leaf(1.0, 2.0)
    First.apply(x * 1).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]


def test_dirty_arguments():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0, 2.0)
    a = x * 1
    y = Double.apply(a)
    assert y is a and a.tolist() == [2.0, 4.0]
    (a * a).sum().backward()
    assert x.grad.tolist() == [8.0, 16.0]
    with pytest.raises(RuntimeError, match="leaf"):
        Double.apply(x)
    b = x * 1
    v = b[:1]
    Double.apply(v)
    tf.autograd.grad(b.sum(), x)


def test_saved_tensors_are_guarded():
    x = leaf(1.0)
    a = x * 1
    y = Cube.apply(a)
    a.add_(1.0)
    with pytest.raises(RuntimeError, match="modified in place"):
        y.backward()
    y = Cube.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    with pytest.raises(TypeError, match="save_for_backward"):

        class Wrong(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)

        Wrong.apply(x)


def test_nothing_is_kept_alive():
    x = leaf(1.0, 2.0)
    y = Scale.apply(x, leaf(1.0, 1.0), 2)
    big = weakref.ref(y)
    gc.collect()
    gc.disable()
    try:
        del y
        assert big() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda g: (g, g), "2 gradients, expected 1"),
        (lambda g: "text", "expected a Tensor"),
        (lambda g: g[:1], "shape"),
    ],
)
def test_bad_gradients(result, text):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return result(g)

    with pytest.raises((RuntimeError, TypeError), match=text):
        Bad.apply(leaf(1.0, 2.0)).sum().backward()


def test_missing_methods():
    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Empty.apply(leaf(1.0))

    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="backward"):
        Half.apply(leaf(1.0)).backward()


def test_broadcast_gradients_are_summed():
    class Add(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            return g, g

    a, b = leaf(1.0, 2.0), leaf(1.0)
    Add.apply(a, b).sum().backward()
    assert b.grad.tolist() == [2.0]


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not tf.is_grad_enabled()
            return g * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    Once.apply(x).backward()
    assert x.grad.tolist() == [6.0]
    (g,) = tf.autograd.grad(Once.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


def test_no_recording_without_need():
    with tf.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad
    assert not Cube.apply(tf.ones(1)).requires_grad


def test_vjp_is_another_name():
    class Other(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 5

    x = leaf(1.0)
    Other.apply(x).backward()
    assert x.grad.tolist() == [5.0]


# ---- under transformations


def test_forward_mode_follows_backward():
    """Without jvp the tangent is the derivative of backward: 3.5, not 3."""
    x, t = tf.tensor([2.0]), tf.tensor([1.0])
    y, moved = tf.func.jvp(Cube.apply, (x,), (t,))
    assert y.tolist() == [8.0] and moved.tolist() == [14.0]


def test_jvp_of_its_own():
    x, w = tf.tensor([2.0]), tf.tensor([3.0])
    y, moved = tf.func.jvp(lambda x, w: Scale.apply(x, w, 2), (x, w), (x, w))
    assert y.tolist() == [18.0] and moved.tolist() == [18.0 + 36.0]


def test_second_order_in_every_order():
    x = tf.tensor([1.0, 2.0], dtype=F64)

    def f(x):
        return (Cube.apply(x) * x).sum()

    want = tf.func.grad(lambda x: tf.func.grad(f)(x).sum())(x)
    forward = tf.func.jvp(tf.func.grad(f), (x,), (tf.ones(2, dtype=F64),))[1]
    assert tf.allclose(forward, want)
    backward = tf.func.grad(lambda x: tf.func.jvp(f, (x,), (tf.ones(2, dtype=F64),))[1])(x)
    assert tf.allclose(backward, want)
    twice = tf.func.jvp(
        lambda x: tf.func.jvp(Cube.apply, (x,), (tf.ones(2, dtype=F64),))[1],
        (x,),
        (tf.ones(2, dtype=F64),),
    )[1]
    assert tf.allclose(twice, 7 * x)


def test_vmap():
    x = tf.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=F64, requires_grad=True)
    w = tf.tensor([2.0, 3.0], dtype=F64, requires_grad=True)
    y = tf.func.vmap(lambda r: Scale.apply(r, w, 2))(x)
    assert tf.equal(y, (x * w**2).detach())
    y.sum().backward()
    assert tf.allclose(x.grad, (w**2).expand(2, 2).detach())
    assert tf.allclose(w.grad, 2 * w.detach() * x.detach().sum(0))


def test_per_sample_gradients():
    x = tf.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=F64)
    g = tf.func.vmap(tf.func.grad(lambda r: Cube.apply(r).sum()))(x)
    assert tf.allclose(g, 3.5 * x * x)
    h = tf.func.vmap(tf.func.hessian(lambda r: Cube.apply(r).sum()))(x)
    assert tf.allclose(h.diagonal(0, 1, 2), 7 * x)
    assert tf.allclose(
        tf.func.vmap(lambda r: tf.func.jvp(Cube.apply, (r,), (r,))[1])(x), 3.5 * x**3
    )
    assert tf.allclose(
        tf.func.jvp(lambda m: tf.func.vmap(Cube.apply)(m), (x,), (x,))[1], 3.5 * x**3
    )


def test_several_results_under_vmap():
    x = tf.tensor([[1.0, -2.0], [3.0, 4.0]])
    y, i = tf.func.vmap(Split.apply)(x)
    assert tf.equal(y, 2 * x) and i.tolist() == [[1.0, 0.0], [1.0, 1.0]]


def test_vmap_of_its_own():
    class Counted(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def vmap(info, in_dims, x):
            seen.append((info.batch_size, info.randomness, in_dims))
            return Counted.apply(x), in_dims[0]

    seen = []
    x = tf.ones(3, 2, requires_grad=True)
    y = tf.func.vmap(Counted.apply, in_dims=1)(x)
    assert seen == [(2, "error", (1,))] and tuple(y.shape) == (2, 3)
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0]] * 3
    g = tf.func.vmap(tf.func.grad(lambda r: Counted.apply(r).sum()))(tf.ones(3, 2))
    assert g.tolist() == [[2.0, 2.0]] * 3


# ---- custom_vjp


def clipped(limit):
    @custom_vjp
    def f(x, w):
        """exp(x) w"""
        return {"y": x.exp() * w}

    def fwd(x, w):
        return {"y": x.exp() * w}, (x.exp(), w, limit)

    def bwd(residuals, g):
        e, w, limit = residuals
        return (g["y"] * w * e).clamp(max=limit), g["y"] * e

    f.defvjp(fwd, bwd)
    return f


def test_custom_vjp():
    f = clipped(2.0)
    x, w = leaf(0.0, 3.0), leaf(1.0, 1.0)
    out = f(x, w)
    assert f.__doc__ == "exp(x) w"
    out["y"].sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]
    assert tf.allclose(w.grad, x.detach().exp())


def test_custom_vjp_under_transformations():
    f = clipped(100.0)
    x, w = tf.tensor([0.5, 1.0], dtype=F64), tf.tensor([1.0, 2.0], dtype=F64)

    def total(x):
        return f(x, w)["y"].sum()

    assert tf.allclose(tf.func.hessian(total)(x).diagonal(), x.exp() * w)
    rows = tf.func.vmap(tf.func.grad(total))(tf.stack([x, 2 * x]))
    assert tf.allclose(rows[1], (2 * x).exp() * w)


def test_custom_vjp_errors():
    @custom_vjp
    def f(x):
        return x

    with pytest.raises(RuntimeError, match="defvjp"):
        f(leaf(1.0))
    f.defvjp(lambda x: (x * 2, None), lambda r, g: (g, g))
    with pytest.raises(RuntimeError, match="2 gradients"):
        f(leaf(1.0)).backward()
    f.defvjp(lambda x: (x * 2, None), lambda r, g: (None,))
    x = leaf(1.0)
    f(x).backward()
    assert x.grad is None


@pytest.mark.parametrize("count", [255, 256, 300, 70000])
def test_results_beyond_any_byte(count):
    class Many(Function):
        @staticmethod
        def forward(ctx, x):
            return tuple(x * i for i in range(count))

        @staticmethod
        def backward(ctx, *grads):
            ctx.which = [i for i, g in enumerate(grads) if (g != 0).any()]
            return sum(grads[i] * i for i in ctx.which)

    x = tf.ones(2, requires_grad=True)
    results = Many.apply(x)
    assert results[-1].output_nr == count - 1
    (results[-1].sum() + tf.cat(results[-40:-20]).sum()).backward()
    assert x.grad.tolist() == [sum(range(count - 40, count - 20)) + count - 1.0] * 2
