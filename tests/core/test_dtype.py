"""Element types: ids, sizes, promotion, default."""

import copy
import pickle

import numpy as np
import pytest

import tinyfin as tf

BUILT = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
]  # fmt: skip
RESERVED = ["complex64", "complex128", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("name", BUILT + RESERVED)
def test_what_a_dtype_knows(name):
    d = getattr(tf, name)
    assert isinstance(d, tf.dtype)
    assert repr(d) == f"tinyfin.{name}" and d.name == name
    assert d.is_complex == name.startswith("complex")
    assert d.is_floating_point == (name in ("float16", "bfloat16", "float32", "float64"))
    assert d.is_signed == (name != "bool" and not name.startswith("uint"))
    if name != "bfloat16":
        assert d.itemsize == np.dtype(name).itemsize
    assert tf.bfloat16.itemsize == 2


@pytest.mark.parametrize("name", BUILT + RESERVED)
def test_dtypes_are_single_objects(name):
    d = getattr(tf, name)
    assert pickle.loads(pickle.dumps(d)) is d
    assert copy.copy(d) is d and copy.deepcopy([d])[0] is d
    assert {d: 1}[getattr(tf, name)] == 1


def test_short_names():
    assert (tf.half, tf.float, tf.double) == (tf.float16, tf.float32, tf.float64)
    assert (tf.short, tf.int, tf.long) == (tf.int16, tf.int32, tf.int64)


def test_promotion_agrees_with_pytorch():
    torch = pytest.importorskip("torch")
    names = BUILT + RESERVED
    for a in names:
        for b in names:
            try:
                want = torch.promote_types(getattr(torch, a), getattr(torch, b))
            except RuntimeError:  # PyTorch promotes uint16 and its kin with few others
                continue
            got = tf.promote_types(getattr(tf, a), getattr(tf, b))
            assert got.name == str(want).partition(".")[2], (a, b)


def test_promotion_is_symmetric_and_never_loses_category():
    rank = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}

    def category(d):
        return "f" if d.name == "bfloat16" else np.dtype(d.name).kind

    for a in BUILT + RESERVED:
        for b in BUILT + RESERVED:
            x, y = getattr(tf, a), getattr(tf, b)
            r = tf.promote_types(x, y)
            assert r is tf.promote_types(y, x)
            assert rank[category(r)] == max(rank[category(x)], rank[category(y)])


@pytest.mark.parametrize("value", ["float32", 3, None, np.float32])
def test_promotion_of_what_is_no_dtype(value):
    with pytest.raises(TypeError):
        tf.promote_types(tf.float32, value)


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_dtypes_are_refused_everywhere(name):
    d = getattr(tf, name)
    x = tf.ones(2)
    calls = [
        lambda: tf.zeros(2, dtype=d),
        lambda: tf.empty(2, dtype=d),
        lambda: tf.tensor([1], dtype=d),
        lambda: tf.arange(3, dtype=d),
        lambda: tf.eye(2, dtype=d),
        lambda: tf.linspace(0, 1, 3, dtype=d),
        lambda: x.to(d),
        lambda: x.sum(dtype=d),
        lambda: tf.rand(2, dtype=d),
        lambda: tf.frombuffer(bytearray(16), dtype=d),
        lambda: tf.full((2,), 1, dtype=d),
        lambda: tf.ones_like(x, dtype=d),
        lambda: x.new_zeros(2, dtype=d),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match=name):
            call()


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64", "complex64", "complex128"])
def test_arrays_of_reserved_dtypes_are_refused(name):
    with pytest.raises(TypeError, match=f"{name} is reserved"):
        tf.from_numpy(np.zeros(2, dtype=name))


def test_python_types_name_dtypes():
    assert tf.zeros(1, dtype=float).dtype is tf.float64  # PyTorch's choice: what a Python float is
    assert tf.zeros(1, dtype=int).dtype is tf.int64
    assert tf.zeros(1, dtype=bool).dtype is tf.bool
    assert tf.ones(1).to(int).dtype is tf.int64
    assert tf.ones(1).sum(dtype=float).dtype is tf.float64
    assert tf.ones(1).to(float).dtype is tf.tensor([1], dtype=float).dtype is tf.float64
    for call in (
        lambda: tf.zeros(1, dtype=complex), lambda: tf.ones(1).to(complex), lambda: tf.ones(1).sum(dtype=complex),
        lambda: tf.tensor([1], dtype=complex), lambda: tf.ones(1).to(dtype=complex),
    ):  # fmt: skip
        with pytest.raises(
            TypeError, match="dtype is complex, but there are no complex tensors yet"
        ):
            call()


@pytest.mark.parametrize("value", ["float32", 3, np.float32, complex, str])
def test_what_is_no_dtype(value):
    for call in (lambda: tf.zeros(1, dtype=value), lambda: tf.ones(1).sum(dtype=value)):
        with pytest.raises(TypeError, match="dtype"):
            call()


def test_default_dtype_steers_creation_and_promotion():
    try:
        tf.set_default_dtype(tf.float64)
        assert tf.get_default_dtype() is tf.float64
        for t in (tf.ones(1), tf.tensor([1.5]), tf.rand(1), tf.eye(1), tf.full((1,), 2.0)):
            assert t.dtype is tf.float64
        assert (tf.tensor([1]) + 1.5).dtype is tf.float64
        assert tf.tensor([4]).sqrt().dtype is tf.float64
        assert (tf.ones(1, dtype=tf.float16) + 1.5).dtype is tf.float16
    finally:
        tf.set_default_dtype(tf.float32)
    assert (tf.tensor([1]) + 1.5).dtype is tf.float32


@pytest.mark.parametrize("value", [tf.int64, "float32", None, tf.bool])
def test_default_dtype_must_be_floating_point(value):
    with pytest.raises(TypeError, match="set_default_dtype"):
        tf.set_default_dtype(value)
    assert tf.get_default_dtype() is tf.float32
