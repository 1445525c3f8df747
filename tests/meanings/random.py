"""Meanings of random rows: Philox 4x32-10 (Salmon et al., 2011) and what is made of its words."""

import numpy as np
from oracle import current_dtype, meaning

MASK = (1 << 64) - 1
BITS = {"float16": 11, "bfloat16": 8, "float32": 24}


def philox(counters, keys):
    """Ten rounds on four 32-bit words."""
    c, k = list(counters), list(keys)
    for _ in range(10):
        p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(q >> 32) ^ c[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def words(n, seed, draw, first=0):
    """The first n words of a draw: block i has counter (i, draw), low half first."""
    halves = [(v & MASK) >> s & 0xFFFFFFFF for v in (seed, draw) for s in (0, 32)]
    out = []
    for block in range(first, first + -(-n // 4)):
        out += philox((block & 0xFFFFFFFF, block >> 32, *halves[2:]), halves[:2])
    return np.array(out[:n], "uint64")


def pairs(n, seed, draw, first=0):
    """n numbers of 64 bits, each of two words, high half first."""
    w = words(2 * n, seed, draw, first)
    return w[0::2] << np.uint64(32) | w[1::2]


def made(fn):
    """A meaning that fills: needs to know the dtype, so it is told by the array's own."""

    def fill(x, *args):
        return np.asarray(fn(x, *args)).reshape(x.shape)

    return fill


@meaning("random_bits_")
@made
def random_bits_(x, seed, draw, first=0):
    if x.dtype.itemsize == 8:
        return pairs(x.size, seed, draw, first).astype(x.dtype)
    return words(x.size, seed, draw, first).astype("uint32").astype(x.dtype)


@meaning("randint_", ulps=0.5)
@made
def randint_(x, low, high, seed, draw):
    values = [low + (int(w) * (high - low) >> 64) for w in pairs(x.size, seed, draw)]
    return np.array(values, "int64").astype(x.dtype)


def limit(p):
    """How many of the 2^32 words count as an event of probability p."""
    return 0 if p <= 0 else 1 << 32 if p >= 1 else int(np.ceil(p * 2.0**32))


def hits(x, p, seed, draw):
    """Where an event of probability p happens: one word decides."""
    return (words(x.size, seed, draw) < np.uint64(limit(p))).reshape(x.shape)


@meaning("bernoulli_", ulps=0)
def bernoulli_(x, p, seed, draw):
    return hits(x, p, seed, draw).astype(x.dtype)


@meaning("dropout_apply", loose=2)
def dropout_apply(x, p, seed, draw):
    return x * 0 if p >= 1 else np.where(hits(x, p, seed, draw), 0.0, x / (1 - p))


@meaning("dropout", ulps=0)
def dropout(x, p, training=True):
    return x * 0 if p == 1 else x


def fractions(n, seed, draw):
    """Numbers of [0, 1) with the bits that the dtype holds, and one unit of them."""
    if current_dtype() == "float64":
        return (pairs(n, seed, draw) >> np.uint64(11)) * 2.0**-53, 2.0**-53
    bits = BITS[current_dtype()]
    return (words(n, seed, draw) >> np.uint64(32 - bits)) * 2.0**-bits, 2.0**-bits


@meaning("uniform_", loose=2)
@made
def uniform_(x, low, high, seed, draw):
    return low + fractions(x.size, seed, draw)[0] * (high - low)


def uniform_bits(n, seed, draw):
    """Fractions of at least 24 bits, for numbers that are rounded to a half type at the end."""
    if current_dtype() == "float64":
        return fractions(n, seed, draw)
    return (words(n, seed, draw) >> np.uint64(8)) * 2.0**-24, 2.0**-24


@meaning("normal_", loose=8)
@made
def normal_(x, mean, std, seed, draw):
    u, unit = uniform_bits(x.size + x.size % 2, seed, draw)
    r = np.sqrt(-2 * np.log(u[0::2] + unit))
    angle = 2 * np.pi * u[1::2]
    y = np.stack([r * np.cos(angle), r * np.sin(angle)], 1).reshape(-1)
    return (y * std + mean)[: x.size]


@meaning("exponential_", loose=4)
@made
def exponential_(x, lambd, seed, draw):
    if current_dtype() == "float64":
        u = (2.0 * (pairs(x.size, seed, draw) >> np.uint64(12)) + 1) * 2.0**-53
    else:
        u = (2.0 * (words(x.size, seed, draw) >> np.uint64(9)) + 1) * 2.0**-24
    return -np.log(u) / lambd
