"""Samples of softmax and of the norms."""

import numpy as np
from samples import Sample, maker

import tinyfin as tf

INF = np.inf


def normal(rng, *shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


@maker("softmax", "log_softmax", "softmin")
def softmax(rng, name):
    for shape, dim in (
        ((3, 4), 1),
        ((3, 4), 0),
        ((2, 3, 2), -2),
        ((5,), 0),
        ((), 0),
        ((0, 3), 1),
        ((2, 1), 1),
    ):
        yield Sample(normal(rng, *shape), dim)
    yield Sample(normal(rng, 2, 3), dim=1, dtype=tf.float64).but(grad=False)
    yield Sample(normal(rng, 3, 301), 1).but(grad=False, only="f")
    yield Sample(normal(rng, 70, 3) * 30, 0).but(grad=False, only="f")
    if name != "softmin":
        x = np.array([[-INF, 0.0, 1.0], [900.0, 900.0, -900.0], [-INF, -INF, 5.0]])
        yield Sample(x, 1).but(grad=False, only="f", note="special")


@maker("softmax_grad", "log_softmax_grad")
def softmax_grad(rng, name):
    for shape, dim in (((3, 4), 1), ((3, 4), 0), ((2, 3, 2), -2), ((), 0), ((3, 130), 1)):
        x = normal(rng, *shape)
        e = np.exp(x)
        y = e / e.sum(dim, keepdims=True) if x.ndim else np.asarray(1.0)
        yield Sample(
            normal(rng, *shape), np.asarray(y if name == "softmax_grad" else np.log(y)), dim
        )


LAYERS = [
    ((3, 4), (4,)),
    ((2, 3, 2), (3, 2)),
    ((2, 3), (2, 3)),
    ((4,), (4,)),
    ((0, 4), (4,)),
    ((3, 70), (70,)),
]


@maker("layer_norm", "native_layer_norm", "rms_norm")
def layer_norm(rng, name):
    for k, (shape, last) in enumerate(LAYERS):
        parts = [normal(rng, *last), normal(rng, *last)][: 1 if name == "rms_norm" else 2]
        yield Sample(normal(rng, *shape), last, *parts[: k % 3]).but(grad=shape != (3, 70))
    yield Sample(normal(rng, 2, 4), (4,), eps=0.5)
    if name != "rms_norm":
        yield Sample(normal(rng, 2, 4), (4,), None, normal(rng, 4))


@maker("native_rms_norm")
def native_rms_norm(rng):
    for k, (shape, last) in enumerate(LAYERS):
        yield Sample(normal(rng, *shape), *[normal(rng, *last)][: k % 2], normalized_shape=last)
    yield Sample(normal(rng, 2, 4), normalized_shape=(4,), eps=0.5)


def statistics(x, last, eps):
    """Mean and 1 / deviation of each row, with the rows' axes kept."""
    dims = tuple(range(x.ndim - len(last), x.ndim))
    mean = x.mean(dims, keepdims=True)
    return mean, 1 / np.sqrt(((x - mean) ** 2).mean(dims, keepdims=True) + eps)


@maker("layer_norm_grad")
def layer_norm_grad(rng):
    """Its own derivative is that of layer_norm of order 2, which is tested there."""
    for shape, last in LAYERS[:4]:
        x = normal(rng, *shape)
        args = normal(rng, *shape), x, *statistics(x, last, 1e-5), normal(rng, *last)
        yield Sample(*args, last, 1e-5, True, True).but(grad=False, only="f")


@maker("rms_norm_grad")
def rms_norm_grad(rng):
    """Its own derivative is that of rms_norm of order 2, which is tested there."""
    for shape, last in LAYERS[:4]:
        x = normal(rng, *shape)
        dims = tuple(range(x.ndim - len(last), x.ndim))
        rstd = 1 / np.sqrt((x * x).mean(dims, keepdims=True) + 1e-5)
        yield Sample(normal(rng, *shape), x, rstd, normal(rng, *last), last, 1e-5, True).but(
            grad=False, only="f"
        )


BATCHES = [(3, 2), (2, 3, 4), (2, 2, 3, 2), (4, 1, 2)]


@maker("native_batch_norm")
def native_batch_norm(rng):
    for shape in BATCHES:
        yield Sample(normal(rng, *shape), normal(rng, shape[1]), normal(rng, shape[1]), 1e-5)
    yield Sample(normal(rng, 3, 2), None, None, 0.1)
    yield Sample(normal(rng, 40, 3, 20), None, normal(rng, 3), 1e-5).but(grad=False, only="f")


@maker("batch_norm_apply")
def batch_norm_apply(rng):
    for shape in BATCHES:
        c = shape[1]
        yield Sample(
            normal(rng, *shape),
            normal(rng, c),
            rng.uniform(0.5, 2, c),
            normal(rng, c),
            normal(rng, c),
            1e-5,
        )
    yield Sample(normal(rng, 3, 2), normal(rng, 2), rng.uniform(0.5, 2, 2))


@maker("batch_norm_grad")
def batch_norm_grad(rng):
    """Its own derivative is that of native_batch_norm of order 2, which is tested there."""
    for shape in BATCHES:
        x = normal(rng, *shape)
        dims = (0, *range(2, x.ndim))
        yield Sample(
            normal(rng, *shape), x, x.mean(dims), x.var(dims), normal(rng, shape[1]), 1e-5
        ).but(grad=False, only="f")


@maker("batch_norm")
def batch_norm(rng):
    for shape in BATCHES:
        c = shape[1]
        stats = normal(rng, c), rng.uniform(0.5, 2, c)
        yield Sample(normal(rng, *shape), *stats, normal(rng, c), normal(rng, c)).but(
            note="evaluating"
        )
    yield Sample(normal(rng, 3, 2, 2), None, None, normal(rng, 2), normal(rng, 2), training=True)
    yield Sample(normal(rng, 3, 2), None, None, training=True, eps=0.1)


@maker("instance_norm")
def instance_norm(rng):
    yield Sample(normal(rng, 2, 3, 4))
    yield Sample(normal(rng, 2, 3, 2, 2), None, None, normal(rng, 3), normal(rng, 3))
    yield Sample(
        normal(rng, 2, 3, 4), normal(rng, 3), rng.uniform(0.5, 2, 3), use_input_stats=False
    )


@maker("group_norm")
def group_norm(rng):
    yield Sample(normal(rng, 2, 4, 3), 2, normal(rng, 4), normal(rng, 4))
    yield Sample(normal(rng, 2, 4), 2)
    yield Sample(normal(rng, 2, 6, 2, 2), 3, normal(rng, 6))
    yield Sample(normal(rng, 2, 3, 2), 1, eps=0.1)


GROUPS = [((3, 4), 2), ((2, 6, 5), 3), ((2, 3, 2, 3), 1)]


@maker("native_group_norm")
def native_group_norm(rng):
    for shape, groups in GROUPS:
        c = shape[1]
        yield Sample(normal(rng, *shape), normal(rng, c), normal(rng, c), groups)
    yield Sample(normal(rng, 2, 4, 3), None, None, 2, eps=0.1)
    yield Sample(normal(rng, 9, 8, 15, 17), None, normal(rng, 8), 2).but(grad=False, only="f")


@maker("group_norm_grad")
def group_norm_grad(rng):
    """Its own derivative is that of native_group_norm of order 2, which is tested there."""
    for shape, groups in [*GROUPS, ((9, 8, 15, 17), 2)]:
        x = normal(rng, *shape)
        mean, rstd = statistics(x.reshape(shape[0], groups, -1), (0,), 1e-5)
        args = normal(rng, *shape), x, mean[:, :, 0], rstd[:, :, 0], normal(rng, shape[1])
        yield Sample(*args, groups, 1e-5, True, True).but(grad=False, only="f")
