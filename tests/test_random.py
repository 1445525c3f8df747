"""Random numbers: known answers through the public calls, streams, moments, errors."""

import threading

import numpy as np
import pytest

import tinyfin as tf

N = 200_000


def philox(seed, draw, n):
    """The first n words of a draw by Philox 4x32-10 (Salmon et al., 2011), in NumPy."""
    blocks = np.arange(-(-n // 4), dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    c = [
        blocks & low,
        blocks >> np.uint64(32),
        np.full_like(blocks, draw & 0xFFFFFFFF),
        np.full_like(blocks, draw >> 32),
    ]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (q >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            q & low,
            (p >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            p & low,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1).reshape(-1)[:n].astype(np.uint64)


def test_the_oracle_gives_the_published_words():
    assert [hex(w) for w in philox(0, 0, 4)] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]


@pytest.mark.parametrize("seed", [0, 1, 0xA409382229_9F31D0, (1 << 64) - 1])
def test_known_answers_through_the_public_calls(seed):
    g = tf.Generator().manual_seed(seed)
    got = tf.rand(1003, generator=g)
    want = (philox(seed, 0, 1003) >> np.uint64(8)).astype("float32") * np.float32(2.0**-24)
    np.testing.assert_array_equal(got.numpy(), want)
    got = tf.rand(7, 9, generator=g, dtype=tf.float64)
    w = philox(seed, 1, 126).reshape(-1, 2)
    want = (((w[:, 0] << np.uint64(32)) | w[:, 1]) >> np.uint64(11)).astype("float64") * 2.0**-53
    np.testing.assert_array_equal(got.numpy().ravel(), want)
    got = tf.randint(-5, 1000, (50,), generator=g)
    w = philox(seed, 2, 100).reshape(-1, 2)
    want = [-5 + ((int(hi) << 32 | int(lo)) * 1005 >> 64) for hi, lo in w]
    assert got.tolist() == want
    got = tf.empty(100).bernoulli_(0.3, generator=g)
    assert (
        got.tolist()
        == (philox(seed, 3, 100) < np.uint64(np.ceil(0.3 * 2**32))).astype(float).tolist()
    )
    got = tf.randn(200, generator=g, dtype=tf.float64)
    w = philox(seed, 4, 400).reshape(-1, 4)
    u = ((((w[:, 0] << np.uint64(32)) | w[:, 1]) >> np.uint64(11)).astype("float64") + 1) * 2.0**-53
    v = (((w[:, 2] << np.uint64(32)) | w[:, 3]) >> np.uint64(11)).astype("float64") * 2.0**-53
    r = np.sqrt(-2 * np.log(u))
    want = np.stack([r * np.cos(2 * np.pi * v), r * np.sin(2 * np.pi * v)], 1).ravel()
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-11, atol=1e-12)


FILLS = {
    "rand": lambda **k: tf.rand(5, 7, **k), "randn": lambda **k: tf.randn(5, 7, **k),
    "randint": lambda **k: tf.randint(9, (35,), **k), "randperm": lambda **k: tf.randperm(35, **k),
    "rand_like": lambda **k: tf.rand_like(tf.ones(35), **k), "randn_like": lambda **k: tf.randn_like(tf.ones(35), **k),
    "normal": lambda **k: tf.normal(1.0, 2.0, (35,), **k), "bernoulli": lambda **k: tf.bernoulli(tf.full((35,), 0.5), **k),
    "multinomial": lambda **k: tf.multinomial(tf.ones(99), 35, **k), "uniform_": lambda **k: tf.empty(35).uniform_(**k),
    "normal_": lambda **k: tf.empty(35).normal_(**k), "exponential_": lambda **k: tf.empty(35).exponential_(**k),
    "bernoulli_": lambda **k: tf.empty(35).bernoulli_(**k), "random_": lambda **k: tf.empty(35).random_(**k),
    "replaced": lambda **k: tf.multinomial(tf.ones(99), 35, True, **k),
}  # fmt: skip


@pytest.mark.parametrize("name", FILLS)
def test_streams_repeat(name):
    f = FILLS[name]
    tf.manual_seed(7)
    a, b = f(), f()
    assert a.tolist() != b.tolist()
    tf.manual_seed(7)
    assert f().tolist() == a.tolist() and f().tolist() == b.tolist()
    g, h = tf.Generator().manual_seed(7), tf.Generator().manual_seed(8)
    default = tf.default_generator.state_dict()
    assert f(generator=g).tolist() == a.tolist() and f(generator=h).tolist() != a.tolist()
    assert tf.default_generator.state_dict() == default
    with pytest.raises(TypeError, match="generator is 3, expected a tinyfin.Generator"):
        f(generator=3)


