"""Gradients written over gradients: where nobody else sees it, with the same bits, and compared where that is asked."""

import gc
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest
import samples
from pooling import needs_pool

import tinyfin as tf
from tinyfin.autograd import slow
from tinyfin.core import exchange, tensor
from tinyfin.ops import table

N = 1 << 14
OVER = {
    f"{name} {i}": rule
    for name, op in table.OPS.items()
    if op.plain is None
    for i, rule in enumerate(op.vjp or ())
    if rule is not None and rule.over is not None and op.partials is None
}
"""Rules that only call an elementwise row, whose result may take the cotangent's place."""


def bits(t):
    """The elements' bytes."""
    return exchange.to_bytes(t.detach().contiguous())


def requests():
    """How many blocks were asked for so far."""
    return tf.memory_stats()["requests"]


def blocks_of_backward(y):
    """How many blocks of memory the walk from y asks for."""
    before = requests()
    y.backward()
    return requests() - before


def leaf():
    """A leaf with different elements."""
    return tf.linspace(-2, 2, N).requires_grad_()


# ---- where memory is reused

counts = pytest.mark.skipif(tensor.mode() & 256 != 0, reason="comparing takes memory of its own")


@counts
@pytest.mark.parametrize(
    "step",
    [tf.relu, tf.sigmoid, tf.exp, tf.neg, tf.nn.functional.gelu, tf.nn.functional.silu]
    + [lambda x: x * 0.5, lambda x: 1 - x, lambda x: x * x.detach(), lambda x: x + 1],
)
def test_a_chain_needs_no_more_gradients(step):
    def count(n):
        y = leaf()
        for _ in range(n):
            y = step(y)
        return blocks_of_backward((y * tf.ones(N)).sum())

    assert count(12) == count(2), "a link of the chain took memory of its own"


@counts
def test_gradients_that_meet_take_no_third_block():
    def count(n):
        y = leaf() * 1
        return blocks_of_backward((sum(y * (k + 2.0) for k in range(n)) * tf.ones(N)).sum())

    assert count(12) - count(6) == 6  # one for each product, none for the sums


def test_leaves_take_gradients_over():
    x = leaf()
    (x * tf.ones(N)).sum().backward()
    live = tf.memory_stats()["live"]
    y = leaf()
    assert tf.memory_stats()["live"] == live + y.nbytes
    (y * tf.ones(N)).sum().backward()
    assert tf.memory_stats()["live"] == live + 2 * y.nbytes


@counts
def test_peak_of_a_deep_network():
    x = leaf()
    y = x
    for _ in range(30):
        y = (y * 0.9).relu()
    y = (y * tf.ones(N)).sum()
    tf.reset_peak_memory_stats()
    live = tf.memory_stats()["live"]
    y.backward()
    assert tf.memory_stats()["peak"] - live < 2.5 * x.nbytes


# ---- the same bits


CAPTURE = 64
"""A bit of the mode word that nothing answers yet; while it is set, nothing is written over."""


def gradients(name, sample, bit):
    """The gradients of one sample's weighted sum, with a mode bit set during the walk."""
    arrays, leaves = samples.arrays(sample), []
    for k, a in enumerate(arrays):
        t = samples.tensor(a, "float32")
        if a.dtype == np.float64 and k not in sample.fixed:
            t.requires_grad_()
            leaves.append(t)
        arrays[k] = t
    # the products give each argument's gradient a way to go on
    args, kwargs = samples.with_arrays(sample, [t * 1 if t.requires_grad else t for t in arrays])
    tf.manual_seed(3)
    outs = [t for t in samples.flat(samples.subjects()[name](*args, **kwargs)) if t.requires_grad]
    if not outs:
        return []
    total = sum((t * tf.linspace(0.5, 2, t.numel()).reshape(t.shape)).neg().sum() for t in outs)
    tensor.set_mode(bit, CAPTURE)
    try:
        found = tf.autograd.grad(total, leaves, allow_unused=True)
    finally:
        tensor.set_mode(0, CAPTURE)
    return [None if g is None else samples.bits(g) for g in found]


