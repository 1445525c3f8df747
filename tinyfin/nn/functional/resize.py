"""Changing the size of signals, pictures and volumes."""

from __future__ import annotations

import math

from tinyfin.core.tensor import Tensor
from tinyfin.creation import arange
from tinyfin.nn.functional.arguments import check_counts, check_numbers
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DIMS = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "area": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
}


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Changes the size of signals, pictures or volumes.

    Args:
        input: (N, C, ...) with one to three sizes; of a floating-point dtype, or uint8, whose
            results are rounded; "nearest" and "nearest-exact" take any dtype.
        size: the new sizes, one for all or one for each.
        scale_factor: or what the sizes are multiplied by.
        mode: "nearest", "nearest-exact" and "area" for any input; "linear" for one size,
            "bilinear" and "bicubic" for two, "trilinear" for three.
        align_corners: for the linear modes and "bicubic": let the corners of input and output
            fall together, rather than their edges.
        recompute_scale_factor: work with the factor of the rounded sizes, not the given one.
        antialias: not supported.

    Raises:
        ValueError: not exactly one of `size` and `scale_factor` is given, it has the wrong length,
            or `align_corners` is given with a mode that has none.
        NotImplementedError: the mode is unknown, or not there for this input.
        RuntimeError: a size would be zero.

    >>> F.interpolate(tf.tensor([[[0.0, 1.0]]]), size=3, mode="linear", align_corners=True).tolist()
    [[[0.0, 0.5, 1.0]]]
    """
    need_tensors("interpolate", input=input)
    _check(input, mode, align_corners, antialias)
    sizes, factors = _wanted(input, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        pools = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        return pools[len(sizes) - 1](input, tuple(sizes))
    old = tuple(input.shape)[2:]
    if min(sizes) < 1 or min(old) < 1:
        raise RuntimeError(
            f"interpolate: from {old} to {tuple(sizes)}, expected sizes of at least 1"
        )
    if mode == "nearest" and len(old) == 2 and tuple(sizes) == old:
        return input.clone()  # as PyTorch, whatever the factor; of one and three sizes it is not
    input = input.contiguous()
    bytes_in = input.dtype is F.uint8 and not mode.startswith("nearest")
    y = input.float() if bytes_in else input
    for i, (n, m, factor) in enumerate(zip(old, sizes, factors)):
        y = _along(y, i + 2, n, m, factor, mode, bool(align_corners))
    return y.round().clamp(0.0, 255.0).to(F.uint8) if bytes_in else y


def _check(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in _DIMS:
        raise NotImplementedError(
            f"interpolate: mode is {mode!r}, expected one of {', '.join(map(repr, _DIMS))}"
        )
    if len(input.shape) not in _DIMS[mode]:
        wanted = " or ".join(map(str, _DIMS[mode]))
        raise NotImplementedError(
            f"interpolate: mode {mode!r} on input {tuple(input.shape)}, "
            f"expected {wanted} dimensions"
        )
    rounded = input.dtype is F.uint8 and mode != "area"
    if not (mode.startswith("nearest") or input.is_floating_point() or rounded):
        raise NotImplementedError(
            f"interpolate: mode {mode!r} on input of dtype {input.dtype}, "
            "expected a floating-point dtype or uint8"
        )
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError(f"interpolate: align_corners is given with mode {mode!r}, which has none")
    if antialias:
        raise NotImplementedError("interpolate: antialias=True is not supported")


def _wanted(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float | None]]:
    """New sizes, and the factors that positions are computed with: None for the sizes' own."""
    n = len(input.shape) - 2
    if (size is None) == (scale_factor is None):
        raise ValueError(
            "interpolate: expected either size or scale_factor, got "
            f"{'neither' if size is None else 'both'}"
        )
    if scale_factor is None:
        if recompute:
            raise ValueError("interpolate: recompute_scale_factor needs scale_factor, got size")
        sizes = _each("size", size, n)
        for s in sizes:
            check_counts("interpolate", 0, size=s)
        return sizes, [None] * n
    factors = _each("scale_factor", scale_factor, n)
    for f in factors:
        check_numbers("interpolate", scale_factor=f)
        if not 0.0 <= float(f) < 2.0**31:
            raise RuntimeError(f"interpolate: scale_factor is {f}, expected a positive number")
    factors = [float(f) for f in factors]
    sizes = [math.floor(float(s) * f) for s, f in zip(input.shape[2:], factors)]
    return sizes, [None] * n if recompute else list(factors)


