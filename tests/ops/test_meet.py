"""Tensors of no dimension on the CPU among those of a device: numbers of elementwise operations, as in PyTorch."""

import pickle

import pytest
import samples

import tinyfin as tf

pytestmark = pytest.mark.usefixtures("gpu")

CALLS = {
    "add": lambda x, a: x + a,
    "from the left": lambda x, a: a - x,
    "compare": lambda x, a: x > a,
    "power": lambda x, a: x.abs() ** a,
    "where": lambda x, a: tf.where(x > 0, x, a),
    "condition": lambda x, a: tf.where(a > 0, x, x * 2),
    "no dimension there either": lambda x, a: x.sum() * a,
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int64", "bool"])
@pytest.mark.parametrize("name", CALLS)
def test_they_meet(gpu, name, dtype):
    """On the device, with the dtype that two tensors of these give, and the CPU's bits."""
    x, a = tf.randn(3, 5), tf.tensor(2).to(getattr(tf, dtype))
    want, got = CALLS[name](x, a), CALLS[name](x.to(gpu), a)
    assert got.device.type == gpu and got.dtype is want.dtype
    assert samples.bits(got.cpu()) == samples.bits(want)


def test_gradients_find_the_way_back(gpu):
    x, a = tf.randn(3, 5), tf.tensor(2.0)
    found = {}
    for where in ("cpu", gpu):
        v, k = x.to(where).detach().requires_grad_(), a.clone().requires_grad_()
        (v * k + k).sin().sum().backward()
        assert v.grad.device.type == where and k.grad.device.type == "cpu"
        found[where] = samples.bits(v.grad.cpu()), samples.bits(k.grad)
    assert found["cpu"] == found[gpu]


def test_in_place(gpu):
    """The tensor written to stays where it is; gradients go to the number."""
    k = tf.tensor(3.0, requires_grad=True)
    y = tf.ones(4).to(gpu).requires_grad_() * 1
    y.mul_(k).add_(tf.tensor(1))
    assert y.device.type == gpu and y.tolist() == [4.0] * 4
    y.sum().backward()
    assert k.grad.device.type == "cpu" and k.grad.item() == 4.0
    with tf.no_grad():
        z = tf.ones(2).to(gpu)
        z -= tf.tensor(0.5)
        assert z.tolist() == [0.5, 0.5]


def test_what_does_not_meet(gpu):
    """One dimension, or an operation that is not elementwise, or a number there that is written to here."""
    x, a = tf.ones(2).to(gpu), tf.tensor(2.0)
    for call in (
        lambda: x + tf.ones(1), lambda: tf.stack([x.sum(), a]), lambda: a.add_(x.sum()), lambda: tf.dot(x, tf.ones(2)),
        lambda: tf.ones(2) * x.sum(),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=f"different devices .*{gpu}"):
            call()


def test_pickled_tensors_come_back_to_their_device(gpu):
    """Where it is not to be had, the error says what to do."""
    y = pickle.loads(pickle.dumps(tf.arange(4.0).to(gpu)[1:].requires_grad_()))
    assert y.device.type == gpu and y.requires_grad and y.tolist() == [1, 2, 3]
    data = pickle.dumps(y).replace(f"{gpu}:0".encode(), f"{gpu}:9".encode())
    with pytest.raises(
        RuntimeError, match=f"was on {gpu}:9, which is not to be had here .*map_location"
    ):
        pickle.loads(data)
