"""The OpenGL backend: choosing a device, moving tensors, memory, threads, waiting."""

import threading

import numpy as np
import pytest
from backends.isolated import run

import tinyfin as tf
from tinyfin.backends.base import REGISTRY

OPENGL = REGISTRY["opengl"]
needs_device = pytest.mark.usefixtures("opengl")


@needs_device
def test_it_is_there():
    assert tf.backend_list()["opengl"] is None
    assert "opengl:0" in OPENGL.missing(99)
    assert OPENGL.devices()[0].endswith(("(hardware)", "(software)"))


@needs_device
@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (3, 5)])
def test_round_trip(name, shape):
    size = int(np.prod(shape))
    x = tf.arange(size).reshape(shape).to(getattr(tf, name))
    there = x.to("opengl")
    assert str(there.device) == "opengl:0" and there.shape == x.shape and there.dtype is x.dtype
    assert there.cpu().tolist() == x.tolist() == there.tolist()
    if shape == (3, 5):
        assert there.T[1:, ::2].cpu().tolist() == x.T[1:, ::2].tolist()


@needs_device
def test_errors_name_the_device():
    with pytest.raises(RuntimeError, match="there is no device 7; have opengl:0"):
        tf.ones(2, device="opengl:7")
    with pytest.warns(RuntimeWarning, match="there is no device 7"):
        assert tf.backend_set("opengl:7") is False
    with pytest.raises(RuntimeError, match="different devices"):
        tf.ones(2, device="opengl") + tf.ones(2)
    with pytest.raises(MemoryError, match="bytes were asked for"):
        tf.empty(1 << 40, dtype=tf.uint8, device="opengl")
    assert tf.ones(2, device="opengl").tolist() == [1.0, 1.0]


@needs_device
def test_memory():
    """No slab is larger than what kernels can bind, what the driver refuses is an error of Python."""
    device = OPENGL.opened_device(0)
    assert device.pool.allocate(1).slab.nbytes <= device.opened.physical.largest
    with pytest.raises(MemoryError, match="refused"):
        device.opened.slab(1 << 46)
    x = tf.ones(1000, device="opengl")
    live = device.pool.stats()["live"]
    for _ in range(500):
        x = x + 1
    assert device.pool.stats()["live"] == live and x.cpu()[0].item() == 501.0
    slab = device.opened.slab(4096)
    device.opened.free(slab)


@needs_device
def test_a_program_that_does_not_compile():
    from tinyfin.backends.opengl.programs import Compiler

    with pytest.raises(RuntimeError, match=r"does not compile \w+: (.|\n)*syntax error"):
        compiler = Compiler(OPENGL.opened_device(0).opened)
        OPENGL.opened_device(0).stream.call(lambda: compiler.compiled(1, "#version 430\nnonsense"))
    assert tf.ones(2, device="opengl").tolist() == [1.0, 1.0]


@needs_device
def test_threads():
    """Each may call, whichever thread opened the device."""
    x, found = tf.arange(100.0).to("opengl"), {}

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


@needs_device
def test_an_application_keeps_its_own_context():
    code = """
import moderngl
own = moderngl.create_standalone_context(backend="egl", require=430)
buffer = own.buffer(b"abcd")
import tinyfin as tf
assert (tf.ones(3, device="opengl") + 1).tolist() == [2.0] * 3
print(buffer.read().decode(), moderngl.get_context() is own)
"""
    lines, _ = run(code)
    assert lines == ["abcd True"]


@needs_device
def test_as_the_default():
    code = """
import tinyfin as tf
assert tf.backend_set("opengl") and str(tf.default_device()) == "opengl:0"
x = tf.rand(3)
print(x.device, tf.backend_name())
tf.synchronize()
assert tf.backend_set("cpu") and str(x.device) == "opengl:0"
"""
    assert run(code)[0] == ["opengl:0 opengl"]


@needs_device
def test_a_forked_child_is_told():
    code = """
import os, tinyfin as tf
x = tf.ones(3, device="opengl") + 1
x.tolist()
pid = os.fork()
if pid == 0:
    try:
        x + 1
    except RuntimeError as error:
        os._exit(0 if "the process is a fork" in str(error) else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), x.tolist())
"""
    assert run(code)[0] == ["0 [2.0, 2.0, 2.0]"]


def test_importing_loads_nothing():
    code = "import sys, tinyfin; print('moderngl' in sys.modules, 'tinyfin.backends.opengl.device' in sys.modules)"
    assert run(code)[0] == ["False False"]


def test_without_a_driver():
    """No driver: False, a reason with a remedy, and everything else works."""
    code = """
import warnings, tinyfin as tf
warnings.simplefilter("ignore")
print(tf.backend_set("opengl"), tf.backend_name(), tf.ones(2).tolist())
print(tf.backend_list()["opengl"])
"""
    lines, _ = run(code, __EGL_VENDOR_LIBRARY_FILENAMES="/nowhere.json", DISPLAY="")
    assert lines[0] == "False cpu [1.0, 1.0]"
    assert "libegl-mesa0" in lines[1] or "pip install" in lines[1]


def test_without_the_package():
    code = """
import sys
sys.modules["moderngl"] = None
import tinyfin as tf
print(tf.backend_list()["opengl"])
"""
    assert "pip install 'tinyfin[opengl]'" in run(code)[0][0]
