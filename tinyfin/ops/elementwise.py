"""Rows of arithmetic, comparison, logic, rounding and elementary functions.

`d` gives partial derivatives; the engine multiplies by the cotangent and undoes broadcasting.
"""

from tinyfin.ops.row import F, binary, composite, row, unary

TWO_OVER_SQRT_PI = 1.1283791670955126
LN2 = 0.6931471805599453
LN10 = 2.302585092994046


def pow_da(a, b):
    """b a^(b-1), and zero where b is 0."""
    if isinstance(b, (int, float)):
        if b == 0:
            return 0
        return b if b == 1 else 2 * a if b == 2 else b * F.pow(a, b - 1)
    return F.where(b == 0, 0.0, b * F.pow(a, b - 1))


def pow_db(a, b, y):
    """a^b log a, and zero where a is 0 and b is not negative."""
    if isinstance(a, (int, float)):
        a = F.full_of((), float(a), y)
    return F.where(F.logical_and(a == 0, b >= 0), 0.0, y * F.log(a))


def maximum_share(a, b):
    """The part of the cotangent that goes to a: all, none, or half at a tie."""
    return F.share_max(a, b)


def radius(a, b):
    """The square of a point's distance from the origin, 1 there: its angle has no derivative."""
    square = a * a + b * b
    return F.where(square == 0, 1.0, square)


# ---- arithmetic

