"""Linear maps, tables and reshaping, against PyTorch."""

import math

import pytest
from nn import against, examples

import tinyfin as tf

normal, integers = against.normal, against.integers


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(shape, bias):
    against.module(lambda nn: nn.Linear(4, 5, bias=bias), normal(*shape))


def test_linear_draws_within_bounds():
    layer = tf.nn.Linear(25, 400)
    assert layer.weight.abs().max().item() <= 0.2 and layer.bias.abs().max().item() <= 0.2
    assert layer.weight.std().item() == pytest.approx(0.2 / math.sqrt(3), rel=0.05)


def test_linear_type():
    layer = tf.nn.Linear(2, 2, dtype=tf.float64)
    assert layer.weight.dtype == layer.bias.dtype == tf.float64


def test_linear_with_replaced_parameters():
    layer = tf.nn.Linear(2, 1)
    del layer.weight
    layer.weight = tf.tensor([[1.0, 2.0]])
    layer.bias = None
    assert layer(tf.tensor([3.0, 4.0])).tolist() == [11.0]


def test_linear_does_not_fit():
    with pytest.raises(RuntimeError):
        tf.nn.Linear(3, 2)(tf.ones(2, 4))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lead", [(), (5,), (2, 3)])
def test_bilinear(bias, lead):
    against.module(
        lambda nn: nn.Bilinear(3, 4, 2, bias=bias),
        normal(*lead, 3),
        normal(*lead, 4, seed=1),
        text=bias,
    )


def test_bilinear_errors():
    with pytest.raises(ValueError, match="in1_features"):
        tf.nn.Bilinear(0, 1, 1)
    with pytest.raises(RuntimeError, match="do not fit"):
        tf.nn.Bilinear(3, 4, 2)(tf.ones(2, 3), tf.ones(2, 5))


OPTIONS = [
    {},
    {"padding_idx": 2},
    {"padding_idx": -1},
    {"scale_grad_by_freq": True},
    {"max_norm": 1.0},
    {"max_norm": 1.0, "norm_type": 1.0, "padding_idx": 0},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", [(), (6,), (2, 5)])
def test_embedding(options, shape):
    index, smooth = integers(7, *shape), not options  # they change gradients on purpose
    against.module(lambda nn: nn.Embedding(7, 3, **options), index, spread=2.0, smooth=smooth)


def test_embedding_padding_starts_at_zero():
    layer = tf.nn.Embedding(4, 2, padding_idx=1)
    assert layer.weight[1].tolist() == [0.0, 0.0]


def test_embedding_from_pretrained():
    table = tf.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = tf.nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad and layer(tf.tensor([1])).tolist() == [[3.0, 4.0]]
    assert tf.nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    with pytest.raises(AssertionError, match="two dimensions"):
        tf.nn.Embedding.from_pretrained(tf.ones(2))


@pytest.mark.parametrize("index", [3, -1])
def test_embedding_out_of_range(index):
    with pytest.raises(IndexError):
        tf.nn.Embedding(3, 2)(tf.tensor([index]))


def test_embedding_errors():
    with pytest.raises(AssertionError, match="padding_idx is 3"):
        tf.nn.Embedding(3, 2, padding_idx=3)
    with pytest.raises(RuntimeError):
        tf.nn.Embedding(3, 2)(tf.tensor([1.0]))


@pytest.mark.parametrize("options", [{}, {"start_dim": 0}, {"start_dim": 1, "end_dim": 2}])
def test_flatten(options):
    against.module(lambda nn: nn.Flatten(**options), normal(2, 3, 4, 5))


@pytest.mark.parametrize("dim", [1, -2])
def test_unflatten(dim):
    against.module(lambda nn: nn.Unflatten(dim, (2, 3)), normal(2, 6, 4))
    with pytest.raises(TypeError, match="expected an int"):
        tf.nn.Unflatten(1, (2.0, 3))


def test_identity():
    against.module(lambda nn: nn.Identity(1, x=2), normal(2))


def test_examples():
    examples.run("tinyfin.nn.linear")
