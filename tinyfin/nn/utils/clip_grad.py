"""Gradient clipping: by the norm of all gradients together, or element by element."""

from __future__ import annotations

import math

from tinyfin.autograd.modes import no_grad
from tinyfin.core.tensor import Tensor
from tinyfin.creation import zeros
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _norm(x: Tensor, p: float) -> Tensor:
    dtype = x.dtype
    x = x.detach()
    if dtype.itemsize < 4:
        x = x.float()  # squares of half precision overflow early
    if p == 2.0:
        size = (x * x).sum().sqrt()
    elif math.isinf(p):
        size = x.abs().max() if p > 0 else x.abs().min()
    elif p == 0:
        size = (x != 0).sum()
    else:
        size = (x.abs() ** p).sum() ** (1.0 / p)
    return size.to(dtype)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of all tensors, as if they were one vector.

    Args:
        tensors: one or several.
        norm_type: which norm; may be infinite.
        error_if_nonfinite: refuse a norm that is NaN or infinite.
        foreach: accepted for PyTorch's sake, without effect.

    Raises:
        RuntimeError: the norm is not finite.

    >>> nn.utils.get_total_norm([tf.tensor([3.0]), tf.tensor([4.0])]).item()
    5.0
    """
    given = [x for x in _listed(tensors) if x.numel()]
    p = float(norm_type)
    with no_grad():
        if not given:
            return zeros(())
        norms = [_norm(x, p) for x in given]
        device, dtype = norms[0].device, norms[0].dtype
        total = _norm(F.stack([n.to(device).to(dtype) for n in norms], 0), p)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"get_total_norm: the norm of order {p} of the gradients is "
            f"{total.item()}; to go on, pass error_if_nonfinite=False"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales gradients by max_norm / total_norm where that is less than one.

    >>> p = nn.Parameter(tf.zeros(1)); p.grad = tf.tensor([4.0])
    >>> nn.utils.clip_grads_with_norm_([p], 1.0, tf.tensor(4.0)); round(p.grad.item(), 4)
    1.0
    """
    with no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for p in _listed(parameters):
            g = p.grad
            if g is not None:
                g.mul_(scale.to(g.device).to(g.dtype))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients of all parameters so that their common norm is at most `max_norm`.

    Args:
        parameters: one or several.
        max_norm: the greatest norm.
        norm_type: which norm; may be infinite.
        error_if_nonfinite: refuse gradients whose norm is NaN or infinite, and leave them.
        foreach: accepted for PyTorch's sake, without effect.

    Returns:
        The norm as it was.

    Raises:
        RuntimeError: the norm is not finite.

    >>> p = nn.Parameter(tf.zeros(2)); p.grad = tf.tensor([3.0, 4.0])
    >>> nn.utils.clip_grad_norm_([p], 1.0).item()
    5.0
    >>> [round(v, 3) for v in p.grad.tolist()]
    [0.6, 0.8]
    """
    parameters = _listed(parameters)
    grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    if grads:
        clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limits each element of the gradients to between -clip_value and clip_value.

    >>> p = nn.Parameter(tf.zeros(2)); p.grad = tf.tensor([-3.0, 0.5])
    >>> nn.utils.clip_grad_value_([p], 1.0); p.grad.tolist()
    [-1.0, 0.5]
    """
    bound = float(clip_value)
    with no_grad():
        for p in _listed(parameters):
            if p.grad is not None:
                p.grad.clamp_(-bound, bound)
