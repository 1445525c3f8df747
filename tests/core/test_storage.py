"""Storage: the caching pool, its limit and statistics, and memory that others own."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
from pooling import needs_pool

import tinyfin as tf


@pytest.fixture
def no_limit():
    """Takes the limit away after a test, and starts from an empty pool."""
    gc.collect()
    tf.empty_cache()
    tf.reset_peak_memory_stats()
    yield
    tf.set_memory_limit(None)


def stats(*names):
    """Some of the pool's counters."""
    now = tf.memory_stats()
    return now[names[0]] if len(names) == 1 else [now[n] for n in names]


@needs_pool
@pytest.mark.usefixtures("no_limit")
def test_blocks_are_counted_and_reused():
    live, requests, reused = stats("live", "requests", "reused")
    x = tf.empty(1000, dtype=tf.float64)
    assert stats("live") - live in range(8000, 9001)
    assert stats("requests") == requests + 1
    where = x.data_ptr()
    del x
    assert stats("live") == live and stats("cached") >= 8000
    y = tf.empty(1000, dtype=tf.float64)
    assert y.data_ptr() == where and stats("reused") == reused + 1 and stats("cached") < 8000
    tf.empty_cache()
    assert stats("cached") == 0 and y.fill_(1).sum().item() == 1000


@needs_pool
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the resident set is not told")
@pytest.mark.parametrize(
    "use",
    [
        "small = [tf.ones(n % 4000 + 1) for n in range(8000)]; kept = small[::1000]; del small",
        "mixed = [tf.ones(1 << n % 16) for n in range(4000)]; kept = mixed[7::500]; del mixed",
        "large = [tf.ones(1 << 22) for _ in range(4)]; kept = large.pop(); del large",
        "x = tf.rand(3000, 2000); y = x.sort(0); del x, y",
        "x = tf.rand(1500, 3000); y = x @ x.t(); del x, y",
    ],
)
def test_empty_cache_gives_back(use):
    """Not to the C library, which keeps it, but to the system."""
    code = f"""
import os, tinyfin as tf
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
tf.set_num_threads(1)
tf.rand(40, 40).sort(0), tf.rand(40, 40) @ tf.rand(40, 40), tf.ones(5)
tf.empty_cache()
before, live = resident(), tf.memory_stats()["live"]
{use}
full = resident()
tf.empty_cache()
now = tf.memory_stats()
print(full - before > 10 << 20, now["cached"], resident() - before - (now["live"] - live) < 5 << 20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0", "True"], done.stderr


@pytest.mark.usefixtures("no_limit")
def test_peak():
    live = stats("live")
    a = tf.empty(1 << 20, dtype=tf.uint8)
    del a
    assert stats("peak") >= live + (1 << 20)
    tf.reset_peak_memory_stats()
    assert stats("peak") == stats("live")


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 1023, 1024, 1025, 4097, 100000, 5 << 20])
def test_size_classes_waste_little(nbytes):
    before = stats("live")
    x = tf.empty(nbytes, dtype=tf.uint8)
    taken = stats("live") - before
    assert nbytes <= taken <= max(64, nbytes * 1.125 + 64)
    assert x.data_ptr() % 64 == 0


@pytest.mark.usefixtures("no_limit")
def test_limit_is_exact_and_says_who_holds_what():
    held = [tf.zeros(1 << 20, dtype=tf.uint8) for _ in range(3)]
    tf.set_memory_limit(stats("live") + (2 << 20))
    assert stats("limit") == stats("live") + (2 << 20)
    requests = stats("requests")
    with pytest.raises(MemoryError) as e:
        tf.ones(1 << 22, dtype=tf.uint8)
    assert stats("requests") == requests
    text = str(e.value)
    for word in (
        "ones: 4.0 MiB asked for",
        "2.0 MiB free",
        "limit",
        "3 of 3.0 MiB in all from zeros",
    ):
        assert word in text, text
    held.append(tf.empty(2 << 20, dtype=tf.uint8))
    with pytest.raises(MemoryError, match=r"empty: 1 bytes asked for, 0 bytes free"):
        tf.empty(1, dtype=tf.uint8)
    held.clear()
    assert tf.empty(1 << 20, dtype=tf.uint8).numel() == 1 << 20


@pytest.mark.usefixtures("no_limit")
@pytest.mark.parametrize("nbytes", [1, 1000, 1025, 400_000, 3 << 20])
def test_what_is_free_can_be_had(nbytes):
    live = stats("live")
    tf.set_memory_limit(live + nbytes)
    with pytest.raises(MemoryError):
        tf.zeros(nbytes + 1, dtype=tf.uint8)
    x = tf.zeros(nbytes, dtype=tf.uint8)
    assert stats("live") == live + nbytes
    with pytest.raises(MemoryError, match="1 bytes asked for, 0 bytes free"):
        tf.empty(1, dtype=tf.uint8)
    del x
    assert stats("live") == live


@pytest.mark.usefixtures("no_limit")
def test_operations_are_refused_before_anything_changes():
    x = tf.zeros(1 << 19)
    tf.set_memory_limit(stats("live") + 1000)
    with pytest.raises(MemoryError, match="exp: "):
        x.exp()
    with pytest.raises(MemoryError, match="cumsum: "):
        x.cumsum_(0) if hasattr(x, "cumsum_") else x.cumsum(0)
    assert x._version == tf.zeros(1)._version and x.add_(1).sum().item() == 1 << 19


@pytest.mark.parametrize("limit", [-1, 1.5, "1 GB", True, 1 << 64])
def test_limit_must_be_bytes(limit):
    with pytest.raises(ValueError, match="set_memory_limit: limit is"):
        tf.set_memory_limit(limit)


def test_requests_beyond_the_machine_are_refused():
    with pytest.raises(MemoryError, match=r"zeros: 16\.0 TiB asked for, .* GiB free"):
        tf.zeros(1 << 44, dtype=tf.uint8)
    with pytest.raises(MemoryError, match="more elements than memory"):
        tf.empty(1 << 40, 1 << 40)
    with pytest.raises(MemoryError, match="matmul"):
        tf.ones(1 << 20, 1) @ tf.ones(1, 1 << 20)
    for nbytes in (1 << 56, 1 << 57, 1 << 59, 1 << 60):
        with pytest.raises(MemoryError, match="PiB asked for"):
            tf.empty(nbytes, dtype=tf.uint8)


def test_many_small_requests_are_refused_in_time():
    """The free memory is asked again after every few megabytes, not only for large blocks."""
    code = """
