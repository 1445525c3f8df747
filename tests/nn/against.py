"""The same call here and in PyTorch: values, gradients, names of parameters."""

import numpy as np
import pytest

import tinyfin as tf

torch = pytest.importorskip("torch")


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
    x = x.detach()
    return (
        np.array(x.tolist(), dtype="bool" if x.dtype in (tf.bool, torch.bool) else None)
        if x.dtype in (tf.bool, torch.bool, tf.bfloat16, torch.bfloat16)
        else np.array(x.numpy())
    )


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


def function(name, *args, grad=True, tolerance=2e-5, **kwargs):
    """Asserts that `nn.functional.name` agrees with PyTorch's, and its gradients."""
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


def same_state(ours, theirs):
    """Asserts that names and shapes of the state are PyTorch's, and takes its values over."""
    state = theirs.state_dict()
    mine = ours.state_dict()
    assert list(mine) == list(state)
    assert {k: tuple(v.shape) for k, v in mine.items()} == {
        k: tuple(v.shape) for k, v in state.items()
    }
    ours.load_state_dict({k: tensor(tf, np.array(v.numpy()), grad=False) for k, v in state.items()})


def module(make, *args, train=True, tolerance=2e-5, spread=None, text=True, **kwargs):
    """Asserts that a module agrees with PyTorch's: state, repr, values, gradients, buffers."""
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
