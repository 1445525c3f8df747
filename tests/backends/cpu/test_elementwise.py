"""Elementwise kernels: any layout, every cast, halves bit by bit, in-place forms."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyfin as tf

settings.register_profile("elementwise", deadline=None, max_examples=200)
settings.load_profile("elementwise")

NAMES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]
INTEGERS = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-32768, 32767), "int32": (-(2**31), 2**31 - 1),
            "int64": (-(2**63), 2**63 - 1)}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 126.9, 127.5, -128.5, 255.9, 256.0, 300.0, -300.0, 32767.9, 40000.0,
           65504.0, 65519.9, 65520.0, 1e5, 2147483520.0, 2147483648.0, -2147483648.0, 3e9, 9.2e18, 9.3e18, -9.3e18, 1e30,
           6e-8, 3e-8, 2.9e-8, 6.1e-5, 1e-40, 1e-45, 3.4e38, float("inf"), float("-inf"), float("nan")]  # fmt: skip


@st.composite
def windows(draw, shape):
    """(tensor, array) of a shape over strided, broadcast, reversed or permuted memory."""
    order = draw(st.permutations(range(len(shape))))
    steps, sizes = [], []
    for d in order:
        step = draw(st.sampled_from([1, 1, 2, -1, 0]))
        steps.append(step)
        sizes.append(1 if step == 0 else shape[d] * max(abs(step), 1))
    a = (
        np.random.default_rng(draw(st.integers(0, 99)))
        .standard_normal(sizes)
        .astype(draw(st.sampled_from(["f4", "f8"])))
    )
    t = tf.tensor(a)
    key = tuple(slice(None, None, s) if s else slice(None) for s in steps)
    a, t = a[(*key, ...)], t[(*key, ...)]
    a = np.broadcast_to(a, [shape[d] for d in order])
    t = t.expand([shape[d] for d in order])
    back = [order.index(d) for d in range(len(shape))]
    return t.permute(back), a.transpose(back)


SHAPES = st.sampled_from(
    [
        (),
        (1,),
        (5,),
        (60,),
        (2, 3),
        (3, 70),
        (50, 2),
        (2, 3, 4),
        (4, 1, 60),
        (2, 2, 2, 3),
        (0, 3),
        (700,),
    ]
)


@given(SHAPES.flatmap(lambda s: st.tuples(windows(s), windows(s))))
def test_any_layouts(case):
    (x, a), (y, b) = case
    np.testing.assert_array_equal((x + y).numpy(), a + b)
    np.testing.assert_array_equal((x > y).numpy(), a > b)
    np.testing.assert_array_equal((x * 2).numpy(), a * 2)
    np.testing.assert_array_equal(x.clone().numpy(), a)
    np.testing.assert_array_equal(x.to(tf.float64).numpy(), a.astype("f8"))
    np.testing.assert_array_equal(tf.where(x > 0, x, y).numpy(), np.where(a > 0, a, b))


@given(SHAPES.flatmap(lambda s: st.tuples(windows(s), windows(s))))
def test_in_place_into_any_layout(case):
    (x, a), (y, b) = case
    if a.dtype != np.float64 or any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape)):
        return
    want = a + b
    x.add_(y)
    np.testing.assert_array_equal(x.numpy(), want)
    x.copy_(y)
    np.testing.assert_array_equal(x.numpy(), b.astype("f8"))
    x.neg_().mul_(2.0)
    np.testing.assert_array_equal(x.numpy(), b.astype("f8") * -2)


@pytest.mark.parametrize("shapes", [((3, 1), (1, 4)), ((2, 3, 1), (4,)), ((1,), (5, 5)), ((), (3,)), ((0, 1), (1, 3)),
                                    ((1, 70000), (3, 1)), ((70000, 1), (1, 2)), ((300, 300), (300, 1))])  # fmt: skip
def test_broadcasting(shapes, rng):
    a, b = (rng.standard_normal(s).astype("f4") for s in shapes)
    np.testing.assert_array_equal((tf.tensor(a) * tf.tensor(b)).numpy(), a * b)
    np.testing.assert_array_equal((tf.tensor(b) - tf.tensor(a)).numpy(), b - a)


@pytest.mark.parametrize("n", [0, 1, 47, 48, 49, 511, 512, 513, 32767, 32768, 32769, 100003])
def test_block_borders(n, rng):
    a = rng.standard_normal(2 * n).astype("f4")
    x = tf.tensor(a)
    np.testing.assert_array_equal((x[::2] + x[1::2]).numpy(), a[::2] + a[1::2])
    np.testing.assert_array_equal(
        (x[:n].half() + x[n:].double()).numpy(), a[:n].astype("f2").astype("f8") + a[n:]
    )
    np.testing.assert_array_equal((x + 1.5).numpy(), a + np.float32(1.5))
    np.testing.assert_array_equal(x.view(2, n).T.contiguous().numpy(), a.reshape(2, n).T)


OPERANDS = {
    "dense": lambda x: x,
    "column": lambda x: x[..., :1],
    "row": lambda x: x[:1],
    "plane": lambda x: x[:, :1] if x.ndim > 2 else x[0],
    "value": lambda x: x[(slice(0, 1),) * x.ndim],
    "part": lambda x: np.concatenate([x, x], -1)[..., 1 : 1 + x.shape[-1]],
    "turned": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "backwards": lambda x: x[:, ::-1],
}


@pytest.mark.parametrize(
    "dtypes", [("float32", "float32"), ("float16", "float32"), ("uint8", "int64")]
)
@pytest.mark.parametrize(
    "shape", [(300, 3), (40, 100), (9, 256), (70, 16, 4), (9, 5, 7, 8), (5000, 16)]
)
def test_short_rows(shape, dtypes, rng):
    """Rows pass through L1 together, whatever of the operands repeats itself, by any number of threads."""
    numbers = [rng.integers(0, 9, shape).astype(d) for d in dtypes]
    before = tf.get_num_threads()
    for left in OPERANDS.values():
        for right in OPERANDS.values():
            a, b = left(numbers[0]), right(numbers[1])
            x, y = tf.from_numpy(a), tf.from_numpy(b)
            np.testing.assert_array_equal((x + y).numpy(), a + b)
            z = y.expand(shape)
            tf.set_num_threads(3)
            np.testing.assert_array_equal(z.contiguous().numpy(), np.broadcast_to(b, shape))
            np.testing.assert_array_equal(z.float().numpy(), np.broadcast_to(b, shape))
            tf.set_num_threads(before)


@pytest.mark.parametrize(
    "dtypes", [("float32", "float32"), ("float16", "float64"), ("uint8", "int16")]
)
@pytest.mark.parametrize("shape", [(40, 300), (3, 130, 301), (2, 3, 64, 257), (16, 5000)])
def test_turned_operands(shape, dtypes, rng):
    """Inputs whose rows lie across memory are turned round slab by slab, by any number of threads."""
    a, b = (rng.integers(0, 9, shape).astype(d) for d in dtypes)
    before = tf.get_num_threads()
    for turned in (OPERANDS["turned"], lambda x: OPERANDS["turned"](x)[..., ::-1]):
        u, v = turned(a), turned(b)
        x, y = tf.from_numpy(u), tf.from_numpy(v)
        for n in (1, 3):
            tf.set_num_threads(n)
            np.testing.assert_array_equal((x + tf.from_numpy(b)).numpy(), u + b)
            np.testing.assert_array_equal((x * y).numpy(), u * v)
            np.testing.assert_array_equal((x == y).numpy(), u == v)
            np.testing.assert_array_equal((x * 2).numpy(), u * 2)
            z = tf.from_numpy(b.copy())
            np.testing.assert_array_equal(z.sub_(y).numpy(), b - v)
        tf.set_num_threads(before)


def reference(values, source, target):
    """What a cast from one dtype to another gives, element by element."""
    if target == "bool":
        return values != 0
    if target in INTEGERS:
        low, high = INTEGERS[target]
        if source in ("float16", "bfloat16", "float32", "float64"):
            return np.array([0 if v != v else low if v <= low else high if v >= high else int(v) for v in values.tolist()],
                            dtype=target)  # fmt: skip
        return values.astype(target)
    with np.errstate(over="ignore"):
        if target == "bfloat16":
            f = values.astype("f4")
            u = f.view("u4").astype("u8")
            u = (u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000
            rounded = u.astype("u4").view("f4")
            return np.where(np.isnan(f), f, rounded)
        if target == "float16":
            return values.astype("f4").astype("f2")
        return values.astype(target)


@pytest.mark.parametrize("source, target", list(itertools.product(NAMES, NAMES)))
def test_all_casts(source, target):
    with np.errstate(all="ignore"):
        a = np.array(SPECIAL * 3, dtype="f8")
        if source == "bfloat16":
            t = tf.tensor(a.astype("f4")).bfloat16()
            a = t.float().numpy()
        elif source in INTEGERS:
            low, high = INTEGERS[source]
            a = np.array(
                [low, low + 1, -1, 0, 1, 2, high - 1, high, high // 2, 77] * 7, dtype=object
            )
            a = np.array([max(low, v) for v in a], dtype=source)
            t = tf.tensor(a)
        else:
            a = a.astype(source) if source != "bool" else np.array([True, False] * 50)
            t = tf.tensor(a)
        want = reference(a, source, target)
    for got in (t.to(getattr(tf, target)), t[::-1].to(getattr(tf, target))[::-1], t.view(-1, 2).T.to(getattr(tf, target)).T.reshape(-1)
                if t.numel() % 2 == 0 else t.to(getattr(tf, target)), tf.empty(t.shape, dtype=getattr(tf, target)).copy_(t)):  # fmt: skip
        assert got.dtype.name == target
        b = got.float().numpy() if target == "bfloat16" else got.numpy()
        np.testing.assert_array_equal(b, want)
        if want.dtype.kind == "f":
            np.testing.assert_array_equal(
                np.signbit(b)[~np.isnan(b)], np.signbit(want)[~np.isnan(want)]
            )


def test_every_half_becomes_the_float_it_is():
    a = np.arange(1 << 16, dtype="u2")
    for got, want in (
        (tf.tensor(a.view("f2")).float().numpy(), a.view("f2").astype("f4")),
        (
            tf.frombuffer(a.tobytes(), dtype=tf.bfloat16).float().numpy(),
            (a.astype("u4") << 16).view("f4"),
        ),
    ):
        np.testing.assert_array_equal(got, want)
        number = ~np.isnan(want)
        np.testing.assert_array_equal(got.view("u4")[number], want.view("u4")[number])


def test_floats_become_the_nearest_half(rng):
    bits = np.concatenate([
        rng.integers(0, 1 << 32, 400_000, dtype=np.uint64).astype("u4"),
        (np.arange(1 << 16, dtype="u2").view("f2").astype("f4").view("u4")[:, None] + np.array([-1, 0, 1, 0x1000, 0x1001, 0xFFF])
         ).astype("u4").ravel(),
    ])  # fmt: skip
    f = bits.view("f4")
    with np.errstate(all="ignore"):
        want = f.astype("f2")
    got = tf.tensor(f).half().numpy()
    number = ~np.isnan(f)
    np.testing.assert_array_equal(got[number].view("u2"), want[number].view("u2"))
    assert np.isnan(got[~number]).all()
    got = tf.tensor(f).bfloat16().float().numpy()
    want = reference(f, "float32", "bfloat16")
    np.testing.assert_array_equal(got[number].view("u4"), want[number].view("u4"))
    assert np.isnan(got[~number]).all()


def test_halves_compute_in_float(rng):
    for d, kind in ((tf.float16, "f2"), (tf.bfloat16, None)):
        a, b = (tf.tensor(rng.standard_normal(1000).astype("f4")).to(d) for _ in range(2))
        got = a * b + 1
        want = ((a.float() * b.float()).to(d).float() + 1).to(d)
        assert got.dtype is d and tf.equal(got, want)
        assert kind is None or np.array_equal((a + b).numpy(), a.numpy() + b.numpy())


@pytest.mark.parametrize("name", [n for n in NAMES if n != "bool"])
def test_in_place_keeps_the_dtype(name):
    x = tf.arange(1, 70).to(getattr(tf, name))
    y = x.clone()
    assert y.add_(1) is y and y.dtype is x.dtype and y.float().tolist() == (x.float() + 1).tolist()
    assert (
        y.sub_(tf.ones(69, dtype=tf.uint8) if name == "int64" else 1).float().tolist()
        == x.float().tolist()
    )
    if not x.is_floating_point():
        for write in (
            lambda: y.add_(1.5),
            lambda: y.div_(2),
            lambda: y.mul_(tf.ones(69)),
            lambda: y.sqrt_(),
        ):
            with pytest.raises(RuntimeError, match="cannot be cast"):
                write()
    assert y.float().tolist() == x.float().tolist()


def test_integers_wrap_and_shifts_saturate():
    for d, (low, high) in INTEGERS.items():
        x = tf.tensor([low, high], dtype=getattr(tf, d))
        assert (x + 1).tolist() == [low + 1, low] and (x - 1).tolist() == [high, high - 1]
        if low:
            assert (-x).tolist() == [low, -high] and x.abs().tolist() == [low, high]
            assert (x // -1).tolist() == [low, -high] and (x % -1).tolist() == [0, 0]
    x = tf.tensor([1, -8])
    assert (
        (x << 70).tolist() == [0, 0]
        and (x >> 70).tolist() == [0, -1]
        and (x << -1).tolist() == [0, 0]
    )
    assert (tf.tensor([7, -7, 7, -7]) // tf.tensor([2, 2, -2, -2])).tolist() == [3, -4, -4, 3]
    assert (tf.tensor([7, -7, 7, -7]) % tf.tensor([2, 2, -2, -2])).tolist() == [1, 1, -1, -1]


def test_nan_and_signs():
    x = tf.tensor([float("nan"), 1.0, -0.0])
    assert (
        tf.maximum(x, tf.zeros(3)).tolist()[1:] == [1.0, 0.0]
        and tf.maximum(x, tf.zeros(3))[0].isnan()
    )
    assert tf.minimum(tf.zeros(3), x)[0].isnan() and x.signbit().tolist()[1:] == [False, True]
    assert (x == x).tolist() == [False, True, True] and (x != x).tolist() == [True, False, False]
