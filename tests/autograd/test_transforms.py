"""grad, vjp, jvp, Jacobians and Hessians of functions, nested, against PyTorch's func."""

import pytest
from autograd.both import functional, run, same, torch

import tinyfin as tf

func = tf.func


def f(m, x):
    return (x.sin() * x**2).sum()


def g(m, x):
    return m.tanh(x[:2] @ x[2:]) * x.cumsum(0) + (x[:, None] * x).sum(1)


FIRST = {
    "grad": lambda m, F, x, y, M: F.grad(lambda x: f(m, x))(x),
    "argnums": lambda m, F, x, y, M: F.grad(lambda x, y: (x * y.exp()).sum(), argnums=(0, 1))(x, y),
    "last_argument": lambda m, F, x, y, M: F.grad(lambda x, y: (x * y.exp()).sum(), -1)(x, y),
    "has_aux": lambda m, F, x, y, M: F.grad(lambda x: (f(m, x), {"twice": x * 2}), has_aux=True)(x),
    "grad_and_value": lambda m, F, x, y, M: F.grad_and_value(lambda x: f(m, x))(x),
    "grad_and_value_aux": lambda m, F, x, y, M: F.grad_and_value(
        lambda x: (f(m, x), x * 2), has_aux=True)(x),
    "keywords": lambda m, F, x, y, M: F.grad(lambda x, *, k: (x * k).sum())(x, k=y),
    "trees": lambda m, F, x, y, M: F.grad(
        lambda d: (d["a"] * d["b"][0] ** 2).sum())({"a": x, "b": [y]}),
    "jacrev": lambda m, F, x, y, M: F.jacrev(lambda x: g(m, x))(x),
    "jacfwd": lambda m, F, x, y, M: F.jacfwd(lambda x: g(m, x))(x),
    "jacrev_two": lambda m, F, x, y, M: F.jacrev(
        lambda x, M: (M @ x, (M * x).sum()), argnums=(0, 1))(x, M),
    "jacfwd_two": lambda m, F, x, y, M: F.jacfwd(
        lambda x, M: (M @ x, (M * x).sum()), argnums=(0, 1))(x, M),
    "jacrev_aux": lambda m, F, x, y, M: F.jacrev(lambda x: (g(m, x), x + 1), has_aux=True)(x),
    "jacfwd_aux": lambda m, F, x, y, M: F.jacfwd(lambda x: (g(m, x), x + 1), has_aux=True)(x),
    "jacrev_chunks": lambda m, F, x, y, M: F.jacrev(lambda x: g(m, x), chunk_size=3)(x),
    "jacrev_trees": lambda m, F, x, y, M: F.jacrev(lambda d: {"p": d["x"] * y, "q": d["x"].sum()})({"x": x}),
    "jacrev_scalar": lambda m, F, x, y, M: F.jacrev(lambda x: x * y)(x[0]),
    "jacfwd_scalar": lambda m, F, x, y, M: F.jacfwd(lambda x: x * y)(x[0]),
    "vjp": lambda m, F, x, y, M: (lambda r: (r[0], r[1](y), r[1](y * 2)))(F.vjp(lambda x: g(m, x), x)),
    "vjp_trees": lambda m, F, x, y, M: (lambda r: (r[0], r[1]({"a": y, "b": x})))(
        F.vjp(lambda d: {"a": d[0] * d[1], "b": d[0].exp()}, (x, y))),
    "vjp_aux": lambda m, F, x, y, M: (lambda r: (r[0], r[1](y), r[2]))(
        F.vjp(lambda x: (g(m, x), x * 3), x, has_aux=True)),
    "jvp": lambda m, F, x, y, M: F.jvp(lambda x: g(m, x), (x,), (y,)),
    "jvp_aux": lambda m, F, x, y, M: F.jvp(lambda x: (g(m, x), x * 3), (x,), (y,), has_aux=True),
    "linearize": lambda m, F, x, y, M: (lambda r: (r[0], r[1](y)))(F.linearize(lambda x: g(m, x), x)),
}  # fmt: skip

