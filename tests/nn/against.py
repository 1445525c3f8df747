"""The same call here and in PyTorch: values, gradients, names of parameters.

Before that, and where PyTorch is not installed instead of that, the call is held against itself in
float64: gradients are the slopes of the values, and the copy of a module gives the same. (The
values of the operations below are held against NumPy in tests/ops.)
"""

import copy

import numpy as np
from lazy import INSTALLED, torch

import tinyfin as tf


def rng(seed=0):
    return np.random.default_rng(seed)


def normal(*shape, seed=0):
    """Float32 numbers from the normal distribution."""
    return np.asarray(rng(seed).standard_normal(shape), "float32")


def integers(high, *shape, seed=0):
    return rng(seed).integers(0, high, shape)


class Fixed:
    """An array whose tensor wants no gradient."""

    def __init__(self, x):
        self.x = x


def tensor(m, x, grad=True):
    """A tensor of module `m` (tinyfin or torch) from an array; anything else as it is."""
    if isinstance(x, Fixed):
        return tensor(m, x.x, False)
    if isinstance(x, (list, tuple)):
        return type(x)(tensor(m, v, grad) for v in x)
    if not isinstance(x, np.ndarray):
        return x
    t = m.from_numpy(np.array(x))
    return t.requires_grad_() if grad and x.dtype.kind == "f" else t


def array(x):
    """Values of a tensor of either kind."""
    x, kind = x.detach(), str(x.dtype).rpartition(".")[2]
    if kind in ("bool", "bfloat16"):
        return np.array(x.tolist(), dtype="bool" if kind == "bool" else None)
    return np.array(x.numpy())


def flat(result):
    """The tensors of a result in a list."""
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in flat(part)]
    return [] if result is None else [result]


