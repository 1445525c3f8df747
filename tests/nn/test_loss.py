"""Modules of losses, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

import tinyfin as tf

normal, integers, rng = against.normal, against.integers, against.rng
REDUCTIONS = ["none", "mean", "sum"]
X, Y = normal(4, 5), normal(4, 5, seed=1)
SIGNS = np.where(rng(2).random((4, 5)) < 0.5, -1.0, 1.0).astype("float32")
PROBABILITIES = rng(3).random((4, 5)).astype("float32")
MORE = rng(4).random((4, 5)).astype("float32")


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    "name, options",
    [
        ("MSELoss", {}),
        ("L1Loss", {}),
        ("SmoothL1Loss", {}),
        ("SmoothL1Loss", {"beta": 0.3}),
        ("SmoothL1Loss", {"beta": 0.0}),
        ("HuberLoss", {}),
        ("HuberLoss", {"delta": 0.4}),
        ("BCEWithLogitsLoss", {}),
    ],
)
def test_of_numbers(name, options, reduction):
    y = PROBABILITIES if name.startswith("BCE") else Y
    against.module(lambda nn: getattr(nn, name)(reduction=reduction, **options), X, y)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_bce(reduction):
    against.module(lambda nn: nn.BCELoss(reduction=reduction), PROBABILITIES, MORE)
    edges = np.array([0.0, 1.0, 0.5, 1.0], "float32")
    targets = np.array([1.0, 1.0, 0.0, 0.0], "float32")
    fixed = against.Fixed(targets)
    against.module(lambda nn: nn.BCELoss(reduction=reduction), edges, fixed, smooth=False)


def weight_of(nn, *values):
    return (tf if nn is tf.nn else against.torch).tensor(values)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weighted_bce(reduction):
    w, p = (1.0, 2.0, 0.5, 1.0, 3.0), (0.5, 1.0, 2.0, 4.0, 1.0)
    against.module(
        lambda nn: nn.BCELoss(weight_of(nn, *w), reduction=reduction), PROBABILITIES, MORE
    )
    against.module(
        lambda nn: nn.BCEWithLogitsLoss(
            weight_of(nn, *w), reduction=reduction, pos_weight=weight_of(nn, *p)
        ),
        X,
        MORE,
    )


SHAPES = [((6, 5), (6,)), ((5,), ()), ((3, 5, 2), (3, 2)), ((2, 5, 3, 4), (2, 3, 4))]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape, labels", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "name, options",
    [
        ("NLLLoss", {}),
        ("CrossEntropyLoss", {}),
        ("CrossEntropyLoss", {"label_smoothing": 0.2}),
        ("NLLLoss", {"ignore_index": 1}),
        ("CrossEntropyLoss", {"ignore_index": 1}),
        ("CrossEntropyLoss", {"label_smoothing": 0.1, "ignore_index": 2}),
    ],
)
def test_of_classes(name, options, reduction, shape, labels, weighted):
    w = (1.0, 2.0, 0.5, 1.5, 3.0)
    target = np.asarray(integers(5, *labels, seed=3))
    if labels == ():
        target = np.asarray(3)
    against.module(
        lambda nn: getattr(nn, name)(
            weight_of(nn, *w) if weighted else None, reduction=reduction, **options
        ),
        normal(*shape),
        target,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(6, 5), (5,), (2, 5, 3)])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.3}])
@pytest.mark.parametrize("weighted", [False, True])
def test_of_class_probabilities(reduction, shape, options, weighted):
    w = (1.0, 2.0, 0.5, 1.5, 3.0)
    target = rng(5).random(shape).astype("float32")
    against.module(
        lambda nn: nn.CrossEntropyLoss(
            weight_of(nn, *w) if weighted else None, reduction=reduction, **options
        ),
        normal(*shape),
        target,
    )


@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
def test_kl_div(reduction):
    logs = np.log(PROBABILITIES + 0.1)
    target = MORE.copy()
    against.module(lambda nn: nn.KLDivLoss(reduction=reduction), logs, target)
    target[0, 0] = 0.0
    against.module(lambda nn: nn.KLDivLoss(reduction=reduction), logs, against.Fixed(target))
    against.module(
        lambda nn: nn.KLDivLoss(reduction=reduction, log_target=True), logs, np.log(MORE + 0.1)
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_with_margins(reduction):
    signs, s = against.Fixed(SIGNS), against.Fixed(SIGNS[:, 0])
    against.module(lambda nn: nn.MarginRankingLoss(0.3, reduction=reduction), X, Y, SIGNS)
    against.module(lambda nn: nn.HingeEmbeddingLoss(0.7, reduction=reduction), X, signs)
    against.module(lambda nn: nn.CosineEmbeddingLoss(0.1, reduction=reduction), X, Y, s)
    against.module(lambda nn: nn.SoftMarginLoss(reduction=reduction), X, against.Fixed(SIGNS))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("options", [{}, {"margin": 0.5, "p": 1.0}, {"swap": True}])
def test_of_triplets(reduction, options):
    against.module(
        lambda nn: nn.TripletMarginLoss(reduction=reduction, **options), X, Y, normal(4, 5, seed=7)
    )


def test_distances():
    against.module(lambda nn: nn.CosineSimilarity(dim=0), X, Y)
    against.module(lambda nn: nn.PairwiseDistance(p=1.0, keepdim=True), X, Y)


@pytest.mark.parametrize(
    "switches, reduction",
    [
        ({"reduce": False}, "none"),
        ({"size_average": False}, "sum"),
        ({"size_average": True}, "mean"),
        ({"reduce": True}, "mean"),
        ({"size_average": False, "reduce": False}, "none"),
    ],
)
def test_older_switches(switches, reduction):
    assert tf.nn.MSELoss(**switches).reduction == reduction


def test_weights_are_buffers():
    loss = tf.nn.CrossEntropyLoss(tf.ones(3))
    assert list(loss.state_dict()) == ["weight"]
    assert list(tf.nn.BCEWithLogitsLoss(pos_weight=tf.ones(1)).state_dict()) == ["pos_weight"]


def test_bad_arguments():
    with pytest.raises(ValueError, match="margin is 0"):
        tf.nn.TripletMarginLoss(margin=0)
    with pytest.raises(ValueError, match="some"):
        tf.nn.MSELoss(reduction="some")(tf.ones(2), tf.ones(2))


def test_examples():
    examples.run("tinyfin.nn.loss")
