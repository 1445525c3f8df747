"""Forward mode: duals through rows, views and writes; nesting with itself and with reverse mode."""

import threading

import pytest
from autograd.both import functional, run, torch

import tinyfin as tf
from tinyfin.autograd import forward_ad as fwd

F64 = tf.float64


def vector(*values):
    return tf.tensor(values, dtype=F64)


def push(f, x, t):
    """(primal, tangent) of f at x along t."""
    with fwd.dual_level():
        return fwd.unpack_dual(f(fwd.make_dual(x, t)))


# ---- the API


def test_make_and_unpack():
    x, t = vector(1.0, 2.0), vector(3.0, 4.0)
    with fwd.dual_level() as level:
        d = fwd.make_dual(x, t)
        assert fwd.unpack_dual(d).primal is x
        assert fwd.unpack_dual(d).tangent.tolist() == [3.0, 4.0]
        assert fwd.unpack_dual(x).tangent is None
        assert fwd.unpack_dual(d, level=level).tangent is not None
        assert d.tolist() == [1.0, 2.0]
    assert fwd.unpack_dual(d).tangent is None
    assert (d * 2).tolist() == [2.0, 4.0]


def test_enter_and_exit():
    fwd.enter_dual_level()
    d = fwd.make_dual(vector(1.0), vector(1.0))
    assert fwd.unpack_dual(d * 3).tangent.tolist() == [3.0]
    fwd.exit_dual_level()
    with pytest.raises(RuntimeError, match="no level"):
        fwd.exit_dual_level()
    with pytest.raises(RuntimeError, match="no level"):
        fwd.make_dual(vector(1.0), vector(1.0))


def test_bad_arguments():
    with fwd.dual_level():
        with pytest.raises(RuntimeError, match="shape"):
            fwd.make_dual(vector(1.0), vector(1.0, 2.0))
        with pytest.raises(TypeError, match="tangent"):
            fwd.make_dual(vector(1.0), 1.0)
        with pytest.raises(ValueError, match="int64"):
            fwd.make_dual(tf.tensor([1]), tf.tensor([1]))


def test_the_bit_is_set_only_while_a_level_is_open():
    from tinyfin.core import tensor

    assert not tensor.mode() & 16
    with fwd.dual_level():
        assert tensor.mode() & 16
        with fwd.dual_level():
            pass
        assert tensor.mode() & 16
    assert not tensor.mode() & 16
    with pytest.raises(ValueError), fwd.dual_level():
        raise ValueError
    assert not tensor.mode() & 16


def test_levels_belong_to_a_thread():
    seen = []
    with fwd.dual_level():
        d = fwd.make_dual(vector(2.0), vector(1.0))
        t = threading.Thread(target=lambda: seen.append((d * d).tolist()))
        t.start()
        t.join()
    assert seen == [[4.0]]


def test_tangent_of_another_dtype():
    with fwd.dual_level():
        d = fwd.make_dual(tf.ones(2), vector(1.0, 2.0))
        assert fwd.unpack_dual(d).tangent.dtype is tf.float32


def test_constants_have_no_tangent():
    assert push(lambda x: x > 0, vector(1.0), vector(1.0)).tangent is None
    assert push(lambda x: x.floor(), vector(1.5), vector(1.0)).tangent is None
    assert push(lambda x: x.detach(), vector(1.5), vector(1.0)).tangent is None
    assert push(lambda x: x.argmax(), vector(1.5), vector(1.0)).tangent is None


# ---- against PyTorch

