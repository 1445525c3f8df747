"""Any layout of an argument gives the same bits as its contiguous copy."""

import numpy as np
import pytest
import samples

import tinyfin as tf
from tinyfin.ops import table

SUBJECTS = samples.subjects()
BY_STORAGE = {"as_strided", "as_strided_view", "view", "view_as"}
"""Subjects that depend on how their argument is stored."""


def result_bits(name, args, kwargs, bits=samples.bits):
    """The bits of all results; of what is written, for rows that write."""
    row = table.TABLE.get(name)
    result = SUBJECTS[name](*args, **kwargs)
    written = samples.flat(args) if row is not None and row.mutates else []
    return [bits(t) for t in samples.flat(result) + written] or [result]


def call(name, sample, dtype, relay, bits=samples.bits):
    """The call with every tensor passed through relay(number, tensor)."""
    counter = iter(range(99))
    args, kwargs = samples.mapped(sample, lambda a: relay(next(counter), samples.tensor(a, dtype)))
    return result_bits(name, args, kwargs, bits)


@pytest.mark.parametrize("name", [n for n in SUBJECTS if n not in BY_STORAGE])
def test_layouts(name):
    dtype = samples.main_dtype(name)
    for sample in samples.samples_of(name):
        want = call(name, sample, dtype, lambda k, t: t)
        count = len(samples.arrays(sample))
        for label, change in samples.LAYOUTS.items():
            got = call(name, sample, dtype, lambda k, t, c=change: c(t))
            assert got == want, f"{name}{sample} {label}"
        for one in range(count if count > 1 else 0):
            got = call(
                name, sample, dtype, lambda k, t, one=one: samples.gapped(t) if k == one else t
            )
            assert got == want, f"{name}{sample} gapped argument {one}"


def with_any_byte(t):
    """The same truth values in memory that holds bytes other than 0 and 1."""
    if t.dtype != tf.bool:
        return t
    values = t.numpy().astype(np.uint8)
    values *= np.resize(np.array([2, 255, 128, 1, 3], np.uint8), values.shape)
    return tf.from_numpy(values.view(np.bool_))


def truth(t):
    """The bits of a result; operations that only move elements move their bytes as they are."""
    return samples.bits(t.to(tf.uint8) if t.dtype == tf.bool else t)


TRUTHS = [
    n for n in SUBJECTS if n not in BY_STORAGE and not getattr(table.TABLE.get(n), "mutates", ())
]


@pytest.mark.parametrize("name", TRUTHS)
def test_any_byte_is_true(name):
    """Borrowed memory of dtype bool counts as PyTorch and NumPy count it: what is not 0 is true."""
    dtypes = [d for d in ("bool", samples.main_dtype(name)) if d in samples.dtypes_of(name)]
    for sample in samples.samples_of(name):
        for dtype in dtypes:
            want = call(name, sample, dtype, lambda k, t: t, truth)
            got = call(name, sample, dtype, lambda k, t: with_any_byte(t), truth)
            assert got == want, f"{name}{sample} {dtype}"


def stretched(a):
    """The array with one axis repeated, and how to make a tensor of it without the copies."""
    values, axis = samples.expanded(a)
    if values is None:
        return a, lambda t: t
    return values, lambda t: t.narrow(axis, 0, 1).expand(t.shape)


@pytest.mark.parametrize("name", [n for n in SUBJECTS if n not in BY_STORAGE])
def test_expanded(name):
    """Elements that share memory count as often as they are seen."""
    row, dtype = table.TABLE.get(name), samples.main_dtype(name)
    if row is not None and row.mutates:
        pytest.skip("it writes: views whose elements share memory are refused, see test_inplace")
    for sample in samples.samples_of(name):
        every = [
            stretched(a) if a.dtype == np.float64 else (a, lambda t: t)
            for a in samples.arrays(sample)
        ]
        dense = [samples.tensor(a, dtype) for a, _ in every]
        views = [fn(t) for t, (_, fn) in zip(dense, every)]
        want = result_bits(name, *samples.with_arrays(sample, dense))
        assert result_bits(name, *samples.with_arrays(sample, views)) == want, f"{name}{sample}"


@pytest.mark.parametrize("name", [n for n, row in table.TABLE.items() if row.mutates])
def test_writes_stay_inside(name):
    """What lies between the elements of a written view is not touched."""
    for sample in samples.samples_of(name):
        args, kwargs = samples.mapped(
            sample, lambda a: samples.gapped(samples.tensor(a, samples.main_dtype(name)))
        )
        holes = []
        for t in samples.flat(args):
            whole = tf.as_strided(t, (t.storage_elements(),), (1,), 0)
            inside = tf.zeros(t.storage_elements(), dtype=tf.bool)
            tf.as_strided(inside, tuple(t.shape), t.stride(), t.storage_offset()).fill_(True)
            keep = ~inside
            holes.append((whole, keep, samples.bits(tf.where(keep, whole, 0))))
        SUBJECTS[name](*args, **kwargs)
        for whole, keep, before in holes:
            assert samples.bits(tf.where(keep, whole, 0)) == before, (
                f"{name}{sample} wrote outside its view"
            )
