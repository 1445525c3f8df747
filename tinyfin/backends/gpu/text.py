"""Shaders as text: what a body's heading says, and the GLSL of one module for one API.

Imports nothing of the package, so that the build can use it before anything is compiled.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

INCLUDE = re.compile(r'^#include "([\w.]+)"\n', re.MULTILINE)
FIELD = re.compile(
    r"^ \* (operands|words|constants|group|numbers|needs): (.*(?:\n \*   +.*)*)", re.MULTILINE
)
WORD = re.compile(r"(uint|int|float|number) (\w+)(?:\[(\d+)\])?$")
READ = {"uint": "{}", "int": "int({})", "float": "uintBitsToFloat({})"}
TWO_WORDS = "packDouble2x32(uvec2({0}[{1}], {0}[{1} + 1]))"
"""How kind double reads a parameter of type `number`, which is a float in the others."""
HEXADECIMAL = re.compile(r"0x1(?:\.[0-9a-f]*)?p[-+]?\d+")
DECIMAL = re.compile(r"(?<![\w.])(\d+(?:\.\d*(?:e[-+]?\d+)?|e[-+]?\d+))(?![\w.])")
LONG = re.compile(r"\b(0x[0-9a-f]+|\d+)u\b")
TABLE = re.compile(r"static const double (\w+)\[(\d+)\] = \{(.*?),?\s*\};", re.DOTALL)
LOCAL = re.compile(r"^( +)(double|vd_\w+) (?=\w+ ?[=,;])", re.MULTILINE)
RESULT = re.compile(r"(^VD (\w+) \w+\([^()]*\) \{.*?)\breturn ([^;]*);", re.MULTILINE | re.DOTALL)
PUSH_BYTES = 128
"""What every device takes as parameters of one dispatch."""
NUMBERS = {
    "float": ("f32", "float"),
    "integer": ("int", "int"),
    "long": ("i64", "int64_t"),
    "double": ("f64", "double"),
    "bits": ("", "uint"),
}
"""Kinds of numbers that a body is compiled for: suffix of the module's name, type that computes."""
FLOATING = ("float", "double")
"""Kinds that emulate fused multiply-add where a device splits it: float in a variant, double by its FLUSH."""
SPLITS = 4
"""Added to FLUSH for kind double there."""
NEEDS = {
    "cooperative_matrix": (
        "GL_KHR_cooperative_matrix",
        "GL_KHR_memory_scope_semantics",
        "GL_KHR_shader_subgroup_basic",
    ),
    "float16": ("GL_EXT_shader_explicit_arithmetic_types_float16",),
    "bfloat16": ("GL_EXT_bfloat16",),
}
"""What few devices have, and only through Vulkan -> extensions of GLSL."""


def doubled(text: str) -> str:
    """The float64 functions, whose text is C, as GLSL: literals with its suffixes, locals and results `precise`."""
    text = HEXADECIMAL.sub(lambda m: repr(float.fromhex(m[0])), text)
    text = DECIMAL.sub(r"\1lf", LONG.sub(r"\1UL", text))
    text = TABLE.sub(r"const double \1[\2] = double[\2](\3);", text)
    return RESULT.sub(r"\1precise \2 tf_y = \3; return tf_y;", LOCAL.sub(r"\1precise \2 ", text))


def heading(text: str) -> dict[str, Any]:
    """The fields of a body's first comment: operands, words, constants, group, numbers, needs."""
    comment = text[: text.index("*/")]
    found = {
        name: " ".join(value.replace("\n *", " ").split()) for name, value in FIELD.findall(comment)
    }
    words: list[tuple[str, str, int]] = []
    for part in filter(None, (p.strip() for p in found.get("words", "").split(";"))):
        match = WORD.match(part)
        if not match:
            raise ValueError(
                f"words: {part!r} is not 'uint name', 'int name[4]', 'float name' or 'number name'"
            )
        words.append((match[1], match[2], int(match[3] or 1)))
    constants = [c.partition("=") for c in found.get("constants", "").split()]
    about = {
        "operands": found["operands"].split(),
        "words": words,
        "constants": ["FLUSH", "BEHIND", *(name for name, _, _ in constants)],
        "likely": [0, 0, *(int(value or 0) for _, _, value in constants)],
        "group": [int(n) for n in found.get("group", "256").split()],
        "numbers": found.get("numbers", "bits").split(),
        "needs": found.get("needs", "").split(),
    }
    return about


def words_of(about: Mapping[str, Any], kind: str) -> list[tuple[str, str, int]]:
    """The parameters of a module: type, name, number of words."""
    words = [
        (type_, name, n)
        if type_ != "number"
        else ("number", name, 2 * n)
        if kind == "double"
        else ("float", name, n)
        for type_, name, n in about["words"]
    ]
    used = 8 * len(about["operands"]) + 4 * sum(n for _, _, n in words)
    if used > PUSH_BYTES:
        raise ValueError(f"parameters take {used} bytes, devices promise {PUSH_BYTES}")
    return words


def included(name: str, parts: Mapping[str, str]) -> str:
    """A part with the parts that it includes."""
    return INCLUDE.sub(lambda m: included(m[1], parts), parts[name])


