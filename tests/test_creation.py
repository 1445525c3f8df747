"""Tensors made from nothing and from Python's numbers, against NumPy and PyTorch."""

import numpy as np
import pytest

import tinyfin as tf

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
]  # fmt: skip
SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 4), (1, 2, 3, 4)]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_filled(name, shape):
    d = getattr(tf, name)
    for t, value in (
        (tf.zeros(shape, dtype=d), 0), (tf.ones(shape, dtype=d), 1), (tf.full(shape, 1, dtype=d), 1),
        (tf.zeros_like(tf.ones(shape), dtype=d), 0), (tf.ones_like(tf.zeros(shape, dtype=d)), 1),
        (tf.full_like(tf.zeros(shape, dtype=d), 1), 1), (tf.ones(2).new_zeros(shape, dtype=d), 0),
        (tf.zeros(2, dtype=d).new_ones(*shape) if shape else tf.zeros(2, dtype=d).new_ones(()), 1),
        (tf.zeros(2, dtype=d).new_full(shape, 1), 1),
    ):  # fmt: skip
        assert tuple(t.shape) == shape and t.dtype is d and t.is_contiguous()
        assert (t.float() == value).all()
    for t in (
        tf.empty(shape, dtype=d),
        tf.empty_like(tf.ones(shape), dtype=d),
        tf.ones(1, dtype=d).new_empty(shape),
    ):
        assert tuple(t.shape) == shape and t.dtype is d


def test_sizes_in_every_form():
    for t in (tf.zeros(2, 3), tf.zeros((2, 3)), tf.zeros([2, 3]), tf.zeros(tf.Size((2, 3))),
              tf.zeros(np.int64(2), tf.tensor(3)), tf.zeros((np.int8(2), 3))):  # fmt: skip
        assert t.shape == (2, 3)
    assert tf.zeros().shape == () and tf.zeros(()).shape == () and tf.full(3, 1).shape == (3,)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: tf.zeros(-1), RuntimeError, "zeros: size -1 in dimension 0"),
        (lambda: tf.ones(2, -3), RuntimeError, "ones: size -3 in dimension 1"),
        (lambda: tf.zeros(1.5), TypeError, "zeros: size is 1.5"),
        (lambda: tf.zeros("2"), TypeError, "zeros: size is '2'"),
        (lambda: tf.zeros((2, (3,))), TypeError, "zeros: size is"),
        (lambda: tf.empty(1 << 70), OverflowError, "does not fit|too large|too big"),
        (lambda: tf.zeros(2, dtype="float32"), TypeError, "zeros: dtype"),
        (lambda: tf.zeros(2, device="moon"), RuntimeError, "device"),
        (lambda: tf.zeros(2, device=3), TypeError, "device"),
        (lambda: tf.eye(-1), RuntimeError, "eye: size -1"),
        (lambda: tf.eye(2, -2), RuntimeError, "eye: size -2"),
        (lambda: tf.eye(2.0), TypeError, "eye"),
        (lambda: tf.full((2,), "a"), TypeError, "full"),
        (lambda: tf.full((2,), None), TypeError, "full"),
        (lambda: tf.full((2,), 300, dtype=tf.uint8), RuntimeError, "full: the number 300 does not fit tinyfin.uint8"),
        (lambda: tf.full((2,), float("nan"), dtype=tf.int32), RuntimeError, "full: the number nan"),
        (lambda: tf.full((2,), 1e300, dtype=tf.float32), RuntimeError, "full: .* does not fit"),
        (lambda: tf.full((2,), 1e10, dtype=tf.float16), RuntimeError, "full: .* does not fit"),
        (lambda: tf.full((2,), 1 << 64), OverflowError, "64 bits"),
        (lambda: tf.zeros_like(3), TypeError, "zeros_like: input is 3"),
        (lambda: tf.ones(2, dtype=tf.int64, requires_grad=True), RuntimeError, "floating-point"),
        (lambda: tf.linspace(0, 1, -1), RuntimeError, "linspace: steps is -1"),
        (lambda: tf.linspace(0, 1, 2.5), RuntimeError, "linspace: steps is 2.5"),
        (lambda: tf.arange(0, 5, 0), RuntimeError, "arange: .*step must not be 0"),
        (lambda: tf.arange(0, 5, -1), RuntimeError, "arange: .*leads away"),
        (lambda: tf.arange(5, 0), RuntimeError, "arange: .*leads away"),
        (lambda: tf.arange(0, float("inf")), RuntimeError, "arange: .*finite"),
        (lambda: tf.arange(0, float("nan")), RuntimeError, "arange: .*finite"),
        (lambda: tf.arange(0, 1e300), RuntimeError, "arange: .*too many"),
        (lambda: tf.arange(0, 1, 1e-300), RuntimeError, "arange: .*too many"),
        (lambda: tf.arange(1 << 62), MemoryError, "arange"),
        (lambda: tf.arange((1 << 70), (1 << 70) + 2), RuntimeError, "arange: .*64 bits"),
        (lambda: tf.arange("a"), TypeError, "arange"),
        (lambda: tf.arange(None), TypeError, "arange"),
    ],
)  # fmt: skip
def test_what_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(
    "args", [(5,), (2, 8), (2, 8, 3), (8, 2, -2), (0,), (3, 3), (-3, 3), (0, 1, 0.25), (1.5,), (1, 0, -0.3),
             (0.0, 5.0), (2.0, 2.0), (-1, 1, 0.1), (1 << 62, (1 << 62) + 3)]
)  # fmt: skip
def test_arange(args):
    t, a = tf.arange(*args), np.arange(*args)
    assert t.dtype is (tf.float32 if a.dtype.kind == "f" else tf.int64)
    np.testing.assert_allclose(t.numpy(), a.astype(t.dtype.name), rtol=1e-6, atol=1e-7)


