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
