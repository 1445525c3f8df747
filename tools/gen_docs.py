"""Writes docs/ops.md from the rows: gen_docs.py [--check]."""

import re
import sys

import rows

OUT = rows.ROOT / "docs" / "ops.md"
HEAD = """# Operations

Generated from the rows by `tools/gen_docs.py`; `tinyfin.backend_support()` shows which backend runs what itself.

*Gradient*: `any` order, by rules of their own or by the formula; `none` where the result is not differentiable.
*Dtypes*: b bool, i integers, f float32 and float64, h float16 and bfloat16.
*GPU*: `shader` has kernels of its own on `vulkan` and `opengl`, `formula` is made of other operations, `view` moves nothing.
In float64, `shader` means devices that have it and 64-bit integers; others leave it to the CPU.
*Where*: f function of `tinyfin`, m method of `Tensor`, i in-place method `name_` as well; others are used by
`tinyfin.nn.functional`.
"""


def signature(row):
    """The call as users write it."""
    public = dict(zip(row.arg_names, row.public_names))
    optional = dict(zip(row.arg_names, row.optional))
    attrs = {a.name: a for a in row.attrs}
    order = row.order.split() if row.order else [*row.arg_names, *attrs]
    parts = []
    for name in order:
        if name in attrs:
            a = attrs[name]
            parts.append(name if a.required else f"{name}={a.default!r}")
        else:
            parts.append(public[name] + ("=None" if optional[name] else ""))
    return f"{row.name}({', '.join(parts)})"


def differentiable(row):
    """`any` or `none`."""
    rules = (row.vjp, row.vjp_all, row.d, row.formula)
    return "none" if row.nondiff or all(r is None for r in rules) else "any"


def gpu_families():
    """Families that have kernels on GPUs, read from the sources."""
    found = set()
    for path in (rows.ROOT / "tinyfin/backends/gpu").glob("*.pyx"):
        _, _, table = path.read_text().partition("\nKERNELS = {")
        found.update(re.findall(r'"(\w+)":', table))
    return found


def on_gpu(row, families):
    """What runs a row on a GPU."""
    if row.family in families:
        return "shader"
    return "view" if row.view else "formula" if row.formula else ""


def text():
    """The whole page."""
    families = gpu_families()
    lines = [HEAD]
    module = None
    for row in rows.table().values():
        home = rows.home_of(row)
        if home != module:
            module = home
            lines += [
                f"\n## {module.capitalize()}\n",
                "| operation | gradient | dtypes | GPU | where | |",
                "|---|---|---|---|---|---|",
            ]
        where = (
            ("f" if row.function else "")
            + ("m" if row.method else "")
            + ("i" if row.inplace and row.method else "")
        )
        doc = row.doc.replace("|", "\\|")
        lines.append(
            f"| `{signature(row)}` | {differentiable(row)} | {row.dtypes} | {on_gpu(row, families)} | "
            f"{where} | {doc} |".replace("|  |", "| |").replace("|  |", "| |")
        )
    return "\n".join(lines) + "\n"


def main(check):
    """Writes the page, or says whether it is current."""
    new = text()
    if check:
        if not OUT.exists() or OUT.read_text() != new:
            sys.exit("docs/ops.md is not current: run 'spin gen'")
        return
    OUT.write_text(new)


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
