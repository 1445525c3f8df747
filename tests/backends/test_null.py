"""The null backend: a whole network's shapes and dtypes, forward, backward and step, without arithmetic."""

import pytest

import tinyfin as tf
from tinyfin import nn


class Net(nn.Module):
    """Convolution, norm, attention and embedding in one."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.attend = nn.MultiheadAttention(16, 4, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.out = nn.Linear(4 * 3 * 8, 10)

    def forward(self, i):
        x = self.embed(i)
        x = self.norm(x + self.attend(x, x, x, need_weights=False)[0])
        x = nn.functional.relu(self.bn(self.conv(x.unsqueeze(1))))
        x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.dropout(x, 0.1)
        return self.out(x.flatten(1))


def shapes(net, i, target):
    """Shapes and dtypes of everything that one training step makes."""
    y = net(i)
    loss = nn.functional.cross_entropy(y, target)
    loss.backward()
    grads = {n: (tuple(p.grad.shape), p.grad.dtype.name) for n, p in net.named_parameters()}
    return tuple(y.shape), tuple(loss.shape), grads


def test_a_training_step_has_the_same_shapes_as_on_the_cpu():
    want = shapes(Net(), tf.randint(50, (7, 6)), tf.randint(10, (7,)))
    tf.backend_set("null")
    try:
        net = Net()
        before = tf.memory_stats()["requests"]
        got = shapes(net, tf.randint(50, (7, 6)), tf.randint(10, (7,)))
        assert got == want
        assert all(p.device.type == p.grad.device.type == "null" for p in net.parameters())
        for opt in (
            tf.optim.SGD(net.parameters(), lr=0.1, momentum=0.9),
            tf.optim.AdamW(net.parameters()),
        ):
            opt.step()
            opt.zero_grad()
        big = nn.Linear(1 << 20, 1 << 20)(tf.zeros(1 << 10, 1 << 20))
        assert big.shape == (1 << 10, 1 << 20)
        assert tf.memory_stats()["live"] < 1 << 30 and tf.memory_stats()["requests"] - before < 500
    finally:
        tf.backend_set("cpu")


def test_errors_are_those_of_the_cpu():
    x = tf.ones(2, 3, device="null")
    for call in (
        lambda t: t @ t,
        lambda t: t + tf.ones(4, device=t.device),
        lambda t: t.sum(5),
        lambda t: t.view(7),
    ):
        with pytest.raises((RuntimeError, IndexError)) as on_null:
            call(x)
        with pytest.raises((RuntimeError, IndexError)) as on_cpu:
            call(tf.ones(2, 3))
        assert str(on_null.value) == str(on_cpu.value) and type(on_null.value) is type(on_cpu.value)


def test_views_and_transfers():
    x = tf.arange(24.0).reshape(2, 3, 4).to("null")
    assert (
        x.device.type == "null" and x.T[::2].shape == (2, 3, 2) and x.T[::2].stride() == (2, 4, 12)
    )
    assert x.is_contiguous() and not x.T.is_contiguous() and x.data_ptr() == 0 and x.nbytes == 96
    assert x.to("null:1").device.index == 1 and x.clone().shape == x.shape
    assert repr(x) == "tensor(..., device='null:0', size=(2, 3, 4))"
