"""What tests of fused kernels share: the formula's bits, derivatives, equal bits everywhere."""

import hashlib
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tinyfin as tf
from tinyfin.autograd.reverse import grad
from tinyfin.backends.cpu.isa import isa_list
from tinyfin.ops.row import F

DIGEST = "TINYFIN_TEST_DIGEST"
"""Set where a test file runs as a script that prints a digest: PyTorch is not needed then."""
torch = None if DIGEST in os.environ else pytest.importorskip("torch")
DTYPES = ["float32", "float64", "float16", "bfloat16"]


def tensor(array, dtype=None):
    """A tensor of an array, or None."""
    if array is None:
        return None
    t = tf.tensor(array)
    return t if dtype is None or not t.dtype.is_floating_point else t.to(getattr(tf, dtype))


def array(t):
    """A tensor's numbers in float64, or the array of its integers."""
    t = t.detach()
    return (t.double() if t.dtype.is_floating_point else t).numpy()


def run(name, *args):
    """Calls an operation by its row's own order: tensors, then attributes; a tuple of results."""
    op = getattr(F, name)
    n = len(op.arg_names)
    results = op.run_with(tuple(args[:n]), tuple(args[n:]))
    return results if isinstance(results, tuple) else (results,)


def check_formula(name, *args):
    """The fused kernel's results, after they were found to have the formula's bits."""
    op = getattr(F, name)
    assert op.has_kernel(0), f"{name} has no kernel on the CPU"
    got = run(name, *args)
    want = op.formula(*args)
    want = want if isinstance(want, tuple) else (want,)
    assert len(got) == len(want)
    for i, (a, b) in enumerate(zip(got, want)):
        first = next(t for t in args if t is not None)
        what = f"{name}[{i}] of {first.dtype} {first.shape}"
        assert a.dtype is b.dtype and a.shape == b.shape, what
        np.testing.assert_array_equal(array(a), array(b), what)
    return got


def layouts(a):
    """The same numbers as they are, with axes reversed, with gaps, with negative strides."""
    yield tf.tensor(a)
    yield tf.tensor(a.T.copy()).permute(tuple(range(a.ndim))[::-1])
    wide = np.repeat(np.repeat(a, 2, 0), 2, -1)
    yield tf.tensor(wide)[::2][..., ::2] if a.ndim > 1 else tf.tensor(np.repeat(a, 2))[::2]
    yield tf.tensor(np.flip(a).copy()).flip(tuple(range(a.ndim)))


def close(ours, theirs, tolerance, what=""):
    """Compares a tensor with a PyTorch tensor or an array."""
    want = theirs
    if isinstance(theirs, torch.Tensor):
        want = theirs.detach().double().numpy(force=True)
    np.testing.assert_allclose(array(ours), want, tolerance, tolerance, err_msg=str(what))


def check_derivatives(ours, theirs, *arrays, orders=2, tolerance=1e-9):
    """Value and derivatives of any order against PyTorch, in float64, along random directions."""
    rng = np.random.default_rng(7)
    a = [tf.tensor(x).requires_grad_() for x in arrays]
    b = [torch.tensor(x, requires_grad=True) for x in arrays]
    y, z = (ours(*a),), (theirs(*b),)
    close(y[0], z[0], tolerance, "value")
    for order in range(1, orders + 1):
        along = [rng.standard_normal(tuple(t.shape)) for t in y]
        s = sum((p * tf.tensor(u)).sum() for p, u in zip(y, along))
        t = sum((p * torch.tensor(u)).sum() for p, u in zip(z, along))
        if not t.requires_grad:
            return
        found = grad(s, a, create_graph=True, allow_unused=True)
        wanted = torch.autograd.grad(t, b, create_graph=True, allow_unused=True)
        y, z = (), ()
        for i, (p, q) in enumerate(zip(found, wanted)):
            zeros = np.zeros(arrays[i].shape)
            p = tf.tensor(zeros) if p is None else p
            q = torch.tensor(zeros) if q is None else q
            close(p, q, tolerance * 10.0**order, f"order {order}, argument {i}")
            y, z = (*y, p), (*z, q)


def digest(tensors):
    """Hash of the bits of tensors."""
    h = hashlib.sha256()
    for t in tensors:
        h.update(array(t).tobytes())
    return h.hexdigest()


def check_threads(make):
    """make() gives tensors whose bits do not depend on the number of threads."""
    before = tf.get_num_threads()
    try:
        found = set()
        for n in (1, 2, 3, 8):
            tf.set_num_threads(n)
            found.add(digest(make()))
    finally:
        tf.set_num_threads(before)
    assert len(found) == 1


def check_instruction_sets(file):
    """A script prints the same digest on every instruction set of this processor."""
    found = {}
    tests = str(pathlib.Path(__file__).resolve().parents[2])
    path = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    switches = os.environ | {DIGEST: "1", "PYTHONPATH": path}
    for name, supported in isa_list():
        if supported:
            done = subprocess.run(
                [sys.executable, file],
                env=switches | {"TINYFIN_ISA": name},
                capture_output=True,
                text=True,
                timeout=600,
            )
            assert done.returncode == 0, done.stderr
            found[name] = done.stdout.strip()
    assert len(set(found.values())) == 1, found
