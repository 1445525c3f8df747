"""Device objects: what names one, equality, pickling."""

import copy
import pickle

import pytest

import tinyfin as tf


@pytest.mark.parametrize(
    "spec, index, kind, number, text",
    [
        ("cpu", None, "cpu", None, "cpu"),
        ("blas", None, "cpu", None, "cpu"),
        ("null", None, "null", None, "null"),
        ("null:3", None, "null", 3, "null:3"),
        ("vulkan", 1, "vulkan", 1, "vulkan:1"),
        ("cpu:0", None, "cpu", 0, "cpu:0"),
    ],
)
def test_devices(spec, index, kind, number, text):
    d = tf.device(spec) if index is None else tf.device(spec, index)
    assert (d.type, d.index, str(d)) == (kind, number, text)
    assert pickle.loads(pickle.dumps(d)) == d == copy.deepcopy(d) == tf.device(d)
    assert hash(d) == hash(tf.device(text))


def test_repr_is_pytorch_s():
    assert repr(tf.device("cpu")) == "device(type='cpu')"
    assert repr(tf.device("null:1")) == "device(type='null', index=1)"


def test_equality():
    assert tf.device("null") == tf.device("null:0") != tf.device("null:1")
    assert tf.device("cpu") != tf.device("null") and tf.device("cpu") != "cpu"
    assert len({tf.device("cpu"), tf.device("blas"), tf.device("cpu:0")}) == 1


@pytest.mark.parametrize(
    "args, kind",
    [
        (("tpu",), RuntimeError), (("",), RuntimeError), (("cpu:a",), RuntimeError),
        (("cpu:-1",), RuntimeError), (("cpu:",), RuntimeError), (("null:256",), ValueError),
        (("null:1", 2), ValueError), ((3,), TypeError), ((None,), TypeError), (("null", -1), ValueError),
        (("null", "1"), TypeError), (("null", 1.5), TypeError),
    ],
)  # fmt: skip
def test_what_is_no_device(args, kind):
    with pytest.raises(kind, match="device: "):
        tf.device(*args)


def test_tensors_know_their_device():
    x = tf.ones(2)
    assert x.device == tf.device("cpu") and x.device is tf.zeros(1).device
    y = tf.ones(2, device="null:1")
    assert str(y.device) == "null:1" and (y + 1).device == y.device and y[0].device == y.device


@pytest.mark.parametrize("name", ["cpu:1", "opengl:99", "tpu"])
def test_devices_that_are_not_there(name):
    for call in (lambda: tf.ones(2, device=name), lambda: tf.ones(2).to(name)):
        with pytest.raises(RuntimeError, match="device"):
            call()


@pytest.mark.parametrize("name", ["float32", "tinyfin.float32", "torch.float32"])
def test_names_of_dtypes_are_no_devices(name):
    for call in (lambda: tf.ones(2).to(name), lambda: tf.nn.Linear(2, 2).to(name)):
        with pytest.raises(
            RuntimeError, match="unknown device type .*a dtype is given as tinyfin.float32$"
        ):
            call()
    with pytest.raises(RuntimeError, match="opengl$"):
        tf.ones(2).to("float31")


def test_a_refused_device_can_be_shown():
    """As a debugger does, and a traceback with local variables, while `__init__` raises."""
    d = tf.device.__new__(tf.device)
    assert repr(d) == str(d) == f"{d}" == "device(not initialised)"
