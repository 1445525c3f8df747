"""Views against NumPy: the same elements, the same memory, no bytes moved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyfin as tf

settings.register_profile("layout", deadline=None, max_examples=150)
settings.load_profile("layout")

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


def shared(shape, dtype="int64"):
    """A tensor and an array over the same memory."""
    a = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=dtype).reshape(shape)
    return tf.from_numpy(a), a


def address(a):
    """Where an array's first element is."""
    return a.__array_interface__["data"][0]


def check(t, a):
    """The view t is the array view a: numbers, address and elements."""
    a = np.asarray(a)
    assert tuple(t.shape) == a.shape
    if a.size:
        assert t.data_ptr() == address(a)
        steps = [(n, s * a.itemsize) for n, s in zip(t.shape, t.stride())]
        assert [s for n, s in steps if n > 1] == [s for n, s in zip(a.shape, a.strides) if n > 1]
    assert t.is_contiguous() == a.flags.c_contiguous
    assert t.numel() == a.size and t.ndim == a.ndim
    np.testing.assert_array_equal(t.numpy(), a)


@given(SHAPES, st.data())
def test_permute_transpose(shape, data):
    t, a = shared(shape)
    order = data.draw(st.permutations(range(len(shape))))
    check(t.permute(tuple(order)), a.transpose(order))
    if len(shape):
        i, j = data.draw(st.integers(-len(shape), len(shape) - 1)), len(shape) - 1
        check(t.transpose(i, j), a.swapaxes(i, j))
        check(t.T, a.T)


@given(SHAPES, st.data())
def test_flip(shape, data):
    t, a = shared(shape)
    dims = data.draw(st.sets(st.integers(0, len(shape) - 1)) if shape else st.just(set()))
    if dims:
        check(t.flip(tuple(dims)), np.flip(a, tuple(dims)))


@given(SHAPES, st.data())
def test_squeeze_unsqueeze(shape, data):
    t, a = shared(shape)
    d = data.draw(st.integers(-len(shape) - 1, len(shape)))
    check(t.unsqueeze(d), np.expand_dims(a, d))
    check(t.squeeze(), a.squeeze())
    for i, n in enumerate(shape):
        check(t.squeeze(i), a.squeeze(i) if n == 1 else a)


@given(SHAPES, st.lists(st.integers(0, 3), max_size=2).map(tuple))
def test_expand(shape, lead):
    ones = tuple(1 if i % 2 else n for i, n in enumerate(shape))
    t, a = shared(ones)
    size = lead + tuple(3 if n == 1 else n for n in ones)
    check(t.expand(size), np.broadcast_to(a, size))
    keep = lead + (-1,) * len(ones)
    check(t.expand(keep), np.broadcast_to(a, lead + ones))


@given(SHAPES, st.data())
def test_reshape_of_any_layout(shape, data):
    t, a = shared(shape)
    order = data.draw(st.permutations(range(len(shape))))
    steps = tuple(slice(None, None, data.draw(st.sampled_from([1, 2, -1]))) for _ in shape)
    t, a = t[steps].permute(tuple(order)), a[(*steps, ...)].transpose(order)
    sizes = [n for n in range(1, a.size + 1) if a.size and a.size % n == 0]
    rows = data.draw(st.sampled_from(sizes)) if sizes else 0
    target = (rows, a.size // rows) if rows else (0, 3)
    out = t.reshape(target)
    np.testing.assert_array_equal(out.numpy(), a.reshape(target))
    try:  # what NumPy can do without a copy is a view here too
        b = a.view()
        b.shape = target
    except (AttributeError, ValueError):
        if a.size and not np.shares_memory(a, a.reshape(target)):
            with pytest.raises(RuntimeError, match="cannot be viewed"):
                t.view(target)
            assert out.data_ptr() != t.data_ptr()
    else:
        check(t.view(target), b)
        assert not a.size or out.data_ptr() == t.data_ptr()


@given(st.lists(st.integers(1, 6), min_size=2, max_size=4).map(tuple), st.data())
def test_diagonal(shape, data):
    t, a = shared(shape)
    i, j = data.draw(st.permutations(range(len(shape))))[:2]
    offset = data.draw(st.integers(-7, 7))
    check(t.diagonal(offset, i, j), a.diagonal(offset, i, j))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple), st.data())
