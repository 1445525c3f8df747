"""Gradient clipping, against PyTorch."""

import math

import numpy as np
import pytest
from lazy import torch
from nn import against, examples

import tinyfin as tf

SHAPES = [(3, 4), (5,), (), (0,)]


def parameters(m, scale=1.0, skip=None):
    params = []
    for i, shape in enumerate(SHAPES):
        p = m.nn.Parameter(m.zeros(shape))
        if i != skip:
            p.grad = against.tensor(
                m, np.asarray(against.normal(*shape, seed=i) * scale, "float32"), False
            )
        params.append(p)
    return params


def grads(params):
    return [None if p.grad is None else p.grad for p in params]


def compare(a, b):
    for x, y in zip(grads(a), grads(b), strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            against.close(x, y)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, 0.5, math.inf])
@pytest.mark.parametrize("max_norm", [0.1, 3.0, 1e6])
@pytest.mark.parametrize("skip", [None, 1])
def test_by_norm(norm_type, max_norm, skip):
    ours, theirs = (parameters(m, 2.0, skip)[:3] for m in (tf, torch))
    a = tf.nn.utils.clip_grad_norm_(ours, max_norm, norm_type)
    b = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    against.close(a, b)
    compare(ours, theirs)


def test_by_norm_takes_one_tensor_and_generators():
    p, q = parameters(tf)[:2]
    tf.nn.utils.clip_grad_norm_(p, 0.5)
    assert (p.grad * p.grad).sum().sqrt().item() == pytest.approx(0.5, rel=1e-4)
    tf.nn.utils.clip_grad_norm_((x for x in (p, q)), 0.1)
    assert (q.grad * q.grad).sum().item() < 0.01


def test_without_gradients():
    assert tf.nn.utils.clip_grad_norm_([tf.nn.Parameter(tf.ones(2))], 1.0).item() == 0.0
    assert tf.nn.utils.clip_grad_norm_([], 1.0).item() == 0.0


def test_empty_gradients_do_not_count():
    assert math.isfinite(tf.nn.utils.clip_grad_norm_(parameters(tf), 1.0, math.inf).item())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_gradients_that_are_not_finite(bad):
    p = tf.nn.Parameter(tf.zeros(2))
    p.grad = tf.tensor([1.0, bad])
    with pytest.raises(RuntimeError, match="the norm of order 2"):
        tf.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    assert p.grad[0].item() == 1.0
    assert not math.isfinite(tf.nn.utils.clip_grad_norm_([p], 1.0).item())


@pytest.mark.parametrize("bound", [0.2, 1, 50.0])
def test_by_value(bound):
    ours, theirs = parameters(tf, skip=2), parameters(torch, skip=2)
    tf.nn.utils.clip_grad_value_(ours, bound)
    torch.nn.utils.clip_grad_value_(theirs, bound)
    compare(ours, theirs)
    tf.nn.utils.clip_grad_value_(ours[0], 0.01)
    assert ours[0].grad.abs().max().item() == pytest.approx(0.01)


def test_in_two_steps():
    ours = parameters(tf)
    total = tf.nn.utils.get_total_norm([p.grad for p in ours])
    tf.nn.utils.clip_grads_with_norm_(ours, 0.3, total)
    assert tf.nn.utils.get_total_norm([p.grad for p in ours]).item() == pytest.approx(0.3, rel=1e-4)
    other = parameters(tf)
    tf.nn.utils.clip_grad_norm_(other, 0.3)
    compare(ours, other)


def test_half_precision():
    p = tf.nn.Parameter(tf.zeros(3).half())
    p.grad = tf.tensor([3.0, 4.0, 0.0]).half()
    assert tf.nn.utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(5.0, rel=1e-2)
    assert p.grad.dtype == tf.float16
    p.grad = tf.tensor([300.0, 400.0, 0.0]).half()
    assert tf.nn.utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(500.0, rel=1e-2)


def test_examples():
    examples.run("tinyfin.nn.utils.clip_grad")
