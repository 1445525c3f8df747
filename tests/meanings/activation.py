"""Meanings of activations, their gradient rows, and the elementwise parts of losses."""

import numpy as np
from meanings.elementwise import erf, sigmoid
from oracle import meaning

PHI = 1 / np.sqrt(2 * np.pi)


@meaning("sigmoid_tanh", loose=3)
def sigmoid_tanh(a, b):
    return sigmoid(a) * np.tanh(b)


@meaning("sigmoid_gated", loose=3)
def sigmoid_gated(a, b, c):
    return sigmoid(a) * b + c


@meaning("sigmoid_grad", loose=3)
def sigmoid_grad(a, b):
    return a * (1 - b) * b


@meaning("leaky_relu", ulps=1.01)
def leaky_relu(x, negative_slope=0.01):
    return np.where(x > 0, x, x * negative_slope)


@meaning("elu", loose=4)
def elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    return np.where(x > 0, x * scale, np.expm1(np.minimum(x, 0) * input_scale) * alpha * scale)


@meaning("elu_grad", loose=4)
def elu_grad(g, x, alpha=1.0, scale=1.0, input_scale=1.0):
    slope = np.exp(np.minimum(x, 0) * input_scale) * alpha * scale * input_scale
    return g * np.where(x > 0, scale, slope)


def normal_share(x):
    """The normal distribution function."""
    return 0.5 * (1 + erf(x / np.sqrt(2)))


@meaning("gelu_erf", loose=4)
def gelu_erf(x):
    return x * normal_share(x)


@meaning("gelu_erf_grad", loose=4)
def gelu_erf_grad(a, b):
    return a * (normal_share(b) + b * PHI * np.exp(-b * b / 2))


@meaning("gelu_tanh", loose=4)
def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@meaning("gelu_tanh_grad", loose=8)
def gelu_tanh_grad(g, x):
    t = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    inner = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
    return g * ((1 + t) / 2 + x / 2 * (1 - t * t) * inner)


@meaning("gelu", loose=4)
def gelu(x, approximate="none"):
    where = np.isinf(x)
    y = gelu_tanh(x) if approximate == "tanh" else gelu_erf(x)
    return np.where(where & (x > 0), x, y)


@meaning("silu", loose=4)
def silu(x):
    return x * sigmoid(x)


@meaning("silu_grad", loose=4)
def silu_grad(a, b):
    s = sigmoid(b)
    return a * s * (1 + b * (1 - s))


@meaning("softplus", loose=4)
def softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.logaddexp(x * beta, 0) / beta)


@meaning("softplus_grad", loose=4)
def softplus_grad(a, b, beta=1.0, threshold=20.0):
    return np.where(b * beta > threshold, a, a / (1 + np.exp(-b * beta)))


@meaning("hardtanh", ulps=0.5)
def hardtanh(x, min_val=-1.0, max_val=1.0):
    return np.clip(x, min_val, max_val)


@meaning("relu6", ulps=0.5)
def relu6(x):
    return np.clip(x, 0, 6)


@meaning("hardsigmoid", loose=2)
def hardsigmoid(x):
    return np.clip(x + 3, 0, 6) / 6


@meaning("hardswish", loose=2)
def hardswish(x):
    return x * np.clip(x + 3, 0, 6) / 6


@meaning("hardtanh_grad", ulps=0.5)
def hardtanh_grad(a, b, min_val=-1.0, max_val=1.0):
    return np.where((b <= min_val) | (b >= max_val), 0.0, a)


@meaning("hardsigmoid_grad", loose=2)
def hardsigmoid_grad(a, b):
    return np.where((b > -3) & (b < 3), a / 6, 0.0)


@meaning("leaky_relu_grad", loose=2)
def leaky_relu_grad(a, b, negative_slope=0.01):
    return np.where(b > 0, a, a * negative_slope)


@meaning("hardswish_grad", loose=2)
def hardswish_grad(a, b):
    return np.where(b <= -3, 0.0, np.where(b < 3, a * (b / 3 + 0.5), a))


@meaning("logsigmoid", loose=4)
def logsigmoid(x):
    return -np.logaddexp(-x, 0)


@meaning("mish", loose=4)
def mish(x):
    return x * np.tanh(np.logaddexp(x, 0))


@meaning("celu", loose=4)
def celu(x, alpha=1.0):
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(np.minimum(x, 0) / alpha), 0)


@meaning("selu", loose=4)
def selu(x):
    return elu(x, 1.6732632423543772, 1.0507009873554805)


@meaning("softsign", loose=4)
def softsign(x):
    return x / (1 + np.abs(x))


@meaning("squared_error", loose=2)
def squared_error(a, b):
    return (a - b) ** 2


@meaning("absolute_error", ulps=0.5)
def absolute_error(a, b):
    return np.abs(a - b)


@meaning("smooth_error", loose=3)
def smooth_error(a, b, beta=1.0):
    d = np.abs(a - b)
    return np.where(d < beta, d * d / (2 * beta), d - beta / 2)


@meaning("huber_error", loose=3)
def huber_error(a, b, delta=1.0):
    d = np.abs(a - b)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


@meaning("bce_error", loose=4)
def bce_error(a, b):
    return -(b * np.maximum(np.log(a), -100) + (1 - b) * np.maximum(np.log1p(-a), -100))


@meaning("bce_logits_error", loose=4)
def bce_logits_error(a, b):
    return np.logaddexp(0, -a) * b + np.logaddexp(0, a) * (1 - b)


@meaning("bce_logits_weighted_error", loose=6)
def bce_logits_weighted_error(a, b, p):
    return p * b * np.logaddexp(0, -a) + (1 - b) * np.logaddexp(0, a)


@meaning("kl_error", loose=4)
def kl_error(a, b):
    return np.where(b == 0, 0, b * np.log(np.where(b > 0, b, 1))) - b * a


@meaning("kl_log_error", loose=6)
def kl_log_error(a, b):
    return np.exp(b) * (b - a)
