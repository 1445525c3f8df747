"""Derivative rules as straight lines of calls, which the walk makes without entering Python.

A rule is a Python function over operations. It is called once for each kind of arguments with
stand-ins, which note the operations instead of running them. Of an argument they know what its kind
says: whether it is there, how many dimensions it has, flags, empty tuples. A rule that decides by
anything else, or calls anything but operations, is no straight line and stays a Python function.
"""

from types import FunctionType

from tinyfin.core import tensor
from tinyfin.ops.row import TABLE, F
from tinyfin.ops.table import ARG, ATTR, G_OR_NONE, OPS, SHAPE, G, Y

ABSENT, TRUE, FALSE, EMPTY, TUPLE = 15, 1, 2, 3, 4
"""What is known of an attribute or an argument, four bits each, 0 for nothing; of tensors and shapes
the number of dimensions."""
UNKNOWN = -1
KNOWN = {ABSENT: None, TRUE: True, FALSE: False, EMPTY: ()}
TENSORS = (G, Y, ARG, G_OR_NONE)
MOST_REGISTERS = 64

ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**"}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""Python's names of operators -> the rows' symbols."""


class CurvedError(Exception):
    """The rule is no straight line."""


class Line:
    """The calls of one rule: registers hold its parameters, constants and the results of steps."""

    def __init__(self, parameters):
        self.size, self.steps, self.constants = parameters, [], []

    def register(self):
        """A new register's number."""
        self.size += 1
        if self.size > MOST_REGISTERS:
            raise CurvedError
        return self.size - 1

    def source(self, value):
        """The register of a stand-in or of a constant."""
        if isinstance(value, StandIn):
            return value.register
        if isinstance(value, (tuple, list)) and any(isinstance(v, StandIn) for v in value):
            raise CurvedError
        number = self.register()
        self.constants.append((number, value))
        return number

    def part(self, value, key, from_behind=False):
        """The register of value[key], or of the last `key` entries."""
        key = self.source(key)
        number = self.register()
        self.steps.append((number, None, (value.register, key), (0,) if from_behind else ()))
        return number

    def call(self, op, args, kwargs):
        """Notes one call, arguments as users pass them."""
        if op.variadic or len(args) > len(op.params) or (len(args) == op.short_form and not kwargs):
            raise CurvedError
        given = dict(zip([name for name, _, _ in op.params], args))
        if not given.keys().isdisjoint(kwargs):
            raise CurvedError
        given.update(kwargs)
        tensors, attrs = [UNKNOWN] * op.nin, [UNKNOWN] * len(op.attrs)
        for name, is_attr, k in op.params:
            if name in given:
                value = given.pop(name)
                if op.varargs and is_attr and not isinstance(value, (StandIn, tuple)):
                    raise CurvedError
                (attrs if is_attr else tensors)[k] = self.source(value)
        if given:
            raise CurvedError
        number = self.register()
        self.steps.append((number, op, tuple(tensors), tuple(attrs)))
        return Results(self, number, op.nout) if op.nout > 1 else Value(self, number, UNKNOWN)


class StandIn:
    """Something that is in a register; whoever wants to know more is told that the line ends."""

    def __init__(self, line, register):
        self.line, self.register = line, register

    def refuse(self, *_):
        """What only the real thing could answer."""
        raise CurvedError

    __bool__ = __iter__ = __len__ = __contains__ = __getitem__ = __eq__ = __ne__ = refuse


class Value(StandIn):
    """A tensor."""

    def __init__(self, line, register, ndim):
        super().__init__(line, register)
        self.dims = ndim

    @property
    def ndim(self):
        """The number of dimensions, where the kind of arguments says it."""
        if self.dims == UNKNOWN:
            raise CurvedError
        return self.dims

    def __getattr__(self, name):
        op = tensor.Tensor.__dict__.get(name)
        if not isinstance(op, tensor.Op):
            raise CurvedError
        return lambda *args, **kwargs: self.line.call(op, (self, *args), kwargs)

    def __neg__(self):
        return self.line.call(OPS["neg"], (self,), {})


def install_operators():
    """Gives stand-ins of tensors the operators that rows have."""

    def install(prefix, symbols, method):
        for name, symbol in symbols.items():
            setattr(Value, f"__{prefix}{name}__", method(by_symbol[symbol]))

    by_symbol = {row.symbol: OPS[row.name] for row in TABLE.values() if row.symbol}
    install("", ARITHMETIC | COMPARISONS, lambda op: lambda x, y: x.line.call(op, (x, y), {}))
    install("r", ARITHMETIC, lambda op: lambda x, y: x.line.call(op, (y, x), {}))


