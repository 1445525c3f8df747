"""Layers of the Transformer, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

import tinyfin as tf

normal = against.normal
OPTIONS = [{}, {"norm_first": True}, {"activation": "gelu"}, {"bias": False}, {"batch_first": True}]
CAUSAL = np.triu(np.full((4, 4), -np.inf, "float32"), 1)
PADDED = np.array([[False] * 4, [False, False, True, True], [False, True, False, False]])


def small(make, name, **options):
    return getattr(make, name)(8, 2, dim_feedforward=12, dropout=0.0, **options)


def sequence(options, length, seed=0):
    x = normal(3, length, 8, seed=seed)
    return x if options.get("batch_first") else np.ascontiguousarray(x.swapaxes(0, 1))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("masks", [{}, {"src_mask": CAUSAL}, {"src_key_padding_mask": PADDED}])
def test_encoder_layer(options, masks):
    against.module(
        lambda nn: small(nn, "TransformerEncoderLayer", **options),
        sequence(options, 4),
        spread=0.3,
        tolerance=1e-4,
        **masks,
    )


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("masks", [{}, {"tgt_mask": CAUSAL, "memory_key_padding_mask": PADDED}])
def test_decoder_layer(options, masks):
    against.module(
        lambda nn: small(nn, "TransformerDecoderLayer", **options),
        sequence(options, 4),
        sequence(options, 4, 1),
        spread=0.3,
        tolerance=1e-4,
        **masks,
    )


def test_stacks():
    against.module(
        lambda nn: nn.TransformerEncoder(small(nn, "TransformerEncoderLayer"), 2, nn.LayerNorm(8)),
        sequence({}, 4),
        spread=0.3,
        tolerance=1e-4,
        mask=against.Fixed(CAUSAL),
    )
    against.module(
        lambda nn: nn.TransformerDecoder(small(nn, "TransformerDecoderLayer"), 2),
        sequence({}, 4),
        sequence({}, 5, 1),
        spread=0.3,
        tolerance=1e-4,
        tgt_mask=against.Fixed(CAUSAL),
    )


def test_whole():
    make = {"num_encoder_layers": 1, "num_decoder_layers": 2, "dim_feedforward": 12, "dropout": 0.0}
    against.module(
        lambda nn: nn.Transformer(8, 2, **make),
        sequence({}, 5),
        sequence({}, 4, 1),
        spread=0.3,
        tolerance=1e-4,
        tgt_mask=against.Fixed(CAUSAL),
    )


def test_layers_of_a_stack_are_copies():
    stack = tf.nn.TransformerEncoder(small(tf.nn, "TransformerEncoderLayer"), 2)
    a, b = (layer.linear1.weight for layer in stack.layers)
    assert a is not b and a.tolist() == b.tolist()


def test_causal_mask():
    mask = tf.nn.Transformer.generate_square_subsequent_mask(4)
    assert mask.tolist() == CAUSAL.tolist()


def test_errors():
    with pytest.raises(RuntimeError, match="activation is 'tanh'"):
        small(tf.nn, "TransformerEncoderLayer", activation="tanh")
    net = tf.nn.Transformer(8, 2, 1, 1, 12)
    with pytest.raises(RuntimeError, match="equal batches"):
        net(tf.ones(5, 3, 8), tf.ones(4, 2, 8))
    with pytest.raises(RuntimeError, match="last size of 8"):
        net(tf.ones(5, 3, 7), tf.ones(4, 3, 8))


def test_examples():
    examples.run("tinyfin.nn.transformer")
