"""Modules of the activations, and dropout."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.creation import full
from tinyfin.nn import functional
from tinyfin.nn.functional.arguments import check_numbers
from tinyfin.nn.module import Module
from tinyfin.nn.parameter import Parameter
from tinyfin.ops.row import F
from tinyfin.random import check_probability

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Activation(Module):
    """A function of one tensor; `_options` names the attributes that its repr shows."""

    _options: tuple[str, ...] = ()
    inplace = False

    def extra_repr(self) -> str:
        """The options."""
        texts = [f"{name}={getattr(self, name)!r}" for name in self._options]
        return ", ".join(texts + ["inplace=True"] * bool(self.inplace))


class ReLU(_Activation):
    """max(x, 0).

    >>> nn.ReLU()(tf.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return F.relu_(input) if self.inplace else F.relu(input)


class ReLU6(_Activation):
    """min(max(x, 0), 6).

    >>> nn.ReLU6()(tf.tensor([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.relu6(input, self.inplace)


class LeakyReLU(_Activation):
    """x above zero, `negative_slope` * x below.

    >>> nn.LeakyReLU(0.5)(tf.tensor([-1.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    _options = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Activation):
    """x above zero, alpha * (exp(x) - 1) below.

    >>> nn.ELU()(tf.tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    _options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.elu(input, self.alpha, self.inplace)


class SELU(_Activation):
    """ELU scaled so that activations keep mean 0 and variance 1.

    >>> nn.SELU()(tf.tensor([0.0])).tolist()
    [0.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.selu(input, self.inplace)


class CELU(_Activation):
    """x above zero, alpha * (exp(x / alpha) - 1) below.

    >>> nn.CELU()(tf.tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    _options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.celu(input, self.alpha, self.inplace)


class GELU(_Activation):
    """x times the normal distribution's cumulative function; "tanh" approximates it.

    >>> nn.GELU()(tf.tensor([0.0])).tolist()
    [0.0]
    """

    _options = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.gelu(input, self.approximate)


class SiLU(_Activation):
    """x * sigmoid(x).

    >>> nn.SiLU()(tf.tensor([0.0])).tolist()
    [0.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.silu(input, self.inplace)


class Mish(_Activation):
    """x * tanh(softplus(x)).

    >>> nn.Mish()(tf.tensor([0.0])).tolist()
    [0.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.mish(input, self.inplace)


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above `threshold`.

    >>> nn.Softplus()(tf.tensor([30.0])).tolist()
    [30.0]
    """

    _options = (
        "beta",
        "threshold",
    )

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.softplus(input, self.beta, self.threshold)


class Softsign(_Activation):
    """x / (1 + |x|).

    >>> nn.Softsign()(tf.tensor([1.0, -3.0])).tolist()
    [0.5, -0.75]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.softsign(input)


class Hardswish(_Activation):
    """x * relu6(x + 3) / 6.

    >>> nn.Hardswish()(tf.tensor([0.0, 3.0])).tolist()
    [0.0, 3.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.hardswish(input, self.inplace)


class Hardsigmoid(_Activation):
    """relu6(x + 3) / 6.

    >>> nn.Hardsigmoid()(tf.tensor([0.0, 4.0])).tolist()
    [0.5, 1.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.hardsigmoid(input, self.inplace)


class Sigmoid(_Activation):
    """1 / (1 + exp(-x)).

    >>> nn.Sigmoid()(tf.tensor([0.0])).tolist()
    [0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.sigmoid(input)


class LogSigmoid(_Activation):
    """log(sigmoid(x)).

    >>> nn.LogSigmoid()(tf.tensor([0.0])).exp().tolist()
    [0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.logsigmoid(input)


class Tanh(_Activation):
    """Hyperbolic tangent.

    >>> nn.Tanh()(tf.tensor([0.0])).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.tanh(input)


class Tanhshrink(_Activation):
    """x - tanh(x).

    >>> nn.Tanhshrink()(tf.tensor([0.0])).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.tanhshrink(input)


class Hardshrink(_Activation):
    """x, but zero between -lambd and lambd.

    >>> nn.Hardshrink()(tf.tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        """The bound."""
        return str(self.lambd)

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.hardshrink(input, self.lambd)


class Softshrink(_Activation):
    """x moved towards zero by lambd, and zero where it is nearer.

    >>> nn.Softshrink()(tf.tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        """The bound."""
        return str(self.lambd)

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.softshrink(input, self.lambd)


class GLU(_Activation):
    """The first half along a dimension times the sigmoid of the second.

    >>> nn.GLU()(tf.tensor([4.0, 0.0])).tolist()
    [2.0]
    """

    _options = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.glu(input, self.dim)


class Hardtanh(_Activation):
    """x between two bounds.

    Raises:
        ValueError: the bounds are the wrong way round.

    >>> nn.Hardtanh(-2.0, 2.0)(tf.tensor([-3.0, 0.5])).tolist()
    [-2.0, 0.5]
    """

    _options = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        check_numbers("Hardtanh", min_val=min_val, max_val=max_val)
        if not max_val > min_val:
            raise ValueError(
                f"Hardtanh: max_val is {max_val}, expected more than min_val {min_val}"
            )
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Threshold(_Activation):
    """x above `threshold`, `value` elsewhere.

    >>> nn.Threshold(2.0, -1.0)(tf.tensor([1.0, 3.0])).tolist()
    [-1.0, 3.0]
    """

    _options = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.threshold(input, self.threshold, self.value, self.inplace)


class PReLU(_Activation):
    """x above zero, weight * x below, with one learned weight, or one for each channel.

    Args:
        num_parameters: 1, or the number of channels (dimension 1).
        init: first value of the weights.
        device: where they are.
        dtype: their type.

    Raises:
        RuntimeError: in a call, the number of channels is another one.

    >>> nn.PReLU()(tf.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    _options = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Sets the weights to their first value."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.prelu(input, self.weight)


class _AlongDim(_Activation):
    """What softmax and its relatives share."""

    _options = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_AlongDim):
    """exp(x), scaled to sum to one along `dim`.

    >>> nn.Softmax(dim=0)(tf.tensor([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it along the dimension."""
        return functional.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """Logarithm of the softmax along `dim`.

    >>> nn.LogSoftmax(dim=0)(tf.tensor([0.0, 0.0])).exp().tolist()
    [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it along the dimension."""
        return functional.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    """Softmax of -x along `dim`.

    >>> nn.Softmin(dim=0)(tf.tensor([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it along the dimension."""
        return functional.softmin(input, self.dim)


class Softmax2d(_Activation):
    """Softmax over the channels of each pixel: (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: in a call, the input has another number of dimensions.

    >>> nn.Softmax2d()(tf.zeros(1, 2, 1, 1)).flatten().tolist()
    [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each pixel."""
        if len(input.shape) not in (3, 4):
            raise ValueError(
                f"Softmax2d: input is {tuple(input.shape)}, expected 3 or 4 dimensions"
            )
        return functional.softmax(input, -3)


class _Dropout(Module):
    """What the kinds of dropout share."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_probability(type(self).__name__, p)
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        """The options."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """While training, sets elements to zero with probability p; the others grow by 1 / (1 - p).

    Raises:
        ValueError: p is not between 0 and 1.

    >>> nn.Dropout(0.5).eval()(tf.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each element."""
        return functional.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """While training, drops whole channels of (N, C, L) or (C, L).

    Raises:
        ValueError: p is not between 0 and 1.

    >>> nn.Dropout1d(1.0)(tf.ones(1, 2, 3)).sum().item()
    0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each channel."""
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """While training, drops whole channels of (N, C, H, W).

    Raises:
        ValueError: p is not between 0 and 1.

    >>> nn.Dropout2d(1.0)(tf.ones(1, 2, 3, 3)).sum().item()
    0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each channel."""
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """While training, drops whole channels of (N, C, D, H, W) or (C, D, H, W).

    Raises:
        ValueError: p is not between 0 and 1.

    >>> nn.Dropout3d(1.0)(tf.ones(1, 2, 2, 2, 2)).sum().item()
    0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        """Applies it to each channel."""
        return functional.dropout3d(input, self.p, self.training, self.inplace)