binary(
    "add",
    "wrap_add(a, b)",
    symbol="+",
    d=(1, 1),
    doc="Sum, element by element.",
    overload=lambda a, b, *, alpha=1: F.add(a, b * alpha),
)
binary(
    "sub",
    "wrap_sub(a, b)",
    symbol="-",
    d=(1, -1),
    dtypes="ifh",
    doc="Difference, element by element.",
    overload=lambda a, b, *, alpha=1: F.sub(a, b * alpha),
)
binary(
    "mul",
    "wrap_mul(a, b)",
    symbol="*",
    d=(lambda b: b, lambda a: a),
    doc="Product, element by element.",
)
binary(
    "div",
    "a / b",
    symbol="/",
    result="float",
    d=None,
    vjp=(lambda g, b: g / b, lambda g, a, b: -g * (a / b / b)),  # results may be written over
    jvp=lambda y, b, a_t, b_t: F.add_tangents(
        None if a_t is None else a_t / b, None if b_t is None else -b_t * (y / b)
    ),
    doc="Quotient; integers become floating point.",
    overload=lambda a, b, *, rounding_mode=None: F.div_rounded(a, b, rounding_mode),
)
binary(
    "floor_divide",
    "floordiv(a, b)",
    symbol="//",
    d=None,
    nondiff=True,
    dtypes="ifh",
    doc="Quotient rounded down; an integer zero divisor is an error.",
)
binary(
    "trunc_divide",
    "truncdiv(a, b)",
    d=None,
    nondiff=True,
    dtypes="ifh",
    function=False,
    method=False,
    doc="Quotient rounded towards zero.",
)
binary(
    "remainder",
    "mod(a, b)",
    symbol="%",
    dtypes="ifh",
    d=(1, lambda a, b: -F.floor(a / b)),
    doc="Remainder with the sign of the divisor, as Python's %.",
)
binary(
    "fmod",
    "fmod(a, b)",
    dtypes="ifh",
    d=(1, lambda a, b: -F.trunc(a / b)),
    doc="Remainder with the sign of the dividend, as C's fmod.",
)
binary(
    "pow",
    "pow(a, b)",
    symbol="**",
    dtypes="ifh",
    d=(pow_da, pow_db),
    public={"a": "input", "b": "exponent"},
    doc="Power; integers to a negative power give 0, or 1 and -1 for those bases.",
)
binary(
    "maximum",
    "max(a, b)",
    d=(lambda a, b: F.share_max(a, b), lambda a, b: F.share_max(b, a)),
    scalars="fit",
    doc="The larger element; NaN wins; at a tie the gradient is shared.",
)
binary(
    "minimum",
    "min(a, b)",
    d=(lambda a, b: F.share_max(-a, -b), lambda a, b: F.share_max(-b, -a)),
    scalars="fit",
    doc="The smaller element; NaN wins; at a tie the gradient is shared.",
)
binary(
    "share_max",
    "select(a < b, T(0), select(a == b, T(1), T(2))) / T(2)",
    d=None,
    nondiff=True,
    dtypes="fh",
    function=False,
    method=False,
    doc="1 where a is larger or either is NaN, one half at a tie, else 0.",
)
binary(
    "fmax",
    "select(isnan(a), b, select(isnan(b), a, max(a, b)))",
    scalars="fit",
    d=None,
    dtypes="bifh",
    vjp=(
        lambda g, a, b: F.where(F.logical_or(a >= b, b != b), g, 0.0),
        lambda g, a, b: F.where(F.logical_or(a >= b, b != b), 0.0, g),
    ),
    doc="The larger element; a number wins over NaN.",
)
binary(
    "fmin",
    "select(isnan(a), b, select(isnan(b), a, min(a, b)))",
    scalars="fit",
    d=None,
    dtypes="bifh",
    vjp=(
        lambda g, a, b: F.where(F.logical_or(a <= b, b != b), g, 0.0),
        lambda g, a, b: F.where(F.logical_or(a <= b, b != b), 0.0, g),
    ),
    doc="The smaller element; a number wins over NaN.",
)
binary(
    "atan2",
    "atan2(a, b)",
    result="float",
    dtypes="fh",
    d=(lambda a, b: b / radius(a, b), lambda a, b: -a / radius(a, b)),
    doc="Angle of the point (b, a), in radians.",
)
LONGER = "max(abs(a), abs(b))"
UP = f"select({LONGER} < T(8.673617379884035e-19), T(1.2676506002282294e30), T(1))"
"""2^100 below 2^-60: some devices' quotients take subnormal numbers for zeros."""
PART = f"((min(abs(a), abs(b)) * {UP}) / ({LONGER} * {UP}))"
binary(
    "hypot",
    f"select(isinf(a), abs(a), select(isinf(b), abs(b), select({LONGER} * {UP} == T(0), T(0),"
    f" {LONGER} * sqrt(T(1) + {PART} * {PART}))))",
    result="float",
    dtypes="fh",
    d=(lambda a, y: a / y, lambda b, y: b / y),
    doc="Length of the vector (a, b).",
)
binary(
    "copysign",
    "copysign(a, b)",
    result="float",
    dtypes="fh",
    d=(lambda a, y: F.sign(y) * F.sign(a), 0),
    doc="Magnitude of a with the sign of b.",
)
composite(
    "logaddexp",
    "a b",
    lambda a, b: F.logaddexp_formula(a, b),
    scalars=True,
    dtypes="fh",
    doc="log(exp(a) + exp(b)) without overflow.",
)
composite("true_divide", "a b", lambda a, b: F.div(a, b), scalars=True, doc="The same as div.")


# ---- comparison and logic


def compare(name, symbol, doc):
    """A comparison: bool result, no derivative."""
    binary(name, f"a {symbol} b", symbol=symbol, result="bool", d=None, nondiff=True, doc=doc)


