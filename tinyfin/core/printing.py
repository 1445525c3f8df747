"""repr of tensors, in PyTorch's form."""

from __future__ import annotations

from tinyfin.core import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPTIONS: dict[str, Any] = {
    "precision": 4,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 80,
    "sci_mode": None,
}
PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": 1 << 62, "edgeitems": 3, "linewidth": 80},
}
QUIET = 1 | 16 | 32 | 256 | 512
"""Mode bits that are off while elements are read."""
INF = float("inf")


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are shown.

    Args:
        precision: digits after the point.
        threshold: elements from which on only the edges are shown.
        edgeitems: how many elements an edge has.
        linewidth: characters of a line.
        profile: `default`, `short` or `full`, which the other arguments change.
        sci_mode: True or False in place of a choice by the values.

    Raises:
        TypeError, ValueError: a number is no integer, or too small; then nothing has changed.
    """
    if profile is not None and profile not in PROFILES:
        raise ValueError(
            f"set_printoptions: profile is {profile!r}, expected {', '.join(PROFILES)}"
        )
    given = {
        "precision": precision, "threshold": threshold, "edgeitems": edgeitems,
        "linewidth": linewidth,
    }  # fmt: skip
    given = {key: checked(key, value) for key, value in given.items() if value is not None}
    if sci_mode not in (None, True, False):
        raise TypeError(f"set_printoptions: sci_mode is {sci_mode!r}, expected True, False or None")
    OPTIONS.update({} if profile is None else PROFILES[profile], **given, sci_mode=sci_mode)


def checked(key, value):
    """A number of an option."""
    least = 1 if key in ("edgeitems", "linewidth") else 0
    if value == INF and key != "precision":  # as PyTorch's users write "never"
        return 1 << 62
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(
            f"set_printoptions: {key} is {value!r} of type {type(value).__name__}, expected an "
            "integer"
        )
    if value < least or (key == "precision" and value > 64):
        most = " to 64" if key == "precision" else " or more"
        raise ValueError(f"set_printoptions: {key} is {value}, expected {least}{most}")
    return value.__index__()


def finite(value):
    """Whether a float is neither NaN nor infinite."""
    return value == value and value not in (INF, -INF)


def form_of(values):
    """(function from a value to its text, width) that fits all of them."""
    if not values or not isinstance(values[0], float):
        return str, max((len(str(v)) for v in values), default=1)
    digits = OPTIONS["precision"]
    nonzero = [v for v in values if v != 0 and finite(v)]
    whole = all(v == int(v) for v in nonzero)
    high, low = max(map(abs, nonzero), default=1.0), min(map(abs, nonzero), default=1.0)
    spread = high / low > 1000 or high > 1e8 or (low < 1e-4 and not whole)
    if OPTIONS["sci_mode"] is not None:
        spread = OPTIONS["sci_mode"]
    if spread:

        def form(v):
            return f"{v:.{digits}e}"
    elif whole:

        def form(v):
            return f"{v:.0f}." if finite(v) else f"{v:.0f}"
    else:

        def form(v):
            return f"{v:.{digits}f}"

    return form, max((len(form(v)) for v in nonzero), default=1)


def leaves(data):
    """All numbers of nested lists."""
    if isinstance(data, list):
        for item in data:
            yield from leaves(item)
    elif data is not ...:
        yield data


def summary(t, short):
    """Nested lists, with `...` in place of the middle of long axes."""
    if not short or t.ndim == 0:
        return t.tolist()
    n, edge = t.shape[0], OPTIONS["edgeitems"]
    if n <= 2 * edge:
        return [summary(t[i], short) for i in range(n)]
    return (
        [summary(t[i], short) for i in range(edge)]
        + [...]
        + [summary(t[i], short) for i in range(n - edge, n)]
    )


def depth_of(data):
    """How deep lists are nested."""
    depth = 0
    while isinstance(data, list):
        data = next((d for d in data if d is not ...), None)
        depth += 1
    return depth


def lay_out(data, form, width, indent):
    """Brackets, commas and line breaks around the texts."""
    if not isinstance(data, list):
        return form(data).rjust(width)
    depth = depth_of(data)
    if depth > 1:
        gap = "," + "\n" * (depth - 1) + " " * (indent + 1)
        parts = ("..." if d is ... else lay_out(d, form, width, indent + 1) for d in data)
        return "[" + gap.join(parts) + "]"
    parts = [" ..." if d is ... else form(d).rjust(width) for d in data]
    per_line = max(1, (OPTIONS["linewidth"] - indent) // (width + 2))
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def notes_of(t):
    """What stands behind the elements: device, size, dtype, history."""
    from tinyfin.core.dtype import get_default_dtype

    notes = [f"device='{t.device}'"] if t.device.slot else []
    plain = t.dtype is get_default_dtype() or (t.numel() and t.dtype.name in ("int64", "bool"))
    if t.device.type == "null" or (t.numel() == 0 and t.ndim != 1):
        notes.append(f"size={tuple(t.shape)}")
    if not plain:
        notes.append(f"dtype={t.dtype}")
    if t.grad_fn is not None:
        notes.append(f"grad_fn=<{t.grad_fn.name()}>")
    elif t.requires_grad:
        notes.append("requires_grad=True")
    return notes


def body_of(t, indent):
    """The elements."""
    if t.device.type == "null":
        return "..."
    if t.numel() == 0:
        return "[]"
    old = tensor.set_mode(0, QUIET)
    try:
        data = summary(t.detach().cpu(), t.numel() > OPTIONS["threshold"])
    finally:
        tensor.set_mode(old, QUIET)
    form, width = form_of(list(leaves(data)))
    return lay_out(data, form, width if t.ndim else 0, indent)


def represent(t):
    """tensor([...], dtype, device, grad_fn) as PyTorch users know it."""
    wrapped = t.extra_ or {}
    if "batch" in wrapped:
        level, value, dim = wrapped["batch"]
        return f"batched({represent(value)}, dim={dim}, level={level.number})"
    if "dual" in wrapped and wrapped["dual"][0].open:
        level, primal, tangent = wrapped["dual"]
        return f"dual({represent(primal)}, tangent={represent(tangent)}, level={level.number})"
    kind = type(t)
    # a class with a repr of its own puts this one behind a heading
    own = kind.__repr__ is not tensor.Tensor.__repr__
    start = "tensor(" if kind is tensor.Tensor or own else kind.__name__ + "("
    text = start + body_of(t, len(start))
    used = len(text) - text.rfind("\n") - 1
    for note in notes_of(t):
        if used + len(note) + 3 > OPTIONS["linewidth"]:
            text += ",\n" + " " * len(start) + note
            used = len(start) + len(note)
        else:
            text += ", " + note
            used += len(note) + 2
    return text + ")"


tensor.install_hook("repr", represent)
PUBLIC = {"set_printoptions": set_printoptions}
