"""Sorting and searching on a GPU: short and long lines, ties, special values, all dtypes."""

import numpy as np
import pytest
import samples
from backends.gpu.alike import same

import tinyfin as tf
from tinyfin.ops.row import F

pytestmark = pytest.mark.usefixtures("gpu")
RNG = np.random.default_rng(8)
SPECIAL = np.array(
    [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3.0, 3.0, -1.0, 1e-7]
)


def numbers(*shape, dtype="float32"):
    """Many ties."""
    return samples.tensor(np.round(RNG.normal(size=shape) * 20), dtype)


def ways(x, **kwargs):
    for descending in (False, True):
        same(lambda x: F.sort(x, descending=descending, **kwargs), x)


@pytest.mark.parametrize("dtype", [d for d in samples.dtypes_of("sort")])
def test_sort(dtype):
    for n in (1, 2, 5, 100, 2048, 2049):
        ways(numbers(3, n, dtype=dtype))
    ways(numbers(6, 50, 4, dtype=dtype), dim=1)


@pytest.mark.parametrize("dtype", samples.FLOATS)
def test_special_values(dtype):
    x = samples.tensor(np.tile(SPECIAL, 300), dtype)
    ways(x[:24])
    ways(x)
    same(lambda x: F.topk(x, 20), x)


def test_long_lines_and_layouts():
    x = numbers(2, 7000)
    ways(x)
    ways(x.flip(1)[:, ::2])
    ways(x.t(), dim=0)
    ways(x.to(tf.int64).expand(2, 2, 7000))
    ways(tf.arange(5000).flip(0))


@pytest.mark.parametrize(
    "n, k", [(10, 3), (3000, 1), (9000, 50), (9000, 1024), (9000, 1025), (5000, 5000), (4, 0)]
)
def test_topk(n, k):
    x = numbers(3, n)
    for largest in (True, False):
        same(lambda x: F.topk(x, k, largest=largest), x)
        same(lambda x: F.topk(x.t().to(tf.int64), k, dim=0, largest=largest), x)


def test_empty_and_without_axes():
    ways(tf.tensor(2.0))
    ways(tf.zeros(0))
    ways(tf.zeros(3, 0, 2), dim=0)
    same(lambda x: F.topk(x, 1), tf.tensor(2.0))


@pytest.mark.parametrize("dtype", samples.ALL)
def test_search(dtype):
    x, v = numbers(3, 50, dtype=dtype), numbers(3, 7, dtype=dtype)
    x = x if dtype == "bool" else x.sort()[0]
    for right in (False, True):
        same(lambda x, v: F.searchsorted(x, v, right), x, v)
        same(lambda x, v: F.searchsorted(x[1].flip(0).flip(0), v.t(), right), x, v)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_search_for_numbers(dtype):
    """They are compared as float64 where one of the two is a float."""
    x = numbers(50, dtype=dtype).sort()[0]
    for number in (1.5, 3, True, float("nan"), 0.1, -(2**60)):
        same(lambda x: F.searchsorted(x, number, True), x)


def test_search_among_large_integers():
    big = [2**53, 2**53 + 1, 2**53 + 3, 2**62 + 1, 2**63 - 1, -(2**63), -(2**53) - 1, 7, -1, 0]
    x = tf.tensor(sorted(big))
    for right in (False, True):
        same(lambda x, v: F.searchsorted(x, v, right), x, tf.tensor(big))
        for number in big:
            same(lambda x: F.searchsorted(x, float(number), right), x)


def test_search_among_special_values():
    x = samples.tensor(SPECIAL, "float32").sort()[0]
    for right in (False, True):
        same(lambda x: F.searchsorted(x, x, right), x)
        with tf.deterministic():
            same(lambda x: F.searchsorted(x, x, right), x)
            same(lambda x: F.searchsorted(x.to(tf.bfloat16), x.to(tf.bfloat16), right), x)