def test_numbers_depend_on_the_element_alone():
    for d in (tf.float32, tf.float64):
        tf.manual_seed(1)
        whole = tf.rand(1000, dtype=d)
        tf.manual_seed(1)
        part = tf.rand(10, 5, dtype=d)
        assert part.flatten().tolist() == whole[:50].tolist()
        tf.manual_seed(1)
        strided = tf.zeros(5, 20, dtype=d).T[::2]
        strided.uniform_()
        assert strided.flatten().tolist() == whole[:50].tolist()
    before = tf.get_num_threads()
    tf.manual_seed(2)
    a = tf.randn(N)
    tf.set_num_threads(1)
    tf.manual_seed(2)
    b = tf.randn(N)
    tf.set_num_threads(before)
    assert tf.equal(a, b)


def test_state_of_the_default_generator():
    tf.manual_seed(11)
    tf.rand(3)
    state = tf.get_rng_state()
    a = tf.rand(3)
    tf.set_rng_state(state)
    assert tf.rand(3).tolist() == a.tolist() and tf.initial_seed() == 11
    assert isinstance(tf.seed(), int) and tf.initial_seed() != 11
    assert tf.manual_seed(3) is tf.default_generator


MOMENTS = [
    (lambda d: tf.rand(N, dtype=d), 0.5, 1 / 12), (lambda d: tf.randn(N, dtype=d), 0, 1),
    (lambda d: tf.empty(N, dtype=d).uniform_(-2, 4), 1, 3), (lambda d: tf.empty(N, dtype=d).normal_(3, 0.5), 3, 0.25),
    (lambda d: tf.empty(N, dtype=d).exponential_(2), 0.5, 0.25), (lambda d: tf.empty(N, dtype=d).bernoulli_(0.2), 0.2, 0.16),
    (lambda d: tf.randint(-3, 4, (N,), dtype=d), 0, 4), (lambda d: tf.bernoulli(tf.full((N,), 0.7, dtype=d)), 0.7, 0.21),
    (lambda d: tf.normal(tf.full((N,), 2.0, dtype=d), 3.0), 2, 9),
    (lambda d: tf.normal(1.0, tf.full((N,), 2.0, dtype=d)), 1, 4), (lambda d: tf.empty(N, dtype=d).random_(10), 4.5, 8.25),
]  # fmt: skip


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("k", range(len(MOMENTS)))
def test_moments(k, name):
    make, mean, var = MOMENTS[k]
    t = make(getattr(tf, name))
    assert t.dtype.name == name
    a = t.double().numpy()
    rough = 0.01 if name == "bfloat16" else 0.003
    assert np.isfinite(a).all()
    assert abs(a.mean() - mean) < 5 * np.sqrt(var / N) + rough * (1 + abs(mean)) * (
        name != "float32"
    )
    assert abs(a.var() - var) < 0.02 * (1 + var)
    assert abs(np.corrcoef(a[:-1], a[1:])[0, 1]) < 0.015


def test_ranges():
    for d in ("float32", "float64", "float16", "bfloat16"):
        t = tf.rand(N, dtype=getattr(tf, d)).double()
        assert 0 <= t.min().item() and t.max().item() < 1
        assert tf.empty(N, dtype=getattr(tf, d)).exponential_().min().item() > 0
    t = tf.randint(3, (N,))
    assert sorted(set(t.tolist())) == [0, 1, 2]
    for d, high in (
        ("uint8", 256),
        ("int8", 128),
        ("bool", 2),
        ("int16", 1 << 15),
        ("bfloat16", 256),
        ("float16", 2048),
    ):
        t = tf.empty(N, dtype=getattr(tf, d)).random_().long()
        assert t.min().item() >= 0 and t.max().item() < high and t.max().item() > 0.98 * (high - 1)
    big = tf.randint(-(1 << 63), (1 << 63) - 1, (1000,))
    assert (big < 0).sum().item() in range(400, 600)
    assert tf.randint(5, 6, (3,)).tolist() == [5] * 3 and tf.randint(-4, -3, (1,)).item() == -4


def test_normal_numbers_are_normal():
    a = np.sort(tf.randn(N, dtype=tf.float64).numpy())
    from math import erf, sqrt

    cdf = np.array([0.5 * (1 + erf(x / sqrt(2))) for x in a[::100]])
    assert np.abs(cdf - (np.arange(0, N, 100) + 0.5) / N).max() < 0.005


