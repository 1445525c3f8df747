"""A two-layer network learns 8x8 handwritten digits: the shortest complete training loop.

    python examples/digits_mlp.py
    python examples/digits_mlp.py --epochs 20 --seed 1 --backend cpu
    python examples/digits_mlp.py --compare-torch

The data ship with tinyfin. Weights and batch order are drawn by NumPy, so that another framework
can repeat the run step for step; `--compare-torch` does that with PyTorch. Expect 0.97 on the
held-out fifth after 50 epochs.
"""

import argparse
import sys
from math import sqrt

import numpy as np

import tinyfin
from tinyfin.cli.demo import load_digits
from tinyfin.cli.progress import Progress


def build(lib, seed):
    """The network, with weights from U(-1/sqrt(inputs), 1/sqrt(inputs))."""
    model = lib.nn.Sequential(lib.nn.Linear(64, 64), lib.nn.ReLU(), lib.nn.Linear(64, 10))
    rng = np.random.default_rng(seed)
    for layer in (model[0], model[2]):
        bound = 1 / sqrt(layer.in_features)
        for p in (layer.weight, layer.bias):
            values = rng.uniform(-bound, bound, tuple(p.shape)).astype(np.float32)
            p.data.copy_(lib.from_numpy(values))
    return model


def load():
    """Training and test images and labels as arrays; every fifth image is for testing."""
    images, labels = load_digits()
    x, y = images.cpu().numpy().reshape(-1, 64), labels.cpu().numpy()
    test = np.arange(len(y)) % 5 == 4
    return x[~test], y[~test], x[test], y[test]


def steps(lib, model, x, y, epochs, seed, batch=32):
    """Trains; yields epoch and loss after each step."""
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(1000 + seed)
    for epoch in range(epochs):
        order = rng.permutation(len(y))
        for k in range(0, len(y), batch):
            rows = order[k : k + batch]
            logits = model(lib.from_numpy(x[rows]))
            loss = lib.nn.functional.cross_entropy(logits, lib.from_numpy(y[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield epoch, loss.item()


def accuracy(lib, model, x, y):
    """The part of the images that the model takes for the right digit."""
    with lib.no_grad():
        return (model(lib.from_numpy(x)).argmax(1).cpu().numpy() == y).mean()


def train(args):
    """Trains for all epochs and prints loss and accuracy now and then."""
    x, y, x_test, y_test = load()
    model = build(tinyfin, args.seed)
    per_epoch = -(-len(y) // 32)
    losses = []
    with Progress(args.epochs * per_epoch, "training") as bar:
        for epoch, loss in steps(tinyfin, model, x, y, args.epochs, args.seed):
            losses.append(loss)
            bar.advance(f"loss {loss:.4f}")
            if len(losses) == per_epoch:
                if (epoch + 1) % 5 == 0 or epoch + 1 == args.epochs:
                    score = accuracy(tinyfin, model, x_test, y_test)
                    bar.print(
                        f"epoch {epoch + 1:3}   loss {np.mean(losses):.4f}   test accuracy "
                        f"{score:.4f}"
                    )
                losses.clear()


def compare(args, count=20):
    """Prints the first losses of tinyfin and of PyTorch from the same weights and batches."""
    import torch

    x, y, _, _ = load()
    runs = [steps(lib, build(lib, args.seed), x, y, 1, args.seed) for lib in (tinyfin, torch)]
    print("step   tinyfin     PyTorch     relative difference")
    worst = 0.0
    for step, ((_, a), (_, b)) in enumerate(zip(*runs)):
        if step == count:
            break
        worst = max(worst, abs(a - b) / abs(b))
        print(f"{step:4}   {a:.7f}   {b:.7f}   {abs(a - b) / abs(b):.1e}")
    print(f"largest difference {worst:.1e}")
    return 0 if worst < 1e-4 else 1


def main():
    """Reads the command line and runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--backend",
        default=tinyfin.backend_name(),
        help="backend to compute on (default: that of TINYFIN_BACKEND, or cpu)",
    )
    parser.add_argument(
        "--epochs", type=int, default=50, help="passes over the data (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of weights and order (default: %(default)s)"
    )
    parser.add_argument(
        "--compare-torch", action="store_true", help="compare the first 20 losses with PyTorch's"
    )
    args = parser.parse_args()
    if not tinyfin.backend_set(args.backend):  # warns why
        parser.error(f"backend {args.backend!r} is not available")
    return compare(args) if args.compare_torch else train(args)


if __name__ == "__main__":
    sys.exit(main())
