"""Samples of activations that are composed of other rows."""

import numpy as np
from makers.elementwise import SPECIAL, elementwise
from samples import Sample, maker

ATTRS = {
    "gelu": [{"approximate": "tanh"}, {"approximate": "none"}],
    "softplus": [{"beta": 2.0}, {"beta": 0.5, "threshold": 1.0}],
    "hardtanh": [{"min_val": -0.5, "max_val": 1.5}],
    "celu": [{"alpha": 0.6}, {"alpha": 2.5}],
}


@maker(
    "gelu",
    "softplus",
    "hardtanh",
    "relu6",
    "hardsigmoid",
    "hardswish",
    "logsigmoid",
    "mish",
    "celu",
    "selu",
    "softsign",
)
def composed(rng, name):
    """Shapes, attributes, special values."""
    spread = 8 if name in ("relu6", "hardsigmoid", "hardswish") else 4
    for shape in (3, 5), (), (0, 3), (2, 1, 3):
        yield Sample(np.asarray(rng.uniform(-spread, spread, shape)))
    for attrs in ATTRS.get(name, ()):
        yield Sample(rng.uniform(-3, 3, (2, 6)), **attrs)
    yield Sample(rng.uniform(-spread, spread, (67,))).but(grad=False)
    own = name == "gelu"  # PyTorch's vectors give NaN for inf, its scalars inf
    yield Sample(SPECIAL).but(grad=False, only="f", note="special", torch=not own)


@maker("gelu_tanh_grad")
def gradients(rng):
    """A cotangent and the input."""
    for shape in (3, 4), (), (0, 2):
        yield Sample(np.asarray(rng.standard_normal(shape)), np.asarray(rng.uniform(-2, 2, shape)))


@maker(
    "relu_grad",
    "sigmoid_grad",
    "silu_grad",
    "gelu_erf_grad",
    "hardtanh_grad",
    "hardsigmoid_grad",
    "hardswish_grad",
    "leaky_relu_grad",
    "elu_grad",
    "softplus_grad",
)
def kernels(rng, name, row):
    """Gradient rows with a kernel are elementwise rows."""
    yield from elementwise(rng, name, row)
