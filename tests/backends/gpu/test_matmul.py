"""Matrix products on a GPU beyond the table's samples: every kind of tiles, edges, strides, batches."""

import warnings

import pytest
import samples
from backends.gpu.alike import gpu, same

import tinyfin as tf
from tinyfin.backends.gpu.matmul import only_tiles
from tinyfin.nn import functional as F

pytestmark = pytest.mark.usefixtures("gpu", "exact")
SMALL, SQUARE, WIDE, TALL, LARGE, LARGEST = range(6)
"""Kinds of tiles: 16 x 16, 64 x 64, 64 x 128, 128 x 64, 128 x 128, 128 x 256."""


@pytest.fixture
def tiles():
    """Chooses the kind of tiles; by the shape again afterwards."""
    yield only_tiles
    only_tiles()


def random(*shape, dtype="float32"):
    x = tf.rand(shape) - 0.5
    return (x * 200).to(getattr(tf, dtype)) if "int" in dtype else x.to(getattr(tf, dtype))


def transposed(t):
    """The same matrices with their columns dense."""
    return t.transpose(-1, -2).contiguous().transpose(-1, -2)


def backwards(t):
    """The same with negative strides."""
    return t.flip((-1, -2)).contiguous().flip((-1, -2))


def apart(t):
    """The same with other elements in between, none of them on a boundary of four."""
    return t.unsqueeze(-1).expand(*t.shape, 3).contiguous()[..., 1]


@pytest.mark.parametrize("kind", [SQUARE, WIDE, TALL, LARGE])
def test_tiles(tiles, kind):
    """Some full tiles, some that are cut on both sides, k that fills the last step and k that does not."""
    tiles(kind)
    same(tf.matmul, random(260, 24), random(24, 264))
    same(tf.matmul, random(131, 37), random(37, 141))


@pytest.mark.slow
def test_largest_tiles(tiles):
    tiles(LARGEST)
    same(tf.matmul, random(260, 24), random(24, 516))


@pytest.mark.parametrize("kind", [SMALL, SQUARE])
@pytest.mark.parametrize("a", [tf.Tensor.contiguous, transposed])
@pytest.mark.parametrize("b", [tf.Tensor.contiguous, transposed])
def test_dense_layouts(tiles, kind, a, b):
    """Four elements at once along k, along rows and along columns."""
    tiles(kind)
    same(lambda x, y: a(x) @ b(y), random(68, 20), random(20, 72))


@pytest.mark.parametrize("kind", [SMALL, SQUARE])
def test_other_layouts(tiles, kind):
    """Elements one at a time: negative strides, gaps, addresses between boundaries of four."""
    tiles(kind)
    for change in (backwards, apart):
        same(lambda x, y: change(x) @ change(y), random(67, 20), random(20, 72))
    same(lambda x, y: x[1:].view(68, 20) @ y[3:].view(20, 72), random(1361), random(1443))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "int32", "int64"])
def test_dtypes(tiles, dtype):
    """Halves are widened, integers wrap."""
    tiles(SQUARE)
    same(tf.matmul, random(33, 300, dtype=dtype), random(300, 68, dtype=dtype))


@pytest.mark.parametrize("m, n", [(1, 300), (300, 1), (7, 130), (130, 7), (1, 1)])
def test_narrow(m, n):
    """Few rows or columns have tiles of their own, transposed ones where there are few rows."""
    same(tf.matmul, random(m, 257), random(257, n))
    same(F.linear, random(m, 100), random(n, 100), random(n))
    same(tf.matmul, random(m, 130, dtype="int64"), random(130, n, dtype="int64"))


@pytest.mark.parametrize("kind", [SMALL, SQUARE])
def test_bias(tiles, kind):
    """Added after the chain, from any place in memory; without one, and without a k too."""
    tiles(kind)
    x, w, bias = random(3, 25, 20), random(66, 20), random(66)
    same(F.linear, x, w, bias)
    same(lambda x, w, b: F.linear(x, w, b.flip((0,))), x, w, bias)
    same(lambda x, w, b: F.linear(x, w, b[:1].expand(66)), x, w, bias)
    same(F.linear, x, w)
    same(F.linear, random(20, 0), random(33, 0), random(33))
    same(tf.matmul, random(20, 0), random(0, 33))


@pytest.mark.parametrize("a", [tf.Tensor.contiguous, transposed])
@pytest.mark.parametrize("b", [tf.Tensor.contiguous, transposed])
def test_pairs(a, b):
    """Two elements at once along k, along rows and along columns, in products that are large for software drivers."""
    same(lambda x, y: a(x) @ b(y), random(106, 100), random(100, 102))
    same(lambda x, y: a(x) @ b(y), random(107, 100), random(100, 103))
    same(lambda x, y: a(x) @ b(y), random(106, 101), random(101, 102))
    same(lambda x, y: a(x) @ b(y), random(2, 106, 52), random(2, 52, 102))


def test_pairs_elsewhere():
    """Negative strides, and addresses between boundaries of two."""
    same(lambda x, y: x.flip(0) @ y, random(106, 100), random(100, 102))
    same(lambda x, y: x[1:].view(106, 100) @ y, random(10601), random(100, 102))
    same(F.linear, random(106, 100), random(102, 100), random(102))


