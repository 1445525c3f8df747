"""`tinyfin shaders validate --exhaustive`: every float32 number through every function of one."""

from __future__ import annotations

import time

from tinyfin.cli import exhaustive
from tinyfin.cli.progress import Progress
from tinyfin.cli.shader_modules import matches
from tinyfin.cli.shaders import Printer, complain, save

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any


def run_exhaustive(args: Namespace) -> int:
    """Computes, compares or stores; the exit code."""
    try:
        chunks = exhaustive.part(args.part)
    except ValueError as error:
        return complain(f"--part: {error}")
    names = [n for n in exhaustive.functions() if matches(n, args.kernel)]
    if not names:
        return complain(f"no function of one number is named {' or '.join(args.kernel)}")
    if args.store and len(chunks) < exhaustive.CHUNKS:
        return complain("--store takes all parts together")
    device = "cpu" if args.backend == "cpu" else f"{args.backend}:{args.device}"
    known = {} if args.store else exhaustive.stored()
    found: dict[str, Any] = {}
    with Progress(len(names) * len(chunks), "numbers") as bar:
        say = Printer(args, bar)
        for name in names:
            found[name] = one(args, name, chunks, device, known.get(name), bar)
            say(name, found[name]["text"])
    failed = [n for n, f in found.items() if not f["passed"]]
    say = Printer(args)
    done = f"{len(names)} functions, {len(chunks)} of {exhaustive.CHUNKS} parts of the numbers, on {device}"
    say(f"verdict: FAILED ({done}): {', '.join(failed)}" if failed else f"verdict: passed ({done})")
    save(args, {"device": device, "functions": found, "verdict": "failed" if failed else "passed"})
    return 1 if failed else 0


def one(
    args: Namespace, name: str, chunks: range, device: str, wanted: list[int] | None, bar: Progress
) -> dict[str, Any]:
    """What is found out about one function."""
    began = time.perf_counter()
    sums, wrong = [], []
    if wanted is None and device == "cpu" and not args.store:
        bar.advance(name, len(chunks))
        return {
            "passed": True,
            "text": "no checksum is stored: nothing to compare with",
            "sums": None,
        }
    for chunk, found in exhaustive.checksums(name, chunks, device):
        bar.advance(name)
        sums.append(found)
        if args.store:
            continue
        expected = wanted[chunk] if wanted is not None else exhaustive.checksum(name, chunk, "cpu")
        if found != expected:
            wrong.append(chunk)
    seconds = f"{time.perf_counter() - began:.0f} s"
    if args.store:
        path = exhaustive.STORED if args.store is True else args.store
        exhaustive.store(name, sums, path)
        text = f"stored: {exhaustive.combined(sums)}  {seconds}"
    elif wrong:
        where = exhaustive.first_difference(name, wrong[0], device) if device != "cpu" else None
        text = f"FAULT: {len(wrong)} of {len(chunks)} parts differ; " + (
            where or f"first from {wrong[0] << exhaustive.CHUNK_BITS:#010x} on"
        )
    else:
        against = "the stored checksums" if wanted is not None else "this machine's CPU"
        text = f"{exhaustive.combined(sums)} as {against}  {seconds}"
    return {"passed": not wrong, "text": text, "sum": exhaustive.combined(sums)}
