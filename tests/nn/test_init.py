"""Initialisers: shapes, moments, bounds, exact patterns."""

import math

import numpy as np
import pytest
from lazy import torch
from nn import examples

import tinyfin as tf

init = tf.nn.init


def moments(x):
    return x.mean().item(), x.std().item()


@pytest.mark.parametrize(
    "name",
    ["linear", "conv1d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"],
)
@pytest.mark.parametrize("param", [None, 0.3])
def test_gains_are_those_of_pytorch(name, param):
    assert init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)


def test_gains():
    assert init.calculate_gain("conv2d") == init.calculate_gain("sigmoid") == 1.0
    assert init.calculate_gain("tanh") == 5 / 3 and init.calculate_gain("selu") == 0.75
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 0.3) == math.sqrt(2 / 1.09)


def test_bad_gains():
    with pytest.raises(ValueError, match="nonlinearity is 'x'"):
        init.calculate_gain("x")
    with pytest.raises(ValueError, match="param is 'a'"):
        init.calculate_gain("leaky_relu", "a")


@pytest.mark.parametrize(
    "fill, mean, std",
    [
        (lambda x: init.uniform_(x, -1.0, 3.0), 1.0, 4 / math.sqrt(12)),
        (lambda x: init.normal_(x, 2.0, 0.5), 2.0, 0.5),
        (lambda x: init.xavier_uniform_(x, gain=2.0), 0.0, 2 * math.sqrt(2 / 500)),
        (lambda x: init.xavier_normal_(x), 0.0, math.sqrt(2 / 500)),
        (lambda x: init.kaiming_uniform_(x, a=1.0), 0.0, 1 / math.sqrt(200)),
        (
            lambda x: init.kaiming_normal_(x, mode="fan_out", nonlinearity="relu"),
            0.0,
            math.sqrt(2 / 300),
        ),
        (lambda x: init.trunc_normal_(x, 1.0, 0.1), 1.0, 0.1),
        (lambda x: init.trunc_normal_(x, std=1.0, a=-1.0, b=1.0), 0.0, 0.5395),
    ],
)
def test_moments(fill, mean, std):
    tf.manual_seed(3)
    x = tf.empty(300, 200)
    assert fill(x) is x
    got = moments(x)
    assert got[0] == pytest.approx(mean, abs=std / 40) and got[1] == pytest.approx(std, rel=0.03)


def test_bounds():
    x = tf.empty(30, 20)
    bound = math.sqrt(6 / 50)
    assert init.xavier_uniform_(x).abs().max().item() <= bound
    assert init.trunc_normal_(x, 0.0, 5.0, -0.5, 2.0).min().item() >= -0.5 and x.max().item() <= 2.0


def test_fans_of_kernels():
    assert init.kaiming_uniform_(
        tf.empty(4, 3, 5, 5), a=math.sqrt(5)
    ).abs().max().item() <= 1 / math.sqrt(75)


def test_constants():
    x = tf.empty(2, 3)
    assert init.constant_(x, 0.25).tolist() == [[0.25] * 3] * 2
    assert init.ones_(x).tolist() == [[1.0] * 3] * 2 and init.zeros_(x).tolist() == [[0.0] * 3] * 2


def test_eye():
    assert init.eye_(tf.empty(3, 2)).tolist() == np.eye(3, 2).tolist()


@pytest.mark.parametrize(
    "shape, groups", [((4, 3, 3), 1), ((4, 2, 3, 5), 2), ((6, 1, 3, 3, 4), 3), ((2, 5, 4), 1)]
)
def test_dirac(shape, groups):
    ours = init.dirac_(tf.empty(*shape), groups)
    assert ours.tolist() == torch.nn.init.dirac_(torch.empty(*shape), groups).tolist()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (40, 40), (70, 3, 2), (2, 90)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_orthogonal(shape, dtype):
    x = (
        init.orthogonal_(tf.empty(*shape, dtype=getattr(tf, dtype)), gain=2.0)
        .numpy()
        .astype("float64")
    )
    x = x.reshape(shape[0], -1)
    small = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    assert np.allclose(small, 4 * np.eye(len(small)), atol=1e-5 if dtype == "float32" else 1e-12)


def test_orthogonal_has_no_preferred_sign():
    tf.manual_seed(0)
    signs = [init.orthogonal_(tf.empty(1, 1)).item() for _ in range(60)]
    assert set(signs) == {1.0, -1.0}


def test_sparse():
    x = init.sparse_(tf.empty(20, 7), 0.25, std=1.0)
    assert (x == 0).sum(0).tolist() == [5] * 7
    y = init.sparse_(tf.empty(20, 7), 0.25)
    assert (x == 0).tolist() != (y == 0).tolist()


def test_generators():
    def draw(fill):
        g = tf.Generator().manual_seed(7)
        return fill(tf.empty(4, 5), generator=g).tolist()

    for fill in (
        init.uniform_,
        init.normal_,
        init.trunc_normal_,
        init.xavier_normal_,
        init.orthogonal_,
        init.kaiming_uniform_,
        lambda x, generator: init.sparse_(x, 0.5, generator=generator),
    ):
        assert draw(fill) == draw(fill)


def test_parameters_are_filled_without_history():
    p = tf.nn.Parameter(tf.empty(4, 4))
    for fill in (
        init.uniform_,
        init.orthogonal_,
        init.eye_,
        init.zeros_,
        init.trunc_normal_,
        lambda x: init.sparse_(x, 0.5),
    ):
        assert fill(p) is p and p.is_leaf and p.requires_grad


def test_empty_tensors():
    for fill in (init.kaiming_uniform_, init.kaiming_normal_, init.orthogonal_, init.uniform_):
        assert fill(tf.empty(3, 0)).numel() == 0


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: init.xavier_uniform_(tf.empty(3)), "at least two dimensions"),
        (lambda: init.kaiming_normal_(tf.empty(3)), "at least two dimensions"),
        (lambda: init.kaiming_normal_(tf.empty(3, 3), mode="x"), "mode is 'x'"),
        (lambda: init.orthogonal_(tf.empty(3)), "at least two dimensions"),
        (lambda: init.eye_(tf.empty(3)), "expected 2 dimensions"),
        (lambda: init.sparse_(tf.empty(3), 0.1), "expected 2 dimensions"),
        (lambda: init.dirac_(tf.empty(3, 3)), "expected 3 or 4 or 5 dimensions"),
        (lambda: init.dirac_(tf.empty(3, 3, 3), groups=2), "do not divide into 2 groups"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_drawing_agrees_with_the_global_seed():
    tf.manual_seed(1)
    a = tf.nn.Linear(3, 3).weight.tolist()
    tf.manual_seed(1)
    assert tf.nn.Linear(3, 3).weight.tolist() == a


def test_examples():
    examples.run("tinyfin.nn.init")