def test_batches():
    """Broadcast on both sides; batch entries that continue rows, and that do not."""
    same(tf.matmul, random(3, 1, 17, 20), random(2, 20, 33))
    same(tf.matmul, random(2, 3, 17, 20), random(20, 33))
    same(lambda x, y: x.transpose(0, 1) @ y, random(17, 3, 20), random(20, 33))
    same(lambda x, y: x[:, ::2].permute(1, 0, 2, 3) @ y, random(2, 5, 9, 12), random(2, 12, 10))
    same(tf.matmul, random(20), random(4, 20, 9))
    same(tf.matmul, random(0, 4, 5), random(5, 6))


def test_batches_of_tiles(tiles):
    """Groups past the last tile of one entry belong to the next."""
    tiles(SQUARE)
    same(tf.matmul, random(3, 65, 20), random(3, 20, 130))


@pytest.mark.parametrize("kind", [SMALL, SQUARE])
def test_deterministic(tiles, kind):
    """Subnormal numbers are flushed in every step of the chain, and what pads k changes none."""
    tiles(kind)
    with tf.deterministic():
        same(tf.matmul, random(65, 19) * 2.0**-64, random(19, 66) * 2.0**-62)
        same(F.linear, random(65, 19) * 2.0**-64, random(66, 19) * 2.0**-62, random(66) * 2.0**-124)


def test_special_numbers(tiles):
    """Infinities, NaN and zeros of both signs, also beside the padding."""
    x, y = random(20, 19), random(19, 33)
    x[3, 4], x[5, 18], x[7], x[8], y[2, 2] = float("inf"), float("nan"), -0.0, 0.0, float("-inf")
    for kind in (SMALL, SQUARE):
        tiles(kind)
        same(tf.matmul, x, y)


@pytest.mark.parametrize(
    "shapes",
    [((3, 5), (5, 4)), ((40, 70), (70, 50)), ((2, 1, 17, 33), (3, 33, 9)), ((9, 200), (200, 1))],
)
def test_float64(shapes):
    """The CPU's bits in deterministic mode, roundings of links apart in normal mode."""
    a, b = (random(*s).double() / 3 for s in shapes)
    x, w, bias = (random(*s).double() / 3 for s in ((9, 20), (7, 20), (7,)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tf.deterministic():
            for scale in (1.0, 2.0**-520):
                same(tf.matmul, a * scale, b * scale)
                same(tf.matmul, a.flip(-1) * scale, b.flip(-2))
            same(F.linear, x, w, bias)
        near = (a.to(gpu()) @ b.to(gpu())).cpu() - a @ b
        assert near.abs().max() < 1e-12


def test_what_falls_back():
    """Batch axes that cannot be walked together."""
    tf.backends.base.STATE["warned"].clear()
    a, b = random(2, 1, 2, 1, 2, 1, 3, 4), random(1, 2, 1, 2, 1, 2, 4, 5)
    with pytest.warns(
        RuntimeWarning, match="matmul runs on the cpu: .* has no kernel for it with float32"
    ):
        got = a.to(gpu()) @ b.to(gpu())
    assert samples.bits(got.cpu()) == samples.bits(a @ b)


def whole(*shape):
    """Small whole numbers: their products add up exactly in any order."""
    return tf.randint(-8, 9, shape).float()


@pytest.mark.parametrize("kind", [SMALL, SQUARE])
@pytest.mark.parametrize("shapes", [((70, 60), (60, 90)), ((2, 1, 3, 40), (1, 3, 40, 50))])
def test_parts(tiles, kind, shapes, gpu):
    """Chains that are cut, in normal mode alone."""
    with tf.deterministic(False):
        for make in (whole, random):
            a, b = (make(*shape) for shape in shapes)
            there = [t.to(gpu) for t in (transposed(a), b)]
            found = []
            for parts in (1, 2, 20, 7):  # the last divides no k here
                tiles(kind, -2, parts)
                found.append(samples.bits((there[0] @ there[1]).cpu()))
            if make is whole:
                assert found == [samples.bits(a @ b)] * 4
            else:  # another order: other roundings
                assert len(set(found)) == 3 and found[3] == found[0]


def test_parts_and_a_bias(tiles, gpu):
    tiles(SQUARE, -2, 4)
    x, w, bias = whole(2, 35, 64), whole(66, 64), apart(whole(66))
    with tf.deterministic(False):
        got = F.linear(*(t.to(gpu) for t in (x, w, bias)))
    assert samples.bits(got.cpu()) == samples.bits(F.linear(x, w, bias))
    same(F.linear, random(35, 64), random(66, 64), random(66))  # whole chains in deterministic mode


def test_only_tiles_refuses():
    with pytest.raises(ValueError, match="only_tiles"):
        only_tiles(6)
    with pytest.raises(ValueError, match="only_tiles"):
        only_tiles(0, 3)
    with pytest.raises(ValueError, match="parts 65"):
        only_tiles(0, 0, 65)


def test_bias_where_a_slab_begins(gpu):
    """The first bytes of a slab are as good a place as any."""
    tf.empty_cache(gpu)
    x, w, bias = tf.ones(2, 3), tf.ones(4, 3), tf.arange(4.0) + 1
    kept = []
    for _ in range(3):
        kept += [bias.to(gpu), x.to(gpu), w.to(gpu)]
        got = tf.nn.functional.linear(kept[-2], kept[-1], kept[-3])
        assert got.tolist() == [[4.0, 5.0, 6.0, 7.0]] * 2
