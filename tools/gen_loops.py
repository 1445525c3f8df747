"""Writes the inner loops of all elementwise rows for one dtype group: gen_loops.py GROUP OUTPUT.

GROUP is f32, f64 or int; `hash` writes a header with the hash of those rows, `names` their names in
the order of the loops.
"""

import functools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rows

CTYPES = {
    "bool": "uint8_t",
    "u8": "uint8_t",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f32": "float",
    "f64": "double",
    "f16": "uint16_t",
    "bf16": "uint16_t",
}
GROUPS = {
    "f32": ("f32",),
    "f64": ("f64",),
    "int": ("bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16"),
}
IDS = {
    "bool": "TF_BOOL",
    "u8": "TF_U8",
    "i8": "TF_I8",
    "i16": "TF_I16",
    "i32": "TF_I32",
    "i64": "TF_I64",
    "f32": "TF_F32",
    "f64": "TF_F64",
    "f16": "TF_F16",
    "bf16": "TF_BF16",
}
LETTERS = {"bool": "b", "f32": "f", "f64": "f"}
CALL = re.compile(r"\b([a-z_][a-z_0-9]*)\(")


def takes(row, dtype):
    """Whether the row has a loop for this dtype."""
    if dtype in ("f16", "bf16"):  # computed in float32, but for moves of the bits
        return row.expr in ("neg(x)", "abs(x)")
    if row.result == "float" and dtype not in ("f32", "f64"):
        return False
    return LETTERS.get(dtype, "i") in row.dtypes


@functools.cache
def known(dtype):
    """The functions that expressions of this dtype may call: what the headers define."""
    name = f"loops_{dtype if dtype in ('f32', 'f64') else 'int'}.h"
    text = (rows.ROOT / "tinyfin" / "backends" / "cpu" / name).read_text()
    found = set(re.findall(rf"\bTF_(\w+?)_(?:{dtype}|##S)\b", text.replace("_##S", "_" + dtype)))
    return found | {"select"}


def expression(row, dtype):
    """The row's expression as C for one dtype."""
    unknown = {m[1] for m in CALL.finditer(row.expr)} - known(dtype)
    if unknown:
        sys.exit(
            f"row {row.name}: its expression calls {', '.join(sorted(unknown))}, which {dtype} does "
            f"not have; known are {', '.join(sorted(known(dtype)))}"
        )
    text = CALL.sub(lambda m: f"TF_{m[1]}_{dtype}(" if m[1] != "select" else "TF_select(", row.expr)
    return re.sub(r"\bT\(", f"({CTYPES[dtype]})(", text)


def loop(row, dtype):
    """One dense loop: out may be one of the inputs."""
    ctype = CTYPES[dtype]
    out = "uint8_t" if row.result == "bool" or dtype == "bool" else ctype
    names = row.arg_names
    lines = [
        f"static void L_{row.name}_{dtype}"
        "(void *o, const void *const *in, int64_t n, const double *f) {",
        "  (void)f;",
        f"  {out} *y = o;",
    ]
    lines += [f"  const {ctype} *p{k} = in[{k}];" for k in range(len(names))]
    # before the loop: a load under a condition keeps it from being vectorised
    lines += [
        f"  const {ctype} {a.name} = ({ctype})f[{slot}];"
        for a, _, slot in row.slots()
        if a.kind in ("float", "optfloat") and re.search(rf"\b{a.name}\b", row.expr)
    ]
    lines += ["  TF_IVDEP", "  for (int64_t i = 0; i < n; i++) {"]
    truth = " != 0" if dtype == "bool" else ""  # borrowed memory may hold any byte
    lines += [f"    const {ctype} {a} = p{k}[i]{truth};" for k, a in enumerate(names)]
    text = expression(row, dtype)
    normal = (
        f"({text}) != 0" if out == "uint8_t" and (dtype == "bool" or row.result == "bool") else text
    )
    lines += [f"    y[i] = ({out})({normal});", "  }", "}"]
    return "\n".join(lines)


def main(group, output):
    """Writes one generated file."""
    table = [r for r in rows.table().values() if r.expr is not None]
    if group == "names":
        text = "\n".join(f"{r.name}" for r in table) + "\n"
        pathlib.Path(output).write_text(text)
        return
    if group == "hash":
        number = sys.modules["tinyfin.ops.row"].hash_of_expressions()
        pathlib.Path(output).write_text(f"#define TF_ROWS_HASH {number}u\n")
        return
    parts = [
        "/* Generated from the rows by tools/gen_loops.py. */",
        '#include "loops.h"',
        f'#include "loops_{group}.h"',
    ]
    entries = []
    for dtype in GROUPS[group]:
        for number, r in enumerate(table):
            if takes(r, dtype):
                parts.append(loop(r, dtype))
                entries.append(f"  [{number}][{IDS[dtype]}] = L_{r.name}_{dtype},")
    parts.append(
        f"const tf_loop TF_NAME(tf_elementwise_{group})[{len(table)}][10] = {{\n"
        + "\n".join(entries)
        + "\n};"
    )
    pathlib.Path(output).write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
