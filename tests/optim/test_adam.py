"""Adam and AdamW against PyTorch over all their options."""

import pytest
from lazy import torch
from nn import examples
from optim import trajectories

import tinyfin as tf

OPTIONS = [
    {},
    {"lr": 0.1},
    {"lr": 0.1, "betas": (0.5, 0.7)},
    {"lr": 0.1, "betas": (0.0, 0.9), "eps": 1e-2},
    {"lr": 0.1, "weight_decay": 0.3},
    {"lr": 0.1, "amsgrad": True},
    {"lr": 0.1, "maximize": True},
    {"lr": 0.1, "amsgrad": True, "maximize": True, "weight_decay": 0.1, "eps": 1e-4},
]


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
@pytest.mark.parametrize("options", OPTIONS)
def test_steps_follow_the_rule(name, options):
    trajectories.check_rule(tf, name, options)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
@pytest.mark.parametrize("options", OPTIONS)
def test_steps_agree_with_pytorch(name, options):
    trajectories.check(tf, torch, name, options)


def test_decoupled_adam_is_adamw():
    options = {"lr": 0.1, "weight_decay": 0.2}
    a = trajectories.run(tf, "Adam", {**options, "decoupled_weight_decay": True})
    assert trajectories.largest(a, trajectories.run(tf, "AdamW", options)) == 0.0


def test_groups_have_options_of_their_own():
    one, two = {"lr": 0.05}, {"lr": 0.2, "betas": (0.6, 0.9), "weight_decay": 0.1}
    params, grads = trajectories.make(tf), trajectories.gradients(20)
    start = [p.detach().numpy().copy() for p in params]
    groups = [{"params": params[:2], **one}, {"params": params[2:], **two, "lr": 0.2}]
    got = trajectories.steps(tf, params, tf.optim.Adam(groups, lr=9.0), grads)
    a = trajectories.formula("Adam", one, start[:2], [g[:2] for g in grads])
    b = trajectories.formula("Adam", two, start[2:], [g[2:] for g in grads])
    assert trajectories.largest(got, [x + y for x, y in zip(a, b)]) < 1e-10


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
@pytest.mark.parametrize(
    "options, text",
    [
        ({"lr": -1.0}, "lr is -1.0"),
        ({"lr": float("nan")}, "lr is nan"),
        ({"lr": float("inf")}, "lr is inf"),
        ({"eps": -1e-8}, "eps is -1e-08"),
        ({"betas": (1.0, 0.9)}, r"betas\[0\] is 1.0"),
        ({"betas": (0.9, -0.1)}, r"betas\[1\] is -0.1"),
        ({"betas": (0.9, float("nan"))}, r"betas\[1\] is nan"),
        ({"weight_decay": -1}, "weight_decay is -1"),
    ],
)
def test_bad_options(name, options, text):
    with pytest.raises(ValueError, match=text):
        getattr(tf.optim, name)([tf.nn.Parameter(tf.ones(1))], **options)


def test_state_of_pytorch_is_taken():
    options, grads = {"lr": 0.1, "amsgrad": True}, trajectories.gradients(20)
    theirs = trajectories.make(torch)
    ref = torch.optim.Adam(theirs, **options)
    trajectories.steps(torch, theirs, ref, grads[:7])
    state = ref.state_dict()
    types = {"step": tf.float32}
    state["state"] = {
        number: {
            key: tf.tensor(value.tolist(), dtype=types.get(key, tf.float64))
            for key, value in entry.items()
        }
        for number, entry in state["state"].items()
    }
    ours = [tf.nn.Parameter(tf.tensor(p.tolist(), dtype=tf.float64)) for p in theirs]
    opt = tf.optim.Adam(ours, **options)
    opt.load_state_dict(state)
    a = trajectories.steps(tf, ours, opt, grads[7:])
    assert trajectories.largest(a, trajectories.steps(torch, theirs, ref, grads[7:])) < 1e-10


def test_examples():
    examples.run("tinyfin.optim.adam")
