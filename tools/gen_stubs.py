"""Writes the operations into the type stubs, between markers: gen_stubs.py [--check]."""

import ast
import inspect
import pathlib
import sys

import rows

BEGIN, END = "# operations: written by tools/gen_stubs.py\n", "# end of operations\n"
PACKAGE = rows.ROOT / "tinyfin"
# The package and its Tensor have members named float, int, bool and dtype, which hide the types of
# these names: the stubs say builtins.float, and DTypeLike for all that names a dtype.
FLOAT, INT, BOOL = "builtins.float", "builtins.int", "builtins.bool"
NUMBER = "Tensor | SupportsFloat"
TYPES = {
    "int": INT,
    "bool": BOOL,
    "dim": INT,
    "dim1": INT,
    "dtype": "DTypeLike | None",
    "choice": "str",
    "optint": f"{INT} | None",
    "float": FLOAT,
    "optfloat": f"{FLOAT} | None",
    "ints3": f"{INT} | Sequence[{INT}]",
    "dims": f"{INT} | Sequence[{INT}] | None",
    "shape": "SupportsIndex | Sequence[SupportsIndex]",
    "spec": f"Sequence[{INT}]",
}
OTHERS = {
    "alpha": FLOAT,
    "as_tuple": "Literal[False]",
    "dtype": "DTypeLike",
    "out_int32": BOOL,
    "reduce": "str | None",
    "rounding_mode": "str | None",
    "side": "str | None",
    "sorter": "Tensor | None",
    "sparse_grad": BOOL,
    "unbiased": BOOL,
    "value": FLOAT,
}
"""Types of the keywords that only a row's other signature has."""


def parameter(row, name, attrs):
    """One parameter with its type and default."""
    if name in attrs:
        a = attrs[name]
        return f"{name}: {TYPES[a.kind]}" + ("" if a.required else f" = {a.default!r}")
    i = row.arg_names.index(name)
    public = row.public_names[i]
    if row.variadic and i == len(row.arg_names) - 1:
        return f"{public}: Sequence[Tensor]"
    if row.optional[i]:
        return f"{public}: Tensor | None = None"
    return f"{public}: " + (NUMBER if row.scalars else "Tensor")


def parameters(row, method):
    """All parameters in the users' order; what is required behind a default goes by name only."""
    attrs = {a.name: a for a in row.attrs}
    order = row.order.split() if row.order else [*row.arg_names, *attrs]
    parts, later = ["self"] if method else [], False
    for n in order[1:] if method else order:
        part = parameter(row, n, attrs)
        if later and " = " not in part and "*" not in parts:
            parts.append("*")
        later = later or " = " in part
        parts.append(part)
    return parts


def other_keywords(row):
    """Keywords of the row's other signature that its own has not, with their types."""
    if row.overload is None:
        return {}
    own = {*row.arg_names, *row.public_names, *(a.name for a in row.attrs)}
    found = {}
    for p in inspect.signature(row.overload).parameters.values():
        if p.name not in own:
            if p.name not in OTHERS:
                sys.exit(f"gen_stubs: row {row.name}: give the type of '{p.name}' in OTHERS")
            needed = p.default is inspect.Parameter.empty
            found[p.name] = f"{p.name}: {OTHERS[p.name]}" + ("" if needed else f" = {p.default!r}")
    return found


def keyword_only(parts, keywords):
    """Parameters with keyword-only ones behind them."""
    return [*parts, *([] if "*" in parts or not keywords else ["*"]), *keywords]


def signatures(row, method, inplace=False):
    """(parameters, result) of each form in which users may call the row."""
    parts, others = parameters(row, method), other_keywords(row)
    result = "Tensor" if row.nout < 2 else f"tuple[{', '.join(['Tensor'] * row.nout)}]"
    result = "Pair" if row.names else result
    result = "Self" if method and inplace else result
    others.pop("value", None)  # scatter has a form of its own for it
    keywords = list(others.values())
    if not (method or row.view or inplace):
        keywords.append("out: Tensor = ..." if row.nout < 2 else "out: Sequence[Tensor] = ...")
    if row.varargs:  # x.reshape((2, 3)) and x.reshape(2, 3)
        last = row.attrs[-1]
        each = "SupportsIndex" if last.kind == "shape" else INT
        keywords = [k for k in keywords if k not in others.values()]
        forms = [keyword_only(parts, keywords), [*parts[:-1], f"*{last.name}: {each}", *keywords]]
        if others:
            forms.append(keyword_only(parts[:-1], others.values()))
        return [(form, result) for form in forms]
    forms = [(keyword_only(parts, keywords), result)]
    if row.name == "nonzero":
        forms.append((keyword_only(parts, ["as_tuple: Literal[True]"]), "tuple[Tensor, ...]"))
    if row.name == "where":
        forms.append((["condition: Tensor"], "tuple[Tensor, ...]"))
    if row.name == "scatter":  # a number goes by the name of value too
        value = [f"value: {OTHERS['value']}", *keywords]
        forms.append((keyword_only(parts[:-1], value), result))
    return forms


def stub(row, name, method):
    """One function or method."""
    forms = signatures(row, method, name.endswith("_"))
    indent = "    " if method else ""
    head = f"{indent}@overload\n" if len(forms) > 1 else ""
    return "".join(
        f"{head}{indent}def {name}({', '.join(parts)}) -> {result}: ...\n"
        for parts, result in forms
    )


def operations(method):
    """All functions or all methods, with their in-place twins."""
    text = ""
    for row in rows.table().values():
        if row.method if method else row.function:
            text += stub(row, row.name, method)
            if row.inplace:
                text += stub(row, row.name + "_", method)
    return text


def second_names():
    """New name -> old name, as functional.py lists them."""
    tree = ast.parse((PACKAGE / "functional.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ALIASES":
            return ast.literal_eval(node.value)
    sys.exit("functional.py has no ALIASES")


def names_of(text, method):
    """The names that a stub, or its class Tensor, has without the second names."""
    body = ast.parse(text).body
    if method:
        body = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == "Tensor").body
    found = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    return found | {a.asname for n in body if isinstance(n, ast.ImportFrom) for a in n.names}


def aliases(have, method):
    """Second names of functions, or of methods with their in-place twins."""
    indent = "    " if method else ""
    return "".join(
        f"{indent}{new}{end} = {old}{end}\n"
        for new, old in second_names().items()
        for end in (("", "_") if method else ("",))
        if old + end in have and new + end not in have
    )


def update(path, method, check):
    """Replaces what stands between the markers; with `check` only compares."""
    old = path.read_text()
    indent = "    " if method else ""
    first, rest = old.split(indent + BEGIN)
    _, last = rest.split(indent + END)
    made = operations(method)
    made += aliases(names_of(first + made + last, method), method)
    new = first + indent + BEGIN + made + indent + END + last
    if check and new != old:
        sys.exit(f"{path.name} is not current: run 'spin gen'")
    if not check:
        path.write_text(new)


def main(check):
    """Both stubs."""
    update(pathlib.Path(PACKAGE / "__init__.pyi"), False, check)
    update(pathlib.Path(PACKAGE / "core" / "tensor.pyi"), True, check)


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
