"""What the GPU backends share: opening, moving tensors, memory, threads, forks."""

import threading

import numpy as np
import pytest
from backends.isolated import run

import tinyfin as tf


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (3, 5)])
def test_round_trip(name, shape, gpu):
    size = int(np.prod(shape))
    x = tf.arange(size).reshape(shape).to(getattr(tf, name))
    there = x.to(gpu)
    assert str(there.device) == f"{gpu}:0" and there.shape == x.shape and there.dtype is x.dtype
    assert there.cpu().tolist() == x.tolist() == there.tolist()
    if shape == (3, 5):
        assert there.T[1:, ::2].cpu().tolist() == x.T[1:, ::2].tolist()


def test_errors_name_the_device(gpu):
    with pytest.raises(RuntimeError, match=f"there is no device 7; have {gpu}:0"):
        tf.ones(2, device=f"{gpu}:7")
    with pytest.raises(RuntimeError, match="there is no device 7"):
        tf.memory_stats(f"{gpu}:7")
    with pytest.warns(RuntimeWarning, match="there is no device 7"):
        assert tf.backend_set(f"{gpu}:7") is False
    with pytest.raises(RuntimeError, match="different devices"):
        tf.ones(2, device=gpu) + tf.ones(2)
    with pytest.raises(MemoryError, match="bytes were asked for"):
        tf.empty(1 << 40, dtype=tf.uint8, device=gpu)
    assert tf.ones(2, device=gpu).tolist() == [1.0, 1.0]


def test_as_the_default(gpu):
    code = f"""
import tinyfin as tf
assert tf.backend_set("{gpu}") and str(tf.default_device()) == "{gpu}:0"
x = tf.rand(3)
print(x.device, tf.backend_name())
tf.synchronize()
assert tf.backend_set("cpu") and str(x.device) == "{gpu}:0"
"""
    assert run(code)[0] == [f"{gpu}:0 {gpu}"]
    code = "import tinyfin as tf; print(tf.backend_name())"
    assert run(code, TINYFIN_BACKEND=f"{gpu}:0")[0] == [f"{gpu}:0"]


def test_memory_is_reused(gpu):
    x = tf.ones(1000, device=gpu)
    live = tf.memory_stats(gpu)["live"]
    for _ in range(500):
        x = x + 1
    assert tf.memory_stats(gpu)["live"] == live and x.cpu()[0].item() == 501.0


def test_memory_of_a_device_that_was_never_used(gpu):
    """The limit is the device's, not the host's."""
    code = f"""
import tinyfin as tf
tf.set_memory_limit(5000, "{gpu}")
print(tf.memory_stats()["limit"], tf.memory_stats("{gpu}")["limit"])
try:
    tf.ones(10_000, device="{gpu}")
except MemoryError as error:
    print("of the limit 5000" in str(error))
"""
    assert run(code)[0] == ["None 5000", "True"]


@pytest.mark.parametrize("step", ["same_bits", "flush_level"])
def test_a_device_that_could_not_be_checked_is_opened_anew(gpu, step):
    """Interrupted before or after its first tensors."""
    code = f"""
import tinyfin as tf
from tinyfin.backends.gpu import check
whole = check.{step}
def interrupted(*args):
    raise KeyboardInterrupt
check.{step} = interrupted
try:
    tf.ones(3, device="{gpu}")
except KeyboardInterrupt:
    check.{step} = whole
    print(tf.ones(3, device="{gpu}").exp().cpu().tolist() == tf.ones(3).exp().tolist())
"""
    assert run(code)[0] == ["True"]


def test_every_device_is_waited_for(gpu):
    """Without a name, whichever device is the default."""
    x, i = tf.ones(3).to(gpu), tf.tensor([7]).to(gpu)
    assert tf.backend_name() == "cpu"
    kept = x[i]
    with pytest.raises(IndexError, match="7"):
        tf.synchronize()
    tf.synchronize()
    assert kept.shape == (1,)


def test_a_forked_child_is_told(gpu):
    code = f"""
import os
import tinyfin as tf
x = tf.ones(3, device="{gpu}") + 1
x.tolist()
child = os.fork()
if not child:
    try:
        (x + 1).cpu()
    except RuntimeError as error:
        os._exit(0 if "fork" in str(error) else 2)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x + 1).tolist())
"""
    assert run(code)[0] == ["0 [3.0, 3.0, 3.0]"]


def test_threads(gpu):
    """Each may call, whichever thread opened the device."""
    x, found = tf.arange(100.0).to(gpu), {}

    def work(k):
        y = x
        for _ in range(50):
            y = y + k
        found[k] = y.cpu()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        assert found[k].tolist() == (tf.arange(100.0) + 50 * k).tolist()


def test_threads_may_open_a_device(gpu):
    """One opens it, the others wait until it is checked; then all work on it."""
    code = f"""
import threading
import tinyfin as tf
from tinyfin.backends.base import REGISTRY
bad = []
def work(k):
    try:
        for n in (1, 700, 300_000):
            x = tf.arange(n).float()
            if ((x.to("{gpu}") + k) * 2).tolist() != ((x + k) * 2).tolist():
                bad.append((k, n))
    except BaseException as error:
        bad.append(error)
threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
for t in threads: t.start()
for t in threads: t.join()
print(bad, list(REGISTRY["{gpu}"].opened_devices))
"""
    assert run(code)[0] == ["[] [0]"]


def test_what_a_call_reads_stays_while_its_program_is_made(gpu):
    """Another thread may give the tensor other memory meanwhile: what it had is not given away."""
    lines, _ = run(
        f"""
import tinyfin as tf
from tinyfin.backends.base import REGISTRY
from tinyfin.backends.opengl.programs import Compiler

n = 100_000
x, y = tf.full((n,), 0.5, device="{gpu}"), tf.zeros(n, device="{gpu}")
device = REGISTRY["{gpu}"].opened_device(0)
make = device.pipelines.make if "{gpu}" == "vulkan" else Compiler(device.opened, False).make
other = []

def making(*about):
    if not other:
        other.append(None)
        x.data = y
        other.append(tf.full((n,), 7.0, device="{gpu}"))
    return make(*about)

device.stream.take(making)
print([round(v, 3) for v in (x.erf().min().item(), other[1].min().item())])
"""
    )
    assert lines == ["[0.52, 7.0]"]


def test_a_device_is_used_once_it_is_checked(gpu):
    lines, _ = run(
        f"""
import tinyfin as tf
from tinyfin.backends.base import REGISTRY
from tinyfin.backends.gpu import check

level = check.flush_level
def flush_level(*about):
    print(REGISTRY["{gpu}"].used())
    return level(*about)

check.flush_level = flush_level
tf.empty(1, device="{gpu}")
print(REGISTRY["{gpu}"].used())
"""
    )
    assert lines == ["[]", "[0]"]
