"""Parameter and Buffer."""

import copy
import pickle

import pytest
from nn import examples

import tinyfin as tf

P = tf.nn.Parameter


def test_shares_memory_without_history():
    x = tf.ones(3, requires_grad=True) * 2
    p = P(x)
    assert isinstance(p, tf.Tensor) and p.is_leaf and p.requires_grad and p.grad_fn is None
    with tf.no_grad():
        p.add_(1.0)
    assert x.tolist() == [3.0, 3.0, 3.0]


def test_frozen():
    p = P(tf.ones(2), requires_grad=False)
    assert not p.requires_grad
    assert not (p * 2).requires_grad


def test_results_are_plain_tensors():
    p = P(tf.ones(2))
    assert type(p + 1) is tf.Tensor and type(p.detach()) is tf.Tensor and type(p[0]) is tf.Tensor


def test_gradients_arrive():
    p = P(tf.tensor([1.0, 2.0]))
    (p * p).sum().backward()
    assert p.grad.tolist() == [2.0, 4.0]


def test_of_nothing():
    assert tuple(P().shape) == (0,)


def test_of_other_types():
    assert P(tf.ones(2, dtype=tf.float64)).dtype == tf.float64
    assert P(tf.ones(2, dtype=tf.int64), requires_grad=False).dtype == tf.int64
    with pytest.raises(RuntimeError):
        P(tf.ones(2, dtype=tf.int64))


@pytest.mark.parametrize("kind", [tf.nn.Parameter, tf.nn.Buffer])
def test_of_no_tensor(kind):
    with pytest.raises(TypeError, match="data is a list, expected a Tensor"):
        kind([1.0])


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_copies(twin_of, requires_grad):
    p = P(tf.tensor([1.0, 2.0]), requires_grad)
    q, r = twin_of([p, p])
    assert q is r and type(q) is P and q.requires_grad is requires_grad
    q.data.fill_(9.0)
    assert p.tolist() == [1.0, 2.0]


def test_attributes_survive_pickling():
    p = P(tf.ones(1))
    p.tag = "first"
    assert pickle.loads(pickle.dumps(p)).tag == "first"


def test_repr():
    text = repr(P(tf.tensor([1.0, 2.0])))
    assert text.startswith("Parameter containing:\n") and "1., 2." in text


def test_subclass():
    class Scaled(P):
        pass

    s = Scaled(tf.ones(2))
    assert type(copy.deepcopy(s)) is Scaled
    net = tf.nn.Module()
    net.s = s
    assert list(net.parameters()) == [s] or next(net.parameters()) is s


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_buffers(twin_of):
    b = tf.nn.Buffer(tf.tensor([1.0]), persistent=False)
    c = twin_of(b)
    assert type(c) is tf.nn.Buffer and c.persistent is False and c.tolist() == [1.0]
    net = tf.nn.Module()
    net.b, net.c = b, tf.nn.Buffer(tf.zeros(1))
    assert [n for n, _ in net.named_buffers()] == ["b", "c"] and list(net.state_dict()) == ["c"]


def test_examples():
    examples.run("tinyfin.nn.parameter")
