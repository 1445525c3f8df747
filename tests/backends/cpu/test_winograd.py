"""Winograd's form: near the direct one, the same bits everywhere, left alone where it may not be used."""

import sys

import numpy as np
import pytest
from backends.cpu.fused import check_instruction_sets, check_threads, digest, layouts

import tinyfin as tf
from tinyfin.ops.row import F

# images, channels of x and y, rows, columns, padding
CASES = [
    (4, 24, 16, 32, 16, (1, 1)),  # whole tiles of 4 x 4
    (1, 33, 47, 18, 35, (1, 1)),  # partial tiles, channels and vectors
    (3, 40, 40, 13, 31, (0, 0)),
    (8, 40, 32, 6, 12, (2, 0)),
    (70, 32, 24, 4, 4, (1, 1)),  # one tile an image
    (40, 32, 32, 8, 4, (1, 2)),
    (512, 96, 80, 2, 2, (1, 1)),  # tiles of 2 x 2
    (200, 96, 96, 2, 4, (1, 1)),
]

# the same with groups, and with sheets: of the source, of the kernel, padding and dilation between them
GROUPS = [
    (3, 64, 56, 19, 15, (1, 1), 2),
    (2, 96, 120, 15, 16, (1, 1), 3),
    (8, 80, 96, 12, 14, (1, 0), 4),
]
SHEETS = [
    (2, 32, 40, 15, 14, (1, 1), 1, (5, 3, 1, 1)),
    (1, 24, 40, 11, 16, (1, 1), 1, (7, 2, 0, 3)),
    (2, 64, 80, 8, 15, (2, 1), 2, (3, 5, 3, 1)),
    (2, 64, 64, 8, 8, (1, 1), 1, (8, 3, 4, 2)),
]


def sheets(case):
    """Number and padding of sheets, those of a kernel and their dilation; nothing: no such dimension."""
    return case[7] if len(case) > 7 else ()


def arrays(case, dtype="float32"):
    """x, w, bias and g."""
    n, c, o, rows, cols, (p, q), groups = (*case[:6], case[6] if len(case) > 6 else 1)
    rng = np.random.default_rng(sum(case[:5]))
    deep = [[], [], []]
    for high, kernel, pad, apart in [sheets(case)] if sheets(case) else []:
        deep = [[high], [kernel], [high + 2 * pad - (kernel - 1) * apart]]
    shapes = (
        (n, c, *deep[0], rows, cols),
        (o, c // groups, *deep[1], 3, 3),
        (o,),
        (n, o, *deep[2], rows + 2 * p - 2, cols + 2 * q - 2),
    )
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def products(x, w, b, g, padding, groups=1, deep=()):
    """y, gx and gw."""
    one = (1,) * (x.ndim - 2)
    steps = one, (*deep[2:3], *padding), (*deep[3:4], 1, 1), groups
    y = F.convolution(x, w, b, *steps)
    gx = F.conv_grad_input(g, w, *steps, tuple(x.shape[2:]))
    return y, gx, F.conv_grad_weight(g, x, *steps, tuple(w.shape[2:]))


def errors(found, true):
    """Root of the mean square error, in terms of that of the true values."""
    return [
        np.sqrt(np.mean((a.numpy() - b.numpy()) ** 2)) / np.sqrt(np.mean(b.numpy() ** 2))
        for a, b in zip(found, true)
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", [*CASES, *GROUPS, *SHEETS], ids=str)
def test_near_the_direct_form(case, dtype):
    """As near the true values as the direct form is, within a factor of 3."""
    double = [tf.tensor(a) for a in arrays(case, "float64")]
    same = [a.to(getattr(tf, dtype)) for a in double]
    found = products(*same, *case[5:])
    with tf.deterministic():
        direct = products(*same, *case[5:])
        true = products(*[a.to(same[0].dtype).double() for a in double], *case[5:])
    assert all(not tf.equal(a, b) for a, b in zip(found, direct)), "the direct form was used"
    assert max(errors(found, true)) < 16 * np.finfo(dtype).eps
    if dtype == "float32":
        for ours, theirs in zip(errors(found, true), errors(direct, true)):
            assert ours < 3 * theirs


@pytest.mark.parametrize("case", [*CASES[1:6:2], GROUPS[1], SHEETS[2]], ids=str)
def test_layouts(case):
    """Strides of any sign and size, and neighbours that are no numbers, show in nothing."""
    x, w, b, g = arrays(case)
    want = products(*map(tf.tensor, (x, w, b, g)), *case[5:])
    inside = (slice(1, -1),) * x.ndim
    field = np.full([n + 2 for n in x.shape], np.nan, "float32")
    field[inside] = x
    inner = tf.tensor(field)[inside]
    for views in zip([*layouts(x), inner], *([*layouts(a), tf.tensor(a)] for a in (w, b, g))):
        for a, c in zip(products(*views, *case[5:]), want):
            assert tf.equal(a, c)


def test_numbers_that_are_not_finite_stay_where_they_are():
    """An infinity reaches the results that the direct form gives it, not a whole tile."""
    case = CASES[1]
    x, w, b, g = arrays(case)
    x[0, 3, 5, 7], g[0, 2, 4, 4] = np.inf, np.nan
    ours = products(*map(tf.tensor, (x, w, b, g)), case[5])
    with tf.deterministic():
        direct = products(*map(tf.tensor, (x, w, b, g)), case[5])
    for a, c in zip(ours, direct):
        np.testing.assert_array_equal(a.numpy(), c.numpy())
    x[0, 3, 5, 7] = 3e38  # the sum over a tile is too large for float32
    y = products(*map(tf.tensor, (x, w * 0, b, g)), case[5])[0]
    assert np.isfinite(y.numpy()).all()


def test_flat_volumes():
    """Three dimensions of which the first has one place take the same form."""
    x, w, b, _ = map(tf.tensor, arrays(CASES[1]))
    flat = F.convolution(x, w, b, (1, 1), (1, 1), (1, 1), 1)
    deep = F.convolution(x.unsqueeze(2), w.unsqueeze(2), b, (1, 1, 1), (0, 1, 1), (1, 1, 1), 1)
    assert tf.equal(deep.squeeze(2), flat)


@pytest.mark.parametrize("groups", [2, 4])
def test_groups_are_convolutions_of_their_own(groups):
    """Bits of a group do not depend on the others: it is the convolution of its channels."""
    case = (4, 16 * groups, 24 * groups, 16, 20, (1, 1), groups)
    x, w, b, g = map(tf.tensor, arrays(case))
    found = products(x, w, b, g, *case[5:])
    for i in range(groups):
        c, o = slice(16 * i, 16 * i + 16), slice(24 * i, 24 * i + 24)
        alone = products(x[:, c], w[o], b[o], g[:, o], case[5])
        assert tf.equal(found[0][:, o], alone[0])
        assert tf.equal(found[1][:, c], alone[1])
        assert tf.equal(found[2][o], alone[2])


def test_one_thread_or_many():
    few = (1, 64, 64, 8, 8, (1, 1))  # few tiles: threads share a block
    for case in (*CASES[::3], few, *GROUPS, SHEETS[0]):
        check_threads(lambda case=case: products(*map(tf.tensor, arrays(case)), *case[5:]))


def all_products():
    for case in (*CASES, *GROUPS, *SHEETS):
        for dtype in ("float32", "float64"):
            yield from products(*map(tf.tensor, arrays(case, dtype)), *case[5:])


def test_instruction_sets():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    sys.stdout.write(digest(all_products()))