NESTED = {
    "grad_grad": lambda m, F, x, y, M: F.grad(lambda x: F.grad(lambda x: f(m, x))(x).sum())(x),
    "grad_grad_grad": lambda m, F, x, y, M: F.grad(
        lambda x: F.grad(lambda x: F.grad(lambda x: f(m, x))(x).sum())(x).sum())(x),
    "hessian": lambda m, F, x, y, M: F.hessian(lambda x: f(m, x) + (x @ x) ** 2)(x),
    "hessian_two": lambda m, F, x, y, M: F.hessian(
        lambda x, y: (x * y).prod() + (x**2 * y).sum(), argnums=(0, 1))(x, y),
    "jvp_grad": lambda m, F, x, y, M: F.jvp(F.grad(lambda x: f(m, x)), (x,), (y,)),
    "grad_jvp": lambda m, F, x, y, M: F.grad(
        lambda x: F.jvp(lambda x: g(m, x), (x,), (y,))[1].sum())(x),
    "jvp_jvp": lambda m, F, x, y, M: F.jvp(
        lambda x: F.jvp(lambda x: g(m, x), (x,), (x * y,)), (x,), (y,)),
    "grad_vjp": lambda m, F, x, y, M: F.grad(
        lambda x: F.vjp(lambda x: g(m, x), x)[1](y)[0].sum())(x),
    "grad_vjp_of_cotangent": lambda m, F, x, y, M: F.grad(
        lambda y: (F.vjp(lambda x: g(m, x), x)[1](y)[0] ** 2).sum())(y),
    "closure": lambda m, F, x, y, M: F.grad(
        lambda x: (x * F.grad(lambda y: (x * y * y).sum())(y)).sum())(x),
    "same_point": lambda m, F, x, y, M: F.grad(
        lambda x: (x * F.grad(lambda y: (x * y).sum())(x)).sum())(x),
    "jac_of_jac": lambda m, F, x, y, M: F.jacrev(F.jacrev(lambda x: g(m, x)))(x),
}  # fmt: skip

INNER = {
    "softmax": lambda m, x: x.softmax(0)[1] * x.log_softmax(0).sum(),
    "sort": lambda m, x: (m.sort(x)[0] * x.cumprod(0)).sum() ** 2,
    "prod": lambda m, x: x.prod() * x.amax() + x.var(),
    "index": lambda m, x: (x[m.tensor([0, 0, 2])] ** 3).sum() * x[1:].gather(0, m.tensor([1, 1])).sum(),
    "norm": lambda m, x: (functional(m).layer_norm(x, (4,)) ** 3).sum(),
    "loss": lambda m, x: functional(m).cross_entropy(x * x, m.tensor(1)),
}  # fmt: skip


def points(rng):
    return rng.standard_normal(4), rng.standard_normal(4), rng.standard_normal((3, 4))


def without_history(result):
    for t in torch.utils._pytree.tree_leaves(result):
        assert not isinstance(t, tf.Tensor) or not t.requires_grad


@pytest.mark.parametrize("name", FIRST)
def test_first_order(name, rng):
    without_history(run(FIRST[name], *points(rng)))


@pytest.mark.parametrize("name", NESTED)
def test_nested(name, rng):
    without_history(run(NESTED[name], *points(rng)))


