"""The command `tinyfin`: finds the subcommand and runs it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence


def build_parser() -> ArgumentParser:
    """The parser of the whole command line.

    >>> build_parser().parse_args(["demo", "--seed", "3"]).seed
    3
    """
    import argparse

    import tinyfin
    from tinyfin.cli import demo, info, profile, shaders

    parser = argparse.ArgumentParser(prog="tinyfin", description="A small deep-learning library.")
    parser.add_argument("--version", action="version", version=f"tinyfin {tinyfin.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for module in (info, demo, profile, shaders):
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 1 failed, 2 wrong arguments, 130
    interrupted.
    """
    args = build_parser().parse_args(argv)
    try:
        return args.run(args)
    except KeyboardInterrupt:
        print(f"\ntinyfin {args.command}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; what Python still holds for it must not raise again at
        # exit.
        sys.stdout = None
        return 1
    except OSError as e:
        print(f"tinyfin {args.command}: {e}", file=sys.stderr)
        return 1
