"""Parameters as one vector, and back."""

from __future__ import annotations

import math

from tinyfin.core.tensor import Tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other.

    Raises:
        TypeError: the parameters are on different devices.

    >>> nn.utils.parameters_to_vector([tf.ones(2), tf.zeros(1, 1)]).tolist()
    [1.0, 1.0, 0.0]
    """
    given = list(parameters)
    _one_device("parameters_to_vector", given)
    return F.cat([p.reshape(-1) for p in given], 0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives the parameters the elements of a vector; they share its memory from then on.

    Raises:
        TypeError: `vec` is not a tensor, or the parameters are on different devices.
        RuntimeError: the vector is too short.

    >>> p = nn.Parameter(tf.zeros(1, 2))
    >>> nn.utils.vector_to_parameters(tf.tensor([1.0, 2.0]), [p]); p.tolist()
    [[1.0, 2.0]]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: vec is a {type(vec).__name__}, expected a Tensor")
    given = list(parameters)
    _one_device("vector_to_parameters", given)
    needed = sum(math.prod(p.shape) for p in given)
    if vec.numel() < needed:
        raise RuntimeError(
            f"vector_to_parameters: vec has {vec.numel()} elements, the parameters {needed}"
        )
    at = 0
    for p in given:
        n = math.prod(p.shape)
        p.data = vec[at : at + n].view(*p.shape).data
        at += n


def _one_device(what: str, parameters: list[Tensor]) -> None:
    devices = {str(p.device) for p in parameters}
    if len(devices) > 1:
        raise TypeError(
            f"{what}: the parameters are on {', '.join(sorted(devices))}, expected one device"
        )
