"""`tinyfin demo`: a convolutional network learns handwritten digits, from data to checkpoint."""

from __future__ import annotations

import json
import os
import sys
import time

import tinyfin
from tinyfin.cli.picture import render
from tinyfin.cli.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any, TextIO

    from tinyfin import Tensor

EPOCHS = 10
BATCH = 32
LEARNING_RATE = 8e-3
_SHOWN = 7
_CHECKPOINT = "tinyfin-demo.safetensors"
_PICTURE = "tinyfin-demo.png"


def add_parser(commands: Any) -> None:
    """Adds the subcommand to the command line."""
    parser = commands.add_parser(
        "demo",
        help="train a small network on handwritten digits",
        description="Trains a convolutional network on 1,797 real handwritten digits, every "
        "fifth of which is held out to measure accuracy; writes a checkpoint, and a picture of "
        "the learning curve where matplotlib is installed.",
    )
    parser.add_argument(
        "--backend", metavar="NAME", help="backend to compute on (default: the current one)"
    )
    parser.add_argument(
        "--epochs",
        type=_positive,
        default=EPOCHS,
        metavar="N",
        help="passes over the data (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=_seed,
        default=0,
        metavar="N",
        help="seed of weights, order and dropout (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        default=".",
        metavar="DIR",
        help="folder for the files written (default: the current one)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object; all else goes to standard error"
    )
    parser.set_defaults(run=run)


def _positive(text: str) -> int:
    import argparse

    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive whole number")
    return int(text)


def _seed(text: str) -> int:
    import argparse

    if not text.isdecimal() or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 2**63 - 1")
    return int(text)


def run(args: Namespace) -> int:
    """Trains, reports and writes; returns the exit code."""
    if not choose_backend(args.backend or tinyfin.backend_name()):
        return 2
    if not _can_write(args.out):
        return 1
    out = sys.stderr if args.json or sys.stdout is None else sys.stdout
    began = time.perf_counter()
    training = Training(args.seed, args.epochs)
    training.run(out)
    accuracy, predicted = training.evaluate()
    seconds = time.perf_counter() - began
    _show(training, predicted, out)
    path = os.path.join(args.out, _CHECKPOINT)
    training.save(path)
    print(
        f"accuracy {accuracy:.4f} on {len(training.held_out[1])} held-out digits after "
        f"{seconds:.1f} s",
        file=out,
    )
    print(f"checkpoint: {path}", file=out)
    print(_draw_curve(training.history, os.path.join(args.out, _PICTURE)), file=out, flush=True)
    if args.json:
        print(json.dumps(_summary(training, accuracy, seconds)), flush=True)
    return 0


def _can_write(folder: str) -> bool:
    """Makes the folder and tries it, before minutes of training; says on standard error what is wrong."""
    import tempfile

    try:
        os.makedirs(folder or ".", exist_ok=True)
        with tempfile.TemporaryFile(dir=folder or "."):
            return True
    except OSError as e:
        reason = e.strerror or e
        print(
            f"tinyfin demo: cannot write to {folder or '.'!r}: {reason}; use --out DIR",
            file=sys.stderr,
        )
        return False


def choose_backend(name: str) -> bool:
    """Makes a backend the default one, or says on standard error which there are."""
    from tinyfin.backends.base import unavailable

    why = "backend null computes nothing" if name == "null" else unavailable(name)
    if why is None:
        return tinyfin.backend_set(name)
    usable = [n for n, missing in tinyfin.backend_list().items() if missing is None and n != "null"]
    print(f"tinyfin demo: {why}\nThese are available: {', '.join(usable)}", file=sys.stderr)
    return False


def load_digits() -> tuple[Tensor, Tensor]:
    """The images, (1797, 1, 8, 8) in 0 to 1, and the digits they show.

    >>> images, labels = load_digits()
    >>> tuple(images.shape), labels[:4].tolist()
    ((1797, 1, 8, 8), [0, 1, 2, 3])
    """
    from importlib.resources import as_file, files

    with as_file(files("tinyfin.cli") / "digits.npz") as path:
        data = tinyfin.load(path)
    return data["images"].float().unsqueeze(1) / 16, data["labels"].long()


def build_model() -> Any:
    """Two convolutions, pooling, two linear layers: 38,282 parameters.

    >>> sum(p.numel() for p in build_model().parameters())
    38282
    """
    from tinyfin import nn

    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


