"""The OpenGL backend: choosing a device, moving tensors, memory, threads, waiting."""

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
def test_memory():
    """No slab is larger than what kernels can bind, what the driver refuses is an error of Python."""
    device = OPENGL.opened_device(0)
    assert device.pool.allocate(1).slab.nbytes <= device.opened.physical.largest
    with pytest.raises(MemoryError, match="refused"):
        device.opened.slab(1 << 46)
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
