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


@pytest.fixture
def hidden(vulkan, monkeypatch):
    """A device, and a pool of memory that the host does not see, behind a small ring."""
    import tinyfin.backends.vulkan.memory as module
    from tinyfin.backends.gpu.slabs import Slab

    tf.empty(1, device="vulkan")
    device = VULKAN.opened_device(0)
    monkeypatch.setattr(module, "STAGING", 16384)
    monkeypatch.setattr(module, "PART", 4096)
    monkeypatch.setattr(device, "stage", None)
    monkeypatch.setattr(device, "ring", module.Ring(16384, device.reach))
    real = device.opened.slab(1 << 20, device.wishes, True)
    unmapped = Slab(real.buffer, real.address, 0, real.nbytes, real.owner)
    pool = module.Pool(lambda n: unmapped, lambda s: None, "hidden", 1 << 20)
    return device, pool


def test_through_staging(hidden):
    """In pieces smaller than the tensor."""
    device, pool = hidden
    block = pool.allocate(100_000)
    data = np.random.default_rng(1).integers(0, 256, 100_000, np.uint8).tobytes()
    assert block.host == 0
    device.write(block, 0, memoryview(data))
    device.write(block, 5000, memoryview(data)[:10])
    out = bytearray(90_000)
    device.read(block, 1000, memoryview(out))
    assert bytes(out) == data[1000:5000] + data[:10] + data[5010:91_000]


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


def test_many_threads_move_tensors(hidden):
    """Through the ring, while others submit and wait."""
    import threading

    (device, pool), wrong = hidden, []

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
