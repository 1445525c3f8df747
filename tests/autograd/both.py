"""One program in tinyfin and in PyTorch: same values, shapes and dtypes."""

import numpy as np
import pytest

import tinyfin as tf

torch = pytest.importorskip("torch")


def leaves(value):
    """The tensors of nested tuples, lists and dicts."""
    if isinstance(value, dict):
        return [t for v in value.values() for t in leaves(v)]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in leaves(v)]
    return [value]


def numbers(t):
    """A tensor as a NumPy array."""
    t = t.detach()
    return np.array(t.tolist(), dtype=float).reshape(tuple(t.shape))


def same(mine, theirs, tolerance=1e-8):
    """Whether two results agree, leaf by leaf."""
    a, b = leaves(mine), leaves(theirs)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        if x is None or y is None:
            assert x is None and y is None
            continue
        assert tuple(x.shape) == tuple(y.shape)
        assert str(x.dtype).split(".")[1] == str(y.dtype).split(".")[1]
        np.testing.assert_allclose(numbers(x), numbers(y), rtol=tolerance, atol=tolerance)


def functional(m):
    """nn.functional of a library."""
    return m.nn.functional


def run(program, *arrays, tolerance=1e-8):
    """program(module, func, *tensors) in both libraries; returns tinyfin's result."""
    mine = program(tf, tf.func, *(tf.tensor(a) for a in arrays))
    theirs = program(torch, torch.func, *(torch.tensor(a) for a in arrays))
    same(mine, theirs, tolerance)
    return mine