compare("eq", "==", "Whether elements are equal.")
compare("ne", "!=", "Whether elements differ.")
compare("lt", "<", "Whether elements of the first are smaller.")
compare("le", "<=", "Whether elements of the first are smaller or equal.")
compare("gt", ">", "Whether elements of the first are larger.")
compare("ge", ">=", "Whether elements of the first are larger or equal.")
binary(
    "logical_and",
    "(a != T(0)) & (b != T(0))",
    result="bool",
    d=None,
    nondiff=True,
    doc="Both nonzero.",
)
binary(
    "logical_or",
    "(a != T(0)) | (b != T(0))",
    result="bool",
    d=None,
    nondiff=True,
    doc="Either nonzero.",
)
binary(
    "logical_xor",
    "(a != T(0)) != (b != T(0))",
    result="bool",
    d=None,
    nondiff=True,
    doc="Exactly one nonzero.",
)
unary(
    "logical_not",
    "x == T(0)",
    d=None,
    result="bool",
    nondiff=True,
    doc="Whether elements are zero.",
)
binary(
    "bitwise_and",
    "a & b",
    symbol="&",
    d=None,
    nondiff=True,
    dtypes="bi",
    doc="Bitwise and; logical for bool.",
)
binary(
    "bitwise_or",
    "a | b",
    symbol="|",
    d=None,
    nondiff=True,
    dtypes="bi",
    doc="Bitwise or; logical for bool.",
)
binary(
    "bitwise_xor",
    "a ^ b",
    symbol="^",
    d=None,
    nondiff=True,
    dtypes="bi",
    doc="Bitwise exclusive or; logical for bool.",
)
unary(
    "bitwise_not",
    "bitnot(x)",
    symbol="~",
    d=None,
    result="same",
    nondiff=True,
    dtypes="bi",
    doc="Bitwise complement; logical for bool.",
)
binary(
    "bitwise_left_shift",
    "shl(a, b)",
    symbol="<<",
    d=None,
    nondiff=True,
    dtypes="i",
    doc="Shift left; too large counts give 0.",
)
binary(
    "bitwise_right_shift",
    "shr(a, b)",
    symbol=">>",
    d=None,
    nondiff=True,
    dtypes="i",
    doc="Arithmetic shift right; too large counts give the sign.",
)
unary("isnan", "isnan(x)", d=None, result="bool", nondiff=True, doc="Whether elements are NaN.")
unary(
    "isinf", "isinf(x)", d=None, result="bool", nondiff=True, doc="Whether elements are infinite."
)
unary(
    "isfinite",
    "(isnan(x) == 0) & (isinf(x) == 0)",
    d=None,
    result="bool",
    nondiff=True,
    doc="Whether elements are neither NaN nor infinite.",
)
unary(
    "signbit", "signbit(x)", d=None, result="bool", nondiff=True, doc="Whether the sign bit is set."
)

# ---- choice

row(
    "where",
    "c a b",
    expr="select(c != T(0), a, b)",
    infer="where",
    family="elementwise",
    scalars="fit",
    vjp=(None, lambda g, c: F.where(c, g, 0.0), lambda g, c: F.where(c, 0.0, g)),
    jvp=lambda c, a_t, b_t: F.where(c, 0.0 if a_t is None else a_t, 0.0 if b_t is None else b_t),
    public={"a": "input"},
    method=False,
    overload=lambda c: F.nonzero(c, as_tuple=True),
    doc="Elements of the second tensor where the condition holds, of the third elsewhere; of a "
    "condition alone the places where it holds, one tensor for each axis.",
)
composite(
    "masked_fill",
    "x c a",
    lambda x, c, a: F.masked_fill_formula(x, c, a),
    scalars=True,
    inplace=True,
    public={"c": "mask", "a": "value"},
    dtypes="any",
    doc="A value where the mask holds, the tensor elsewhere.",
)
binary(
    "clamp_min",
    "select(isnan(x), x, select(isnan(a), a, select(x < a, a, x)))",
    args="x a",
    scalars="fit",
    d=None,
    public={"a": "min"},
    vjp=(lambda g, x, a: F.where(x >= a, g, 0.0), lambda g, x, a: F.where(x < a, g, 0.0)),
    doc="Elements not below a bound; NaN in either passes.",
)
binary(
    "clamp_max",
    "select(isnan(x), x, select(isnan(a), a, select(x > a, a, x)))",
    args="x a",
    scalars="fit",
    d=None,
    public={"a": "max"},
    vjp=(lambda g, x, a: F.where(x <= a, g, 0.0), lambda g, x, a: F.where(x > a, g, 0.0)),
    doc="Elements not above a bound; NaN in either passes.",
)
binary(
    "clamp_between",
    "min(max(x, a), b)",
    args="x a b",
    scalars="fit",
    d=None,
    function=False,
    method=False,
    public={"a": "min", "b": "max"},
    vjp=(
        lambda g, x, a, b: F.where(F.between(x, a, b), g, 0.0),
        lambda g, x, a, b: F.where(F.logical_and(x < a, a < b), g, 0.0),
        lambda g, x, a, b: F.where(F.logical_or(x > b, a > b), g, 0.0),
    ),
    doc="Elements not below one bound and not above another, which wins; NaN in any passes.",
)
binary(
    "between",
    "(x >= a) & (x <= b)",
    args="x a b",
    d=None,
    result="bool",
    nondiff=True,
    function=False,
    method=False,
    public={"a": "min", "b": "max"},
    doc="Whether elements are neither below one bound nor above another.",
)

