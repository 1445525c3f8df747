"""Basic and advanced indexing, read and written, against NumPy and PyTorch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyfin as tf

settings.register_profile("indexing", deadline=None, max_examples=150)
settings.load_profile("indexing")

SHAPES = st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple)


def slices(n):
    """Slices of an axis, beyond its ends and with negative steps too."""
    ends = st.none() | st.integers(-n - 2, n + 2)
    return st.builds(slice, ends, ends, st.none() | st.integers(-3, 3).filter(bool))


@st.composite
def basic_keys(draw, shape):
    """Integers, slices, None and one Ellipsis."""
    key = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        kinds = [slices(n)] + ([st.integers(-n, n - 1)] if n else [])
        key.append(draw(st.one_of(kinds)))
    if draw(st.booleans()) or len(key) == len(shape):
        cut = draw(st.integers(0, len(key)))
        rest = len(shape) - len(key)
        tail = [draw(slices(n)) for n in shape[len(shape) - rest :]] if draw(st.booleans()) else []
        key = [*key[:cut], *key[cut:], *tail]
        if len(key) < len(shape):
            key.append(...)
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    return tuple(key)


@st.composite
def advanced_keys(draw, shape):
    """Slices, None and at least one list, array or mask; integer arrays share one broadcast shape."""
    common = draw(st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)]))
    key, d, used = [], 0, False
    while d < len(shape):
        n, left = shape[d], len(shape) - d
        kind = draw(st.sampled_from(["slice", "index", "mask", "mask2", "none"]))
        if kind == "mask" or (kind == "mask2" and left < 2):
            key.append(
                draw(
                    st.lists(st.booleans(), min_size=n, max_size=n).map(
                        lambda b: np.array(b, dtype=bool)
                    )
                )
            )
            return (*key, ...), True  # a mask's length is its own: alone among the advanced ones
        if kind == "mask2":
            bits = draw(
                st.lists(st.booleans(), min_size=n * shape[d + 1], max_size=n * shape[d + 1])
            )
            key.append(np.array(bits, dtype=bool).reshape(n, shape[d + 1]))
            return (*key, ...), not used
        if kind == "index" and n and common:
            cut = draw(st.integers(0, len(common)))
            values = draw(st.lists(st.integers(-n, n - 1), min_size=6, max_size=6))
            size = tuple(common[cut:])
            key.append(np.array(values[: int(np.prod(size))]).reshape(size) if size else values[:1])
            used = True
            d += 1
        elif kind == "none":
            key.append(None)
            if sum(k is None for k in key) > 2:
                break
        else:
            key.append(draw(slices(n)))
            d += 1
    return tuple(key), used


def pair(shape):
    """The same numbers in both libraries."""
    a = np.arange(int(np.prod(shape))).reshape(shape)
    return tf.tensor(a), a


def in_tinyfin(key):
    """Arrays of a key as tensors."""
    return tuple(tf.tensor(k) if isinstance(k, np.ndarray) else k for k in key)


@given(SHAPES.flatmap(lambda s: st.tuples(st.just(s), basic_keys(s))))
def test_basic_reads(case):
    shape, key = case
    t, a = pair(shape)
    want = a[key]
    got = t[key]
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.numpy(), want)
    assert not want.size or tf.Tensor.data_ptr(got) - t.data_ptr() < t.nbytes
    if len(key) == 1:
        np.testing.assert_array_equal(t[key[0]].numpy(), a[key[0]])


@given(SHAPES.flatmap(lambda s: st.tuples(st.just(s), basic_keys(s))), st.data())
def test_basic_writes(case, data):
    shape, key = case
    t, a = pair(shape)
    part = a[key]
    drop = data.draw(st.integers(0, part.ndim))
    size = tuple(n if data.draw(st.booleans()) else 1 for n in part.shape[drop:])
    value = -1 - np.arange(int(np.prod(size))).reshape(size)
    forms = ["tensor", "array", "number"] + ["list"] * (value.size > 0)
    form = data.draw(st.sampled_from(forms))
    a[key] = value if form != "number" else -7
    t[key] = {"tensor": tf.tensor(value), "array": value, "list": value.tolist(), "number": -7}[
        form
    ]
    np.testing.assert_array_equal(t.numpy(), a)


@given(SHAPES.flatmap(lambda s: st.tuples(st.just(s), advanced_keys(s))))
def test_advanced_reads(case):
    shape, (key, _) = case
    t, a = pair(shape)
    try:
        want = a[key]
    except IndexError:  # shapes of a mask and of integer arrays that do not go together
        with pytest.raises(IndexError):
            t[in_tinyfin(key)]
        return
    for form in (key, in_tinyfin(key)):
        got = t[form]
        assert tuple(got.shape) == want.shape, form
        np.testing.assert_array_equal(got.numpy(), want)


@given(SHAPES.flatmap(lambda s: st.tuples(st.just(s), advanced_keys(s))), st.data())
def test_advanced_writes(case, data):
    shape, (key, _) = case
    t, a = pair(shape)
    try:
        part = a[key]
    except IndexError:
        return
    drop = data.draw(st.integers(0, part.ndim))
    size = tuple(n if data.draw(st.booleans()) else 1 for n in part.shape[drop:])
    value = -1 - np.arange(int(np.prod(size))).reshape(size)
    a[key] = value
    t[in_tinyfin(key)] = tf.tensor(value) if data.draw(st.booleans()) else value
    np.testing.assert_array_equal(t.numpy(), a)


def test_integers_among_lists_go_as_in_pytorch():
    """An integer drops its axis first; NumPy takes it for an index array instead."""
    torch = pytest.importorskip("torch")
    t, u = tf.arange(120).reshape(2, 3, 4, 5), torch.arange(120).reshape(2, 3, 4, 5)
    for key in (
        (0, slice(None), [1, 2]), (slice(None), 1, slice(None), [0, 4]), ([0, 1], 2), (0, [1], slice(1, 3), [2]),
        ([0], slice(None), 1, [1, 2]), (..., 2, [0, 3]), (None, 1, [0, 2], 3), (-1, ..., [1, 1, 0]),
        ([0, 1], None, [1, 2]), (slice(None), [[0, 1], [2, 0]], None, ..., [0, 1]), True, (False, 0),
        (slice(None), True, [0, 1]),
    ):  # fmt: skip
        got, want = t[key], u[key]
        assert tuple(got.shape) == tuple(want.shape) and got.tolist() == want.tolist(), key


def test_tensors_without_dimensions_are_integers():
    t = tf.arange(12).reshape(3, 4)
    for index in (
        tf.tensor(1),
        tf.tensor(1, dtype=tf.int32),
        np.int64(1),
        np.array(1),
        np.uint8(1),
    ):
        assert t[index].tolist() == [4, 5, 6, 7] and t[index].data_ptr() == t[1].data_ptr()
        assert t[:, index].tolist() == [1, 5, 9] and t[index, index].item() == 5
    t[tf.tensor(0)] = -1
    t[tf.tensor(2), [0, 1]] = -2
    assert t.tolist() == [[-1] * 4, [4, 5, 6, 7], [-2, -2, 10, 11]]


def test_masks():
    t = tf.arange(6).reshape(2, 3)
    m = t > 2
    assert (
        t[m].tolist() == [3, 4, 5]
        and t[m.numpy()].tolist() == [3, 4, 5]
        and t[m.byte()].tolist() == [3, 4, 5]
    )
    assert t[tf.tensor([True, False])].tolist() == [[0, 1, 2]] and t[[True, False]].tolist() == [
        [0, 1, 2]
    ]
    assert t[:, [True, False, True]].tolist() == [[0, 2], [3, 5]] and t[
        tf.zeros(2, 3).bool()
    ].shape == (0,)
    assert t[tf.tensor(True)].shape == (1, 2, 3) and t[tf.tensor(False)].shape == (0, 2, 3)
    t[m] = tf.tensor([7, 8, 9])
    t[t == 0] = -1
    t[[False, False]] = 5
    assert t.tolist() == [[-1, 1, 2], [7, 8, 9]]


def test_long_lists_of_keys():
    t = tf.arange(5)
    assert (
        t[[]].shape == (0,)
        and t[range(1, 4)].tolist() == [1, 2, 3]
        and t[[-1, 0]].tolist() == [4, 0]
    )
    assert t[tf.zeros(2, 0).long()].shape == (2, 0) and t[
        tf.tensor([3], dtype=tf.int32)
    ].tolist() == [3]
    assert tf.zeros(0, 3)[tf.zeros(0).long()].shape == (0, 3)


@pytest.mark.parametrize(
    "key, kind, words",
    [
        (3, IndexError, "index 3 is out of range for dim 0 of size 2"),
        (-3, IndexError, "index -3 is out of range"),
        ((0, 3), IndexError, "dim 1 of size 3"),
        ((0, 0, 0), IndexError, "too many indices: 3 for a tensor of 2"),
        (([0], [0], [0]), IndexError, "too many indices"),
        ((..., ...), IndexError, "single ellipsis"),
        (([0], ..., ...), IndexError, "single ellipsis"),
        (1.5, IndexError, "1.5"),
        ("a", (IndexError, TypeError), "'a'"),
        ({}, (IndexError, TypeError), "no index"),
        (1 << 70, IndexError, "does not fit 64 bits"),
        ([5], IndexError, "5 is out of range"),
        ([-3], IndexError, "-3 is out of range"),
        ((0, [7]), IndexError, "7"),
        ([0.5], IndexError, "float"),
        (([0, 1], [0, 1, 2]), IndexError, r"\(2,\), \(3,\) do not broadcast"),
        ([True, False, True], IndexError, "mask of shape"),
        ((slice(None), [True]), IndexError, "mask of shape"),
        ((None,) * 7, ValueError, "8"),
        ((slice(None, None, 0),), ValueError, "zero"),
        ((slice("a"),), TypeError, "slice"),
        ([[0, 1], [1]], ValueError, "sequence of length"),
    ],
)
def test_bad_keys(key, kind, words):
    t = tf.arange(6).reshape(2, 3)
    with pytest.raises(kind, match=words):
        t[key]
    with pytest.raises(kind, match=words):
        t[key] = 0
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "key, value, kind",
    [
        (0, tf.ones(4), RuntimeError), (0, [1, 2], RuntimeError), (0, "a", TypeError), (0, None, TypeError),
        ([0, 1], tf.ones(4), RuntimeError), ([0, 1], "a", TypeError), ([0], [[1, 2], [3]], ValueError),
        (tf.ones(2, 3) > 0, tf.ones(5), RuntimeError), (slice(None), tf.ones(2, 3, 1), RuntimeError),
        (0, np.array(["a"]), TypeError), ([0], 1 << 40, RuntimeError), (0, 1 << 40, RuntimeError),
        ([0], 1 << 70, ValueError), (0, float("nan"), RuntimeError), ([0], float("nan"), RuntimeError),
    ],
)  # fmt: skip
def test_bad_values(key, value, kind):
    t = tf.arange(6, dtype=tf.int32).reshape(2, 3)
    with pytest.raises(kind):
        t[key] = value
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_writes_cast_and_broadcast():
    t = tf.zeros(2, 3)
    t[0] = tf.arange(3)
    t[1, ::2] = np.float64(2.5)
    t[:, 1:2] = [[7], [8]]
    assert t.tolist() == [[0.0, 7.0, 2.0], [2.5, 8.0, 2.5]]
    i = tf.zeros(3, dtype=tf.int64)
    i[[0, 2]] = 1.9
    assert i.tolist() == [1, 0, 1]


def test_augmented_assignment():
    t = tf.arange(6.0).reshape(2, 3)
    version = t._version
    t[0] += 10
    assert t._version == version + 1
    t[:, 0] *= 2
    t[[0, 1], [1, 2]] -= 1
    t[t > 11] = 0
    assert t.tolist() == [[0.0, 10.0, 0.0], [6.0, 4.0, 4.0]]


def test_equal_indices_write_in_order():
    t = tf.zeros(3)
    t[[1, 1, 1]] = tf.tensor([1.0, 2.0, 3.0])
    assert t.tolist() == [0.0, 3.0, 0.0]


def test_index_put():
    t, i = tf.zeros(3), tf.tensor([1, 1, 2])
    assert (
        t.index_put((i,), tf.ones(3), accumulate=True).tolist() == [0.0, 2.0, 1.0]
        and t.sum().item() == 0
    )
    assert t.index_put_((i,), tf.tensor([5.0, 6.0, 7.0])) is t and t.tolist() == [0.0, 6.0, 7.0]
    m = tf.zeros(2, 3)
    m.index_put_((tf.tensor([0, 1]), tf.tensor([2, 0])), tf.tensor(4.0), accumulate=True)
    m.index_put_((None, tf.tensor([1])), tf.tensor([9.0]))
    m.index_put_((tf.tensor([[False, False, False], [False, False, True]]),), tf.tensor(1.0))
    m.index_put_((tf.tensor(0),), tf.tensor(1.0), accumulate=True)
    assert m.tolist() == [[1.0, 10.0, 5.0], [4.0, 9.0, 1.0]]
    for args, kind in (
        (((i,), 3.0), TypeError), ((i, tf.ones(3)), TypeError), ((([1],), tf.ones(1)), TypeError),
        (((i,), tf.ones(4)), RuntimeError), (((i,), tf.ones(3).double()), RuntimeError),
        (((tf.tensor([9]),), tf.ones(1)), IndexError), (((None,), tf.ones(1)), IndexError),
        (((tf.tensor([0.5]),), tf.ones(1)), IndexError),
    ):  # fmt: skip
        with pytest.raises(kind):
            tf.zeros(3).index_put_(*args)


def test_gradients():
    x = tf.arange(6.0).reshape(2, 3).requires_grad_()
    (x[[0, 0, 1], [1, 1, 2]] * tf.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0, 0.0], [0.0, 0.0, 4.0]]
    x.grad = None
    x[x > 2].sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [1.0] * 3]
    x.grad = None
    v = tf.ones(2, requires_grad=True)
    y = x * 2
    y[:, 0] = v
    y[[1], [2]] = v[:1] * 5
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 2.0], [0.0, 2.0, 0.0]] and v.grad.tolist() == [6.0, 1.0]


def test_null_device():
    t = tf.ones(3, 4, device="null")
    assert (
        t[[0, 1]].shape == (2, 4)
        and t[:, tf.tensor([0, 2])].shape == (3, 2)
        and t[1, ..., None].shape == (4, 1)
    )
    t[0] = 5
    t[[0, 1]] = tf.ones(4, device="null")
    with pytest.raises(RuntimeError, match="null"):
        t[t > 0]
