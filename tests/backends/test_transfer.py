"""Bytes across devices, and what a device lacks: by formula, on the CPU, or an error."""

import pytest
from backends.isolated import FAKE, run

import tinyfin as tf

BOTH = pytest.mark.parametrize("where", ["fake", "remote"])


@BOTH
def test_values_survive_the_way_there_and_back(where):
    out, _ = run(
        FAKE
        + f"""
for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"):
    for shape in ((), (0,), (3,), (2, 3)):
        x = (tf.arange(6)[:3] if shape == (3,) else tf.ones(shape)).to(getattr(tf, name))
        y = x.to("{where}")
        assert y.device.type == "{where}" and y.dtype is x.dtype and y.shape == x.shape
        assert y.cpu().tolist() == x.tolist() == y.tolist() and y.to("cpu").device.type == "cpu"
x = tf.arange(24.0).reshape(2, 3, 4)
y = x.to("{where}")
for f in (lambda t: t[:, ::2], lambda t: t.T, lambda t: t.flip(1), lambda t: t[1, 2, 3], lambda t: t[0].expand(2, 3, 4)):
    assert f(y).tolist() == f(x).tolist() and f(y).cpu().is_contiguous()
assert y[1, 2, 3].item() == 23 and bool(y[0, 0, 1]) and "23." in repr(y) and "device='{where}:0'" in repr(y)
assert y.to("{where}:1").tolist() == x.tolist() and x.to("fake").to("remote").to("fake").tolist() == x.tolist()
import pickle, copy
for again in pickle.loads(pickle.dumps(y)), copy.deepcopy(y):
    assert again.tolist() == x.tolist() and again.device == y.device and not again.requires_grad
again = pickle.loads(pickle.dumps(tf.nn.Parameter(x.to("{where}:1"))))
assert type(again) is tf.nn.Parameter and again.requires_grad and str(again.device) == "{where}:1"
print("fine")
"""
    )
    assert out == ["fine"]


@BOTH
def test_operations_without_kernels_run_on_the_cpu(where):
    out, _ = run(
        FAKE
        + f"""
x = tf.rand(3, 4, dtype=tf.float64)
y = x.to("{where}")
for f in (
    lambda t: t + 1, lambda t: t.exp() * t, lambda t: t @ t.T, lambda t: t.sum(), lambda t: t.softmax(1), lambda t: t.sort(1),
    lambda t: t.max(0), lambda t: tf.cat([t, t]), lambda t: t[[0, 2]], lambda t: t[t > 0.5], lambda t: t.cumsum(0),
    lambda t: t.clone(), lambda t: t.T.contiguous(), lambda t: tf.where(t > 0.5, t, 0.0), lambda t: t.float(),
    lambda t: t.reshape(4, 3).T.reshape(-1), lambda t: tf.einsum("ij,kj->ik", t, t), lambda t: t.norm(), lambda t: t.topk(2),
):
    got, want = f(y), f(x)
    if not isinstance(want, tuple):
        got, want = (got,), (want,)
    for g, w in zip(got, want):
        assert g.device.type == "{where}", f.__code__.co_firstlineno
        assert g.tolist() == w.tolist(), f.__code__.co_firstlineno
print("fine")
"""
    )
    assert out == ["fine"]


@BOTH
def test_writes_without_kernels(where):
    out, _ = run(
        FAKE
        + f"""
def both(write):
    x = tf.arange(6.0).reshape(2, 3)
    y = x.to("{where}")
    tf.manual_seed(1)
    write(x)
    version = y._version
    tf.manual_seed(1)
    write(y)
    assert y.tolist() == x.tolist() and y.device.type == "{where}", write.__code__.co_firstlineno
    assert y._version > version
for write in (
    lambda t: t.add_(1), lambda t: t[1].mul_(3), lambda t: t[:, ::2].fill_(7), lambda t: t.T.copy_(t.T.flip(0)),
    lambda t: t.zero_(), lambda t: t.uniform_(), lambda t: t[:, 1].normal_(), lambda t: t.__setitem__(0, 5.0),
    lambda t: t.__setitem__((slice(None), [0, 2]), -1.0), lambda t: t.__setitem__(t > 2, 0.0), lambda t: t.relu_(),
    lambda t: t.copy_(tf.ones(3)), lambda t: t.bernoulli_(0.5), lambda t: t[0].add_(t[1]),
):
    both(write)
print("fine")
"""
    )
    assert out == ["fine"]


