"""Group norm in one kernel: values, derivatives, the bits of its formula on every road."""

import pytest
from backends.cpu.fused import (
    DTYPES,
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
from backends.cpu.test_batchnorm import numbers

import tinyfin as tf

T = torch and torch.nn.functional

# short and long channels, rows of several blocks, blocks of several samples
SHAPES = [
    ((6, 8), 2),
    ((2, 6, 5), 3),
    ((70, 4, 40), 2),
    ((9, 16, 14, 14), 4),
    ((3, 12, 7, 300), 3),
    ((2, 4, 50, 90), 1),
]


@pytest.mark.parametrize("shape,groups", SHAPES)
def test_every_layout(shape, groups):
    x, g = numbers(*shape), numbers(*shape, seed=1)
    w, b = numbers(shape[1], seed=2), numbers(shape[1], seed=3)
    p = [torch.tensor(v, requires_grad=True) for v in (x, w, b)]
    want = T.group_norm(p[0], groups, *p[1:])
    back = torch.autograd.grad(want, p, torch.tensor(g))
    for t, u in zip(layouts(x), layouts(g)):
        y, mean, rstd = run("native_group_norm", t, tensor(w), tensor(b), groups, 1e-5)
        close(y, want, 1e-11)
        args = u, t, mean, rstd, tensor(w), groups, 1e-5, True, True
        for a, c in zip(run("group_norm_grad", *args), back):
            close(a, c, 1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape,groups", SHAPES)
def test_bits_of_the_formula(dtype, shape, groups):
    x, g = tensor(numbers(*shape), dtype), tensor(numbers(*shape, seed=1), dtype)
    for mask in range(4):
        w = tensor(numbers(shape[1], seed=2), dtype) if mask & 1 else None
        b = tensor(numbers(shape[1], seed=3), dtype) if mask & 2 else None
        _, mean, rstd = check_formula("native_group_norm", x, w, b, groups, 1e-5)
        wanted = mask & 1 != 0, mask & 2 != 0
        check_formula("group_norm_grad", g, x, mean, rstd, w, groups, 1e-5, *wanted)


def test_nothing_to_norm():
    x = tf.zeros(0, 4, 3, requires_grad=True)
    w = tf.ones(4, requires_grad=True)
    y = tf.group_norm(x, 2, w)
    assert y.shape == (0, 4, 3)
    y.sum().backward()
    assert x.grad.shape == (0, 4, 3) and w.grad.tolist() == [0, 0, 0, 0]
    assert tf.group_norm(tf.zeros(2, 4, 0), 2).shape == (2, 4, 0)


def results():
    for shape, groups in SHAPES:
        x = tensor(numbers(*shape), "float32").requires_grad_()
        w = tensor(numbers(shape[1], seed=2), "float32").requires_grad_()
        y = tf.group_norm(x, groups, w)
        y.backward(tensor(numbers(*shape, seed=1), "float32"))
        yield from (y, x.grad, w.grad)


def test_threads_do_not_change_bits():
    check_threads(results)


def test_instruction_sets_do_not_change_bits():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    print(digest(results()))
