"""Shapes: compositions over views, joins and splits, against PyTorch."""

import numpy as np
import pytest

import tinyfin as tf

torch = pytest.importorskip("torch")


def same(got, want, shares=None):
    """Equal shapes and elements, of one tensor or of several."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, shares)
        return
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
    if shares is not None and got.numel():
        first, last = shares.data_ptr(), shares.data_ptr() + shares.nbytes
        assert first <= got.data_ptr() < last


def pair(*shape):
    """The same numbers in both libraries."""
    n = int(np.prod(shape))
    return tf.arange(n).reshape(shape), torch.arange(n).reshape(shape)


VIEWS = [
    lambda x: x.flatten(), lambda x: x.flatten(1), lambda x: x.flatten(0, 1), lambda x: x.flatten(-2),
    lambda x: x.flatten(1, 1), lambda x: x.unflatten(2, (2, 2)), lambda x: x.unflatten(-1, (-1, 2)),
    lambda x: x[0].t(), lambda x: x[0, 0].t(), lambda x: x.movedim(0, 2), lambda x: x.movedim((0, 1), (2, 0)),
    lambda x: x.movedim(-1, 0), lambda x: x.select(1, -1), lambda x: x.select(0, 1), lambda x: x.mT,
    lambda x: x.T if isinstance(x, tf.Tensor) else x.permute(2, 1, 0), lambda x: x.ravel(),
    lambda x: x.view_as(x.reshape(6, 4)), lambda x: x.reshape_as(x.reshape(4, 6)), lambda x: x.swapaxes(0, 2),
    lambda x: x.split(1), lambda x: x.split(2, 1), lambda x: x.split((1, 3), 2), lambda x: x.split([2, 1], -2),
    lambda x: x.split(5, 0), lambda x: x.chunk(2), lambda x: x.chunk(3, 2), lambda x: x.chunk(7, 1),
    lambda x: x.tensor_split(3, 2), lambda x: x.tensor_split(5, 1), lambda x: x.tensor_split((1, 3), 2),
    lambda x: x.tensor_split((2, 1, -1), 2), lambda x: x.unbind(), lambda x: x.unbind(2), lambda x: x.unbind(-2),
    lambda x: x.split_with_sizes((1, 1)), lambda x: x[:, :1].expand_as(x), lambda x: x.unsqueeze(0).squeeze(0),
    lambda x: x.narrow(1, -2, 1), lambda x: x.as_strided((2, 2), (12, 1)), lambda x: x.moveaxis(0, 1),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(VIEWS)))
def test_views(k):
    x, u = pair(2, 3, 4)
    same(VIEWS[k](x), VIEWS[k](u), shares=x)


OTHERS = [
    lambda t, x: t.hstack([x, x]), lambda t, x: t.vstack([x[0], x[0]]), lambda t, x: t.column_stack([x[0, 0], x[0, 0]]),
    lambda t, x: t.hstack([x[0, 0], x[0, 1]]), lambda t, x: t.vstack([x[0, 0], x[0, 1]]),
    lambda t, x: t.column_stack([x[0], x[0, :, 0]]), lambda t, x: t.hstack([x[0, 0, 0], x[0, 0, 1]]),
    lambda t, x: t.dstack([x[0, 0], x[0, 1]]), lambda t, x: t.fliplr(x[0]), lambda t, x: t.flipud(x),
    lambda t, x: t.rot90(x[0]), lambda t, x: t.rot90(x, 2), lambda t, x: t.rot90(x, 3, (1, 2)),
    lambda t, x: t.rot90(x, -1, (0, 2)), lambda t, x: t.rot90(x, 4), lambda t, x: t.rot90(x[0], 1, (1, 0)),
    lambda t, x: t.meshgrid(x[0, 0], x[0, :, 0], indexing="ij"),
    lambda t, x: t.meshgrid(x[0, 0], x[0, :, 0], x[:, 0, 0], indexing="xy"),
    lambda t, x: t.meshgrid([x[0, 0], x[0, 1]], indexing="ij"), lambda t, x: t.broadcast_to(x[0], (5, 3, 4)),
    lambda t, x: t.broadcast_tensors(x[0, 0], x[:, :1, :1]), lambda t, x: t.stack([x, x], -1),
    lambda t, x: t.stack([x[0], x[1]], 1), lambda t, x: t.cat([x, x], -1), lambda t, x: x.repeat(2, 1, 3),
    lambda t, x: x.tile(2, 1), lambda t, x: x.roll(1, 0), lambda t, x: x.roll((1, -1), (0, 2)), lambda t, x: x.roll(5),
    lambda t, x: x.repeat_interleave(2), lambda t, x: x.repeat_interleave(2, 1), lambda t, x: t.flatten(x[0, 0, 0]),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(OTHERS)))
def test_copies(k):
    x, u = pair(2, 3, 4)
    same(OTHERS[k](tf, x), OTHERS[k](torch, u))


def test_empties():
    x, u = pair(2, 0, 3)
    for f in (
        lambda x: x.flatten(), lambda x: x.split(2, 1), lambda x: x.chunk(2, 1), lambda x: x.unbind(1),
        lambda x: x.tensor_split(2, 1), lambda x: x.split(0, 1), lambda x: x.reshape(0, 7), lambda x: x.movedim(0, 1),
        lambda x: x.unbind(0), lambda x: x.unflatten(2, (3, 1)),
    ):  # fmt: skip
        same(f(x), f(u))


def test_broadcast_shapes():
    assert tf.broadcast_shapes((2, 1), (3,)) == (2, 3) and isinstance(
        tf.broadcast_shapes(3, (1,)), tf.Size
    )
    assert tf.broadcast_shapes() == () and tf.broadcast_shapes((0, 1), (5,)) == (0, 5)
    with pytest.raises(RuntimeError, match="2 and 3 differ"):
        tf.broadcast_shapes((2,), (3,))


@pytest.mark.parametrize(
    "call, kind, name",
    [
        (lambda x: x.flatten(1, 0), RuntimeError, "flatten"),
        (lambda x: x.flatten(3), IndexError, "flatten"),
        (lambda x: tf.flatten(3), TypeError, "flatten"),
        (lambda x: x.unflatten(0, (2, 2)), RuntimeError, "unflatten"),
        (lambda x: x.unflatten(0, (-1, -1)), RuntimeError, "unflatten"),
        (lambda x: x.unflatten(5, (2, 1)), IndexError, "unflatten"),
        (lambda x: x.unflatten(0, (-1, 0)), RuntimeError, "unflatten"),
        (lambda x: x.t(), RuntimeError, "^t: "),
        (lambda x: x.movedim((0, 0), (1, 2)), RuntimeError, "movedim"),
        (lambda x: x.movedim((0, 1), (1,)), RuntimeError, "movedim"),
        (lambda x: x.movedim("a", 0), TypeError, "movedim|iterable"),
        (lambda x: x.select(0, 2), IndexError, "select"),
        (lambda x: tf.tensor(1).select(0, 0), IndexError, "select"),
        (lambda x: x.select(0, 1.5), TypeError, "select|integer"),
        (lambda x: x.split(0), RuntimeError, "split"),
        (lambda x: x.split(-1), RuntimeError, "split"),
        (lambda x: x.split((1, 2)), RuntimeError, "split"),
        (lambda x: x.split((3, -1)), RuntimeError, "split"),
        (lambda x: x.split(1, 5), IndexError, "split"),
        (lambda x: x.chunk(0), RuntimeError, "chunk"),
        (lambda x: x.tensor_split(0), RuntimeError, "tensor_split"),
        (lambda x: tf.tensor(1).unbind(), (RuntimeError, IndexError), "unbind"),
        (lambda x: x.unbind(4), IndexError, "unbind"),
        (lambda x: tf.meshgrid(x[0, 0], indexing="no"), RuntimeError, "meshgrid"),
        (lambda x: tf.hstack([]), (RuntimeError, ValueError), "hstack|cat"),
        (lambda x: tf.vstack([]), (RuntimeError, ValueError), "vstack|cat"),
        (lambda x: tf.stack([x, x[0]]), RuntimeError, "stack"),
        (lambda x: tf.stack([x], 5), IndexError, "stack"),
        (lambda x: x.expand_as(x[0]), RuntimeError, "expand"),
        (lambda x: tf.broadcast_to(x, (2,)), RuntimeError, "expand"),
        (lambda x: x.rot90(1, (0, 0)), RuntimeError, "rot90"),
        (lambda x: x.rot90(1, (0,)), RuntimeError, "rot90"),
        (lambda x: x.repeat(2), RuntimeError, "repeat"),
        (lambda x: x.repeat(2, -1, 1), RuntimeError, "repeat"),
        (lambda x: x.roll((1, 2), 0), RuntimeError, "roll"),
        (lambda x: x.view_as(x[0]), RuntimeError, "view"),
    ],
)
def test_what_is_refused(call, kind, name):
    with pytest.raises(kind, match=name):
        call(tf.arange(24).reshape(2, 3, 4))


def test_repeats_beyond_memory_are_refused():
    for call in (lambda: tf.ones(2).repeat(1 << 45), lambda: tf.ones(2, 3).tile(1 << 30, 1 << 30)):
        with pytest.raises((MemoryError, RuntimeError)):
            call()


def test_gradients():
    x = tf.arange(6.0).reshape(2, 3).requires_grad_()
    parts = [
        *x.split(1),
        *x.unbind(1),
        x.flatten()[1:],
        x.movedim(0, 1),
        x.rot90(),
        x.select(1, 2),
        x.chunk(2, 1)[1],
    ]
    sum((p * (i + 1)).sum() for i, p in enumerate(parts)).backward()
    u = torch.arange(6.0).reshape(2, 3).requires_grad_()
    parts = [
        *u.split(1),
        *u.unbind(1),
        u.flatten()[1:],
        u.movedim(0, 1),
        u.rot90(),
        u.select(1, 2),
        u.chunk(2, 1)[1],
    ]
    sum((p * (i + 1)).sum() for i, p in enumerate(parts)).backward()
    assert x.grad.tolist() == u.grad.tolist()


@pytest.mark.parametrize(
    "cut", [lambda x: x.unbind(1), lambda x: x.split(1, 1), lambda x: x.split([2, 0, 3] * 8, 1)]
)
def test_gradients_of_many_pieces(cut):
    """Each piece has its own gradient, and all cost about as much as the whole a few times over."""
    x = tf.rand(3, 40).requires_grad_()
    parts = cut(x)
    flat = tf.cat([p.reshape(3, -1) * (i + 1) for i, p in enumerate(parts)], 1)
    assert flat.shape == (3, 40) and all(p.base is x for p in parts if hasattr(p, "base"))
    with tf.profiler.profile() as p:
        flat.sum().backward()
    want = tf.cat([tf.full((3, q.numel() // 3), i + 1.0) for i, q in enumerate(parts)], 1)
    assert x.grad.tolist() == want.tolist()
    assert sum(e.bytes for e in p.events()) < 30 * 4 * x.numel()


def test_many_pieces_are_written_to_like_views():
    x = tf.zeros(12).requires_grad_()
    y = x * 1
    for i, part in enumerate(y.unbind()):
        part.add_(float(i))
    y.split(1)[3].mul_(10)
    assert y.tolist() == [0, 1, 2, 30, 4, 5, 6, 7, 8, 9, 10, 11]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1, 1, 10, 1, 1, 1, 1, 1, 1, 1, 1]
