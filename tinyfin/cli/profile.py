"""`tinyfin profile`: runs a script and says where its time went."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any


def add_parser(commands: Any) -> None:
    """Adds the subcommand to the command line."""
    from argparse import REMAINDER

    from tinyfin.profiler import SORTS

    parser = commands.add_parser(
        "profile",
        help="run a script and show where its time goes",
        description="Runs a Python script as its interpreter would, notes every call of a kernel, and shows which "
        "take the time on the CPU and on devices. The table goes to standard error.",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    parser.add_argument(
        "--sort", choices=SORTS, help="default: time on the device, else on the CPU"
    )
    parser.add_argument(
        "--rows", type=int, default=30, metavar="N", help="rows at most (default: 30)"
    )
    parser.add_argument("--shapes", action="store_true", help="tell calls with other shapes apart")
    parser.add_argument(
        "--trace", metavar="FILE", help="write a trace for chrome://tracing or ui.perfetto.dev"
    )
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("args", nargs=REMAINDER, metavar="...", help="arguments of the script")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Runs the script; its exit code, also where it fails."""
    import runpy
    from pathlib import Path

    import tinyfin
    from tinyfin.cli.files import unwritable
    from tinyfin.profiler import profile

    if not found(args.script, args.module):
        what = "module" if args.module else "file"
        print(f"tinyfin profile: there is no {what} {args.script}", file=sys.stderr)
        return 2
    why = (not_a_trace(args.trace) or unwritable(args.trace)) if args.trace else None
    if why is not None:
        print(f"tinyfin profile: --trace {args.trace}: cannot be written: {why}", file=sys.stderr)
        return 2
    tinyfin.memory_stats()  # opens the device, so that its start is not counted
    p = profile(record_shapes=args.shapes, profile_memory=True)
    code, old = 0, (sys.argv[:], sys.path[:])
    sys.argv = [args.script, *args.args]
    p.start()
    try:
        if args.module:
            sys.path.insert(0, os.getcwd())  # as `python -m` does
            runpy.run_module(args.script, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(args.script).resolve().parent))
            runpy.run_path(args.script, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except KeyboardInterrupt:  # what was noted until then is shown
        print("tinyfin profile: interrupted", file=sys.stderr)
        code = 130
    except Exception:
        import traceback

        traceback.print_exc()
        code = 1
    finally:
        p.stop()
        sys.argv, sys.path[:] = old
    print(p.key_averages(args.shapes).table(args.sort, args.rows), file=sys.stderr)
    print(p.summary(), file=sys.stderr)
    if args.trace:
        p.export_chrome_trace(args.trace)
        print(f"trace written to {args.trace}: open it in https://ui.perfetto.dev", file=sys.stderr)
    return code


def not_a_trace(path: str) -> str | None:
    """Why a file is not written over: it is a program, or there and no trace."""
    if path.endswith((".py", ".pyw")):
        return "it is the name of a Python script"
    if not os.path.isfile(path) or not os.path.getsize(path):
        return None
    try:
        with open(path, "rb") as file:
            start = file.read(64)
    except OSError:  # the check that follows says so
        return None
    return None if start.lstrip().startswith(b'{"traceEvents"') else "it is there, and is no trace"


def found(script: str, module: bool) -> bool:
    """Whether there is such a file, or a module that the current folder or the path has."""
    from importlib.util import find_spec

    if not module:
        return os.path.isfile(script)

    sys.path.insert(0, os.getcwd())
    try:
        return find_spec(script) is not None
    except ModuleNotFoundError:  # of a package that there is not
        return False
    finally:
        sys.path.pop(0)
