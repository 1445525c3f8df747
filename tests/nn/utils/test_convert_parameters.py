"""Parameters as one vector, and back."""

import pytest
from nn import examples

import tinyfin as tf

utils = tf.nn.utils


def test_there_and_back():
    net = tf.nn.Sequential(tf.nn.Linear(2, 3), tf.nn.Linear(3, 1))
    vec = utils.parameters_to_vector(net.parameters())
    assert tuple(vec.shape) == (13,) and vec.requires_grad
    before = list(net.parameters())
    utils.vector_to_parameters(tf.arange(13).float(), net.parameters())
    assert all(a is b and a.requires_grad for a, b in zip(before, net.parameters(), strict=True))
    assert net[0].weight.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert net[1].bias.tolist() == [12.0]


def test_gradients_flow():
    p = tf.nn.Parameter(tf.ones(2, 2))
    (utils.parameters_to_vector([p]) * 3).sum().backward()
    assert p.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_errors():
    with pytest.raises(TypeError, match="expected a Tensor"):
        utils.vector_to_parameters([1.0], [])
    with pytest.raises(RuntimeError, match="vec has 1 elements, the parameters 2"):
        utils.vector_to_parameters(tf.ones(1), [tf.nn.Parameter(tf.ones(2))])


def test_examples():
    examples.run("tinyfin.nn.utils.convert_parameters")
