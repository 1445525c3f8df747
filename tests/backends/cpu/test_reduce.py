"""Reductions: the canonical order against its rule in NumPy, all dtypes and layouts, extrema,
errors."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from backends.cpu.chain import canonical_sum

import tinyfin as tf

FLOATS = {"float32": np.float32, "float64": np.float64}
SHAPES = [
    ((5,), 0),
    ((1,), 0),
    ((3, 70), 1),
    ((70, 3), 0),
    ((70, 33), 0),
    ((2100, 40), 0),
    ((2, 3000, 20), 1),
    ((4, 5, 6, 7), (1, 3)),
    ((4, 5, 6, 7), (0, 2)),
    ((40, 3, 50), (0, 2)),
    ((3, 70000), 1),
    ((70000, 3), 0),
    ((9, 9, 9), None),
    ((5000, 9), (0, 1)),
    ((20, 1, 30), 1),
    ((6145, 17), 0),
    ((140000,), 0),
    ((300, 16), 1),
    ((300, 3), 1),
    ((2, 0, 3), 2),
]


def axes(shape, dim):
    """Reduced axes as a tuple."""
    if dim is None:
        return tuple(range(len(shape)))
    return (dim,) if isinstance(dim, int) else dim


def rows(x, dim):
    """One row per result: the reduced elements in row-major order, and the shape of the results."""
    dims = axes(x.shape, dim)
    kept = [d for d in range(x.ndim) if d not in dims]
    shape = [x.shape[d] for d in kept]
    n = math.prod(x.shape[d] for d in dims)
    return np.ascontiguousarray(x.transpose([*kept, *dims])).reshape(math.prod(shape), n), shape


def layouts(x):
    """The same numbers, stored in other ways."""
    t = tf.tensor(x)
    yield t
    dims = tuple(reversed(range(x.ndim)))
    yield t.permute(dims).contiguous().permute(dims)
    yield t.flip(dims).contiguous().flip(dims)
    big = tf.zeros(tuple(2 * s for s in x.shape), dtype=t.dtype)
    view = big[tuple(slice(None, None, 2) for _ in x.shape)]
    view.copy_(t)
    yield view


def same_bits(t, want):
    """Equal to the last bit, the sign of zero included."""
    got = t.numpy()
    return got.shape == want.shape and got.dtype == want.dtype and got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_canonical_order(shape, dim, dtype, rng):
    x = (rng.standard_normal(shape) * 100).astype(dtype)
    parts, result = rows(x, dim)
    want = np.array([canonical_sum(v) for v in parts], dtype).reshape(result)
    n = parts.shape[1]
    with np.errstate(all="ignore"):
        mean = want.reshape(-1) / np.array(n, dtype)
        square = (parts - mean[:, None]) ** 2
        var = np.array([canonical_sum(v) for v in square], dtype) / np.array(max(n - 1, 0), dtype)
    for t in layouts(x):
        assert same_bits(t.sum(dim), want)
        assert same_bits(t.mean(dim), mean.reshape(result))
        if n > 1:
            assert same_bits(t.var(dim), var.reshape(result))
            assert same_bits(t.std(dim), np.sqrt(var).reshape(result))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_summed_in_float32(dtype, rng):
    half = tf.tensor(rng.standard_normal((130, 300)).astype("float32")).to(getattr(tf, dtype))
    wide = half.float()
    for dim in (0, 1, None):
        assert same_bits(half.sum(dim).float(), wide.sum(dim).to(half.dtype).float().numpy())
        assert same_bits(half.var(dim).float(), wide.var(dim).to(half.dtype).float().numpy())
    assert tf.ones(70000, dtype=half.dtype).mean().item() == 1
    assert tf.equal(wide.sum(1, dtype=half.dtype), wide.to(half.dtype).sum(1))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_integers(shape, dim, dtype, rng):
    x = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    parts, result = rows(x, dim)
    for t in layouts(x):
        assert same_bits(t.sum(dim), parts.sum(1, dtype="int64").reshape(result))
        assert same_bits(t.prod(dim), parts.prod(1, dtype="int64").reshape(result))
        if parts.shape[1]:
            assert same_bits(t.amax(dim), parts.max(1).reshape(result))
            assert same_bits(t.amin(dim), parts.min(1).reshape(result))


def test_empty():
    e = tf.zeros(0, 4)
    assert e.sum(0).tolist() == [0] * 4 and math.copysign(1, e.sum().item()) == 1
    assert e.prod(0).tolist() == [1] * 4 and e.prod().item() == 1
    assert math.isnan(e.mean().item()) and math.isnan(e.var().item())
    assert e.all().item() and not e.any().item()
    assert e.amax(1).shape == (0,) and e.argmax(1).shape == (0,) and e.sum(1).shape == (0,)
    assert tf.logsumexp(e, 0).tolist() == [-math.inf] * 4
    for call in (
        lambda: e.amax(0),
        lambda: e.argmax(0),
        lambda: e.argmin(),
        lambda: e.amin(),
        lambda: tf.zeros(2, 0).max(1),
    ):
        with pytest.raises((IndexError, RuntimeError), match=r"a?(rg)?m(ax|in): "):
            call()


def test_errors_say_what_came():
    with pytest.raises(
        RuntimeError, match=r"mean: input has dtype tinyfin.int64, expected a floating"
    ):
        tf.arange(3).mean()
    assert tf.arange(3).mean(dtype=tf.float32).item() == 1
    with pytest.raises(RuntimeError, match=r"var: input has dtype"):
        tf.arange(3).var()
    with pytest.raises(IndexError, match=r"argmax: dim 2 is out of range, expected -1 to 0"):
        tf.ones(3).argmax(2)
    with pytest.raises(IndexError, match=r"sum: dim -3 is out of range"):
        tf.ones(2, 2).sum(-3)
    with pytest.raises(RuntimeError, match=r"appears twice"):
        tf.ones(2, 2).sum((0, -2))


def test_dtype_and_keepdim():
    x = tf.tensor([[1.5, 2.5], [3.5, -1.0]])
    assert x.sum(dtype=tf.int64).item() == 5 and x.sum(1, keepdim=True).shape == (2, 1)
    assert x.sum(dtype=tf.float64).dtype is tf.float64 and x.sum((0, 1), True).shape == (1, 1)
    assert tf.tensor([1, -1]).sum(dtype=tf.bool).item() is True
    assert tf.tensor([200, 100], dtype=tf.uint8).sum(dtype=tf.uint8).item() == 44
    assert tf.ones(3, dtype=tf.uint8).any().dtype is tf.uint8
    assert x.sum(()).item() == x.sum().item() == 6.5
    assert tf.tensor(3.0).sum(0).item() == tf.tensor(3.0).amax(-1).item() == 3
    assert tf.tensor(2).argmax(0).item() == 0


def test_variance_keywords():
    x = tf.tensor([1.0, 2.0, 4.0])
    assert abs(x.var(unbiased=False).item() - 14 / 9) < 1e-6
    assert abs(x.var(correction=0).item() - 14 / 9) < 1e-6
    assert x.var(0, False).item() == x.var(correction=0).item()
    assert math.isnan(tf.ones(1).var().item()) and x.var(correction=5).item() == math.inf
    wide = 1e4 + tf.arange(8) % 2
    assert abs(wide.var().item() - 8 / 28) < 1e-3


SCRIPT = """
import hashlib, numpy as np, tinyfin as tf
r = np.random.default_rng(0)
h = hashlib.sha256()
for dt in ("float32", "float64"):
    x = tf.tensor((r.standard_normal((300, 7001)) * 50).astype(dt))
    for t in (x, x.t(), x[:, ::3], x.reshape(50, 6, 7001)):
        for d in (0, 1, None):
            for f in ("sum", "mean", "var", "amax", "argmax", "logsumexp"):
                a = () if d is None and f == "argmax" else (d if f != "logsumexp" or d is not None
                                                            else tuple(range(t.ndim)),)
                h.update(getattr(tf, f)(t, *a).contiguous().numpy().tobytes())
    p = tf.tensor((1 + r.standard_normal((70, 3000)) * 1e-3).astype(dt))
    h.update(p.prod(1).numpy().tobytes() + p.prod(0).numpy().tobytes())
    h.update(x.cumsum(1).numpy().tobytes() + x.half().cumsum(0).float().numpy().tobytes())
    v, i = x.sort(1); h.update(v.numpy().tobytes() + i.numpy().tobytes())
    w = tf.zeros(50, 30, dtype=getattr(tf, dt)).index_add(0, tf.tensor(r.integers(0, 50, 7001)),
                                                          x[:30].t())
    h.update(w.numpy().tobytes())
