"""Training on a GPU: nothing runs on the CPU, nothing waits but the reading of the loss, memory stays flat,
and deterministic mode ends with the CPU's weights."""

import hashlib
import warnings

import numpy as np
import pytest
from backends.isolated import run

import tinyfin as tf
from tinyfin.backends.base import REGISTRY, STATE


def networks():
    """name -> (network, batch, targets)."""
    nn = tf.nn
    rng = np.random.default_rng(5)
    pictures = tf.from_numpy(rng.standard_normal((6, 1, 8, 8), np.float32))
    text = tf.from_numpy(rng.integers(0, 11, (2, 5)))
    return {
        "mlp": (
            nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4)),
            pictures,
            tf.arange(6) % 4,
        ),
        "cnn": (
            nn.Sequential(
                nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(4, 6, 3, stride=2), nn.GELU(), nn.AvgPool2d(1), nn.Flatten(), nn.Linear(6, 4),
            ),
            pictures,
            tf.arange(6) % 4,
        ),
        "gpt": (Gpt(), text, tf.arange(10) % 11),
    }  # fmt: skip


class Gpt(tf.nn.Module):
    """One block of a character model."""

    def __init__(self):
        super().__init__()
        nn = tf.nn
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(5, 8)
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 11)

    def forward(self, x):
        y = self.tokens(x) + self.places.weight
        b, t, d = y.shape
        parts = self.qkv(self.norm(y)).reshape(b, t, 3, 2, d // 2).permute(2, 0, 3, 1, 4)
        q, k, v = parts.unbind(0)
        a = tf.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y + a.transpose(1, 2).reshape(b, t, d)
        return self.out(y).reshape(b * t, 11)


OPTIMIZERS = {
    "sgd": lambda p: tf.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-4),
    "adamw": lambda p: tf.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: tf.optim.RMSprop(p, lr=0.01),
}


def train(name, optimizer, device, steps=3):
    """(losses, SHA-256 of the weights)."""
    tf.manual_seed(1)
    net, x, targets = networks()[name]
    net.to(device)
    opt = OPTIMIZERS[optimizer](net.parameters())
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        loss = tf.nn.functional.cross_entropy(net(x.to(device)), targets.to(device))
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    digest = hashlib.sha256()
    for p in net.state_dict().values():
        digest.update(p.cpu().numpy().tobytes())
    return [value.item() for value in losses], digest.hexdigest()


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name, optimizer", [("mlp", "sgd"), ("cnn", "adamw"), ("gpt", "rmsprop")])
def test_the_same_run_everywhere(name, optimizer, deterministic, gpu):
    STATE["warned"].clear()
    with warnings.catch_warnings(), tf.deterministic(deterministic):
        warnings.filterwarnings("error", message="tinyfin: .* runs on the cpu")
        losses, digest = train(name, optimizer, gpu)
        wanted, digest_wanted = train(name, optimizer, "cpu")
    if deterministic:
        assert (losses, digest) == (wanted, digest_wanted)
    assert losses == pytest.approx(wanted, rel=1e-5)


def test_only_the_loss_is_waited_for(gpu, monkeypatch):
    net, x, targets = networks()["mlp"]
    net.to(gpu)
    opt = OPTIMIZERS["sgd"](net.parameters())
    device = REGISTRY[gpu].opened_device(0)
    waits = []
    for name in ("read", "synchronize"):
        whole = getattr(device, name)
        monkeypatch.setattr(device, name, lambda *a, f=whole, n=name: (waits.append(n), f(*a))[1])
    for _ in range(4):
        opt.zero_grad()
        loss = tf.nn.functional.cross_entropy(net(x.to(gpu)), targets.to(gpu))
        loss.backward()
        opt.step()
    assert waits == []
    loss.item()
    assert waits[0] == "read" and waits.count("read") == 1


def test_memory_stays_flat(gpu):
    """1,000 steps: the pool asks the driver for nothing after the first, and the process does not grow."""
    code = f"""
import resource
import tinyfin as tf
from tinyfin.backends.base import REGISTRY
tf.backend_set("{gpu}")
net = tf.nn.Sequential(tf.nn.Linear(8, 16), tf.nn.Tanh(), tf.nn.Linear(16, 3))
opt = tf.optim.Adam(net.parameters())
x, targets = tf.rand(4, 8).cpu(), tf.arange(4).cpu() % 3
for i in range(1000):
    opt.zero_grad()
    tf.nn.functional.cross_entropy(net(x.to("{gpu}")), targets.to("{gpu}")).backward()
    opt.step()
    if i in (100, 999):
        tf.synchronize()
        stats = REGISTRY["{gpu}"].opened_device(0).pool.stats()
        print(stats["live"], stats["cached"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    lines, errors = run(code, TINYFIN_FALLBACK="0")
    assert not errors, errors
    (live, cached, size), (live_end, cached_end, size_end) = (
        map(int, s.split()) for s in lines[-2:]
    )
    assert (live, cached) == (live_end, cached_end)
    assert size_end - size < 8 << 10, "KiB"


def test_memory_is_counted_limited_and_given_back(gpu):
    tf.empty_cache(gpu)
    x = tf.ones(1 << 20, device=gpu)
    stats = tf.memory_stats(gpu)
    assert stats["live"] >= 4 << 20 and stats["limit"] is None and stats["cached"] > 0
    tf.set_memory_limit(stats["live"] + (1 << 20), gpu)
    try:
        with pytest.raises(MemoryError, match="of the limit"):
            tf.ones(1 << 20, device=gpu)
        assert (x[:1000] + 1).sum().item() == 2000
    finally:
        tf.set_memory_limit(None, gpu)
    del x
    tf.empty_cache(gpu)
    assert tf.memory_stats(gpu)["live"] < stats["live"]
    with pytest.raises(ValueError, match="limit is -1"):
        tf.set_memory_limit(-1, gpu)
