"""Compositions users expect that are not rows: arithmetic in other forms, comparisons, extremes."""

from __future__ import annotations

from tinyfin.core import tensor
from tinyfin.core.dtype import DType, all_dtypes, get_default_dtype
from tinyfin.core.errors import rename
from tinyfin.core.pair import Pair
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors, needs_tensor, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, SupportsFloat

    from tinyfin.core.dtype import DTypeLike

Tensor = tensor.Tensor
INF = float("inf")
DOUBLE = all_dtypes()["float64"]
CLAMPS = {f"clamp_{name}{_}" for name in ("min", "max", "between") for _ in ("", "_")}
"""Rows that errors are not to name."""


# ---- arithmetic in other forms


def bounded(what: str, rows: tuple[Any, Any, Any], x: Tensor, low: Any, high: Any) -> Tensor:
    """By the row for the lower bound, the upper one or both; errors speak of what was called."""
    if low is None and high is None:
        raise RuntimeError(f"{what}: at least one of min and max must be given")
    at_least, at_most, between = rows
    try:
        if low is None:
            return at_most(x, high)
        return at_least(x, low) if high is None else between(x, low, high)
    except (RuntimeError, TypeError) as error:
        rename(error, what, CLAMPS)
        raise


def clamp(
    input: Tensor,
    min: Tensor | SupportsFloat | None = None,
    max: Tensor | SupportsFloat | None = None,
) -> Tensor:
    """Limited to a range; bounds are numbers or tensors, NaN passes.

    >>> import tinyfin
    >>> tinyfin.tensor([-2.0, 0.5, 3.0]).clamp(-1, 1).tolist()
    [-1.0, 0.5, 1.0]
    """
    return bounded("clamp", (F.clamp_min, F.clamp_max, F.clamp_between), input, min, max)


def clamp_(
    self: Tensor,
    min: Tensor | SupportsFloat | None = None,
    max: Tensor | SupportsFloat | None = None,
) -> Tensor:
    """Limits to a range in place."""
    return bounded("clamp_", (F.clamp_min_, F.clamp_max_, F.clamp_between_), self, min, max)


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest integer, halves to even; or the nearest multiple of a power of ten."""
    if decimals == 0:
        return F.round_even(input)
    scale = 10.0 ** abs(decimals)
    return (
        F.round_even(input * scale) / scale if decimals > 0 else F.round_even(input / scale) * scale
    )


def div_rounded(a: Any, b: Any, rounding_mode: str | None) -> Tensor:
    """div with rounding_mode."""
    if rounding_mode is None:
        return F.div(a, b)
    if rounding_mode == "floor":
        return F.floor_divide(a, b)
    if rounding_mode == "trunc":
        return F.trunc_divide(a, b)
    raise RuntimeError(
        f"div: rounding_mode is {rounding_mode!r}, expected None, 'floor' or 'trunc'"
    )


def add_tangents(*terms: Tensor | None) -> Tensor | None:
    """The sum of the terms that are there."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def logaddexp_formula(a, b):
    """max + log1p(exp(-|a - b|)), with equal infinities kept."""
    high = F.maximum(a, b)
    same = F.logical_and(F.isinf(high), F.eq(a, b))
    gap = F.where(same, 0.0, -F.abs(a - b))
    return F.where(same, high, F.maximum(a, b) + F.log1p(F.exp(gap)))


def lerp(input: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """input + weight (end - input)."""
    return input + weight * (end - input)


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """input + value tensor1 tensor2."""
    need_tensors("addcmul", input=input, tensor1=tensor1, tensor2=tensor2)
    return input + value * (tensor1 * tensor2)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """input + value tensor1 / tensor2."""
    need_tensors("addcdiv", input=input, tensor1=tensor1, tensor2=tensor2)
    return input + value * (tensor1 / tensor2)


def rsub(input: Tensor, other: Tensor | float) -> Tensor:
    """other - input."""
    return other - input


def where(self: Tensor, condition: Tensor, other: Tensor | SupportsFloat) -> Tensor:
    """Elements of this tensor where the condition holds, of `other` elsewhere."""
    return F.where(condition, self, other)


def masked_fill_formula(x, mask, value):
    """where() that keeps x's dtype."""
    needs_tensor("masked_fill", x)
    needs_tensor("masked_fill", mask, "mask")
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"masked_fill: value has shape {tuple(value.shape)}, expected a number or a 0-d tensor"
        )
    if mask.dtype.name != "bool":
        raise RuntimeError(f"masked_fill: mask is {mask.dtype}, expected bool")
    if isinstance(value, Tensor):
        value = value.to(x.dtype)
    elif x.dtype.name == "bool":
        value = bool(value)
    elif isinstance(value, float) and not x.is_floating_point():
        if value - value != 0:
            raise RuntimeError(f"masked_fill: value {value} cannot be kept in {x.dtype}")
        value = int(value)
    return F.where(mask, value, x)


