"""`tinyfin info`: what this installation is and what it runs on."""

from __future__ import annotations

import json
import sys

import tinyfin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any


def add_parser(commands: Any) -> None:
    """Adds the subcommand to the command line."""
    parser = commands.add_parser(
        "info",
        help="show version, processor, threads and backends",
        description="Shows version, processor, instruction sets, threads, and the backends "
        "with the reason where one is missing.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Prints what is known; returns the exit code."""
    facts = collect()
    if args.json:
        print(json.dumps(facts))
        return 0
    isas = ", ".join(facts["isas"])
    rows = [
        ("tinyfin", facts["version"]),
        ("python", facts["python"]),
        ("platform", facts["platform"]),
        ("processor", facts["processor"]),
        ("instruction set", f"{facts['isa']} (compiled: {isas})"),
        ("threads", f"{facts['threads']} of {facts['cores']} cores that this process may use"),
        ("backend", facts["backend"]),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")
    print("\nbackends")
    for name, why in facts["backends"].items():
        print(f"  {name:{width - 2}}  {'available' if why is None else 'missing: ' + why}")
        for i, device in enumerate(facts["devices"].get(name, [])):
            print(f"  {'':{width - 2}}  {name}:{i}  {device}")
        if name in facts["about"]:
            print(f"  {'':{width - 2}}  {facts['about'][name]}")
    return 0


def collect() -> dict[str, Any]:
    """What `tinyfin info` shows, by name; a backend's value is None where it is available, else
    the reason.

    >>> collect()["version"] == tinyfin.__version__
    True
    """
    import platform

    from tinyfin.backends.base import REGISTRY
    from tinyfin.backends.cpu.threads import available_cores

    backends = tinyfin.backend_list()
    return {
        "version": tinyfin.__version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "processor": processor(),
        "isa": instruction_set(),
        "isas": compiled_sets(),
        "threads": tinyfin.get_num_threads(),
        "cores": available_cores(),
        "backend": tinyfin.backend_name(),
        "backends": backends,
        "devices": {
            name: found
            for name, why in backends.items()
            if why is None and (found := REGISTRY[name].devices())
        },
        "about": {
            name: told
            for name, why in backends.items()
            if why is None and (told := REGISTRY[name].about())
        },
    }


def processor() -> str:
    """The name of the processor, as far as the system tells.

    >>> bool(processor())
    True
    """
    import platform

    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


def instruction_set() -> str:
    """The instruction set that the CPU kernels use.

    >>> instruction_set() in compiled_sets()
    True
    """
    from tinyfin.backends.cpu.isa import isa_name

    return isa_name()


def compiled_sets() -> list[str]:
    """The instruction sets that this build has kernels for, best first; those that the processor
    lacks are marked.

    >>> len(compiled_sets()) >= 1
    True
    """
    from tinyfin.backends.cpu.isa import isa_list

    return [name if usable else f"{name} (not on this processor)" for name, usable in isa_list()]
