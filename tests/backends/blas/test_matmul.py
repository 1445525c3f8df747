"""Products of matrices by the library: every layout, batch and bias, against our own kernels."""

import numpy as np
import pytest
from backends.blas.close import both, close
from backends.isolated import run

import tinyfin as tf
from tinyfin.nn import functional as F

DTYPES = ["float32", "float64"]


def numbers(rng, *shape, dtype="float32"):
    return tf.tensor(rng.standard_normal(shape).astype(dtype))


LAYOUTS = {
    "rows": lambda t: t,
    "columns": lambda t: t.mT.contiguous().mT,
    "wider rows": lambda t: F.pad(t, (0, 7))[..., :-7],
    "wider columns": lambda t: F.pad(t.mT.contiguous(), (0, 5))[..., :-5].mT,
    "every other": lambda t: t.repeat_interleave(2, -1)[..., ::2],
    "backwards": lambda t: tf.from_numpy(np.ascontiguousarray(t.numpy()[::-1, ::-1])[::-1, ::-1]),
    "one row": lambda t: t[:1].expand(t.shape),
    "one column": lambda t: t[:, :1].expand(t.shape),
    "overlapping rows": lambda t: t.flatten().unfold(0, t.shape[1], 1)[: t.shape[0]],
}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_layouts(left, right, dtype, rng):
    a = LAYOUTS[left](numbers(rng, 33, 21, dtype=dtype))
    b = LAYOUTS[right](numbers(rng, 21, 18, dtype=dtype))
    close(*both(lambda: a @ b), f"{left} by {right}")


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "a, b",
    [
        ((1, 9), (9, 7)), ((8, 9), (9, 1)), ((8, 1), (1, 7)), ((1, 1), (1, 1)), ((9,), (9, 7)), ((8, 9), (9,)), ((9,), (9,)),
        ((5, 8, 9), (5, 9, 7)), ((5, 8, 9), (9, 7)), ((8, 9), (5, 9, 7)), ((2, 1, 8, 9), (3, 9, 7)), ((4, 1, 9), (4, 9, 1)),
        ((2, 3, 9), (2, 9, 7)), ((5, 8, 9), (9,)), ((3, 5, 1, 9), (9, 7)),
        ((0, 9), (9, 7)), ((8, 0), (0, 7)), ((8, 9), (9, 0)), ((0, 8, 9), (9, 7)), ((5, 8, 0), (5, 0, 7)),
    ],
)  # fmt: skip
def test_shapes(a, b, dtype, rng):
    """Vectors, batches that broadcast, and sizes of zero: a chain of no length is zero."""
    x, y = numbers(rng, *a, dtype=dtype), numbers(rng, *b, dtype=dtype)
    got, want = both(lambda: x @ y)
    close(got, want)
    assert 0 not in (a[-1], *got.shape) or not got.any()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "x, outputs", [((6, 9), 7), ((9,), 7), ((4, 6, 9), 7), ((6, 9), 1), ((1, 9), 1), ((0, 9), 7), ((6, 0), 7)]
)  # fmt: skip
def test_bias(x, outputs, dtype, rng):
    """It is added after the product, also where the product is empty, and whatever its stride is."""
    x, w = numbers(rng, *x, dtype=dtype), numbers(rng, outputs, x[-1], dtype=dtype)
    bias = numbers(rng, 2 * outputs, dtype=dtype)
    for one in (None, bias[:outputs], bias[::2], bias[:1].expand(outputs)):
        close(*both(lambda one=one: F.linear(x, w, one)))


def test_bias_of_many_rows(blas, rng):
    """Several tasks add it, without the knob of the tests."""
    x, w, bias = (
        numbers(rng, 40, 30, 60),
        numbers(rng, 70, 60),
        numbers(rng, 70),
    )
    close(*both(lambda: F.linear(x, w, bias)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "int64", "uint8"])
def test_other_dtypes_are_ours(eager, dtype):
    a, b = tf.ones(60, 70).to(getattr(tf, dtype)), tf.ones(70, 80).to(getattr(tf, dtype))
    got, want = both(lambda: a @ b)
    assert got.dtype == want.dtype and tf.equal(got, want)


@pytest.mark.usefixtures("eager")
def test_nan_and_infinity_are_results():
    """A factor of zero hides neither, and what the memory of the result held before is not read."""
    a, b = tf.zeros(9, 9), tf.ones(9, 9)
    b[3, 4], b[5, 6] = float("nan"), float("inf")
    got, want = both(lambda: a @ b)
    close(got, want)
    assert got.isnan().sum().item() == 18
    for _ in range(3):
        old = tf.full((200, 200), float("nan"))
        del old
        assert (tf.ones(200, 200) @ tf.ones(200, 200) == 200).all()


@pytest.mark.parametrize("m, n, k", [(300, 200, 500), (49, 400, 300), (64, 64, 64), (1024, 70, 17)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes_that_gain(blas, m, n, k, dtype, rng):
    a, b = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype)
    close(*both(lambda: a @ b))


@pytest.mark.usefixtures("eager")
def test_gradients(rng):
    """Of the matrices and the bias, and gradients of those."""
    for call, shapes in (
        (tf.matmul, ((4, 5), (5, 3))),
        (tf.matmul, ((2, 4, 5), (5, 3))),
        (F.linear, ((2, 4, 5), (3, 5), (3,))),
        (tf.addmm, ((4, 3), (4, 5), (5, 3))),
        (tf.bmm, ((2, 4, 5), (2, 5, 3))),
    ):
        inputs = [numbers(rng, *s, dtype="float64").requires_grad_() for s in shapes]
        assert tf.autograd.gradcheck(call, inputs)
        assert tf.autograd.gradgradcheck(call, inputs)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.ones(3, 4) @ tf.ones(5, 6), lambda: tf.ones(3, 4) @ tf.ones(4, 6).double(),
        lambda: F.linear(tf.ones(2, 3), tf.ones(4, 5)), lambda: tf.bmm(tf.ones(2, 3, 4), tf.ones(3, 4, 5)),
        lambda: tf.ones(2, 3) @ tf.tensor(1.0),
    ],
)  # fmt: skip
def test_errors_are_those_of_the_cpu(eager, call):
    said = []
    for name in ("blas", "cpu", "blas"):
        tf.backend_set(name)
        with pytest.raises((RuntimeError, TypeError)) as error:
            call()
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1] == said[2]


def test_what_the_library_reads_where_it_lies(built):
    """Rows or columns apart are not copied; other layouts, halves and small products are not its business."""
    code = """
import ctypes
import tinyfin as tf
from tinyfin.backends import base
assert tf.backend_set("blas")
calls = ctypes.CDLL(base.REGISTRY["blas"].library.path).fake_calls
a, b, wide = tf.ones(70, 70), tf.ones(3, 70, 70), tf.ones(70, 140)
made = [calls()]
for x, y in (
    (a, a), (a.t(), a), (wide[:, :70], a), (wide[:, 70:].t(), a.t()), (b, a), (a, b), (b.mT, b),
    (wide[:, ::2], a), (a.flip(0), a), (a[:1].expand(70, 70), a), (a[:40], a), (a[:, :16], a[:16]),
    (a.half(), a.half()), (a.int(), a.int()),
):
    x @ y
    made.append(calls())
print([after - before for before, after in zip(made, made[1:])])
"""
    # a batch over one matrix is one longer matrix, where its rows are no columns
    want = [1, 1, 1, 1, 1, 3, 3, 0, 0, 0, 0, 0, 0, 0]
    assert run(code, TINYFIN_BLAS=built())[0] == [str(want)]
