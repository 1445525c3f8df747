"""The modules that the package was built with: their numbers, what they take, their SPIR-V, their GLSL."""

from __future__ import annotations

import json
import pathlib
import zipfile
from functools import cache

from tinyfin import config
from tinyfin.backends.gpu.prune import pruned
from tinyfin.backends.gpu.text import assembled, numbered, valued
from tinyfin.backends.gpu.unroll import unrolled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FILE = pathlib.Path(config.SHADERS or pathlib.Path(__file__).parent / "shaders.zip")
ASKED: dict[int, bool] = {}
"""Number of a module that a device has taken -> whether with emulated fused multiply-add."""


@cache
def archive() -> zipfile.ZipFile:
    """The file that holds them; it stays open."""
    return zipfile.ZipFile(FILE)


@cache
def shaders() -> list[dict[str, Any]]:
    """Every module's entry; its place is the module's number."""
    return json.loads(archive().read("index.json"))


@cache
def numbers() -> dict[str, int]:
    """Name of a module -> its number."""
    return {entry["name"]: i for i, entry in enumerate(shaders())}


@cache
def parts() -> dict[str, str]:
    """Name of a text in shaders/ -> the text."""
    names = [n for n in archive().namelist() if n.startswith("text/")]
    return {n.removeprefix("text/"): archive().read(n).decode() for n in names}


def shader(name: str) -> int:
    """The number of a module."""
    if name not in numbers():
        raise LookupError(
            f"{FILE} has no module {name}: it was made for another version of tinyfin"
        )
    return numbers()[name]


@cache
def built() -> bool:
    """Whether SPIR-V was compiled when the package was built."""
    return FILE.exists() and any(n.startswith("spirv/") for n in archive().namelist())


def spirv(number: int, soft: bool) -> bytes:
    """A module's SPIR-V; `soft` emulates fused multiply-add where the module has any."""
    entry = shaders()[number]
    ASKED[number] = soft
    return archive().read(f"spirv/{entry['name']}{'_soft' if soft and entry['soft'] else ''}.spv")


@cache
def flat(number: int) -> str | None:
    """A module's text for OpenGL without macros, its constants open; None where it has no loops to write out."""
    name = f"opengl/{shaders()[number]['name']}.glsl"
    return archive().read(name).decode() if name in archive().namelist() else None


def glsl(number: int, constants: Sequence[int], soft: bool, long: bool = False) -> str:
    """A module's text for OpenGL.

    Args:
        soft: emulate fused multiply-add.
        long: write out the loops that index registers, where fused multiply-add is not emulated.
    """
    entry = shaders()[number]
    ASKED[number] = soft
    text = flat(number) if long and not soft else None
    if text is None:
        return pruned(assembled(entry, parts(), "opengl", soft, constants))
    first, rest = text.split("\n", 1)
    known = unrolled(rest, valued(entry, constants))
    return "\n".join([first, *numbered(entry, constants), known])