install_operators()


class Results(StandIn):
    """What an operation of several results returns."""

    def __init__(self, line, register, n):
        super().__init__(line, register)
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, k):
        if not isinstance(k, int):
            raise CurvedError
        return Value(self.line, self.line.part(self, range(self.n)[k]), UNKNOWN)

    def __iter__(self):
        return iter([self[k] for k in range(self.n)])


class Sizes(StandIn):
    """A shape, of which the length is known."""

    def __init__(self, line, register, n):
        super().__init__(line, register)
        self.n = n

    def __len__(self):
        return self.n

    def __bool__(self):
        return self.n > 0

    def __getitem__(self, key):
        if isinstance(key, int):
            return StandIn(self.line, self.line.part(self, range(self.n)[key]))
        if isinstance(key.start, Negative) and key.stop is None and key.step is None:
            return StandIn(self.line, self.line.part(self, key.start.value, True))
        return Sizes(self.line, self.line.part(self, key), len(range(self.n)[key]))


class Negative:
    """Minus a number of which only the register is known: the start of a slice from behind."""

    def __init__(self, value):
        self.value = value


class Number(StandIn):
    """An attribute of which nothing is known."""

    def __neg__(self):
        return Negative(self)


class Several(StandIn):
    """An attribute that is a tuple of at least one entry."""

    def __bool__(self):
        return True


class Noting:
    """The name space F of rules, whose operations are noted."""

    def __init__(self, line):
        self.line = line

    def __getattr__(self, name):
        op = OPS.get(name)
        if op is None or getattr(F, name) is not op:
            raise CurvedError
        return lambda *args, **kwargs: self.line.call(op, args, kwargs)


def noted(fn, noting, seen):
    """The function, and those of rows' modules that it calls, with another F."""
    names = seen.get(id(fn.__globals__))
    if names is None:
        names = seen[id(fn.__globals__)] = dict(fn.__globals__)
        for name, value in fn.__globals__.items():
            if value is F:
                names[name] = noting
            elif isinstance(value, FunctionType) and value.__globals__.get("F") is F:
                names[name] = noted(value, noting, seen)
    return FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, fn.__closure__)


def stand_in(line, register, code, kind):
    """What a rule gets for one parameter."""
    if code in TENSORS:
        return None if kind == ABSENT else Value(line, register, kind)
    if code == SHAPE:
        return Sizes(line, register, kind)
    if code == ATTR and kind in KNOWN:
        return KNOWN[kind]
    return (Several if code == ATTR and kind == TUPLE else Number)(line, register)


def straight(rule, kinds):
    """The calls that a rule makes for arguments of these kinds; None where it is no straight line.

    Returns (number of registers, constants, steps, result): a constant is (register, value); a step
    is (register, operation, registers of its tensors, registers of its attributes), without an
    operation a part of a register (see Line.part); the result is a register or a tuple of registers, -1 for None.
    """
    parts = rule.parts()
    line = Line(len(parts))
    values = [
        stand_in(line, k, code, kind) for k, ((code, _), kind) in enumerate(zip(parts, kinds))
    ]
    seen = {}
    try:
        result = noted(rule.fn, Noting(line), seen)(*values)
        if isinstance(result, (tuple, list)):
            found = tuple([UNKNOWN if v is None else line.source(v) for v in result])
        elif result is None:
            return None
        else:
            found = line.source(result)
    except Exception:  # whatever it is, the rule itself is going to say
        return None
    finally:
        for names in seen.values():
            names.clear()  # their functions hold them: no cycle is left
    return line.size, tuple(line.constants), tuple(line.steps), found


def only_called(rule):
    """The elementwise row that a rule does nothing but call, on its parameters in order; its result
    may then be written over the cotangent."""
    parts = rule.parts()
    if not all(code in TENSORS for code, _ in parts):
        return None
    found = straight(rule, [UNKNOWN] * len(parts))
    if found is None or len(found[2]) != 1 or found[1] or found[3] != len(parts):
        return None
    _, op, tensors, attrs = found[2][0]
    if op is None or not op.elementwise or attrs or tensors != tuple(range(len(parts))):
        return None
    return op.name