def test_unfold(shape, data):
    t, a = shared(shape)
    d = data.draw(st.integers(0, len(shape) - 1))
    size, step = data.draw(st.integers(1, shape[d])), data.draw(st.integers(1, 4))
    windows = np.lib.stride_tricks.sliding_window_view(a, size, axis=d)
    got = t.unfold(d, size, step)
    want = windows[(slice(None),) * d + (slice(None, None, step),)]
    assert tuple(got.shape) == want.shape and got.data_ptr() == t.data_ptr()
    np.testing.assert_array_equal(got.numpy(), want)


@given(SHAPES.filter(bool), st.data())
def test_narrow_select_split(shape, data):
    t, a = shared(shape)
    d = data.draw(st.integers(0, len(shape) - 1))
    start = data.draw(st.integers(0, shape[d]))
    length = data.draw(st.integers(0, shape[d] - start))
    check(t.narrow(d, start, length), a[(slice(None),) * d + (slice(start, start + length),)])
    if shape[d]:
        k = data.draw(st.integers(-shape[d], shape[d] - 1))
        check(t.select(d, k), a[(slice(None),) * d + (k, ...)])
        check(t.unbind(d)[k], a[(slice(None),) * d + (k, ...)])
        for got, want in zip(t.split(2, d), np.split(a, range(2, shape[d], 2), d)):
            check(got, want)


def test_views_of_huge_tensors_move_no_bytes():
    base = tf.ones(4)
    before = tf.memory_stats()["requests"]
    huge = base.expand(1 << 28, 1 << 28, 4)
    views = [
        huge.permute(2, 0, 1), huge.transpose(0, 1), huge[::-3], huge[5, ..., 1:3], huge.flip(0, 2),
        huge.unsqueeze(1), huge.diagonal(), huge.unfold(2, 2, 1), huge.narrow(0, 7, 1 << 27),
        huge.expand(2, 1 << 28, 1 << 28, 4), huge.reshape(1 << 56, 4), huge.squeeze(),
        huge[None, :, None], huge.select(1, 9), huge.unbind(2)[1], huge.split(1 << 27)[1],
        huge.chunk(2, 1)[0], huge.movedim(0, 2), huge.detach(), huge.view(1 << 14, 1 << 42, 4),
    ]  # fmt: skip
    assert tf.memory_stats()["requests"] == before
    for v in views:
        assert base.data_ptr() <= v.data_ptr() < base.data_ptr() + base.nbytes
        assert v.numel() > 1 << 20


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.expand(1 << 40, 1 << 40, 3),
        lambda x: x.expand(1 << 62, 3),
        lambda x: x.expand(1 << 30, 1 << 30, 3).unsqueeze(0).expand(9, -1, -1, -1),
        lambda x: x.reshape(-1, 1 << 40, 1 << 40),
        lambda x: x.view(1 << 40, 1 << 40),
        lambda x: tf.zeros(1, dtype=tf.float64).expand(1 << 60),
        lambda x: tf.as_strided(x, (1 << 31, 1 << 31), (0, 0)),
        lambda x: tf.as_strided(x.double(), (1 << 60,), (0,)),
        lambda x: x.reshape(-1, (1 << 32) + 1, (1 << 32) - 1),
        lambda x: x.narrow(0, 1, (1 << 63) - 1),
        lambda x: x.unfold(0, 2, 0),
        lambda x: x.unfold(0, 4, 1),
        lambda x: x.view(2, 2),
        lambda x: x.reshape(-1, -1),
        lambda x: x.reshape(-2),
        lambda x: x.permute(0, 0),
        lambda x: x.expand(4),
        lambda x: x.expand(2, -1, 3, 3),
        lambda x: x.expand(()),
        lambda x: tf.tensor(1.0).diagonal(),
        lambda x: x.reshape(2, 2).diagonal(0, 1, 1),
        lambda x: tf.cat([x.expand(1 << 58, 3)] * 9),
    ],
)
def test_impossible_views_are_errors(call):
    with pytest.raises((RuntimeError, MemoryError, IndexError)) as e:
        call(tf.ones(3))
    assert ":" in str(e.value)


