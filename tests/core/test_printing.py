"""repr against PyTorch's, for many tensors."""

import numpy as np
import pytest

import tinyfin as tf

try:
    import torch
except ImportError:
    torch = None

PARITY = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")

SHAPES = [
    (), (1,), (3,), (7,), (30,), (0,), (2, 0), (0, 3, 2), (2, 3), (3, 4, 5), (1, 1, 1, 2), (1001,), (40, 40),
    (2, 600), (11, 11, 11),
]  # fmt: skip
KINDS = {
    "normal": lambda r, s: r.standard_normal(s),
    "large": lambda r, s: r.standard_normal(s) * 1e5,
    "whole": lambda r, s: np.round(r.standard_normal(s) * 10),
    "spread": lambda r, s: r.standard_normal(s) * np.exp(r.standard_normal(s) * 6),
    "special": lambda r, s: np.where(
        r.random(s) < 0.3, np.nan, np.where(r.random(s) < 0.3, np.inf, 0.5)
    ),
    "whole and infinite": lambda r, s: np.where(
        r.random(s) < 0.3, -np.inf, np.round(r.random(s) * 30)
    ),
    "zero": lambda r, s: np.zeros(s),
    "large and whole": lambda r, s: np.round(r.standard_normal(s) * 1e4),
    "tiny": lambda r, s: r.standard_normal(s) * 1e-7,
}
DTYPES = ["float32", "float64", "float16", "int64", "int32", "uint8", "bool"]


def same_text(t, u):
    """The two texts, but for the library's name, which may move the last note to a line of its own."""
    a, b = repr(t).replace("tinyfin.", "torch."), repr(u)
    assert " ".join(a.split()) == " ".join(b.split())
    last = a.rfind("]") + 1
    assert a[:last] == b[: b.rfind("]") + 1]


@PARITY
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_repr_agrees_with_pytorch(kind, shape, rng):
    with np.errstate(all="ignore"):
        for name in DTYPES:
            a = np.asarray(KINDS[kind](rng, shape))
            a = (np.nan_to_num(a, posinf=9, neginf=0) if name[0] in "iub" else a).astype(name)
            t, u = tf.tensor(a), torch.tensor(a)
            same_text(t, u)
            if t.is_floating_point():
                same_text(t.requires_grad_(), u.requires_grad_())


@PARITY
def test_bfloat16_and_layouts():
    a = np.arange(12.0, dtype="float32").reshape(3, 4) / 7
    same_text(tf.tensor(a).bfloat16(), torch.tensor(a).bfloat16())
    same_text(tf.tensor(a).T[::2], torch.tensor(a).T[::2])
    same_text(tf.ones(1).expand(1 << 40), torch.ones(1).expand(1 << 40))


def test_history_and_device():
    x = tf.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<mul>)"
    assert repr(tf.ones(2, 3, device="null")) == "tensor(..., device='null:0', size=(2, 3))"
    assert str(x) == repr(x)


def test_subclasses():
    class Special(tf.Tensor):
        """A subclass."""

    assert repr(Special([1, 2])) == "Special([1., 2.])"
    from tinyfin import nn

    assert repr(nn.Parameter(tf.ones(2))).startswith("Parameter containing:\ntensor([1., 1.]")


def test_repr_does_not_record():
    x = tf.ones(2, requires_grad=True)
    version = x._version
    repr(x * 2)
    assert x._version == version and tf.is_grad_enabled()


def test_options():
    x = tf.tensor([1.123456, 2.0])
    try:
        tf.set_printoptions(precision=2)
        assert repr(x) == "tensor([1.12, 2.00])"
        tf.set_printoptions(sci_mode=True)
        assert repr(x) == "tensor([1.12e+00, 2.00e+00])"
        tf.set_printoptions(profile="full")
        assert "..." not in repr(tf.arange(2000))
        tf.set_printoptions(edgeitems=1, threshold=5)
        assert repr(tf.arange(9)) == "tensor([0,  ..., 8])"
        with pytest.raises(ValueError, match="profile"):
            tf.set_printoptions(profile="other")
        for wrong in ({"precision": -1}, {"precision": 99}, {"edgeitems": 0}, {"threshold": -1}):
            with pytest.raises(ValueError, match=f"set_printoptions: {next(iter(wrong))} is"):
                tf.set_printoptions(**wrong)
        for wrong in (
            {"precision": 2.5},
            {"precision": float("inf")},
            {"linewidth": "80"},
            {"sci_mode": 3},
        ):
            with pytest.raises(TypeError, match=f"set_printoptions: {next(iter(wrong))} is"):
                tf.set_printoptions(profile="short", **wrong)
        assert repr(tf.arange(9)) == "tensor([0,  ..., 8])"
        tf.set_printoptions(threshold=float("inf"))
        assert "..." not in repr(tf.arange(2000))
    finally:
        tf.set_printoptions(profile="default")
    assert repr(x) == "tensor([1.1235, 2.0000])"
