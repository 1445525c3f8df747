"""Attention: values, gradients of gradients, masks, and equal bits everywhere."""

import numpy as np
import pytest
from backends.cpu.fused import (
    check_derivatives,
    check_instruction_sets,
    check_threads,
    close,
    digest,
    run,
    tensor,
    torch,
)

import tinyfin as tf

T = torch and torch.nn.functional

SIZES = [  # batch, heads, heads of keys, queries, keys, width, width of values
    (1, 1, 1, 5, 7, 4, 4),
    (2, 4, 4, 70, 70, 16, 16),
    (2, 4, 2, 130, 65, 20, 9),
    (1, 2, 1, 64, 200, 64, 64),
    (1, 1, 1, 1, 300, 33, 8),
    (2, 2, 2, 100, 129, 8, 48),
]
MASKS = ["none", "causal", "chosen", "chosen by key", "added"]
INF = float("inf")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def mask_of(kind, sizes):
    """A mask of numbers or truths, or None."""
    b, h, _, t, s, _, _ = sizes
    rng = np.random.default_rng(9)
    if kind == "chosen":
        mask = rng.random((t, s)) < 0.5
        mask[0] = False  # a query that sees nothing
        return mask
    if kind == "chosen by key":
        return rng.random((b, 1, 1, s)) < 0.7
    if kind == "added":
        mask = rng.standard_normal((1, h, t, s))
        mask[..., 2] = -INF
        return mask
    return None


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("sizes", SIZES)
def test_values_and_gradients(sizes, kind):
    b, h, hk, t, s, d, dv = sizes
    mask = mask_of(kind, sizes)
    options = {"is_causal": kind == "causal", "enable_gqa": True}
    for apart in (False, True):  # heads beside queries, or before them
        arrays = [
            numbers(b, n, m, w, seed=i)
            for i, (n, m, w) in enumerate(((h, t, d), (hk, s, d), (hk, s, dv)))
        ]
        ours = [
            tensor(np.ascontiguousarray(a.swapaxes(1, 2))).transpose(1, 2) if apart else tensor(a)
            for a in arrays
        ]
        ours = [a.detach().requires_grad_() for a in ours]
        theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
        y = tf.scaled_dot_product_attention(*ours, attn_mask=tensor(mask), **options)
        z = T.scaled_dot_product_attention(
            *theirs, attn_mask=None if mask is None else torch.tensor(mask), **options
        )
        close(y, z, 1e-11)
        g = numbers(*y.shape, seed=5)
        y.backward(tensor(g))
        z.backward(torch.tensor(g))
        for a, c in zip(ours, theirs):
            close(a.grad, c.grad, 1e-10)
        near = tf.scaled_dot_product_attention(
            *[a.detach().float() for a in ours], attn_mask=tensor(mask, "float32"), **options
        )
        close(near, z, 2e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    q, k, v = (tensor(numbers(2, 3, 70, 16, seed=i), dtype) for i in range(3))
    y = tf.scaled_dot_product_attention(q, k, v)
    assert y.dtype is getattr(tf, dtype)
    want = tf.scaled_dot_product_attention(q.float(), k.float(), v.float())
    assert (y == want.to(y.dtype)).all()  # computed in float32, rounded once


@pytest.mark.parametrize("kind", ["none", "causal", "chosen", "added"])
def test_derivatives(kind):
    mask = mask_of(kind, (2, 3, 3, 4, 5, 6, 7))
    arrays = numbers(2, 3, 4, 6), numbers(2, 3, 5, 6, seed=1), numbers(2, 3, 5, 7, seed=2)
    a, b = tensor(mask), None if mask is None else torch.tensor(mask)
    causal = kind == "causal"
    check_derivatives(
        lambda q, k, v: tf.scaled_dot_product_attention(
            q, k, v, attn_mask=a, is_causal=causal, scale=0.3
        ),
        lambda q, k, v: T.scaled_dot_product_attention(
            q, k, v, attn_mask=b, is_causal=causal, scale=0.3
        ),
        *arrays,
    )


def test_derivatives_with_shared_keys_and_of_the_mask():
    check_derivatives(
        lambda q, k, v: tf.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        lambda q, k, v: T.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        numbers(2, 6, 4, 6),
        numbers(2, 3, 5, 6, seed=1),
        numbers(2, 3, 5, 7, seed=2),
    )
    check_derivatives(
        lambda q, k, v, m: tf.scaled_dot_product_attention(q, k, v, m),
        lambda q, k, v, m: T.scaled_dot_product_attention(q, k, v, m),
        numbers(2, 4, 6),
        numbers(2, 5, 6, seed=1),
        numbers(2, 5, 7, seed=2),
        numbers(4, 5, seed=3),
    )


def test_leading_sizes_broadcast():
    q, k, v = numbers(2, 3, 4, 6), numbers(1, 3, 5, 6, seed=1), numbers(3, 5, 7, seed=2)
    want = T.scaled_dot_product_attention(
        *(torch.tensor(x) for x in (q, np.repeat(k, 2, 0), np.stack([v, v])))
    )
    close(tf.scaled_dot_product_attention(tensor(q), tensor(k), tensor(v)), want, 1e-12)
    close(
        tf.scaled_dot_product_attention(tensor(q[0, 0]), tensor(k[0, 0]), tensor(v[0])),
        want[0, 0],
        1e-12,
    )


def test_edges():
    q = tf.zeros(2, 3, 4)
    assert tf.scaled_dot_product_attention(q, tf.zeros(2, 0, 4), tf.zeros(2, 0, 5)).eq(0).all()
    assert tf.scaled_dot_product_attention(
        tf.zeros(0, 3, 4), tf.zeros(0, 2, 4), tf.zeros(0, 2, 5)
    ).shape == (0, 3, 5)
    nan = tf.full((2, 3, 4), float("nan"))
    assert tf.scaled_dot_product_attention(nan, q, q).isnan().all()
    with pytest.raises(RuntimeError, match=r"query is \(2, 3, 4\), key is \(2, 3, 5\)"):
        tf.scaled_dot_product_attention(q, tf.zeros(2, 3, 5), tf.zeros(2, 3, 5))
    with pytest.raises(RuntimeError, match="does not broadcast"):
        tf.scaled_dot_product_attention(q, q, q, attn_mask=tf.zeros(4, 4))
    with pytest.raises(RuntimeError, match="is_causal"):
        tf.scaled_dot_product_attention(q, q, q, attn_mask=tf.zeros(3, 3), is_causal=True)
    with pytest.raises(ValueError, match="dropout_p is 2"):
        tf.scaled_dot_product_attention(q, q, q, dropout_p=2.0)


def test_dropout():
    q, k, v = (tensor(numbers(2, 3, 20, 8, seed=i), "float32") for i in range(3))
    tf.manual_seed(1)
    a = tf.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    tf.manual_seed(1)
    b = tf.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    assert (a == b).all() and not (a == tf.scaled_dot_product_attention(q, k, v)).all()
    assert (tf.scaled_dot_product_attention(q, k, v, dropout_p=1.0) == 0).all()


def everything():
    """Results of the kernels on sizes that are split over threads."""
    for dtype in ("float32", "float64"):
        for sizes in SIZES:
            b, h, hk, t, s, d, dv = sizes
            q, k = tensor(numbers(b, h, t, d), dtype), tensor(numbers(b, hk, s, d, seed=1), dtype)
            v, g = (
                tensor(numbers(b, hk, s, dv, seed=2), dtype),
                tensor(numbers(b, h, t, dv, seed=3), dtype),
            )
            for causal in (False, True):
                y, lse = run("sdpa_forward", q, k, v, None, causal, None)
                yield from (y, lse, *run("sdpa_grad", g, q, k, v, None, y, lse, causal, None))


def test_threads_do_not_change_bits():
    check_threads(everything)


def test_instruction_sets_do_not_change_bits():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    print(digest(everything()))
