"""The modules of GPUs one by one: what they are, whether they compile, whether a device can run them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path

from tinyfin.backends.base import kernels_in
from tinyfin.backends.gpu import compile, modules, prune, reflect, text
from tinyfin.ops import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

VALIDATOR = "spirv-val"
STRANGE = "Invalid capability operand"
ENDS = tuple(f"_{end}" for end, _ in text.NUMBERS.values() if end)


def stem(name: str) -> str:
    """A module's name without its kind of numbers; of an elementwise one the row.

    >>> stem("elementwise_exp_f32"), stem("softmax_f32"), stem("probe")
    ('exp', 'softmax', 'probe')
    """
    for end in ENDS:
        name = name.removesuffix(end)
    return name.removeprefix("elementwise_")


def rows() -> list[str]:
    """The names of the rows with a kernel of ours."""
    kernels = kernels_in("gpu")
    return [row.name for row in table.TABLE.values() if row.family in kernels and not row.view]


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns names a row or module; without patterns all are meant."""
    return not patterns or any(fnmatchcase(n, p) for p in patterns for n in (name, stem(name)))


def chosen(patterns: Sequence[str]) -> list[int]:
    """The numbers of the modules that patterns name."""
    return [i for i, e in enumerate(modules.shaders()) if matches(e["name"], patterns)]


def variants(number: int) -> Iterator[tuple[str, bytes]]:
    """(name, SPIR-V) of a module, and of its soft variant where it has one."""
    entry = modules.shaders()[number]
    for end in ("", "_soft") if entry["soft"] else ("",):
        name = entry["name"] + end
        yield name, modules.read(f"spirv/{name}.spv")


def described(number: int) -> dict[str, Any]:
    """What the index says about a module, and its size."""
    entry = modules.shaders()[number]
    operands, words, _ = modules.parameters(entry)
    sizes = [len(code) for _, code in variants(number)] if modules.built() else []
    return {
        "name": entry["name"],
        "body": entry["file"],
        "numbers": entry["kind"],
        "operands": entry["operands"],
        "parameter_bytes": 8 * operands + 4 * max(1, words),
        "constants": entry["constants"],
        "group": (*entry["group"], 1, 1)[:3],
        "spirv_bytes": sizes[0] if sizes else None,
        "soft": entry["soft"],
        "soft_spirv_bytes": sizes[1] if len(sizes) > 1 else None,
    }


class Report:
    """What was found in the modules.

    Attributes:
        faults: name of a module, or of its soft variant -> what is wrong.
        idle: names of modules -> why they are not judged: the device lacks what they need.
        notes: one sentence for each check.
    """

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}
        self.idle: dict[str, str] = {}
        self.notes: dict[str, str] = {}


def examine(
    numbers: Sequence[int], limits: dict[str, Any], advance: Callable[[str], None]
) -> Report:
    """Checks the SPIR-V of modules: valid, as the index says, within a device's limits.

    Args:
        numbers: of the modules.
        limits: of the device, as reflect.overdrawn takes them; empty where they are not known.
        advance: called with each module's name.
    """
    report = Report()
    tool = shutil.which(VALIDATOR)
    largest = 0
    count = 0
    for number in numbers:
        entry = modules.shaders()[number]
        advance(entry["name"])
        for name, code in variants(number):
            count += 1
            try:
                module = reflect.Module(code)
            except (ValueError, KeyError) as error:
                report.faults[name] = f"SPIR-V that cannot be read: {error}"
                continue
            largest = max(largest, module.shared_bytes)
            wrong = reflect.disagreements(module, entry) + reflect.overdrawn(module, limits)
            lacking = reflect.lacking(module, limits)
            if lacking:
                report.idle[name] = f"not for this device: it lacks {', '.join(lacking)}"
            if tool and not wrong and not lacking:
                wrong = invalid(tool, code)
                if wrong and STRANGE in wrong[0]:  # the tool is older than the extension
                    report.idle[name], wrong = f"(not judged: {wrong[0]})", []
            if wrong:
                report.faults[name] = "; ".join(wrong)
    report.notes["spirv-val"] = (
        f"{count} modules, for vulkan1.3"
        if tool
        else "not run: it is not on PATH (on Debian and Ubuntu: apt install spirv-tools)"
    )
    have = limits.get("shared_bytes")
    report.notes["reflection"] = f"{count} modules; most shared memory {largest} bytes" + (
        f" of {have}" if have is not None else "; the device's limits are not known"
    )
    return report


def compiled_by_driver(
    numbers: Sequence[int],
    compiles: Callable[[int, str], None],
    lacking: Sequence[str],
    advance: Callable[[str], None],
) -> Report:
    """Gives every module's text to an OpenGL driver.

    Args:
        compiles: function of a module's number and text.
        lacking: kinds of numbers that the device has not.
        advance: called with each module's name.
    """
    report = Report()
    build = Build(numbers, None)
    for number in numbers:
        entry = modules.shaders()[number]
        advance(entry["name"])
        if entry["kind"] in lacking:
            report.idle[entry["name"]] = f"not for this device: it lacks {entry['kind']}"
        else:
            build.check_opengl(number, compiles, soft=True)
    report.faults = build.failures
    report.notes["compiled by the driver"] = f"{len(numbers) - len(report.idle)} modules"
    return report


