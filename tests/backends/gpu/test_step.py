"""Optimizer steps on a GPU: layouts, mixed dtypes and sizes of numbers that the table's samples do not have."""

import warnings

import numpy as np
import pytest
import samples
from backends.gpu.alike import gpu

import tinyfin as tf
from tinyfin.ops import table

pytestmark = pytest.mark.usefixtures("gpu")
RULES = {
    "sgd_step_": (3, {"lr": 0.05, "momentum": 0.9, "dampening": 0.2, "nesterov": True}),
    "adam_step_": (5, {"lr": 0.01, "step": 3, "weight_decay": 0.1, "eps": 1e-12}),
    "rmsprop_step_": (5, {"lr": 0.01, "momentum": 0.5, "weight_decay": 0.1}),
}
"""Row -> tensors it takes, attributes."""


def tensors(rule, shape, spread=0.0):
    """Operands as arrays; magnitudes go down to 10^-spread. Mean squares outweigh squared means."""
    rng = np.random.default_rng(sum(map(ord, rule)))
    found = [
        rng.standard_normal(shape) * 10.0 ** rng.uniform(-spread, 0, shape)
        for _ in range(RULES[rule][0])
    ]
    for k in {"adam_step_": (3, 4), "rmsprop_step_": (2,)}.get(rule, ()):
        found[k] = found[k] ** 2 + (1 if rule == "rmsprop_step_" else 0)
    return found


def compare(rule, arrays, dtypes, change=lambda k, t: t, deterministic=False):
    """The step on both devices, through views that `change` makes of memory."""
    ends = []
    for device in ("cpu", gpu()):
        bases = [samples.tensor(a, d).to(device) for a, d in zip(arrays, dtypes)]
        with warnings.catch_warnings(), tf.deterministic(deterministic):
            warnings.simplefilter("error")
            table.OPS[rule](*[change(k, t) for k, t in enumerate(bases)], **RULES[rule][1])
        ends.append([samples.bits(t.cpu()) for t in bases])
    assert ends[0] == ends[1], f"{rule} {dtypes}"


@pytest.mark.parametrize("rule", RULES)
def test_sizes(rule):
    """Quads and what is left of them, over several work groups; addresses that are no multiples of 16."""
    for n in (1, 3, 4, 5, 2051):
        compare(rule, tensors(rule, n), ["float32"] * 5)
    compare(rule, tensors(rule, 301), ["float32"] * 5, lambda k, t: t[1:] if k < 2 else t[:-1])


@pytest.mark.parametrize("rule", RULES)
def test_strides(rule):
    changes = [
        lambda k, t: t.transpose(0, 3) if k == 1 else t,
        lambda k, t: t.flip((0, 2)) if k % 2 and k < 2 else t,
        lambda k, t: t.permute(*[(3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1), (0, 1, 2, 3)][k % 4]),
    ]
    for change in changes:
        compare(rule, tensors(rule, (4, 4, 4, 4)), ["float32"] * 5, change)
    compare(rule, tensors(rule, (3, 3, 2, 5, 2)), ["float32"] * 5, lambda k, t: t[:, ::2, :, 1::2])


@pytest.mark.parametrize("rule", RULES)
def test_halves(rule):
    compare(rule, tensors(rule, 67), ["float16"] * 5)
    compare(rule, tensors(rule, 67), ["bfloat16", "float32", "float32", "float16", "float32"])


@pytest.mark.parametrize("rule", RULES)
def test_halves_strided(rule):
    compare(rule, tensors(rule, (6, 5)), ["bfloat16"] * 5, lambda k, t: t[::2, 1:])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("deterministic", [False, True])
def test_tiny_numbers(rule, deterministic):
    """Subnormal numbers, and squares, quotients and roots that are."""
    compare(rule, tensors(rule, 4000, 44), ["float32"] * 5, deterministic=deterministic)