def test_arange_dtypes_and_tensors():
    assert tf.arange(3, dtype=tf.float64).dtype is tf.float64
    assert tf.arange(tf.tensor(2), tf.tensor(5)).tolist() == [2, 3, 4]
    assert tf.arange(0, 2.5, dtype=tf.int32).tolist() == [0, 1, 2]
    assert (
        tf.arange(300, dtype=tf.int16)[-1].item() == 299
        and tf.arange(3.0, requires_grad=True).requires_grad
    )
    assert tf.arange(np.int64(3)).tolist() == tf.arange(end=3, start=0).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "args", [(0, 1, 5), (3, -3, 7), (1, 1, 3), (0, 1, 1), (0, 1, 0), (-1e9, 1e9, 11)]
)
def test_linspace(args):
    np.testing.assert_allclose(
        tf.linspace(*args, dtype=tf.float64).numpy(), np.linspace(*args), rtol=1e-12, atol=1e-9
    )
    t = tf.linspace(*args)
    assert t.dtype is tf.float32
    if args[2] > 1:
        assert t[0].item() == args[0] and t[-1].item() == args[1]


def test_linspace_agrees_with_pytorch():
    torch = pytest.importorskip("torch")
    for args in ((0, 1, 1000), (-3, 7, 33), (5, 2, 100)):
        got, want = tf.linspace(*args), torch.linspace(*args)
        np.testing.assert_allclose(got.tolist(), want.tolist(), rtol=2e-7)
    assert (
        tf.linspace(0, 10, 4, dtype=tf.int64).tolist()
        == torch.linspace(0, 10, 4, dtype=torch.int64).tolist()
    )


@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (2, 4), (4, 2), (0, 3)])
def test_eye(shape):
    for d in ("float32", "int32", "bool", "bfloat16"):
        np.testing.assert_array_equal(
            tf.eye(*shape, dtype=getattr(tf, d)).float().numpy(), np.eye(*shape)
        )


def test_full_takes_the_value_s_kind():
    assert tf.full((1,), 1).dtype is tf.int64 and tf.full((1,), 1.0).dtype is tf.float32
    assert tf.full((1,), True).dtype is tf.bool and tf.full((1,), tf.tensor(2.5)).tolist() == [2.5]
    assert tf.full((2,), float("inf")).tolist() == [float("inf")] * 2
    assert tf.full((2,), -float("inf"), dtype=tf.float16).tolist() == [-float("inf")] * 2


def test_tensor_copies_and_as_tensor_shares():
    a = np.arange(3.0)
    t = tf.ones(3, requires_grad=True)
    assert not np.shares_memory(tf.tensor(a).numpy(), a) and np.shares_memory(
        tf.as_tensor(a).numpy(), a
    )
    assert (
        tf.as_tensor(t) is t
        and tf.tensor(t).data_ptr() != t.data_ptr()
        and not tf.tensor(t).requires_grad
    )
    assert tf.as_tensor(a, dtype=tf.float32).dtype is tf.float32 and tf.as_tensor(
        [1, 2]
    ).tolist() == [1, 2]
    assert tf.as_tensor(t, dtype=tf.float64).dtype is tf.float64
    assert tf.ones(1, dtype=tf.int8).new_tensor([1.0, 2.0]).dtype is tf.int8


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: tf.zeros(2, **k), lambda **k: tf.ones(2, **k), lambda **k: tf.empty(2, **k),
        lambda **k: tf.full((2,), 1.0, **k), lambda **k: tf.eye(2, **k), lambda **k: tf.arange(2.0, **k),
        lambda **k: tf.linspace(0, 1, 2, **k), lambda **k: tf.tensor([1.0], **k), lambda **k: tf.rand(2, **k),
        lambda **k: tf.randn(2, **k), lambda **k: tf.zeros_like(tf.ones(2), **k), lambda **k: tf.ones(1).new_ones(2, **k),
        lambda **k: tf.full_like(tf.ones(2), 3, **k), lambda **k: tf.rand_like(tf.ones(2), **k),
    ],
)  # fmt: skip
def test_common_arguments(make):
    assert make(requires_grad=True).requires_grad and make(requires_grad=True).is_leaf
    assert (
        make(device="null").device.type == "null"
        and make(device=tf.device("null:2")).device.index == 2
    )
    assert make(dtype=tf.float64).dtype is tf.float64 and make(dtype=float).dtype is tf.float64
    assert make(device="cpu").device.type == "cpu"