import tinyfin as tf
from tinyfin.core import memory
memory.available = lambda: max(0, (64 << 20) - tf.memory_stats()["live"])
held = []
try:
    while True:
        held.append(tf.ones(1 << 18, dtype=tf.uint8))
except MemoryError as e:
    print(len(held), str(e)[:6])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    count, text = out.stdout.split()
    assert 192 <= int(count) <= 320 and text == "ones:", out.stderr


@needs_pool
def test_the_cache_is_given_back_before_a_refusal():
    code = """
import tinyfin as tf
from tinyfin.core import memory
real = tf.memory_stats
memory.available = lambda: (64 << 20) - real()["live"] - real()["cached"]
x = [tf.empty(8 << 20, dtype=tf.uint8) for _ in range(7)]
del x
assert real()["cached"] == 56 << 20
y = tf.empty(48 << 20, dtype=tf.uint8)
print(real()["cached"], y.numel())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert out.stdout.split() == ["0", str(48 << 20)], out.stderr


def test_borrowed_arrays_live_as_long_as_the_tensor():
    class Array(np.ndarray):
        """An array that can be watched."""

    a = np.arange(4.0).view(Array)
    watch = weakref.ref(a)
    t = tf.from_numpy(a)
    v = t[1:]
    del a, t
    gc.collect()
    assert watch() is not None and v.tolist() == [1.0, 2.0, 3.0]
    del v
    gc.collect()
    assert watch() is None


def test_read_only_memory_stays_read_only():
    a = np.arange(4.0)
    a.flags.writeable = False
    for t in (tf.from_numpy(a), tf.frombuffer(bytes(32), dtype=tf.float64), tf.from_dlpack(a)):
        for write in (
            lambda t: t.add_(1), lambda t: t.fill_(0), lambda t: t[1:].zero_(), lambda t: t.uniform_(),
            lambda t: t.__setitem__(0, 1.0), lambda t: t.__setitem__([0, 1], 1.0), lambda t: t.copy_(t),
            lambda t: t.view(2, 2).exp_(), lambda t: t.detach().mul_(2),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match="read-only"):
                write(t)
        assert not t.numpy().flags.writeable and not t[::2].numpy().flags.writeable
        assert t.clone().add_(1) is not None
        with pytest.raises(BufferError, match="read-only"):
            t.__dlpack__()
    assert a.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_borrowed_memory_is_not_the_pool_s():
    live = stats("live")
    t = tf.from_numpy(np.zeros(1 << 16))
    assert stats("live") == live and t.numel() == 1 << 16


def test_frombuffer():
    data = bytearray(range(16))
    t = tf.frombuffer(data, dtype=tf.int16, count=3, offset=2)
    assert t.tolist() == np.frombuffer(data, "int16", 3, 2).tolist()
    t.zero_()
    assert data[2:8] == bytes(6) and data[8] == 8
    assert tf.frombuffer(b"", dtype=tf.float32).shape == (0,)
    assert tf.frombuffer(data, dtype=tf.bfloat16).shape == (8,)
    for kwargs, words in [
        ({"dtype": tf.float64, "offset": 17}, "offset is 17"),
        ({"dtype": tf.float64, "offset": -1}, "offset is -1"),
        ({"dtype": tf.float64, "count": 3}, "exceed the buffer's 16 bytes"),
        ({"dtype": tf.float64, "offset": 4}, "no multiple|aligned"),
        ({"dtype": tf.float64, "offset": 4, "count": 1}, "aligned"),
        ({"dtype": tf.float64, "count": 1 << 61}, "exceed"),
    ]:
        with pytest.raises(ValueError, match="frombuffer: .*" + words):
            tf.frombuffer(data, **kwargs)
    with pytest.raises(ValueError, match="not contiguous"):
        tf.frombuffer(memoryview(data)[::2], dtype=tf.uint8)
    with pytest.raises(TypeError):
        tf.frombuffer(3, dtype=tf.uint8)
    with pytest.raises(BufferError):
        data.extend(b"1")  # the tensors still look at it
