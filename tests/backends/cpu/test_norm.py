"""Softmax and norms: values, gradients of gradients, dtypes, layouts, and equal bits everywhere."""

import numpy as np
import pytest
from backends.cpu.fused import (
    DTYPES,
    check_derivatives,
    check_formula,
    check_instruction_sets,
    check_threads,
    close,
    digest,
    layouts,
    run,
    tensor,
    torch,
)

import tinyfin as tf

T = torch and torch.nn.functional

SHAPES = [
    (5,),
    (32, 10),
    (4, 3, 5),
    (7, 300),
    (2, 17, 33),
    (2, 5000),
    (2, 2100, 3),
    (1, 1),
    (65, 24),
]
INF, NAN = float("inf"), float("nan")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape) * 3


def layer_norm_by_hand(x, n, w=None, b=None):
    """PyTorch's own layer norm has no right third derivative; plain operations do."""
    d = tuple(range(-n, 0))
    c = x - x.mean(d, keepdim=True)
    y = c / torch.sqrt((c * c).mean(d, keepdim=True) + 1e-5)
    y = y if w is None else y * w
    return y if b is None else y + b


def batch_norm_by_hand(x, w, b):
    d, shape = (0, *range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
    c = x - x.mean(d, keepdim=True)
    return c / torch.sqrt((c * c).mean(d, keepdim=True) + 1e-5) * w.view(shape) + b.view(shape)


# ---- softmax


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_of_every_axis_and_layout(name, shape):
    x, g = numbers(*shape), numbers(*shape, seed=1)
    for dim in range(-1, len(shape)):
        want = getattr(torch, name)(torch.tensor(x), dim)
        back = getattr(torch, f"_{name}_backward_data")(torch.tensor(g), want, dim, torch.float64)
        for t, u in zip(layouts(x), layouts(g)):
            y = getattr(tf, name)(t, dim)
            assert y.is_contiguous()
            close(y, want, 1e-12)
            close(run(name + "_grad", u, y, dim)[0], back, 1e-11)
            close(getattr(tf, name)(t.float(), dim), want, 1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(5,), (33, 10), (300, 100), (3, 5000), (4, 60, 30), (2, 2500, 5)]
)
def test_softmax_has_the_bits_of_its_formula(dtype, shape):
    x, g = tensor(numbers(*shape), dtype), tensor(numbers(*shape, seed=1), dtype)
    for name in ("softmax", "log_softmax"):
        for dim in range(len(shape)):
            (y,) = check_formula(name, x, dim, None)
            check_formula(name + "_grad", g, y, dim)


def test_softmax_of_infinities():
    x = tf.tensor([[-INF, -INF, -INF], [INF, 0.0, 1.0], [-INF, 0.0, 0.0], [NAN, 0.0, 1.0]])
    for name, zero in (("softmax", 0.0), ("log_softmax", -INF)):
        y = getattr(tf, name)(x, 1).numpy()
        assert np.isnan(y[[0, 1, 3]]).all()
        half = 0.5 if zero == 0.0 else np.log(0.5)
        np.testing.assert_allclose(y[2], [zero, half, half], 1e-6)


def test_log_softmax_of_large_numbers():
    for v in (0.0, 3e4, 5e7, -2e8, 1e33):
        close(tf.log_softmax(tf.tensor([[v, v]]), 1), np.log([[0.5, 0.5]]), 1e-6)


def test_softmax_of_nothing_and_of_numbers():
    assert tf.softmax(tf.zeros(0, 3), 0).shape == (0, 3)
    assert tf.softmax(tf.zeros(2, 0), 1).shape == (2, 0)
    assert tf.softmax(tf.tensor(3.0), 0).item() == 1.0
    close(tf.softmin(tf.tensor([1.0, 2.0]), 0), tf.softmax(tf.tensor([-1.0, -2.0]), 0).numpy(), 0)


def test_softmax_in_another_dtype():
    x = tf.arange(12).reshape(3, 4)
    y = tf.softmax(x, 1, dtype=tf.float64)
    assert y.dtype is tf.float64
    close(y, torch.softmax(torch.arange(12).reshape(3, 4).double(), 1), 1e-12)
    z = tf.softmax(tensor(numbers(3, 40)), 1, dtype=tf.bfloat16)
    close(z, torch.softmax(torch.tensor(numbers(3, 40)).bfloat16(), 1), 1e-2)
    with pytest.raises(NotImplementedError, match="softmax: input has dtype"):
        tf.softmax(x, 1)
    with pytest.raises(IndexError, match="dim 2"):
        tf.softmax(x.float(), 2)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_derivatives(name, dim):
    check_derivatives(
        lambda x: getattr(tf, name)(x, dim),
        lambda x: getattr(torch, name)(x, dim),
        numbers(3, 4, 5),
        orders=3,
    )


# ---- layer norm and RMS norm