# ---- rounding and sign

unary("abs", "abs(x)", symbol="abs", result="same", d=lambda x: F.sign(x), doc="Magnitude.")
unary("neg", "neg(x)", symbol="neg", result="same", d=-1, dtypes="ifh", doc="The negative.")
unary("sign", "T(x > T(0)) - T(x < T(0))", result="same", d=0, doc="-1, 0 or 1 by sign; 0 for NaN.")
unary(
    "floor",
    "floor(x)",
    result="same",
    d=0,
    dtypes="ifh",
    doc="Largest integer not above each element.",
)
unary(
    "ceil",
    "ceil(x)",
    result="same",
    d=0,
    dtypes="ifh",
    doc="Smallest integer not below each element.",
)
unary("trunc", "trunc(x)", result="same", d=0, dtypes="ifh", doc="Integer part.")
unary(
    "round_even",
    "round(x)",
    result="same",
    d=0,
    dtypes="ifh",
    function=False,
    method=False,
    doc="Nearest integer, halves to even.",
)
unary(
    "square",
    "wrap_mul(x, x)",
    result="same",
    d=lambda x: 2 * x,
    dtypes="ifh",
    doc="Product with itself.",
)
unary("positive", "x", result="same", d=1, dtypes="ifh", doc="The element itself.", inplace=False)

# ---- elementary functions

