"""Derivative rules as straight lines: the bits of the rules themselves, and no Python in the walk."""

import sys

import numpy as np
import pytest
import samples
from pooling import needs_pool

import tinyfin as tf
from tinyfin import nn
from tinyfin.autograd import slow, straight
from tinyfin.core import tensor
from tinyfin.nn import functional
from tinyfin.ops import table
from tinyfin.ops.row import F, Row

RULES = [
    rule
    for op in table.OPS.values()
    for rule in (*(op.vjp or ()), *(op.partials or ()), op.vjp_all)
    if rule is not None and rule.fn is not None
]


@pytest.fixture
def by_functions():
    """A function that makes the walk call all rules as they are written."""

    def begin():
        for rule in RULES:
            rule.lines = {}
        tensor.install_hook("straight", lambda rule, kinds: None)

    yield begin
    for rule in RULES:
        rule.lines = {}
    tensor.install_hook("straight", slow.straight)


# ---- the same bits


def gradients(name, sample):
    """Bytes of a sample's gradients, of the walk that is not recorded and of the one that is."""
    arrays = samples.arrays(sample)
    leaves = [
        samples.tensor(a, "float64", requires_grad=a.dtype == np.float64 and i not in sample.fixed)
        for i, a in enumerate(arrays)
    ]
    args, kwargs = samples.with_arrays(sample, leaves)
    tf.manual_seed(3)
    ys = [y for y in samples.flat(table.OPS[name](*args, **kwargs)) if y.requires_grad]
    wanted = [x for x in leaves if x.requires_grad]
    found = []
    for record in (True, False):
        if ys and wanted:
            grads = tf.autograd.grad(
                ys,
                wanted,
                [tf.ones_like(y) for y in ys],
                retain_graph=True,
                create_graph=record,
                allow_unused=True,
            )
            found += [None if g is None else samples.bits(g.detach()) for g in grads]
    return found


@pytest.mark.parametrize("name", [n for n in samples.subjects() if n in table.OPS])
def test_lines_give_the_bits_of_the_rules(name, by_functions):
    every = [s for s in samples.samples_of(name) if s.grad and samples.applies(s, "float64")]
    if "float64" not in samples.dtypes_of(name) or not every:
        pytest.skip("no gradient in float64")
    lines = [gradients(name, sample) for sample in every]
    by_functions()
    assert [gradients(name, sample) for sample in every] == lines


def test_most_rules_are_lines():
    """So that the comparison compares: of the rules that take tensors of two dimensions."""
    found = 0
    for rule in RULES:
        kinds = [2 if code in (0, 1, 2, 3, 5) else 0 for code, _ in rule.parts()]
        found += straight.straight(rule, kinds) is not None
    assert found > len(RULES) / 2


# ---- no Python in the walk


def frames(loss):
    """Names of the Python functions that the walk enters, when it has gone the way once before."""
    seen = []
    loss.backward(retain_graph=True)
    sys.setprofile(lambda frame, event, _: event == "call" and seen.append(frame.f_code.co_name))
    try:
        loss.backward(retain_graph=True)
    finally:
        sys.setprofile(None)
    return seen


def mlp():
    """A small network for eight examples of four classes."""
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))(tf.ones(8, 16))


def cnn():
    """Convolutions, batch norm, pooling and dropout."""
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(32, 10),
    )
    return net(tf.randn(4, 1, 12, 12))


def transformer():
    """Embedding, causal attention and a gelu network, each behind a layer norm."""
    embedding, qkv, out = nn.Embedding(20, 16), nn.Linear(16, 48), nn.Linear(16, 16)
    norms = nn.LayerNorm(16), nn.LayerNorm(16)
    up, down = nn.Linear(16, 128), nn.Linear(64, 16)
    x = embedding(tf.zeros(2, 8).long())
    parts = qkv(norms[0](x)).reshape(2, 8, 3, 2, 8).permute(2, 0, 3, 1, 4)
    q, k, v = parts.unbind(0)
    y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + out(y.transpose(1, 2).reshape(2, 8, 16))
    left, right = up(norms[1](x)).split(64, dim=-1)
    x = x + down(functional.gelu(left) * right)
    return x.reshape(16, 16)