PROGRAMS = {
    "polynomial": lambda m, x, y: x**3 - 2 * x + y * x,
    "division": lambda m, x, y: x / (y * y + 1) + 1 / (x * x + 2),
    "elementary": lambda m, x, y: (x.sin() + y.cos()).exp() * x.tanh(),
    "power": lambda m, x, y: (x.abs() + 1) ** y + 2**x,
    "extrema": lambda m, x, y: m.maximum(x, y) + m.minimum(x, y * 2) + x.clamp(-0.5, 0.5),
    "where": lambda m, x, y: m.where(x > 0, x * y, y.sin()),
    "broadcast": lambda m, x, y: x[:, None] * y + (x[None] - y[:, None]),
    "reductions": lambda m, x, y: x.sum() + y.mean() * x.prod() + x.var() + x.std() * x.amax(),
    "softmax": lambda m, x, y: x.softmax(0) * y.log_softmax(0) + x.logsumexp(0),
    "scans": lambda m, x, y: x.cumsum(0) * y.cumprod(0),
    "matmul": lambda m, x, y: m.outer(x, y) @ x + (x @ y),
    "views": lambda m, x, y: x.reshape(2, 2).t()[0] * y.view(2, 2)[:, 1].flip(0),
    "expand": lambda m, x, y: x.expand(3, 4).sum(0) * y.unsqueeze(0).squeeze(0),
    "join": lambda m, x, y: m.cat([x, y * x]) * m.stack([x, y]).reshape(-1),
    "sort": lambda m, x, y: m.sort(x)[0] * y.topk(4)[0],
    "gather": lambda m, x, y: x[m.tensor([0, 0, 3])] * y.gather(0, m.tensor([1, 2, 1])),
    "scatter": lambda m, x, y: x.scatter_add(0, m.tensor([0, 0]), y[:2] * 3),
    "index_add": lambda m, x, y: x.index_add(0, m.tensor([1, 1]), y[:2]),
    "cast": lambda m, x, y: (x.float() * y.float()).double(),
    "layer_norm": lambda m, x, y: functional(m).layer_norm(x, (4,), y, x),
    "linear": lambda m, x, y: functional(m).linear(x, m.outer(y, x), y),
    "activations": lambda m, x, y: (
        functional(m).gelu(x) + functional(m).silu(y) + functional(m).softplus(x)
        + functional(m).relu(y) + functional(m).elu(x) + functional(m).leaky_relu(y)
    ),
    "cross_entropy": lambda m, x, y: functional(m).cross_entropy(x * y, m.tensor(2)),
    "losses": lambda m, x, y: functional(m).mse_loss(x, y) + functional(m).huber_loss(x, y),
    "attention": lambda m, x, y: functional(m).scaled_dot_product_attention(
        x.reshape(1, 2, 2), y.reshape(1, 2, 2), x.reshape(1, 2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_jvp_agrees(name, rng):
    f = PROGRAMS[name]
    x, y, u, v = (rng.standard_normal(4) for _ in range(4))
    run(
        lambda m, func, x, y, u, v: func.jvp(lambda a, b: f(m, a, b), (x, y), (u, v)),
        x, y, u, v, tolerance=1e-6 if name == "cast" else 1e-8,
    )  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_nestings_agree(name, rng):
    """Forward over forward, forward over reverse and reverse over forward give one Hessian product."""
    if name == "cast":
        pytest.skip("float32 inside")
    f = PROGRAMS[name]
    x, y, u, v = (vector(*rng.standard_normal(4)) for _ in range(4))
    grad, jvp = tf.func.grad, tf.func.jvp

    def total(a, b):
        return (f(tf, a, b) ** 2).sum()

    def along(a, b):
        return jvp(total, (a, b), (u, v))[1]

    fr = jvp(grad(total, (0, 1)), (x, y), (u, v))[1]
    rf = grad(along, (0, 1))(x, y)
    rr = grad(lambda a, b: sum((g * t).sum() for g, t in zip(grad(total, (0, 1))(a, b), (u, v))),
              (0, 1))(x, y)  # fmt: skip
    ff = jvp(along, (x, y), (u, v))[1]
    for a, b, c in zip(fr, rf, rr):
        assert tf.allclose(a, b, rtol=1e-7, atol=1e-9) and tf.allclose(a, c, rtol=1e-7, atol=1e-9)
    assert ff.item() == pytest.approx(((fr[0] * u).sum() + (fr[1] * v).sum()).item(), rel=1e-7)


def conv(m, x, w, b):
    return functional(m).conv2d(x, w, b, stride=2, padding=1)


def test_convolution_and_pooling(rng):
    arrays = [rng.standard_normal(s) for s in ((2, 3, 6, 6), (4, 3, 3, 3), (4,))] * 2

    def program(m, func, x, w, b, u, v, t):
        def f(x, w, b):
            y = conv(m, x, w, b)
            return functional(m).max_pool2d(y, 2) + functional(m).avg_pool2d(y, 2)

        return func.jvp(f, (x, w, b), (u, v, t))

    run(program, *arrays)


def test_batch_norm(rng):
    def program(m, func, x, t):
        return func.jvp(
            lambda x: functional(m).batch_norm(x, None, None, training=True) ** 2, (x,), (t,)
        )

    run(program, rng.standard_normal((5, 3)), rng.standard_normal((5, 3)))


# ---- PyTorch's own style of nesting


def test_reverse_over_forward_by_hand():
    x = vector(1.0, 2.0).requires_grad_()
    with fwd.dual_level():
        y = fwd.unpack_dual((fwd.make_dual(x, vector(1.0, 1.0)) ** 3).sum())
    assert tf.autograd.grad(y.primal, x, retain_graph=True)[0].tolist() == [3.0, 12.0]
    assert tf.autograd.grad(y.tangent, x)[0].tolist() == [6.0, 12.0]


def test_forward_over_reverse_by_hand():
    x = vector(1.0, 2.0).requires_grad_()
    with fwd.dual_level():
        d = fwd.make_dual(x, vector(1.0, 1.0))
        (g,) = tf.autograd.grad((d**3).sum(), d)
        assert fwd.unpack_dual(g).tangent.tolist() == [6.0, 12.0]
        (g,) = tf.autograd.grad((d**3).sum(), x)
        assert fwd.unpack_dual(g).tangent.tolist() == [6.0, 12.0]


def test_perturbations_are_not_confused():
    inner = tf.func.jvp
    one = tf.tensor(1.0)

    def f(x):
        return x * inner(lambda y: x + y, (one,), (one,))[1]

    assert inner(f, (one,), (one,))[1].item() == 1.0


# ---- writes


def fill_rows(m, x):
    out = m.zeros(3, 4, dtype=x.dtype)
    out[:, 1] = x[:3] * 2
    out[0] = x
    out[1:].add_(x)
    return out


def written_view(m, x):
    y = x * 1
    v = y[1:]
    v.add_(x[:-1])
    y[0] = y[1] * 3
    return v.sum() + (y * y).sum()


def base_after_view(m, x):
    y = m.zeros(4, dtype=x.dtype)
    v = y.view(2, 2)
    w = v[0]
    y.copy_(x)
    v.t().add_(x[:2])
    return (w * w).sum() + v.sum(0).prod()


def masked(m, x):
    y = x * x
    y.masked_fill_(x > 0, 0.5)
    y[x.detach() < 0] = 0.25
    return y + x


def zeroed(m, x):
    y = x * 2
    y[:2].zero_()
    z = y.clone()
    z.fill_(0.0)
    return y + z


def overwritten(m, x):
    y = x.clone()
    y.copy_(m.ones(4, dtype=x.dtype))
    y[1:3] += x[1:3]
    return y


def moved_onto_itself(m, x):
    y = x.clone()
    y[1:] = y[:-1].clone()
    return y.sin_().mul_(x)


WRITES = [fill_rows, written_view, base_after_view, masked, zeroed, overwritten, moved_onto_itself]


@pytest.mark.parametrize("f", WRITES, ids=lambda f: f.__name__)
def test_writes(f, rng):
    x, t = rng.standard_normal(4), rng.standard_normal(4)
    run(lambda m, func, x, t: func.jvp(lambda a: f(m, a), (x,), (t,)), x, t)


@pytest.mark.parametrize("f", WRITES[:-1], ids=lambda f: f.__name__)
def test_second_order_through_writes(f, rng):
    x, t = (vector(*rng.standard_normal(4)) for _ in range(2))

    def total(a):
        return (f(tf, a) ** 3).sum()

    fr = tf.func.jvp(tf.func.grad(total), (x,), (t,))[1]
    rf = tf.func.grad(lambda a: tf.func.jvp(total, (a,), (t,))[1])(x)
    assert tf.allclose(fr, rf, rtol=1e-8, atol=1e-10)


def test_write_that_makes_a_plain_tensor_dual():
    buffer = tf.zeros(3, dtype=F64)
    with fwd.dual_level():
        buffer[1] = fwd.make_dual(vector(5.0), vector(7.0))[0]
        assert fwd.unpack_dual(buffer).tangent.tolist() == [0.0, 7.0, 0.0]
    assert buffer.tolist() == [0.0, 5.0, 0.0] and (buffer * 2).tolist() == [0.0, 10.0, 0.0]


def test_tangents_do_not_share_memory():
    with fwd.dual_level():
        x = fwd.make_dual(vector(1.0, 2.0), vector(1.0, 1.0))
        y = x + 1
        y.mul_(5.0)
        assert fwd.unpack_dual(x).tangent.tolist() == [1.0, 1.0]
        assert fwd.unpack_dual(y).tangent.tolist() == [5.0, 5.0]


def test_strided_primal():
    base = tf.arange(12, dtype=F64).reshape(3, 4)
    x = base.t()[::2]
    t = tf.ones(2, 3, dtype=F64)
    _primal, tangent = push(lambda d: (d.t()[0] * d[:, 1]).sum(), x, t)
    assert tangent.item() == ((x.t()[0] + x[:, 1]).sum()).item()


# ---- rows without a rule of their own


def test_transposed_vjp():
    """prod has neither partial derivatives nor a rule: its tangent is the derivative of its gradient."""
    x, t = vector(2.0, 0.0, 3.0), vector(1.0, 1.0, 1.0)
    primal, tangent = push(lambda d: d.prod(), x, t)
    assert primal.item() == 0.0 and tangent.item() == 6.0 and not tangent.requires_grad


def test_under_no_grad():
    with tf.no_grad():
        _primal, tangent = push(lambda d: d.prod() + d.sum(), vector(2.0, 3.0), vector(1.0, 1.0))
    assert tangent.item() == 7.0


def test_results_carry_no_history():
    x = vector(1.0, 2.0)
    with fwd.dual_level():
        y = fwd.unpack_dual(fwd.make_dual(x, x).cumprod(0).sort()[0])
    assert not y.primal.requires_grad and not y.tangent.requires_grad


def test_module(rng):
    model = tf.nn.Sequential(tf.nn.Linear(4, 8), tf.nn.Tanh(), tf.nn.Linear(8, 2))
    x = tf.tensor(rng.standard_normal((5, 4)), dtype=tf.float32)
    t = tf.tensor(rng.standard_normal((5, 4)), dtype=tf.float32)
    _, tangent = push(model, x, t)
    other = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    other.load_state_dict({k: torch.tensor(v.tolist()) for k, v in model.state_dict().items()})
    want = torch.func.jvp(other, (torch.tensor(x.tolist()),), (torch.tensor(t.tolist()),))[1]
    assert tf.allclose(tangent.detach(), tf.tensor(want.tolist()), atol=1e-5)
