"""Values in and out: sequences, the buffer protocol, NumPy, DLPack with NumPy and PyTorch."""

import array
import ctypes
import gc
import hashlib
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import tinyfin as tf

NUMPY = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]

settings.register_profile("exchange", deadline=None, max_examples=100)
settings.load_profile("exchange")


def arrays():
    """Arrays of any built dtype and layout, steps and zero sizes included."""
    plain = st.sampled_from(NUMPY).flatmap(
        lambda d: nps.arrays(d, nps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    )
    return plain.flatmap(
        lambda a: st.tuples(*(st.sampled_from([1, 2, -1, -2]) for _ in a.shape)).map(
            lambda steps: a[(*(slice(None, None, s) for s in steps), ...)].T
        )
    )


# ---- sequences


@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (1, "int64", ()), (1.5, "float32", ()), (True, "bool", ()), ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)), ([True, 2], "int64", (2,)), ([1, 2.5], "float32", (2,)),
        ([[1, 2], [3, 4]], "int64", (2, 2)), (((1,), (2,)), "int64", (2, 1)), (range(3), "int64", (3,)),
        ([range(2), [1.5, 2]], "float32", (2, 2)), (np.float64(1), "float64", ()),
        ([np.float64(1)], "float64", (1,)), ([np.float32(1), 2.5], "float32", (2,)),
        ([np.int8(1)], "int8", (1,)), ([np.int8(1), 300], "int64", (2,)), ([np.bool_(True)], "bool", (1,)),
        ([np.arange(2), np.arange(2)], "int64", (2, 2)), ([np.ones(2)], "float64", (1, 2)),
        (array.array("f", [1, 2]), "float32", (2,)), (bytearray(b"ab"), "uint8", (2,)),
    ],
)  # fmt: skip
def test_sequences(data, dtype, shape):
    t = tf.tensor(data)
    assert t.dtype.name == dtype and tuple(t.shape) == shape
    assert np.array_equal(t.numpy(), np.array(data, dtype=dtype).reshape(shape))


def test_tensors_inside_sequences():
    one = tf.tensor(1.0, dtype=tf.float64)
    assert tf.tensor([one, 2]).dtype is tf.float64 and tf.tensor([one, 2]).tolist() == [1.0, 2.0]
    assert tf.tensor([tf.tensor(3, dtype=tf.int8), 2]).dtype is tf.int64
    assert tf.tensor([tf.arange(2), tf.arange(2)]).shape == (2, 2)
    assert tf.tensor([tf.ones(1, requires_grad=True)]).tolist() == [1.0]


@pytest.mark.parametrize(
    "data, kind",
    [
        ([[1, 2], [3]], ValueError), ([1, [2]], ValueError), ([[1], 2], ValueError), ([[[1]], [2]], ValueError),
        ("a", TypeError), (["a"], TypeError), (None, TypeError), ([None], TypeError), ({1: 2}, TypeError),
        (1j, TypeError), (object(), TypeError), (b"ab", TypeError), ([2**63], ValueError),
        ([-(2**63) - 1], ValueError), ([10**400, 1.0], ValueError), ({1, 2}, TypeError), ([[], 1], ValueError),
        (np.ones(2, "complex64"), TypeError), (np.array(["a"]), TypeError), (np.array([None]), TypeError),
    ],
)  # fmt: skip
def test_what_makes_no_tensor(data, kind):
    with pytest.raises(kind, match="tensor: "):
        tf.tensor(data)


def test_sequences_that_contain_themselves():
    data = [1]
    data[0] = data
    with pytest.raises(ValueError, match="deeper"):
        tf.tensor(data)


def test_sequences_that_change_while_they_are_read():
    data = []

    class Growing:
        """Appends to its list when it is read."""

        def __index__(self):
            data.extend([1] * 1000)
            return 1

    data += [Growing()] * 3
    with pytest.raises(RuntimeError, match="changed"):
        tf.tensor(data)