def declarations(about: Mapping[str, Any], api: str) -> list[str]:
    """Constants, parameters and operands of a module."""
    lines = []
    for i, (name, likely) in enumerate(valued(about, ()).items()):
        if api == "vulkan":
            lines.append(f"layout(constant_id = {i}) const uint {name} = {likely}u;")
        else:
            lines.append(f"const uint {name} = TF_C{i};")
    sizes = (*about["group"], 1, 1)[:3]
    lines.append(
        "layout(local_size_x = {}, local_size_y = {}, local_size_z = {}) in;".format(*sizes)
    )
    lines.append(f"#define TF_GROUP {sizes[0] * sizes[1] * sizes[2]}u")
    total = max(1, sum(n for _, _, n in about["words"]))
    if api == "vulkan":
        block = f"uvec2 at[{len(about['operands'])}]; uint w[{total}];"
        lines.append(f"layout(push_constant, scalar) uniform TF_Push {{ {block} }} tf_p;")
    else:
        lines += [
            f"uniform uvec2 tf_gl_at[{len(about['operands'])}];",
            f"uniform uint tf_gl_w[{total}];",
        ]
    words = "tf_p.w" if api == "vulkan" else "tf_gl_w"
    at = 0
    for kind, name, n in about["words"]:
        if kind == "number":
            each = "" if n == 2 else "(i)"
            place = f"{at}" if n == 2 else f"{at} + 2 * (i)"
            lines.append(f"#define p_{name}{each} {TWO_WORDS.format(words, place)}")
        elif n == 1:
            lines.append(f"#define p_{name} {READ[kind].format(f'{words}[{at}]')}")
        else:
            lines.append(f"#define p_{name}(i) {READ[kind].format(f'{words}[{at} + (i)]')}")
        at += n
    return lines


def operands(about: Mapping[str, Any], parts: Mapping[str, str]) -> str:
    """The functions that read and write each operand; `fault` is where an index out of range is told."""
    text = ""
    for k, name in enumerate(about["operands"]):
        text += parts["operand.glsl"].replace("@NAME", name).replace("@K", str(k))
        if about["kind"] != "bits":
            text += parts["numbers.glsl"].replace("@NAME", name)
    return text


def numbered(about: Mapping[str, Any], constants: Sequence[int]) -> list[str]:
    """The definitions of the constants' values; those behind the given ones are what the heading says, or 0."""
    return [f"#define TF_C{i} {v}u" for i, v in enumerate(valued(about, constants).values())]


def device_constants(
    about: Mapping[str, Any], constants: Sequence[int], soft: bool
) -> tuple[int, ...]:
    """A module's constants on a device, which may have to emulate fused multiply-add."""
    flush, *others = constants[: len(about["constants"])] or (0,)
    return (flush + SPLITS * (soft and about["kind"] == "double"), *others)


def valued(about: Mapping[str, Any], constants: Sequence[int]) -> dict[str, int]:
    """Name of a constant -> its value."""
    return dict(zip(about["constants"], (*constants, *about["likely"][len(constants) :])))


def open_text(about: Mapping[str, Any], parts: Mapping[str, str]) -> str | None:
    """The GLSL of a module for OpenGL, constants and UNROLL left open, where its body has loops to write out."""
    written_out = "UNROLL" in included(about["file"], parts)
    if not written_out or about.get("needs") or "expression" in about:
        return None
    return assembled(about, parts, "opengl", constants=None)


def assembled(
    about: Mapping[str, Any],
    parts: Mapping[str, str],
    api: str,
    soft: bool = False,
    constants: Sequence[int] | None = (),
) -> str:
    """The GLSL of one module.

    Args:
        about: the module's entry of the index.
        parts: name of a file in shaders/ -> its text.
        api: 'vulkan', or 'opengl', which takes the constants' values too; None leaves the names TF_C0... and
            UNROLL open.
        soft: emulate fused multiply-add through double.
    """
    kind = about["kind"]
    head = ["#version 460" if api == "vulkan" else "#version 430", f"#define TF_{api.upper()}"]
    head += [f"#define TF_{kind.upper()}", f"#define T {NUMBERS[kind][1]}"]
    if api == "vulkan":
        for need in about.get("needs", ()):
            head += [f"#extension {name} : require" for name in NEEDS[need]]
    head += [f"#define {name} {value}" for name, value in about.get("defines", {}).items()]
    if soft:
        head.append("#define VM_SOFTFMA")
    if api == "opengl" and constants is not None:
        head += [*numbered(about, constants), "#define UNROLL"]
    text = included("prelude.glsl", parts) + "\n".join(declarations(about, api)) + "\n"
    if kind in FLOATING:
        text += included("vmath.inc", parts)
    text += included("common.glsl", parts)
    if kind != "bits":
        text += included("conversions.glsl", parts)
    text += operands(about, parts)
    if kind == "float":
        text += included("float.glsl", parts)
    elif kind == "double":
        text += included("float64.glsl", parts) + doubled(included("vmath64.inc", parts))
    elif kind in ("integer", "long"):
        text += included("integer.glsl", parts)
    return (
        "\n".join(head) + "\n" + text + about.get("expression", "") + included(about["file"], parts)
    )