@pytest.mark.parametrize(
    "shape, n",
    [
        ((4, 16), 1),
        ((3, 5, 7), 2),
        ((100, 64), 1),
        ((2050, 12), 1),
        ((2, 3, 4, 5), 3),
        ((64, 1024), 1),
    ],
)
def test_layer_norm_of_every_layout(shape, n):
    tail = shape[-n:]
    w, b = numbers(*tail, seed=2), numbers(*tail, seed=3)
    x = numbers(*shape)
    for t in layouts(x):
        for v, c in ((None, None), (w, None), (None, b), (w, b)):
            close(
                tf.layer_norm(t, tail, tensor(v), tensor(c)),
                T.layer_norm(
                    torch.tensor(x),
                    tail,
                    None if v is None else torch.tensor(v),
                    None if c is None else torch.tensor(c),
                ),
                1e-11,
            )
        close(
            tf.rms_norm(t, tail, tensor(w)),
            T.rms_norm(torch.tensor(x), tail, torch.tensor(w)),
            1e-11,
        )
        close(tf.layer_norm(t.float(), tail), T.layer_norm(torch.tensor(x), tail), 1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 5), (33, 10), (2500, 64), (30, 1000), (3, 5000)])
def test_norms_have_the_bits_of_their_formula(dtype, shape):
    x, g = tensor(numbers(*shape), dtype), tensor(numbers(*shape, seed=1), dtype)
    for mask in range(4):
        w = tensor(numbers(shape[1], seed=2), dtype) if mask & 1 else None
        b = tensor(numbers(shape[1], seed=3), dtype) if mask & 2 else None
        _, mean, rstd = check_formula("native_layer_norm", x, w, b, shape[1:], 1e-5)
        check_formula(
            "layer_norm_grad", g, x, mean, rstd, w, shape[1:], 1e-5, bool(mask & 1), bool(mask & 2)
        )
        if mask < 2:
            _, rstd = check_formula("native_rms_norm", x, w, shape[1:], None)
            check_formula("rms_norm_grad", g, x, rstd, w, shape[1:], None, bool(mask))
        _, mean, var = check_formula("native_batch_norm", x, w, b, 1e-5)
        check_formula("batch_norm_grad", g, x, mean, var, w, 1e-5)
        check_formula("batch_norm_apply", x, mean, var, w, b, 1e-5)


def test_layer_norm_far_from_zero():
    for mean, step, tolerance in ((100, 1e-3, 5e-3), (1000, 1e-3, 5e-2), (40000, 1.0, 1e-2)):
        x = (mean + np.arange(16) * step).astype("float32")[None]
        d = x.astype("float64") - x.astype("float64").mean()
        close(tf.layer_norm(tf.tensor(x), (16,)), d / np.sqrt((d**2).mean() + 1e-5), tolerance)
    x = tf.tensor(np.full((2, 256), 1234.0, "float32")).requires_grad_()
    y = tf.layer_norm(x, (256,))
    assert (y == 0).all()
    y.sum().backward()
    assert x.grad.isfinite().all()


def test_layer_norm_derivatives():
    x, w, b = numbers(4, 6), numbers(6, seed=1), numbers(6, seed=2)
    check_derivatives(
        lambda x, w, b: tf.layer_norm(x, (6,), w, b),
        lambda x, w, b: layer_norm_by_hand(x, 1, w, b),
        x,
        w,
        b,
        orders=3,
    )
    check_derivatives(
        lambda x, b: tf.layer_norm(x, (6,), None, b),
        lambda x, b: layer_norm_by_hand(x, 1, None, b),
        x,
        b,
    )
    check_derivatives(lambda x: tf.layer_norm(x, (4, 6)), lambda x: layer_norm_by_hand(x, 2), x)
    check_derivatives(
        lambda x, w: tf.rms_norm(x, (6,), w), lambda x, w: T.rms_norm(x, (6,), w), x, w, orders=3
    )


def test_layer_norm_of_nothing():
    assert tf.layer_norm(tf.zeros(0, 3), (3,)).shape == (0, 3)
    x, w = tf.zeros(0, 3).requires_grad_(), tf.ones(3).requires_grad_()
    tf.layer_norm(x, (3,), w, w).sum().backward()
    assert x.grad.shape == (0, 3) and (w.grad == 0).all()


def test_layer_norm_errors():
    x = tf.zeros(2, 3)
    with pytest.raises(RuntimeError, match=r"input is \(2, 3\), normalized_shape is \(4,\)"):
        tf.layer_norm(x, (4,))
    with pytest.raises(RuntimeError, match=r"weight is \(2,\)"):
        tf.layer_norm(x, (3,), tf.zeros(2))
    with pytest.raises(RuntimeError, match="at least one dimension"):
        tf.layer_norm(x, ())
    with pytest.raises(NotImplementedError, match="int64"):
        tf.layer_norm(tf.arange(3), (3,))


# ---- batch, group and instance norm

CHANNELS = [(4, 3), (128, 40), (2100, 20), (2, 3, 5, 7), (3, 16, 64, 64), (2, 5, 50), (4100, 3, 1)]