@pytest.mark.parametrize(
    "value, name, fits",
    [
        (255, "uint8", True), (256, "uint8", False), (-255, "uint8", True), (-256, "uint8", False),
        (127, "int8", True), (128, "int8", False), (-128, "int8", True), (-129, "int8", False),
        (2**31, "int32", False), (1e10, "int32", False), (float("nan"), "int64", False),
        (float("inf"), "int16", False), (7, "bool", True), (1e300, "float32", True), (1e10, "float16", True),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(value, name, fits):
    d = getattr(tf, name)
    if fits:
        tf.tensor(value, dtype=d), tf.tensor([value], dtype=d)
    else:
        for call in (lambda: tf.tensor(value, dtype=d), lambda: tf.tensor([[value]], dtype=d)):
            with pytest.raises(RuntimeError, match=f"does not fit tinyfin.{name}"):
                call()


@given(arrays())
def test_tolist_round_trip(a):
    t = tf.from_numpy(a)
    assert np.array_equal(np.array(t.tolist(), dtype=a.dtype).reshape(a.shape), a, equal_nan=True)


# ---- NumPy and buffers


@given(arrays())
def test_numpy_both_ways_without_copies(a):
    t = tf.from_numpy(a)
    b = t.numpy()
    assert t.dtype.name == a.dtype.name == b.dtype.name and b.shape == a.shape
    np.testing.assert_array_equal(a, b)
    if a.size:
        assert np.shares_memory(a, b) and t.data_ptr() == a.__array_interface__["data"][0]
        a[...] = 1
        assert t.tolist() == a.tolist() == b.tolist()


def test_what_numpy_cannot_have():
    with pytest.raises(TypeError, match="bfloat16"):
        tf.ones(2, dtype=tf.bfloat16).numpy()
    with pytest.raises(TypeError, match="bfloat16"):
        np.asarray(tf.ones(2, dtype=tf.bfloat16))
    x = tf.ones(2, requires_grad=True)
    for call in (x.numpy, lambda: np.asarray(x), lambda: np.array(x), lambda: np.asarray(x * 2)):
        with pytest.raises(RuntimeError, match="detach"):
            call()
    with pytest.raises(BufferError, match="detach"):
        memoryview(x)
    for call in (
        lambda: tf.ones(2, device="null").numpy(),
        lambda: np.asarray(tf.ones(2, device="null")),
    ):
        with pytest.raises(TypeError, match="null"):
            call()
    assert (x * 2).numpy(force=True).tolist() == [2.0, 2.0]


def test_asarray_copy_and_dtype():
    t = tf.arange(3)
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert np.asarray(t, dtype="float32").dtype == np.float32
    assert not np.shares_memory(np.array(t, copy=True), t.numpy())
    assert np.shares_memory(t.__array__(), t.numpy()) and not np.shares_memory(
        t.__array__(copy=True), t.numpy()
    )
    with pytest.raises(ValueError, match="copy"):
        t.__array__("float32", copy=False)


@pytest.mark.parametrize(
    "a, kind, words",
    [
        (np.ones(3, ">f4"), ValueError, "byte order"),
        (np.ones(3, "U1"), TypeError, "from_numpy"),
        (np.ones(3, "complex64"), TypeError, "complex64 is reserved"),
        (np.ones(3, "uint32"), TypeError, "uint32 is reserved"),
        (np.array([None]), TypeError, "from_numpy"),
        (np.zeros(3, "M8[s]"), TypeError, "from_numpy"),
        (np.zeros(3, "g"), TypeError, "from_numpy"),
        (np.zeros(3, [("a", "i4")]), TypeError, "records"),
        (np.frombuffer(bytes(9), "u1")[1:].view("f4"), ValueError, "aligned"),
        (np.zeros(3, [("a", "u1"), ("b", "f4")])["b"], ValueError, "multiple"),
        (np.zeros((1,) * 9), ValueError, "9 dimensions"),
        ([1], TypeError, "NumPy array"),
        (3, TypeError, "NumPy array"),
    ],
)
def test_arrays_that_cannot_be_shared(a, kind, words):
    with pytest.raises(kind, match=words):
        tf.from_numpy(a)


def test_tensor_copies_what_cannot_be_shared():
    a = np.arange(9, dtype="u1")[1:].view("f4")
    packed = np.zeros(3, [("a", "u1"), ("b", "f4")])
    packed["b"] = [1, 2, 3]
    assert tf.tensor(a).numpy().tobytes() == a.tobytes()
    assert tf.tensor(packed["b"]).tolist() == [1.0, 2.0, 3.0]
    t = tf.zeros(3)
    t[:] = packed["b"]
    assert t.tolist() == [1.0, 2.0, 3.0]


def test_c_long_long_and_ctypes_arrays():
    assert tf.frombuffer((ctypes.c_int * 3)(1, 2, 3), dtype=tf.int32).tolist() == [1, 2, 3]
    assert tf.tensor(np.array([1, 2], dtype=np.longlong)).dtype is tf.int64
    assert tf.tensor(memoryview(array.array("q", [1, 2]))).dtype is tf.int64


def test_buffer_requests():
    x = tf.arange(6, dtype=tf.int32).reshape(2, 3)
    m = memoryview(x)
    assert (m.format, m.shape, m.strides, m.readonly, m.nbytes) == ("i", (2, 3), (12, 4), False, 24)
    assert hashlib.sha256(x.view(-1)).digest() == hashlib.sha256(x.numpy().tobytes()).digest()
    m[1, 2] = 50
    assert x[1, 2].item() == 50
    with pytest.raises(BufferError, match="contiguous"):
        hashlib.sha256(x[:, 0])
    assert memoryview(x.T).f_contiguous and memoryview(x[:, ::2]).strides == (12, 8)
    assert memoryview(tf.tensor(1.0)).shape == () and memoryview(tf.zeros(0, 3)).nbytes == 0
    assert memoryview(x.T).tobytes() == x.T.contiguous().numpy().tobytes()
    assert memoryview(x.T).tobytes("A") == x.numpy().tobytes()


def test_order_requests_are_answered_as_the_protocol_asks():
    get = ctypes.pythonapi.PyObject_GetBuffer
    release = ctypes.pythonapi.PyBuffer_Release
    c, f, any_order, simple, strided = 0x38, 0x58, 0x98, 0, 0x18
    x = tf.arange(6).reshape(2, 3)
    for t, fine, refused in (
        (x, (c, any_order, simple, strided), (f,)),
        (x.T, (f, any_order, strided), (c, simple)),
        (x[:, ::2], (strided,), (c, f, any_order, simple)),
        (x[0], (c, f, any_order, simple, strided), ()),
    ):
        for flags in fine:
            view = (ctypes.c_char * 120)()
            assert get(ctypes.py_object(t), view, flags) == 0
            release(view)
        for flags in refused:
            with pytest.raises(BufferError, match="order"):
                get(ctypes.py_object(t), (ctypes.c_char * 120)(), flags)


# ---- DLPack


@given(arrays())
def test_dlpack_with_numpy(a):
    t = tf.from_dlpack(a)
    np.testing.assert_array_equal(t.numpy(), a)
    if any(n > 1 and step < 0 for n, step in zip(a.shape, a.strides, strict=True)):
        with pytest.raises(BufferError, match=r"negative stride in dimension \d; use contiguous"):
            np.from_dlpack(t)
        t = t.contiguous()
        assert np.shares_memory(np.from_dlpack(t), t.numpy())
        return
    b = np.from_dlpack(t)
    np.testing.assert_array_equal(b, a)
    if a.size:
        assert t.data_ptr() == a.__array_interface__["data"][0] and np.shares_memory(a, b)


def test_dlpack_with_pytorch():
    torch = pytest.importorskip("torch")
    for name in [*NUMPY, "bfloat16"]:
        u = torch.arange(6).reshape(2, 3).to(getattr(torch, name)).t()
        t = tf.from_dlpack(u)
        assert t.dtype.name == name and t.data_ptr() == u.data_ptr() and t.stride() == u.stride()
        assert t.tolist() == u.tolist()
        v = torch.from_dlpack(t)
        assert v.dtype == u.dtype and v.data_ptr() == u.data_ptr() and v.tolist() == u.tolist()
        w = torch.from_dlpack(tf.arange(6).reshape(2, 3).to(t.dtype)[:, 1:])
        assert w.tolist() == tf.arange(6).reshape(2, 3).to(t.dtype)[:, 1:].tolist()
        if name != "bool":
            t.zero_()
            assert u.sum().item() == 0
    assert torch.utils.dlpack.from_dlpack(tf.ones(2).__dlpack__()).tolist() == [1.0, 1.0]
    assert tf.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(2))).tolist() == [1.0, 1.0]


