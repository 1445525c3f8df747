"""Writes the operations into the type stubs, between markers: gen_stubs.py [--check]."""

import pathlib
import sys

import rows

BEGIN, END = "# operations: written by tools/gen_stubs.py\n", "# end of operations\n"
PACKAGE = rows.ROOT / "tinyfin"
TYPES = {
    "int": "int",
    "bool": "bool",
    "dim": "int",
    "dim1": "int",
    "dtype": "dtype | None",
    "choice": "str",
    "optint": "int | None",
    "float": "float",
    "optfloat": "float | None",
    "ints3": "int | Sequence[int]",
    "dims": "int | Sequence[int] | None",
    "shape": "int | Sequence[int]",
    "spec": "Sequence[int]",
}


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
    return f"{public}: " + ("Tensor | float" if row.scalars else "Tensor")


def stub(row, name, method):
    """One function or method."""
    attrs = {a.name: a for a in row.attrs}
    order = row.order.split() if row.order else [*row.arg_names, *attrs]
    parts, later = [], False
    for k, n in enumerate(order):
        if method and k == 0:
            parts.append("self")
            continue
        if row.varargs and k == len(order) - 1:
            parts.append(f"*{n}: Any")
            continue
        part = parameter(row, n, attrs)
        if later and " = " not in part and "*" not in parts:
            parts.append("*")
        later = later or " = " in part
        parts.append(part)
    if row.overload is not None and not row.varargs:
        parts.append("**other_signature: Any")
    result = "Tensor" if row.nout < 2 else f"tuple[{', '.join(['Tensor'] * row.nout)}]"
    indent = "    " if method else ""
    return f"{indent}def {name}({', '.join(parts)}) -> {result}: ...\n"


def operations(method):
    """All functions, or all methods with their in-place twins."""
    text = ""
    for row in rows.table().values():
        if row.method if method else row.function:
            text += stub(row, row.name, method)
        if row.inplace and method:
            text += stub(row, row.name + "_", method)
    return text


def update(path, method, check):
    """Replaces what stands between the markers; with `check` only compares."""
    old = path.read_text()
    indent = "    " if method else ""
    first, rest = old.split(indent + BEGIN)
    _, last = rest.split(indent + END)
    new = first + indent + BEGIN + operations(method) + indent + END + last
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
