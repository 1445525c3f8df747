"""Pooling: the greatest or the mean of windows."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.nn.functional.arguments import sizes
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _batched(what: str, n: int, input: Tensor) -> tuple[Tensor, bool]:
    if not isinstance(input, Tensor):
        need_tensors(what, input=input)
    if len(input.shape) not in (n + 1, n + 2):
        raise RuntimeError(
            f"{what}: input is {tuple(input.shape)}, expected {n + 1} dimensions, "
            f"or {n + 2} with a batch"
        )
    batched = len(input.shape) == n + 2
    return (input if batched else input.unsqueeze(0)), batched


def _windows(
    what: str, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: tuple = (1, 1, 1)
) -> tuple[tuple, tuple, tuple]:
    kernel = sizes(what, "kernel_size", kernel_size, n)
    if stride is None or (isinstance(stride, (tuple, list)) and not stride):
        stride = kernel
    stride, padding = sizes(what, "stride", stride, n), sizes(what, "padding", padding, n)
    if min(kernel) < 1 or min(stride) < 1:
        raise RuntimeError(
            f"{what}: kernel_size is {kernel} and stride {stride}, expected at least 1"
        )
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    if any(not 0 <= p <= r // 2 for p, r in zip(padding, reach)):
        raise RuntimeError(
            f"{what}: padding is {padding}, expected 0 to half of kernel_size "
            f"{kernel} with its dilation"
        )
    return kernel, stride, padding


def _max_pool(
    what: str,
    row: Any,
    n: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    dilation = sizes(what, "dilation", dilation, n)
    kernel, stride, padding = _windows(what, n, kernel_size, stride, padding, dilation)
    x, batched = _batched(what, n, input)
    values, indices = row(x, kernel, stride, padding, dilation, ceil_mode)
    if not batched:
        values, indices = values.squeeze(0), indices.squeeze(0)
    return (values, indices) if return_indices else values


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest of each window over one dimension.

    Shapes: (N, C, L) or (C, L) to (N, C, L') or (C, L').

    Args:
        input: signals.
        kernel_size: size of the windows.
        stride: step of the windows; None for their size.
        padding: places on both sides that never win.
        dilation: distance of a window's elements.
        ceil_mode: let a last window reach beyond the end.
        return_indices: also return where in the signal the greatest stood.

    Raises:
        RuntimeError: the shapes do not fit, or `padding` is more than half a window.

    >>> F.max_pool1d(tf.tensor([[1.0, 3.0, 2.0, 5.0]]), 2).tolist()
    [[3.0, 5.0]]
    """
    return _max_pool(
        "max_pool1d",
        F.max_pool1d,
        1,
        input,
        kernel_size,
        stride,
        padding,
        dilation,
        ceil_mode,
        return_indices,
    )


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest of each window over two dimensions.

    Shapes: (N, C, H, W) or (C, H, W). Arguments and errors are those of `max_pool1d`, with one
    integer or two; an index counts elements of the flattened picture.

    >>> F.max_pool2d(tf.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2).tolist()
    [[[4.0]]]
    """
    return _max_pool(
        "max_pool2d",
        F.max_pool2d,
        2,
        input,
        kernel_size,
        stride,
        padding,
        dilation,
        ceil_mode,
        return_indices,
    )


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest of each window over three dimensions.

    Shapes: (N, C, D, H, W) or (C, D, H, W). Arguments and errors are those of `max_pool1d`.

    >>> F.max_pool3d(tf.ones(1, 2, 2, 2), 2).tolist()
    [[[[1.0]]]]
    """
    return _max_pool(
        "max_pool3d",
        F.max_pool3d,
        3,
        input,
        kernel_size,
        stride,
        padding,
        dilation,
        ceil_mode,
        return_indices,
    )


