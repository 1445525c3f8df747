"""repr of tensors."""

from tinyfin.core import tensor

EDGE, LIMIT = 3, 1000


def number(value, form):
    """One element as text."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return format(value, form)


def form_of(values):
    """The format all finite numbers share: whole, fixed or exponent."""
    finite = [abs(v) for v in values if isinstance(v, float) and v == v and v not in (float("inf"), float("-inf"))]
    nonzero = [v for v in finite if v]
    if all(v == int(v) for v in finite) and (not nonzero or max(nonzero) < 1e8):
        return ".0f"
    if nonzero and (max(nonzero) / min(nonzero) > 1000 or max(nonzero) > 1e8 or min(nonzero) < 1e-4):
        return ".4e"
    return ".4f"


def leaves(data):
    """All numbers of nested lists."""
    if isinstance(data, list):
        for item in data:
            yield from leaves(item)
    elif data is not ...:
        yield data


def summary(t, short):
    """Nested lists, with `...` in place of the middle of long axes."""
    if t.ndim == 0:
        return t.item()
    n = t.shape[0]
    if short and n > 2 * EDGE:
        return ([summary(t[i], short) for i in range(EDGE)] + [...]
                + [summary(t[i], short) for i in range(n - EDGE, n)])
    return [summary(t[i], short) for i in range(n)]


def lay_out(data, texts, width, indent):
    """Brackets, commas and line breaks around the texts."""
    if not isinstance(data, list):
        return "..." if data is ... else next(texts).rjust(width)
    if not data:
        return "[]"
    if isinstance(next((d for d in data if d is not ...), None), list):
        depth = 1
        inner = next(d for d in data if d is not ...)
        while inner and isinstance(inner[0], list):
            depth, inner = depth + 1, inner[0]
        gap = "," + "\n" * depth + " " * (indent + 1)
        return "[" + gap.join(lay_out(d, texts, width, indent + 1) for d in data) + "]"
    parts = [lay_out(d, texts, width, indent + 1) for d in data]
    per_line = max(1, (80 - indent) // (width + 2))
    lines = [", ".join(parts[i:i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def represent(t):
    """tensor([...], dtype, device, grad_fn) as PyTorch users know it."""
    name = "tensor" if type(t) is tensor.Tensor else type(t).__name__ + " containing:\ntensor"
    notes = []
    if t.device.slot:
        notes.append(f"device='{t.device}'")
    if t.dtype.name not in ("float32", "int64", "bool") or t.numel() == 0:
        notes.append(f"dtype={t.dtype}")
    if t.grad_fn is not None:
        notes.append(f"grad_fn=<{t.grad_fn.name_()}>")
    elif t.requires_grad:
        notes.append("requires_grad=True")
    if t.device.type == "null":
        body = f"..., size={tuple(t.shape)}"
    elif t.numel() == 0:
        body = "[]" if t.ndim == 1 else f"[], size={tuple(t.shape)}"
    else:
        old = tensor.set_mode(0, 1 | 16 | 32 | 256 | 512)
        try:
            data = summary(t.detach().cpu(), t.numel() > LIMIT)
        finally:
            tensor.set_mode(old, 1 | 16 | 32 | 256 | 512)
        values = list(leaves(data))
        form = form_of(values)
        texts = [number(v, form) + ("." if form == ".0f" and isinstance(v, float) and number(v, form)[-1:].isdigit() else "")
                 for v in values]
        body = lay_out(data, iter(texts), max(map(len, texts)), 7)
    return f"{name}({', '.join([body] + notes)})"


tensor.install_hook("repr", represent)
