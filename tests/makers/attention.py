"""Samples of attention."""

import numpy as np
from samples import Sample, maker


def qkv(rng, *lead, t=4, s=5, d=3, e=2, kv=None):
    """Queries, keys, values."""
    other = lead if kv is None else (*lead[:-1], kv)
    shapes = (*lead, t, d), (*other, s, d), (*other, s, e)
    return tuple(rng.standard_normal(shape) for shape in shapes)


def mask(rng, t=4, s=5):
    """Which keys a query may see: at least one."""
    m = rng.uniform(size=(t, s)) > 0.4
    m[:, 0] = True
    return m


@maker("sdpa_forward")
def sdpa_forward(rng):
    yield Sample(*qkv(rng, 2, 2))
    yield Sample(*qkv(rng, 1, 2), mask(rng))
    yield Sample(*qkv(rng, 1, 1), rng.standard_normal((4, 5))).but(grad=False)
    yield Sample(*qkv(rng, 1, 2, s=4), None, True)
    yield Sample(*qkv(rng, 1, 1), None, False, 0.3)
    yield Sample(*qkv(rng, 1, 1, t=3, s=130, d=4)).but(grad=False)


@maker("sdpa_grad")
def sdpa_grad(rng):
    """Its own derivative is that of attention of order 2, which is tested there."""
    for causal, scale in ((False, None), (True, None), (False, 0.4)):
        q, k, v = qkv(rng, 1, 2, s=4)
        s = q @ k.swapaxes(-1, -2) * (3**-0.5 if scale is None else scale)
        s = np.where(np.tril(np.ones((4, 4))) > 0, s, -np.inf) if causal else s
        e = np.exp(s)
        out, lse = e / e.sum(-1, keepdims=True) @ v, np.log(e.sum(-1))
        yield Sample(rng.standard_normal(out.shape), q, k, v, None, out, lse, causal, scale).but(
            grad=False, only="f"
        )


@maker("scaled_dot_product_attention")
def attention(rng):
    yield Sample(*qkv(rng, 2, 2))
    yield Sample(*qkv(rng))
    yield Sample(*qkv(rng, 2))
    yield Sample(*qkv(rng, 1, 2), mask(rng))
    yield Sample(*qkv(rng, 1, 2), rng.standard_normal((4, 5)))
    yield Sample(*qkv(rng, 1, 2), is_causal=True)
    yield Sample(*qkv(rng, 1, 2, t=5, s=3), is_causal=True)
    yield Sample(*qkv(rng, 1, 1), scale=0.3)
    yield Sample(*qkv(rng, 1, 4, kv=2), enable_gqa=True)
    yield Sample(*qkv(rng, 1, 2, t=70, s=130, d=8, e=8)).but(grad=False, only="f")
