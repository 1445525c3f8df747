"""Every subject of the table on every device of --device: the CPU's bits, forward and backward, in normal
and in deterministic mode, and no call that silently ran elsewhere."""

import contextlib
import functools
import itertools
import warnings

import numpy as np
import pytest
import samples

import tinyfin as tf
from tinyfin.cli.driver import keeps
from tinyfin.cli.shader_rows import FLOATS, NEAR, bits_of, distance, explained

SUBJECTS = samples.subjects()
FALLS_BACK = {
    "digamma": "its derivative is polygamma",
    "polygamma": "it computes in float64",
}
"""Subject -> why it may still run on the CPU."""

CHAINS = {
    *("matmul", "mm", "bmm", "mv", "dot", "inner", "addmm", "addmv", "baddbmm", "linear", "einsum"),
    *("matmul_onto", "linear_relu"),
    *("tensordot", "scaled_dot_product_attention", "sdpa_forward", "sdpa_grad"),
    *("recurrence", "recurrence_steps", "recurrence_grad"),
    *("convolution", "conv_grad_input", "conv_grad_weight"),
    *(f"conv{transposed}{d}d" for transposed in ("", "_transpose") for d in (1, 2, 3)),
}
"""Long chains of products: in normal mode, devices without fused multiply-add round each link twice, and
some multiply matrices of halves in an order of their own."""


GIVEN = {"group_norm_grad"}
"""Devices run its formula, which finds statistics anew where the CPU's kernel takes those of the sample, rounded;
gradients of group_norm compare the two."""


def chained(want, got):
    """Whether two results differ by no more than other roundings in a chain may bring."""
    a, b = samples.array(want), samples.array(got)
    if a.shape != b.shape or not np.isfinite(a).all():
        return False
    least = 2.0**-52 if want.dtype is tf.float64 else 2.0**-23
    eps = 256 * least + samples.EPS.get(want.dtype.name, 0)
    return bool((np.abs(a - b) <= eps * max(np.abs(a).max(), 1e-30)).all())


@functools.cache
def flushes(device):
    """Whether a device takes subnormal numbers for zeros in normal mode, where the CPU keeps them."""
    return not keeps(device)


def as_flushed(want, got, flushed):
    """Whether flushing makes one result out of the other, but for last places."""
    name = want.dtype.name
    if name == "float64" or want.dtype is not got.dtype or want.shape != got.shape:
        return False  # devices keep subnormal numbers of float64
    a, b, c = bits_of(want), bits_of(got), bits_of(flushed)
    near = distance(a, b, name) <= NEAR if name in FLOATS else a == b
    return bool((explained(a, b, c, name) | near).all())


@pytest.fixture
def elsewhere(device, need_device):
    """The devices besides the CPU."""
    if device == "cpu":
        pytest.skip("the CPU is what others are compared with: --device vulkan,opengl")
    need_device(device)
    return device


@contextlib.contextmanager
def no_fallback(name):
    """Calls that run on the CPU instead are errors, but for the subjects that may."""
    tf.backends.base.STATE["warned"].clear()
    with warnings.catch_warnings():
        if name not in FALLS_BACK:
            warnings.filterwarnings("error", message="tinyfin: .* runs on the cpu")
        yield


def results(name, sample, dtype, device, graded, scale=1.0):
    """Host copies of the results, and of the gradients of their sum."""
    inputs, places = [], itertools.count()

    def prepare(a):
        a = a * scale if a.dtype == "float64" and scale != 1 else a
        t = samples.tensor(a, dtype).to(device)
        free = next(places) not in sample.fixed
        if graded and free and t.is_floating_point():
            t = t.detach().requires_grad_()
            inputs.append(t)
        return t

    tf.manual_seed(7)
    args, kwargs = samples.mapped(sample, prepare)
    found = samples.flat(samples.outcome(name, args, kwargs))
    for t in found:
        assert t.device.type == device.partition(":")[0], f"{name} left {device}"
    out = [t.detach().cpu() for t in found]
    if graded:
        outs = [t for t in found if t.requires_grad]
        if outs:
            total = sum((t.float() * t.float()).sum() for t in outs)
            grads = tf.autograd.grad(total, inputs, allow_unused=True)
            assert all(g is None or g.device == t.device for g, t in zip(grads, inputs)), name
            out += [g.cpu() for g in grads if g is not None]
    return out


def compare(name, device, dtype, deterministic, graded, scale=1.0):
    if name in GIVEN:
        pytest.skip("takes statistics as they are given")
    for sample in samples.samples_of(name):
        if not samples.applies(sample, dtype):
            continue
        with tf.deterministic(deterministic), no_fallback(name):
            want = results(name, sample, dtype, "cpu", graded and sample.grad, scale)
            got = results(name, sample, dtype, device, graded and sample.grad, scale)
            assert len(want) == len(got)
            flushed = None
            for i, (a, b) in enumerate(zip(want, got)):
                same = samples.bits(a) == samples.bits(b)
                if not (same or deterministic) and name in CHAINS:
                    same = chained(a, b)
                if not (same or deterministic) and flushes(device):
                    if flushed is None:
                        with tf.deterministic():
                            flushed = results(
                                name, sample, dtype, "cpu", graded and sample.grad, scale
                            )
                    same = as_flushed(a, b, flushed[i])
                assert same, f"{name}{sample} {dtype} result {i}"


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_float32(name, elsewhere):
    if "float32" not in samples.dtypes_of(name):
        pytest.skip("not for float32")
    compare(name, elsewhere, "float32", deterministic=False, graded=True)


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_deterministic(name, elsewhere):
    if "float32" not in samples.dtypes_of(name):
        pytest.skip("not for float32")
    compare(name, elsewhere, "float32", deterministic=True, graded=True, scale=2.0**-64)


@pytest.mark.parametrize("name", sorted(CHAINS & set(SUBJECTS)))
def test_deterministic_chains_of_float64(name, elsewhere):
    """Of these, the test of other dtypes does not compare all bits."""
    compare(name, elsewhere, "float64", deterministic=True, graded=True)
    compare(name, elsewhere, "float64", deterministic=True, graded=False, scale=2.0**-520)


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_other_dtypes(name, elsewhere):
    for dtype in samples.dtypes_of(name):
        if dtype != "float32":
            compare(name, elsewhere, dtype, deterministic=False, graded=False)