@pytest.mark.parametrize("shape", CHANNELS)
def test_batch_norm_of_every_layout(shape):
    x, g = numbers(*shape), numbers(*shape, seed=1)
    w, b = numbers(shape[1], seed=2), numbers(shape[1], seed=3)
    p = [torch.tensor(v, requires_grad=True) for v in (x, w, b)]
    want = batch_norm_by_hand(*p)
    back = torch.autograd.grad(want, p, torch.tensor(g))
    for t, u in zip(layouts(x), layouts(g)):
        y, mean, var = run("native_batch_norm", t, tensor(w), tensor(b), 1e-5)
        close(y, want, 1e-11)
        for a, c in zip(run("batch_norm_grad", u, t, mean, var, tensor(w), 1e-5), back):
            close(a, c, 1e-9)
        close(
            tf.batch_norm(t.float(), None, None, training=True),
            T.batch_norm(torch.tensor(x), None, None, training=True),
            1e-4,
        )


def test_batch_norm_moves_running_statistics():
    x = numbers(6, 3, 4)
    for momentum in (0.1, 0.7):
        ours, theirs = (tf.zeros(3), tf.ones(3)), (torch.zeros(3), torch.ones(3))
        for k in range(3):
            y = tf.batch_norm(tensor(x + k, "float32"), *ours, None, None, True, momentum)
            z = T.batch_norm(torch.tensor(x + k).float(), *theirs, None, None, True, momentum)
            close(y, z, 1e-5)
        for a, b in zip(ours, theirs):
            close(a, b, 1e-6)
        close(
            tf.batch_norm(tensor(x, "float32"), *ours),
            T.batch_norm(torch.tensor(x).float(), *theirs),
            1e-5,
        )


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (2, 3, 4, 2)])
def test_batch_norm_derivatives(shape):
    x, w, b = numbers(*shape), numbers(3, seed=1), numbers(3, seed=2)
    check_derivatives(
        lambda x, w, b: tf.batch_norm(x, None, None, w, b, True),
        batch_norm_by_hand,
        x,
        w,
        b,
        orders=3,
    )
    m, v = numbers(3, seed=3), np.abs(numbers(3, seed=4)) + 0.1
    check_derivatives(
        lambda x, w, b: tf.batch_norm(x, tensor(m), tensor(v), w, b),
        lambda x, w, b: T.batch_norm(x, torch.tensor(m), torch.tensor(v), w, b),
        x,
        w,
        b,
    )


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm_derivatives(groups):
    check_derivatives(
        lambda x, w, b: tf.group_norm(x, groups, w, b),
        lambda x, w, b: T.group_norm(x, groups, w, b),
        numbers(2, 4, 3),
        numbers(4, seed=1),
        numbers(4, seed=2),
    )


def test_instance_norm():
    x, w, b = numbers(2, 4, 3), numbers(4, seed=1), numbers(4, seed=2)
    check_derivatives(
        lambda x, w, b: tf.instance_norm(x, None, None, w, b),
        lambda x, w, b: T.instance_norm(x, None, None, w, b),
        x,
        w,
        b,
    )
    ours, theirs = (tf.zeros(4), tf.ones(4)), (torch.zeros(4), torch.ones(4))
    tf.instance_norm(tensor(x, "float32"), *ours)
    T.instance_norm(torch.tensor(x).float(), *theirs)
    for a, b in zip(ours, theirs):
        close(a, b, 1e-6)


def test_batch_norm_errors():
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        tf.batch_norm(tf.zeros(1, 3), None, None, training=True)
    with pytest.raises(RuntimeError, match="running_mean"):
        tf.batch_norm(tf.zeros(2, 3), tf.zeros(2), tf.ones(3))
    with pytest.raises(RuntimeError, match="running_mean is None"):
        tf.batch_norm(tf.zeros(2, 3), None, None)
    with pytest.raises(RuntimeError, match="num_groups is 2"):
        tf.group_norm(tf.zeros(2, 5), 2)
    with pytest.raises(ValueError, match="more than 1 value"):
        tf.instance_norm(tf.zeros(2, 3, 1))


# ---- bits


def everything():
    """Results of all kernels on sizes that are split over threads."""
    for dtype in DTYPES[:2]:
        for shape in ((33, 10), (200, 700), (3, 300, 30), (3, 20000), (4200, 16)):
            x, g = tensor(numbers(*shape), dtype), tensor(numbers(*shape, seed=1), dtype)
            w = tensor(numbers(shape[1], seed=2), dtype)
            for name in ("softmax", "log_softmax"):
                for dim in range(len(shape)):
                    (y,) = run(name, x, dim, None)
                    yield y
                    yield from run(name + "_grad", g, y, dim)
            y, mean, var = run("native_batch_norm", x, w, w, 1e-5)
            yield from (y, mean, var, *run("batch_norm_grad", g, x, mean, var, w, 1e-5))
            v, tail = tensor(numbers(shape[-1], seed=3), dtype), shape[-1:]
            y, mean, rstd = run("native_layer_norm", x, v, v, tail, 1e-5)
            yield from (y, *run("layer_norm_grad", g, x, mean, rstd, v, tail, 1e-5, True, True))
            y, rstd = run("native_rms_norm", x, v, tail, None)
            yield from (y, *run("rms_norm_grad", g, x, rstd, v, tail, None, True))


def test_threads_do_not_change_bits():
    check_threads(everything)


def test_instruction_sets_do_not_change_bits():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    print(digest(everything()))
