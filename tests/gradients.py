"""Derivatives by finite differences in float64, independent of the library's own checker."""

import numpy as np
import samples

import tinyfin as tf

STEP = 1e-6
TOLERANCE = 2e-6
DIRECTIONS = 3


class Problem:
    """A call as a function of its float64 arrays."""

    def __init__(self, fn, sample):
        self.fn, self.sample = fn, sample
        self.arrays = samples.arrays(sample)
        self.variables = [
            i for i, a in enumerate(self.arrays) if a.dtype == np.float64 and i not in sample.fixed
        ]

    def values(self):
        """The variables' values."""
        return [np.array(self.arrays[i]) for i in self.variables]

    def tensors(self, values, requires_grad=True):
        """Leaves of these values, in the variables' order."""
        return [
            samples.tensor(np.asarray(v), "float64", requires_grad=requires_grad) for v in values
        ]

    def outputs(self, leaves):
        """The floating results as tensors."""
        given = dict(zip(self.variables, leaves))
        every = [
            given[i] if i in given else samples.tensor(a, "float64")
            for i, a in enumerate(self.arrays)
        ]
        args, kwargs = samples.with_arrays(self.sample, every)
        return [y for y in samples.flat(self.fn(*args, **kwargs)) if y.is_floating_point()]

    def numbers(self, values):
        """The floating results as arrays, without recording."""
        with tf.no_grad():
            return [samples.array(y) for y in self.outputs(self.tensors(values, False))]


def cotangents(rng, outputs):
    """Random arrays in the outputs' shapes."""
    return [np.asarray(rng.standard_normal(tuple(y.shape))) for y in outputs]


def dot(a, b):
    """The scalar product of two lists of arrays."""
    return sum(float(np.sum(x * y)) for x, y in zip(a, b))


def arrays_of(grads, values):
    """Gradients as arrays; what takes no part has a gradient of zero."""
    return [np.zeros(v.shape) if g is None else samples.array(g) for g, v in zip(grads, values)]


def analytic(problem, values, weights):
    """The gradient of <weights, outputs> by the library; None where nothing was recorded.

    Weights of results that the row declares to have no derivative are set to zero.
    """
    leaves = problem.tensors(values)
    outputs = problem.outputs(leaves)
    for y, w in zip(outputs, weights):
        if not y.requires_grad and getattr(getattr(problem.fn, "row", None), "blind", False):
            w[...] = 0
    taken = [(y, w) for y, w in zip(outputs, weights) if y.requires_grad]
    if not taken:
        return None
    grads = tf.autograd.grad(
        [y for y, _ in taken],
        leaves,
        [tf.tensor(np.asarray(w)) for _, w in taken],
        allow_unused=True,
    )
    for g, leaf in zip(grads, leaves):
        assert g is None or (g.shape == leaf.shape and g.dtype is leaf.dtype), (
            "gradient of another shape or dtype"
        )
    return arrays_of(grads, values)


def numeric(problem, values, weights):
    """The same by central differences, element by element."""
    grads = []
    for k, v in enumerate(values):
        g = np.zeros(v.shape)
        for at in np.ndindex(v.shape):
            ends = []
            for step in STEP, -STEP:
                moved = [np.array(u) for u in values]
                moved[k][at] += step
                ends.append(dot(problem.numbers(moved), weights))
            g[at] = (ends[0] - ends[1]) / (2 * STEP)
        grads.append(g)
    return grads


def disagreement(got, want, what):
    """The first gradient that is off, as text, or None."""
    for i, (g, w) in enumerate(zip(got, want)):
        scale = max(1.0, float(np.nan_to_num(np.abs(w)).max(initial=0.0)))
        off = ~(np.abs(g - w) <= TOLERANCE * scale) & ~(np.isnan(g) & np.isnan(w))
        if off.any():
            at = tuple(int(k) for k in np.argwhere(off)[0])
            wrong = (
                f"{int(off.sum())} of {off.size} wrong, first at {at}: {g[at]!r}, want {w[at]!r}"
            )
            return f"{what} of variable {i}, {wrong}"
    return None


def first_order(fn, sample, rng):
    """What is wrong with the gradient of a call, or None."""
    problem = Problem(fn, sample)
    values = problem.values()
    weights = cotangents(rng, problem.numbers(values))
    if not problem.variables or not weights:
        return None
    got = analytic(problem, values, weights)
    if got is None:
        return "nothing was recorded"
    return disagreement(got, numeric(problem, values, weights), "gradient")


def pullback(problem, values, weights, directions):
    """<directions, gradient of <weights, outputs>> and what it depends on, recorded."""
    leaves, cots = problem.tensors(values), problem.tensors(weights)
    taken = [(y, w) for y, w in zip(problem.outputs(leaves), cots) if y.requires_grad]
    grads = tf.autograd.grad(
        [y for y, _ in taken], leaves, [w for _, w in taken], create_graph=True, allow_unused=True
    )
    total = tf.tensor(0.0, dtype=tf.float64)
    for g, u in zip(grads, directions):
        if g is not None:
            total = total + (g * tf.tensor(np.asarray(u))).sum()
    return total, leaves + cots


def second_order(fn, sample, rng):
    """What is wrong with the gradient of the gradient along random directions, or None."""
    problem = Problem(fn, sample)
    values = problem.values()
    weights = cotangents(rng, problem.numbers(values))
    if not problem.variables or not weights or sum(w.size for w in weights) == 0:
        return None
    directions = [np.asarray(rng.standard_normal(v.shape)) for v in values]
    total, leaves = pullback(problem, values, weights, directions)
    points = values + weights
    grads = (
        tf.autograd.grad(total, leaves, allow_unused=True)
        if total.requires_grad
        else [None] * len(leaves)
    )
    got = arrays_of(grads, points)
    for _ in range(DIRECTIONS):
        move = [np.asarray(rng.standard_normal(p.shape)) for p in points]
        ends = []
        for step in STEP, -STEP:
            at = [p + step * m for p, m in zip(points, move)]
            ends.append(
                pullback(problem, at[: len(values)], at[len(values) :], directions)[0].item()
            )
        want, have = (ends[0] - ends[1]) / (2 * STEP), dot(got, move)
        size = sum(abs(float(np.sum(g * m))) for g, m in zip(got, move))
        if not abs(have - want) <= TOLERANCE * 5 * max(1.0, abs(want), size):
            return f"gradient of the gradient along a direction: {have!r}, want {want!r}"
    return None
