"""tinyfin's Vulkan backend beside other libraries that compute through Vulkan, on the device that is here:

    python tools/bench/peers.py [--peer-python PATH] [--rounds 3]

Each library runs in a process of its own, in turns: a digits MLP step (64-32-10, batch 64), a 512 x 512 float32
product, and a queued addition of 1,000 elements. Peers are looked for in the Python of --peer-python
(pip install computeml ferrotensor rasptorch torch torchvulkan); one that is missing or fails is reported.
"""

import argparse
import json
import statistics
import subprocess
import sys

TIMER = """
import json, time
import numpy as np
rng = np.random.default_rng(0)
A, B = (rng.standard_normal((512, 512), np.float32) for _ in range(2))
U, V = (rng.standard_normal(1000, np.float32) for _ in range(2))
X, Y = rng.standard_normal((64, 64), np.float32), rng.integers(0, 10, 64)
def timed(run, wait, n):
    out = run(); wait(out)
    best = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(n): out = run()
        wait(out)
        best.append((time.perf_counter() - start) / n)
    return min(best)
def report(**cases):
    print(json.dumps({name: timed(*case) for name, case in cases.items()}))
def chain(add, x, y):
    state, count = [x], [0]
    def run():
        count[0] += 1
        state[0] = add(state[0] if count[0] % 100 else x, y)
        return state[0]
    return run
"""
TORCHLIKE = """
nn = lib.nn
a, b, u, v, x = (lib.from_numpy(t).to(D) for t in (A, B, U, V, X))
y = lib.from_numpy(Y).to(D)
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(D)
opt = lib.optim.SGD(net.parameters(), lr=0.01)
def step():
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    return loss
report(mlp=(step, wait, 50), matmul=(lambda: a @ b, wait, 5), small=(chain(lambda p, q: p + q, u, v), wait, 300))
"""
PROGRAMS = {
    "tinyfin": """
import tinyfin as lib
D = "vulkan"
wait = lambda out: lib.synchronize(D)
""" + TORCHLIKE,
    "torchvulkan": """
import torch as lib, torchvulkan
D = "vulkan"
wait = lambda out: out.detach().reshape(-1)[:1].cpu()
""" + TORCHLIKE,
    "computeml": """
import computeml as cml
ctx = cml.Context()
a, b, u, v, x, y = map(ctx.asarray, (A, B, U, V, X, Y.astype(np.float32)))
net = cml.nn.Sequential(cml.nn.Linear(ctx, 64, 32, activation="relu"), cml.nn.Linear(ctx, 32, 10)).requires_grad_()
opt = cml.optim.AdamW(net.parameters(), lr=0.01)
def step():
    opt.zero_grad()
    loss = cml.ops.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    return loss
wait = lambda out: out.numpy()
report(mlp=(step, wait, 50), matmul=(lambda: a @ b, wait, 5), small=(chain(lambda p, q: p + q, u, v), wait, 300))
""",
    "ferrotensor": """
import ferrotensor as ft
import ferrotensor.nn.functional as F
from ferrotensor import nn, optim
D = ft.Device("gpu")
a, b, u, v, x = (ft.tensor(t.tolist(), device=D) for t in (A, B, U, V, X))
net = nn.Sequential(nn.Linear(64, 32, device=D), nn.ReLU(), nn.Linear(32, 10, device=D))
opt = optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.0)
targets = Y.tolist()
def step():
    opt.zero_grad()
    loss = F.cross_entropy(net(x), targets)
    loss.backward()
    opt.step()
    return loss
wait = lambda out: out.tolist() if out.shape else out.item()
report(mlp=(step, wait, 50), matmul=(lambda: a @ b, wait, 1), small=(chain(lambda p, q: p + q, u, v), wait, 300))
""",
    "rasptorch": """
import rasptorch
from rasptorch import Tensor, nn, optim, functional as F
rasptorch.connect_backend("vulkan", strict=True)
a, b, u, v, x = (Tensor(t).to("gpu") for t in (A, B, U.reshape(1, -1), V.reshape(1, -1), X))
wait = lambda out: out.numpy()
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to("gpu")
opt = optim.SGD(net.parameters(), lr=0.01)
y = Tensor(np.eye(10, dtype=np.float32)[Y]).to("gpu")
def step():
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    return loss
report(mlp=(step, wait, 50), matmul=(lambda: a @ b, wait, 5), small=(chain(lambda p, q: p + q, u, v), wait, 300))
""",
}  # fmt: skip
CASES = {
    "mlp": "digits MLP step",
    "matmul": "512 x 512 product",
    "small": "queued x + y, 1,000 elements",
}


def run(python, name):
    """Seconds of each case, or why there are none."""
    made = subprocess.run(
        [python, "-c", TIMER + PROGRAMS[name]], capture_output=True, text=True, timeout=600
    )
    if made.returncode:
        return (made.stderr.strip().splitlines() or ["it ended without a word"])[-1][:160]
    return json.loads(made.stdout.strip().splitlines()[-1])


def main():
    """Prints one table: microseconds, and how many times ours they are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found = {name: [] for name in PROGRAMS}
    for _ in range(options.rounds):
        for name, results in found.items():
            if not results or not isinstance(results[-1], str):
                results.append(
                    run(sys.executable if name == "tinyfin" else options.peer_python, name)
                )
    print(f"| library | {' | '.join(CASES.values())} |\n|---|---|---|---|")
    ours = {}
    for name, results in found.items():
        if isinstance(results[-1], str):
            print(f"| {name} | does not run: {results[-1]} | | |")
            continue
        times = {c: statistics.median(r[c] for r in results) for c in CASES}
        ours = ours or times
        print(
            f"| {name} | "
            + " | ".join(f"{times[c] * 1e6:.0f} us ({times[c] / ours[c]:.1f}x)" for c in CASES)
            + " |"
        )


if __name__ == "__main__":
    main()
