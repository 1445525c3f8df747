"""Every subject against its meaning in NumPy, for every dtype; integer edges; the null device."""

import numpy as np
import oracle
import pytest
import samples

import tinyfin as tf
from tinyfin.ops import table

SUBJECTS = samples.subjects()


def complaints(name, sample, dtype, device):
    """What is wrong with one call, as text."""
    args, kwargs = samples.mapped(sample, lambda a: samples.tensor(a, dtype, device))
    result = samples.outcome(name, args, kwargs)
    got = samples.flat(result)
    inputs = samples.mapped(sample, lambda a: samples.convert(a, dtype))
    want = oracle.evaluate(name, *inputs, dtype=dtype)
    if not got and result not in ((), []):
        plain = list(result) if isinstance(result, tuple) else [result]
        if want[0] is not None and plain != want:
            yield f"{result!r}, want {want!r}"
        return
    if len(got) != len(want):
        yield f"{len(got)} results, want {len(want)}"
    for i, (g, w) in enumerate(zip(got, want)):
        text = oracle.problem(name, g, w, dtype)
        if text is None and w is not None:
            wanted = oracle.expected_dtype(w, dtype)
            text = None if g.dtype.name == wanted else f"dtype {g.dtype.name}, want {wanted}"
        if text is not None:
            yield f"result {i}: {text}"


@pytest.mark.parametrize("name", SUBJECTS)
def test_values(name, device):
    assert oracle.known(name), f"{name} has no meaning: write one in tests/meanings"
    wrong = []
    for sample in samples.samples_of(name):
        for dtype in samples.dtypes_of(name):
            if samples.applies(sample, dtype):
                wrong += [
                    f"{name}{sample} {dtype}: {c}" for c in complaints(name, sample, dtype, device)
                ]
    assert not wrong, "\n" + "\n".join(wrong[:12])


ELEMENTWISE = [n for n, row in table.TABLE.items() if row.expr is not None and "i" in row.dtypes]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_integer_edges(name):
    """Smallest and largest integers of each type: wrapping, no trap, no undefined behaviour."""
    n = len(table.TABLE[name].arg_names)
    wrong = []
    for dtype in samples.INTS:
        info = np.iinfo(dtype)
        values = np.array([info.min, info.min + 1, 0, 1, 2, 3, info.max - 1, info.max], dtype)
        values = np.append(values, np.array([-1, -2], dtype)) if info.min else values
        grids = [np.ascontiguousarray(g) for g in np.meshgrid(*[values] * n, indexing="ij")]
        if name in ("floor_divide", "trunc_divide", "remainder", "fmod"):
            grids[1] = np.where(grids[1] == 0, 1, grids[1]).astype(dtype)
        if name == "where":
            grids[0] = grids[0] > 0
        got = SUBJECTS[name](*[tf.tensor(g) for g in grids])
        text = oracle.problem(name, got, oracle.evaluate(name, grids, {})[0], dtype)
        wrong += [f"{dtype}: {text}"] if text else []
    assert not wrong, "\n".join(wrong)