@needs_pool  # new memory is asked for in Python
@pytest.mark.skipif(tensor.mode() & 256 != 0, reason="comparing is written in Python")
@pytest.mark.parametrize("model", [mlp, cnn, transformer])
@pytest.mark.parametrize(
    "loss",
    [
        lambda y: y.sum(),
        lambda y: functional.cross_entropy(y, tf.zeros(y.shape[0]).long()),
        lambda y: functional.mse_loss(y, tf.zeros(*y.shape)),
    ],
    ids=["sum", "cross_entropy", "mse"],
)
def test_the_walk_enters_no_python(model, loss):
    loss(model()).backward()  # memory and lines are there then
    assert frames(loss(model())) == []


def test_functions_are_entered_where_there_is_no_line(by_functions):
    """What the test above counts is there to be counted."""
    by_functions()
    assert "linear_dw" in frames(mlp().sum())


# ---- what a line is


@pytest.fixture
def row():
    """A row with two tensors, the second optional, and attributes, that is in no table."""
    found = Row.__new__(Row)
    found.name, found.arg_names = "probe", ("x", "w")
    found.attrs = tuple(table.TABLE["sum"].attrs)
    return found


def found(row, fn, kinds):
    """The names of a line's operations; None where the rule has none."""
    line = straight.straight(table.compile_rule(row, fn), kinds)
    return None if line is None else [op and op.name for _, op, _, _ in line[2]]


def test_calls_operators_and_methods_are_noted(row):
    assert found(row, lambda g, x: F.exp(-x) * g, (2, 2)) == ["neg", "exp", "mul"]
    assert found(row, lambda g, x: 1 / g + x.unsqueeze(0), (2, 2)) == ["div", "unsqueeze", "add"]
    assert found(row, lambda g, x_shape: F.reshape(g, x_shape[1:]), (2, 3)) == [None, "reshape"]


def test_what_the_kind_says_may_decide(row):
    def rule(g, w, dim, keepdim):
        if w is None or keepdim or not dim:
            return g
        return F.sum(g, dim) if g.ndim == 2 else F.neg(g)

    assert found(row, rule, (2, straight.ABSENT, 4, 2)) == []
    assert found(row, rule, (2, 1, 4, straight.TRUE)) == []
    assert found(row, rule, (2, 1, straight.EMPTY, straight.FALSE)) == []
    assert found(row, rule, (2, 1, straight.TUPLE, straight.FALSE)) == ["sum"]
    assert found(row, rule, (3, 1, straight.TUPLE, straight.FALSE)) == ["neg"]


@pytest.mark.parametrize(
    "rule",
    [
        lambda g, x_shape: g if x_shape[0] == 1 else F.neg(g),
        lambda g, x_shape: g if x_shape == (1, 1) else F.neg(g),
        lambda g, x_shape: F.reshape(g, (x_shape[0], 1)),
        lambda g, x_shape: F.neg(g) if 3 in x_shape else g,
        lambda g, x: F.neg(g) if x.numel() else g,
        lambda g, x: F.neg(g) if x.requires_grad else g,
        lambda g, x: F.neg(g) if x == 0 else g,
        lambda g, x: F.zeros_of((3,), x),
        lambda g, x: F.cat([g, x]),
        lambda g, x: F.no_such_operation(g, x),
        lambda g, x: F.exp(g, x, g),
        lambda g, x: None,
    ],
)
def test_what_is_no_line(row, rule):
    assert found(row, rule, (2, 2)) is None


def test_what_is_only_called(row):
    def name(fn):
        return table.compile_rule(row, fn).over

    assert name(lambda g, x: F.relu_grad(g, x)) == "relu_grad"
    assert name(lambda g, x: g / x) == "div"
    assert name(lambda g, x: x / g) is None
    assert name(lambda g, x: F.neg(g) / x) is None
    assert name(lambda g, x: g / 2) is None
    assert name(lambda g, dim: F.softmax(g, dim)) is None


def test_rules_of_numbers_are_called():
    """Where a number stands for an argument, the rule computes with numbers."""
    x = tf.tensor([2.0, 3.0], requires_grad=True)
    (x / 4.0 + x * 2 + x**2).sum().backward()
    assert x.grad.tolist() == [6.25, 8.25]
    (tf.tensor(2.0) / x).sum().backward()
    assert x.grad.tolist() == pytest.approx([5.75, 8.25 - 2 / 9])
