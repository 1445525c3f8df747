"""Where several threads are slower than one: every kind of kernel over a range of sizes.

    python tools/bench/threads.py [--threads 2] [--gap 0] [--only softmax,conv] [--rounds 15] [--all] [--json FILE]

One process takes turns with one and with several threads. A size loses where several threads take more than LOST of
one thread's time in the median of the rounds and more than all of it in three quarters of them: noise does not do
that. For each row the table tells how many sizes lost, the worst of them, and from which size on threads help. Calls
follow one another at once, so that workers are awake; --gap 300 leaves microseconds between them, in which workers
fall asleep. Other programs take cores away: chrt -r 1 python tools/bench/threads.py measures as if there were none.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

from timing import seconds

import tinyfin as tf

F = tf.nn.functional
LOST = 1.03
GAINED = 1 / 1.2
LEAST, MOST = 4e-6, 4e-3
"""Seconds on one thread: shorter work is never shared, longer work surely is."""


def normal(*shape):
    """Normal numbers."""
    return tf.randn(*shape)


def on(call, *inputs):
    """A function that calls `call` on the inputs."""
    return lambda: call(*inputs)


def gradient(call, *inputs):
    """A function that runs the backward pass alone."""
    floats = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    y = call(*inputs)
    g = tf.ones_like(y)
    return lambda: tf.autograd.grad(y, floats, g, retain_graph=True)


def optimizer_step(n):
    """Adam over one parameter."""
    p = tf.nn.Parameter(normal(n))
    p.grad = normal(n)
    return tf.optim.Adam([p]).step


def side(n, least=1):
    """The side of a square of n elements."""
    return max(least, round(n**0.5))


def picture(n, channels=16):
    """Pictures of about n elements in all."""
    return normal(2, channels, *[side(n // (2 * channels), 3)] * 2)


def conv(n, **how):
    """Arguments of a 3x3 convolution of pictures."""
    x = picture(n)
    return x, normal(16, 16 // how.get("groups", 1), 3, 3)


def index(n, places):
    """n places below `places`."""
    return tf.randint(0, places, (n,))


def classes(n):
    """Scores of 64 classes, and the right ones."""
    return normal(n // 64 + 1, 64), index(n // 64 + 1, 64)


ROWS = {
    "x + y": lambda n: on(tf.add, normal(n), normal(n)),
    "x + y, x of another dtype": lambda n: on(tf.add, tf.arange(n), normal(n)),
    "x + row": lambda n: on(tf.add, normal(side(n), side(n)), normal(side(n))),
    "x.add_(y)": lambda n: on(normal(n).add_, normal(n)),
    "exp": lambda n: on(tf.exp, normal(n)),
    "gelu": lambda n: on(F.gelu, normal(n)),
    "sin": lambda n: on(tf.sin, normal(n)),
    "relu": lambda n: on(tf.relu, normal(n)),
    "where": lambda n: on(tf.where, normal(n) > 0, normal(n), normal(n)),
    "x > y": lambda n: on(tf.gt, normal(n), normal(n)),
    "half": lambda n: normal(n).half,
    "transposed copy": lambda n: normal(side(n), side(n)).t().contiguous,
    "permuted copy": lambda n: picture(n).permute(0, 2, 3, 1).contiguous,
    "copy": lambda n: on(tf.empty(n).copy_, normal(n)),
    "cat": lambda n: on(tf.cat, [normal(side(n), side(n) // 2 + 1)] * 2, 1),
    "triu": lambda n: on(tf.triu, normal(side(n), side(n))),
    "sum": lambda n: normal(n).sum,
    "sum of rows": lambda n: on(tf.sum, normal(side(n), side(n)), 1),
    "sum of columns": lambda n: on(tf.sum, normal(side(n), side(n)), 0),
    "sum of short rows": lambda n: on(tf.sum, normal(n // 8 + 1, 8), 1),
    "var of rows": lambda n: on(tf.var, normal(side(n), side(n)), 1),
    "argmax of rows": lambda n: on(tf.argmax, normal(side(n), side(n)), 1),
    "amax of columns": lambda n: on(tf.amax, normal(side(n), side(n)), 0),
    "cumsum of rows": lambda n: on(tf.cumsum, normal(side(n), side(n)), 1),
    "cumsum of columns": lambda n: on(tf.cumsum, normal(side(n), side(n)), 0),
    "sort of rows": lambda n: on(tf.sort, normal(side(n), side(n)), 1),
    "topk of rows": lambda n: on(tf.topk, normal(side(n), side(n, 5)), 5),
    "softmax of rows": lambda n: on(tf.softmax, normal(side(n), side(n)), 1),
    "softmax of columns": lambda n: on(tf.softmax, normal(side(n), side(n)), 0),
    "softmax of short rows": lambda n: on(tf.softmax, normal(n // 8 + 1, 8), 1),
    "layer norm": lambda n: on(F.layer_norm, normal(n // 256 + 1, 256), (256,)),
    "layer norm, backward": lambda n: gradient(
        lambda x, w: F.layer_norm(x, (256,), w), normal(n // 256 + 1, 256), normal(256)
    ),
    "batch norm": lambda n: on(lambda x: F.batch_norm(x, None, None, training=True), picture(n)),
    "batch norm, backward": lambda n: gradient(
        lambda x: F.batch_norm(x, None, None, training=True), picture(n)
    ),
    "cross entropy": lambda n: on(F.cross_entropy, *classes(n)),
    "cross entropy, backward": lambda n: gradient(F.cross_entropy, *classes(n)),
    "embedding": lambda n: on(F.embedding, index(n // 64 + 1, 1000), normal(1000, 64)),
    "embedding, backward": lambda n: gradient(
        F.embedding, index(n // 64 + 1, 1000), normal(1000, 64)
    ),
    "gather": lambda n: on(tf.gather, normal(n), 0, index(n, n)),
    "index_add": lambda n: on(tf.index_add, normal(1000), 0, index(n, 1000), normal(n)),
    "x[mask]": lambda n: on(tf.masked_select, normal(n), normal(n) > 0),
    "searchsorted": lambda n: on(tf.searchsorted, normal(1000).sort()[0], normal(n)),
    "randn": lambda n: on(tf.randn, n),
    "dropout": lambda n: on(F.dropout, normal(n)),
    "Adam's step": optimizer_step,
    "matmul": lambda n: on(tf.matmul, normal(side(n), side(n)), normal(side(n), side(n))),
    "matmul, 4 rows": lambda n: on(tf.matmul, normal(4, side(n)), normal(side(n), side(n))),
    "matrix and vector": lambda n: on(tf.matmul, normal(side(n), side(n)), normal(side(n))),
    "vector and matrix": lambda n: on(tf.matmul, normal(side(n)), normal(side(n), side(n))),
    "products of 16 x 16": lambda n: on(
        tf.matmul, normal(n // 256 + 1, 16, 16), normal(n // 256 + 1, 16, 16)
    ),
    "products of 64 x 64": lambda n: on(
        tf.matmul, normal(n // 4096 + 1, 64, 64), normal(n // 4096 + 1, 64, 64)
    ),
    "linear": lambda n: on(F.linear, normal(side(n), 64), normal(side(n), 64), normal(side(n))),
    "conv": lambda n: on(F.conv2d, *conv(n)),
    "conv, backward": lambda n: gradient(F.conv2d, *conv(n)),
    "conv 1x1": lambda n: on(F.conv2d, picture(n), normal(16, 16, 1, 1)),
    "depthwise conv": lambda n: on(lambda x, w: F.conv2d(x, w, groups=16), *conv(n, groups=16)),
    "depthwise conv, backward": lambda n: gradient(
        lambda x, w: F.conv2d(x, w, groups=16), *conv(n, groups=16)
    ),
    "max pool": lambda n: on(F.max_pool2d, picture(n), 2),
    "max pool, backward": lambda n: gradient(lambda x: F.max_pool2d(x, 2), picture(n)),
    "average pool": lambda n: on(F.avg_pool2d, picture(n), 2),
    "attention": lambda n: on(
        F.scaled_dot_product_attention, *[normal(2, 2, n // 128 + 1, 32) for _ in range(3)]
    ),
    "attention, backward": lambda n: gradient(
        F.scaled_dot_product_attention, *[normal(2, 2, n // 128 + 1, 32) for _ in range(3)]
    ),
}
"""name -> builder: about n elements -> the function to time."""


def apart(run, budget, gap):
    """Seconds of one run, with `gap` seconds of work that is not ours before each."""
    taken, n, end = 0.0, 0, time.perf_counter() + budget + 4 * gap
    while not n or time.perf_counter() < end:
        until = time.perf_counter() + gap
        while time.perf_counter() < until:
            pass
        start = time.perf_counter()
        run()
        taken += time.perf_counter() - start
        n += 1
    return taken / n


def one_and_several(run, threads, rounds, budget, gap):
    """Seconds of each round on one thread, and on several."""
    times = []
    for _ in range(rounds):
        pair = []
        for n in (1, threads):
            tf.set_num_threads(n)
            taken = apart(run, budget, gap) if gap else seconds(run, lambda: None, budget)
            pair.append(taken)
        times.append(pair)
    return zip(*times)


def swept(build, threads, rounds, budget, gap):
    """[(size, seconds on one thread, several threads' time over one's, whether they lose)] for sizes of interest."""
    found = []
    for k in range(8, 24):
        run = build(1 << k)
        tf.set_num_threads(1)
        run()
        if seconds(run, lambda: None, budget) < LEAST:
            continue
        one, several = map(list, one_and_several(run, threads, rounds, budget, gap))
        ratios = sorted(b / a for a, b in zip(one, several))
        lost = statistics.median(ratios) > LOST and ratios[len(ratios) // 4] > 1
        found.append((1 << k, statistics.median(one), statistics.median(ratios), lost))
        if found[-1][1] > MOST:
            break
    return found


def line(name, found):
    """One row of the table."""
    lost = [f for f in found if f[3]]
    worst = max(lost, key=lambda f: f[2], default=None)
    helped = next((f for i, f in enumerate(found) if all(g[2] < GAINED for g in found[i:])), None)
    cells = [f"{len(lost)} of {len(found)}"]
    cells.append(f"{worst[2]:.2f} at {worst[0]}, {worst[1] * 1e6:.0f} us" if worst else "")
    cells.append(f"{helped[0]}, {helped[1] * 1e6:.0f} us" if helped else "nowhere")
    cells.append(f"{found[-1][2]:.2f}" if found else "")
    return f"| {name} | {' | '.join(cells)} |"


def main():
    """Sweeps all rows and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="texts in the row's name, with commas")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget", type=float, default=0.002, help="seconds of a round")
    parser.add_argument("--gap", type=float, default=0, help="microseconds between runs")
    parser.add_argument("--all", action="store_true", help="print every size too")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    wanted, before, figures = options.only.split(","), tf.get_num_threads(), {}
    print(
        f"| {options.threads} threads over one | sizes lost | worst | help from | at the largest |"
    )
    print("|---|---|---|---|---|")
    for name, build in ROWS.items():
        if not any(w in name for w in wanted):
            continue
        found = swept(build, options.threads, options.rounds, options.budget, options.gap / 1e6)
        figures[name] = found
        print(line(name, found), flush=True)
        if options.all:
            for size, one, ratio, lost in found:
                print(f"    {size:9} {one * 1e6:9.1f} us {ratio:6.2f} {'lost' if lost else ''}")
    tf.set_num_threads(before)
    lost = sum(f[3] for found in figures.values() for f in found)
    print(f"{lost} of {sum(map(len, figures.values()))} sizes lost")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
