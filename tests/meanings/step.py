"""Meanings of optimizer steps, after the papers and PyTorch's documentation; each returns what is written."""

import numpy as np
from oracle import meaning


def given(*values):
    """The values that are there."""
    return [v for v in values if v is not None]


@meaning("sgd_step_", loose=4)
def sgd_step_(
    p,
    g,
    buf,
    lr,
    momentum=0.0,
    dampening=0.0,
    weight_decay=0.0,
    nesterov=False,
    maximize=False,
    first=False,
):
    d = (-g if maximize else g) + weight_decay * p
    if buf is not None:
        buf = d if first else momentum * buf + (1 - dampening) * d
        d = d + momentum * buf if nesterov else buf
    return given(p - lr * d, buf)


@meaning("adam_step_", loose=8)
def adam_step_(
    p,
    g,
    m,
    v,
    top,
    lr,
    step,
    beta1=0.9,
    beta2=0.999,
    eps=1e-8,
    weight_decay=0.0,
    decoupled=False,
    maximize=False,
):
    g = -g if maximize else g
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    top = None if top is None else np.maximum(top, v)
    bottom = np.sqrt((v if top is None else top) / (1 - beta2**step)) + eps
    return given(p - lr * (m / (1 - beta1**step)) / bottom, m, v, top)


@meaning("rmsprop_step_", loose=16)
def rmsprop_step_(
    p,
    g,
    square,
    mean,
    buf,
    lr,
    alpha=0.99,
    eps=1e-8,
    weight_decay=0.0,
    momentum=0.0,
    maximize=False,
):
    g = (-g if maximize else g) + weight_decay * p
    square = alpha * square + (1 - alpha) * g * g
    v = square
    if mean is not None:
        mean = alpha * mean + (1 - alpha) * g
        v = square - mean * mean
    move = g / (np.sqrt(v) + eps)
    if buf is not None:
        buf = momentum * buf + move
        move = buf
    return given(p - lr * move, square, mean, buf)