tiny = tf.tensor((r.standard_normal((300, 2101)) * 1e-38).astype("float32"))
with tf.deterministic():          # subnormal numbers count as zeros there
    for t in (tiny, tiny.t(), tiny[:, :1], tiny[:1], tiny[:40]):
        for d in (0, 1):
            h.update(t.sum(d).numpy().tobytes() + t.var(d, 0).numpy().tobytes())
            h.update(t.prod(d).numpy().tobytes() + t.amax(d).numpy().tobytes())
            h.update(t.contiguous().cumsum(d).numpy().tobytes())
tf.manual_seed(5)
for f in (tf.rand, tf.randn):
    h.update(f(70001).numpy().tobytes() + f(70001, dtype=tf.float64).numpy().tobytes())
h.update(tf.empty(9999).exponential_().numpy().tobytes() + tf.randint(-9, 10**12,
                                                                      (5000,)).numpy().tobytes())
h.update(tf.dropout(tf.ones(9999), 0.3).numpy().tobytes() + tf.randperm(5000).numpy().tobytes())
print(h.hexdigest())
"""


def test_same_bits_on_every_instruction_set_and_thread_count():
    """Reductions, scans, sorts, additions by index and random numbers in one hash."""
    found = {}
    for isa in [name for name, here in tf.isa_list() if here]:
        for threads in ("1", "2", "5"):
            env = {**os.environ, "TINYFIN_ISA": isa, "TINYFIN_THREADS": threads}
            run = subprocess.run(
                [sys.executable, "-c", SCRIPT],
                env=env,
                capture_output=True,
                text=True,
                cwd=os.path.dirname(__file__),
            )
            assert run.returncode == 0, run.stderr
            found[isa, threads] = run.stdout.strip()
    assert len(set(found.values())) == 1, found
