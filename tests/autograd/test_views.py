"""Writes through views and to their bases, against PyTorch, orders 1 and 2."""

import random

import numpy as np
import pytest
from autograd.both import numbers, torch

import tinyfin as tf


def row(m, x, y):
    out = m.zeros(3, 4, dtype=x.dtype)
    for i in range(4):
        out[:, i] = (x[0, i] * y).sin()
    return (out * out).sum()


def shifted_add(m, x, y):
    a = x * 1
    a[1:] += y[0]
    a[:, ::2] *= 3
    return (a * a).sum()


def chained(m, x, y):
    a = x * 2
    v = a.t()[1:].narrow(1, 0, 2)
    v.mul_(y[:2])
    w = v[0]
    w += 5
    return (a * a).sum() + (v * 3).sum() + (w * w).sum()


def view_after_base(m, x, y):
    a = x * 1
    v = a[0]
    a.mul_(2)
    a[:, 0] = y
    return (v * v).sum() + a.sum()


def base_after_view(m, x, y):
    a = x * 1
    v, w = a[0], a[:, 1]
    v.mul_(y.sum())
    return (w * w).sum() + (a * v).sum()


def into_zeros(m, x, y):
    a = m.zeros(3, 4, dtype=x.dtype)
    v = a.view(-1)[2:6]
    v.copy_(x[0])
    a[2].add_(y[0])
    return (a.exp() * x).sum()


def masked(m, x, y):
    a = x * 1
    a[a.detach() > 0] = 0.5
    a.masked_fill_(x.detach() < -1, 2.0)
    a[m.tensor([0, 2])] = y[:1] * 3
    return (a * a * x).sum()


def diagonal(m, x, y):
    a = m.outer(y, y)
    a.diagonal().fill_(0.0)
    a.diagonal(1).add_(y[1:] if a.shape[0] == 3 else y)
    return (a**3).sum()


def transposed_base(m, x, y):
    a = (x * 2).t()
    a[0] = y
    a[1:3].mul_(y)
    return (a * a).sum()


def squeezed(m, x, y):
    a = (x * 1).unsqueeze(0)
    a.squeeze(0)[1].unsqueeze(1).mul_(y[0])
    return (a * a).sum()


def same_twice(m, x, y):
    a = x * 1
    a[0] = a[1] + a[2]
    a[0] *= 3
    return (a * a).sum()


PROGRAMS = [
    row, shifted_add, chained, view_after_base, base_after_view, into_zeros, masked, diagonal,
    transposed_base, squeezed, same_twice,
]  # fmt: skip


def derivatives(m, program, arrays):
    """Value, gradients, and gradients of the squared gradients."""
    leaves = [m.tensor(a.tolist(), dtype=m.float64, requires_grad=True) for a in arrays]
    y = program(m, *leaves)
    first = m.autograd.grad(y, leaves, create_graph=True, allow_unused=True)
    total = sum((g * g).sum() for g in first if g is not None)
    second = [None] * len(leaves)
    if total.requires_grad:
        second = m.autograd.grad(total, leaves, allow_unused=True)
    return y.detach(), first, second


def agree(program, arrays):
    y, first, second = derivatives(tf, program, arrays)
    other = derivatives(torch, program, arrays)
    assert y.item() == pytest.approx(other[0].item(), rel=1e-9)
    for mine, theirs in ((first, other[1]), (second, other[2])):
        for a, b in zip(mine, theirs):
            a = 0.0 if a is None else numbers(a)
            b = 0.0 if b is None else numbers(b)
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_patterns(program, rng):
    agree(program, [rng.standard_normal((3, 4)), rng.standard_normal(3)])


