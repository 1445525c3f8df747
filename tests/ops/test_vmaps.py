"""vmap of every subject: values and gradients of a batch are those of its samples, by rules alone."""

import warnings

import gradients
import numpy as np
import pytest
import samples
from graded import CONSTANT, graded

import tinyfin as tf

SUBJECTS = samples.subjects()
OF_THE_STORAGE = {"as_strided", "as_strided_view"}
"""What counts from the storage's first element, wherever the sample is."""


def batch_of(values):
    """Three points near one: arrays with a leading axis."""
    return [np.stack([v, v * (1 + 1e-4), v * (1 - 3e-4)]) for v in values]


def compare(together, apart, what):
    """What differs between a batched result and the results of the samples, or None."""
    for k, (y, ones) in enumerate(zip(together, zip(*apart))):
        want = np.stack([samples.array(t) for t in ones])
        if tuple(y.shape) != want.shape:
            return f"{what} {k} has shape {tuple(y.shape)}, expected {want.shape}"
        if not np.allclose(samples.array(y), want, rtol=1e-9, atol=1e-9, equal_nan=True):
            return f"{what} {k} differs by {np.abs(samples.array(y) - want).max()}"
    return None


def batched_problem(fn, sample):
    """What is wrong with vmap on a call, or None."""
    problem = gradients.Problem(fn, sample)
    values = problem.values()
    if not problem.variables or not problem.numbers(values):
        return None
    batch = problem.tensors(batch_of(values), False)

    def outputs(*leaves):
        return tuple(problem.outputs(leaves))

    def slope(*leaves):
        total = sum((y.sum() for y in problem.outputs(leaves)), tf.tensor(0.0, dtype=tf.float64))
        return total + sum(x.sum() * 0 for x in leaves)

    apart = [outputs(*(x[i] for x in batch)) for i in range(3)]
    wrong = compare(tf.func.vmap(outputs, randomness="same")(*batch), apart, "result")
    if wrong:
        return wrong
    grads = tf.func.grad(slope, tuple(range(len(values))))
    apart = [grads(*(x[i] for x in batch)) for i in range(3)]
    return compare(tf.func.vmap(grads, randomness="same")(*batch), apart, "gradient")


NAMES = [n for n in SUBJECTS if n not in CONSTANT and n not in OF_THE_STORAGE]


@pytest.mark.parametrize("name", NAMES)
def test_vmap(name):
    wrong = []
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*has no rule for batches.*")
        for sample in graded(name)[:6]:
            text = batched_problem(SUBJECTS[name], sample)
            wrong += [f"{name}{sample}: {text}"] if text else []
    assert not wrong, "\n" + "\n".join(wrong)
