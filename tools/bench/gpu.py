"""tinyfin on a GPU against PyTorch CUDA on the same card, case by case:

    python tools/bench/gpu.py [--device vulkan] [--only matmul] [--json FILE] [--rounds 5]

Both libraries live in one process and take turns; the card is heated first; the median of the rounds
counts. Without PyTorch CUDA only our figures are printed. Absolute times depend on the machine; the ratios
are what is comparable.
"""

import argparse
import importlib
import json
import pathlib
import statistics
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models
from timing import seconds

CASES = []
"""(group, name, goal as a ratio, bytes or operations of a run, unit, builder)."""


class Peer:
    """One library with its device."""

    def __init__(self, name, device):
        self.lib = importlib.import_module(name)
        self.name, self.device = name, device
        if name == "torch":
            self.lib.backends.cuda.matmul.allow_tf32 = False
            self.lib.backends.cudnn.allow_tf32 = False
            self.wait = self.lib.cuda.synchronize
        else:
            self.wait = lambda: self.lib.synchronize(device)

    def rand(self, *shape, dtype="float32", seed=0):
        """Normal numbers on the device."""
        a = np.random.default_rng(seed).standard_normal(
            min(int(np.prod(shape)), 1 << 20), np.float32
        )
        t = self.lib.from_numpy(np.resize(a, shape)).to(self.device)
        return t.to(getattr(self.lib, dtype))


def case(group, name, goal, work, unit):
    """Registers a builder: Peer -> function to time."""

    def register(build):
        CASES.append((group, name, goal, work, unit, build))
        return build

    return register


def rotating(peer, make, n=3):
    """Arguments that take turns, so that caches do not help."""
    values = [make(seed) for seed in range(n)]
    count = [0]

    def following():
        count[0] = (count[0] + 1) % n
        return values[count[0]]

    return following


N = 1 << 28


@case("elementwise", "copy 2^28", 0.95, 8 * N, "GB/s")
def _(peer):
    x, y = peer.rand(N), peer.rand(N)
    return lambda: y.copy_(x)


@case("elementwise", "add 2^28", 0.95, 12 * N, "GB/s")
def _(peer):
    x, y = peer.rand(N), peer.rand(N)
    return lambda: peer.lib.add(x, y)


@case("elementwise", "gelu 2^28", 0.95, 8 * N, "GB/s")
def _(peer):
    x = peer.rand(N)
    return lambda: peer.lib.nn.functional.gelu(x)


ROWS, COLUMNS = 8192, 4096
MOVED = 4 * ROWS * COLUMNS


def over_rows(name, goal, work, call):
    @case("rows", f"{name} {ROWS}x{COLUMNS}", goal, work, "GB/s")
    def _(peer):
        following = rotating(peer, lambda seed: peer.rand(ROWS, COLUMNS, seed=seed))
        return lambda: call(peer.lib, following())


over_rows("softmax", 1.2, 2 * MOVED, lambda lib, x: lib.softmax(x, -1))
over_rows("layer norm", 1.2, 2 * MOVED, lambda lib, x: lib.nn.functional.layer_norm(x, (COLUMNS,)))
over_rows("row sums", 1.2, MOVED, lambda lib, x: x.sum(1))
over_rows("column sums", 1.2, MOVED, lambda lib, x: x.sum(0))
over_rows("transposed copy", 1.5, 2 * MOVED, lambda lib, x: x.t().contiguous())


def product(size, goal, dtype="float32"):
    @case("matmul", f"{dtype} matmul {size}", goal, 2 * size**3, "TFLOP/s")
    def _(peer):
        a, b = (peer.rand(size, size, dtype=dtype, seed=s) for s in (0, 1))
        return lambda: peer.lib.matmul(a, b)


product(1024, 0.70)
for size in (2048, 4096, 8192):
    product(size, 0.90)
for dtype in ("float16", "bfloat16"):
    for size in (4096, 8192):
        product(size, 0.48, dtype)


@case("conv", "conv2d 3x3 N32 C64 56x56 K64", 0.9, 2 * 32 * 64 * 64 * 9 * 56 * 56, "TFLOP/s")
def _(peer):
    x, w = peer.rand(32, 64, 56, 56), peer.rand(64, 64, 3, 3)
    return lambda: peer.lib.nn.functional.conv2d(x, w, padding=1)


@case("attention", "attention 8x16x1024x64", 1.0, 4 * 8 * 16 * 1024 * 1024 * 64, "TFLOP/s")
def _(peer):
    q, k, v = (peer.rand(8, 16, 1024, 64, seed=s) for s in range(3))
    return lambda: peer.lib.nn.functional.scaled_dot_product_attention(q, k, v)


@case("small", "x + y, 1,000 elements, one after the other", 3.5, 1, "us")
def _(peer):
    x, y = peer.rand(1000), peer.rand(1000)
    state = [x]

    def run():
        state[0] = state[0] + y

    return run


@case("small", "x.add_(y), 1,000 elements", 3.5, 1, "us")
def _(peer):
    x, y = peer.rand(1000), peer.rand(1000)
    return lambda: x.add_(y)


for title in models.BATCHES:

    @case("train", f"training step: {title}", 1.0, 1, "us")
    def _(peer, title=title):
        return models.training_step(peer.lib, title, peer.device)


def measured(build, peers, rounds, budget):
    """Median seconds of each peer, taking turns."""
    runs = [build(peer) for peer in peers]
    for peer, run in zip(peers, runs):
        seconds(run, peer.wait, 0.3)  # an idle card needs load before its clock rises
    times = [[] for _ in peers]
    for _ in range(rounds):
        for peer, run, found in zip(peers, runs, times):
            found.append(seconds(run, peer.wait, budget))
    return [statistics.median(t) for t in times]


def shown(value, work, unit):
    """Seconds in the unit of a case."""
    scale = {"GB/s": work / 1e9 / value, "TFLOP/s": work / 1e12 / value, "us": value * 1e6}
    return scale[unit]


def main():
    """Runs the cases and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--only", default="", help="cases whose group or name has this text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.1, help="seconds of a round")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    peers = [Peer("tinyfin", options.device)]
    try:
        import torch

        if torch.cuda.is_available():
            peers.append(Peer("torch", "cuda"))
            print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    except ImportError:
        pass
    found, ceiling = [], 0.0
    print("| case | tinyfin | PyTorch | unit | ratio | goal |\n|---|---|---|---|---|---|")
    for group, name, goal, work, unit, build in CASES:
        if options.only not in group and options.only not in name:
            continue
        try:
            times = measured(build, peers, options.rounds, options.budget)
        except Exception as error:  # the table goes on, the case counts as failed
            print(
                f"| {name} | failed: {type(error).__name__}: {str(error)[:200]} | | | | |",
                flush=True,
            )
            found.append({"case": name, "failed": str(error)})
            continue
        values = [shown(t, work, unit) for t in times]
        theirs = f"{values[1]:.4g}" if len(values) > 1 else "-"
        if name.startswith("copy"):
            ceiling = max(values)
        ratio = times[1] / times[0] if len(times) > 1 else float("nan")
        if group == "elementwise" and ceiling:  # these are held against what a copy reaches
            ratio = values[0] / ceiling
        print(
            f"| {name} | {values[0]:.4g} | {theirs} | {unit} | {ratio:.2f} | {goal:.2f} |",
            flush=True,
        )
        found.append(
            {
                "case": name,
                "group": group,
                "unit": unit,
                "values": values,
                "ratio": ratio,
                "goal": goal,
            }
        )
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