def test_infinite_cotangents_stay_inside():
    x, y = tf.ones(2, requires_grad=True), tf.ones(1, requires_grad=True)
    a = x * 1
    a[:1] = y
    (a * tf.tensor([float("inf"), 2.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0] and y.grad.tolist() == [float("inf")]


# ---- random programs


class Programs:
    """Random views and writes over one base."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, m, x, y):
        pick = random.Random(self.seed)
        kind = pick.randint(0, 3)
        base = x * 1.0 if kind < 2 else x * 0.5 if kind == 2 else (x * 2).t()
        self.y, held = y, [base]
        for _ in range(pick.randint(2, 7)):
            v = pick.choice(held)
            if pick.random() < 0.4 and v.ndim:
                w = self.view(pick, v)
                held += [] if 0 in w.shape else [w]
            else:
                self.write(pick, v, held)
        return sum((v * v * (i + 1)).sum() for i, v in enumerate(held))

    def view(self, pick, v):
        d = pick.randrange(v.ndim)
        size, before = v.shape[d], (slice(None),) * d
        return pick.choice([
            lambda: v[(*before, size - 1)],
            lambda: v.narrow(d, 0, max(1, size - 1)),
            lambda: v.transpose(0, v.ndim - 1),
            lambda: v[(*before, slice(size // 2, None))],
            lambda: v[(*before, slice(None, None, 2))],
            lambda: v.unsqueeze(d),
            lambda: v.diagonal() if v.ndim > 1 else v[...],
        ])()  # fmt: skip

    def write(self, pick, v, held):
        y, src = self.y, pick.choice(held)
        pick.choice([
            lambda: v.mul_(2.0),
            lambda: v.add_(y[:1].sum()),
            lambda: v.copy_(y.sum() * y[0]),
            lambda: v.zero_(),
            lambda: v.add_(src.sum() * 0.5),
            lambda: v.masked_fill_(v.detach() > 0.3, 0.5),
            lambda: v.copy_(src.sum().sin()),
        ])()  # fmt: skip


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(2, 4, 2)
    agree(Programs(seed), [rng.standard_normal(shape), rng.standard_normal(3)])


# ---- refusals


def test_view_of_a_leaf():
    x = tf.ones(3, requires_grad=True)
    v = x[1:]
    with pytest.raises(RuntimeError, match="view of a leaf"):
        v.mul_(2.0)


def test_overlapping_views_are_not_written():
    x = tf.ones(3) * 1
    with pytest.raises(RuntimeError, match="share memory"):
        x.expand(2, 3).add_(1.0)


def test_saved_view_notices_writes_to_its_base():
    x = tf.ones(3, requires_grad=True)
    a = x * 1
    y = a[1:].exp()
    z = a[1:] * a[:1]
    a.add_(1.0)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="modified in place"):
        z.sum().backward()


def test_grad_fn_of_a_view_follows_its_base():
    a = tf.ones(3)
    v = a[1:]
    a.mul_(tf.tensor(2.0, requires_grad=True))
    assert a.requires_grad
    w = v * 1
    assert w.requires_grad == v.requires_grad


def test_unfold_and_flip(rng):
    def program(m, x, y):
        a = x * 1
        a[0] = y.sum()
        u = a.unfold(1, 2, 1)
        return (u * u * u).sum() + (a.flip(1) if m is torch else a.flip((1,))).cumsum(0).sum() ** 2

    agree(program, [rng.standard_normal((3, 4)), rng.standard_normal(3)])


@pytest.mark.parametrize(
    "write",
    [
        lambda v: v.mul_(2.0),
        lambda v: v.copy_(tf.ones(200)),
        lambda v: v.zero_(),
        lambda v: v.uniform_(),
    ],
)
def test_a_view_that_its_base_left_is_not_written(write):
    x = tf.ones(400, requires_grad=True)
    b = x * 1
    v = b[200:]
    b.data = tf.zeros(2)
    with pytest.raises(
        RuntimeError, match=r"_: a view of shape \(200,\) and offset 200 lies outside its base"
    ):
        write(v)
    assert v.tolist() == [1.0] * 200 and v._version == 0
    with tf.no_grad():
        assert v.mul_(2.0).sum().item() == 400.0
    b.sum()
    with pytest.raises(RuntimeError, match="gradient of shape"):
        b.sum().backward()


def test_a_base_that_shrank_after_a_write_gets_no_gradient():
    x = tf.ones(400000, requires_grad=True)
    b = x * 1
    v = b[200000:]
    v.mul_(2.0)
    b.data = tf.zeros(2)
    with pytest.raises(RuntimeError, match=r"gradient of shape \(2,\) came for result 0 of write"):
        b.sum().backward()


def test_a_view_inside_its_base_s_new_data(rng):
    """As in PyTorch: the history follows the geometry."""

    def program(m, x, y):
        b = x * 1
        v = b[2:]
        b.data = b.detach() * 1
        v.mul_(y)
        return (b * b).sum() + v.sum()

    agree(program, [rng.standard_normal(4), rng.standard_normal(2)])


def test_a_view_beside_its_base_s_elements():
    """as_strided reads what the base, which has gaps, does not hold."""
    whole = tf.zeros(8)
    b = tf.as_strided(whole, (4,), (2,)).detach()
    w = tf.ones(4, requires_grad=True)
    tf.as_strided(b, (4,), (1,), 1).add_(w * 3)
    assert b.tolist() == [0.0, 3.0, 3.0, 0.0] and whole.tolist() == [0.0, 3, 3, 3, 3, 0, 0, 0]
    b.sum().backward()
    assert w.grad.tolist() == [0.0, 3.0, 0.0, 3.0]
