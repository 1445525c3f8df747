"""Casts, copies, transfers."""

import copy

import numpy as np
import pytest

import tinyfin as tf

CASTS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
    "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
}  # fmt: skip


@pytest.mark.parametrize("method, name", CASTS.items())
def test_named_casts(method, name):
    x = tf.tensor([0.0, 1.0, 2.75])
    y = getattr(x, method)()
    assert y.dtype is getattr(tf, name)
    assert getattr(y, method)() is y
    assert y.float().tolist() == x.to(getattr(tf, name)).float().tolist()


def test_to_in_every_form():
    x = tf.ones(2)
    y = tf.ones(1, dtype=tf.float64, device="null")
    assert x.to(tf.float64).dtype is tf.float64 and x.to(int).dtype is tf.int64
    assert (
        x.to(dtype=tf.int8).dtype is tf.int8
        and x.to("cpu") is x
        and x.to(tf.float32) is x
        and x.to() is x
    )
    assert x.to(y).dtype is tf.float64 and x.to(y).device.type == "null"
    assert (
        x.to("null", tf.int32).dtype is tf.int32
        and x.to(device="null", dtype=tf.int32).device.type == "null"
    )
    assert x.to(tf.device("cpu"), tf.float16, True).dtype is tf.float16
    for z in (
        x.to(tf.float32, copy=True),
        x.to("cpu", copy=True),
        x.to("cpu", tf.float32, False, True),
    ):
        assert z is not x and z.data_ptr() != x.data_ptr() and z.tolist() == x.tolist()
    assert x.to(None) is x and x.to(x) is x and x.type_as(y.to("null")).dtype is tf.float64


@pytest.mark.parametrize(
    "bad, kind",
    [("moon", RuntimeError), (3, TypeError), ([], TypeError), ("float32", RuntimeError)],
)
def test_to_refuses(bad, kind):
    with pytest.raises(kind):
        tf.ones(2).to(bad)


def test_gradients_pass_casts_and_copies():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    (
        x.double().sum()
        + x.clone().sum()
        + x.half().float().sum()
        + x.to(tf.float64, copy=True).sum()
    ).backward()
    assert x.grad.dtype is tf.float32 and x.grad.tolist() == [4.0, 4.0]


def test_clone_and_contiguous():
    x = tf.arange(6.0).reshape(2, 3).T
    y = x.contiguous()
    assert y.is_contiguous() and y.tolist() == x.tolist() and y.contiguous() is y
    z = x.clone()
    assert (
        z.tolist() == x.tolist()
        and z.data_ptr() != x.data_ptr()
        and tf.clone(x).tolist() == x.tolist()
    )


def test_copy_fill_zero():
    x = tf.zeros(2, 3)
    assert x.copy_(tf.arange(3)) is x and x.tolist() == [[0.0, 1.0, 2.0]] * 2
    assert (
        x.copy_(7).sum().item() == 42
        and x.fill_(2).sum().item() == 12
        and x.zero_().sum().item() == 0
    )
    assert x.fill_(tf.tensor(3)).sum().item() == 18
    assert tf.zeros(3, dtype=tf.int32).copy_(tf.tensor([1.9, -1.9, 2.5])).tolist() == [1, -1, 2]
    for call, kind in (
        (lambda: x.copy_(tf.ones(4)), RuntimeError), (lambda: x.copy_(tf.ones(1, 2, 3)), RuntimeError),
        (lambda: x.copy_("a"), TypeError), (lambda: x.fill_(tf.ones(3)), RuntimeError),
        (lambda: x.fill_("a"), TypeError), (lambda: x.fill_(1e300), RuntimeError),
        (lambda: x[0].copy_(tf.ones(2, 3)), RuntimeError),
    ):  # fmt: skip
        with pytest.raises(kind, match="copy_|fill_"):
            call()
    assert x.sum().item() == 18


def test_gradient_of_copy():
    x, src = tf.ones(2, 2, requires_grad=True), tf.ones(2, requires_grad=True)
    y = x * 3
    y.copy_(src)
    (y * tf.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]] * 2 and src.grad.tolist() == [4.0, 6.0]


def test_transfers_keep_values_and_history():
    x = tf.ones(2, requires_grad=True)
    y = x.to("null")
    assert y.requires_grad and not y.is_leaf and y.shape == x.shape
    with pytest.raises(RuntimeError, match="null"):
        y.cpu()
    assert x.cpu() is x


def test_scratch_and_kernel_errors_have_words():
    from tinyfin.conversion import kernel_error

    for code, kind in ((1, MemoryError), (2, IndexError), (3, ZeroDivisionError), (3, RuntimeError),
                       (4, ValueError), (5, NotImplementedError), (6, RuntimeError)):  # fmt: skip
        e = kernel_error("exp", code, [1, 2, 1, 0], "f", [tf.int32])
        assert isinstance(e, kind) and str(e).startswith("exp: ")


def test_sum_to():
    from tinyfin.conversion import sum_to

    x = tf.ones(2, 3, 4)
    for shape in ((2, 3, 4), (3, 4), (4,), (), (1, 3, 1), (1, 1, 1), (3, 1)):
        a = np.ones((2, 3, 4))
        y = sum_to(x, shape)
        assert tuple(y.shape) == shape and y.sum().item() == a.sum()


def test_deepcopy_keeps_memory_shared():
    a = tf.arange(6.0)
    whole, part, turned, again = copy.deepcopy((a, a[2:], a.view(2, 3).t(), [a]))
    whole[2] = 99
    assert part.tolist() == [99.0, 3.0, 4.0, 5.0] and turned.tolist() == [[0, 3], [1, 4], [99, 5]]
    assert again[0] is whole and turned.stride() == (1, 3) and part.storage_offset() == 2
    assert a.tolist() == list(range(6)) and part.is_leaf and part.base is None
    tied = copy.deepcopy({"w": a.requires_grad_(), "view": a.detach()[:2]})
    assert tied["w"].requires_grad and not tied["view"].requires_grad
    with tf.no_grad():
        tied["w"].fill_(7)
    assert tied["view"].tolist() == [7.0, 7.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.ones(1).expand(3, 2),
        lambda: tf.zeros(0, 3),
        lambda: tf.tensor(3.0),
        lambda: tf.from_numpy(np.arange(12.0).reshape(3, 4)[::-1, ::2]),
        lambda: tf.arange(8, dtype=tf.int16)[5:1].reshape(0),
        lambda: tf.arange(24).view(2, 3, 4).permute(2, 0, 1)[1:],
        lambda: tf.empty(0)[0:],
    ],
)
def test_deepcopy_of_every_layout(make):
    x = make()
    y = copy.deepcopy(x)
    assert (y.tolist(), y.stride(), y.dtype) == (x.tolist(), x.stride(), x.dtype)
    assert not x.numel() or y.data_ptr() != x.data_ptr()


def test_deepcopy_on_a_device_and_inside_vmap():
    assert copy.deepcopy(tf.ones(4, device="null")[2:]).shape == (2,)
    y = tf.func.vmap(lambda v: copy.deepcopy(v) * 2)(tf.arange(6.0).view(3, 2))
    assert y.tolist() == [[0, 2], [4, 6], [8, 10]]


def test_out_of_none_is_no_out():
    a, b = tf.ones(2), tf.arange(2.0)
    assert tf.add(a, b, out=None).tolist() == [1.0, 2.0]
    assert tf.sort(b, out=None)[1].tolist() == [0, 1]