@pytest.mark.parametrize("name", INNER)
@pytest.mark.parametrize("outer", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("inner", ["jacfwd", "jacrev"])
def test_hessians_in_every_order(name, outer, inner, rng):
    """PyTorch's by reverse mode twice: its forward derivative of layer_norm's gradient is not right."""

    def program(m, F, x):
        first, second = (inner, outer) if m is tf else ("jacrev", "jacrev")
        return getattr(F, second)(getattr(F, first)(lambda x: INNER[name](m, x)))(x)

    without_history(run(program, rng.standard_normal(4), tolerance=1e-7))


def test_hvp(rng):
    x, v = (tf.tensor(rng.standard_normal(4)) for _ in range(2))
    gradient, product = func.hvp(lambda x: f(tf, x), (x,), (v,))
    assert tf.allclose(product, func.hessian(lambda x: f(tf, x))(x) @ v)
    assert tf.allclose(gradient, func.grad(lambda x: f(tf, x))(x))
    (_gx, _gv), (hx, hv) = func.hvp(lambda x, y: (x * y * y).sum(), (x, v), (v, x))
    assert tf.allclose(hx, 2 * v * x) and tf.allclose(hv, 2 * v * v + 2 * x * x)


def test_value_and_grad(rng):
    x = tf.tensor(rng.standard_normal(4))
    y, g1 = func.value_and_grad(lambda x: f(tf, x))(x)
    g2, z = func.grad_and_value(lambda x: f(tf, x))(x)
    assert y.item() == z.item() and tf.equal(g1, g2)
    (y, aux), g3 = func.value_and_grad(lambda x: (f(tf, x), x + 1), has_aux=True)(x)
    assert tf.equal(g3, g1) and tf.equal(aux, x + 1)


# ---- the world outside


def test_gradients_flow_to_tensors_outside():
    w = tf.tensor([2.0, 3.0], requires_grad=True)
    x = tf.tensor([1.0, 4.0])
    g = func.grad(lambda x: (w * x * x).sum())(x)
    assert g.requires_grad
    g.sum().backward()
    assert w.grad.tolist() == [2.0, 8.0]


def test_differentiable_arguments():
    x = tf.tensor([1.0, 4.0], requires_grad=True)
    g = func.grad(lambda x: (x**3).sum())(x)
    (h,) = tf.autograd.grad(g.sum(), x)
    assert h.tolist() == [6.0, 24.0]
    y, _push = func.vjp(lambda x: x**3, x)
    assert y.requires_grad


def test_under_no_grad():
    w = tf.tensor([2.0, 3.0], requires_grad=True)
    with tf.no_grad():
        g = func.grad(lambda x: (w * x * x).sum())(tf.tensor([1.0, 4.0]))
        h = func.hessian(lambda x: (w * x * x).sum())(tf.tensor([1.0, 4.0]))
    assert g.tolist() == [4.0, 24.0] and not g.requires_grad
    assert h.tolist() == [[4.0, 0.0], [0.0, 6.0]]


def test_no_grad_inside():
    def part(x):
        with tf.no_grad():
            c = x * x
        return (x * c).sum()

    assert func.grad(part)(tf.tensor([3.0])).tolist() == [9.0]


def test_detach_inside():
    assert func.grad(lambda x: (x * x.detach()).sum())(tf.tensor([3.0])).tolist() == [3.0]


def test_independent_output():
    x = tf.tensor([3.0])
    assert func.grad(lambda x: tf.ones(1).sum())(x).tolist() == [0.0]
    assert func.jacrev(lambda x: tf.ones(2))(x).tolist() == [[0.0], [0.0]]
    assert func.jacfwd(lambda x: tf.ones(2))(x).tolist() == [[0.0], [0.0]]
    with pytest.raises(RuntimeError, match="strict"):
        func.jvp(lambda x: tf.ones(2), (x,), (x,), strict=True)


def test_leaves_outside_are_left_alone():
    w = tf.ones(2, requires_grad=True)
    func.grad(lambda x: (w * x).sum())(tf.ones(2))
    assert w.grad is None


# ---- errors


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: func.grad(lambda x: x)(x), "one element"),
        (lambda x: func.grad(lambda x: 1.0)(x), "one element"),
        (lambda x: func.grad(lambda x: x.sum(), 2)(x), "argnums"),
        (lambda x: func.grad(lambda x, y: x.sum(), (0, 0))(x, x), "twice"),
        (lambda x: func.grad(lambda x: x.sum(), has_aux=True)(x), "has_aux"),
        (lambda x: func.grad(lambda x: x.sum())(x.long()), "dtype"),
        (lambda x: func.jvp(lambda x: x, (x,), (x, x)), "nested"),
        (lambda x: func.jvp(lambda x: x, (x,), (x[:1],)), "shape"),
        (lambda x: func.jvp(lambda x: x, x, x), "tuples"),
        (lambda x: func.vjp(lambda x: x, x)[1](x[:1]), "cotangent"),
        (lambda x: func.vjp(lambda x: (x, x), x)[1](x), "nested"),
        (lambda x: func.jacrev(lambda x: "text")(x), "text"),
    ],
)
def test_errors(call, text):
    with pytest.raises((RuntimeError, TypeError), match=text):
        call(tf.ones(2))


def test_wrong_types():
    with pytest.raises(TypeError, match="Tensors"):
        func.grad(lambda x: x)(1.0)
    with pytest.raises(TypeError, match="argnums"):
        func.grad(lambda x: x.sum(), "x")(tf.ones(1))
    with pytest.raises(ValueError, match="chunk_size"):
        func.jacrev(lambda x: x, chunk_size=0)


