"""Random fills and dropout on a GPU: strides, unaligned memory and parameters that the table's samples do not have."""

import warnings

import numpy as np
import pytest
import samples
from backends.gpu.alike import gpu

import tinyfin as tf
from tinyfin.ops import table

pytestmark = pytest.mark.usefixtures("gpu")
SEED, DRAW = -12345678901234567, (1 << 33) + 5
FILLS = {
    "uniform_": (-1.5, 2.5),
    "normal_": (0.5, 3.0),
    "exponential_": (0.3,),
    "randint_": (-100, 100),
    "bernoulli_": (0.3,),
    "random_bits_": (),
}


def compare(name, shape, dtype, *numbers, view=lambda t: t, deterministic=False):
    """A fill of a view of memory that held ones, on both devices."""
    ends = []
    for device in ("cpu", gpu()):
        base = samples.tensor(np.ones(shape), dtype).to(device)
        with warnings.catch_warnings(), tf.deterministic(deterministic):
            warnings.simplefilter("error")
            table.OPS[name](view(base), *numbers)
        ends.append(samples.bits(base.cpu()))
    assert ends[0] == ends[1], f"{name}{numbers} {dtype}"


def dtype_of(name):
    return "int64" if name in ("randint_", "random_bits_") else "float32"


@pytest.mark.parametrize(
    "name, dtype",
    [(name, dtype_of(name)) for name in FILLS]
    + [(name, "float64") for name in FILLS if name != "random_bits_"],
)
def test_layouts(name, dtype):
    numbers = (*FILLS[name], SEED, DRAW)
    for n in (1, 2, 3, 5, 2051):
        compare(name, (n,), dtype, *numbers)
    compare(name, (302,), dtype, *numbers, view=lambda t: t[1:])
    compare(name, (7, 6, 5), dtype, *numbers, view=lambda t: t.permute(2, 0, 1)[:, ::2].flip(1))
    compare(name, (3, 2, 3, 2, 3, 2, 3, 2), dtype, *numbers, view=lambda t: t[::2, :1, ::2, :, ::2])


@pytest.mark.parametrize("name", ["uniform_", "normal_"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves(name, dtype):
    compare(name, (2050,), dtype, *FILLS[name], SEED, DRAW)
    compare(name, (33, 8), dtype, *FILLS[name], SEED, DRAW, view=lambda t: t[:, 1::2])


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "int32", "int64", "float16", "float64"]
)
def test_whole_numbers(dtype):
    """As many elements of a counter as one access takes, and what is left."""
    for n in (4, 77):
        compare("bernoulli_", (n,), dtype, 0.4, SEED, DRAW)
        compare("randint_", (n,), dtype, 0, 2 if dtype == "bool" else 100, SEED, DRAW)
    compare("bernoulli_", (78,), dtype, 0.4, SEED, DRAW, view=lambda t: t[1:])


def test_ranges():
    """Products of 64 bits by 64."""
    for low, high in (
        (-(1 << 63), (1 << 63) - 1), (0, (1 << 62) + 3), (5, 6), ((1 << 40) - 7, (1 << 41) + 1),
    ):  # fmt: skip
        compare("randint_", (515,), "int64", low, high, SEED, DRAW)
        for dtype in ("float32", "float64"):
            compare("randint_", (515,), dtype, low, high, SEED, DRAW)


def test_blocks():
    """The first block counts in 64 bits."""
    for first in (1, (1 << 32) - 2, (1 << 62) + 11):
        compare("random_bits_", (41,), "int32", SEED, DRAW, first)
        compare("random_bits_", (41,), "int64", SEED, DRAW, first)


def test_subnormal_results():
    for mode in (False, True):
        compare("exponential_", (2000,), "float32", 1e38, SEED, DRAW, deterministic=mode)
        compare("uniform_", (2000,), "float32", 0.0, 1e-37, SEED, DRAW, deterministic=mode)
        compare("exponential_", (2000,), "float64", 1e308, SEED, DRAW, deterministic=mode)
        compare("uniform_", (2000,), "float64", 0.0, 1e-307, SEED, DRAW, deterministic=mode)
        compare("normal_", (2000,), "float64", 0.0, 1e-307, SEED, DRAW, deterministic=mode)


def test_many_numbers():
    """Every quarter turn, and tails."""
    for name in ("uniform_", "normal_", "exponential_"):
        for dtype in ("float32", "float64"):
            compare(name, (100_003,), dtype, *FILLS[name], SEED, DRAW)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_dropout(dtype):
    x = samples.tensor(np.random.default_rng(3).standard_normal((5, 4, 103)), dtype)
    for view in (lambda t: t, lambda t: t[1:, :, 1:], lambda t: t.transpose(0, 2).flip(1)):
        for p in (0.4, 1e-9, 1.0):
            want = table.OPS["dropout_apply"](view(x), p, SEED, DRAW)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                got = table.OPS["dropout_apply"](view(x.to(gpu())), p, SEED, DRAW)
            assert samples.bits(got.cpu()) == samples.bits(want)


def test_streams_agree():
    """The public functions draw the same numbers, one after the other."""
    found = []
    for device in ("cpu", gpu()):
        tf.manual_seed(11)
        found.append([
            samples.bits(t.cpu())
            for t in (
                tf.rand(3, 5, device=device),
                tf.randn(7, device=device),
                tf.randint(0, 9, (4,), device=device),
                tf.nn.functional.dropout(tf.ones(50, device=device), 0.5),
            )
        ])  # fmt: skip
    assert found[0] == found[1]
