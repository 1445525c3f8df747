"""Gradients of views, and how a write through a view becomes part of its base's history."""

from tinyfin.core import tensor
from tinyfin.ops.row import F
from tinyfin.ops.table import offer


def embed_slice(g, shape, spec):
    """Zeros of `shape` with g where basic indexing would read."""
    return embed(g, shape, F.getitem_view_of, spec)


def embed(g, shape, view, *attrs):
    """Zeros of `shape`, g written through a view of them."""
    out = F.zeros_of(shape, g)
    tensor.assign(view(out, *attrs), g)
    return out


def getitem_view_of(x, spec):
    """The view row on explicit attributes."""
    return F.getitem_view.run_with((x,), (spec,))


def embed_diagonal(g, shape, offset, dim1, dim2):
    """Zeros with g on a diagonal."""
    return embed(g, shape, F.diagonal, offset, dim1, dim2)


def embed_unfold(g, shape, dim, size, step):
    """Zeros with overlapping windows added up: window k, place j goes to k step + j."""
    if not shape:
        return g.reshape(())
    windows, n = g.shape[dim], shape[dim]
    places = (
        F.arange(windows, device=g.device).unsqueeze(1) * step + F.arange(size, device=g.device)
    ).reshape(-1)
    flat = g.movedim(-1, dim + 1).reshape(*shape[:dim], windows * size, *shape[dim + 1 :])
    return F.index_add(F.zeros_of(shape[:dim] + (n,) + shape[dim + 1 :], g), dim, places, flat)


def positions(shape, stride, device):
    """Storage positions, relative to the first element, of every element of a geometry."""
    where = (
        F.zeros(*shape, dtype=F.int64, device=device)
        if shape
        else F.zeros(1, dtype=F.int64).reshape(())
    )
    for i, (size, step) in enumerate(zip(shape, stride)):
        line = F.arange(size, device=device) * step
        where = where + line.reshape((size,) + (1,) * (len(shape) - i - 1))
    return where


def strided(x, shape, stride, offset):
    """Another geometry over x's bytes."""
    return F.as_strided_view.run_with((x,), (shape, stride, offset, x.stride(), x.storage_offset()))


def moved(g, here, there):
    """Values g that lie at positions `here`, read at positions `there`: summed where several lie, 0
    where none."""
    if here.numel() == 0 or there.numel() == 0:
        return F.zeros_of(there.shape, g)
    low = min(int(here.min()), int(there.min()))
    span = max(int(here.max()), int(there.max())) - low + 1
    buffer = F.index_add(F.zeros_of((span,), g), 0, here - low, g.reshape(-1))
    return F.index_select(buffer, 0, there - low)


def strided_embed(g, shape, size, stride, offset, base_stride, base_offset):
    """The gradient of as_strided: g added at storage positions, then read with the base's
    geometry."""
    if (
        tuple(shape) == tuple(size)
        and tuple(stride) == tuple(base_stride)
        and offset == base_offset
    ):
        return g
    overlapping = tensor.row_major_overlapping(size, stride)[1]
    dense = tensor.row_major_overlapping(shape, base_stride)[0]
    if dense and not overlapping and within(shape, size, stride, offset - base_offset):
        out = F.zeros_of(shape, g)
        tensor.assign(strided(out, size, stride, out.storage_offset() + offset - base_offset), g)
        return out
    here = positions(size, stride, g.device).reshape(-1) + offset
    there = positions(shape, base_stride, g.device).reshape(-1) + base_offset
    return moved(g, here, there).reshape(shape)


def write_node(base, view, node, out_nr):
    """The history of `base` after a write through `view`: old values outside, what was written
    inside."""
    geometry = (tuple(view.shape), view.stride(), view.storage_offset())
    mine = (tuple(base.shape), base.stride(), base.storage_offset())
    written = tensor.twin(view)
    dense = tensor.row_major_overlapping(*mine[:2])[0]
    tensor.attach(written, node, out_nr)
    old_matters = base.requires_grad

    def backward(grads, node):
        if dense:
            return dense_parts(
                grads[0], geometry[0], geometry[1], geometry[2] - mine[2], old_matters
            )
        g = grads[0]
        here = positions(*mine[:2], g.device).reshape(-1) + mine[2]
        there = positions(*geometry[:2], g.device).reshape(-1) + geometry[2]
        outside = clear(g, there, here) if old_matters else None
        return outside, moved(g, here, there).reshape(geometry[0])

    return tensor.python_node("write", backward, (base, written), (base,))


def within(shape, size, stride, offset):
    """Whether a geometry stays inside a row-major tensor."""
    n = 1
    for s in shape:
        n *= s
    reach = [step * (s - 1) for s, step in zip(size, stride)]
    return 0 in size or (
        offset + sum(r for r in reach if r < 0) >= 0 and offset + sum(r for r in reach if r > 0) < n
    )


def dense_parts(g, shape, stride, offset, old_matters):
    """The cotangent of a row-major base outside a written window (zeros inside; g may be infinite
    there), and inside."""
    g = g if g.is_contiguous() else F.contiguous_copy(g)
    inside = strided(g, shape, stride, g.storage_offset() + offset)
    if not old_matters:
        return None, inside
    outside = F.contiguous_copy(g)
    tensor.assign(strided(outside, shape, stride, outside.storage_offset() + offset), 0)
    return outside, inside


def clear(g, written, here):
    """g, whose elements lie at positions `here`, with zeros where a view wrote; g may be infinite
    there."""
    hits = moved(F.full_of(written.shape, 1.0, g), written, here).reshape(g.shape)
    return F.where(hits == 0, g, 0.0)


for _name, _value in {
    "embed_slice": embed_slice,
    "embed_diagonal": embed_diagonal,
    "embed_unfold": embed_unfold,
    "strided_embed": strided_embed,
    "getitem_view_of": getitem_view_of,
}.items():
    offer(_name, _value)
tensor.install_hook("write_node", write_node)
