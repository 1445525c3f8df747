"""RMSprop against PyTorch over all its options."""

import pytest
from lazy import torch
from nn import examples
from optim import trajectories

import tinyfin as tf

OPTIONS = [
    {},
    {"lr": 0.1},
    {"lr": 0.1, "alpha": 0.5, "eps": 1e-2},
    {"lr": 0.1, "weight_decay": 0.3},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "centered": True, "eps": 1e-4},
    {"lr": 0.1, "maximize": True},
    {
        "lr": 0.05,
        "centered": True,
        "momentum": 0.5,
        "weight_decay": 0.1,
        "maximize": True,
        "eps": 1e-3,
    },
]


@pytest.mark.parametrize("options", OPTIONS)
def test_steps_follow_the_rule(options):
    trajectories.check_rule(tf, "RMSprop", options, tolerance=1e-8)


@pytest.mark.parametrize("options", OPTIONS)
def test_steps_agree_with_pytorch(options):
    trajectories.check(tf, torch, "RMSprop", options, tolerance=1e-8)


@pytest.mark.parametrize("option", ["lr", "alpha", "eps", "momentum", "weight_decay"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_bad_options(option, value):
    with pytest.raises(ValueError, match=f"{option} is {value}"):
        tf.optim.RMSprop([tf.nn.Parameter(tf.ones(1))], **{option: value})


def test_examples():
    examples.run("tinyfin.optim.rmsprop")