def close(ours, theirs, what="", tolerance=2e-5):
    a, b = array(ours), array(theirs)
    assert a.shape == b.shape, f"{what}: shape {a.shape}, PyTorch has {b.shape}"
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1], f"{what}: dtype"
    scale = (
        max(1.0, float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)))
        if b.dtype.kind == "f"
        else 1
    )
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def gradients(m, results, inputs, parameters=()):
    """Gradients of a weighted sum of all floating results."""
    total = None
    for i, y in enumerate(results):
        if y.requires_grad:
            g = tensor(m, normal(*tuple(y.shape), seed=100 + i), grad=False)
            part = (y * g.to(y.dtype)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    return [t.grad for t in [*flat(inputs), *parameters]]


def compare_gradients(ours, theirs, tolerance):
    assert len(ours) == len(theirs)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert (a is None) == (b is None), f"gradient {i}: {a} and {b}"
        if a is not None:
            close(a, b, f"gradient {i}", tolerance)


def tensors_of(m, args):
    return [t for t in flat([a for a in args if a is not None]) if isinstance(t, m.Tensor)]


STEP = 1e-6


def wide(x):
    """Arguments with their float32 arrays in float64."""
    if isinstance(x, Fixed):
        return Fixed(wide(x.x))
    if isinstance(x, (list, tuple)):
        return type(x)(map(wide, x))
    return x.astype("float64") if isinstance(x, np.ndarray) and x.dtype == np.float32 else x


def weighted(results):
    """A sum of all floating results, each element with a weight of its own; None without any."""
    total = None
    for i, y in enumerate(results):
        if y.requires_grad:
            g = tensor(tf, normal(*tuple(y.shape), seed=100 + i), grad=False)
            part = (y * g.to(y.dtype)).sum()
            total = part if total is None else total + part
    return total


def slopes(call, leaves, smooth=True):
    """Asserts that the gradients of a call are the slopes of its values, along one direction in all
    leaves, unless it is said to have kinks there. `call` must give the same each time.
    """
    results = call()
    total = weighted(results)
    if total is None or not smooth or any(t.dtype != tf.float64 for t in leaves):
        return results
    total.backward()
    ways = [normal(*tuple(t.shape), seed=200 + i).astype("float64") for i, t in enumerate(leaves)]
    got = sum(float((array(t.grad) * d).sum()) for t, d in zip(leaves, ways) if t.grad is not None)
    old = [t.detach().clone() for t in leaves]
    ends = []
    with tf.no_grad():
        for step in (STEP, -STEP):
            for t, o, d in zip(leaves, old, ways, strict=True):
                t.copy_(o + tensor(tf, d * step))
            with tf.enable_grad():
                ends.append(weighted(call()).item())
        for t, o in zip(leaves, old, strict=True):
            t.copy_(o)
    want = (ends[0] - ends[1]) / (2 * STEP)
    assert abs(got - want) <= 1e-5 * (1 + abs(want)), f"gradient {got}, slope {want}"
    return results


def function(name, *args, grad=True, tolerance=2e-5, smooth=True, **kwargs):
    """Asserts that `nn.functional.name` agrees with itself, and with PyTorch's, and its gradients."""
    consistent(name, args, kwargs, grad, smooth)
    if not INSTALLED:
        return
    got = []
    for m in (tf, torch):
        here = [tensor(m, a, grad) for a in args]
        named = {k: tensor(m, v, grad) for k, v in kwargs.items()}
        results = flat(getattr(m.nn.functional, name)(*here, **named))
        inputs = tensors_of(m, [*here, *named.values()])
        got.append((results, gradients(m, results, [t for t in inputs if t.requires_grad])))
    (ours, our_grads), (theirs, their_grads) = got
    assert len(ours) == len(theirs)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        close(a, b, f"{name}, result {i}", tolerance)
    compare_gradients(our_grads, their_grads, tolerance * 5)


def fresh(x):
    """Arguments that a call may overwrite: leaves are copied, with their history."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(fresh, x))
    return x.clone() if isinstance(x, tf.Tensor) else x


def consistent(name, args, kwargs, grad=True, smooth=True):
    """Asserts that gradients of a function are its slopes."""
    here = [tensor(tf, wide(a), grad) for a in args]
    named = {k: tensor(tf, wide(v), grad) for k, v in kwargs.items()}
    leaves = [t for t in tensors_of(tf, [*here, *named.values()]) if t.requires_grad]
    f = getattr(tf.nn.functional, name)

    def call():
        return flat(f(*map(fresh, here), **{k: fresh(v) for k, v in named.items()}))

    slopes(call, leaves, smooth)


def same_state(ours, theirs):
    """Asserts that names and shapes of the state are PyTorch's, and takes its values over."""
    state = theirs.state_dict()
    mine = ours.state_dict()
    assert list(mine) == list(state)
    assert {k: tuple(v.shape) for k, v in mine.items()} == {
        k: tuple(v.shape) for k, v in state.items()
    }
    ours.load_state_dict({k: tensor(tf, np.array(v.numpy()), grad=False) for k, v in state.items()})


def module(make, *args, train=True, tolerance=2e-5, spread=None, text=True, smooth=True, **kwargs):
    """Asserts that a module agrees with itself, and with PyTorch's: state, repr, values, gradients,
    buffers.
    """
    sound(make(tf.nn), args, kwargs, train, spread, smooth)
    if not INSTALLED:
        return
    ours, theirs = make(tf.nn), make(torch.nn)
    if spread is not None:
        with torch.no_grad():
            for i, p in enumerate(theirs.parameters()):
                p.copy_(torch.from_numpy(normal(*p.shape, seed=50 + i) * spread))
    same_state(ours, theirs)
    if text:
        assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear")
    got = []
    for m, net in ((tf, ours), (torch, theirs)):
        net.train(train)
        here = [tensor(m, a) for a in args]
        named = {k: tensor(m, v) for k, v in kwargs.items()}
        results = flat(net(*here, **named))
        inputs = [t for t in tensors_of(m, [*here, *named.values()]) if t.requires_grad]
        got.append((results, gradients(m, results, inputs, net.parameters())))
    for i, (a, b) in enumerate(zip(got[0][0], got[1][0], strict=True)):
        close(a, b, f"result {i}", tolerance)
    compare_gradients(got[0][1], got[1][1], tolerance * 5)
    for (name, a), (_, b) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        close(a, b, name, tolerance)


def sound(net, args, kwargs, train, spread, smooth):
    """Asserts that a module's gradients are its slopes, and that a copy gives the same."""
    net = net.double().train(train)
    with tf.no_grad():
        for i, p in enumerate(net.parameters() if spread is not None else ()):
            p.copy_(tensor(tf, normal(*p.shape, seed=50 + i) * spread, grad=False))
    before = {k: v.clone() for k, v in net.named_buffers()}
    here = [tensor(tf, wide(a)) for a in args]
    named = {k: tensor(tf, wide(v)) for k, v in kwargs.items()}

    def call(net=net):
        for k, v in net.named_buffers():
            v.copy_(before[k])
        return flat(net(*map(fresh, here), **{k: fresh(v) for k, v in named.items()}))

    leaves = [t for t in tensors_of(tf, [*here, *named.values()]) if t.requires_grad]
    leaves += [p for p in net.parameters() if p.requires_grad]
    results = slopes(call, leaves, smooth)
    twin = copy.deepcopy(net)
    assert repr(twin) == repr(net) and twin.training == train
    assert list(twin.state_dict()) == list(net.state_dict())
    for a, b in zip(results, call(twin), strict=True):
        assert a.dtype == b.dtype and array(a).tobytes() == array(b).tobytes()
