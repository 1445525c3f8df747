"""Bad input: the exception's type is PyTorch's, its text begins with the operation's name and says what came."""

import builtins
import gc
import warnings

import mistakes
import pytest

import tinyfin as tf

IDS = [f"{i}-{c[2][:40]}" for i, c in enumerate(mistakes.CASES)]
OWN = {
    "MemoryError": "PyTorch's allocator raises RuntimeError; a request that cannot fit is Python's MemoryError here",
    "OverflowError": "PyTorch's parsers differ among themselves",
    "ValueError": "PyTorch checks some of these later, as RuntimeError",
    "NotImplementedError": "PyTorch has complex numbers",
}
"""Kinds of errors that need not be PyTorch's, and why."""
TAKEN = {
    "m.add(1, 2)",
    "m.add(ones(2), 1, 2)",
    "m.manual_seed(1.5)",
    "ones(2).to(1.5)",
    "ones(2)[..., ...]",
    "F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 3, 3), dilation=1 << 62)",
}
"""Mistakes that PyTorch lets pass."""
OTHER = {
    "m.tensor([1, None])": "RuntimeError there: a wrong type is a TypeError here",
}
"""Calls whose exception is another one on purpose."""


@pytest.mark.parametrize(("kind", "begin", "call"), mistakes.CASES, ids=IDS)
def test_error(kind, begin, call):
    with pytest.raises(getattr(builtins, kind)) as caught:
        mistakes.run(call, tf)
    text = str(caught.value)
    assert text.startswith(begin), text
    assert "\n" not in text.strip() and len(text) < 400, "one line that can be read"


@pytest.mark.parametrize(
    ("kind", "begin", "call"), [c for c in mistakes.CASES if c[0] not in OWN and c[2] not in OTHER]
)
def test_type_is_that_of_pytorch(kind, begin, call):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            mistakes.run(call, torch)
        except Exception as error:
            theirs = error
        else:
            assert call in TAKEN, "PyTorch takes this call"
            return
    with pytest.raises(Exception) as caught:
        mistakes.run(call, tf)
    assert issubclass(caught.type, type(theirs)) or issubclass(type(theirs), caught.type), theirs


def test_errors_leave_nothing_behind():
    """A failed call keeps no tensor alive and no mode changed."""
    gc.collect()  # what earlier tests left in cycles
    x = tf.ones(3)
    before, grad = tf.memory_stats()["live"], tf.is_grad_enabled()
    for _, _, call in mistakes.CASES:
        try:
            mistakes.run(call, tf)
        except Exception:
            pass
    gc.collect()
    assert tf.memory_stats()["live"] == before and tf.is_grad_enabled() == grad
    assert x.tolist() == [1, 1, 1]