unary("exp", "exp(x)", d=lambda y: y, dtypes="fh", doc="Exponential.")
unary("exp2", "exp2(x)", d=lambda y: y * LN2, dtypes="fh", doc="Two to the power of each element.")
unary("expm1", "expm1(x)", d=lambda y: y + 1, dtypes="fh", doc="exp(x) - 1, exact near 0.")
unary("log", "log(x)", d=lambda x: 1 / x, dtypes="fh", domain=(0.1, 5), doc="Natural logarithm.")
unary(
    "log2",
    "log2(x)",
    d=lambda x: 1 / (x * LN2),
    dtypes="fh",
    domain=(0.1, 5),
    doc="Logarithm to base 2.",
)
unary(
    "log10",
    "log10(x)",
    d=lambda x: 1 / (x * LN10),
    dtypes="fh",
    domain=(0.1, 5),
    doc="Logarithm to base 10.",
)
unary(
    "log1p",
    "log1p(x)",
    d=lambda x: 1 / (1 + x),
    dtypes="fh",
    domain=(-0.9, 5),
    doc="log(1 + x), exact near 0.",
)
unary(
    "sqrt",
    "sqrt(x)",
    d=None,
    vjp=(lambda g, y: g / (2 * y)),
    jvp=lambda y, x_t: x_t / (2 * y),
    dtypes="fh",
    domain=(0.1, 5),
    doc="Square root.",
)
unary(
    "root_or_flat",
    "sqrt(x)",
    d=None,
    vjp=lambda g, y: F.where(y == 0, 0.0, g / (2 * y)),
    dtypes="fh",
    jvp=lambda y, x_t: F.where(y == 0, 0.0, x_t / (2 * y)),
    domain=(0.1, 5),
    function=False,
    method=False,
    doc="Square root whose gradient at 0 is taken as 0: norms have a subgradient there.",
)
unary(
    "rsqrt",
    "rsqrt(x)",
    d=lambda y: -0.5 * (y * y * y),
    dtypes="fh",
    domain=(0.1, 5),
    doc="One over the square root.",
)
unary(
    "reciprocal",
    "T(1) / x",
    d=lambda y: -(y * y),
    dtypes="fh",
    domain=(0.3, 5),
    doc="One over each element.",
)
unary("sin", "sin(x)", d=lambda x: F.cos(x), dtypes="fh", doc="Sine; radians.")
unary("cos", "cos(x)", d=lambda x: -F.sin(x), dtypes="fh", doc="Cosine; radians.")
unary(
    "tan", "tan(x)", d=lambda y: 1 + y * y, dtypes="fh", domain=(-1.2, 1.2), doc="Tangent; radians."
)
unary(
    "asin",
    "asin(x)",
    d=lambda x: F.rsqrt(1 - x * x),
    dtypes="fh",
    domain=(-0.9, 0.9),
    doc="Inverse sine; radians.",
)
unary(
    "acos",
    "acos(x)",
    d=lambda x: -F.rsqrt(1 - x * x),
    dtypes="fh",
    domain=(-0.9, 0.9),
    doc="Inverse cosine; radians.",
)
unary("atan", "atan(x)", d=lambda x: 1 / (1 + x * x), dtypes="fh", doc="Inverse tangent; radians.")
unary("sinh", "sinh(x)", d=lambda x: F.cosh(x), dtypes="fh", doc="Hyperbolic sine.")
unary("cosh", "cosh(x)", d=lambda x: F.sinh(x), dtypes="fh", doc="Hyperbolic cosine.")
unary("tanh", "tanh(x)", d=lambda y: 1 - y * y, dtypes="fh", doc="Hyperbolic tangent.")
unary(
    "asinh", "asinh(x)", d=lambda x: F.rsqrt(x * x + 1), dtypes="fh", doc="Inverse hyperbolic sine."
)
unary(
    "acosh",
    "acosh(x)",
    d=lambda x: F.rsqrt(x * x - 1),
    dtypes="fh",
    domain=(1.2, 5),
    doc="Inverse hyperbolic cosine.",
)
unary(
    "atanh",
    "atanh(x)",
    d=lambda x: 1 / (1 - x * x),
    dtypes="fh",
    domain=(-0.9, 0.9),
    doc="Inverse hyperbolic tangent.",
)
unary(
    "erf",
    "erf(x)",
    d=lambda x: TWO_OVER_SQRT_PI * F.exp(-(x * x)),
    dtypes="fh",
    doc="Error function.",
)
unary(
    "erfc",
    "erfc(x)",
    d=lambda x: -TWO_OVER_SQRT_PI * F.exp(-(x * x)),
    dtypes="fh",
    doc="1 - erf(x), exact for large x.",
)
unary(
    "erfinv",
    "erfinv(x)",
    d=lambda x: F.exp(F.square(F.erfinv(x))) / TWO_OVER_SQRT_PI,
    dtypes="fh",
    domain=(-0.9, 0.9),
    doc="Inverse of the error function.",
)
unary(
    "lgamma",
    "lgamma(x)",
    d=lambda x: F.digamma(x),
    dtypes="fh",
    domain=(0.3, 5),
    doc="Logarithm of the magnitude of the gamma function.",
)
unary(
    "digamma",
    "digamma(x)",
    d=lambda x: F.polygamma(1, x),
    dtypes="fh",
    domain=(0.3, 5),
    doc="Derivative of lgamma.",
)
