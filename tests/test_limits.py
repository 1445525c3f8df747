"""What numbers dtypes hold, against NumPy's limits and the tensors themselves."""

import numpy as np
import pytest
from nn import examples

import tinyfin as tf

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_floats(name):
    ours, theirs = tf.finfo(getattr(tf, name)), np.finfo(name)
    for what in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
        assert getattr(ours, what) == float(getattr(theirs, what)), what
    assert np.dtype(name).type(ours.resolution) == theirs.resolution
    assert ours.dtype == name and name in repr(ours)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_floats_are_the_edges(name):
    dtype = getattr(tf, name)
    info = tf.finfo(dtype)
    largest = tf.tensor(info.max, dtype=tf.float64).to(dtype)
    assert largest.isfinite().item() and largest.double().item() == info.max
    assert (largest * (1 + info.eps)).isinf().item()
    one = tf.ones((), dtype=dtype)
    assert (one + info.eps > one).item() and not (one + info.eps / 2 > one).item()


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    ours, theirs = tf.iinfo(getattr(tf, name)), np.iinfo(name)
    assert (ours.bits, ours.min, ours.max) == (theirs.bits, theirs.min, theirs.max)
    assert ours.dtype == name and name in repr(ours)


def test_default_and_errors():
    assert tf.finfo().dtype == "float32"
    with pytest.raises(TypeError, match="finfo: type is tinyfin.int8, expected a floating-point"):
        tf.finfo(tf.int8)
    for wrong in (tf.float32, tf.bool, 3):
        with pytest.raises(TypeError, match="iinfo: type is .*, expected an integer dtype"):
            tf.iinfo(wrong)


def test_constants():
    assert (tf.pi, tf.e, tf.inf) == (np.pi, np.e, np.inf) and tf.nan != tf.nan
    assert tf.ones(2)[:, tf.newaxis].shape == (2, 1)


def test_examples():
    examples.run("tinyfin.limits")