def _each(name: str, value: Any, n: int) -> list[Any]:
    values = list(value) if isinstance(value, (tuple, list)) else [value] * n
    if len(values) != n:
        raise ValueError(f"interpolate: {name} is {value!r}, expected one value or {n} of them")
    return values


def _along(
    x: Tensor, dim: int, n: int, m: int, factor: float | None, mode: str, align: bool
) -> Tensor:
    """One dimension brought from `n` to `m` elements."""
    if mode.startswith("nearest"):
        return x.index_select(dim, _nearest(x, n, m, factor, mode == "nearest-exact"))
    if n == m and (mode != "bicubic" or factor is None or factor == 1.0 or align):
        return x  # as PyTorch: a factor that changes no size does not move what is between
    at = _positions(x, n, m, factor, align)
    if mode == "bicubic":
        return _cubic(x, dim, n, at)
    at = at.clamp(min=0.0)
    low = at.floor().clamp(max=float(n - 1))
    part = (at - low).clamp(max=1.0).to(x.dtype)
    low = low.long()
    high = (low + 1).clamp(max=n - 1)
    if x.dtype.is_floating_point and x.dtype.itemsize >= 4:
        return F.select_between(x, low, high, part, dim)
    part = part.reshape((m,) + (1,) * (len(x.shape) - 1 - dim))
    return x.index_select(dim, low) * (1 - part) + x.index_select(dim, high) * part


def _nearest(x: Tensor, n: int, m: int, factor: float | None, exact: bool) -> Tensor:
    scale = n / m if factor is None else 1.0 / factor
    at = (_steps(x, m) + (0.5 if exact else 0.0)) * scale
    return at.floor().long().clamp(0, n - 1)


def _steps(x: Tensor, m: int) -> Tensor:
    """0, 1, ... in float64 for float64 input, else float32, as PyTorch computes positions."""
    wide = x.dtype.itemsize == 8
    steps = arange(m, device=x.device)
    return steps.double() if wide else steps.float()


def _positions(x: Tensor, n: int, m: int, factor: float | None, align: bool) -> Tensor:
    """Where in the input the output's elements lie."""
    if align:
        return _steps(x, m) * ((n - 1) / (m - 1) if m > 1 else 0.0)
    scale = n / m if factor is None else 1.0 / factor
    return (_steps(x, m) + 0.5) * scale - 0.5


def _cubic(x: Tensor, dim: int, n: int, at: Tensor, a: float = -0.75) -> Tensor:
    """Four neighbours weighted by Keys' cubic convolution."""
    low = at.floor()
    t = at - low
    low = low.long()
    shape = (at.shape[0],) + (1,) * (len(x.shape) - 1 - dim)
    total = None
    for k, distance in enumerate((t + 1, t, 1 - t, 2 - t)):
        if k in (1, 2):
            w = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        else:
            w = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        part = x.index_select(dim, (low + (k - 1)).clamp(0, n - 1)) * w.to(x.dtype).reshape(shape)
        total = part if total is None else total + part
    return total  # pyright: ignore[reportReturnType] (there are four parts)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearranges (..., C r r, H, W) to (..., C, H r, W r).

    Raises:
        RuntimeError: the input has fewer than 3 dimensions, or the channels do not divide.

    >>> F.pixel_shuffle(tf.tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]), 2).tolist()
    [[[1.0, 2.0], [3.0, 4.0]]]
    """
    need_tensors("pixel_shuffle", input=input)
    shape, r = tuple(input.shape), upscale_factor
    if len(shape) < 3 or r < 1 or shape[-3] % (r * r):
        raise RuntimeError(
            f"pixel_shuffle: input {shape} with upscale_factor {r}, expected at least "
            "3 dimensions and channels that divide by its square"
        )
    *lead, c, h, w = shape
    c, k = c // (r * r), len(lead)
    x = input.reshape(*lead, c, r, r, h, w)
    x = x.permute(*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return x.reshape(*lead, c, h * r, w * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearranges (..., C, H r, W r) to (..., C r r, H, W).

    Raises:
        RuntimeError: the input has fewer than 3 dimensions, or height or width do not divide.

    >>> F.pixel_unshuffle(tf.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2).flatten().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    need_tensors("pixel_unshuffle", input=input)
    shape, r = tuple(input.shape), downscale_factor
    if len(shape) < 3 or r < 1 or shape[-1] % r or shape[-2] % r:
        raise RuntimeError(
            f"pixel_unshuffle: input {shape} with downscale_factor {r}, expected at "
            "least 3 dimensions and sizes that divide by it"
        )
    *lead, c, h, w = shape
    k = len(lead)
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    x = x.permute(*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return x.reshape(*lead, c * r * r, h // r, w // r)
