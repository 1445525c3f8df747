"""The Vulkan backend: choosing a device, moving tensors, memory, waiting."""

import numpy as np
import pytest
from backends.isolated import run

import tinyfin as tf
from tinyfin.backends.base import REGISTRY

VULKAN = REGISTRY["vulkan"]
needs_device = pytest.mark.usefixtures("vulkan")


@needs_device
def test_it_is_there():
    assert tf.backend_list()["vulkan"] is None
    assert "vulkan:0" in VULKAN.missing(99)


@needs_device
@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (3, 5)])
def test_round_trip(name, shape):
    size = int(np.prod(shape))
    x = tf.arange(size).reshape(shape).to(getattr(tf, name))
    there = x.to("vulkan")
    assert str(there.device) == "vulkan:0" and there.shape == x.shape and there.dtype is x.dtype
    assert there.cpu().tolist() == x.tolist() == there.tolist()
    if shape == (3, 5):
        assert there.T[1:, ::2].cpu().tolist() == x.T[1:, ::2].tolist()


@needs_device
def test_errors_name_the_device():
    with pytest.raises(RuntimeError, match="there is no device 7; have vulkan:0"):
        tf.ones(2, device="vulkan:7")
    with pytest.warns(RuntimeWarning, match="there is no device 7"):
        assert tf.backend_set("vulkan:7") is False
    with pytest.raises(RuntimeError, match="different devices"):
        tf.ones(2, device="vulkan") + tf.ones(2)
    with pytest.raises(MemoryError, match="bytes were asked for"):
        tf.empty(1 << 40, dtype=tf.uint8, device="vulkan")
    assert tf.ones(2, device="vulkan").tolist() == [1.0, 1.0]


@needs_device
def test_as_the_default():
    code = """
import tinyfin as tf
assert tf.backend_set("vulkan") and str(tf.default_device()) == "vulkan:0"
x = tf.rand(3)
print(x.device, tf.backend_name())
tf.synchronize()
assert tf.backend_set("cpu") and str(x.device) == "vulkan:0"
"""
    assert run(code)[0] == ["vulkan:0 vulkan"]
    assert run("import tinyfin as tf; print(tf.backend_name())", TINYFIN_BACKEND="vulkan:0")[0] == [
        "vulkan:0"
    ]


def test_importing_loads_nothing():
    code = "import sys, tinyfin; print('vulkan' in sys.modules, 'tinyfin.backends.vulkan.device' in sys.modules)"
    assert run(code)[0] == ["False False"]


def test_without_a_driver():
    """No driver: False, a reason with a remedy, and everything else works."""
    code = """
import warnings, tinyfin as tf
warnings.simplefilter("ignore")
print(tf.backend_set("vulkan"), tf.backend_name(), tf.ones(2).tolist())
print(tf.backend_list()["vulkan"])
"""
    lines, _ = run(code, VK_ICD_FILENAMES="/nowhere.json", VK_DRIVER_FILES="/nowhere.json")
    assert lines[0] == "False cpu [1.0, 1.0]" and "mesa-vulkan-drivers" in lines[1]


def test_without_the_package():
    code = """
import sys, warnings
sys.modules["vulkan"] = None
import tinyfin as tf
print(tf.backend_list()["vulkan"])
"""
    assert "pip install 'tinyfin[vulkan]'" in run(code)[0][0]


@needs_device
def test_through_staging(monkeypatch):
    """The way of devices whose memory the host does not see, in pieces smaller than the tensor."""
    import tinyfin.backends.vulkan.memory as module
    from tinyfin.backends.gpu.slabs import Slab

    tf.empty(1, device="vulkan")
    device = VULKAN.opened_device(0)
    monkeypatch.setattr(module, "STAGING", 16384)
    monkeypatch.setattr(module, "PART", 4096)
    monkeypatch.setattr(device, "stage", None)
    monkeypatch.setattr(device, "ring", module.Ring(16384, device.reach))
    real = device.opened.slab(1 << 20, device.wishes, True)
    hidden = Slab(real.buffer, real.address, 0, real.nbytes, real.owner)
    pool = module.Pool(lambda n: hidden, lambda s: None, "hidden", 1 << 20)
    block = pool.allocate(100_000)
    data = np.random.default_rng(1).integers(0, 256, 100_000, np.uint8).tobytes()
    assert block.host == 0
    device.write(block, 0, memoryview(data))
    device.write(block, 5000, memoryview(data)[:10])
    out = bytearray(90_000)
    device.read(block, 1000, memoryview(out))
    assert bytes(out) == data[1000:5000] + data[:10] + data[5010:91_000]


