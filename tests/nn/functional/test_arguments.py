"""Arguments in several forms, and tensors that are none."""

import pytest
from nn import examples

import tinyfin as tf
from tinyfin.nn.functional.arguments import sizes

F = tf.nn.functional
X = tf.ones(1, 1, 4, 4)


@pytest.mark.parametrize(
    "value, n, result",
    [
        (2, 3, (2, 2, 2)),
        ((1, 2), 2, (1, 2)),
        ([1, 2], 2, (1, 2)),
        ([3], 2, (3, 3)),
        ((3,), 1, (3,)),
        (tf.tensor(2), 2, (2, 2)),
        (True, 2, (1, 1)),
    ],
)
def test_sizes(value, n, result):
    assert sizes("f", "x", value, n) == result


@pytest.mark.parametrize(
    "value, error",
    [
        (1.5, TypeError),
        ("a", TypeError),
        ([1, "a"], TypeError),
        (None, TypeError),
        ([1, 2, 3], RuntimeError),
        ((), RuntimeError),
    ],
)
def test_bad_sizes(value, error):
    with pytest.raises(error, match=r"f: x is .*, expected an int or 2 of them"):
        sizes("f", "x", value, 2)


def test_tuples_of_the_wrong_kind_are_refused_by_the_rows():
    with pytest.raises(TypeError, match="stride"):
        F.conv2d(X, X, stride=(1, 1.5))


CALLS = {
    "relu": (),
    "relu6": (),
    "leaky_relu": (),
    "elu": (),
    "selu": (),
    "celu": (),
    "gelu": (),
    "silu": (),
    "mish": (),
    "softplus": (),
    "softsign": (),
    "tanhshrink": (),
    "hardtanh": (),
    "hardswish": (),
    "hardsigmoid": (),
    "threshold": (1.0, 2.0),
    "hardshrink": (),
    "softshrink": (),
    "sigmoid": (),
    "logsigmoid": (),
    "tanh": (),
    "glu": (),
    "softmax": (0,),
    "log_softmax": (0,),
    "prelu": (X,),
    "dropout": (),
    "dropout1d": (),
    "dropout2d": (),
    "dropout3d": (),
    "linear": (X,),
    "bilinear": (X, X),
    "embedding": (X,),
    "one_hot": (),
    "conv1d": (X,),
    "conv2d": (X,),
    "conv3d": (X,),
    "conv_transpose1d": (X,),
    "conv_transpose2d": (X,),
    "conv_transpose3d": (X,),
    "max_pool1d": (2,),
    "max_pool2d": (2,),
    "max_pool3d": (2,),
    "avg_pool1d": (2,),
    "avg_pool2d": (2,),
    "avg_pool3d": (2,),
    "adaptive_avg_pool1d": (1,),
    "adaptive_avg_pool2d": (1,),
    "adaptive_avg_pool3d": (1,),
    "pad": ((1, 1),),
    "interpolate": (2,),
    "pixel_shuffle": (1,),
    "pixel_unshuffle": (1,),
    "batch_norm": (None, None),
    "instance_norm": (),
    "group_norm": (1,),
    "layer_norm": ((4,),),
    "rms_norm": ((4,),),
    "normalize": (),
    "cosine_similarity": (X,),
    "pairwise_distance": (X,),
    "mse_loss": (X,),
    "l1_loss": (X,),
    "smooth_l1_loss": (X,),
    "huber_loss": (X,),
    "nll_loss": (X,),
    "cross_entropy": (X,),
    "binary_cross_entropy": (X,),
    "binary_cross_entropy_with_logits": (X,),
    "kl_div": (X,),
    "margin_ranking_loss": (X, X),
    "hinge_embedding_loss": (X,),
    "cosine_embedding_loss": (X, X),
    "triplet_margin_loss": (X, X),
    "soft_margin_loss": (X,),
    "scaled_dot_product_attention": (X, X),
    "gumbel_softmax": (),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("value", [None, "x", [1.0, 2.0]])
def test_first_arguments_that_are_no_tensors(name, value):
    with pytest.raises(TypeError):
        getattr(F, name)(value, *CALLS[name])


def test_all_functions_are_in_the_list():
    functions = {n for n, f in vars(F).items() if callable(f) and not n.startswith("_")}
    assert functions - set(CALLS) == {"relu_", "softmin"}


def test_examples():
    examples.run("tinyfin.nn.functional.arguments")


nn = tf.nn
LAYERS = [
    (lambda: nn.Linear(-2, 3), RuntimeError, "Linear: in_features is -2, expected at least 0"),
    (lambda: nn.Linear(2.5, 3), TypeError, "Linear: in_features is 2.5, expected an integer"),
    (lambda: nn.Bilinear(2, -1, 3), RuntimeError, "Bilinear: in2_features is -1"),
    (lambda: nn.Embedding(True, 3), TypeError, "Embedding: num_embeddings is True"),
    (lambda: nn.Conv2d("a", 3, 3), TypeError, "Conv2d: in_channels is 'a', expected an integer"),
    (lambda: nn.Conv1d(4, 4, 3, groups="2"), TypeError, "Conv1d: groups is '2'"),
    (lambda: nn.BatchNorm2d(0.5), TypeError, "BatchNorm2d: num_features is 0.5"),
    (lambda: nn.GroupNorm(None, 4), TypeError, "GroupNorm: num_groups is None"),
    (lambda: nn.MultiheadAttention(4, None), TypeError, "MultiheadAttention: num_heads is None"),
    (lambda: nn.Dropout("a"), TypeError, "Dropout: p is 'a', expected a probability"),
    (lambda: F.dropout(X, p=None), TypeError, "dropout: p is None, expected a probability"),
    (lambda: F.glu(X, dim=5), IndexError, "glu: dim 5 is out of range, expected -4 to 3"),
    (lambda: F.pad(X, 0), TypeError, "pad: pad is 0, expected a sequence of integers"),
    (lambda: F.hardtanh(X, "a"), TypeError, "hardtanh: min_val is 'a', expected a number"),
    (
        lambda: F.adaptive_avg_pool2d(X, 1.5),
        TypeError,
        "adaptive_avg_pool2d: output_size is 1.5, expected an int or 2 of them",
    ),
]


@pytest.mark.parametrize("call, error, text", LAYERS)
def test_layers_name_what_came(call, error, text):
    with pytest.raises(error, match=text):
        call()


COMPOSED = [
    (lambda: F.cosine_similarity(tf.ones(3), tf.ones(4)), "cosine_similarity: shapes"),
    (lambda: F.pairwise_distance(tf.ones(3), tf.ones(4)), "pairwise_distance: shapes"),
    (lambda: F.normalize(tf.ones(3), dim=4), "normalize: dim 4 is out of range"),
    (lambda: F.gumbel_softmax(tf.ones(3).long()), "gumbel_softmax: "),
    (lambda: F.hinge_embedding_loss(tf.ones(3), tf.ones(4)), "hinge_embedding_loss: shapes"),
    (lambda: F.soft_margin_loss(tf.ones(3), tf.ones(4)), "soft_margin_loss: "),
]


@pytest.mark.parametrize("call, text", COMPOSED)
def test_composed_functions_speak_of_themselves(call, text):
    with pytest.raises((RuntimeError, IndexError), match=text):
        call()
