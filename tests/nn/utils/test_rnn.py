"""Padded and packed sequences, against PyTorch."""

import doctest

import numpy as np
import pytest
from lazy import torch
from nn import against

import tinyfin as tf
from tinyfin.nn.utils import rnn

SEQUENCES = [against.normal(n, 2, seed=n) for n in (2, 4, 1)]


def test_examples():
    assert doctest.testmod(rnn).failed == 0


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_as_in_pytorch(batch_first, ordered):
    sequences = sorted(SEQUENCES, key=len, reverse=True) if ordered else SEQUENCES
    found = []
    for m in (tf, torch):
        u = m.nn.utils.rnn
        here = [against.tensor(m, s) for s in sequences]
        padded = u.pad_sequence(here, batch_first, 7.0)
        left = u.pad_sequence(here, batch_first, 0.5, "left")
        packed = u.pack_sequence(here, enforce_sorted=ordered)
        back, lengths = u.pad_packed_sequence(packed, batch_first, -1.0, total_length=6)
        (packed.data * packed.data).sum().backward()
        again = [
            t
            for part in (
                u.unpack_sequence(packed),
                u.unpad_sequence(padded.clone(), lengths, batch_first),
            )
            for t in part
        ]
        indices = [t for t in packed[1:] if t is not None]
        tensors = [
            padded,
            left,
            packed.data,
            back,
            lengths,
            *indices,
            *again,
            *(h.grad for h in here),
        ]
        found.append([against.array(t) for t in tensors])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_moving_them():
    packed = rnn.pack_sequence([tf.ones(2), tf.ones(3)], enforce_sorted=False)
    half = packed.to(tf.float16)
    assert half.data.dtype == tf.float16 and half.batch_sizes.tolist() == [2, 2, 1]
    assert packed.cpu().data.equal(packed.data) and not packed.is_cuda


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: rnn.pack_padded_sequence(x, [1, 2]),
            RuntimeError,
            "pack_padded_sequence: lengths grow; sort",
        ),
        (
            lambda x: rnn.pack_padded_sequence(x, [3, 0]),
            RuntimeError,
            "expected all of them to be positive",
        ),
        (
            lambda x: rnn.pack_padded_sequence(x, [3]),
            ValueError,
            "lengths has 1 entries, expected 2",
        ),
        (
            lambda x: rnn.pack_padded_sequence(x, [9, 2]),
            RuntimeError,
            "lengths has 9, the input only 3 steps",
        ),
        (lambda x: rnn.pack_padded_sequence(x[0, 0], [1]), RuntimeError, "input has 1 dimensions"),
        (lambda x: rnn.pad_sequence([]), RuntimeError, "pad_sequence: sequences is empty"),
        (lambda x: rnn.pad_sequence([x], padding_side="top"), ValueError, "padding_side is 'top'"),
        (lambda x: rnn.unpad_sequence(x, [1]), ValueError, "unpad_sequence: lengths has 1 entries"),
        (
            lambda x: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 2]), total_length=2),
            ValueError,
            "total_length is 2, expected at least 3",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(tf.ones(3, 2, 4))