def silu_slope(b):
    """The derivative of silu."""
    s = F.sigmoid(b)
    return s * (1 + b * (1 - s))


def silu_bend(b):
    """The second derivative of silu."""
    s = F.sigmoid(b)
    return s * (1 - s) * (2 + b * (1 - 2 * s))


# ---- polygamma

REMAINDER = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
)
"""B(2 j) / (2 j)! with Bernoulli's numbers B: the coefficients of the Euler-Maclaurin series."""


def hurwitz(s: int, q: Tensor) -> Tensor:
    """The sum over k >= 0 of (q + k)^-s, for q >= 0: ten terms, then a series for the others."""
    total = F.pow(q, -s)
    for k in range(1, 10):
        total = total + F.pow(q + k, -s)
    inverse = F.reciprocal(q + 10)
    square = inverse * inverse
    factors, rising = [], float(s)
    for j, number in enumerate(REMAINDER):
        factors.append(number * rising)
        rising *= (s + 2 * j + 1) * (s + 2 * j + 2)
    series = square * factors[-1]
    for factor in factors[-2::-1]:
        series = square * (series + factor)
    return total + F.pow(inverse, s - 1) * (series + inverse * 0.5 + 1 / (s - 1))


def polygamma(n: int, input: Tensor) -> Tensor:
    """Derivative number n of digamma, computed in double precision; itself differentiable.

    >>> import tinyfin
    >>> f"{tinyfin.polygamma(1, tinyfin.tensor(1.0)).item():.4f}"
    '1.6449'
    """
    needs_tensor("polygamma", input)
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"polygamma: n is {n!r} of type {type(n).__name__}, expected an integer")
    n = n.__index__()
    if not 0 <= n <= 170:  # a double holds no greater factorial
        raise RuntimeError(f"polygamma: n is {n}, expected 0 to 170")
    if n == 0:
        return F.digamma(input)
    from math import factorial

    dtype = input.dtype if input.is_floating_point() else get_default_dtype()
    x, s = F.cast(input, DOUBLE), n + 1
    # below 0 the terms from x to 0 come from the other side: each difference is exact there
    below, floor = x < 0, F.floor(x)
    total = hurwitz(s, F.where(below, x - floor, x + 0.0))
    low = F.where(below & (x != floor), x, -0.5)
    other = hurwitz(s, F.floor(low) + 1 - low) - hurwitz(s, 1 - low)
    total = total + F.where(low == x, other if s % 2 == 0 else -other, 0.0)
    return F.cast(total * (float(factorial(n)) * (1 if n % 2 else -1)), dtype)


def polygamma_method(self: Tensor, n: int) -> Tensor:
    """Derivative number n of digamma."""
    return polygamma(n, self)


# ---- comparison


def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """|input - other| <= atol + rtol |other|, element by element."""
    close = F.logical_or(
        F.eq(input, other),
        F.logical_and(F.abs(input - other) <= atol + rtol * F.abs(other), F.isfinite(F.abs(other))),
    )
    return (
        F.logical_or(close, F.logical_and(F.isnan(input), F.isnan(other))) if equal_nan else close
    )


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close."""
    return bool(F.all(isclose(input, other, rtol, atol, equal_nan)))


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are equal."""
    needs_tensor("equal", input)
    needs_tensor("equal", other, "other")
    return tuple(input.shape) == tuple(other.shape) and bool(F.all(F.eq(input, other)))


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where a mask holds, in one axis; both broadcast.

    >>> import tinyfin
    >>> tinyfin.arange(4).masked_select(tinyfin.arange(4) > 1).tolist()
    [2, 3]
    """
    needs_tensor("masked_select", input)
    if needs_tensor("masked_select", mask, "mask").dtype.name != "bool":
        raise RuntimeError(f"masked_select: mask is {mask.dtype}, expected bool")
    shape = F.broadcast_shapes(input.shape, mask.shape)
    return input.expand(shape)[mask.expand(shape)]


def isin(elements: Tensor, test_elements: Tensor, *, invert: bool = False) -> Tensor:
    """Whether elements are among the test elements."""
    needs_tensor("isin", elements, "elements")
    needs_tensor("isin", test_elements, "test_elements")
    found = F.any(F.eq(elements.unsqueeze(-1), test_elements.reshape(-1)), -1)
    return F.logical_not(found) if invert else found


# ---- extremes


def extreme(name: str, whole: str, pick: str, pair: str) -> Callable[..., Any]:
    """max and min in PyTorch's three forms."""

    def function(input, dim=None, keepdim=False, *, other=None, axis=None, keepdims=None):
        if dim is not None and axis is not None:
            raise TypeError(f"{name}: dim and axis are both given, expected one of them")
        dim = axis if dim is None else dim
        keepdim = keepdim if keepdims is None else keepdims
        if isinstance(dim, Tensor) or other is not None:
            return getattr(F, pair)(input, dim if other is None else other)
        needs_tensor(name, input)
        if dim is None:
            if input.numel() == 0:
                raise RuntimeError(
                    f"{name}: the tensor is empty and no dim is given, so there is no element to take"
                )
            return getattr(F, whole)(input)
        d = wrap(name, dim, input.ndim)
        if input.ndim == 0:
            return Pair((input.clone(), F.argmax(input)), ("values", "indices"))
        indices = getattr(F, pick)(input, d, True)
        values = F.gather(input, d, indices)
        return Pair(
            (values, indices) if keepdim else (values.squeeze(d), indices.squeeze(d)),
            ("values", "indices"),
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {name}imum of all elements; with `dim` values and indices along it; with a second tensor "
        f"the {pair}."
    )
    return function


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Pair:
    """Smallest and largest elements."""
    return Pair((F.amin(input, dim, keepdim), F.amax(input, dim, keepdim)), ("min", "max"))