@BOTH
def test_gradients_pass_devices_and_fall_backs(where):
    out, _ = run(
        FAKE
        + f"""
w = tf.tensor([[0.1, 0.2], [0.3, -0.4]], requires_grad=True)
def loss(w):
    return ((w @ w).softmax(0).cumsum(1)[[0, 1]] * tf.tensor([[1.0, 3.0], [2.0, -1.0]]).to(w.device)).sum()
loss(w).backward()
want, w.grad = w.grad, None
v = w.to("{where}")
assert v.requires_grad and not v.is_leaf
loss(v).backward()
assert w.grad.device.type == "cpu" and tf.allclose(w.grad, want), (w.grad, want)
leaf = w.detach().to("{where}").requires_grad_()
y = loss(leaf)
y.backward()
assert leaf.grad.device.type == "{where}" and tf.allclose(leaf.grad.cpu(), want)
(g,) = tf.autograd.grad(loss(w.to("{where}")), w, create_graph=True)
assert g.requires_grad
net = tf.nn.Sequential(tf.nn.Linear(2, 3), tf.nn.ReLU(), tf.nn.Linear(3, 1)).to("{where}")
opt = tf.optim.SGD(net.parameters(), lr=0.1)
x = tf.rand(5, 2).to("{where}")
first = net(x).square().mean()
for _ in range(20):
    opt.zero_grad()
    last = net(x).square().mean()
    last.backward()
    opt.step()
assert last.item() < first.item() and all(p.device.type == "{where}" for p in net.parameters())
print("fine")
"""
    )
    assert out == ["fine"]


def test_one_warning_for_each_operation():
    out, _ = run(
        FAKE
        + """
x = tf.rand(3, 3).to("fake")
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as seen:
    x @ x, x @ x, x.cumsum(0), x + 1, x.softmax(0)
texts = [str(w.message) for w in seen]
print(sum("matmul runs on the cpu: backend fake" in t for t in texts), sum("cumsum" in t for t in texts))
print(any("add" in t for t in texts), all(w.category is RuntimeWarning for w in seen))
"""
    )
    assert out == ["1 1", "False True"]


def test_policy_that_forbids_helping_out():
    code = (
        FAKE
        + """
x = tf.ones(2, 2).to("fake")
print((x + 1).tolist())
for call in (lambda: x @ x, lambda: x.cumsum(0), lambda: x.uniform_()):
    try:
        print(call())
    except RuntimeError as e:
        print(e)
"""
    )
    out, _ = run(code, TINYFIN_FALLBACK="0")
    assert out[0] == "[[2.0, 2.0], [2.0, 2.0]]"
    for line, name in zip(out[1:], ("matmul", "cumsum", "uniform_")):
        assert (
            line.startswith(f"{name}: backend fake:0 has no kernel")
            and "TINYFIN_FALLBACK=0" in line
        )
    assert len(run(code)[0]) > 4


def test_errors_of_the_other_device_s_kernels_reach_the_user():
    out, _ = run(
        FAKE
        + """
x = tf.ones(2, 2).to("fake")
for call in (lambda: x @ tf.ones(3, 3).to("fake"), lambda: x.gather(0, tf.full((1, 2), 9).to("fake")), lambda: x.long() // 0):
    try:
        call()
    except (RuntimeError, IndexError) as e:
        print(e)
"""
    )
    assert (
        out[0].startswith("matmul: ")
        and out[1].startswith("gather: ")
        and "division by zero" in out[2]
    )


def test_null_has_nothing_to_read():
    x = tf.ones(2, device="null")
    for call in (x.tolist, x.cpu, lambda: x[0].item(), lambda: bool(x[0]), lambda: x.to("cpu"),
                 lambda: float(x[0]), lambda: list(x)[0].item(), lambda: x[x > 0], lambda: tf.equal(x, x)):  # fmt: skip
        with pytest.raises(RuntimeError, match="null"):
            call()