def test_dlpack_lifetimes():
    class Array(np.ndarray):
        """An array that can be watched."""

    a = np.arange(3.0).view(Array)
    watch = weakref.ref(a)
    t = tf.from_dlpack(a)
    del a
    gc.collect()
    assert watch() is not None and t.tolist() == [0.0, 1.0, 2.0]
    del t
    gc.collect()
    assert watch() is None
    live = tf.memory_stats()["live"]
    x = tf.ones(10000)
    capsules = [
        x.__dlpack__(),
        x.__dlpack__(max_version=(1, 0)),
        np.from_dlpack(x),
        tf.from_dlpack(x),
    ]
    del x
    assert tf.memory_stats()["live"] > live and capsules[2].sum() == 10000
    capsules.clear()
    gc.collect()
    assert tf.memory_stats()["live"] == live


def test_dlpack_capsules_are_taken_once():
    for version in (None, (1, 0)):
        c = tf.ones(2).__dlpack__(max_version=version)
        assert tf.from_dlpack(c).tolist() == [1.0, 1.0]
        with pytest.raises(TypeError, match="unused"):
            tf.from_dlpack(c)


def test_dlpack_requests():
    x = tf.ones(2)
    assert x.__dlpack_device__() == (1, 0)
    assert tf.from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    assert (
        tf.from_dlpack(x.__dlpack__(dl_device=(1, 0), max_version=(2, 0))).data_ptr()
        == x.data_ptr()
    )
    null = tf.ones(2, device="null")
    for call in (
        lambda: x.__dlpack__(dl_device=(2, 0)), lambda: tf.ones(2, requires_grad=True).__dlpack__(),
        null.__dlpack__, null.__dlpack_device__,
    ):  # fmt: skip
        with pytest.raises(BufferError, match="dlpack"):
            call()
    for bad in (3, None, np.ones, x.__dlpack__):
        with pytest.raises(TypeError, match="from_dlpack"):
            tf.from_dlpack(bad)
    with pytest.raises((TypeError, BufferError)):
        tf.from_dlpack(np.ones(2, "complex64"))


