"""Calls on the CPU and on a GPU, compared bit for bit."""

import warnings

import samples

import tinyfin as tf
from tinyfin.ops.row import F


class Here:
    """The backend that the running test is for; conftest.py sets it."""

    name = "vulkan"


def gpu():
    """Its name."""
    return Here.name


def same(call, *args):
    """The device gives the CPU's bits, and leaves nothing to the CPU; gives the CPU's results."""
    want = samples.flat(call(*args))
    tf.backends.base.STATE["warned"].clear()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="tinyfin: .* runs on the cpu")
        got = call(*[a.to(gpu()) if isinstance(a, tf.Tensor) else a for a in args])
    got = samples.flat(got)
    assert len(got) == len(want)
    for i, (a, b) in enumerate(zip(want, got)):
        assert b.device.type == gpu()
        assert samples.bits(a) == samples.bits(b.cpu()), f"result {i}"
    return want


def same_row(name, *args):
    """The same of a row by its name."""
    return same(getattr(F, name), *args)
