"""Compositions users expect that are not rows: arithmetic in other forms, comparisons, extremes."""

from tinyfin.core import tensor
from tinyfin.core.dtype import DType
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors, needs_tensor, wrap

Tensor = tensor.Tensor
INF = float("inf")


# ---- arithmetic in other forms


def clamp(input, min=None, max=None):
    """Limited to a range; bounds are numbers or tensors, NaN passes.

    >>> import tinyfin
    >>> tinyfin.tensor([-2.0, 0.5, 3.0]).clamp(-1, 1).tolist()
    [-1.0, 0.5, 1.0]
    """
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of min and max must be given")
    out = input if min is None else F.clamp_min(input, min)
    return out if max is None else F.clamp_max(out, max)


def clamp_(self, min=None, max=None):
    """Limits to a range in place."""
    if min is None and max is None:
        raise RuntimeError("clamp_: at least one of min and max must be given")
    if min is not None:
        F.clamp_min_(self, min)
    return self if max is None else F.clamp_max_(self, max)


def round(input, *, decimals=0):
    """The nearest integer, halves to even; or the nearest multiple of a power of ten."""
    if decimals == 0:
        return F.round_even(input)
    scale = 10.0 ** abs(decimals)
    return (
        F.round_even(input * scale) / scale if decimals > 0 else F.round_even(input / scale) * scale
    )


def div_rounded(a, b, rounding_mode):
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


def add_tangents(*terms):
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


def lerp(input, end, weight):
    """input + weight (end - input)."""
    return input + weight * (end - input)


def addcmul(input, tensor1, tensor2, *, value=1):
    """input + value tensor1 tensor2."""
    need_tensors("addcmul", input=input, tensor1=tensor1, tensor2=tensor2)
    return input + value * (tensor1 * tensor2)


def addcdiv(input, tensor1, tensor2, *, value=1):
    """input + value tensor1 / tensor2."""
    need_tensors("addcdiv", input=input, tensor1=tensor1, tensor2=tensor2)
    return input + value * (tensor1 / tensor2)


def rsub(input, other):
    """other - input."""
    return other - input


def softplus_formula(x, beta, threshold):
    """log(1 + exp(beta x)) / beta, x itself above the threshold."""
    scaled = x if beta == 1 else x * beta
    soft = F.softplus_one(scaled)
    return F.where(scaled > threshold, x, soft if beta == 1 else soft / beta)


def where(self, condition, other):
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


def refuse_digamma_gradient():
    """digamma's derivative is not built."""
    raise NotImplementedError("digamma: its derivative (polygamma) is not built yet")


# ---- comparison


def isclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """|input - other| <= atol + rtol |other|, element by element."""
    close = F.logical_or(
        F.eq(input, other),
        F.logical_and(F.abs(input - other) <= atol + rtol * F.abs(other), F.isfinite(F.abs(other))),
    )
    return (
        F.logical_or(close, F.logical_and(F.isnan(input), F.isnan(other))) if equal_nan else close
    )


def allclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether all elements are close."""
    return bool(F.all(isclose(input, other, rtol, atol, equal_nan)))


def equal(input, other):
    """Whether shapes and all elements are equal."""
    needs_tensor("equal", input)
    needs_tensor("equal", other, "other")
    return tuple(input.shape) == tuple(other.shape) and bool(F.all(F.eq(input, other)))


def masked_select(input, mask):
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


def isin(elements, test_elements, *, invert=False):
    """Whether elements are among the test elements."""
    needs_tensor("isin", elements, "elements")
    needs_tensor("isin", test_elements, "test_elements")
    found = F.any(F.eq(elements.unsqueeze(-1), test_elements.reshape(-1)), -1)
    return F.logical_not(found) if invert else found


# ---- extremes


def extreme(name, whole, pick, pair):
    """max and min in PyTorch's three forms."""

    def function(input, dim=None, keepdim=False, *, other=None):
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


class Pair(tuple):
    """Results that can be taken by name, as PyTorch's return types."""

    def __new__(cls, items, names):
        self = tuple.__new__(cls, items)
        self.names = names
        return self

    def __getattr__(self, name):
        names = self.__dict__.get("names", ())
        if name in names:
            return self[names.index(name)]
        raise AttributeError(f"no result named '{name}'; have {', '.join(names)}")


def aminmax(input, *, dim=None, keepdim=False):
    """Smallest and largest elements."""
    return Pair((F.amin(input, dim, keepdim), F.amax(input, dim, keepdim)), ("min", "max"))


def var_mean(input, dim=None, *, correction=1, keepdim=False):
    """Variance and mean."""
    return F.var(input, dim, correction=correction, keepdim=keepdim), F.mean(input, dim, keepdim)


def std_mean(input, dim=None, *, correction=1, keepdim=False):
    """Standard deviation and mean."""
    return F.std(input, dim, correction=correction, keepdim=keepdim), F.mean(input, dim, keepdim)


def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum with NaN counted as zero."""
    return F.sum(F.where(F.isnan(input), 0, input), dim, keepdim, dtype=dtype)


def diff(input, n=1, dim=-1):
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


def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities replaced; by the dtype's largest finite numbers where not given."""
    needs_tensor("nan_to_num", input)
    largest = {
        "float16": 65504.0,
        "bfloat16": 3.3895313892515355e38,
        "float32": 3.4028234663852886e38,
        "float64": 1.7976931348623157e308,
    }.get(input.dtype.name)
    if largest is None:
        return input.clone()
    out = F.where(F.isnan(input), nan, input)
    out = F.where(F.eq(out, INF), largest if posinf is None else posinf, out)
    return F.where(F.eq(out, -INF), -largest if neginf is None else neginf, out)


def result_type(tensor1, tensor2):
    """The dtype of an arithmetic result of two tensors or numbers."""
    return (F.mul(tensor1, tensor2) if tensor1 is not tensor2 else tensor1).dtype


def can_cast(from_, to):
    """Whether a cast keeps the category or raises it."""

    def rank(d):
        if not isinstance(d, DType):
            raise TypeError(f"can_cast: got {d!r}, expected a dtype")
        return 3 if d.is_complex else 2 if d.is_floating_point else 0 if d.name == "bool" else 1

    return rank(from_) <= rank(to)


def inplace_of(function):
    """x.name_(...) from a composition: the result written back."""

    def method(self, *args, **kwargs):
        return tensor.assign(self, function(self, *args, **kwargs))

    method.__name__ = function.__name__ + "_"
    method.__doc__ = f"In place: {function.__doc__}"
    return method


largest = extreme("max", "amax", "argmax", "maximum")
smallest = extreme("min", "amin", "argmin", "minimum")
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
    result_type,
    can_cast,
)
NO_METHODS = {"result_type", "can_cast", "rsub", "var_mean", "std_mean"}
PUBLIC = {f.__name__: f for f in FUNCTIONS}
METHODS = {name: f for name, f in PUBLIC.items() if name not in NO_METHODS}
METHODS.update(
    clamp_=clamp_,
    where=where,
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
}
"""Second names, as PyTorch has them."""
RULE_HELPERS = (
    masked_fill_formula,
    div_rounded,
    add_tangents,
    logaddexp_formula,
    softplus_formula,
    silu_slope,
    silu_bend,
    refuse_digamma_gradient,
)
for _name, _value in METHODS.items():
    tensor.install_method(_name, _value)
for _new, _old in ALIASES.items():
    for _end in ("", "_"):
        if hasattr(Tensor, _old + _end):
            tensor.install_method(_new + _end, getattr(Tensor, _old + _end))