def has_gradients(name):
    row = table.TABLE[name]
    return not (row.nondiff or row.mutates) and "float32" in samples.dtypes_of(name)


@pytest.mark.parametrize(
    "name", [n for n in samples.subjects() if n in table.TABLE and has_gradients(n)]
)
def test_the_same_bits_as_without(name):
    for sample in samples.samples_of(name):
        if sample.grad and samples.applies(sample, "float32"):
            assert gradients(name, sample, 0) == gradients(name, sample, CAPTURE), sample


# ---- what others hold stays as it is


def test_hooks_keep_what_they_were_given():
    seen = []
    x = leaf()
    y = x * 2
    z = y.sigmoid()
    z.register_hook(seen.append)
    y.register_hook(lambda g: seen.append(g.detach()))
    (z * tf.full((N,), 3.0)).sum().backward()
    assert bits(seen[0]) == bits(tf.full((N,), 3.0))
    assert (seen[1] - 3.0 * z * (1 - z)).abs().max().item() < 1e-6
    assert bits(x.grad) == bits(seen[1] * 2)


def test_windows_of_hooks_keep_their_values():
    arrays = []
    x = leaf()
    y = (x * 2).relu()
    y.register_hook(lambda g: arrays.append(g.numpy()))
    (y * tf.full((N,), 3.0)).sum().backward()
    assert (arrays[0] == 3).all()


def test_hooks_of_nodes_see_both_sides():
    seen = []
    y = -(leaf() * 2)
    y.grad_fn.register_hook(lambda inputs, outputs: seen.extend((inputs[0], outputs[0])))
    (y * tf.full((N,), 3.0)).sum().backward()
    assert set(seen[0].tolist()) == {-3.0} and set(seen[1].tolist()) == {3.0}


def test_retained_gradients_stay():
    x = leaf()
    y = x * 2
    z = -y
    for t in (y, z):
        t.retain_grad()
    (z * tf.full((N,), 3.0)).sum().backward()
    assert set(z.grad.tolist()) == {3.0} and set(y.grad.tolist()) == {-3.0}
    assert set(x.grad.tolist()) == {-6.0}


def test_cotangents_of_the_caller_stay():
    g = tf.full((N,), 3.0)
    x = leaf()
    (-(x * 2)).backward(g)
    (-(x * 2)).backward(gradient=g)
    tf.autograd.grad(-(x * 2), x, g)
    assert set(g.tolist()) == {3.0} and set(x.grad.tolist()) == {-12.0}


def test_gradients_of_what_lies_between():
    x = leaf()
    y = x * 2
    z = -y
    w = z.sigmoid()
    gw, gz, gy, gx = tf.autograd.grad((w * tf.full((N,), 3.0)).sum(), [w, z, y, x])
    assert set(gw.tolist()) == {3.0}
    assert bits(gz) == bits(-gy) and bits(gx) == bits(gy * 2)


def test_branches_of_one_gradient():
    """A gradient that goes two ways is written over by neither while the other needs it."""
    a, b = leaf(), leaf()
    y = a * 1.0
    z = b * 1.0
    s = y + z
    (s * tf.full((N,), 3.0) + (-s)).sum().backward()
    assert set(a.grad.tolist()) == set(b.grad.tolist()) == {2.0}
    a.grad.add_(1)
    assert set(b.grad.tolist()) == {2.0}


def test_graphs_that_are_kept_give_the_same_again():
    x = leaf()
    y = ((x * 2).sigmoid().exp() * tf.full((N,), 3.0)).sum()
    (first,) = tf.autograd.grad(y, x, retain_graph=True)
    want = bits(first)
    (again,) = tf.autograd.grad(y, x)
    assert bits(again) == want == bits(first)