def _avg_pool(
    what: str,
    row: Any,
    n: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    kernel, stride, padding = _windows(what, n, kernel_size, stride, padding)
    if divisor_override == 0:
        raise RuntimeError(f"{what}: divisor_override is 0")
    x, batched = _batched(what, n, input)
    y = row(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return y if batched else y.squeeze(0)


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window over one dimension.

    Shapes: (N, C, L) or (C, L) to (N, C, L') or (C, L').

    Args:
        input: signals.
        kernel_size: size of the windows.
        stride: step of the windows; None for their size.
        padding: zeros on both sides.
        ceil_mode: let a last window reach beyond the end.
        count_include_pad: divide by the size of the window even where it holds padding.

    Raises:
        RuntimeError: the shapes do not fit, or `padding` is more than half a window.

    >>> F.avg_pool1d(tf.tensor([[1.0, 3.0, 2.0, 6.0]]), 2).tolist()
    [[2.0, 4.0]]
    """
    return _avg_pool(
        "avg_pool1d",
        F.avg_pool1d,
        1,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        None,
    )


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over two dimensions.

    Shapes: (N, C, H, W) or (C, H, W). Arguments and errors are those of `avg_pool1d`, with one
    integer or two; `divisor_override` stands for the number of elements.

    >>> F.avg_pool2d(tf.tensor([[[1.0, 2.0], [3.0, 6.0]]]), 2).tolist()
    [[[3.0]]]
    """
    return _avg_pool(
        "avg_pool2d",
        F.avg_pool2d,
        2,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over three dimensions.

    Shapes: (N, C, D, H, W) or (C, D, H, W). Arguments and errors are those of `avg_pool2d`.

    >>> F.avg_pool3d(tf.ones(1, 2, 2, 2), 2).tolist()
    [[[[1.0]]]]
    """
    return _avg_pool(
        "avg_pool3d",
        F.avg_pool3d,
        3,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def _adaptive(what: str, n: int, input: Tensor, output_size: Any) -> tuple[Tensor, bool, tuple]:
    x, batched = _batched(what, n, input)
    single = output_size is None or (
        hasattr(output_size, "__index__") and not hasattr(output_size, "__len__")
    )
    wanted = (output_size,) * n if single else output_size
    if not isinstance(wanted, (tuple, list)) or any(
        w is not None and not hasattr(w, "__index__") for w in wanted
    ):
        raise TypeError(f"{what}: output_size is {output_size!r}, expected an int or {n} of them")
    if len(wanted) != n:
        raise ValueError(f"{what}: output_size is {output_size!r}, expected an int or {n} of them")
    size = tuple(s if w is None else w for w, s in zip(wanted, x.shape[-n:]))
    if min(size) < 0:
        raise RuntimeError(f"{what}: output_size is {size}, expected sizes that are not negative")
    return x, batched, size


def _adaptive_avg(what: str, row: Any, n: int, input: Tensor, output_size: Any) -> Tensor:
    x, batched, size = _adaptive(what, n, input, output_size)
    y = row(x, size)
    return y if batched else y.squeeze(0)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows chosen so that the result has a given size.

    Shapes: (N, C, L) or (C, L) to (N, C, output_size).

    Raises:
        ValueError: `output_size` has the wrong length.
        RuntimeError: the shapes do not fit.

    >>> F.adaptive_avg_pool1d(tf.tensor([[1.0, 3.0, 5.0, 7.0]]), 2).tolist()
    [[2.0, 6.0]]
    """
    return _adaptive_avg("adaptive_avg_pool1d", F.adaptive_avg_pool1d, 1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows chosen so that the result has given sizes.

    Shapes: (N, C, H, W) or (C, H, W); a None in `output_size` keeps that size. Errors are those of
    `adaptive_avg_pool1d`.

    >>> F.adaptive_avg_pool2d(tf.tensor([[[1.0, 2.0], [3.0, 6.0]]]), (1, None)).tolist()
    [[[2.0, 4.0]]]
    """
    return _adaptive_avg("adaptive_avg_pool2d", F.adaptive_avg_pool2d, 2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows chosen so that the result has given sizes.

    Shapes: (N, C, D, H, W) or (C, D, H, W); a None in `output_size` keeps that size. Errors are
    those of `adaptive_avg_pool1d`.

    >>> F.adaptive_avg_pool3d(tf.ones(1, 2, 3, 4), 1).tolist()
    [[[[1.0]]]]
    """
    return _adaptive_avg("adaptive_avg_pool3d", F.adaptive_avg_pool3d, 3, input, output_size)
