"""Calls on the CPU and on a Vulkan device, compared bit for bit."""

import warnings

import samples

import tinyfin as tf


def same(call, *tensors):
    """The device gives the CPU's bits, and leaves nothing to the CPU."""
    want = samples.flat(call(*tensors))
    tf.backends.base.STATE["warned"].clear()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="tinyfin: .* runs on the cpu")
        got = samples.flat(call(*[t.to("vulkan") for t in tensors]))
    assert len(got) == len(want)
    for a, b in zip(want, got):
        assert b.device.type == "vulkan"
        assert samples.bits(a) == samples.bits(b.cpu())
