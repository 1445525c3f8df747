"""What a call costs from Python to its kernel, in nanoseconds, on tensors that are too small to matter:

    python tools/bench/dispatch.py [--device null,cpu] [--only sum] [--rounds 25] [--json FILE]

Backend `null` runs no kernel, so what it takes is dispatch alone. The least of all rounds counts, as anything else that
runs on the machine only adds; the time of the empty loop is taken off. PyTorch stands beside `cpu` where it is
installed. instructions.py counts the same calls in instructions, which no load changes.
"""

import argparse
import json
import pathlib
import sys
import timeit

CALLS = {
    "x + y": "x + y",
    "x + y, with gradient": "p + y",
    "x + 1": "x + 1.0",
    "x.add_(y)": "x.add_(z)",
    "x.exp()": "x.exp()",
    "x.sum()": "x.sum()",
    "x @ y, 8 x 8": "x @ y",
    "x.t()": "x.t()",
    "x[0]": "x[0]",
    "backward of an MLP": "loss.backward(retain_graph=True)",
}
"""What is measured -> the statement, over the names of `namespace`."""
GOALS = {"x + y": 150.0, "x + y, with gradient": 250.0}
"""Most nanoseconds on backend `null`."""

NODES = 4
"""In the graph of the MLP: two linear layers, relu, sum."""


def namespace(lib, device):
    """The names in the statements: 8 x 8 tensors x, y, zero z, p with gradient, and the loss of a 16-16-4 network."""
    nn = lib.nn
    lib.manual_seed(0)
    x, y, z, p = (f(8, 8, device=device) for f in (lib.ones, lib.ones, lib.zeros, lib.ones))
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
    loss = net(lib.ones(8, 16, device=device)).sum()
    return {"x": x, "y": y, "z": z, "p": p.requires_grad_(), "loss": loss}


def least(timers, rounds, seconds=0.004):
    """The least time of one run of each timer, in nanoseconds, taking turns."""
    counts, best = [], [float("inf")] * len(timers)
    for timer in timers:
        timer.timeit(50)
        counts.append(max(20, int(seconds / (timer.timeit(50) / 50))))
    for _ in range(rounds):
        for i, (timer, n) in enumerate(zip(timers, counts)):
            best[i] = min(best[i], timer.timeit(n) / n * 1e9)
    return best


def frames(run):
    """How many functions written in Python one run enters."""
    seen = []
    sys.setprofile(lambda frame, event, arg: event == "call" and seen.append(frame.f_code.co_name))
    try:
        run()
    finally:
        sys.setprofile(None)
    return len(seen) - 1  # without the run itself


def main():
    """Prints one table: a column for each device, PyTorch's, and the goal."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="null,cpu", help="tinyfin's devices, with commas")
    parser.add_argument("--only", default="", help="calls whose name has this text")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    import tinyfin

    tinyfin.set_num_threads(1)
    columns = {device: namespace(tinyfin, device) for device in options.device.split(",")}
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        columns["PyTorch, cpu"] = namespace(torch, "cpu")
    print(
        f"| ns of a call | {' | '.join(columns)} | goal on null |\n|---|{'---|' * len(columns)}---|"
    )
    empty, found = timeit.Timer("pass"), {}
    for name, statement in CALLS.items():
        if options.only not in name:
            continue
        timers = [timeit.Timer(statement, globals=names) for names in columns.values()]
        nothing, *times = least([empty, *timers], options.rounds)
        found[name] = {column: t - nothing for column, t in zip(columns, times)}
        cells = " | ".join(f"{t:.0f}" for t in found[name].values())
        print(f"| {name} | {cells} | {GOALS.get(name, '')} |", flush=True)
    loss = namespace(tinyfin, "cpu")["loss"]
    count = frames(lambda: loss.backward(retain_graph=True))
    print(f"the backward pass of {NODES} nodes enters {count} Python functions")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
