"""Modules of activations and dropout, against PyTorch."""

import pytest
from nn import against, examples

import tinyfin as tf

LINE = against.normal(4, 6) * 3

MODULES = {
    "ReLU": [{}],
    "ReLU6": [{}],
    "LeakyReLU": [{}, {"negative_slope": 0.3}],
    "ELU": [{}, {"alpha": 0.5}],
    "SELU": [{}],
    "CELU": [{}, {"alpha": 2.0}],
    "GELU": [{}, {"approximate": "tanh"}],
    "SiLU": [{}],
    "Mish": [{}],
    "Softplus": [{}, {"beta": 2.0, "threshold": 1.0}],
    "Softsign": [{}],
    "Hardswish": [{}],
    "Hardsigmoid": [{}],
    "Sigmoid": [{}],
    "LogSigmoid": [{}],
    "Tanh": [{}],
    "Tanhshrink": [{}],
    "Hardshrink": [{}, {"lambd": 1.0}],
    "Softshrink": [{}, {"lambd": 1.0}],
    "GLU": [{}, {"dim": 0}],
    "Hardtanh": [{}, {"min_val": -2.0, "max_val": 0.5}],
    "Threshold": [{"threshold": 0.5, "value": -1.0}],
    "Softmax": [{"dim": 0}, {"dim": -1}],
    "LogSoftmax": [{"dim": 0}, {"dim": -1}],
    "Softmin": [{"dim": 1}],
    "PReLU": [{}, {"num_parameters": 6, "init": 0.1}],
}
CASES = [(name, options) for name, several in MODULES.items() for options in several]


@pytest.mark.parametrize("name, options", CASES)
def test_values_and_gradients(name, options):
    against.module(lambda nn: getattr(nn, name)(**options), LINE)


INPLACE = [
    "ReLU",
    "ReLU6",
    "LeakyReLU",
    "ELU",
    "SELU",
    "CELU",
    "SiLU",
    "Mish",
    "Hardswish",
    "Hardsigmoid",
    "Hardtanh",
]


@pytest.mark.parametrize("name", INPLACE)
def test_in_place(name):
    layer = getattr(tf.nn, name)(inplace=True)
    assert repr(layer).endswith("inplace=True)")
    x = tf.from_numpy(LINE.copy())
    expected = getattr(tf.nn, name)()(x)
    y = layer(x)
    assert y is x and x.tolist() == expected.tolist()


def test_softmax2d():
    against.module(lambda nn: nn.Softmax2d(), against.normal(2, 3, 2, 2))
    with pytest.raises(ValueError, match="expected 3 or 4 dimensions"):
        tf.nn.Softmax2d()(tf.ones(2, 2))


def test_softmax_without_dim_warns():
    with pytest.warns(UserWarning, match="dim is not given"):
        tf.nn.Softmax()(tf.ones(2, 2))


@pytest.mark.parametrize("kind", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d"])
def test_dropout_modes(kind):
    shape = {
        "Dropout": (50,),
        "Dropout1d": (5, 10, 2),
        "Dropout2d": (5, 10, 2, 2),
        "Dropout3d": (5, 10, 2, 2, 2),
    }[kind]
    layer, x = getattr(tf.nn, kind)(0.5), tf.ones(*shape)
    dropped = set(layer(x).flatten().tolist())
    assert dropped == {0.0, 2.0}
    assert layer.eval()(x).tolist() == x.tolist()
    assert repr(layer) == f"{kind}(p=0.5, inplace=False)"


@pytest.mark.parametrize("kind", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d"])
@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_dropout_probability(kind, p):
    with pytest.raises(ValueError, match="probability"):
        getattr(tf.nn, kind)(p)


def test_bad_arguments():
    with pytest.raises(ValueError, match="max_val"):
        tf.nn.Hardtanh(1.0, 0.0)
    with pytest.raises(RuntimeError, match="weight has 3 elements"):
        tf.nn.PReLU(3)(tf.ones(2, 4))


def test_prelu_reset():
    layer = tf.nn.PReLU(2, init=0.5)
    layer.weight.data.fill_(9.0)
    layer.reset_parameters()
    assert layer.weight.tolist() == [0.5, 0.5]


def test_examples():
    examples.run("tinyfin.nn.activation")
