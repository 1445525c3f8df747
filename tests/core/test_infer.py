"""Shape and dtype rules: PyTorch's promotion, broadcasting, and errors that say what came."""

import itertools

import numpy as np
import pytest

import tinyfin as tf

try:
    import torch
except ImportError:
    torch = None

PARITY = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
]  # fmt: skip
NUMBERS = [True, 3, 2.5]


def pairs():
    """Every pair of operands: tensors with dimensions, without, and numbers."""
    kinds = [(d, shape) for d in DTYPES for shape in ((2,), ())]
    for a in kinds:
        yield from ((a, b) for b in kinds)
        yield from ((a, n) for n in NUMBERS)
        yield from ((n, a) for n in NUMBERS)


def both(operand):
    """One operand for each library."""
    if not isinstance(operand, tuple):
        return operand, operand
    name, shape = operand
    return (
        tf.ones(shape, dtype=getattr(tf, name)),
        torch.ones(shape, dtype=getattr(torch, name)),
    )


@PARITY
@pytest.mark.parametrize("name", ["add", "mul", "div", "eq", "maximum", "floor_divide", "pow"])
def test_promotion_agrees_with_pytorch(name):
    f, g = getattr(tf, name), getattr(torch, name)
    for a, b in pairs():
        numbers = not isinstance(a, tuple) or not isinstance(b, tuple)
        if name == "maximum" and numbers:
            continue  # numbers are an extension there
        (x, u), (y, v) = both(a), both(b)
        try:
            want = g(u, v)
        except (
            RuntimeError,
            TypeError,
        ):  # PyTorch has no kernel for bool here, or no numbers first
            continue
        if name in ("floor_divide", "pow") and "torch.bool" in (str(want.dtype),):
            continue
        got = f(x, y)
        assert got.dtype.name == str(want.dtype)[6:], (name, a, b)
        assert tuple(got.shape) == tuple(want.shape)


@PARITY
@pytest.mark.parametrize("name", ["sqrt", "exp", "sigmoid", "abs", "neg", "logical_not", "square"])
def test_promotion_of_one_input(name):
    for d in DTYPES[name == "square" :]:  # PyTorch squares bool as int64
        try:
            want = getattr(torch, name)(torch.ones(2, dtype=getattr(torch, d)))
        except RuntimeError:
            continue
        got = getattr(tf, name)(tf.ones(2, dtype=getattr(tf, d)))
        assert got.dtype.name == str(want.dtype)[6:], (name, d)


@PARITY
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "cumsum", "amax", "any", "argmax", "var"])
def test_dtypes_of_reductions(name):
    for d in DTYPES:
        kwargs = {"dim": 0} if name == "cumsum" else {}
        try:
            want = getattr(torch, name)(torch.ones(3, dtype=getattr(torch, d)), **kwargs)
        except RuntimeError:
            if name != "argmax":
                with pytest.raises(RuntimeError, match=name):
                    getattr(tf, name)(tf.ones(3, dtype=getattr(tf, d)), **kwargs)
            continue
        got = getattr(tf, name)(tf.ones(3, dtype=getattr(tf, d)), **kwargs)
        assert got.dtype.name == str(want.dtype)[6:], (name, d)


@PARITY
def test_three_operands_and_where():
    kinds = [("int64", (2,)), ("float32", ()), ("float16", (2,)), ("uint8", ()), ("float64", ())]
    for a, b in itertools.product(kinds, kinds):
        (x, u), (y, v) = both(a), both(b)
        got, want = (
            tf.where(tf.tensor([True, False]), x, y),
            torch.where(torch.tensor([True, False]), u, v),
        )
        assert got.dtype.name == str(want.dtype)[6:], (a, b)
    assert tf.where(tf.tensor([True]), 1, 2.5).dtype is tf.float32
    assert tf.where(tf.tensor([True]), 1, 2).dtype is tf.int64


SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (1, 3), (4, 1, 3), (0,), (2, 0), (1, 0), (5, 2, 3)]


