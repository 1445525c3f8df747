"""Row: everything that is known about one operation, in one place.

Imports nothing, so that the rows can be read at build time before anything is compiled.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TABLE = {}
"""name -> Row, in the order of definition."""


class Attr:
    """One typed attribute of a row and the slots of `tf_attrs` that it fills.

    Kinds and their integer slots: int bool dim dim1 dtype choice optint (1 each), float (0; one
    double slot), optfloat (1, set when given; one double slot), ints3 (3), dims shape (9: count,
    then values), spec (25).
    """

    __slots__ = ("name", "kind", "default", "choices", "required")

    def __init__(self, name, kind, default=None, required=False, choices=()):
        self.name, self.kind, self.default = name, kind, default
        self.required, self.choices = required, choices


ISLOTS = {"float": 0, "ints3": 3, "dims": 9, "shape": 9, "spec": 25}
"""Integer slots by kind; one where not named. `dims` and `shape` begin with their length."""
FSLOTS = {"float": 1, "optfloat": 1}

REQUIRED = object()


def attr(name, kind, default=REQUIRED, choices=()):
    """An attribute; without a default it must be given."""
    missing = default is REQUIRED
    return Attr(name, kind, None if missing else default, missing, choices)


DIM = attr("dim", "dim")
DIM_LAST = attr("dim", "dim", -1)
DIMS = attr("dim", "dims", None)
KEEPDIM = attr("keepdim", "bool", False)
DTYPE = attr("dtype", "dtype", None)


CHECKED = ("input", "target")
"""Arguments whose values rows of checks may be asked to look at."""


class Late:
    """Name space that finds an operation when it is used: rows may name rows defined later."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no operation named '{name}'")


F = Late()
"""The operations by name; `ops/table.py` fills it."""

PUBLIC = {
    "x": "input",
    "a": "input",
    "b": "other",
    "w": "weight",
    "c": "condition",
    "xs": "tensors",
}
"""Argument names as users write them, where they differ from the rows' short names."""


class Row:
    """One operation. Immutable once the table is frozen.

    Args in `args` are tensor arguments separated by blanks: `x?` may be None, `*xs` takes a
    sequence. `order` lists tensor arguments and attributes as users pass them. From `args` come
    `arg_names` without marks, `optional` (which may be None), `variadic` (whether the last takes a
    sequence) and `public_names` (the names that users write). A composite is `whole` where its own
    rule gives its gradient even if its formula ran: the formula's operations leave no history then.
    With `scalars` numbers may stand for tensors; with "fit" those that the result's integer dtype
    cannot hold are refused, since they may become its elements.
    """

    __slots__ = (
        "name",
        "args",
        "attrs",
        "order",
        "infer",
        "expr",
        "combine",
        "init",
        "family",
        "formula",
        "d",
        "vjp",
        "jvp",
        "amp",
        "batch",
        "domain",
        "dtypes",
        "result",
        "nout",
        "names",
        "doc",
        "symbol",
        "inplace",
        "view",
        "scalars",
        "method",
        "function",
        "mutates",
        "varargs",
        "public",
        "index",
        "ulp",
        "samples",
        "overload",
        "nondiff",
        "copies",
        "vjp_all",
        "blind",
        "whole",
        "arg_names",
        "optional",
        "variadic",
        "public_names",
    )

    def __init__(self, name, args, **fields):
        for slot in EMPTY:
            setattr(self, slot, None)
        self.name, self.args = name, args
        self.attrs, self.nout, self.amp = (), 1, "keep"
        self.inplace = self.view = self.scalars = self.varargs = False
        self.method = self.function = True
        self.dtypes, self.mutates, self.public = "bifh", (), {}
        for key, value in fields.items():
            setattr(self, key, value)
        if not self.doc:
            raise ValueError(f"row {name} has no doc")
        if name in TABLE:
            raise ValueError(f"row {name} is defined twice")
        self.index = len(TABLE)
        TABLE[name] = self
        names = args.split()
        self.arg_names = tuple([a.strip("*?") for a in names])
        self.optional = tuple([a.endswith("?") for a in names])
        self.variadic = bool(names) and names[-1].startswith("*")
        self.public_names = tuple([self.public.get(a, PUBLIC.get(a, a)) for a in self.arg_names])

    def slots(self):
        """(attr, first integer slot, first double slot) of each attribute."""
        i = f = 0
        for a in self.attrs:
            yield a, i, f
            i += ISLOTS.get(a.kind, 1)
            f += FSLOTS.get(a.kind, 0)


GIVEN = ("name", "args", "attrs", "nout", "amp", "inplace", "view", "scalars", "varargs", "method")
EMPTY = tuple([slot for slot in Row.__slots__ if slot not in GIVEN])
"""Slots that hold None unless a row fills them."""


def hash_of_expressions():
    """CRC of what the elementwise loops are generated from, in order: a build of other rows differs."""
    from binascii import crc32

    parts = [(r.name, r.args, r.expr, r.dtypes, r.result) for r in TABLE.values() if r.expr]
    return crc32(repr(parts).encode())


def row(name, args, **fields):
    """A structured operation: `infer` names its shape rule, `family` its kernel."""
    return Row(name, args, **fields)


def unary(name, expr, d, doc, result="float", **fields):
    """An elementwise operation of one tensor; `result`: float (integers become it), same, bool."""
    fields.setdefault("inplace", result != "bool")
    return Row(
        name,
        "x",
        expr=expr,
        infer="elementwise",
        family="elementwise",
        d=None if d is None else (d,),
        result=result,
        doc=doc,
        **fields,
    )


def binary(name, expr, d, doc, result="same", args="a b", **fields):
    """An elementwise operation of several tensors or numbers, which broadcast and promote."""
    fields.setdefault("inplace", result != "bool")
    fields.setdefault("scalars", True)
    return Row(
        name,
        args,
        expr=expr,
        infer="elementwise",
        family="elementwise",
        d=d,
        result=result,
        doc=doc,
        **fields,
    )


def reduce(name, doc, **fields):
    """A reduction over axes (`dim=None`: all of them)."""
    fields.setdefault("attrs", (DIMS, KEEPDIM))
    fields.setdefault("infer", "reduce")
    fields.setdefault("family", "reduce_" + name)
    return Row(name, "x", doc=doc, **fields)


def view(name, doc, **fields):
    """A view: new numbers over the same bytes; `infer` does all the work."""
    fields.setdefault("infer", name)
    fields.setdefault("jvp", "linear")
    fields.setdefault("dtypes", "any")
    return Row(name, "x", view=True, doc=doc, **fields)


def composite(name, args, formula, doc, **fields):
    """An operation defined by others; with a `family` a fused kernel may replace the formula."""
    return Row(name, args, formula=formula, doc=doc, **fields)
