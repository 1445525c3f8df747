"""Recurrent layers: the kernels have the formulas' bits, on any thread count and instruction set."""

import numpy as np
import pytest
from backends import isolated
from backends.cpu.fused import (
    DTYPES,
    check_derivatives,
    check_formula,
    check_instruction_sets,
    check_threads,
    digest,
    layouts,
    run,
    tensor,
    torch,
)

import tinyfin as tf
from tinyfin.ops.recurrent import MODES
from tinyfin.ops.row import F

GATES = dict(zip(MODES, (1, 1, 4, 3)))
SIZES = [  # steps, batch, units: one row, rows shared, units shared, edges of blocks
    (1, 1, 1),
    (3, 1, 70),
    (4, 17, 33),
    (2, 40, 64),
    (3, 9, 130),
    (2, 33, 300),
]


def numbers(*shape, seed=0, scale=1.0):
    return np.random.default_rng(seed).standard_normal(shape) * scale


def layer(mode, sizes, dtype, bias=True):
    """Mapped input, state, weights."""
    steps, batch, units = sizes
    rows = GATES[mode] * units
    arrays = [
        numbers(steps, batch, rows),
        numbers(batch, units, seed=1),
        numbers(batch, units, seed=2) if mode == "LSTM" else None,
        numbers(rows, units, seed=3, scale=units**-0.5),
        numbers(rows, seed=4) if bias else None,
    ]
    return [tensor(a, dtype) for a in arrays]


def cotangents(results):
    """Of all results; None for what a mode does not have."""
    return [
        tensor(numbers(*r.shape, seed=5 + i)).to(r.dtype) if r.numel() else None
        for i, r in enumerate(results)
    ]


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_of_the_formula(dtype, mode, sizes, deterministic):
    with tf.deterministic(deterministic):
        for reverse in (False, True):
            args = layer(mode, sizes, dtype, bias=reverse)
            check_formula("recurrence", *args, mode, reverse)
            results = check_formula("recurrence_steps", *args, mode, reverse)
            g, g_cells, g_gates = cotangents(results)
            saved = (*args[1:4], *results, mode, reverse)
            check_formula("recurrence_grad", g, g_cells, g_gates, *saved)
            check_formula("recurrence_grad", g, None, None, *saved)
            if g_gates is not None:
                check_formula("recurrence_grad", None, None, g_gates, *saved)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_layouts(mode, dtype):
    def many(a):
        return [t.to(getattr(tf, dtype)) for t in layouts(a)]

    steps, batch, units = 3, 5, 34
    rows = GATES[mode] * units
    for k in range(4):
        x = many(numbers(steps, batch, rows))[k]
        h, c = (many(numbers(batch, units, seed=i))[k] for i in (1, 2))
        w = many(numbers(rows, units, seed=3, scale=0.2))[k]
        c, b = c if mode == "LSTM" else None, many(numbers(rows, seed=4))[k]
        y, *more = check_formula("recurrence_steps", x, h, c, w, b, mode, True)
        g = many(numbers(steps, batch, units, seed=6))[k]
        many_y = [t.to(y.dtype) for t in layouts(y.float().numpy())][k]
        check_formula("recurrence_grad", g, None, None, h, c, w, many_y, *more, mode, True)


def test_subnormal_numbers_in_both_modes():
    for mode in MODES:
        for deterministic in (False, True):
            with tf.deterministic(deterministic):
                x, h, c, w, _ = layer(mode, (3, 4, 20), "float32", False)
                small = [None if t is None else t * 2.0**-130 for t in (x, h, c)]
                results = check_formula("recurrence_steps", *small, w, None, mode, False)
                g = cotangents(results)[0] * 2.0**-126
                check_formula(
                    "recurrence_grad", g, None, None, *small[1:], w, *results, mode, False
                )


