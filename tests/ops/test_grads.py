"""Gradients of order 1 and 2 of every subject against finite differences, in float64."""

import gradients
import numpy as np
import pytest
import samples
from graded import CONSTANT, graded

import tinyfin as tf
from tinyfin.ops import table

SUBJECTS = samples.subjects()


def floating(name, sample):
    """Whether the call has floating results for float64 arrays."""
    problem = gradients.Problem(SUBJECTS[name], sample)
    return bool(problem.variables) and bool(problem.numbers(problem.values()))


@pytest.mark.parametrize("name", SUBJECTS)
def test_first_order(name, rng):
    wrong = []
    for sample in graded(name):
        problem = gradients.first_order(SUBJECTS[name], sample, rng)
        if name in CONSTANT and problem == "nothing was recorded":
            problem = None
        elif name in CONSTANT and floating(name, sample):
            problem = problem or "it is constant, but was recorded"
        if problem:
            wrong.append(f"{name}{sample}: {problem}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", [n for n in SUBJECTS if n not in CONSTANT])
def test_second_order(name, rng):
    wrong = []
    for sample in graded(name):
        problem = gradients.second_order(SUBJECTS[name], sample, rng)
        if problem:
            wrong.append(f"{name}{sample}: {problem}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", SUBJECTS)
def test_recording_needs_a_reason(name):
    """No history where no input asks for it, under no_grad, and for integer results."""
    for sample in graded(name)[:3]:
        args, kwargs = samples.mapped(sample, lambda a: samples.tensor(a, "float64"))
        for y in samples.flat(SUBJECTS[name](*args, **kwargs)):
            assert not y.requires_grad and y.grad_fn is None
        args, kwargs = samples.mapped(
            sample, lambda a: samples.tensor(a, "float64", requires_grad=a.dtype == np.float64)
        )
        for i, a in enumerate(x for x in args if isinstance(x, tf.Tensor)):
            a.requires_grad_(a.requires_grad and i not in sample.fixed)
        for y in samples.flat(SUBJECTS[name](*args, **kwargs)):
            assert y.is_floating_point() or not y.requires_grad
        with tf.no_grad():
            for y in samples.flat(SUBJECTS[name](*args, **kwargs)):
                assert not y.requires_grad or any(y is a for a in args)


@pytest.mark.parametrize("name", SUBJECTS)
def test_inputs_are_left_alone(name):
    """No call but one that says so writes its inputs, in values or version."""
    row = table.TABLE.get(name)
    for sample in samples.samples_of(name):
        args, kwargs = samples.mapped(sample, lambda a: samples.tensor(a, samples.main_dtype(name)))
        written = set(row.mutates) if row is not None else set()
        held = [
            t
            for i, a in enumerate(args)
            if row is None or i >= len(row.arg_names) or row.arg_names[i] not in written
            for t in samples.flat(a)
        ] + samples.flat(list(kwargs.values()))
        before = [(samples.bits(t), t._version) for t in held]
        SUBJECTS[name](*args, **kwargs)
        assert [(samples.bits(t), t._version) for t in held] == before, (
            f"{name}{sample} changed an input"
        )
