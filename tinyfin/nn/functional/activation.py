"""Activations: functions of one tensor, most of them element by element."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.nn.functional.arguments import check_numbers, composed
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _apply(row: Any, inplace: bool, input: Tensor, *args: float) -> Tensor:
    if not inplace:
        return row(input, *args)
    need_tensors(row.name, input=input)
    x = input.clone() if input.requires_grad else input  # the gradient needs what is overwritten
    return input.copy_(row(x, *args))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0).

    >>> F.relu(tf.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return F.relu_(input) if inplace else F.relu(input)


def relu_(input: Tensor) -> Tensor:
    """`relu` in place."""
    return F.relu_(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6).

    >>> F.relu6(tf.tensor([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """
    return _apply(F.relu6, inplace, input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above zero, `negative_slope` * x below.

    >>> F.leaky_relu(tf.tensor([-1.0, 2.0]), 0.5).tolist()
    [-0.5, 2.0]
    """
    return _apply(F.leaky_relu, inplace, input, negative_slope)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above zero, `weight` * x below, with one weight, or one for each channel (dimension 1).

    Raises:
        RuntimeError: `weight` has neither one element nor one for each channel.

    >>> F.prelu(tf.tensor([-1.0, 2.0]), tf.tensor([0.25])).tolist()
    [-0.25, 2.0]
    """
    need_tensors("prelu", input=input, weight=weight)
    channels = input.shape[1] if len(input.shape) > 1 else 1
    count = weight.numel()
    if count not in (1, channels):
        raise RuntimeError(
            f"prelu: weight has {count} elements, expected 1 or one for each of "
            f"the {channels} channels of input {tuple(input.shape)}"
        )
    if count == 1:
        weight = weight.reshape(())
    else:
        weight = weight.reshape((1, count) + (1,) * (len(input.shape) - 2))
    return F.where(input > 0, input, weight * input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above zero, alpha * (exp(x) - 1) below.

    >>> F.elu(tf.tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return _apply(F.elu, inplace, input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` scaled so that activations keep mean 0 and variance 1.

    >>> F.selu(tf.tensor([0.0])).tolist()
    [0.0]
    """
    return _apply(F.selu, inplace, input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above zero, alpha * (exp(x / alpha) - 1) below: smooth for every alpha.

    >>> F.celu(tf.tensor([0.0, 2.0]), 0.5).tolist()
    [0.0, 2.0]
    """
    return _apply(F.celu, inplace, input, alpha)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution's cumulative function; "tanh" approximates it.

    Raises:
        RuntimeError: `approximate` is neither "none" nor "tanh".

    >>> F.gelu(tf.tensor([0.0])).tolist()
    [0.0]
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: approximate is {approximate!r}, expected 'none' or 'tanh'")
    return F.gelu(input, approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x).

    >>> F.silu(tf.tensor([0.0])).tolist()
    [0.0]
    """
    return _apply(F.silu, inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)).

    >>> F.mish(tf.tensor([0.0])).tolist()
    [0.0]
    """
    return _apply(F.mish, inplace, input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above `threshold`.

    >>> F.softplus(tf.tensor([30.0])).tolist()
    [30.0]
    """
    return F.softplus(input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    >>> F.softsign(tf.tensor([1.0, -3.0])).tolist()
    [0.5, -0.75]
    """
    return F.softsign(input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    >>> F.tanhshrink(tf.tensor([0.0])).tolist()
    [0.0]
    """
    return input - F.tanh(input)


@composed
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x between two bounds.

    Raises:
        ValueError: the bounds are the wrong way round.

    >>> F.hardtanh(tf.tensor([-3.0, 0.5])).tolist()
    [-1.0, 0.5]
    """
    check_numbers("hardtanh", min_val=min_val, max_val=max_val)
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val {min_val} is above max_val {max_val}")
    return _apply(F.hardtanh, inplace, input, min_val, max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6.

    >>> F.hardswish(tf.tensor([0.0, 3.0])).tolist()
    [0.0, 3.0]
    """
    return _apply(F.hardswish, inplace, input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6.

    >>> F.hardsigmoid(tf.tensor([0.0, 4.0])).tolist()
    [0.5, 1.0]
    """
    return _apply(F.hardsigmoid, inplace, input)


@composed
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above `threshold`, `value` elsewhere.

    >>> F.threshold(tf.tensor([1.0, 3.0]), 2.0, -1.0).tolist()
    [-1.0, 3.0]
    """
    need_tensors("threshold", input=input)
    result = input.masked_fill(input <= threshold, value)
    return input.copy_(result) if inplace else result


@composed
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, but zero between -lambd and lambd.

    >>> F.hardshrink(tf.tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """
    need_tensors("hardshrink", input=input)
    return input.masked_fill(input.abs() <= lambd, 0.0)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards zero by lambd, and zero where it is nearer.

    Raises:
        RuntimeError: `lambd` is negative.

    >>> F.softshrink(tf.tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """
    need_tensors("softshrink", input=input)
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambd is {lambd}, expected one that is not negative")
    return input - input.clamp(-lambd, lambd)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    >>> F.sigmoid(tf.tensor([0.0])).tolist()
    [0.5]
    """
    return F.sigmoid(input)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)).

    >>> F.logsigmoid(tf.tensor([90.0])).abs().item() < 1e-6
    True
    """
    return F.logsigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent.

    >>> F.tanh(tf.tensor([0.0])).tolist()
    [0.0]
    """
    return F.tanh(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along a dimension times the sigmoid of the second.

    Raises:
        RuntimeError: the size along `dim` is odd.

    >>> F.glu(tf.tensor([4.0, 0.0])).tolist()
    [2.0]
    """
    need_tensors("glu", input=input)
    size = input.shape[wrap("glu", dim, input.ndim)] if input.ndim else 1
    if size % 2:
        raise RuntimeError(
            f"glu: input {tuple(input.shape)} has size {size} along dim {dim}, expected an even one"
        )
    a, b = input.chunk(2, dim)
    return a * F.sigmoid(b)


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """exp(x), scaled to sum to one along a dimension.

    Args:
        input: of any shape.
        dim: the dimension; without it, a warning, and 0 for 0, 1 or 3 dimensions, else 1.
        dtype: cast `input` to it first.

    >>> F.softmax(tf.tensor([0.0, 0.0]), dim=0).tolist()
    [0.5, 0.5]
    """
    return F.softmax(input, _dim("softmax", input, dim), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Logarithm of `softmax`, computed without leaving logarithms.

    >>> F.log_softmax(tf.tensor([0.0, 0.0]), dim=0).exp().tolist()
    [0.5, 0.5]
    """
    return F.log_softmax(input, _dim("log_softmax", input, dim), dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """`softmax` of -x.

    >>> F.softmin(tf.tensor([0.0, 0.0]), dim=0).tolist()
    [0.5, 0.5]
    """
    return F.softmax(-input, _dim("softmin", input, dim), dtype)


@composed
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random choice with gradients: `softmax` of logits with Gumbel noise, over `tau`.

    Args:
        logits: logarithms of probabilities, which need not be scaled.
        tau: temperature.
        hard: return exact ones and zeros, with the gradients of the soft choice.
        eps: accepted for PyTorch's sake, without effect.
        dim: the dimension to choose along.

    >>> F.gumbel_softmax(tf.zeros(2, 5), hard=True).sum(-1).tolist()
    [1.0, 1.0]
    """
    need_tensors("gumbel_softmax", logits=logits)
    noise = -(-logits.detach().clone().uniform_().clamp(min=1e-30).log()).log()
    soft = F.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    chosen = soft.detach().clone().zero_().scatter(dim, index, 1.0)
    return chosen - soft.detach() + soft


def _dim(what: str, input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    need_tensors(what, input=input)
    import warnings

    chosen = 0 if len(input.shape) in (0, 1, 3) else 1
    warnings.warn(f"{what}: dim is not given and taken to be {chosen}; give it", stacklevel=3)
    return chosen
