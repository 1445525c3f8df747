"""Batch, group and instance norm: values, derivatives, running statistics, equal bits."""

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


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape) * 3


def batch_norm_by_hand(x, w, b):
    d, shape = (0, *range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
    c = x - x.mean(d, keepdim=True)
    return c / torch.sqrt((c * c).mean(d, keepdim=True) + 1e-5) * w.view(shape) + b.view(shape)


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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 5), (33, 10), (2500, 64), (30, 1000), (8, 16, 30, 30)])
def test_batch_norm_has_the_bits_of_its_formula(dtype, shape):
    x, g = tensor(numbers(*shape), dtype), tensor(numbers(*shape, seed=1), dtype)
    for mask in range(4):
        w = tensor(numbers(shape[1], seed=2), dtype) if mask & 1 else None
        b = tensor(numbers(shape[1], seed=3), dtype) if mask & 2 else None
        _, mean, var = check_formula("native_batch_norm", x, w, b, 1e-5)
        check_formula("batch_norm_grad", g, x, mean, var, w, 1e-5)
        check_formula("batch_norm_apply", x, mean, var, w, b, 1e-5)


def everything():
    """Results of the kernels on sizes that are split over threads."""
    for dtype in ("float32", "float64"):
        for shape in ((33, 10), (200, 700), (3, 300, 30), (3, 20000), (4200, 16), (4, 6, 60, 60)):
            x, g = tensor(numbers(*shape), dtype), tensor(numbers(*shape, seed=1), dtype)
            w = tensor(numbers(shape[1], seed=2), dtype)
            y, mean, var = run("native_batch_norm", x, w, w, 1e-5)
            yield from (y, mean, var, *run("batch_norm_grad", g, x, mean, var, w, 1e-5))


def test_threads_do_not_change_bits():
    check_threads(everything)


def test_instruction_sets_do_not_change_bits():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    print(digest(everything()))
