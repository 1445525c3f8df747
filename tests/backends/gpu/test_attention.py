"""Attention on a GPU: several blocks, layouts, masks and values that the table's samples do not have."""

import warnings

import numpy as np
import pytest
import samples
from backends.gpu.alike import gpu

import tinyfin as tf
from tinyfin.ops import table

pytestmark = pytest.mark.usefixtures("gpu")
FORWARD, GRAD = table.OPS["sdpa_forward"], table.OPS["sdpa_grad"]


def plain(t):
    return t


def transposed(t):
    """As a projection leaves it: (batch, length, heads, width) in memory."""
    return t.transpose(-3, -2).contiguous().transpose(-3, -2)


def backwards(t):
    """Rows in falling order in memory."""
    return t.flip(-2).contiguous().flip(-2)


def scattered(t):
    """Every axis with a stride of its own, one backwards, columns apart."""
    axes = tuple(reversed(range(t.ndim)))
    return t.flip(-2).permute(axes).contiguous().permute(axes).flip(-2)


def tensors(lead, t, s, d, e, kv=None, seed=0):
    """g, q, k, v as arrays."""
    rng = np.random.default_rng(seed)
    other = (*lead[:-1], kv) if kv else lead
    shapes = (*lead, t, e), (*lead, t, d), (*other, s, d), (*other, s, e)
    return [rng.standard_normal(shape) for shape in shapes]


def compare(
    arrays,
    mask=None,
    causal=False,
    scale=None,
    dtype="float32",
    view=plain,
    grad=True,
    deterministic=False,
):
    """Results and gradients on both devices."""
    g, q, k, v = (samples.tensor(a, dtype) for a in arrays)
    mask = None if mask is None else tf.from_numpy(mask)
    found = []
    with warnings.catch_warnings(), tf.deterministic(deterministic):
        warnings.simplefilter("error")
        for device in ("cpu", gpu()):
            there = [view(x.to(device)) for x in (q, k, v)]
            masked = None if mask is None else mask.to(device)
            out, lse = FORWARD(*there, masked, causal, scale)
            found.append([out.cpu(), lse.cpu()])
            if grad:
                grads = GRAD(view(g.to(device)), *there, masked, view(out), lse, causal, scale)
                found[-1] += [x.cpu() for x in grads]
    for i, (a, b) in enumerate(zip(*found)):
        assert samples.bits(a) == samples.bits(b), f"result {i}"


@pytest.mark.parametrize("view", [plain, transposed, scattered])
def test_layouts(view):
    compare(tensors((2, 3), 9, 70, 8, 12), view=view)
    compare(tensors((2, 4), 6, 67, 5, 3, kv=2), causal=True, view=view)


@pytest.mark.parametrize("view", [plain, transposed, scattered])
@pytest.mark.parametrize("causal", [False, True])
def test_float64(view, causal):
    """Few queries and several blocks of them, heads that share keys; subnormal numbers, kept and flushed."""
    compare(tensors((2, 4), 6, 67, 5, 3, kv=2), causal=causal, view=view, dtype="float64")
    arrays = tensors((1, 4), 66, 70, 5, 4, kv=2)
    compare(arrays, causal=causal, view=view, dtype="float64")
    for mode in (False, True):
        tiny = [a * 2.0**-520 for a in arrays]
        compare(tiny, causal=causal, view=view, dtype="float64", deterministic=mode)


def test_float64_masks():
    rng = np.random.default_rng(6)
    chosen = rng.uniform(size=(2, 1, 5, 70)) > 0.4
    chosen[0, 0, 3] = False
    arrays = tensors((2, 3), 5, 70, 4, 6)
    arrays[1][0, 1, 2], arrays[2][1, 0, 66] = 1e200, np.inf
    arrays[3][1, 1, 69] = np.nan
    added = np.where(chosen, rng.standard_normal(chosen.shape), -np.inf)
    for mask in (chosen, added, added.astype("float32")):
        compare(arrays, mask, scale=0.3, dtype="float64")


def test_many_axes():
    compare(tensors((2, 1, 3, 2, 2, 2), 3, 4, 3, 2, kv=1), view=scattered)


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_halves(low):
    compare(tensors((2,), 5, 66, 8, 4), dtype=low)


@pytest.mark.parametrize("shape", [(2, 3, 4, 70), (1, 3, 1, 70), (4, 1), (1, 70)])
def test_masks(shape):
    rng = np.random.default_rng(5)
    chosen = rng.uniform(size=shape) > 0.4
    chosen[..., :1, :] = len(shape) == 2 and shape[0] == 1
    added = np.where(chosen, rng.standard_normal(shape), -np.inf).astype("float32")
    arrays = tensors((2, 3), 4, 70, 4, 4)
    compare(arrays, chosen)
    compare(arrays, added)


def test_empty():
    for sizes in ((0, 5, 3, 2), (5, 0, 3, 2), (5, 4, 0, 2), (5, 4, 3, 0)):
        for dtype in ("float32", "float64"):
            compare(tensors((2, 2), *sizes), scale=0.5, dtype=dtype)
    compare(tensors((0, 2), 3, 4, 5, 6))


def test_wide():
    for dtype in ("float32", "float64"):
        compare(tensors((1,), 2, 3, 1030, 1025), dtype=dtype)


def test_special_values():
    """Scores of any size, values without end, zeros with signs: also where nothing is seen of them."""
    for causal in (False, True):
        g, q, k, v = tensors((1, 2), 70, 70, 4, 4)
        q[0, 0, 3] = 1e30
        k[0, 0, 66] = np.inf
        v[0, 1, 67] = np.nan
        v[0, 1, 5] = -0.0
        q[0, 1, 9, 1] = np.nan
        compare((g, q, k, v), causal=causal)


def test_tiny_numbers():
    arrays = [a * 1e-20 for a in tensors((2,), 5, 66, 4, 4)]
    for mode in (False, True):
        compare(arrays, deterministic=mode)
        compare([a * 1e-18 for a in arrays], deterministic=mode)


def test_tiles():
    """Queries and keys of several blocks, the last ones not whole; views and heads that share keys."""
    compare(tensors((4, 4), 67, 70, 20, 36, kv=2), view=backwards)


def test_tiles_causal():
    compare(tensors((8,), 70, 130, 4, 4), causal=True)
    compare(tensors((2, 4), 130, 70, 4, 4), causal=True, view=transposed)


def test_tiles_special_values():
    """Infinities and NaN where they count, and where nothing is seen of them."""
    g, q, k, v = tensors((8,), 70, 130, 4, 4)
    k[0, 66], q[0, 3], v[1, 67], v[1, 5], q[2, 9, 1], v[3, 69] = (
        np.inf,
        1e30,
        np.nan,
        -0.0,
        np.nan,
        np.inf,
    )
    compare((g, q, k, v), causal=True)


def test_tiles_masked():
    chosen = np.random.default_rng(2).uniform(size=(8, 70, 130)) > 0.4
    chosen[:, 5] = False
    compare(tensors((8,), 70, 130, 4, 4), chosen, scale=0.7)


def test_tiles_wide():
    """More columns than one work group keeps; halves."""
    compare(tensors((8,), 70, 66, 12, 140), dtype="float16")
