"""tinyfin beside PyTorch on the CPU, case by case:

    python tools/bench/cpu.py [--threads 1,2] [--only matmul,train] [--rounds 5] [--json FILE] [--peer-python PATH] [--breadth]

Each library lives in a process of its own and they take turns, so that neither's threads are in the other's way. A case runs once
in both before it is timed: results that differ, and cases that fail, count as 0.1. The ratio is PyTorch's time over ours, round by
round; the median counts. Absolute times depend on the machine and on what else it does. Memory is the growth from after the import to the
peak, of three steps in a new process. Without PyTorch only our figures are printed.
"""

import argparse
import importlib
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
from timing import seconds

FAILED = 0.1
TOLERANCE, OF_HALVES = 2e-3, 4e-2
SAMPLED = 4000
"""Values of a result that are compared, evenly spread."""


def peak():
    """Most bytes that this process has had in memory, from the kernel; not those of the process that started it."""
    with open("/proc/self/status") as f:
        return next(1024 * int(line.split()[1]) for line in f if line.startswith("VmHWM"))


# -- the process that runs one library


def sample(result):
    """Shape and some values of each tensor of a result."""
    found = []
    for t in result if isinstance(result, (list, tuple)) else [result]:
        a = np.asarray(t.detach().double().numpy()).ravel()
        values = a[:: max(1, -(-a.size // SAMPLED))].tolist()
        found.append({"shape": list(t.shape), "values": values, "half": t.dtype.itemsize == 2})
    return found


def tables(breadth):
    """The cases and the goals of their groups."""
    module = importlib.import_module("breadth" if breadth else "cases")
    return module.CASES, module.GOALS


def answer(lib, request, state):
    """What one request asks for: {'prepare': case}, {'time': seconds} or {'grow': case}."""
    cases, _ = tables(request["breadth"])
    if "prepare" in request:
        group, build = cases[request["prepare"]]
        state.clear()  # the case before gives its memory back
        state["run"] = build(lib)
        return [sample(state["run"]()) for _ in range(3 if group == "train" else 1)]
    if "time" in request:
        return seconds(state["run"], lambda: None, request["time"])
    before = peak()
    run = cases[request["grow"]][1](lib)
    for _ in range(3):
        run()
    return {"growth": peak() - before, "whole": peak()}


def serve(name, threads):
    """Answers requests, one a line, until there are no more."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no reply
    lib, state = importlib.import_module(name), {}
    lib.set_num_threads(threads)
    for line in sys.stdin:
        try:
            reply = {"is": answer(lib, json.loads(line), state)}
        except Exception as error:  # the case fails, not the run
            reply = {"error": f"{type(error).__name__}: {str(error)[:160]}"}
        print(json.dumps(reply), file=replies, flush=True)


# -- the process that compares


class Failure(Exception):
    """A case that could not be timed, and why."""


class Peer:
    """One library in a process of its own."""

    def __init__(self, python, name, threads, breadth=False):
        self.python, self.name, self.threads, self.process = python, name, threads, None
        self.breadth = breadth

    def start(self):
        """Starts the process where none runs."""
        if self.process is None:
            env = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
            env["TINYFIN_THREADS"] = str(self.threads)
            command = [self.python, __file__, "--serve", self.name, "--threads", str(self.threads)]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
            )

    def ask(self, **request):
        """The reply to a request."""
        self.start()
        try:
            print(
                json.dumps({**request, "breadth": self.breadth}),
                file=self.process.stdin,
                flush=True,
            )
            reply = json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            code = self.process.wait()
            self.process = None
            raise Failure(f"{self.name} ended with {code}") from None
        if "error" in reply:
            raise Failure(f"{self.name}: {reply['error']}")
        return reply["is"]

    def stop(self):
        """Ends the process."""
        if self.process is not None:
            self.process.communicate()
            self.process = None


def difference(ours, theirs):
    """Why two lists of samples are not the same result, or None."""
    for a, b in zip(itertools.chain(*ours), itertools.chain(*theirs)):
        if a["shape"] != b["shape"]:
            return f"shape {a['shape']}, PyTorch's is {b['shape']}"
        x, y = np.array(a["values"]), np.array(b["values"])
        apart = np.subtract(x, y, out=np.zeros(x.shape), where=x != y)  # infinities agree
        far = np.abs(apart).max(initial=0) / max(np.abs(y).max(initial=0), 1e-30)
        if not far <= (OF_HALVES if a.get("half") else TOLERANCE):
            return f"results differ by {far:.1e} of the largest"
    return None


def compared(peers, name, rounds, budget):
    """Median seconds of each peer, and the ratio of each round."""
    samples = [peer.ask(prepare=name) for peer in peers]
    why = difference(*samples) if len(peers) > 1 else None
    if why:
        raise Failure(why)
    times = []
    for _ in range(rounds):
        times.append([peer.ask(time=budget) for peer in peers])
    return [statistics.median(t) for t in zip(*times)], [t[-1] / t[0] for t in times]


def grown(peers, name):
    """Bytes of each peer, in new processes."""
    found = []
    for peer in peers:
        fresh = Peer(peer.python, peer.name, peer.threads)
        try:
            found.append(fresh.ask(grow=name))
        finally:
            fresh.stop()
    return found


def import_seconds(python, name, rounds):
    """Median seconds of starting Python and importing a module, above starting it without."""

    def once(code):
        start = time.perf_counter()
        subprocess.run([python, "-c", code], check=True, cwd="/", capture_output=True)
        return time.perf_counter() - start

    return statistics.median(once(f"import {name}") - once("pass") for _ in range(rounds))


def geometric_mean(values):
    """The geometric mean of numbers above zero."""
    return math.exp(statistics.fmean(map(math.log, values)))


def table(peers, names, options):
    """Times all cases with one number of threads; prints the rows and gives the figures."""
    cases, goals = tables(options.breadth)
    head = ["tinyfin us"] + (["PyTorch us", "ratio", "of all rounds"] if len(peers) > 1 else [])
    print(
        f"\n{peers[0].threads} threads\n\n| case | {' | '.join(head)} |\n|---|{'---|' * len(head)}"
    )
    found = {}
    for name in names:
        group = cases[name][0]
        try:
            times, ratios = compared(peers, name, options.rounds, options.budget)
        except Failure as why:
            print(f"| {name} | failed: {why} |{' |' * (len(head) - 1)}", flush=True)
            found[name] = {"group": group, "failed": str(why), "ratio": FAILED}
            continue
        ratio = statistics.median(ratios)
        cells = [f"{t * 1e6:.4g}" for t in times]
        cells += [f"{ratio:.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"] * (len(peers) > 1)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        found[name] = {"group": group, "seconds": times, "ratio": ratio}
    if len(peers) > 1 and found:
        print(
            "\n| group | geometric mean | goal | worst | goal | cases |\n|---|---|---|---|---|---|"
        )
        for group, (mean, worst) in goals.items():
            ratios = [f["ratio"] for f in found.values() if f["group"] == group]
            if ratios:
                figures = f"{geometric_mean(ratios):.2f} | {mean} | {min(ratios):.2f} | {worst}"
                print(f"| {group} | {figures} | {len(ratios)} |")
    return found


def memory(peers, names):
    """Prints and gives what training steps add to memory, and the whole process's."""
    found = {}
    print(
        "\n| memory, MB | growth | PyTorch's | whole | PyTorch's |\n|---|---|---|---|---|"
        if len(peers) > 1
        else "\n| memory, MB | growth | whole |\n|---|---|---|"
    )
    for name in names:
        found[name] = grown(peers, name)
        cells = [f"{f[key] / 1e6:.1f}" for key in ("growth", "whole") for f in found[name]]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return found


def main():
    """Runs the cases, then memory and imports, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas")
    parser.add_argument("--only", default="", help="texts in group or name, with commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.15, help="seconds of a round")
    parser.add_argument("--json", help="file for the figures")
    parser.add_argument("--peer-python", default=sys.executable, help="the Python with PyTorch")
    parser.add_argument(
        "--breadth", action="store_true", help="many operations, dtypes and sizes instead"
    )
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, int(options.threads))
    wanted = options.only.split(",")
    cases, _ = tables(options.breadth)
    names = [n for n, (group, _) in cases.items() if any(w in group or w in n for w in wanted)]
    there = subprocess.run([options.peer_python, "-c", "import torch"], capture_output=True)
    libraries = [(sys.executable, "tinyfin"), (options.peer_python, "torch")]
    libraries = libraries[: 1 if there.returncode else 2]
    found = {"threads": {}}
    for threads in map(int, options.threads.split(",")):
        peers = [Peer(python, name, threads, options.breadth) for python, name in libraries]
        found["threads"][threads] = table(peers, names, options)
        for peer in peers:
            peer.stop()
    steps = [n for n in names if cases[n][0] == "train"]
    if steps:
        found["memory"] = memory(peers, steps)
    if ("" in wanted and not options.breadth) or "import" in wanted:
        found["import"] = {n: import_seconds(p, n, options.rounds) for p, n in libraries}
        print("\nimport: " + ", ".join(f"{n} {s:.3f} s" for n, s in found["import"].items()))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1))
    return None


if __name__ == "__main__":
    main()
