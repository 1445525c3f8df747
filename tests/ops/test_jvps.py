"""Forward mode of every subject: against differences along a direction, and against reverse mode."""

import gradients
import numpy as np
import pytest
import samples
from graded import CONSTANT, graded

import tinyfin as tf

SUBJECTS = samples.subjects()


def tangent(problem, values, direction):
    """The results' tangents by forward mode, as arrays; zeros where a result does not move."""
    primals, moves = (tuple(problem.tensors(v, False)) for v in (values, direction))
    outputs, tangents = tf.func.jvp(lambda *leaves: tuple(problem.outputs(leaves)), primals, moves)
    for y, t in zip(outputs, tangents):
        assert t.shape == y.shape and t.dtype is y.dtype, "a tangent of another shape or dtype"
    return [samples.array(t) for t in tangents]


def forward_problem(fn, sample, rng):
    """What is wrong with forward mode on a call, or None."""
    problem = gradients.Problem(fn, sample)
    values = problem.values()
    plain = problem.numbers(values)
    if not problem.variables or not plain:
        return None
    direction = [np.asarray(rng.standard_normal(v.shape)) for v in values]
    got = tangent(problem, values, direction)
    ends = [
        problem.numbers([v + s * d for v, d in zip(values, direction)])
        for s in (gradients.STEP, -gradients.STEP)
    ]
    want = [(a - b) / (2 * gradients.STEP) for a, b in zip(*ends)]
    blind = getattr(getattr(fn, "row", None), "blind", False)
    wrong = gradients.disagreement(got[: 1 if blind else None], want, "tangent")
    if wrong:
        return wrong
    weights = gradients.cotangents(rng, plain)
    for w in weights[1:] if blind else ():
        w[...] = 0
    reverse = gradients.analytic(problem, values, weights)
    back = 0.0 if reverse is None else gradients.dot(reverse, direction)
    if not abs(gradients.dot(got, weights) - back) <= 1e-9 * max(1.0, abs(back)):
        return f"forward and reverse mode disagree: {gradients.dot(got, weights)!r}, {back!r}"
    return None


@pytest.mark.parametrize("name", SUBJECTS)
def test_jvp(name, rng):
    wrong = []
    for sample in graded(name):
        text = forward_problem(SUBJECTS[name], sample, rng)
        wrong += [f"{name}{sample}: {text}"] if text else []
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", [n for n in SUBJECTS if n not in CONSTANT])
def test_forward_over_reverse(name, rng):
    """A Hessian-vector product in both ways."""
    wrong = []
    for sample in graded(name)[:3]:
        problem = gradients.Problem(SUBJECTS[name], sample)
        values = problem.values()
        weights = gradients.cotangents(rng, problem.numbers(values))
        if not problem.variables or not weights:
            continue
        direction = [np.asarray(rng.standard_normal(v.shape)) for v in values]
        want = products(problem, values, weights, direction, twice_reverse)
        got = products(problem, values, weights, direction, forward_reverse)
        text = gradients.disagreement(got, want, "Hessian-vector product")
        wrong += [f"{name}{sample}: {text}"] if text else []
    assert not wrong, "\n" + "\n".join(wrong)


def scalar(problem, weights):
    """<weights, outputs> as a function of the leaves."""

    def f(*leaves):
        total = sum((leaf.sum() * 0.0 for leaf in leaves), tf.tensor(0.0, dtype=tf.float64))
        for y, w in zip(problem.outputs(leaves), weights):
            total = total + (y * tf.tensor(np.asarray(w))).sum()
        return total

    return f


def products(problem, values, weights, direction, how):
    """Hessian-vector products as arrays."""
    f = scalar(problem, weights)
    return gradients.arrays_of(
        how(f, problem.tensors(values), problem.tensors(direction, False)), values
    )


def twice_reverse(f, leaves, moves):
    """The gradient of <gradient, direction>."""
    grads = tf.autograd.grad(f(*leaves), leaves, create_graph=True)
    total = sum((g * m).sum() for g, m in zip(grads, moves))
    if not total.requires_grad:
        return [None] * len(leaves)
    return tf.autograd.grad(total, leaves, allow_unused=True)


def forward_reverse(f, leaves, moves):
    """The tangent of the gradient."""
    places = tuple(range(len(leaves)))
    _, tangents = tf.func.jvp(
        tf.func.grad(f, argnums=places), tuple(t.detach() for t in leaves), tuple(moves)
    )
    return tangents
