"""Samples of losses."""

import numpy as np
from samples import Sample, maker


def normal(rng, *shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


def logs(rng, *shape, dim=-1):
    """Log-probabilities."""
    x = normal(rng, *shape)
    return x - np.log(np.exp(x).sum(dim, keepdims=True))


def labelled(rng, make):
    """Inputs of every shape, labels, weights, reductions, an ignored label."""
    for reduction in "mean", "sum", "none":
        yield Sample(make(rng, 3, 4), rng.integers(0, 4, 3), reduction=reduction)
        yield Sample(
            make(rng, 3, 4), np.array([1, -100, 3]), rng.uniform(0.5, 2, 4), reduction=reduction
        ).but(fixed=(2,))
    yield Sample(make(rng, 5), np.asarray(2))
    yield Sample(
        make(rng, 2, 3, 4), rng.integers(0, 3, (2, 4)), rng.uniform(0.5, 2, 3), ignore_index=1
    ).but(fixed=(2,))
    yield Sample(make(rng, 2, 3, 2, 2), rng.integers(0, 3, (2, 2, 2)), reduction="sum")
    yield Sample(make(rng, 70, 5), rng.integers(0, 5, 70)).but(grad=False)


@maker("nll_loss", "nll_loss_forward")
def nll_loss(rng):
    yield from labelled(rng, logs)


@maker("cross_entropy_forward")
def cross_entropy_forward(rng):
    yield from labelled(rng, normal)


@maker("cross_entropy")
def cross_entropy(rng):
    yield from labelled(rng, normal)
    shares = rng.dirichlet(np.ones(4), 3)
    for reduction in "mean", "sum", "none":
        yield Sample(normal(rng, 3, 4), shares, reduction=reduction)
        yield Sample(
            normal(rng, 3, 4),
            np.array([1, -100, 3]),
            rng.uniform(0.5, 2, 4),
            label_smoothing=0.2,
            reduction=reduction,
        ).but(fixed=(2,))
    yield Sample(normal(rng, 3, 4), shares, rng.uniform(0.5, 2, 4), label_smoothing=0.1)
    yield Sample(normal(rng, 4), shares[0])
    yield Sample(np.array([[1e4, 0.0], [-1e4, 1e4]]), np.array([0, 0])).but(
        grad=False, only="f", note="special"
    )


@maker("nll_loss_grad")
def nll_loss_grad(rng):
    target, w = np.array([1, -100, 3]), rng.uniform(0.5, 2, 4)
    yield Sample(np.asarray(1.5), target, w, np.asarray(w[1] + w[3]), "mean", -100, (3, 4)).but(
        only="f", fixed=(2, 3)
    )
    yield Sample(normal(rng, 3), target, None, np.asarray(2.0), "none", -100, (3, 4)).but(
        only="f", fixed=(2,)
    )
    for sample in (
        Sample(np.asarray(0.5), np.array([1, 0]), None, np.asarray(2.0), "sum", -100, (2, 3)),
    ):
        yield sample.but(only="f", fixed=(2,))


@maker("cross_entropy_grad")
def cross_entropy_grad(rng):
    """Its own derivative is that of cross_entropy of order 2, which is tested there."""
    target, w = np.array([1, 0, 3]), rng.uniform(0.5, 2, 4)
    x = normal(rng, 3, 4)
    top = x.max(1)
    log = np.log(np.exp(x - top[:, None]).sum(1))
    yield Sample(
        np.asarray(1.5), x, target, w, np.asarray(w[target].sum()), top, log, "mean", -100
    ).but(grad=False, only="f")
    yield Sample(normal(rng, 3), x, target, None, np.asarray(3.0), top, log, "none", -100).but(
        grad=False, only="f"
    )


@maker("check_not_nan")
def check_not_nan(rng):
    yield Sample(np.array([[0.0, np.inf], [1.0, -2.0]]))
    yield Sample(np.zeros((0,)))


@maker("check_unit_interval")
def check_unit_interval(rng):
    yield Sample(np.array([[0.0, 1.0], [0.5, -0.0]]))


def reductions(rng, make, **attrs):
    """Two arguments in every reduction."""
    for reduction in "mean", "sum", "none":
        yield Sample(*make(3, 4), reduction=reduction, **attrs)
    yield Sample(*make(), **attrs)


@maker("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def distances(rng, name):
    def make(*shape):
        return normal(rng, *shape), normal(rng, *shape)

    yield from reductions(rng, make)
    if name == "smooth_l1_loss":
        yield from (Sample(*make(5), beta=0.5), Sample(*make(5), beta=0.0))
    if name == "huber_loss":
        yield Sample(*make(5), delta=0.6)
    yield Sample(*make(70, 3)).but(grad=False)


@maker("binary_cross_entropy")
def binary_cross_entropy(rng):
    def make(*shape):
        return np.asarray(rng.uniform(0.1, 0.9, shape)), np.asarray(rng.uniform(0.1, 0.9, shape))

    yield from reductions(rng, make)
    yield Sample(*make(3, 4), rng.uniform(0.5, 2, 4))
    yield Sample(
        np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0]), reduction="none"
    ).but(grad=False)


@maker("binary_cross_entropy_with_logits")
def with_logits(rng):
    def make(*shape):
        return normal(rng, *shape), np.asarray(rng.uniform(0.1, 0.9, shape))

    yield from reductions(rng, make)
    yield Sample(*make(3, 4), rng.uniform(0.5, 2, 4))
    yield Sample(*make(3, 4), None, pos_weight=rng.uniform(0.5, 2, 4))
    yield Sample(
        *make(3, 4), rng.uniform(0.5, 2, 4), pos_weight=rng.uniform(0.5, 2, 4), reduction="sum"
    )
    yield Sample(np.array([-1e4, 1e4, 0.0]), np.array([0.0, 1.0, 0.5]), reduction="none").but(
        grad=False
    )


@maker("kl_div")
def kl_div(rng):
    def make(*shape):
        return normal(rng, *shape), np.asarray(rng.uniform(0.1, 2, shape))

    yield from reductions(rng, make)
    yield from reductions(rng, make, log_target=True)
    yield Sample(*make(3, 4), reduction="batchmean")
