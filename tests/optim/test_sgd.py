"""SGD against PyTorch over all its options."""

import pytest
from lazy import torch
from nn import examples
from optim import trajectories

import tinyfin as tf

OPTIONS = [
    {},
    {"lr": 0.1},
    {"lr": 0.1, "weight_decay": 0.3},
    {"lr": 0.1, "maximize": True},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.4},
    {"lr": 0.1, "momentum": 0.8, "nesterov": True},
    {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.2, "maximize": True},
    {"lr": 0.1, "momentum": 0.5, "dampening": 0.5, "weight_decay": 0.1},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_steps_follow_the_rule(options):
    trajectories.check_rule(tf, "SGD", options)


@pytest.mark.parametrize("options", OPTIONS)
def test_steps_agree_with_pytorch(options):
    trajectories.check(tf, torch, "SGD", options)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"lr": -1.0}, "lr is -1.0"),
        ({"lr": float("nan")}, "lr is nan"),
        ({"lr": float("inf")}, "lr is inf"),
        ({"momentum": -0.1}, "momentum is -0.1"),
        ({"weight_decay": -1}, "weight_decay is -1"),
        ({"weight_decay": float("nan")}, "weight_decay is nan"),
        ({"nesterov": True}, "nesterov with momentum 0"),
        ({"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "dampening 0.1"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError, match=text):
        tf.optim.SGD([tf.nn.Parameter(tf.ones(1))], **options)


def test_bad_option_of_a_group():
    with pytest.raises(ValueError, match="lr is nan"):
        tf.optim.SGD([{"params": [tf.nn.Parameter(tf.ones(1))], "lr": float("nan")}])


def test_differentiable_is_refused():
    with pytest.raises(NotImplementedError, match="differentiable"):
        tf.optim.SGD([tf.nn.Parameter(tf.ones(1))], differentiable=True)


def test_examples():
    examples.run("tinyfin.optim.sgd")