def test_randperm():
    for n in (0, 1, 2, 100, 5000):
        p = tf.randperm(n)
        assert p.dtype is tf.int64 and sorted(p.tolist()) == list(range(n))
    assert tf.randperm(200, dtype=tf.uint8).dtype is tf.uint8 and tf.randperm(
        np.int64(3)
    ).shape == (3,)
    first = [tf.randperm(3)[0].item() for _ in range(3000)]
    assert all(900 < first.count(i) < 1100 for i in range(3))


def test_multinomial():
    w = tf.tensor([1.0, 0.0, 3.0, 6.0])
    many = tf.multinomial(w, 20000, replacement=True)
    share = [(many == i).sum().item() / 20000 for i in range(4)]
    assert share[1] == 0 and abs(share[0] - 0.1) < 0.01 and abs(share[3] - 0.6) < 0.015
    first = tf.multinomial(w.expand(20000, 4), 3)
    assert first.shape == (20000, 3) and not (first == 1).any()
    assert all(len(set(row)) == 3 for row in first[:100].tolist())
    assert abs((first[:, 0] == 3).double().mean().item() - 0.6) < 0.015
    assert sorted(w.multinomial(4).tolist()) == [0, 1, 2, 3]
    assert tf.multinomial(tf.tensor([0.0, 0.0, 5.0, 0.0]), 1000, True).float().var().item() == 0
    assert tf.multinomial(tf.ones(3, dtype=tf.float16), 3).shape == (3,)
    assert tf.multinomial(tf.ones(2, 3), 2).shape == (2, 2)


def test_bernoulli_of_tensors():
    p = tf.tensor([0.0, 1.0, 0.5])
    t = tf.bernoulli(p.expand(1000, 3))
    assert (
        t[:, 0].sum().item() == 0
        and t[:, 1].sum().item() == 1000
        and 400 < t[:, 2].sum().item() < 600
    )
    x = tf.empty(1000, dtype=tf.int32).bernoulli_(tf.tensor(0.5))
    assert 400 < x.sum().item() < 600
    assert tf.bernoulli(tf.ones(5), 0.0).sum().item() == 0


def test_dropout():
    x = tf.ones(N, requires_grad=True)
    y = tf.dropout(x, 0.25, True)
    assert abs((y == 0).double().mean().item() - 0.25) < 0.01 and set(y.tolist()) == {
        0.0,
        np.float32(4 / 3),
    }
    y.sum().backward()
    assert tf.equal(x.grad, y)
    assert (
        tf.dropout(x, 0.5, False) is x
        and tf.dropout(x, 0.0) is x
        and tf.dropout(x, 1.0).sum().item() == 0
    )
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="dropout: p is"):
            tf.dropout(x, p)