def test_broadcasting_agrees_with_numpy():
    for a, b in itertools.product(SHAPES, SHAPES):
        x, y = tf.ones(a), tf.ones(b)
        try:
            want = np.broadcast_shapes(a, b)
        except ValueError:
            with pytest.raises(RuntimeError, match=r"add: shapes .* do not broadcast") as e:
                x + y
            assert str(a) in str(e.value) and str(b) in str(e.value)
        else:
            assert tuple((x + y).shape) == want


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda x: tf.matmul(x, x), RuntimeError, ["matmul", "(2, 3)"]),
        (lambda x: x + tf.ones(4), RuntimeError, ["add", "(2, 3)", "(4,)"]),
        (lambda x: x.sum(2), IndexError, ["sum", "dim 2", "-2 to 1"]),
        (lambda x: x.sum((0, 0)), RuntimeError, ["sum", "dim 0", "twice"]),
        (lambda x: x.softmax(-3), IndexError, ["softmax", "-3"]),
        (lambda x: x.long().mean(), RuntimeError, ["mean", "int64", "floating"]),
        (lambda x: tf.cat([x, tf.ones(2, 4, 1)]), RuntimeError, ["cat", "(2, 4, 1)", "(2, 3)"]),
        (lambda x: tf.cat([x, x[0]]), RuntimeError, ["cat", "(3,)"]),
        (lambda x: tf.cat([x, 3]), TypeError, ["cat", "tensors[1]", "3"]),
        (lambda x: tf.cat([]), ValueError, ["cat", "empty"]),
        (lambda x: tf.cat(x), TypeError, ["cat", "tuple or list"]),
        (lambda x: x.gather(0, tf.zeros(2, 3)), RuntimeError, ["gather", "float32", "int64"]),
        (lambda x: x.gather(0, tf.full((2, 3), 5)), (IndexError, RuntimeError), ["gather", "5"]),
        (lambda x: x.index_select(0, tf.tensor([7])), IndexError, ["index_select", "7"]),
        (lambda x: tf.where(x, x, x), RuntimeError, ["where", "float32", "bool"]),
        (lambda x: x & 1, (RuntimeError, NotImplementedError), ["bitwise_and"]),
        (lambda x: tf.add(x), TypeError, ["add", "other"]),
        (lambda x: tf.add(x, None), TypeError, ["add", "other", "None"]),
        (lambda x: tf.add(x, "1"), TypeError, ["add", "other", "'1'", "str"]),
        (lambda x: tf.add(x, [1]), TypeError, ["add", "list"]),
        (lambda x: tf.add(1, 2), TypeError, ["add", "Tensor"]),
        (lambda x: tf.exp(1.0), TypeError, ["exp", "input", "1.0", "float"]),
        (lambda x: tf.exp(), TypeError, ["exp", "input"]),
        (lambda x: tf.exp(x, x), TypeError, ["exp", "1", "2"]),
        (lambda x: tf.exp(x, foo=1), TypeError, ["exp", "foo"]),
        (lambda x: x.sum(foo=1), TypeError, ["sum", "foo"]),
        (lambda x: tf.exp(x, input=x), TypeError, ["exp", "input", "twice"]),
        (lambda x: x.sum(0, dim=0), TypeError, ["sum", "dim", "twice"]),
        (lambda x: x.sum(dim="a"), TypeError, ["sum", "dim", "'a'"]),
        (lambda x: x.sum(keepdim="yes"), TypeError, ["sum", "keepdim", "'yes'"]),
        (lambda x: x.sum(dtype="f"), TypeError, ["sum", "dtype"]),
        (lambda x: x.topk(9), RuntimeError, ["topk", "9", "3"]),
        (lambda x: x.add(x, alfa=1), TypeError, ["add", "alfa", "alpha"]),
        (lambda x: x.add_(x, alpha="a"), TypeError, []),
        (lambda x: x.long().add_(1, alpha=0.5), RuntimeError, ["add_", "float32", "int64"]),
        (lambda x: x[0].add_(x, alpha=2), RuntimeError, ["add_", "(2, 3)", "(3,)"]),
        (lambda x: x.div(2, rounding_mode="up"), RuntimeError, ["div", "up"]),
        (lambda x: x + (1 << 70), OverflowError, ["1180591620717411303424"]),
        (lambda x: x.amax(0, True, 3), TypeError, ["amax"]),
        (lambda x: tf.zeros(0, 3).amax(), (IndexError, RuntimeError), ["amax", "(0, 3)"]),
        (lambda x: x.view(7), RuntimeError, ["view", "(7,)", "(2, 3)", "6"]),
    ],
)
def test_errors_name_operation_argument_and_value(call, kind, words):
    with pytest.raises(kind) as e:
        call(tf.ones(2, 3))
    for word in words:
        assert word in str(e.value), str(e.value)