def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    correction: float = 1,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    return F.var(input, dim, correction=correction, keepdim=keepdim), F.mean(input, dim, keepdim)


def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    correction: float = 1,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    return F.std(input, dim, correction=correction, keepdim=keepdim), F.mean(input, dim, keepdim)


def nansum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Sum with NaN counted as zero."""
    return F.sum(F.where(F.isnan(input), 0, input), dim, keepdim, dtype=dtype)


def diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """Differences of neighbours, n times."""
    needs_tensor("diff", input)
    if n < 0 or input.ndim == 0:
        raise RuntimeError(
            f"diff: n is {n} and input has {input.ndim} dimensions, expected n >= 0 and at least one"
        )
    d = wrap("diff", dim, input.ndim)
    for _ in range(min(n, input.shape[d])):
        size = max(input.shape[d] - 1, 0)
        high, low = F.narrow(input, d, min(1, input.shape[d]), size), F.narrow(input, d, 0, size)
        input = F.ne(high, low) if input.dtype.name == "bool" else high - low
    return input


def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """NaN and infinities replaced; by 0 and the dtype's largest finite numbers where not given."""
    needs_tensor("nan_to_num", input)
    if not input.is_floating_point():
        return input.clone()
    from tinyfin.limits import finfo

    largest = finfo(input.dtype).max
    out = F.where(F.isnan(input), 0.0 if nan is None else nan, input)
    out = F.where(F.eq(out, INF), largest if posinf is None else posinf, out)
    return F.where(F.eq(out, -INF), -largest if neginf is None else neginf, out)


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype of an arithmetic result of two tensors or numbers."""
    return tensor.result_dtype(tensor1, tensor2)


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a cast keeps the category or raises it."""

    def rank(d: DType) -> int:
        if not isinstance(d, DType):
            raise TypeError(f"can_cast: got {d!r}, expected a dtype")
        return 3 if d.is_complex else 2 if d.is_floating_point else 0 if d.name == "bool" else 1

    return rank(from_) <= rank(to)


def inplace_of(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """x.name_(...) from a composition: the result written back."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return tensor.assign(self, function(self, *args, **kwargs))

    method.__name__ = function.__name__ + "_"
    method.__doc__ = f"In place: {function.__doc__}"
    return method


largest = extreme("max", "max_over", "argmax", "maximum")
smallest = extreme("min", "min_over", "argmin", "minimum")
FUNCTIONS = (
    clamp,
    round,
    lerp,
    addcmul,
    addcdiv,
    rsub,
    isclose,
    allclose,
    equal,
    isin,
    masked_select,
    largest,
    smallest,
    aminmax,
    var_mean,
    std_mean,
    nansum,
    diff,
    nan_to_num,
    polygamma,
    result_type,
    can_cast,
)
NO_METHODS = {"result_type", "can_cast", "rsub", "var_mean", "std_mean"}
PUBLIC = {f.__name__: f for f in FUNCTIONS}
METHODS: dict[str, Callable] = {name: f for name, f in PUBLIC.items() if name not in NO_METHODS}
METHODS.update(
    clamp_=clamp_,
    where=where,
    polygamma=polygamma_method,
    clip=clamp,
    clip_=clamp_,
    **{f.__name__ + "_": inplace_of(f) for f in (round, lerp, addcmul, addcdiv, nan_to_num)},
)
ALIASES = {
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "concat": "cat",
    "concatenate": "cat",
    "absolute": "abs",
    "negative": "neg",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "fix": "trunc",
    "moveaxis": "movedim",
    "clip": "clamp",
    "_int_mm": "int_mm",
}
"""Second names, as PyTorch has them."""
RULE_HELPERS = (
    masked_fill_formula,
    div_rounded,
    add_tangents,
    logaddexp_formula,
    silu_slope,
    silu_bend,
)
for _name, _value in METHODS.items():
    tensor.install_method(_name, _value)
for _new, _old in ALIASES.items():
    for _end in ("", "_"):
        if hasattr(Tensor, _old + _end):
            tensor.install_method(_new + _end, getattr(Tensor, _old + _end))
