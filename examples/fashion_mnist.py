"""A convolutional network learns Fashion-MNIST: 60,000 pictures of clothes, 10,000 to test on.

    apt-get install dataset-fashion-mnist
    python examples/fashion_mnist.py
    python examples/fashion_mnist.py --data DIR --epochs 2 --seed 1
    python examples/fashion_mnist.py --compare-torch

Weights and batch order are drawn by NumPy, so that another framework can repeat the run step for
step; `--compare-torch` does that with PyTorch and prints the first losses of both. Expect 0.90 on
the test pictures after 5 epochs.
"""

import argparse
import gzip
import os
import sys
import time
from hashlib import sha256
from math import sqrt

import numpy as np

import tinyfin
from tinyfin.cli.progress import Progress

DEBIAN = "/usr/share/datasets/fashion-mnist"
# SHA-256 of the decompressed content: compressing anew changes the files, not this.
FILES = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
BATCH = 128


def read(folder, name):
    """The content of one file, compressed or not, as bytes behind its header."""
    path = os.path.join(folder, name)
    if os.path.exists(path + ".gz"):
        with gzip.open(path + ".gz") as f:
            content = f.read()
    elif os.path.exists(path):
        with open(path, "rb") as f:
            content = f.read()
    else:
        sys.exit(
            f"{path}.gz is missing. On Debian: apt-get install dataset-fashion-mnist; elsewhere "
            "download the four files of Fashion-MNIST and name their folder with --data"
        )
    if sha256(content).hexdigest() != FILES[name]:
        sys.exit(
            f"{path} is not the file of Fashion-MNIST: its content has another SHA-256. Fetch it "
            "again"
        )
    return np.frombuffer(content, np.uint8)


def load(folder, part):
    """Pictures as normalised float32 (n, 1, 28, 28), labels as int64."""
    x = read(folder, f"{part}-images-idx3-ubyte")[16:].reshape(-1, 1, 28, 28)
    y = read(folder, f"{part}-labels-idx1-ubyte")[8:].astype(np.int64)
    return (x.astype(np.float32) / 255 - np.float32(0.2860)) / np.float32(0.3530), y


def build(lib, seed):
    """Two convolutions and two linear layers, with weights from U(-1/sqrt(inputs),
    1/sqrt(inputs)).
    """
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )
    rng = np.random.default_rng(seed)
    for layer in (model[0], model[3], model[7], model[9]):
        bound = 1 / sqrt(np.prod(layer.weight.shape[1:]))
        for p in (layer.weight, layer.bias):
            values = rng.uniform(-bound, bound, tuple(p.shape)).astype(np.float32)
            p.data.copy_(lib.from_numpy(values))
    return model


def steps(lib, model, x, y, epochs, seed):
    """Trains; yields epoch and loss after each step."""
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(1000 + seed)
    for epoch in range(epochs):
        order = rng.permutation(len(y))
        for k in range(0, len(y), BATCH):
            rows = order[k : k + BATCH]
            logits = model(lib.from_numpy(x[rows]))
            loss = lib.nn.functional.cross_entropy(logits, lib.from_numpy(y[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield epoch, loss.item()


def evaluate(lib, model, x, y):
    """Mean loss and accuracy on test pictures."""
    loss, right = 0.0, 0
    with lib.no_grad():
        for k in range(0, len(y), 1000):
            logits, labels = model(lib.from_numpy(x[k : k + 1000])), lib.from_numpy(y[k : k + 1000])
            loss += lib.nn.functional.cross_entropy(logits, labels, reduction="sum").item()
            right += int((logits.argmax(1) == labels).sum().item())
    return loss / len(y), right / len(y)


def train(args):
    """Trains for all epochs and prints losses and accuracy after each."""
    x, y = load(args.data, "train")
    x_test, y_test = load(args.data, "t10k")
    model = build(tinyfin, args.seed)
    per_epoch = -(-len(y) // BATCH)
    losses, began = [], time.perf_counter()
    with Progress(args.epochs * per_epoch, "training") as bar:
        for epoch, loss in steps(tinyfin, model, x, y, args.epochs, args.seed):
            losses.append(loss)
            bar.advance(f"epoch {epoch + 1}  loss {loss:.4f}")
            if len(losses) == per_epoch:
                seconds = time.perf_counter() - began
                test_loss, accuracy = evaluate(tinyfin, model, x_test, y_test)
                bar.print(
                    f"epoch {epoch + 1:2}   loss {np.mean(losses):.4f}   test loss "
                    f"{test_loss:.4f}   test accuracy {accuracy:.4f}   {seconds:.1f} s"
                )
                losses.clear()
                began = time.perf_counter()


def compare(args, count=20):
    """Prints the first losses of tinyfin and of PyTorch from the same weights and batches."""
    import torch

    x, y = load(args.data, "train")
    runs = [steps(lib, build(lib, args.seed), x, y, 1, args.seed) for lib in (tinyfin, torch)]
    print("step   tinyfin     PyTorch     relative difference")
    worst = 0.0
    for step, ((_, a), (_, b)) in enumerate(zip(*runs)):
        if step == count:
            break
        worst = max(worst, abs(a - b) / abs(b))
        print(f"{step:4}   {a:.7f}   {b:.7f}   {abs(a - b) / abs(b):.1e}", flush=True)
    print(f"largest difference {worst:.1e}")
    return 0 if worst < 1e-4 else 1


def main():
    """Reads the command line and runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        default=DEBIAN,
        metavar="DIR",
        help="folder of the four files (default: %(default)s)",
    )
    parser.add_argument(
        "--backend",
        default=tinyfin.backend_name(),
        help="backend to compute on (default: that of TINYFIN_BACKEND, or cpu)",
    )
    parser.add_argument(
        "--epochs", type=int, default=5, help="passes over the data (default: %(default)s)"
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