def test_results_beyond_memory_are_refused():
    a, b = tf.ones(1).expand(1 << 40, 1), tf.ones(1).expand(1, 1 << 40)
    with pytest.raises(MemoryError, match="add"):
        a + b
    with pytest.raises(MemoryError, match="add"):
        a + a.expand(1 << 40, 1 << 19)
    with pytest.raises(MemoryError, match=r"contiguous|copy"):
        a.expand(1 << 40, 1 << 10).clone()


def test_many_tensors_in_one_call():
    xs = [tf.full((1, 2), float(i), requires_grad=i % 3 == 0) for i in range(40)]
    y = tf.cat(xs)
    assert y[:, 0].tolist() == list(range(40)) and y.requires_grad
    (y * tf.arange(40).reshape(40, 1)).sum().backward()
    assert [x.grad.tolist() for x in xs[::3]] == [[[float(i)] * 2] for i in range(0, 40, 3)]
    assert tf.stack(xs, 1).shape == (1, 40, 2)
    with pytest.raises(RuntimeError, match="tensor 39"):
        tf.cat([*xs[:39], tf.ones(1, 3)])


def test_other_signatures():
    x, y = tf.tensor([1.0, 2.0]), tf.tensor([10.0, 20.0])
    assert tf.add(input=x, other=y, alpha=2).tolist() == [21.0, 42.0]
    assert tf.sub(x, other=y, alpha=2).tolist() == [-19.0, -38.0]
    assert x.div(y, rounding_mode="floor").tolist() == [0.0, 0.0]
    z = x.clone()
    assert z.add_(y, alpha=3) is z and z.tolist() == [31.0, 62.0] and z._version == 1
    assert z.sub_(other=y, alpha=3) is z and z.tolist() == [1.0, 2.0]
    assert z.div_(0.3, rounding_mode="trunc") is z and z.tolist() == [3.0, 6.0]
    a = tf.ones(2, requires_grad=True)
    (a * 1).add_(a, alpha=2).sum().backward()
    assert a.grad.tolist() == [3.0, 3.0]


def test_out_argument():
    x, out = tf.ones(2), tf.zeros(2)
    assert tf.add(x, 1, out=out) is out and out.tolist() == [2.0, 2.0]
    assert tf.exp(tf.zeros(2), out=out).tolist() == [1.0, 1.0]
    fresh = tf.empty(0)
    assert tf.add(x, 2, out=fresh) is fresh and fresh.tolist() == [3.0, 3.0]
    assert tf.add(x, x, alpha=2, out=out).tolist() == [3.0, 3.0]
    for bad, kind in (
        (tf.zeros(3), RuntimeError),
        (3, TypeError),
        (tf.zeros(2).long(), RuntimeError),
    ):
        with pytest.raises(kind, match="add: "):
            tf.add(x, 1, out=bad)


def test_division_of_integers_by_zero():
    for d in (tf.int32, tf.uint8, tf.int64):
        x = tf.arange(6).to(d)
        for zero in (0, tf.tensor(0, dtype=d), tf.tensor([1, 2, 3, 0, 1, 2], dtype=d)):
            for call in (
                lambda z: x // z, lambda z: x % z, lambda z: x.fmod(z), lambda z: x.floor_divide_(z),
                lambda z: x.div(z, rounding_mode="trunc"), lambda z: x.div(z, rounding_mode="floor"),
            ):  # fmt: skip
                with pytest.raises(RuntimeError, match="division by zero"):
                    call(zero)
        assert x.tolist() == list(range(6))
        assert (x / 0).dtype is tf.float32
    with pytest.raises(ZeroDivisionError):
        tf.ones(600, dtype=tf.uint8).reshape(20, 30)[:, ::2] % 256
    assert (tf.ones(2) // 0).tolist() == [float("inf")] * 2