def test_dlpack_read_only():
    a = np.arange(3.0)
    a.flags.writeable = False
    t = tf.from_dlpack(a)
    with pytest.raises(RuntimeError, match="read-only"):
        t.add_(1)
    assert not np.from_dlpack(t).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    assert tf.from_dlpack(t.__dlpack__(max_version=(1, 0), copy=True)).add_(1).tolist() == [
        1.0,
        2.0,
        3.0,
    ]


def test_old_exporters_without_versions():
    class Old:
        """An exporter that knows no keyword arguments."""

        def __init__(self, t):
            self.t = t

        def __dlpack__(self):
            return self.t.__dlpack__()

    x = tf.ones(2)
    assert tf.from_dlpack(Old(x)).data_ptr() == x.data_ptr()


def test_sizes_that_cannot_be_counted():
    huge = np.broadcast_to(np.int8(1), (1 << 31, 1 << 31))
    for call in (tf.from_numpy, tf.from_dlpack):
        with pytest.raises(
            RuntimeError, match=r"^from_\w+: shape \(2147483648, 2147483648\) has more elements"
        ):
            call(huge)
    widest = np.broadcast_to(np.float64(1), (1 << 59,))  # NumPy itself counts no more bytes
    assert (
        tf.from_numpy(widest).nbytes == 1 << 62
        and memoryview(tf.from_numpy(widest)).nbytes == 1 << 62
    )


class Emptying:
    """A number that takes the others away while it is read."""

    def __init__(self, items):
        self.items = items

    def __float__(self):
        self.items.clear()
        return 1.0


@pytest.mark.parametrize("dtype", [None, tf.float32, tf.float64])
def test_a_list_that_shrinks_while_it_is_read(dtype):
    items = []
    items.extend([Emptying(items), 2.0, 3.0])
    with pytest.raises(RuntimeError, match="^tensor: the data changed while they were read"):
        tf.tensor(items, dtype=dtype)
    rows = [[1.0, 2.0], [Emptying(items), 3.0], [4.0, 5.0]]
    items.extend(rows)
    rows[1][0] = Emptying(rows)
    with pytest.raises(RuntimeError, match="^tensor: the data changed"):
        tf.tensor(rows, dtype=dtype)
