"""Multi-head attention, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

import tinyfin as tf

normal, rng = against.normal, against.rng
OPTIONS = [
    {},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True},
    {"kdim": 5, "vdim": 3},
    {"batch_first": True},
]
N, L, S, E, H = 3, 4, 5, 8, 2
FUTURE = np.triu(np.ones((L, S), bool), 1)
NUMBERS = normal(L, S, seed=9)
PER_HEAD = rng(1).random((N * H, L, S)) < 0.3
PADDED = np.zeros((N, S), bool)
PADDED[0, 3:] = PADDED[2, 1] = True
PER_HEAD[..., 0] = False
MASKS = [
    {},
    {"attn_mask": FUTURE},
    {"attn_mask": NUMBERS},
    {"attn_mask": PER_HEAD},
    {"key_padding_mask": PADDED},
    {"attn_mask": FUTURE, "key_padding_mask": PADDED},
    {"attn_mask": NUMBERS, "key_padding_mask": normal(N, S, seed=5)},
]


def inputs(options, batched=True):
    sizes = E, options.get("kdim", E), options.get("vdim", E)
    lengths = L, S, S
    out = []
    for i, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        x = normal(N, length, size, seed=i)
        if not batched:
            out.append(x[0])
        else:
            out.append(x if options.get("batch_first") else np.ascontiguousarray(x.swapaxes(0, 1)))
    return out


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("need_weights", [True, False])
def test_values_and_gradients(options, masks, need_weights):
    against.module(
        lambda nn: nn.MultiheadAttention(E, H, **options),
        *inputs(options),
        need_weights=need_weights,
        spread=0.3,
        tolerance=5e-5,
        **masks,
    )


@pytest.mark.parametrize("options", OPTIONS[:3])
@pytest.mark.parametrize("masks", [{}, {"attn_mask": FUTURE}, {"key_padding_mask": PADDED[0]}])
def test_without_batch(options, masks):
    against.module(
        lambda nn: nn.MultiheadAttention(E, H, **options),
        *inputs(options, False),
        spread=0.3,
        tolerance=5e-5,
        **masks,
    )


def test_weights_of_each_head():
    against.module(
        lambda nn: nn.MultiheadAttention(E, H), *inputs({}), average_attn_weights=False, spread=0.3
    )


@pytest.mark.parametrize("need_weights", [True, False])
def test_causal(need_weights):
    x = normal(L, N, E)
    mask = np.triu(np.full((L, L), -np.inf, "float32"), 1)
    torch = against.torch
    ours, theirs = (m.nn.MultiheadAttention(E, H) for m in (tf, torch))
    against.same_state(ours, theirs)
    got = []
    for m, net in ((tf, ours), (torch, theirs)):
        t = against.tensor(m, x)
        y, _ = net(
            t,
            t,
            t,
            attn_mask=against.tensor(m, mask, False),
            is_causal=True,
            need_weights=need_weights,
        )
        got.append([y, *against.gradients(m, [y], [t], net.parameters())])
    for a, b in zip(*got, strict=True):
        against.close(a, b, tolerance=1e-4)


def test_dropout_only_while_training():
    layer = tf.nn.MultiheadAttention(E, H, dropout=1.0, bias=False)
    x = tf.ones(L, N, E)
    assert layer(x, x, x)[0].abs().max().item() == 0.0
    assert layer(x, x, x, need_weights=False)[0].abs().max().item() == 0.0
    layer.eval()
    assert layer(x, x, x)[0].abs().max().item() > 0.0


def test_errors():
    with pytest.raises(ValueError, match="embed_dim is 0"):
        tf.nn.MultiheadAttention(0, 1)
    with pytest.raises(AssertionError, match="does not divide"):
        tf.nn.MultiheadAttention(5, 2)
    layer = tf.nn.MultiheadAttention(E, H)
    x = tf.ones(L, N, E)
    with pytest.raises(AssertionError, match="have sizes 7"):
        layer(tf.ones(L, N, 7), x, x)
    with pytest.raises(AssertionError, match="equal batches"):
        layer(x, x, tf.ones(L + 1, N, E))
    with pytest.raises(RuntimeError, match="attn_mask is"):
        layer(x, x, x, attn_mask=tf.zeros(2, 2))
    with pytest.raises(AssertionError, match="key_padding_mask is"):
        layer(x, x, x, key_padding_mask=tf.zeros(2, 2))
    with pytest.raises(RuntimeError, match="without attn_mask"):
        layer(x, x, x, is_causal=True)
    with pytest.raises(AssertionError, match="expected bool or a floating"):
        layer(x, x, x, attn_mask=tf.zeros(L, L, dtype=tf.int64))


def test_examples():
    examples.run("tinyfin.nn.attention")
