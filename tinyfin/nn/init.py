"""Initialisers: fill a tensor in place with the values that a layer starts from.

Each returns the tensor that it was given; none is recorded for derivatives. `generator` is the
source of random numbers, the global one where it is None.
"""

from __future__ import annotations

import math

from tinyfin.autograd.modes import no_grad
from tinyfin.core.tensor import Tensor
from tinyfin.creation import zeros
from tinyfin.shaping import needs_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights make up for what an activation does to the variance.

    Args:
        nonlinearity: name of a function of `tinyfin.nn.functional`.
        param: the negative slope of "leaky_relu", 0.01 by default.

    Raises:
        ValueError: the name is unknown, or the slope is not a number.

    >>> nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"calculate_gain: param is {param!r}, expected a number")
        return math.sqrt(2.0 / (1 + slope * slope))
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"calculate_gain: nonlinearity is {nonlinearity!r}, expected one of "
            f"{', '.join(sorted([*_GAINS, 'leaky_relu']))}"
        )
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from the uniform distribution between `a` and `b`.

    >>> bool((nn.init.uniform_(tf.empty(9), 2.0, 3.0) >= 2.0).all())
    True
    """
    needs_tensor("uniform_", tensor, "tensor")
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from the normal distribution.

    >>> nn.init.normal_(tf.empty(2), mean=5.0, std=0.0).tolist()
    [5.0, 5.0]
    """
    needs_tensor("normal_", tensor, "tensor")
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Draws from the part of the normal distribution between `a` and `b`.

    >>> bool((nn.init.trunc_normal_(tf.empty(99), std=9.0).abs() <= 2.0).all())
    True
    """
    needs_tensor("trunc_normal_", tensor, "tensor")
    low, high = _normal_cdf((a - mean) / std), _normal_cdf((b - mean) / std)
    with no_grad():
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        tensor.erfinv_()
        return tensor.mul_(std * math.sqrt(2.0)).add_(mean).clamp_(a, b)


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Sets all elements to `val`.

    >>> nn.init.constant_(tf.empty(2), 0.5).tolist()
    [0.5, 0.5]
    """
    needs_tensor("constant_", tensor, "tensor")
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Sets all elements to one.

    >>> nn.init.ones_(tf.empty(2)).tolist()
    [1.0, 1.0]
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Sets all elements to zero.

    >>> nn.init.zeros_(tf.empty(2)).tolist()
    [0.0, 0.0]
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Makes a matrix the identity: a linear layer passes its inputs on.

    Raises:
        ValueError: the tensor is not a matrix.

    >>> nn.init.eye_(tf.empty(2, 3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    _check_dims("eye_", tensor, (2,))
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1.0)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes the kernels of a convolution pass on as many channels as they can.

    Args:
        tensor: of shape (out, in, ...) with one to three sizes of the kernel.
        groups: of the convolution.

    Raises:
        ValueError: the number of dimensions is not 3, 4 or 5, or `groups` does not divide the
            first size.

    >>> nn.init.dirac_(tf.empty(2, 2, 3)).tolist()
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """
    _check_dims("dirac_", tensor, (3, 4, 5))
    if tensor.shape[0] % groups:
        raise ValueError(
            f"dirac_: {tensor.shape[0]} output channels do not divide into {groups} groups"
        )
    each = tensor.shape[0] // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for i in range(min(each, tensor.shape[1])):
                tensor[(group * each + i, i, *centre)] = 1.0
    return tensor


def _fans(tensor: Tensor, what: str) -> tuple[int, int]:
    """Numbers of inputs and of outputs that one unit of a layer is connected to."""
    shape = tuple(needs_tensor(what, tensor, "tensor").shape)
    if len(shape) < 2:
        raise ValueError(
            f"{what}: tensor is {shape}, expected at least two dimensions to tell "
            "inputs from outputs"
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draws uniformly so that variance is kept both ways: bound gain * sqrt(6 / (in + out)).

    Raises:
        ValueError: the tensor has fewer than two dimensions.

    >>> bool((nn.init.xavier_uniform_(tf.empty(3, 3)).abs() <= 1.0).all())
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor, "xavier_uniform_")))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draws normally so that variance is kept both ways: deviation gain * sqrt(2 / (in + out)).

    Raises:
        ValueError: the tensor has fewer than two dimensions.

    >>> tuple(nn.init.xavier_normal_(tf.empty(3, 3)).shape)
    (3, 3)
    """
    std = gain * math.sqrt(2.0 / sum(_fans(tensor, "xavier_normal_")))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(what: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{what}: mode is {mode!r}, expected 'fan_in' or 'fan_out'")
    fan = _fans(tensor, what)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draws uniformly for layers followed by a rectifier: bound gain * sqrt(3 / fan).

    Args:
        tensor: the weight.
        a: negative slope of the rectifier.
        mode: "fan_in" keeps the variance going forward, "fan_out" going backward.
        nonlinearity: see `calculate_gain`.

    Raises:
        ValueError: the tensor has fewer than two dimensions, or a name is unknown.

    >>> bool((nn.init.kaiming_uniform_(tf.empty(3, 6)).abs() <= 1.0).all())
    True
    """
    if 0 in tuple(needs_tensor("kaiming_uniform_", tensor, "tensor").shape):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draws normally for layers followed by a rectifier: deviation gain / sqrt(fan).

    Args:
        tensor: the weight.
        a: negative slope of the rectifier.
        mode: "fan_in" keeps the variance going forward, "fan_out" going backward.
        nonlinearity: see `calculate_gain`.

    Raises:
        ValueError: the tensor has fewer than two dimensions, or a name is unknown.

    >>> tuple(nn.init.kaiming_normal_(tf.empty(3, 6), mode="fan_out").shape)
    (3, 6)
    """
    if 0 in tuple(needs_tensor("kaiming_normal_", tensor, "tensor").shape):
        return tensor
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Draws an orthogonal matrix: rows, or columns where there are fewer, of length `gain`.

    Dimensions after the first count as one.

    Raises:
        ValueError: the tensor has fewer than two dimensions.

    >>> q = nn.init.orthogonal_(tf.empty(2, 3))
    >>> tf.allclose(q @ q.t(), tf.eye(2), atol=1e-5)
    True
    """
    if len(needs_tensor("orthogonal_", tensor, "tensor").shape) < 2:
        raise ValueError(
            f"orthogonal_: tensor is {tuple(tensor.shape)}, expected at least two dimensions"
        )
    if 0 in tuple(tensor.shape):
        return tensor
    rows = tensor.shape[0]
    columns = math.prod(tensor.shape[1:])
    dtype = tensor.dtype if tensor.dtype.itemsize >= 4 else None
    with no_grad():
        flat = zeros((rows, columns), dtype=dtype, device=tensor.device)
        flat.normal_(0.0, 1.0, generator=generator)
        q = _orthonormal_rows(flat if rows <= columns else flat.t())
        q = q if rows <= columns else q.t()
        return tensor.copy_(q.reshape(tuple(tensor.shape))).mul_(gain)


def _orthonormal_rows(x: Tensor, block: int = 32) -> Tensor:
    """Gram-Schmidt in blocks of rows; done twice, it is orthogonal to rounding error."""
    y = zeros(tuple(x.shape), dtype=x.dtype, device=x.device)
    for start in range(0, x.shape[0], block):
        part = _without(x[start : start + block], y[:start])
        for i in range(part.shape[0]):
            row = _without(part[i : i + 1], y[start : start + i])
            y[start + i] = row[0] / (row * row).sum().sqrt()
    return y


def _without(x: Tensor, y: Tensor) -> Tensor:
    """Rows of `x` less their parts along the orthonormal rows of `y`."""
    for _ in range(2 if y.shape[0] else 0):
        x = x - (x @ y.t()) @ y
    return x


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draws a matrix normally and sets a fraction of each column, chosen at random, to zero.

    Raises:
        ValueError: the tensor is not a matrix.

    >>> int((nn.init.sparse_(tf.empty(10, 3), sparsity=0.3) == 0).sum())
    9
    """
    _check_dims("sparse_", tensor, (2,))
    rows, columns = tensor.shape
    zero = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0.0, std, generator=generator)
        keys = zeros((rows, columns)).uniform_(0.0, 1.0, generator=generator)
        rank = keys.argsort(0).argsort(0)
        return tensor.masked_fill_(rank.to(tensor.device) < zero, 0.0)


def _check_dims(what: str, tensor: Tensor, wanted: tuple[int, ...]) -> None:
    if len(needs_tensor(what, tensor, "tensor").shape) not in wanted:
        raise ValueError(
            f"{what}: tensor is {tuple(tensor.shape)}, expected "
            f"{' or '.join(map(str, wanted))} dimensions"
        )
