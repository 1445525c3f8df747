"""Accuracy and reproducibility of the elementary functions.

    ulp.py [--stride N] [--fast] [--64] [name ...]

Prints for each function the largest error in units in the last place over every N-th float32 (1:
all), or over 2^32 / N hard and random inputs (functions of two arguments, --64); where it occurs;
the largest |error| / max(1, |result|); the number of wrong special values; the number of results
whose bits differ between the FMA, no-FMA and AVX-512 builds with subnormals kept or flushed; and
nanoseconds an element for each build.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra"]
BUILDS = {
    "fma": ["-mavx2", "-mfma"],
    "soft": ["-DVM_SOFTFMA"],
    "avx512": [
        "-mavx512f",
        "-mavx512dq",
        "-mavx512bw",
        "-mavx512vl",
        "-mfma",
        "-mprefer-vector-width=512",
    ],
}


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--stride", type=int, default=257)
    p.add_argument("--fast", action="store_true", help="errors only: no comparison of builds")
    p.add_argument("--64", dest="double", action="store_true", help="the float64 functions")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    flags = FLAGS + (["-DULP64"] if a.double else [])
    with tempfile.TemporaryDirectory() as d:
        src = str(HERE / "ulp.c")
        objs = []
        for name, isa in BUILDS.items():
            objs.append(f"{d}/{name}.o")
            subprocess.check_call(
                ["gcc", *flags, *isa, f"-DULP_BUILD={name}", "-c", src, "-o", objs[-1]]
            )
        warn = ["-O2", "-fopenmp", "-Wall", "-Wextra", *flags[-1:]]
        subprocess.check_call(["gcc", "-D_GNU_SOURCE", *warn, src, *objs, "-o", f"{d}/ulp", "-lm"])
        return subprocess.call([f"{d}/ulp", str(a.stride), "fast" if a.fast else "all", *a.names])


if __name__ == "__main__":
    sys.exit(main())
