"""The reverse walk: accumulation, hooks, freed graphs, long chains."""

import gc
import threading

import pytest

import tinyfin as tf
from tinyfin.autograd import forward_ad


def chain(n, step=1.0):
    """(leaf, result) of n multiplications one after the other."""
    x = tf.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(n):
        y = y * step
    return x, y


def in_small_thread(fn):
    """Runs fn in a thread with a stack of 512 KB and hands on what it raises."""
    errors = []

    def run():
        try:
            fn()
        except BaseException as error:
            errors.append(error)

    old = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    if errors:
        raise errors[0]


# ---- sums and leaves


def test_gradients_add_up():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_a_value_used_twice():
    x = tf.tensor(2.0, requires_grad=True)
    y = x * x
    (y * y + y).backward()
    assert x.grad.item() == 36.0


def test_broadcast_is_summed():
    x = tf.ones(3, requires_grad=True)
    y = tf.ones(2, 3)
    (x * y + x.sum()).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0, 8.0]


def test_dtype_of_the_leaf():
    x = tf.ones(2, dtype=tf.float16, requires_grad=True)
    (x.float() * tf.ones(2, dtype=tf.float64)).sum().backward()
    assert x.grad.dtype is tf.float16


def test_gradient_argument():
    x = tf.ones(2, requires_grad=True)
    (x * 2).backward(tf.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]
    with pytest.raises(RuntimeError, match="shape"):
        (x * 2).backward(tf.ones(3))
    with pytest.raises(RuntimeError, match="scalar"):
        (x * 2).backward()


