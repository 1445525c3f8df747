"""How fast a matrix product, a convolution and elementwise operations are, on every backend that is here.

    python examples/perf_profile.py
    python examples/perf_profile.py --backend cpu,vulkan --size 1024
    python examples/perf_profile.py --backend cpu --profile trace.json

Arithmetic is counted in GFLOP/s, what only moves memory in GB/s; the last column is the share of the best backend. With
--profile the calls are noted: which operations ran, on what, for how long; the file is for
https://ui.perfetto.dev. A software driver is right and slow: --size makes the work smaller.
"""

import argparse
import contextlib
import statistics
import sys
import time

import numpy as np

import tinyfin
from tinyfin.profiler import profile, record_function

F = tinyfin.nn.functional


def normal(*shape):
    """Normal numbers on the backend that is set."""
    return tinyfin.from_numpy(np.random.default_rng(0).standard_normal(shape, np.float32))


def work(size):
    """name -> (inputs, function, operations or bytes of a run, unit); `size` is the side of the matrices."""
    wide = max(8, size // 16)
    multiplied = 4 * wide * wide * 9 * 28 * 28
    return {
        f"matmul {size}": (
            lambda: (normal(size, size), normal(size, size)),
            lambda a, b: a @ b,
            2 * size**3,
            "GFLOP/s",
        ),
        f"conv2d 3x3, {wide} channels": (
            lambda: (normal(4, wide, 28, 28), normal(wide, wide, 3, 3)),
            lambda x, w: F.conv2d(x, w, padding=1),
            2 * multiplied,
            "GFLOP/s",
        ),
        f"x + y, {4 * size * size}": (
            lambda: (normal(4 * size * size), normal(4 * size * size)),
            lambda x, y: x + y,
            12 * 4 * size * size,
            "GB/s",
        ),
        f"exp, {4 * size * size}": (
            lambda: (normal(4 * size * size),),
            lambda x: x.exp(),
            8 * 4 * size * size,
            "GB/s",
        ),
    }


def seconds(call, rounds=5, budget=0.05):
    """Median seconds of a call; the device is waited for at the end of each round."""

    def several(n):
        start = time.perf_counter()
        for _ in range(n):
            call()
        tinyfin.synchronize()
        return (time.perf_counter() - start) / n

    several(1)  # compiles what a device needs
    n = max(1, min(1000, int(budget / several(1))))
    return statistics.median(several(n) for _ in range(rounds))


def measure(backends, size, rounds):
    """name of the work -> {backend: rate}, and its unit; all on one backend before the next."""
    rates, units = {}, {}
    for backend in backends:
        tinyfin.backend_set(backend)
        for name, (inputs, function, amount, unit) in work(size).items():
            tensors = inputs()
            with record_function(f"{name} on {backend}"):
                taken = seconds(lambda: function(*tensors), rounds)
            rates.setdefault(name, {})[backend] = amount / taken / 1e9
            units[name] = unit
    return rates, units


def table(rates, units):
    """The lines of a table, the fastest backend of each work first."""
    lines = [f"{'':34}{'backend':10}{'rate':>16}  of the best"]
    for name, found in rates.items():
        best = max(found.values())
        for backend, rate in sorted(found.items(), key=lambda item: -item[1]):
            shown = f"{rate:.4g} {units[name]}"
            lines.append(f"{name:34}{backend:10}{shown:>16}{rate / best:12.0%}")
    return lines


def main():
    """Reads the command line and runs."""
    there = tinyfin.backend_list()  # name -> None, or why it cannot be used
    here = [name for name, why in there.items() if why is None and name != "null"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--backend", default=",".join(here), help="backends, with commas (default: %(default)s)"
    )
    parser.add_argument(
        "--size", type=int, default=512, help="side of the matrices (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds; the median counts (default: %(default)s)"
    )
    parser.add_argument("--profile", metavar="FILE", help="profile, and write the trace to FILE")
    args = parser.parse_args()
    if args.size < 1 or args.rounds < 1:
        parser.error("--size and --rounds are at least 1")
    backends = args.backend.split(",")
    for name in backends:
        try:
            usable = name != "null" and tinyfin.backend_set(name)  # warns why not
        except RuntimeError as error:
            parser.error(str(error))
        if not usable:
            parser.error(f"backend {name!r} is not available; here are {', '.join(here)}")
    with profile() if args.profile else contextlib.nullcontext() as noted:
        rates, units = measure(backends, args.size, args.rounds)
    print("\n".join(table(rates, units)))
    if noted:
        print(f"\n{noted.key_averages().table(row_limit=20)}\n{noted.summary()}")
        noted.export_chrome_trace(args.profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
