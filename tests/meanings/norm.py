"""Meanings of softmax and of the norms."""

import numpy as np
from oracle import Typed, meaning


@meaning("log_softmax", loose=4)
def log_softmax(x, dim, dtype=None):
    if x.ndim == 0:
        return x * 0
    d = x - x.max(dim, keepdims=True) if x.size else x
    y = d - np.log(np.exp(d).sum(dim, keepdims=True))
    return y if dtype is None else Typed(y, dtype.name)


@meaning("softmax", loose=4)
def softmax(x, dim, dtype=None):
    y = log_softmax(x, dim, dtype)
    return np.exp(y) if dtype is None else Typed(np.exp(y.values), dtype.name)


@meaning("softmin", loose=4)
def softmin(x, dim, dtype=None):
    return softmax(-x, dim, dtype)


def total(x, dim):
    """A sum that keeps its axis; of a number, the number."""
    return x.sum(dim, keepdims=True) if x.ndim else x


@meaning("softmax_grad", loose=4)
def softmax_grad(g, y, dim):
    return y * (g - total(g * y, dim))


@meaning("log_softmax_grad", loose=4)
def log_softmax_grad(g, y, dim):
    return g - np.exp(y) * total(g, dim)


def last_dims(x, normalized_shape):
    """The axes that are normalised."""
    return tuple(range(x.ndim - len(normalized_shape), x.ndim))


def affine(y, weight, bias):
    """y weight + bias, where they are given."""
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@meaning("native_layer_norm", loose=16)
def native_layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    dims = last_dims(x, normalized_shape)
    mean, var = x.mean(dims, keepdims=True), x.var(dims, keepdims=True)
    return affine((x - mean) / np.sqrt(var + eps), weight, bias), None, None


@meaning("layer_norm", loose=16)
def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return native_layer_norm(x, normalized_shape, weight, bias, eps)[0]


def tiny(eps):
    """The default is the epsilon of the dtype, which stays below what rounding hides."""
    return 0.0 if eps is None else eps


@meaning("native_rms_norm", loose=16)
def native_rms_norm(x, weight=None, normalized_shape=(), eps=None):
    square = (x * x).mean(last_dims(x, normalized_shape), keepdims=True)
    return affine(x / np.sqrt(square + tiny(eps)), weight, None), None


@meaning("rms_norm", loose=16)
def rms_norm(x, normalized_shape, weight=None, eps=None):
    return native_rms_norm(x, weight, normalized_shape, eps)[0]


def normalised_grad(g, d, rstd, dims, centred):
    """The gradient of d rstd, where d is x or x minus its mean."""
    hat = d * rstd
    first = g - g.mean(dims, keepdims=True) if centred else g
    return (first - hat * (g * hat).mean(dims, keepdims=True)) * rstd


@meaning("layer_norm_grad", loose=32)
def layer_norm_grad(g, x, mean, rstd, weight, normalized_shape, eps, weight_grad, bias_grad):
    dims, lead = last_dims(x, normalized_shape), tuple(range(x.ndim - len(normalized_shape)))
    gx = normalised_grad(g * weight, x - mean, rstd, dims, True)
    return gx, (g * (x - mean) * rstd).sum(lead), g.sum(lead)


@meaning("rms_norm_grad", loose=32)
def rms_norm_grad(g, x, rstd, weight, normalized_shape, eps, weight_grad):
    dims, lead = last_dims(x, normalized_shape), tuple(range(x.ndim - len(normalized_shape)))
    return normalised_grad(g * weight, x, rstd, dims, False), (g * x * rstd).sum(lead)


def by_channel(v, x):
    """A vector of channels in a shape that broadcasts."""
    return None if v is None else v.reshape((1, -1) + (1,) * (x.ndim - 2))


@meaning("batch_norm_apply", loose=16)
def batch_norm_apply(x, mean, var, weight=None, bias=None, eps=1e-5):
    y = (x - by_channel(mean, x)) / np.sqrt(by_channel(var, x) + eps)
    return affine(y, by_channel(weight, x), by_channel(bias, x))


@meaning("native_batch_norm", loose=16)
def native_batch_norm(x, weight=None, bias=None, eps=1e-5):
    dims = (0, *range(2, x.ndim))
    mean, var = x.mean(dims), x.var(dims)
    return batch_norm_apply(x, mean, var, weight, bias, eps), None, None


@meaning("batch_norm_grad", loose=32)
def batch_norm_grad(g, x, mean, var, weight, eps):
    dims = (0, *range(2, x.ndim))
    d, rstd = x - by_channel(mean, x), 1 / np.sqrt(by_channel(var, x) + eps)
    gx = normalised_grad(g, d, rstd, dims, True) * by_channel(weight, x)
    return gx, (g * d * rstd).sum(dims), g.sum(dims)


@meaning("batch_norm", loose=16)
def batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    if training:
        return native_batch_norm(x, weight, bias, eps)[0]
    return batch_norm_apply(x, running_mean, running_var, weight, bias, eps)


@meaning("instance_norm", loose=16)
def instance_norm(
    x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, eps=1e-5
):
    if not use_input_stats:
        return batch_norm_apply(x, running_mean, running_var, weight, bias, eps)
    dims = tuple(range(2, x.ndim))
    y = (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + eps)
    return affine(y, by_channel(weight, x), by_channel(bias, x))


@meaning("group_norm", loose=16)
def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    rows = x.reshape(x.shape[0], num_groups, -1)
    y = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + eps)
    return affine(y.reshape(x.shape), by_channel(weight, x), by_channel(bias, x))


@meaning("native_group_norm", loose=16)
def native_group_norm(x, weight=None, bias=None, num_groups=1, eps=1e-5):
    return group_norm(x, num_groups, weight, bias, eps), None, None


@meaning("group_norm_grad", loose=32)
def group_norm_grad(g, x, mean, rstd, weight, num_groups, eps, weight_grad, bias_grad):
    rows, dims = (x.shape[0], num_groups, -1), (0, *range(2, x.ndim))
    d, rstd = x.reshape(rows) - mean[..., None], rstd[..., None]
    gx = normalised_grad((g * by_channel(weight, x)).reshape(rows), d, rstd, (2,), True)
    return gx.reshape(x.shape), (g * (d * rstd).reshape(x.shape)).sum(dims), g.sum(dims)