def test_backward_with_inputs():
    x, w = (tf.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    y = x * w
    y.backward(inputs=[x], retain_graph=True)
    assert x.grad.item() == 3.0 and w.grad is None
    y.backward(inputs=w)
    assert w.grad.item() == 2.0


def test_grad_of_inner_tensors():
    x = tf.tensor(2.0, requires_grad=True)
    y = x * 3
    z = y * y
    gx, gy, gz = tf.autograd.grad(z, [x, y, z])
    assert (gx.item(), gy.item(), gz.item()) == (36.0, 12.0, 1.0)
    assert x.grad is None


def test_grad_of_unused_inputs():
    x, w = (tf.ones(2, requires_grad=True) for _ in range(2))
    y = (x * 2).sum()
    with pytest.raises(RuntimeError, match="allow_unused"):
        tf.autograd.grad(y, [x, w], retain_graph=True)
    assert tf.autograd.grad(y, [x, w], retain_graph=True, allow_unused=True)[1] is None
    assert tf.autograd.grad(y, [w], materialize_grads=True)[0].tolist() == [0.0, 0.0]


def test_only_what_is_asked_for_is_computed():
    seen = []

    class Noisy(tf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.append(1)
            return g

    x, w = (tf.tensor(2.0, requires_grad=True) for _ in range(2))
    y = Noisy.apply(x) * w
    tf.autograd.grad(y, w, retain_graph=True)
    assert not seen
    tf.autograd.grad(y, x)
    assert seen == [1]


def test_several_roots():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    tf.autograd.backward([x.sum(), (x * x).sum(), x], [None, tf.tensor(2.0), tf.ones(2)])
    assert x.grad.tolist() == [6.0, 10.0]


def test_multiple_results():
    x = tf.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, places = x.sort()
    (values * tf.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0] and not places.requires_grad


def test_leaves_of_integers_are_refused():
    with pytest.raises(RuntimeError, match="floating-point"):
        tf.ones(2, dtype=tf.int64, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        tf.ones(1).backward()


def test_frozen_arguments_are_not_saved():
    x = tf.tensor(2.0, requires_grad=True)
    w = tf.tensor(3.0)
    y = x * w
    x2 = x.detach()
    x2.add_(1.0)  # x's value is needed for the gradient of w only, and w is frozen
    y.backward()
    assert x.grad.item() == 3.0


def test_gradients_that_users_hold_are_not_overwritten():
    held = []

    class Keep(tf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            held.append(g * 2)
            return held[-1]

    x = tf.ones(2, requires_grad=True)
    (Keep.apply(x) + x * 10).sum().backward()
    assert held[0].tolist() == [2.0, 2.0] and x.grad.tolist() == [12.0, 12.0]


def test_fresh_gradients_are_taken_over_without_a_copy():
    x = tf.ones(2, requires_grad=True)
    places = []
    x.register_hook(lambda g: places.append(g.data_ptr()))
    x.exp().sum().backward()
    assert x.grad.data_ptr() == places[0]

    class Fresh(tf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            g = g * 2
            places.append(g.data_ptr())
            return g

    y = tf.ones(2, requires_grad=True)
    Fresh.apply(y).sum().backward()
    assert y.grad.data_ptr() == places[1]


# ---- freed graphs and saved tensors


def test_second_walk_needs_retain_graph():
    x = tf.tensor(2.0, requires_grad=True)
    y = x.exp()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_modified_saved_tensor():
    x = tf.tensor([2.0], requires_grad=True)
    w = tf.tensor([3.0])
    y = x * w
    w.add_(1.0)
    with pytest.raises(RuntimeError, match=r"mul: argument 'other'.*modified in place"):
        y.backward()
    z = x.exp()
    out = z * 1
    z.mul_(2.0)
    with pytest.raises(RuntimeError, match="exp: result 0"):
        out.backward()


def test_in_place_with_a_number_saves_nothing():
    x = tf.tensor([2.0], requires_grad=True)
    y = x * 1
    y.mul_(3.0)
    y.mul_(2.0)
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_leaf_cannot_be_written():
    x = tf.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 1.0
    with tf.no_grad():
        x.add_(1.0)
    assert x.tolist() == [2.0, 2.0]


# ---- hooks


def test_hook_on_a_leaf_sees_the_sum_once():
    x = tf.tensor(3.0, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * x + x).backward()
    assert seen == [7.0] and x.grad.item() == 7.0


def test_hook_replaces_the_gradient():
    x = tf.tensor(3.0, requires_grad=True)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    (y * 1).backward(retain_graph=True)
    assert x.grad.item() == 20.0
    handle.remove()
    x.grad = None
    (y * 1).backward()
    assert x.grad.item() == 2.0


def test_hooks_run_for_grad_too():
    x = tf.tensor(3.0, requires_grad=True)
    x.register_hook(lambda g: g * 10)
    assert tf.autograd.grad(x * x + x, x)[0].item() == 70.0


REPLACEMENTS = [
    (object(), TypeError, "returned object, expected a Tensor or None"),
    (tf.ones(7), RuntimeError, r"changed the size of value: it returned shape \(7,\)"),
    (tf.ones(()), RuntimeError, r"changed the size of value: it returned shape \(\)"),
    (tf.ones(3, dtype=tf.int64), RuntimeError, "changed the type of value: it returned .*int64"),
    (
        tf.ones(3, dtype=tf.float64),
        RuntimeError,
        "changed the type of value: it returned .*float64",
    ),
    (tf.ones(3, device="null"), RuntimeError, "changed the type of value: it returned .*null"),
]


@pytest.mark.parametrize("place", ["leaf", "result", "node"])
@pytest.mark.parametrize("returned, kind, text", REPLACEMENTS)
def test_hooks_replace_gradients_by_their_like_only(place, returned, kind, text):
    x = tf.ones(3, requires_grad=True)
    y = x * 2
    if place == "node":
        y.grad_fn.register_hook(lambda results, grads: (returned, None))
    else:
        (x if place == "leaf" else y).register_hook(lambda g: returned)
    with pytest.raises(kind, match=f"^backward: hook '<lambda>' (has )?{text}"):
        y.sum().backward()
    assert x.grad is None
    if place == "leaf":
        with pytest.raises(kind, match=text):
            tf.autograd.grad((x * 2).sum(), x)


@pytest.mark.parametrize(
    "returned, kind, text",
    [
        ((), RuntimeError, "returned 0 gradients, expected 2"),
        ((tf.ones(3),), RuntimeError, "returned 1 gradients, expected 2"),
        ((tf.ones(3),) * 3, RuntimeError, "returned 3 gradients, expected 2"),
        ((tf.ones(3),) * 2, RuntimeError, "in place of a gradient that is None"),
        (tf.ones(3), TypeError, "returned Tensor, expected a tuple of 2 gradients"),
        (5, TypeError, "returned int, expected a tuple of 2 gradients"),
    ],
)
def test_hooks_of_nodes_give_one_gradient_per_input(returned, kind, text):
    x = tf.ones(3, requires_grad=True)
    y = x * tf.ones(3)
    y.grad_fn.register_hook(lambda results, grads: returned)
    with pytest.raises(kind, match=f"^backward: hook '<lambda>' .*{text}"):
        y.sum().backward()


def test_hooks_of_nodes_see_what_the_inputs_get():
    x, w = tf.ones(1, requires_grad=True), tf.ones(2, 3, requires_grad=True)
    y = x * w
    seen = []
    y.grad_fn.register_hook(lambda results, grads: seen.extend(results))
    y.grad_fn.register_hook(lambda results, grads: (results[0] * 5, None))
    y.sum().backward()
    assert [tuple(g.shape) for g in seen] == [(1,), (2, 3)]
    assert x.grad.tolist() == [30.0] and w.grad is None


@pytest.mark.parametrize(
    "given, named", [(1.0, "1.0 of type float"), ([1], "1 of type int"), ([[1.0]], "list")]
)
def test_gradients_are_tensors(given, named):
    y = tf.ones(2, requires_grad=True).sum()
    with pytest.raises(
        TypeError, match=rf"^backward: gradient is .*{named}.*, expected a Tensor or None"
    ):
        tf.autograd.backward(y, given)
    with pytest.raises(
        TypeError, match=rf"^grad: gradient is .*{named}.*, expected a Tensor or None"
    ):
        tf.autograd.grad(y, y, grad_outputs=given)
    with pytest.raises(TypeError, match="^backward: gradient is .*, expected a Tensor or None"):
        y.backward(given)


def test_what_is_differentiated_are_tensors():
    x = tf.ones(1, requires_grad=True)
    with pytest.raises(
        TypeError, match="^grad: got int, expected a Tensor or a sequence of Tensors"
    ):
        tf.autograd.grad(x.sum(), 3)
    with pytest.raises(
        TypeError, match="^backward: got float, expected a Tensor or a sequence of Tensors"
    ):
        x.backward(inputs=2.0)
    with pytest.raises(RuntimeError, match="^backward: the gradient is on null"):
        x.backward(tf.ones(1, device="null"))


def test_data_replaced_after_use_is_an_error():
    x = tf.ones(3, requires_grad=True)
    y = x * 2
    x.data = tf.zeros(7)
    with pytest.raises(RuntimeError, match=r"gradient has shape \(3,\), the leaf \(7,\)"):
        y.sum().backward()
    x = tf.ones(3, requires_grad=True)
    y = x * 2
    y.data = tf.zeros(7)
    with pytest.raises(RuntimeError, match=r"shape \(7,\) came for result 0 of mul, .* \(3,\)"):
        y.sum().backward()


def test_retain_grad_sees_what_other_hooks_left():
    x = tf.tensor(3.0, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 1).backward()
    assert y.grad.item() == 10.0 and y.retains_grad and y.is_leaf is False


def test_retain_grad_follows_writes():
    x = tf.tensor([3.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(5.0)
    y[0] = y[0] * 1
    (y * 7).backward()
    assert y.grad.tolist() == [7.0] and x.grad.tolist() == [70.0]


def test_retain_grad_with_create_graph():
    x = tf.tensor(2.0, requires_grad=True)
    y = x * x
    y.retain_grad()
    (y**3).backward(create_graph=True)
    assert y.grad.item() == 48.0 and y.grad.requires_grad


def test_batched_cotangents():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    (rows,) = tf.autograd.grad(x * x, x, tf.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_post_accumulate_hook():
    x = tf.tensor(3.0, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * x + x).backward()
    (x * 2).backward(inputs=[x])
    assert seen == [7.0, 9.0]
    with pytest.raises(RuntimeError, match="leaves"):
        (x * 1).register_post_accumulate_grad_hook(print)


def test_node_hook():
    x = tf.tensor(3.0, requires_grad=True)
    y = x * 2
    seen = []
    handle = y.grad_fn.register_hook(lambda gx, gy: seen.append((gx[0].item(), gy[0].item())))
    y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert seen == [(2.0, 1.0)]


def test_nodes_name_what_made_them():
    x = tf.ones(2, requires_grad=True)
    y = (x * 2).exp()
    assert y.grad_fn.name() == "exp"
    ((node, number),) = y.grad_fn.next_functions
    assert node.name() == "mul" and number == 0
    assert node.next_functions[0][0] is x


# ---- higher orders


def test_third_derivative():
    x = tf.tensor(2.0, dtype=tf.float64, requires_grad=True)
    y = x**5
    for want in (80.0, 160.0, 240.0, 240.0, 120.0):
        (y,) = tf.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(want)


def test_create_graph_into_grad():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    ((x**3).sum()).backward(create_graph=True)
    assert x.grad.requires_grad
    (g,) = tf.autograd.grad(x.grad.sum(), x)
    assert g.tolist() == [6.0, 12.0]


def test_the_walk_itself_is_not_recorded():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    (x**3).sum().backward()
    assert not x.grad.requires_grad
    assert tf.is_grad_enabled()


def test_nested_walk_inside_a_hook():
    x = tf.tensor(2.0, requires_grad=True)

    def hook(g):
        with tf.enable_grad():
            w = tf.tensor(3.0, requires_grad=True)
            (w * w).backward()
        return g * w.grad

    y = x * 2
    y.register_hook(hook)
    y.backward()
    assert x.grad.item() == 12.0


# ---- long chains


@pytest.mark.slow
def test_million_operations():
    x, y = chain(1_000_000)
    y.backward()
    assert x.grad.item() == 1.0
    del y
    x, y = chain(1_000_000)
    del x, y


def test_long_chain_in_a_small_stack():
    def work():
        x, y = chain(100_000)
        y.backward()
        assert x.grad.item() == 1.0
        del x, y
        x, y = chain(100_000)
        assert tf.autograd.grad(y, x)[0].item() == 1.0
        x, y = chain(100_000)
        del x, y

    in_small_thread(work)


def test_long_chain_with_create_graph_in_a_small_stack():
    def work():
        x = tf.tensor(1.0, dtype=tf.float64, requires_grad=True)
        y = x
        for _ in range(10_000):
            y = y + 1e-5 * y * y
        (g,) = tf.autograd.grad(y, x, create_graph=True)
        (h,) = tf.autograd.grad(g, x)
        assert g.item() > 1 and h.item() > 0

    in_small_thread(work)


def test_long_chains_of_other_kinds_in_a_small_stack():
    class Same(tf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 1.0
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 1.0

    def work():
        x = tf.tensor(1.0, requires_grad=True)
        y = x
        for _ in range(10_000):
            y = Same.apply(y)
        y.backward()
        assert x.grad.item() == 1.0
        y = x * 1
        for _ in range(10_000):
            y.mul_(1.0)
        y.backward()
        y = tf.ones(2) * x
        for _ in range(1_000):
            y[0] *= 1.0
        y.sum().backward()
        with forward_ad.dual_level():
            y = forward_ad.make_dual(x, tf.tensor(2.0))
            for _ in range(5_000):
                y = y * 1.0
            assert forward_ad.unpack_dual(y).tangent.item() == 2.0

    in_small_thread(work)


def test_long_chain_that_is_garbage_in_a_cycle():
    def work():
        x, y = chain(100_000)
        ring = [x, y]
        ring.append(ring)
        del x, y, ring
        gc.collect()

    in_small_thread(work)


def test_wide_graph():
    x = tf.ones(1, requires_grad=True)
    tf.cat([x * float(i) for i in range(2000)]).sum().backward()
    assert x.grad.item() == sum(range(2000))


def test_threads_walk_apart():
    results = [None] * 8

    def work(i):
        x = tf.tensor(float(i), requires_grad=True)
        y = x
        for _ in range(200):
            y = y + x
        y.backward()
        results[i] = x.grad.item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [201.0] * 8
