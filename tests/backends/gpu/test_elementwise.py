"""Elementwise rows and copies on a GPU: layouts, casts, writes; tests/ops/test_devices.py has all rows."""

import warnings

import numpy as np
import pytest
import samples

import tinyfin as tf
from tinyfin.ops.row import TABLE, F

SUBJECTS = samples.subjects()


def results(name, sample, dtype, device, relay=lambda t: t):
    """Host copies of the results of a call on a device."""
    args, kwargs = samples.mapped(sample, lambda a: relay(samples.tensor(a, dtype).to(device)))
    return [t.cpu() for t in samples.flat(SUBJECTS[name](*args, **kwargs))]


def exchanged(t):
    """First and last axis exchanged in memory."""
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.ndim else t


def backwards(t):
    """Negative strides on every axis."""
    axes = tuple(range(t.ndim))
    return t.flip(axes).contiguous().flip(axes) if t.ndim else t


def inside(t):
    """Every second element of a larger tensor, behind others."""
    wide = t.unsqueeze(-1).expand(*t.shape, 2).contiguous()
    return wide[..., 1]


@pytest.mark.parametrize("change", [exchanged, backwards, inside])
def test_layouts(change, gpu):
    def moved(t):
        assert str(t.device) in (f"{gpu}:0", "cpu")
        out = change(t)
        assert out.device == t.device
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("sub", "mul", "where"):
            for sample in samples.samples_of(name):
                want = results(name, sample, "float32", "cpu", moved)
                for a, b in zip(want, results(name, sample, "float32", gpu, moved)):
                    assert samples.bits(a) == samples.bits(b), f"{name}{sample}"


@pytest.mark.parametrize("source", samples.ALL)
def test_casts(source, gpu):
    values = np.array([0, 1, -1, 2.5, -2.5, 127, 128, 255, 256, -129, 65504, 70000, 1e9, -3e9, 5e9])
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-8, 0.5, 1.5, 3e38])
    x = samples.tensor(np.concatenate([values, special]), "float64").to(getattr(tf, source))
    there = x.to(gpu)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for target in samples.ALL:
            dtype = getattr(tf, target)
            assert samples.bits(there.to(dtype).cpu()) == samples.bits(x.to(dtype)), target


@pytest.mark.parametrize("dtype", samples.ALL)
def test_copies_move_bits(dtype, gpu):
    x = samples.tensor(np.arange(-60, 60).reshape(2, 3, 4, 5) % 7, dtype)
    there = x.to(gpu)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for view in (
            lambda t: t.permute(3, 1, 0, 2),
            lambda t: t.flip(1, 3)[:, ::2],
            lambda t: t[1].expand(2, 3, 4, 5).transpose(0, 3),
        ):
            assert samples.bits(view(there).contiguous().cpu()) == samples.bits(view(x))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize(
    "shape, order",
    [((70, 65), (1, 0)), ((2, 3, 40, 33), (0, 3, 1, 2)), ((2, 17, 2, 64), (3, 2, 1, 0))],
)
def test_transposed_copies(shape, order, dtype, gpu):
    """Tiles with ragged edges, dense and into a view, from a view that begins elsewhere and runs backwards."""
    x = samples.tensor(np.arange(np.prod(shape)).reshape(shape) % 251, dtype)
    there = x.to(gpu)
    assert samples.bits(there.permute(order).contiguous().cpu()) == samples.bits(x.permute(order))
    views = [t.flip(1)[1:].permute(order) for t in (x, there)]
    wide = tf.zeros(2, *views[0].shape, dtype=x.dtype)
    far = wide.to(gpu)
    wide[1].copy_(views[0])
    far[1].copy_(views[1])
    assert samples.bits(far.cpu()) == samples.bits(wide)


def test_many_axes(gpu):
    """More axes than one dispatch walks."""
    x = tf.rand(2, 3, 2, 3, 2, 3, 2, 2)
    order = (7, 5, 3, 1, 0, 2, 4, 6)
    y = tf.rand(2, 1, 2, 3, 1, 3, 2, 1)
    want = x.permute(order) * y.expand(x.shape).permute(order)
    got = x.to(gpu).permute(order) * y.to(gpu).expand(x.shape).permute(order)
    assert samples.bits(got.cpu()) == samples.bits(want)


@pytest.mark.parametrize("sizes, falls", [((5, 5), False), ((33, 33), True)])
def test_many_dispatches(sizes, falls, gpu):
    """Axes that one dispatch cannot walk become several; thousands of them fall back, writes too."""
    x = tf.rand(sizes[0], 3, sizes[1], 3, 3, 3, 3, 3)
    there = x.to(gpu)
    every = (slice(None), slice(None, None, 2)) * 4
    tf.backends.base.STATE["warned"].clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        product = there[every] * 3
        there[every].add_(1)
    assert ["mul runs on the cpu" in str(w.message) for w in seen] == [True, False][: 2 * falls]
    assert samples.bits(product.cpu()) == samples.bits(x[every] * 3)
    x[every].add_(1)
    assert samples.bits(there.cpu()) == samples.bits(x)


