"""Rules that every shader text keeps: shader_lint.py. Exit code 1, and the lines, where one is broken.

- A local float is `precise`, or drivers contract and reorder what it is made of.
- A global `precise float` is not there: glslang makes invalid SPIR-V of it.
- No division, exp, sqrt, ... of GLSL on floats: drivers differ. `vmath` has all of them.
- No subgroup operations, which need a branch through shared memory beside them.
"""

import pathlib
import re
import sys

SHADERS = pathlib.Path(__file__).resolve().parent.parent / "shaders"
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
LOCAL = re.compile(
    r"(?<!precise )(?<!out )(?<!inout )(?<!const )(?<!shared )\b(?:float|double|vec[234])\s+\w+(?:\[[^\]]*\])?\s*[=;,]"
)
OWNER = re.compile(r"\b(?:struct|buffer)\b")
GLOBAL = re.compile(r"^precise\s", re.MULTILINE)
NATIVE = re.compile(
    r"(?<![\w.])(exp2?|log2?|pow|sqrt|inversesqrt|sin|cos|tan|tanh|fma|mix|smoothstep|normalize|dot)\("
)
SUBGROUP = re.compile(r"\bsubgroup\w+\(")
HOMES = {"vmath.inc", "vmath_more.inc", "vmath64.inc", "vmath64_more.inc"}
"""Texts that are C too, where `float` and `double` are plain, and that build these functions."""
ALLOWED = {
    "probe.comp": "it asks what the driver does with plain arithmetic",
    "matmul_cooperative.glsl": "a matrix of hardware belongs to a subgroup",
    "float64.glsl": "what the device gives is corrected by what it leaves",
}
"""Texts that rules leave out, and why."""


def bare(text, at):
    """Whether a declaration stands inside a function: parameters and members of structs and buffers do not count."""
    before = text[:at]
    if before.count("(") > before.count(")"):
        return False
    opened = before.rfind("{")
    head = before[max(before.rfind("}", 0, opened), before.rfind(";", 0, opened), 0) : opened]
    return before.count("{") > before.count("}") and not OWNER.search(head)


def complaints(path):
    """(line, what is wrong) of one text."""
    text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), path.read_text())
    for pattern, words in (
        (GLOBAL, "a global precise value makes invalid SPIR-V"),
        (NATIVE, "a function of GLSL, which drivers compute differently"),
        (SUBGROUP, "a subgroup operation"),
    ):
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, words
    for match in LOCAL.finditer(text):
        if bare(text, match.start()):
            yield text.count("\n", 0, match.start()) + 1, f"not precise: {match[0]}"


def main():
    """Reads every text."""
    found = [
        f"{path.name}:{line}: {words}"
        for path in sorted(SHADERS.iterdir())
        if path.suffix in (".comp", ".glsl", ".inc") and path.name not in HOMES | set(ALLOWED)
        for line, words in complaints(path)
    ]
    print("\n".join(found), end="\n" * bool(found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
