"""Meanings of losses."""

import numpy as np
from meanings import activation as parts
from meanings.norm import log_softmax
from oracle import meaning


def reduced(loss, reduction):
    """Losses, their mean or their sum."""
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def cells(x, target, weight, ignore_index):
    """For each label: its place, its class, its weight (0 where ignored)."""
    for at in np.ndindex(target.shape):
        label = int(target[at])
        kept = label != ignore_index
        w = 1.0 if weight is None else float(weight[label]) if kept else 0.0
        yield at, (*at[:1], label, *at[1:]), w if kept else 0.0


def labelled(x, target, weight, reduction, ignore_index):
    """Negative log-likelihood and the sum of the weights."""
    loss, total = np.zeros(target.shape), 0.0
    for at, place, w in cells(x, target, weight, ignore_index):
        if w:
            loss[at] = -w * x[place]
        total += w
    if reduction == "mean":
        return np.asarray(loss.sum() / total), np.asarray(total)
    return np.asarray(reduced(loss, reduction)), np.asarray(total)


@meaning("nll_loss", loose=8)
def nll_loss(x, target, weight=None, reduction="mean", ignore_index=-100):
    return labelled(x, target, weight, reduction, ignore_index)[0]


@meaning("nll_loss_forward", loose=8)
def nll_loss_forward(x, target, weight=None, reduction="mean", ignore_index=-100):
    return nll_loss(x, target, weight, reduction, ignore_index), None


@meaning("cross_entropy_forward", loose=8)
def cross_entropy_forward(x, target, weight=None, reduction="mean", ignore_index=-100):
    y = log_softmax(x, min(1, x.ndim - 1))
    return nll_loss(y, target, weight, reduction, ignore_index), None, None, None


@meaning("cross_entropy", loose=8)
def cross_entropy(x, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0):
    dim = min(1, x.ndim - 1)
    y, n = log_softmax(x, dim), x.shape[dim]
    w = np.ones(n) if weight is None else weight
    wide = w.reshape((1,) * dim + (-1,) + (1,) * (x.ndim - dim - 1))
    if target.dtype.kind == "f":
        share = target * (1 - label_smoothing) + label_smoothing / n
        loss = np.asarray(-(share * y * wide).sum(dim))
        return loss.sum() / max(loss.size, 1) if reduction == "mean" else reduced(loss, reduction)
    hit, total = labelled(y, target, weight, "none", ignore_index)
    keep = target != ignore_index
    loss = (
        hit * (1 - label_smoothing) + np.where(keep, -(y * wide).sum(dim), 0) * label_smoothing / n
    )
    return loss.sum() / total if reduction == "mean" else reduced(loss, reduction)


@meaning("nll_loss_grad", loose=8)
def nll_loss_grad(g, target, weight, total, reduction, ignore_index, shape):
    y = np.zeros(shape)
    for at, place, w in cells(y, target, weight, ignore_index):
        if w:
            y[place] = -w * (
                g[at] if reduction == "none" else g / total if reduction == "mean" else g
            )
    return y


@meaning("cross_entropy_grad", loose=16)
def cross_entropy_grad(g, x, target, weight, total, shift, log, reduction, ignore_index):
    first = nll_loss_grad(g, target, weight, total, reduction, ignore_index, x.shape)
    return first - np.exp(log_softmax(x, 1)) * first.sum(1, keepdims=True)


@meaning("check_not_nan", "check_unit_interval")
def check(x):
    return np.asarray(True)


@meaning("mse_loss", loose=4)
def mse_loss(x, target, reduction="mean"):
    return reduced(parts.squared_error(x, target), reduction)


@meaning("l1_loss", loose=4)
def l1_loss(x, target, reduction="mean"):
    return reduced(parts.absolute_error(x, target), reduction)


@meaning("smooth_l1_loss", loose=4)
def smooth_l1_loss(x, target, reduction="mean", beta=1.0):
    loss = parts.smooth_error(x, target, beta) if beta else np.abs(x - target)
    return reduced(loss, reduction)


@meaning("huber_loss", loose=4)
def huber_loss(x, target, reduction="mean", delta=1.0):
    return reduced(parts.huber_error(x, target, delta), reduction)


def weighed(loss, weight):
    """Losses times weights, where they are given."""
    return loss if weight is None else loss * weight


@meaning("binary_cross_entropy", loose=8)
def binary_cross_entropy(x, target, weight=None, reduction="mean"):
    return reduced(weighed(parts.bce_error(x, target), weight), reduction)


@meaning("binary_cross_entropy_with_logits", loose=8)
def with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    p = 1.0 if pos_weight is None else pos_weight
    return reduced(weighed(parts.bce_logits_weighted_error(x, target, p), weight), reduction)


@meaning("kl_div", loose=8)
def kl_div(x, target, reduction="mean", log_target=False):
    loss = parts.kl_log_error(x, target) if log_target else parts.kl_error(x, target)
    return loss.sum() / x.shape[0] if reduction == "batchmean" else reduced(loss, reduction)