def test_infinite_and_missing_numbers_stay_in_their_rows():
    for mode in MODES:
        x, h, c, w, b = layer(mode, (4, 3, 40), "float32")
        x[1, 1, 3], x[1, 1, 5] = float("nan"), float("inf")
        y, *_ = check_formula("recurrence_steps", x, h, c, w, b, mode, False)
        assert y[1:, 1].isnan().any() and not y[:, 0].isnan().any() and not y[:, 2].isnan().any()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_derivatives(name, reverse):
    """Of order 1 and 2 against PyTorch's layer, whose input mapping is a row of ones here."""
    mode = "RNN_TANH" if name == "RNN" else name
    units, batch, steps = 3, 2, 4
    rows = GATES[mode] * units
    theirs = getattr(torch.nn, name)(rows, units).double()
    arrays = [numbers(steps, batch, rows), numbers(batch, units, seed=1)]
    arrays += [numbers(batch, units, seed=2)] if name == "LSTM" else []
    arrays += [numbers(rows, units, seed=3, scale=0.5), numbers(rows, seed=4)]

    def ours(x, h, *rest):
        c, (w, b) = (rest[0] if name == "LSTM" else None), rest[-2:]
        y, cells, _ = F.recurrence_steps(x, h, c, w, b, mode, reverse)
        end = cells[0 if reverse else -1] if name == "LSTM" else y[0 if reverse else -1]
        return F.cat([y.reshape(-1), end.reshape(-1)], 0)

    def other(x, h, *rest):
        w, b = rest[-2:]
        x = x.flip(0) if reverse else x
        weights = {
            "weight_ih_l0": torch.eye(rows, dtype=torch.float64),
            "weight_hh_l0": w,
            "bias_ih_l0": torch.zeros(rows, dtype=torch.float64),
            "bias_hh_l0": b,
        }
        state = (h[None], rest[0][None]) if name == "LSTM" else h[None]
        y, end = torch.func.functional_call(theirs, weights, (x, state))
        end = end[1] if name == "LSTM" else end
        return torch.cat([(y.flip(0) if reverse else y).reshape(-1), end.reshape(-1)])

    check_derivatives(ours, other, *arrays)


def test_a_row_does_what_the_inference_row_does():
    for mode in MODES:
        args = layer(mode, (5, 6, 20), "float32")
        y, c = run("recurrence", *args, mode, False)
        z, cells, _ = run("recurrence_steps", *args, mode, False)
        assert y.equal(z) and (mode != "LSTM" or c.equal(cells[-1]))


LITTLE = """
import tinyfin as tf
from tinyfin.ops.row import F

tf.manual_seed(1)
for mode, gates in (("LSTM", 4), ("GRU", 3), ("RNN_TANH", 1)):
    rows = gates * 600
    x, h, w = tf.randn(3, 3, rows), tf.randn(3, 600), tf.randn(rows, 600) / 20
    c = tf.randn(3, 600) if mode == "LSTM" else None
    args = (x, h, c, w, None, mode, False)
    y = F.recurrence_steps(*args)
    back = (y[0], None, None, h, c, w, *y, mode, False)
    pairs = zip((*y, *F.recurrence_grad(*back)), (*F.recurrence_steps.formula(*args), *F.recurrence_grad.formula(*back)))
    print(all(a.equal(b) for a, b in pairs))
"""


def test_weights_that_do_not_fit_scratch_memory():
    """They are packed block by block in each step then; below that it is an error."""
    assert isolated.run(LITTLE, TINYFIN_SCRATCH_BYTES="3500000")[0] == ["True"] * 3
    with pytest.raises(AssertionError, match="MemoryError: recurrence_steps: .*SCRATCH_BYTES"):
        isolated.run(LITTLE, TINYFIN_SCRATCH_BYTES="20000")


def everything():
    """Results of the kernels on sizes that are split over threads."""
    for dtype in ("float32", "float64"):
        for mode in MODES:
            for sizes in SIZES:
                args = layer(mode, sizes, dtype)
                results = run("recurrence_steps", *args, mode, False)
                yield from results
                g, g_cells, g_gates = cotangents(results)
                yield from run(
                    "recurrence_grad", g, g_cells, g_gates, *args[1:4], *results, mode, False
                )


def test_threads_do_not_change_bits():
    check_threads(everything)


def test_instruction_sets_do_not_change_bits():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    print(digest(everything()))
