"""Normalisation layers, against PyTorch."""

import numpy as np
import pytest
from nn import against, examples

import tinyfin as tf

normal = against.normal
SHAPES = {
    "BatchNorm1d": [(5, 3), (4, 3, 6)],
    "BatchNorm2d": [(2, 3, 4, 5)],
    "BatchNorm3d": [(2, 3, 2, 3, 4)],
}
BATCH = [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]
OPTIONS = [
    {},
    {"momentum": 0.7, "eps": 1e-2},
    {"momentum": None},
    {"affine": False},
    {"track_running_stats": False},
    {"bias": False},
]


@pytest.mark.parametrize("name, shape", BATCH)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("train", [True, False])
def test_batch_norm(name, shape, options, train):
    against.module(
        lambda nn: getattr(nn, name)(3, **options),
        normal(*shape) * 2 + 1,
        train=train,
        spread=0.5,
        tolerance=5e-5,
    )


@pytest.mark.parametrize("momentum", [0.3, None])
def test_running_statistics_over_batches(momentum):
    torch = against.torch
    ours, theirs = (m.nn.BatchNorm1d(3, momentum=momentum) for m in (tf, torch))
    for i in range(4):
        x = normal(6, 3, seed=i) * (i + 1)
        ours(against.tensor(tf, x))
        theirs(against.tensor(torch, x))
    against.close(ours.running_mean, theirs.running_mean)
    against.close(ours.running_var, theirs.running_var)
    assert ours.num_batches_tracked.item() == 4
    x = normal(6, 3, seed=9)
    against.close(ours.eval()(against.tensor(tf, x)), theirs.eval()(against.tensor(torch, x)))


def test_frozen_statistics_of_a_trained_norm_may_be_dropped():
    layer = tf.nn.BatchNorm1d(2, track_running_stats=False).eval()
    y = layer(tf.tensor([[1.0, 2.0], [3.0, 6.0]]))
    assert np.allclose(y.detach().numpy(), [[-1, -1], [1, 1]], atol=1e-4)


def test_batch_norm_reset():
    layer = tf.nn.BatchNorm1d(2)
    layer(tf.tensor([[1.0, 2.0], [3.0, 6.0]]))
    layer.weight.data.fill_(5.0)
    layer.reset_parameters()
    assert layer.running_mean.tolist() == [0.0, 0.0] and layer.running_var.tolist() == [1.0, 1.0]
    assert layer.num_batches_tracked.item() == 0 and layer.weight.tolist() == [1.0, 1.0]


def test_batch_norm_takes_old_checkpoints():
    layer = tf.nn.BatchNorm1d(2)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    tf.nn.BatchNorm1d(2).load_state_dict(state)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5, 6)])
def test_batch_norm_dimensions(shape):
    with pytest.raises(ValueError, match="BatchNorm2d: input"):
        tf.nn.BatchNorm2d(3)(tf.ones(*shape))


def test_batch_norm_errors():
    with pytest.raises(RuntimeError, match="running_mean"):
        tf.nn.BatchNorm2d(3)(tf.ones(2, 4, 2, 2))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        tf.nn.BatchNorm1d(3)(tf.ones(1, 3))


INSTANCE = [
    ("InstanceNorm1d", (2, 3, 6)),
    ("InstanceNorm2d", (2, 3, 4, 5)),
    ("InstanceNorm3d", (2, 3, 2, 3, 4)),
]


@pytest.mark.parametrize("name, shape", INSTANCE)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"affine": True},
        {"track_running_stats": True},
        {"affine": True, "track_running_stats": True},
    ],
)
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_instance_norm(name, shape, options, train, batched):
    x = normal(*shape) if batched else normal(*shape)[0]
    against.module(
        lambda nn: getattr(nn, name)(3, **options), x, train=train, spread=0.5, tolerance=5e-5
    )


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize(
    "options", [{}, {"eps": 1e-2}, {"elementwise_affine": False}, {"bias": False}]
)
def test_layer_norm(shape, options):
    against.module(lambda nn: nn.LayerNorm(4, **options), normal(*shape), spread=0.5)


def test_layer_norm_over_several_dimensions():
    against.module(lambda nn: nn.LayerNorm((3, 4)), normal(2, 5, 3, 4), spread=0.5)


@pytest.mark.parametrize("options", [{}, {"eps": 1e-2}, {"elementwise_affine": False}])
@pytest.mark.parametrize("shape", [4, (3, 4)])
def test_rms_norm(options, shape):
    against.module(lambda nn: nn.RMSNorm(shape, **options), normal(2, 3, 4), spread=0.5)


@pytest.mark.parametrize(
    "groups, shape",
    [
        (1, (3, 6)),
        (2, (3, 6)),
        (1, (2, 6, 5)),
        (2, (2, 6, 5)),
        (6, (2, 6, 5)),
        (3, (2, 6, 3, 4)),
    ],
)
@pytest.mark.parametrize("options", [{}, {"affine": False}, {"bias": False}])
def test_group_norm(groups, shape, options):
    against.module(
        lambda nn: nn.GroupNorm(groups, 6, **options), normal(*shape), spread=0.5, tolerance=5e-5
    )


def test_other_errors():
    with pytest.raises(ValueError, match="does not divide"):
        tf.nn.GroupNorm(4, 6)
    with pytest.raises(RuntimeError, match="weight"):
        tf.nn.GroupNorm(2, 6)(tf.ones(1, 4, 2))
    with pytest.raises(RuntimeError, match="normalized_shape"):
        tf.nn.LayerNorm(3)(tf.ones(2, 4))
    with pytest.raises(RuntimeError, match="normalized_shape"):
        tf.nn.RMSNorm(3)(tf.ones(2, 4))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        tf.nn.InstanceNorm1d(3)(tf.ones(2, 3, 1))


def test_examples():
    examples.run("tinyfin.nn.norm")


@pytest.mark.parametrize("write", [lambda y: tf.nn.ReLU(inplace=True)(y), lambda y: y.mul_(2)])
def test_results_may_be_written_over(write):
    """Residual networks write activations over what a batch norm gave."""
    net = tf.nn.Sequential(tf.nn.Linear(3, 4), tf.nn.BatchNorm1d(4))
    write(net(tf.rand(8, 3))).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