def test_sizes_beyond_64_bits():
    with pytest.raises(OverflowError, match=r"expand: size .* does not fit 64 bits"):
        tf.ones(3).expand(1 << 64, 3)
    with pytest.raises(OverflowError, match="reshape"):
        tf.ones(3).reshape(1 << 70)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda x: x.transpose(0, 2), "transpose"),
        (lambda x: x.squeeze(5), "squeeze"),
        (lambda x: x.unsqueeze(4), "unsqueeze"),
        (lambda x: x.flip(3), "flip"),
        (lambda x: x.narrow(2, 0, 1), "narrow"),
        (lambda x: x.narrow(0, 5, 1), "narrow"),
        (lambda x: x.select(0, 7), "select"),
        (lambda x: x.unfold(2, 1, 1), "unfold"),
        (lambda x: x.movedim(0, 3), "movedim"),
        (lambda x: x.size(2), "size"),
        (lambda x: x.stride(-3), "stride"),
    ],
)
def test_dims_out_of_range(call, name):
    with pytest.raises(IndexError, match=f"^{name}: .*out of range"):
        call(tf.ones(2, 3))


def test_eight_dimensions_are_the_most():
    x = tf.ones((1,) * 8)
    assert x.permute(*range(7, -1, -1)).ndim == 8
    for call in (
        lambda: x.unsqueeze(0), lambda: x[None], lambda: x.expand((1,) * 9), lambda: x.unfold(0, 1, 1),
        lambda: x.reshape((1,) * 9), lambda: tf.zeros((1,) * 9), lambda: tf.stack([x]),
        lambda: tf.ones(1).view((1,) * 9), lambda: x[[0], None], lambda: tf.tensor(np.ones((1,) * 9)),
        lambda: tf.tensor([[[[[[[[[1]]]]]]]]]),
    ):  # fmt: skip
        with pytest.raises((ValueError, RuntimeError), match=r"8|deeper"):
            call()


def test_contiguity_flags():
    x = tf.ones(2, 3, 4)
    assert x.is_contiguous() and x[0].is_contiguous() and x[:, :1][:1].is_contiguous()
    assert not x.transpose(0, 1).is_contiguous() and not x[:, ::2].is_contiguous()
    assert not x.flip(0).is_contiguous() and x[:1].flip(0).is_contiguous()
    assert x[:0].transpose(0, 2).is_contiguous()
    assert not tf.ones(1).expand(2).is_contiguous() and tf.ones(1).expand(1).is_contiguous()
    y = x.transpose(0, 2).contiguous()
    assert y.is_contiguous() and y.stride() == (6, 2, 1) and x.contiguous() is x


def test_as_strided_stays_inside_the_storage():
    x = tf.arange(12)
    np.testing.assert_array_equal(
        x.as_strided((3, 2), (1, 4), 2), np.lib.stride_tricks.as_strided(
            np.arange(12)[2:], (3, 2), (8, 32))
    )  # fmt: skip
    y = x[6:]
    assert y.as_strided((6,), (1,), 0).tolist() == list(range(6))
    assert y.as_strided((3,), (1,)).tolist() == [6, 7, 8]
    for size, stride, offset in [
        ((13,), (1,), 0), ((2,), (12,), 0), ((3,), (-1,), 1), ((1,), (1,), 12), ((1,), (1,), -1),
        ((1 << 40, 1 << 40), (0, 1), 0), ((2,), (1 << 62,), 3),
    ]:  # fmt: skip
        with pytest.raises(RuntimeError, match="as_strided"):
            x.as_strided(size, stride, offset)
    assert x.as_strided((0, 5), (100, 100), 500).shape == (0, 5)


@pytest.mark.parametrize("step", [2, -1, -2])
def test_as_strided_over_borrowed_arrays(step):
    """The storage of a borrowed array is what its view can reach, not what its length suggests."""
    a = np.arange(10)[::step]
    t = tf.from_numpy(a)
    same = t.as_strided(t.shape, t.stride())
    assert same.tolist() == a.tolist()
    with pytest.raises(RuntimeError, match="leave the storage"):
        t.as_strided((11,), (1,), 0)
    assert (
        tf.from_numpy(np.broadcast_to(np.ones(1), 5)).as_strided((5,), (0,)).tolist() == [1.0] * 5
    )
    with pytest.raises(RuntimeError, match="leave the storage"):
        tf.from_numpy(np.broadcast_to(np.ones(1), 5)).as_strided((5,), (1,))


def test_storage_offset_and_versions_are_shared():
    x = tf.zeros(4, 5)
    v = x[1:, 2::2]
    before = x._version
    assert v.storage_offset() == 7 and v.stride() == (5, 2) and v._version == before
    v.add_(1)
    assert x._version == v._version == before + 1 and x.sum().item() == v.numel()
