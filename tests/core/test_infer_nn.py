"""Shape rules of norms, losses, attention and steps: what they refuse, and in which words."""

import pytest

import tinyfin as tf
from tinyfin.ops.row import F


def test_layer_norm_errors():
    x = tf.zeros(2, 3)
    with pytest.raises(RuntimeError, match=r"input is \(2, 3\), normalized_shape is \(4,\)"):
        tf.layer_norm(x, (4,))
    with pytest.raises(RuntimeError, match=r"weight is \(2,\)"):
        tf.layer_norm(x, (3,), tf.zeros(2))
    with pytest.raises(RuntimeError, match="at least one dimension"):
        tf.layer_norm(x, ())
    with pytest.raises(NotImplementedError, match="int64"):
        tf.layer_norm(tf.arange(3), (3,))


def test_batch_norm_errors():
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        tf.batch_norm(tf.zeros(1, 3), None, None, training=True)
    with pytest.raises(RuntimeError, match="running_mean"):
        tf.batch_norm(tf.zeros(2, 3), tf.zeros(2), tf.ones(3))
    with pytest.raises(RuntimeError, match="running_mean is None"):
        tf.batch_norm(tf.zeros(2, 3), None, None)
    with pytest.raises(RuntimeError, match="num_groups is 2"):
        tf.group_norm(tf.zeros(2, 5), 2)
    with pytest.raises(ValueError, match="more than 1 value"):
        tf.instance_norm(tf.zeros(2, 3, 1))


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_wrong_labels(name):
    loss, x = getattr(tf, name), tf.zeros(2, 3)
    with pytest.raises(IndexError, match="index 3 is out of range for dim 1 of size 3"):
        loss(x, tf.tensor([0, 3]))
    with pytest.raises(IndexError, match="index -1 "):
        loss(x, tf.tensor([-1, 0]))
    with pytest.raises(ValueError, match=r"expected target \(2,\)"):
        loss(x, tf.tensor([0, 1, 2]))
    with pytest.raises(RuntimeError, match=r"expected target \(2, 4\)"):
        loss(tf.zeros(2, 3, 4), tf.zeros(2, 5, dtype=tf.int64))
    with pytest.raises(RuntimeError, match="float32"):
        loss(x, tf.tensor([0.0, float("nan")]))
    with pytest.raises(RuntimeError, match="int32"):
        loss(x, tf.tensor([0, 1], dtype=tf.int32))
    with pytest.raises(RuntimeError, match=r"weight is \(2,\)"):
        loss(x, tf.tensor([0, 1]), tf.ones(2))
    with pytest.raises(ValueError, match="reduction"):
        loss(x, tf.tensor([0, 1]), reduction="max")


def test_attention_errors():
    q, v = tf.zeros(2, 3, 4), tf.zeros(2, 3, 5)
    with pytest.raises(RuntimeError, match=r"query is \(2, 3, 4\), key is \(2, 3, 5\)"):
        tf.scaled_dot_product_attention(q, v, v)
    with pytest.raises(RuntimeError, match="float64"):
        tf.scaled_dot_product_attention(q, q.double(), q)
    with pytest.raises(RuntimeError, match=r"attn_mask is \(4, 4\), which does not broadcast"):
        tf.scaled_dot_product_attention(q, q, q, attn_mask=tf.zeros(4, 4))
    with pytest.raises(RuntimeError, match="attn_mask has dtype"):
        tf.scaled_dot_product_attention(q, q, q, attn_mask=tf.zeros(3, 3, dtype=tf.int64))


def test_step_errors():
    p = tf.zeros(3)
    with pytest.raises(RuntimeError, match=r"its gradient is \(4,\), the parameter is \(3,\)"):
        F.sgd_step_(p, tf.zeros(4), None, 0.1)
    with pytest.raises(NotImplementedError, match="the parameter has dtype"):
        F.sgd_step_(p.long(), p.long(), None, 0.1)


def test_recurrence_errors():
    x, h, w = tf.zeros(4, 2, 12), tf.zeros(2, 3), tf.zeros(12, 3)

    def steps(x=x, h=h, c=h, w=w, b=None, mode="LSTM"):
        return F.recurrence_steps(x, h, c, w, b, mode)

    for options, text in (
        ({"c": None}, "c is None, expected a Tensor for an LSTM"),
        ({"mode": "GRU"}, r"w is \(12, 3\) of .*float32, expected \(9, 3\)"),
        ({"mode": "RNN_TANH", "w": tf.zeros(3, 3)}, "c is given, expected"),
        ({"c": tf.zeros(1, 3)}, r"c is \(1, 3\)"),
        ({"h": tf.zeros(3)}, r"h is \(3,\), expected \(batch, size\)"),
        ({"h": h.double()}, r"h is \(2, 3\) of .*float64, expected \(2, 3\) of .*float32"),
        ({"x": tf.zeros(0, 2, 12)}, "x is .* with at least one step"),
        ({"x": tf.zeros(4, 12)}, r"x is \(4, 12\), expected \(steps, batch, 12\)"),
        ({"x": tf.zeros(4, 2, 9)}, r"x is \(4, 2, 9\)"),
        ({"b": tf.zeros(3)}, r"bias is \(3,\)"),
    ):
        with pytest.raises(RuntimeError, match="recurrence_steps: " + text):
            steps(**options)
    with pytest.raises(ValueError, match="mode"):
        steps(mode="lstm")
    with pytest.raises(NotImplementedError, match="w has dtype"):
        steps(*(t.long() for t in (x, h, h, w)))
    y, cells, gates = steps()
    good = {"g": y, "g_cells": cells, "g_gates": gates, "y": y, "cells": cells, "gates": gates}
    for name, wrong in (
        *((name, tf.zeros(4, 2, 4)) for name in good),
        *((name, good[name].double()) for name in good),
        ("y", tf.zeros(0, 2, 3)),
        ("y", h),
    ):
        given = good | {name: wrong}
        first, last = list(given.values())[:3], list(given.values())[3:]
        with pytest.raises(RuntimeError, match=f"recurrence_grad: {name} is"):
            F.recurrence_grad(*first, h, h, w, *last, "LSTM")
