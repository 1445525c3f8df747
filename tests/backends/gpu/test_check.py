"""The check of a device when it is opened: wrong bits are found, and deterministic mode refuses the device."""

import warnings

import pytest
from backends.isolated import run

import tinyfin as tf
from tinyfin.backends.base import REGISTRY
from tinyfin.backends.gpu import check


@pytest.mark.parametrize("wrong", [None, "mul", "sqrt", "div", "sum", "matmul"])
def test_wrong_bits_are_found(wrong, gpu, monkeypatch):
    """A row whose last bit differs on the device."""
    tf.empty(1, device=gpu)
    stream = REGISTRY[gpu].opened_device(0).stream
    level = stream.flush
    assert level in (1, 2)
    rows, told = [], []

    def agrees(name, device, *inputs):
        rows.append(name)
        return name != wrong and agreed(name, device, *inputs)

    agreed = check.agrees
    monkeypatch.setattr(check, "agrees", agrees)
    monkeypatch.setattr(check, "warn", told.append)
    try:
        found = check.flush_level(f"{gpu}:0", stream, "a device")
    finally:
        stream.flush = level
    assert (found, len(told)) == ((level, 0) if wrong is None else (-1, 1))
    assert wrong is None or (wrong in rows and "deterministic mode refuses it" in told[0])


def test_bits_tell_last_bits_apart_and_not_nan_from_nan():
    x = tf.tensor([1.0, float("nan"), -0.0])
    assert check.bits(x) == check.bits(tf.tensor([1.0, -float("nan"), -0.0]))
    assert check.bits(x) != check.bits(tf.tensor([1.0 + 2**-23, float("nan"), -0.0]))
    assert check.bits(x) != check.bits(tf.tensor([1.0, float("nan"), 0.0]))


def test_a_refused_device_raises_in_deterministic_mode_alone(gpu):
    x = tf.ones(3, device=gpu)
    stream = REGISTRY[gpu].opened_device(0).stream
    level = stream.flush
    stream.flush = -1
    try:
        with tf.deterministic(), pytest.raises(RuntimeError, match="deterministic mode refuses it"):
            x + 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (x + 1).tolist() == [2.0] * 3
    finally:
        stream.flush = level


@pytest.mark.parametrize("wrong", [None, "exp", "hardswish_grad"])
def test_wrong_functions_of_float64_are_found(wrong, gpu, monkeypatch):
    agreed = check.agrees
    monkeypatch.setattr(check, "agrees", lambda name, *a: name != wrong and agreed(name, *a))
    tf.empty(1, device=gpu)
    assert check.same_doubles(f"{gpu}:0") is (wrong is None)


@pytest.mark.parametrize("right", [True, False])
def test_the_cpu_computes_float64_where_a_device_is_wrong(right, gpu):
    lines, errors = run(
        f"""
import tinyfin as tf
from tinyfin.backends.base import REGISTRY
from tinyfin.backends.gpu import check
check.same_doubles = lambda device: {right}
made = REGISTRY["{gpu}"].new_device
def hardware(physical):
    device = made(physical)
    device.software = False
    return device
REGISTRY["{gpu}"].new_device = hardware
x = tf.ones(3, device="{gpu}", dtype=tf.float64)
print(x.exp().tolist() == tf.ones(3, dtype=tf.float64).exp().tolist(), x.exp().device.type)
print(tf.ones(3, device="{gpu}").exp().device.type)
"""
    )
    assert lines == [f"True {gpu}", gpu]
    assert ("exp" in errors and "runs on the cpu" in errors) is not right
