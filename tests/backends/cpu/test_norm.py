"""Softmax, layer norm, RMS norm: values, derivatives, dtypes, layouts, equal bits everywhere."""

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


# ---- bits


def everything():
    """Results of all kernels on sizes that are split over threads."""
    for dtype in DTYPES[:2]:
        for shape in ((33, 10), (200, 700), (3, 300, 30), (3, 20000), (4200, 16)):
            x, g = tensor(numbers(*shape), dtype), tensor(numbers(*shape, seed=1), dtype)
            for name in ("softmax", "log_softmax"):
                for dim in range(len(shape)):
                    (y,) = run(name, x, dim, None)
                    yield y
                    yield from run(name + "_grad", g, y, dim)
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