@needs_device
def test_memory_is_reused():
    x = tf.ones(1000, device="vulkan")
    device = VULKAN.opened_device(0)
    live = device.pool.stats()["live"]
    for _ in range(500):
        x = x + 1
    assert device.pool.stats()["live"] == live and x.cpu()[0].item() == 501.0


@needs_device
def test_shared_memory_is_counted_before_a_pipeline_is_made(monkeypatch):
    """Some drivers make such a pipeline, and are lost when it runs."""
    device = VULKAN.opened_device(0)
    device.use(device.pipelines.soft)  # nothing is made yet
    monkeypatch.setattr(device.opened.physical, "shared_bytes", 100)
    x = tf.rand(3, 5)
    with pytest.raises(
        RuntimeError, match=r"softmax: softmax_f32 needs \d+ bytes of shared memory, .* has 100"
    ):
        tf.softmax(x.to("vulkan"), 1)
    monkeypatch.undo()
    assert tf.softmax(x.to("vulkan"), 1).cpu().tolist() == tf.softmax(x, 1).tolist()


@needs_device
def test_a_forked_child_is_told():
    code = """
import os, sys
import tinyfin as tf
x = tf.ones(3, device="vulkan")
child = os.fork()
if not child:
    try:
        (x + 1).cpu()
    except RuntimeError as error:
        os._exit(0 if "forked" in str(error) else 2)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print((x + 1).tolist())
"""
    assert run(code)[0] == ["[2.0, 2.0, 2.0]"]


@needs_device
def test_an_interrupted_kernel_is_not_forgotten(monkeypatch):
    """Ctrl-C while a pipeline is made is Ctrl-C to the caller."""
    device = VULKAN.opened_device(0)
    x = tf.ones(5, device="vulkan")

    def interrupted(shader, constants):
        raise KeyboardInterrupt

    device.stream.use(interrupted, device.pipelines.layout)
    try:
        with pytest.raises(KeyboardInterrupt):
            x.exp()
    finally:
        device.stream.use(device.pipelines.make, device.pipelines.layout)
    assert x.exp().cpu()[0].item() == tf.ones(1).exp().item()


@needs_device
def test_a_device_that_could_not_be_checked_is_opened_anew():
    code = """
import tinyfin as tf
from tinyfin.backends.gpu import check
whole = check.same_bits
def interrupted(name):
    raise KeyboardInterrupt
check.same_bits = interrupted
try:
    tf.ones(3, device="vulkan")
except KeyboardInterrupt:
    check.same_bits = whole
    print(tf.ones(3, device="vulkan").exp().cpu().tolist() == tf.ones(3).exp().tolist())
"""
    assert run(code)[0] == ["True"]


@needs_device
def test_many_threads_move_tensors(monkeypatch):
    """Through the ring, while others submit and wait."""
    import threading

    from tinyfin.backends.gpu.slabs import Slab
    from tinyfin.backends.vulkan import memory as module

    device = VULKAN.opened_device(0)
    monkeypatch.setattr(module, "STAGING", 16384)
    monkeypatch.setattr(module, "PART", 4096)
    monkeypatch.setattr(device, "stage", None)
    monkeypatch.setattr(device, "ring", module.Ring(16384, device.reach))
    real = device.opened.slab(1 << 20, device.wishes, True)
    hidden = Slab(real.buffer, real.address, 0, real.nbytes, real.owner)
    pool = module.Pool(lambda n: hidden, lambda s: None, "hidden", 1 << 20)
    wrong = []

    def move(seed):
        data = np.random.default_rng(seed).integers(0, 256, 30_000, np.uint8).tobytes()
        block = pool.allocate(30_000)
        for _ in range(20):
            out = bytearray(30_000)
            device.write(block, 0, memoryview(data))
            tf.ones(3, device="vulkan").sum().item()
            device.read(block, 0, memoryview(out))
            wrong.extend([seed] * (bytes(out) != data))

    threads = [threading.Thread(target=move, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
