"""Calls on the CPU and on a GPU, compared bit for bit."""

import warnings

import samples

import tinyfin as tf


class Here:
    """The backend that the running test is for; conftest.py sets it."""

    name = "vulkan"


def gpu():
    """Its name."""
    return Here.name


def same(call, *tensors):
    """The device gives the CPU's bits, and leaves nothing to the CPU."""
    want = samples.flat(call(*tensors))
    tf.backends.base.STATE["warned"].clear()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="tinyfin: .* runs on the cpu")
        got = samples.flat(call(*[t.to(gpu()) for t in tensors]))
    assert len(got) == len(want)
    for a, b in zip(want, got):
        assert b.device.type == gpu()
        assert samples.bits(a) == samples.bits(b.cpu())
