"""Gathers the rows, checks them, makes the operations and puts them where users find them."""

from importlib import import_module

from tinyfin.core import infer, signature, tensor
from tinyfin.ops.modules import MODULES
from tinyfin.ops.row import TABLE, F

RULES = dict(infer.RULES)
OPS = {}
"""name -> Op, rows and in-place twins."""

G, Y, ARG, SHAPE, ATTR, G_OR_NONE, TANGENT, DTYPE_OF, PER_Y = 0, 1, 2, 3, 4, 5, 6, 8, 9


ENDINGS = {"_shape": SHAPE, "_t": TANGENT, "_dtype": DTYPE_OF, "_per_y": PER_Y}
"""What a rule may ask of an argument: its shape, tangent, dtype, elements for one of the result's."""


def compile_rule(row, fn):
    """A Rule from a function whose parameter names say what it needs, or from a constant.

    A cotangent that nothing came for is zeros, or None where the parameter has a default.
    """
    if fn is None:
        return None
    if isinstance(fn, (int, float)):
        return tensor.Rule(None, b"", int(fn) if fn else 2)
    code = fn.__code__
    codes = []
    sure = code.co_argcount - len(fn.__defaults__ or ())
    for k, name in enumerate(code.co_varnames[: code.co_argcount]):
        where, number = source(row, name)
        codes += (G_OR_NONE if where == G and k >= sure else where), number
    return tensor.Rule(fn, bytes(codes))


def source(row, name):
    """(code, number) of one rule parameter."""
    args, attrs = row.arg_names, [a.name for a in row.attrs]
    if name in args:
        return ARG, args.index(name)
    if name in attrs:
        return ATTR, attrs.index(name)
    if name[0] in "gy" and (name[1:].isdigit() or len(name) == 1):
        return (G if name[0] == "g" else Y), int(name[1:] or 0)
    for ending, code in ENDINGS.items():
        if name.endswith(ending) and name[: -len(ending)] in args:
            return code, args.index(name[: -len(ending)])
    raise ValueError(
        f"row {row.name}: a rule asks for '{name}', which is no argument, attribute, g or y"
    )


def rules_of(row, value):
    """One Rule or None per tensor argument."""
    if value is None:
        return None
    fns = value if isinstance(value, tuple) else (value,)
    if len(fns) < len(row.arg_names):
        fns = fns + (None,) * (len(row.arg_names) - len(fns))
    return tuple(compile_rule(row, fn) for fn in fns)


def needs(row, rules):
    """Which inputs are saved, whether results are, whether shapes are."""
    saves = [False] * len(row.arg_names)
    save_y = shapes = False
    for rule in rules:
        codes = rule.parts() if rule is not None else ()
        for code, number in codes:
            if code == ARG:
                saves[number] = True
            save_y = save_y or code == Y
            shapes = shapes or code in (SHAPE, PER_Y)
    return saves, save_y, shapes


def blind(row, rules):
    """Whether results after the first have no derivative: no rule takes their cotangents."""
    return row.nout > 1 and not any(
        code in (G, G_OR_NONE) and number
        for rule in rules
        if rule is not None
        for code, number in rule.parts()
    )


def params_of(row):
    """(public name, is attribute, number) in the order in which users pass them."""
    public = dict(zip(row.arg_names, row.public_names))
    numbers = {a: (0, i) for i, a in enumerate(row.arg_names)}
    numbers.update({a.name: (1, i) for i, a in enumerate(row.attrs)})
    order = row.order.split() if row.order else list(row.arg_names) + [a.name for a in row.attrs]
    return tuple((public.get(name, name), *numbers[name]) for name in order)


def make(row):
    """The Op of a row, and its in-place twin."""
    attrs = tuple(
        signature.Attr(a.name, a.kind, a.default, a.required, tuple(a.choices), i, f)
        for a, i, f in row.slots()
    )
    params = params_of(row)
    op = tensor.make_op(row, attrs, params)
    if row.infer is not None:
        if row.infer not in RULES:
            raise ValueError(f"row {row.name}: no shape rule named '{row.infer}'")
        op.set_rule(RULES[row.infer])
    vjp, partials = rules_of(row, row.vjp), rules_of(row, row.d)
    vjp_all = compile_rule(row, row.vjp_all)
    jvp = None if row.jvp in (None, "linear") else compile_rule(row, row.jvp)
    rules = (vjp or ()) + (partials or ()) + (vjp_all,)
    if "g" in row.arg_names and any(rules):
        raise ValueError(
            f"row {row.name}: an argument named 'g' hides the cotangent from its rules"
        )
    saves, save_y, shapes = needs(row, rules)
    row.blind = blind(row, rules)
    op.set_rules(
        vjp if vjp is not None else partials,
        vjp_all,
        partials if vjp is None else None,
        jvp,
        saves,
        save_y,
        shapes,
    )
    OPS[row.name] = op
    if row.inplace:
        OPS[op.name + "_"] = tensor.make_op(row, attrs, params, op)
    return op


def add_rules():
    """Shape rules of the modules beside infer."""
    for name in ("infer_reduce", "infer_index", "infer_window", "infer_nn"):
        RULES.update(import_module(f"tinyfin.core.{name}").RULES)


def freeze():
    """Reads all modules of rows and makes their operations; once, at import."""
    add_rules()
    for name in MODULES:
        import_module(f"tinyfin.ops.{name}")
    for row in TABLE.values():
        make(row)
    for name, op in OPS.items():
        setattr(F, name, op)
        row = op.row
        if row.method:
            tensor.install_method(name, op)


def offer(name, value):
    """Makes a composition of an upper floor known to the rows as F.name."""
    setattr(F, name, value)


def offer_missing(name, value):
    """The same for names that no row has."""
    if name not in F.__dict__:
        setattr(F, name, value)


def functions():
    """(name, Op) of the operations that belong into the package's name space."""
    return [(name, op) for name, op in OPS.items() if op.row.function]


DIVIDES = 1 << 16


def divides(row):
    """Whether integers are divided by the second argument, which must not be 0 then."""
    return row.expr.partition("(")[0] in ("floordiv", "truncdiv", "mod", "fmod")


def connect(slot, kernels, inexact=()):
    """Gives the operations the kernels of one backend: family -> capsule or (capsule, variant).

    Families in `inexact` are refused in deterministic mode.
    """
    numbers = {
        name: i for i, name in enumerate(r.name for r in TABLE.values() if r.expr is not None)
    }
    for op in OPS.values():
        row = op.row
        if row.family not in kernels or op.inplace:
            continue
        found = kernels[row.family]
        if found is None:  # the row's formula, by other kernels of the backend
            op.clear_kernel(slot)
            continue
        kernel, variant = found if isinstance(found, tuple) else (found, None)
        if row.expr is not None:
            variant = numbers[row.name] | DIVIDES * divides(row)
        op.set_kernel(slot, kernel, variant, row.family not in inexact)