# ---- modules as functions


def test_functional_call(rng):
    model = tf.nn.Sequential(tf.nn.Linear(3, 4), tf.nn.Tanh(), tf.nn.Linear(4, 1))
    params = {k: v.detach() for k, v in model.named_parameters()}
    x = tf.tensor(rng.standard_normal((5, 3)), dtype=tf.float32)

    def loss(params, x):
        return (func.functional_call(model, params, (x,)) ** 2).mean()

    grads = func.grad(loss)(params, x)
    (model(x) ** 2).mean().backward()
    for name, p in model.named_parameters():
        assert tf.allclose(grads[name], p.grad, atol=1e-6)
        assert p.requires_grad


def test_functional_call_puts_everything_back():
    model = tf.nn.Linear(2, 2)
    weight = model.weight
    with pytest.raises(RuntimeError):
        func.functional_call(model, {"weight": tf.ones(3, 3)}, (tf.ones(2),))
    assert model.weight is weight
    with pytest.raises(RuntimeError, match="named 'wait'"):
        func.functional_call(model, {"wait": tf.ones(1)}, (tf.ones(2),))
    with pytest.raises(RuntimeError, match="missing"):
        func.functional_call(model, {"weight": tf.ones(2, 2)}, (tf.ones(2),), strict=True)
    with pytest.raises(TypeError, match="weight"):
        func.functional_call(model, {"weight": 1.0}, (tf.ones(2),))
    with pytest.raises(RuntimeError, match="twice"):
        func.functional_call(model, ({"weight": tf.ones(2, 2)},) * 2, (tf.ones(2),))


def test_functional_call_with_tied_weights():
    class Tied(tf.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = tf.nn.Linear(2, 2, bias=False)
            self.b = tf.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    model, new = Tied(), 2 * tf.eye(2)
    x = tf.ones(1, 2)
    assert func.functional_call(model, {"a.weight": new}, (x,)).tolist() == [[4.0, 4.0]]
    apart = func.functional_call(model, {"a.weight": new}, (x,), tie_weights=False)
    assert tf.allclose(apart, model.b(2 * x))


def test_ensemble(rng):
    models = [tf.nn.Linear(3, 2) for _ in range(4)]
    params, buffers = func.stack_module_state(models)
    x = tf.tensor(rng.standard_normal((5, 3)), dtype=tf.float32)

    def one(p, x):
        return func.functional_call(models[0], p, (x,))

    together = func.vmap(one, in_dims=(0, None))(params, x)
    assert buffers == {}
    for i, m in enumerate(models):
        assert tf.allclose(together[i], m(x), atol=1e-6)
    with pytest.raises(RuntimeError):
        func.stack_module_state([])


# ---- autograd.functional


def test_functional_module(rng):
    x, v = rng.standard_normal(4), rng.standard_normal(4)

    def program(m, F, x, v):
        fn = m.autograd.functional
        return (
            fn.vjp(lambda x: g(m, x), x, v), fn.jvp(lambda x: g(m, x), x, v),
            fn.jacobian(lambda x: g(m, x), x), fn.hessian(lambda x: f(m, x), x),
            fn.hvp(lambda x: f(m, x), x, v), fn.vhp(lambda x: f(m, x), x, v),
            fn.jacobian(lambda x, y: (x * y, x.sum()), (x, v)),
            fn.hessian(lambda x, y: (x * y * y).sum(), (x, v)),
            fn.vjp(lambda x, y: (x * y).sum(), (x, v)),
        )  # fmt: skip

    run(program, x, v)


def test_functional_create_graph():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    jac = tf.autograd.functional.jacobian(lambda x: x**3, x, create_graph=True)
    (h,) = tf.autograd.grad(jac.sum(), x)
    assert h.tolist() == [6.0, 12.0]
    assert not tf.autograd.functional.jacobian(lambda x: x**3, x).requires_grad
    with pytest.raises(RuntimeError, match="does not depend"):
        tf.autograd.functional.jacobian(lambda x: tf.ones(1), x, strict=True)


def test_same_compares_trees():
    same({"a": (tf.ones(1),)}, {"a": (torch.ones(1),)})
