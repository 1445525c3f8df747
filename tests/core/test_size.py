"""Size: a tuple of sizes with PyTorch's extras."""

import pickle

import tinyfin as tf


def test_size():
    s = tf.Size((2, 3, 4))
    assert s == (2, 3, 4) and s.numel() == 24 and tf.Size().numel() == 1
    assert isinstance(s[1:], tf.Size) and s[1:] == (3, 4) and s[-1] == 4
    assert isinstance(s + (5,), tf.Size) and s + [5] == (2, 3, 4, 5) and (1,) + s == (1, 2, 3, 4)
    assert repr(s) == str(s) == "tinyfin.Size([2, 3, 4])"
    assert pickle.loads(pickle.dumps(s)) == s and type(pickle.loads(pickle.dumps(s))) is tf.Size
    assert {s: 1}[(2, 3, 4)] == 1 and s.index(3) == 1 and len(s) == 3