def invalid(tool: str, code: bytes) -> list[str]:
    """What spirv-val says against a module."""
    command = [tool, "--target-env", "vulkan1.3", "--scalar-block-layout", "-"]
    done = subprocess.run(command, input=code, capture_output=True, check=False)
    said = (done.stderr or done.stdout).decode(errors="replace").strip()
    return [f"spirv-val: {said.splitlines()[0] if said else 'refused'}"] if done.returncode else []


@lru_cache(maxsize=64)
def read(shader: int, soft: bool) -> reflect.Module:
    """A module of a number."""
    return reflect.Module(modules.spirv(shader, soft))


# ---- building


class Build:
    """Modules compiled anew; the others stay as they are.

    Args:
        numbers: of the modules.
        folder: with texts that stand in place of the package's.

    Attributes:
        code: name in the archive -> SPIR-V.
        index: entries as the new texts have them.
        failures: name of a module, or of its soft variant -> the compiler's first words.
        failed: numbers of the modules that do not compile.
    """

    def __init__(self, numbers: Sequence[int], folder: str | None) -> None:
        self.numbers, self.parts = numbers, dict(modules.parts())
        self.index = [dict(e) for e in modules.shaders()]
        self.failures: dict[str, str] = {}
        self.failed: set[int] = set()
        self.code: dict[str, bytes] = {
            n: modules.read(n)
            for n in modules.archive().namelist()
            if n.startswith(("spirv/", "opengl/"))
        }
        changed = read_texts(folder) if folder else {}
        self.parts.update(changed)
        for i in numbers:
            if self.index[i]["file"] in changed:
                try:
                    self.index[i] = reread(self.index[i], self.parts)
                except (ValueError, KeyError) as error:
                    file = self.index[i]["file"]
                    self.fail(i, f"the heading of {file} cannot be read: {modules.told(error)}")

    def fail(self, number: int, why: str, variant: str = "") -> None:
        """Notes that a module, or a variant of it, does not compile."""
        self.failed.add(number)
        self.failures[self.index[number]["name"] + variant] = why

    def compile(self, number: int, make: Callable[[str], bytes]) -> None:
        """Compiles one module and its soft variant."""
        entry = self.index[number]
        try:
            compile.compiled(
                entry, partial(text.assembled, entry, self.parts, "vulkan"), make, self.code
            )
        except Exception as error:  # each compiler has its own
            self.fail(number, str(error).strip().partition("\n\n")[0])

    def check_opengl(
        self, number: int, compiles: Callable[[int, str], None], soft: bool = True
    ) -> None:
        """Gives the texts of one module for OpenGL to something that compiles them."""
        entry = self.index[number]
        if entry.get("needs"):  # what only Vulkan has
            return
        for emulated in (False, True) if entry["soft"] and soft else (False,):
            try:
                compiles(
                    number, prune.pruned(text.assembled(entry, self.parts, "opengl", emulated))
                )
            except Exception as error:
                self.fail(number, str(error).strip(), "_soft" * emulated)

    def write(self, path: str) -> None:
        """The file of modules, for TINYFIN_SHADERS."""
        for number in self.numbers:
            entry = self.index[number]
            compile.flatten(entry, text.open_text(entry, self.parts), prune.pruned, self.code)
        compile.write(path, self.index, self.parts, self.code)


def read_texts(folder: str) -> dict[str, str]:
    """The texts of a folder: file name -> text."""
    found = {
        p.name: p.read_text(encoding="utf-8")
        for p in sorted(Path(folder).iterdir())
        if p.suffix in (".comp", ".glsl", ".inc")
    }
    if not found:
        raise FileNotFoundError(f"there are no shaders (.comp, .glsl, .inc) in {folder!r}")
    return found


def reread(entry: dict[str, Any], parts: dict[str, str]) -> dict[str, Any]:
    """An entry of the index with what its body's heading says now."""
    about = text.heading(parts[entry["file"]])
    if "expression" in entry:  # made from a row, which takes only some of the operands
        about["operands"] = about["operands"][: len(entry["operands"])]
        about["words"] = about["words"][: len(entry["words"])]
    return {**entry, **about, "words": text.words_of(about, entry["kind"])}


def syntax_check(number: int, source: str) -> None:
    """A text for OpenGL through glslangValidator, where no driver is here."""
    with tempfile.TemporaryDirectory() as folder:
        # the reference compiler wants a later version for the functions of 64-bit integers
        newer = source.replace("#version 430", "#version 450", 1)
        compile.ran(["glslangValidator", "-S", "comp"], newer, folder)
