"""Prints a hash of the bits of every subject's results, values and gradients, small and large: run by test_bits."""

import hashlib
import json
import zlib

import numpy as np
import samples
from samples import Sample

import tinyfin as tf
from tinyfin.ops import table

BIG = 70_001
"""Elements from which kernels split their work among threads, and no multiple of any vector."""


def normal(rng, *shape):
    """Random numbers."""
    return rng.standard_normal(shape)


def large(rng):
    """(subject, sample) of sizes that threads share."""
    for name, row in table.TABLE.items():
        if row.expr is not None and "f" in row.dtypes and name != "where":
            low, high = row.domain or (0.1, 3.0)
            yield name, Sample(*[rng.uniform(low, high, BIG) for _ in row.arg_names])
    x = normal(rng, 300, 701)
    for name in "sum", "mean", "var", "amax", "argmax", "logsumexp", "prod", "any", "norm":
        yield name, Sample(x, dim=0)
        yield name, Sample(x, dim=1)
        yield name, Sample(x)
    for name in "cumsum", "cumprod", "softmax", "log_softmax", "sort", "cummax":
        yield name, Sample(x / 3, 0)
        yield name, Sample(x / 3, 1)
    yield "topk", Sample(x, 5)
    yield "layer_norm", Sample(x, (701,), normal(rng, 701), normal(rng, 701))
    yield "rms_norm", Sample(x, (701,), normal(rng, 701))
    yield (
        "batch_norm",
        Sample(
            normal(rng, 16, 33, 15, 15), None, None, normal(rng, 33), normal(rng, 33), training=True
        ),
    )
    yield "group_norm", Sample(normal(rng, 8, 32, 15, 15), 4, normal(rng, 32))
    yield from products(rng)
    yield from picks(rng)


def products(rng):
    """Matrix products, convolutions, attention, losses."""
    yield "matmul", Sample(normal(rng, 131, 257), normal(rng, 257, 150))
    yield "matmul", Sample(normal(rng, 40, 33, 65), normal(rng, 40, 65, 37))
    yield "matmul", Sample(normal(rng, 700, 901), normal(rng, 901))
    yield "linear", Sample(normal(rng, 64, 300), normal(rng, 200, 300), normal(rng, 200))
    yield (
        "conv2d",
        Sample(normal(rng, 4, 16, 30, 30), normal(rng, 24, 16, 3, 3), normal(rng, 24), padding=1),
    )
    yield (
        "conv2d",
        Sample(normal(rng, 4, 24, 30, 30), normal(rng, 24, 1, 3, 3), groups=24, stride=2),
    )
    yield "conv1d", Sample(normal(rng, 8, 12, 400), normal(rng, 20, 12, 5))
    yield "max_pool2d", Sample(normal(rng, 8, 16, 40, 40), kernel_size=3, stride=2)
    yield "avg_pool2d", Sample(normal(rng, 8, 16, 40, 40), kernel_size=2, stride=2)
    yield (
        "scaled_dot_product_attention",
        Sample(*[normal(rng, 2, 4, 150, 32) for _ in range(3)], is_causal=True),
    )
    yield "cross_entropy", Sample(normal(rng, 500, 120), rng.integers(0, 120, 500))
    yield "mse_loss", Sample(normal(rng, BIG), normal(rng, BIG))


def picks(rng):
    """Indices, copies, random numbers, optimizer steps."""
    index = rng.integers(0, 500, 20_000)
    yield "index_select", Sample(normal(rng, 500, 17), 0, index)
    yield "index_add", Sample(normal(rng, 500, 17), 0, index, normal(rng, 20_000, 17))
    yield "embedding", Sample(index.reshape(100, 200), normal(rng, 500, 17))
    yield "gather", Sample(normal(rng, 700, 300), 0, rng.integers(0, 700, (500, 300)))
    yield (
        "scatter_add",
        Sample(normal(rng, 500, 40), 0, rng.integers(0, 500, (2000, 40)), normal(rng, 2000, 40)),
    )
    yield "cat", Sample([normal(rng, 200, 300), normal(rng, 50, 300)])
    yield "contiguous_copy", Sample(normal(rng, 400, 300))
    for name, *numbers in (
        ("uniform_", 0.0, 1.0),
        ("normal_", 0.0, 1.0),
        ("exponential_", 1.0),
        ("bernoulli_", 0.3),
    ):
        yield name, Sample(np.zeros(BIG), *numbers, 5, 6)
    yield "dropout_apply", Sample(normal(rng, BIG), 0.3, 5, 6)
    state = [normal(rng, BIG), normal(rng, BIG), normal(rng, BIG), rng.uniform(0.1, 1, BIG)]
    yield "adam_step_", Sample(*state, None, lr=0.1, step=2)
    yield "sgd_step_", Sample(*state[:3], lr=0.1, momentum=0.9)


def calls():
    """(subject, sample, dtype) of everything that is hashed."""
    for name in samples.subjects():
        for k, sample in enumerate(samples.samples_of(name)):
            if sample.only != "":
                yield name, sample, samples.main_dtype(name)
                if k == 0 and "float64" in samples.dtypes_of(name):
                    yield name, sample, "float64"
    for name, sample in large(np.random.default_rng(7)):
        yield name, sample, "float32"


def results(name, fn, sample, dtype):
    """Bits of the results, of what was written, and of the gradients."""
    row, leaves = table.TABLE.get(name), []
    graded = (
        sample.grad
        and dtype == "float32"
        and not (row is not None and (row.mutates or row.nondiff))
    )

    def make(a):
        need = graded and a.dtype == np.float64 and len(leaves) not in sample.fixed
        leaves.append(samples.tensor(a, dtype, requires_grad=need))
        return leaves[-1]

    args, kwargs = samples.mapped(sample, make)
    found = samples.flat(fn(*args, **kwargs))
    out = [samples.bits(t) for t in found]
    if row is not None and row.mutates:
        out += [samples.bits(t) for t in leaves]
    ends = [t for t in found if t.requires_grad]
    if ends:
        weights = [tf.ones_like(t) for t in ends]
        grads = tf.autograd.grad(
            ends, [t for t in leaves if t.requires_grad], weights, allow_unused=True
        )
        out += [samples.bits(g) for g in grads if g is not None]
    return out


def main():
    """One line of JSON: subject -> checksum, and the errors that calls raised."""
    found, subjects = {}, samples.subjects()
    for name, sample, dtype in calls():
        digest = found.get(name, 0)
        try:
            out = results(name, subjects[name], sample, dtype)
        except (
            LookupError,
            NotImplementedError,
        ) as error:  # a derivative that is not built, a name
            out = [(type(error).__name__, str(error), b"")]
        for kind, shape, data in out:
            digest = zlib.crc32(hashlib.sha256(f"{kind}{shape}".encode() + data).digest(), digest)
        found[name] = digest
    print(json.dumps({"isa": tf.isa_name(), "threads": tf.get_num_threads(), "hashes": found}))


if __name__ == "__main__":
    main()
