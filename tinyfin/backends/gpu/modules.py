"""The modules that the package was built with: their numbers, what they take, their SPIR-V, their GLSL."""

from __future__ import annotations

import json
import pathlib
import zipfile
from functools import cache

from tinyfin import config
from tinyfin.backends.gpu.prune import pruned
from tinyfin.backends.gpu.text import assembled, device_constants, included, numbered, valued
from tinyfin.backends.gpu.unroll import unrolled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

OWN = pathlib.Path(__file__).parent / "shaders.zip"
FILE = pathlib.Path(config.SHADERS or OWN)
HELP = (
    "unset TINYFIN_SHADERS, then 'tinyfin shaders build --output FILE' can write it anew"
    if config.SHADERS
    else "install tinyfin anew"
)
ASKED: dict[int, bool] = {}
"""Number of a module that a device has taken -> whether with emulated fused multiply-add."""


@cache
def archive() -> zipfile.ZipFile:
    """The file that holds them; it stays open."""
    return zipfile.ZipFile(FILE)


def read(name: str) -> bytes:
    """A file of the archive.

    Raises:
        RuntimeError: it is missing or damaged.
    """
    try:
        return archive().read(name)
    except Exception as error:  # what is damaged raises almost anything
        raise RuntimeError(f"{FILE}: {name} cannot be read ({told(error)}): {HELP}") from None


def told(error: Exception) -> str:
    """What an error says; a KeyError by itself says it in quotes."""
    return str(error.args[0] if isinstance(error, KeyError) else error)


@cache
def wrong() -> str | None:
    """Why the file cannot be used, and what to do; None where it can."""
    if not FILE.exists():
        return "this build has no shaders"
    try:
        found = trouble()
    except Exception as error:  # what is no archive, or damaged, raises almost anything
        found = f"is no archive of shaders, or damaged ({told(error)})"
    return found and f"{FILE} {found}: {HELP}"


def trouble() -> str | None:
    """What is wrong with the file. The package's own is only opened, as it was written for this package; another
    is read in full, before kernels count on it."""
    names = set(archive().namelist())
    taken = {entry["name"]: parameters(entry) for entry in shaders()}
    if FILE == OWN:
        return None
    with zipfile.ZipFile(OWN) as own:
        needed = {e["name"]: parameters(e) for e in json.loads(own.read("index.json"))}
    other = [name for name in needed if taken.get(name) != needed[name]]
    if other:
        what = "takes other parameters" if other[0] in taken else "is missing"
        return f"was made for another version of tinyfin (module {other[0]} {what})"
    wanted = {f"text/{entry['file']}" for entry in shaders()}
    if any(name.startswith("spirv/") for name in names):
        wanted |= {f"spirv/{e['name']}.spv" for e in shaders()}
        wanted |= {f"spirv/{e['name']}_soft.spv" for e in shaders() if e["soft"]}
    lacking = sorted(wanted - names)
    if lacking:
        return f"lacks {lacking[0]}"
    damaged = archive().testzip()
    return damaged and f"is damaged at {damaged}"


def parameters(entry: dict[str, Any]) -> tuple[int, int, int]:
    """What kernels give to a module: so many operands, words and constants."""
    words = sum(n for _, _, n in entry["words"])
    return len(entry["operands"]), words, len(entry["constants"])


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
    return {n.removeprefix("text/"): read(n).decode() for n in names}


def shader(name: str) -> int:
    """The number of a module."""
    if name not in numbers():
        raise LookupError(
            f"{FILE} has no module {name}, as it was made for another version of tinyfin: {HELP}"
        )
    return numbers()[name]


@cache
def flushes(number: int) -> bool:
    """Whether a module asks who flushes subnormal numbers."""
    entry = shaders()[number]
    return entry["kind"] in ("float", "double") or "FLUSH" in included(entry["file"], parts())


def telling(number: int, constants: Sequence[int], behind: bool) -> tuple[int, ...]:
    """The constants of a module, those that it does not look at being 0: equal ones need one program.

    Args:
        behind: whether the API looks at BEHIND.
    """
    flush, before, *rest = constants[: len(shaders()[number]["constants"])]
    return (flush if flushes(number) else 0, before if behind else 0, *rest)


@cache
def built() -> bool:
    """Whether SPIR-V was compiled when the file was written."""
    return wrong() is None and any(n.startswith("spirv/") for n in archive().namelist())


def spirv(number: int, soft: bool) -> bytes:
    """A module's SPIR-V; `soft` emulates fused multiply-add where the module has any."""
    entry = shaders()[number]
    ASKED[number] = soft
    return read(f"spirv/{entry['name']}{'_soft' if soft and entry['soft'] else ''}.spv")


@cache
def flat(number: int) -> str | None:
    """A module's text for OpenGL without macros, its constants open; None where it has no loops to write out."""
    name = f"opengl/{shaders()[number]['name']}.glsl"
    return read(name).decode() if name in archive().namelist() else None


def glsl(number: int, constants: Sequence[int], soft: bool, long: bool = False) -> str:
    """A module's text for OpenGL.

    Args:
        soft: emulate fused multiply-add.
        long: write out the loops that index registers, where fused multiply-add is not emulated.
    """
    entry = shaders()[number]
    ASKED[number] = soft
    constants = device_constants(entry, constants, soft)
    text = flat(number) if long and not soft else None
    if text is None:
        return pruned(assembled(entry, parts(), "opengl", soft, constants))
    first, rest = text.split("\n", 1)
    known = unrolled(rest, valued(entry, constants))
    return "\n".join([first, *numbered(entry, constants), known])
