"""The device that computes nothing: every subject's shapes and dtypes are those of the CPU."""

import pytest
import samples

import tinyfin as tf

SUBJECTS = samples.subjects()
READS = {"masked_select", "nonzero", "allclose", "equal", "repeat_interleave", "isin"}
"""Subjects whose result or shape depends on values."""


@pytest.fixture(autouse=True)
def wanted(request):
    """Leaves the device out where --device does."""
    if "null" not in request.config.getoption("--device").split(","):
        pytest.skip("--device does not name null")


@pytest.mark.parametrize("name", [n for n in SUBJECTS if n not in READS])
def test_shapes(name):
    dtype = samples.main_dtype(name)
    for sample in samples.samples_of(name)[:6]:
        args, kwargs = samples.mapped(sample, lambda a: samples.tensor(a, dtype))
        want = samples.flat(SUBJECTS[name](*args, **kwargs))
        args, kwargs = samples.mapped(sample, lambda a: samples.tensor(a, dtype).to("null"))
        got = samples.flat(SUBJECTS[name](*args, **kwargs))
        assert [(t.shape, t.dtype) for t in got] == [(t.shape, t.dtype) for t in want], (
            f"{name}{sample}"
        )
        assert all(t.device.type == "null" for t in got), f"{name}{sample}"


def test_no_memory_is_taken():
    """Shapes that no machine could hold."""
    before = tf.memory_stats()["live"]
    x = tf.ones(1 << 40, 1 << 10, device="null")
    y = (x + 1).sum()
    assert y.shape == () and x.numel() == 1 << 50
    assert tf.memory_stats()["live"] == before


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.item(),
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: x.to("cpu"),
        lambda x: bool(x),
        lambda x: x.cpu(),
    ],
)
def test_reading_is_an_error(read):
    with pytest.raises((RuntimeError, TypeError), match="null"):
        read(tf.ones((), device="null"))