def test_saved_results_stay():
    """The partial derivative of exp is its result, which the user holds."""
    x = leaf()
    y = (x * 1).exp()
    want = bits(y)
    (y * 2).sum().backward()
    assert bits(y) == want


# ---- the check


def test_every_rule_is_compared():
    """A rule that names another row than the one it calls is found."""
    names = {rule.over for rule in OVER.values()}
    assert {"relu_grad", "sigmoid_grad", "gelu_erf_grad", "silu_grad"} <= names


@pytest.mark.parametrize("which", OVER)
def test_a_wrong_gradient_is_found(which, monkeypatch):
    rule = OVER[which]
    name, number = which.split()
    args = [tf.linspace(0.2, 0.9, N) for _ in table.TABLE[name].arg_names]
    args[int(number)].requires_grad_()

    def backward():
        y = table.OPS[name](*[a * 1 for a in args])
        (y * tf.full((N,), 3.0)).sum().backward()

    with tf.autograd.detect_nonfinite():
        backward()
        monkeypatch.setattr(rule, "over", {1: "neg", 2: "sub", 3: "lerp"}[len(rule.parts())])
        with pytest.raises(RuntimeError, match=r"backward.*differs") as info:
            backward()
    assert str(tuple(args[0].shape)) in str(info.value)


@pytest.mark.parametrize("op", ["add", "mul", "neg"])
def test_a_wrong_kernel_is_found(op):
    """A kernel that is right only where its result has memory of its own."""
    names = []

    def spoil(name, got, want):
        names.append(name)
        if name == op:
            got[N // 2] = 77.0  # as a kernel would that reads what it has already written
        slow.check_reuse(name, got, want)

    tensor.install_hook("check_reuse", spoil)
    x = leaf()
    y = x * 1
    try:
        with (
            tf.autograd.detect_nonfinite(),
            pytest.raises(RuntimeError, match=f"{op}: the gradient"),
        ):
            ((-y.exp() + y * 2) * tf.full((N,), 3.0)).sum().backward()
    finally:
        tensor.install_hook("check_reuse", slow.check_reuse)
    assert op in names


def test_the_switch_compares():
    code = (
        "import tinyfin as tf\n"
        "from tinyfin.ops import table\n"
        "table.OPS['relu'].vjp[0].over = 'sub'\n"
        "x = tf.linspace(1, 2, 5000).requires_grad_()\n"
        "try:\n"
        "    ((x * 1).relu() * tf.full((5000,), 3.0)).sum().backward()\n"
        "except RuntimeError as error:\n"
        "    print('found', 'differs' in str(error))\n"
    )
    root = str(pathlib.Path(tf.__file__).resolve().parents[1])
    env = {**os.environ, "TINYFIN_CHECK": "1", "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout.split() == ["found", "True"], done.stderr


# ---- a long training


@needs_pool
def test_memory_is_flat_over_ten_thousand_steps():
    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("this system does not tell the resident set")
    model = tf.nn.Sequential(tf.nn.Linear(8, 16), tf.nn.ReLU(), tf.nn.Linear(16, 1))
    step = tf.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = tf.randn(16, 8), tf.randn(16, 1)

    def train(steps):
        for _ in range(steps):
            step.zero_grad()
            loss = tf.nn.functional.mse_loss(model(x), y)
            loss.backward()
            step.step()

    gc.collect()
    tf.reset_peak_memory_stats()
    began = time.monotonic()
    train(1000)
    first, before = tf.memory_stats(), resident()
    train(9000)
    grown, now = resident() - before, tf.memory_stats()
    for key in ("live", "peak", "cached"):
        assert now[key] == first[key], key
    assert now["requests"] - first["requests"] == now["reused"] - first["reused"]
    assert grown < 1 << 20, f"{grown} bytes in 9,000 steps ({time.monotonic() - began:.1f} s)"