def test_integer_division_by_zero(gpu):
    """The CPU raises; a device would have to be waited for."""
    x = tf.tensor([7, -7, 0], dtype=tf.int32, device=gpu)
    assert (x // 0).cpu().tolist() == [0, 0, 0] and (x % 0).cpu().tolist() == [0, 0, 0]


def test_large_numbers_are_rounded_once(gpu):
    number = (1 << 60) + (1 << 36) + 1
    assert (tf.zeros(1, device=gpu) + number).item() == (tf.zeros(1) + number).item()


def test_numbers_and_writes(gpu):
    x = tf.arange(12.0).reshape(3, 4)
    there = x.to(gpu)
    assert ((there + 2.5) * 3 - True).cpu().tolist() == ((x + 2.5) * 3 - True).tolist()
    there[:, 1].mul_(10).add_(0.5)
    there[2] = 7
    x[:, 1].mul_(10).add_(0.5)
    x[2] = 7
    assert there.cpu().tolist() == x.tolist()
    assert (tf.arange(5, dtype=tf.int8).to(gpu) + 120).cpu().tolist() == [
        120, 121, 122, 123, 124,
    ]  # fmt: skip


def test_order_of_dependent_work(gpu):
    """Each step reads what the one before wrote, over many submissions."""
    x, y = tf.zeros(1000, device=gpu), tf.ones(1000, device=gpu)
    for _ in range(300):
        x = x + y
        x.mul_(1.0)
    assert x.cpu().tolist() == [300.0] * 1000


def test_a_training_step(gpu):
    """Rows with and without shaders together: the CPU's losses."""
    losses = {}
    for device in ("cpu", gpu):
        tf.manual_seed(3)
        net = tf.nn.Sequential(tf.nn.Linear(4, 8), tf.nn.Tanh(), tf.nn.Linear(8, 1)).to(device)
        opt = tf.optim.SGD(net.parameters(), lr=0.1)
        x = tf.rand(16, 4).to(device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            losses[device] = []
            for _ in range(3):
                opt.zero_grad()
                loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
                loss.backward()
                opt.step()
                losses[device].append(loss.item())
    assert losses["cpu"] == pytest.approx(losses[gpu], rel=1e-5)


def float64_inputs(n):
    """Any bits, ordinary numbers, numbers near both ends of the exponents, and special ones with one another."""
    rng = np.random.default_rng(5)
    tiny, huge = np.finfo("f8").tiny, np.finfo("f8").max
    special = [
        0.0,
        np.inf,
        np.nan,
        1,
        0.5,
        1.5,
        2.5,
        3,
        5e-324,
        tiny / 4,
        tiny * (1 - 2.0**-52),
        tiny,
    ]
    special += [huge, 1e-160, 1e160, 2**52 + 0.5, 2.0**53, 2.0**63, 27.3, 709.8, 745.2, 7.5, 1e22]
    special = np.array([*special, *(-v for v in special)])
    for first in (np.repeat(special, len(special)), np.tile(special, len(special))):
        yield np.concatenate(
            [
                first,
                rng.integers(0, 2**64, n, dtype=np.uint64).view("f8"),
                rng.normal(size=n),
                rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n),
                rng.normal(size=n) * 2.0 ** rng.integers(-1074, -1000, n),
            ]
        )


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name", [r.name for r in TABLE.values() if r.expr and "f" in r.dtypes])
def test_float64(name, deterministic, gpu):
    """Every row has the CPU's bits on any numbers, subnormal ones too, kept and flushed."""
    row = TABLE[name]
    a, b = (tf.from_numpy(x).to("cpu") for x in float64_inputs(500))
    inputs = [a > 0 if name == "where" else a, b, a][: len(row.arg_names)]
    attributes = {slot.name: 0.7 for slot, _, _ in row.slots()}
    with warnings.catch_warnings(), tf.deterministic(deterministic):
        warnings.simplefilter("error")
        want = getattr(F, name)(*inputs, **attributes)
        got = getattr(F, name)(*(x.to(gpu) for x in inputs), **attributes)
        assert samples.bits(got.cpu()) == samples.bits(want)
        if row.scalars and len(inputs) == 2:
            got = getattr(F, name)(a.to(gpu), 0.1, **attributes)
            assert samples.bits(got.cpu()) == samples.bits(getattr(F, name)(a, 0.1, **attributes))


@pytest.mark.parametrize("target", samples.ALL)
def test_float64_casts(target, gpu):
    x = tf.from_numpy(next(float64_inputs(500))).to("cpu")
    for deterministic in (False, True):
        with tf.deterministic(deterministic):
            want, got = (t.to(getattr(tf, target)) for t in (x, x.to(gpu)))
            assert samples.bits(got.cpu()) == samples.bits(want)