def test_fills_are_writes():
    x = tf.zeros(4)
    version = x._version
    assert x[1:3].uniform_(5, 6) is not x and x._version == version + 1
    assert x[0].item() == x[3].item() == 0 and 5 <= x[1].item() < 6
    w = tf.ones(2, requires_grad=True)
    y = w * 2
    y.normal_()
    y.sum().backward()
    assert w.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: tf.empty(2).uniform_(1, 0), RuntimeError, "uniform_: from is 1 and to is 0"),
        (lambda: tf.empty(2).uniform_(0, float("inf")), RuntimeError, "uniform_"),
        (lambda: tf.empty(2).uniform_(float("nan"), 1), RuntimeError, "uniform_"),
        (lambda: tf.empty(2).uniform_("a", 1), TypeError, ""),
        (lambda: tf.empty(2).uniform_(0, 1, foo=2), TypeError, "foo"),
        (
            lambda: tf.empty(2, dtype=tf.int32).uniform_(),
            RuntimeError,
            "uniform_: expected a floating-point",
        ),
        (
            lambda: tf.empty(2, dtype=tf.int32).normal_(),
            RuntimeError,
            "normal_: expected a floating-point",
        ),
        (lambda: tf.empty(2).normal_(0, -1), RuntimeError, "normal_: std is -1"),
        (lambda: tf.empty(2).normal_(0, float("nan")), RuntimeError, "normal_: std is nan"),
        (lambda: tf.empty(2).bernoulli_(1.5), RuntimeError, "bernoulli_: p is 1.5"),
        (lambda: tf.empty(2).bernoulli_(float("nan")), RuntimeError, "bernoulli_: p is nan"),
        (lambda: tf.empty(2).exponential_(0), RuntimeError, "exponential_: lambd is 0"),
        (lambda: tf.empty(2, dtype=tf.bool).exponential_(), RuntimeError, "exponential_"),
        (lambda: tf.empty(2).random_(3, 3), RuntimeError, "random_: low is 3 and high is 3"),
        (
            lambda: tf.empty(2, dtype=tf.int8).random_(0, 300),
            RuntimeError,
            "random_: .*beyond tinyfin.int8",
        ),
        (lambda: tf.randint(5, 5, (2,)), RuntimeError, "randint: low is 5 and high is 5"),
        (
            lambda: tf.randint(0, 300, (2,), dtype=tf.uint8),
            RuntimeError,
            "randint: .*beyond tinyfin.uint8",
        ),
        (lambda: tf.randint(-1, 3, (2,), dtype=tf.uint8), RuntimeError, "beyond"),
        (lambda: tf.randint(0, 1 << 64, (2,)), RuntimeError, "beyond"),
        (lambda: tf.randint(1.5, 3, (2,)), TypeError, "1.5"),
        (lambda: tf.randint(5), TypeError, "randint: size"),
        (lambda: tf.randint(5, 3.5), TypeError, "randint: size"),
        (lambda: tf.randint(5, (-1,)), RuntimeError, "randint: size -1"),
        (lambda: tf.randperm(-1), RuntimeError, "randperm: n is -1"),
        (lambda: tf.randperm(1.5), RuntimeError, "randperm: n is 1.5"),
        (lambda: tf.randperm(300, dtype=tf.uint8), RuntimeError, "randperm: n is 300"),
        (lambda: tf.rand(-1), RuntimeError, "rand: size -1"),
        (lambda: tf.rand(2, dtype=tf.int32), RuntimeError, "uniform_"),
        (lambda: tf.rand_like(tf.ones(2).long()), RuntimeError, "floating-point"),
        (lambda: tf.bernoulli(tf.tensor([2.0])), RuntimeError, "bernoulli: .*outside 0 to 1"),
        (lambda: tf.bernoulli(tf.tensor([float("nan")])), RuntimeError, "bernoulli"),
        (lambda: tf.bernoulli(tf.tensor([1])), RuntimeError, "bernoulli"),
        (lambda: tf.normal(0.0, -1.0, (2,)), RuntimeError, "std is -1"),
        (lambda: tf.normal(0.0, 1.0), TypeError, "normal: size"),
        (lambda: tf.normal(tf.ones(2), -1.0), RuntimeError, "normal: std"),
        (lambda: tf.normal(0.0, -tf.ones(2)), RuntimeError, "normal: std"),
        (lambda: tf.normal(tf.ones(2), tf.ones(3)), RuntimeError, "broadcast"),
        (lambda: tf.multinomial(tf.tensor([-1.0, 1]), 1), RuntimeError, "multinomial: .*negative"),
        (lambda: tf.multinomial(tf.tensor([float("nan"), 1]), 1), RuntimeError, "multinomial"),
        (lambda: tf.multinomial(tf.tensor([float("inf"), 1]), 1), RuntimeError, "multinomial"),
        (lambda: tf.multinomial(tf.zeros(3), 1), RuntimeError, "add up to 0"),
        (lambda: tf.multinomial(tf.ones(3), 4), RuntimeError, "num_samples is 4"),
        (lambda: tf.multinomial(tf.ones(3), 0), RuntimeError, "num_samples is 0"),
        (lambda: tf.multinomial(tf.ones(1, 1, 3), 1), RuntimeError, "multinomial"),
        (lambda: tf.multinomial(tf.ones(3).long(), 1), RuntimeError, "multinomial"),
    ],
)
def test_what_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_refused_fills_use_no_draw():
    a = np.zeros(2)
    a.flags.writeable = False
    fixed, leaf = tf.from_numpy(a), tf.ones(2, requires_grad=True)
    before = tf.default_generator.state_dict()
    for t in (fixed, leaf, tf.ones(1).expand(3)):
        for fill in (t.uniform_, t.normal_, t.exponential_, t.bernoulli_, t.random_):
            with pytest.raises(RuntimeError):
                fill()
    assert tf.default_generator.state_dict() == before and leaf.tolist() == [1.0, 1.0]


def test_draws_of_threads_never_coincide():
    results = []

    def work():
        results.extend(tf.rand(2).tolist()[0] for _ in range(300))

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(set(results)) == 1200
