"""Rows of attention.

The formula says what attention is, in plain operations. The order of the fused kernels, which
defines the bits, stands in backends/cpu/attention_loops.h and holds on every backend: keys in
blocks of 64, no buffer of queries times keys.
"""

from tinyfin.ops.row import F, attr, composite

NONE = float("-inf")
CAUSAL, SCALE = attr("is_causal", "bool", False), attr("scale", "optfloat", None)


def wide(x):
    """x in the type that arithmetic is done in: float32 in place of half precision."""
    return x.float() if x.dtype.itemsize < 4 else x


def shared(x, heads):
    """Key heads repeated for the query heads that share them."""
    have = x.shape[-3] if x.ndim > 2 else heads
    if x.ndim < 3 or have == heads:
        return x
    lead, tail, times = tuple(x.shape[:-3]), tuple(x.shape[-2:]), heads // have
    x = F.unsqueeze(x, x.ndim - 2).expand((*lead, have, times, *tail))
    return x.reshape((*lead, heads, *tail))


def scores(q, k, mask, is_causal, scale):
    """q k' scale + mask; -inf where masked or beyond the diagonal."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = F.matmul(wide(q), F.transpose(wide(k), -2, -1)) * scale
    if mask is not None:
        s = F.where(mask, s, NONE) if mask.dtype.itemsize == 1 else s + mask
    if is_causal:
        rows, columns = q.shape[-2], k.shape[-2]
        ones = F.full_of((rows, columns), 1.0, s)
        s = F.where(F.tril(ones) != 0, s, NONE)
    return s


def weights(s):
    """Softmax over keys, zero in rows that see no key; log of the sum of exp."""
    top = F.amax(s, -1, True).detach()
    shift = F.where(top == NONE, 0.0, top)
    e = F.exp(s - shift)
    total = F.sum(e, -1, True)
    lse = F.where(total == 0, NONE, F.log(F.where(total == 0, 1.0, total)) + shift)
    return e / F.where(total == 0, 1.0, total), F.squeeze(lse, -1)


def sdpa_formula(q, k, v, mask, is_causal, scale):
    """softmax(scores) v, and the log of the sum of exp."""
    heads = q.shape[-3] if q.ndim > 2 else 1
    p, lse = weights(scores(q, shared(k, heads), mask, is_causal, scale))
    return F.matmul(p, shared(wide(v), heads)).to(q.dtype), lse.detach()


def sdpa_grad_formula(g, q, k, v, mask, out, lse, is_causal, scale):
    """With ds = p (dp - sum of p dp) scale, dp = g v': gradients ds k, ds' q and p' g."""
    heads, factor = (
        q.shape[-3] if q.ndim > 2 else 1,
        q.shape[-1] ** -0.5 if scale is None else scale,
    )
    kk, vv, g = shared(wide(k), heads), shared(wide(v), heads), wide(g)
    p, _ = weights(scores(q, kk, mask, is_causal, scale))
    dp = F.matmul(g, F.transpose(vv, -2, -1))
    ds = (p * (dp - F.sum(p * dp, -1, True))) * factor
    gq = F.matmul(ds, kk)
    gk, gv = F.matmul(F.transpose(ds, -2, -1), wide(q)), F.matmul(F.transpose(p, -2, -1), g)
    return gq.to(q.dtype), unshared(gk, k), unshared(gv, v)


def unshared(g, x):
    """Sums the gradients of the query heads that share a key head."""
    if g.shape != x.shape:
        lead, have, tail = tuple(x.shape[:-3]), x.shape[-3], tuple(x.shape[-2:])
        g = F.sum(g.reshape((*lead, have, g.shape[-3] // have, *tail)), len(lead) + 1)
    return g.to(x.dtype)


def sdpa_all(g, q, k, v, mask, y, y1, is_causal, scale):
    """Gradients by the fused kernel; a mask that needs one never comes here."""
    return *F.sdpa_grad(g, q, k, v, mask, y, y1, is_causal, scale), None


PUBLIC = {"q": "query", "k": "key", "v": "value", "mask": "attn_mask"}
composite(
    "sdpa_forward",
    "q k v mask?",
    sdpa_formula,
    attrs=(CAUSAL, SCALE),
    infer="attention",
    family="attention",
    nout=2,
    dtypes="fh",
    amp="low",
    vjp_all=sdpa_all,
    public=PUBLIC,
    function=False,
    method=False,
    doc="Attention, and the logarithm of each query's sum of exponentials.",
)
composite(
    "sdpa_grad",
    "g q k v mask? out lse",
    sdpa_grad_formula,
    attrs=(CAUSAL, SCALE),
    infer="attention_grad",
    family="attention_grad",
    nout=3,
    dtypes="fh",
    function=False,
    method=False,
    doc="Gradients of attention.",
)


def stretched(x, lead):
    """x with the leading sizes `lead`, without copying."""
    return x if tuple(x.shape[:-2]) == lead else x.expand((*lead, *x.shape[-2:]))


def common(q, k, v, enable_gqa):
    """q, k, v with leading sizes that agree; key heads may be fewer with enable_gqa."""
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2:
        raise RuntimeError(
            f"scaled_dot_product_attention: query is {tuple(q.shape)}, key is {tuple(k.shape)}, "
            f"value is {tuple(v.shape)}: expected at least 2 dimensions"
        )
    if enable_gqa or (q.shape[:-2] == k.shape[:-2] == v.shape[:-2]):
        return q, k, v
    lead = ()
    for x in (q, k, v):
        lead = merged(lead, tuple(x.shape[:-2]))
    return stretched(q, lead), stretched(k, lead), stretched(v, lead)


def merged(a, b):
    """Broadcast of two shapes."""
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    for x, y in zip(a, b):
        if x != y and x != 1 and y != 1:
            raise RuntimeError(
                f"scaled_dot_product_attention: leading sizes {a} and {b} do not broadcast"
            )
    return tuple(max(x, y) if 0 not in (x, y) else 0 for x, y in zip(a, b))


def attend(q, k, v, mask, dropout_p, is_causal, scale, enable_gqa):
    """The kernel; or, with dropout or a mask that needs a gradient, its formula."""
    if not 0.0 <= dropout_p <= 1.0:
        raise ValueError(f"scaled_dot_product_attention: dropout_p is {dropout_p}, expected 0 to 1")
    if is_causal and mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: attn_mask is given and is_causal is True, expected one"
        )
    q, k, v = common(q, k, v, enable_gqa)
    if dropout_p == 0.0 and not (mask is not None and mask.requires_grad):
        return F.sdpa_forward(q, k, v, mask, is_causal, scale)[0]
    heads = q.shape[-3] if q.ndim > 2 else 1
    p, _ = weights(scores(q, shared(k, heads), mask, is_causal, scale))
    return F.matmul(F.dropout(p, dropout_p, True), shared(wide(v), heads)).to(q.dtype)


composite(
    "scaled_dot_product_attention",
    "q k v mask?",
    attend,
    dtypes="fh",
    amp="low",
    method=False,
    attrs=(attr("dropout_p", "float", 0.0), CAUSAL, SCALE, attr("enable_gqa", "bool", False)),
    public=PUBLIC,
    doc="softmax(query key' scale + mask) value.",
)