class Training:
    """One run: data, model, optimizer, and what was measured after each epoch."""

    def __init__(self, seed: int, epochs: int) -> None:
        from tinyfin.data import DataLoader, TensorDataset
        from tinyfin.optim import AdamW
        from tinyfin.optim.lr_scheduler import OneCycleLR

        tinyfin.manual_seed(seed)
        images, labels = load_digits()
        held = [i for i in range(len(labels)) if i % 5 == 4]
        kept = [i for i in range(len(labels)) if i % 5 != 4]
        self.held_out = images[held], labels[held]
        self.model = build_model()
        self.generator = tinyfin.Generator().manual_seed(seed)
        train = TensorDataset(images[kept], labels[kept])
        self.loader = DataLoader(train, BATCH, shuffle=True, generator=self.generator)
        self.optimizer = AdamW(self.model.parameters(), lr=LEARNING_RATE)
        self.scheduler = OneCycleLR(
            self.optimizer, LEARNING_RATE, total_steps=epochs * len(self.loader)
        )
        self.epochs = epochs
        self.history: list[dict[str, float]] = []

    def run(self, out: TextIO) -> None:
        """Trains for all epochs, with a line for each."""
        with Progress(self.epochs * len(self.loader), "training") as bar:
            for epoch in range(1, self.epochs + 1):
                loss = self._epoch(bar, epoch)
                accuracy, _ = self.evaluate()
                self.history.append({"loss": loss, "accuracy": accuracy})
                bar.print(
                    f"epoch {epoch:3}/{self.epochs}   loss {loss:.4f}   held-out accuracy "
                    f"{accuracy:.4f}",
                    out,
                )

    def _epoch(self, bar: Progress, epoch: int) -> float:
        """One pass over the data; the mean loss."""
        from tinyfin.nn.functional import cross_entropy

        self.model.train()
        total, count = 0.0, 0
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            total += loss.item() * len(y)
            count += len(y)
            bar.advance(f"epoch {epoch}/{self.epochs}  loss {total / count:.4f}")
        return total / count

    def evaluate(self) -> tuple[float, list[int]]:
        """Accuracy on the held-out digits, and what each was taken for."""
        images, labels = self.held_out
        self.model.eval()
        with tinyfin.no_grad():
            predicted = self.model(images).argmax(1).tolist()
        right = sum(p == y for p, y in zip(predicted, labels.tolist(), strict=True))
        return right / len(predicted), predicted

    def save(self, path: str) -> None:
        """Writes all that a later run needs to go on from here."""
        from tinyfin.io import save_checkpoint

        save_checkpoint(
            path,
            model=self.model,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            generator={"global": True, "order": self.generator},
            loader=self.loader,
            user={"epochs": self.epochs, "history": self.history},
        )


def weights_sha256(model: Any) -> str:
    """SHA-256 over the bytes of the parameters, in the order of their names.

    >>> len(weights_sha256(build_model()))
    64
    """
    from hashlib import sha256

    from tinyfin.io.raw import tensor_bytes

    digest = sha256()
    for _, p in sorted(model.named_parameters()):
        digest.update(tensor_bytes(p))
    return digest.hexdigest()


def _summary(training: Training, accuracy: float, seconds: float) -> dict[str, Any]:
    from tinyfin.cli.info import instruction_set

    return {
        "accuracy": accuracy,
        "loss": training.history[-1]["loss"],
        "epochs": training.epochs,
        "seconds": round(seconds, 3),
        "backend": tinyfin.backend_name(),
        "threads": tinyfin.get_num_threads(),
        "isa": instruction_set(),
        "weights_sha256": weights_sha256(training.model),
    }


def _show(training: Training, predicted: list[int], out: TextIO) -> None:
    """A few held-out digits and what they were taken for: up to three mistakes, then one of each
    digit.
    """
    images, labels = training.held_out
    truth = labels.tolist()
    wrong = [i for i, (p, y) in enumerate(zip(predicted, truth, strict=True)) if p != y]
    first = [truth.index(digit) for digit in range(10)]
    shown = [*wrong[:3], *(i for i in first if i not in wrong)][:_SHOWN]
    pixels = (images[shown, 0] * 16).long().tolist()
    captions = [
        f"{predicted[i]}" if predicted[i] == truth[i] else f"{predicted[i]} not {truth[i]}"
        for i in shown
    ]
    print(f"\n{render(pixels, captions, out)}\n", file=out)


def _draw_curve(history: list[dict[str, float]], path: str) -> str:
    """Draws loss and accuracy over the epochs; returns a sentence on what became of it."""
    try:
        _save_curve(history, path)
    except ImportError:
        return "learning curve: not drawn, as matplotlib is not installed (pip install matplotlib)"
    except Exception as e:  # a broken installation must not cost the result
        return f"learning curve: not drawn ({type(e).__name__}: {e})"
    return f"learning curve: {path}"


def _save_curve(history: list[dict[str, float]], path: str) -> None:
    from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]

    epochs = range(1, len(history) + 1)
    figure = Figure(figsize=(6, 4), layout="constrained")
    left = figure.add_subplot()
    right = left.twinx()
    left.plot(epochs, [h["loss"] for h in history], "o-", color="tab:blue")
    right.plot(epochs, [h["accuracy"] for h in history], "s-", color="tab:orange")
    left.set(
        xlabel="epoch", ylabel="training loss (blue)", title="tinyfin demo: handwritten digits"
    )
    right.set(ylabel="held-out accuracy (orange)", ylim=(None, 1.005))
    figure.savefig(path, dpi=120)
