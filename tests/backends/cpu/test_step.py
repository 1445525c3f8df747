"""Optimizer steps: PyTorch's numbers, any layout, and equal bits everywhere."""

import numpy as np
import pytest
from backends.cpu.fused import (
    DTYPES,
    array,
    check_instruction_sets,
    check_threads,
    close,
    digest,
    run,
    tensor,
    torch,
)

import tinyfin as tf
from tinyfin.ops.row import F

SHAPES = [(3,), (33, 21), (20000,), (), (0, 4)]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def leaf(shape, turned, seed):
    """A tensor, its axes reversed in memory if `turned`, and its twin."""
    a = numbers(*shape, seed=seed)
    t = tf.tensor(a.T.copy()).permute(tuple(range(a.ndim))[::-1]) if turned else tf.tensor(a)
    return t, torch.tensor(a)


def follow(shape, turned, make, step):
    """Three steps of an optimizer of PyTorch and of a row; compares the parameters."""
    p, q = leaf(shape, turned, 0)
    q.requires_grad_()
    optimizer = make([q])
    for k in range(3):
        g, h = leaf(shape, turned, 1 + k)
        q.grad = h
        optimizer.step()
        step(k, p, g)
    close(p, q, 1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"momentum": 0.5, "dampening": 0.3, "maximize": True},
    ],
)
def test_sgd(shape, turned, options):
    buf = leaf(shape, turned, 9)[0] if "momentum" in options else None
    follow(
        shape,
        turned,
        lambda ps: torch.optim.SGD(ps, lr=0.1, **options),
        lambda k, p, g: F.sgd_step_(p, g, buf, 0.1, **options, first=k == 0),
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "name, options",
    [
        ("Adam", {}),
        ("Adam", {"weight_decay": 0.1}),
        ("AdamW", {"weight_decay": 0.1, "amsgrad": True}),
        ("Adam", {"maximize": True, "amsgrad": True, "betas": (0.4, 0.8)}),
    ],
)
def test_adam(shape, turned, name, options):
    zeros = leaf(shape, turned, 0)[0] * 0
    state = [zeros.clone(), zeros.clone(), zeros.clone() if options.get("amsgrad") else None]
    b1, b2 = options.get("betas", (0.9, 0.999))
    follow(
        shape,
        turned,
        lambda ps: getattr(torch.optim, name)(ps, lr=0.1, **options),
        lambda k, p, g: F.adam_step_(
            p,
            g,
            *state,
            0.1,
            b1,
            b2,
            1e-8,
            options.get("weight_decay", 0.0),
            k + 1,
            name == "AdamW",
            options.get("maximize", False),
        ),
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"centered": True},
        {"momentum": 0.9, "weight_decay": 0.1},
        {"momentum": 0.9, "centered": True, "maximize": True},
    ],
)
def test_rmsprop(shape, turned, options):
    zeros = leaf(shape, turned, 0)[0] * 0
    state = [
        zeros.clone(),
        zeros.clone() if options.get("centered") else None,
        zeros.clone() if options.get("momentum") else None,
    ]
    follow(
        shape,
        turned,
        lambda ps: torch.optim.RMSprop(ps, lr=0.01, **options),
        lambda k, p, g: F.rmsprop_step_(
            p,
            g,
            *state,
            0.01,
            0.99,
            1e-8,
            options.get("weight_decay", 0.0),
            options.get("momentum", 0.0),
            options.get("maximize", False),
        ),
    )


CALLS = [
    ("sgd_step_", 1, (0.1, 0.9, 0.2, 0.1, True, False, False)),
    ("sgd_step_", 0, (0.1, 0.0, 0.0, 0.1, False, True, False)),
    ("adam_step_", 3, (0.1, 0.9, 0.99, 1e-8, 0.1, 3, False, False)),
    ("adam_step_", 2, (0.1, 0.3, 0.99, 1e-8, 0.1, 3, True, True)),
    ("rmsprop_step_", 3, (0.1, 0.9, 1e-8, 0.1, 0.9, False)),
    ("rmsprop_step_", 1, (0.1, 0.9, 1e-8, 0.1, 0.0, True)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, states, values", CALLS)
def test_a_step_follows_its_formula(dtype, name, states, values):
    op = getattr(F, name)
    arrays = [
        numbers(700),
        numbers(700, seed=1),
        *(np.abs(numbers(700, seed=2 + k)) for k in range(states)),
    ]
    arrays += [None] * (len(op.arg_names) - len(arrays))
    ours, theirs = ([tensor(a, dtype) for a in arrays] for _ in range(2))
    run(name, *ours, *values)
    if dtype in ("float16", "bfloat16"):  # the formula rounds after each operation
        theirs = [None if t is None else t.float() for t in theirs]
    op.formula(*theirs, *values)
    for a, b in zip(ours, theirs):
        if a is not None:
            np.testing.assert_array_equal(array(a), array(b.to(a.dtype)))


def test_a_step_counts_as_a_write_and_needs_no_grad():
    p = tf.ones(3).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf that requires grad"):
        F.sgd_step_(p, tf.ones(3), None, 0.1)
    with tf.no_grad():
        F.sgd_step_(p, tf.ones(3), None, 0.1)
    close(p, np.full(3, 0.9), 1e-6)
    with tf.no_grad(), pytest.raises(RuntimeError, match="its gradient is"):
        F.sgd_step_(p, tf.ones(4), None, 0.1)


def everything():
    """States after steps that are split over threads."""
    for dtype in ("float32", "float64"):
        for name, states, values in CALLS:
            arrays = [
                numbers(70000),
                numbers(70000, seed=1),
                *(np.abs(numbers(70000, seed=2 + k)) for k in range(states)),
            ]
            arrays += [None] * (len(getattr(F, name).arg_names) - len(arrays))
            tensors = [tensor(a, dtype) for a in arrays]
            run(name, *tensors, *values)
            yield from (t for t in tensors if t is not None)


def test_threads_do_not_change_bits():
    check_threads(everything)


def test_instruction_sets_do_not_change_bits():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    print(digest(everything()))
