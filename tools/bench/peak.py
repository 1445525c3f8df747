"""What share of a core's multiply-adds float32 products reach, by instruction set:

    python tools/bench/peak.py [--isa avx2 avx512] [--sizes 512 1024 2048]

The peak is measured by a loop of independent fused multiply-adds, which needs a C compiler (`cc`). Both take turns;
the best of the rounds counts, as a core's clock is what limits here.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

LOOP = """
#include <stdio.h>
#include <time.h>
typedef float V __attribute__((vector_size(BYTES)));
int main(void) {
  V x, y;
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define BEGIN(k) V a##k = {k};
#define STEP(k) a##k = a##k * x + y;
#define SUM(k) sum += a##k[0];
  EACH(BEGIN)
  struct timespec s, e;
  double best = 0;
  for (unsigned i = 0; i < BYTES / 4; i++) x[i] = 0.999f, y[i] = 1e-6f;
  for (int round = 0; round < 20; round++) {
    clock_gettime(CLOCK_MONOTONIC, &s);
    for (int n = 0; n < 1000000; n++) {
      __asm__ volatile("" : "+x"(x), "+x"(y));
      EACH(STEP)
    }
    clock_gettime(CLOCK_MONOTONIC, &e);
    double rate = 1e6 * 12 * 2 * (BYTES / 4) / ((e.tv_sec - s.tv_sec) * 1e9 + e.tv_nsec - s.tv_nsec);
    best = rate > best ? rate : best;
  }
  float sum = 0;
  EACH(SUM)
  printf("%f %f\\n", best, sum);
}
"""
FLAGS = {"avx2": ["-mavx2", "-mfma", "-DBYTES=32"], "avx512": ["-mavx512f", "-DBYTES=64"]}
PRODUCT = """
import sys, time
import tinyfin as tf
tf.set_num_threads(1)
n = int(sys.argv[1])
a, b = tf.rand(n, n), tf.rand(n, n)
best = 1e9
for _ in range(12):
    start = time.perf_counter()
    a @ b
    best = min(best, time.perf_counter() - start)
print(2 * n**3 / best / 1e9)
"""


def peak(folder, isa):
    """GFLOP/s of the loop."""
    source = pathlib.Path(folder) / "loop.c"
    source.write_text(LOOP)
    program = source.with_name(f"loop_{isa}")
    flags = ["-O3", "-ffp-contract=fast", "-fno-tree-vectorize", *FLAGS[isa]]
    subprocess.run(["cc", *flags, str(source), "-o", str(program)], check=True)
    return lambda: float(
        subprocess.run([program], capture_output=True, check=True).stdout.split()[0]
    )


def product(folder, isa, n):
    """GFLOP/s of a product of n x n matrices."""
    run = subprocess.run(
        [sys.executable, "-c", PRODUCT, str(n)],
        env={**os.environ, "TINYFIN_ISA": isa},
        cwd=folder,  # not the source folder, which has no compiled parts
        capture_output=True,
        text=True,
        check=True,
    )
    return float(run.stdout)


def main():
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--isa", nargs="+", default=["avx2"], choices=list(FLAGS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[512, 1024, 2048])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| instruction set | peak, GFLOP/s | product | GFLOP/s | share |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for isa in options.isa:
            loop = peak(folder, isa)
            found = {n: 0.0 for n in options.sizes}
            most = 0.0
            for _ in range(options.rounds):
                most = max(most, loop())
                for n in options.sizes:
                    found[n] = max(found[n], product(folder, isa, n))
            for n, rate in found.items():
                print(f"| {isa} | {most:.1f} | {n} x {n} | {rate:.1f} | {rate / most:.0%} |")


if __name__ == "__main__":
    main()
