"""OpenGL devices: which there are, what they can do, and one opened for compute.

Everything here runs once and goes through the package `moderngl`; what runs at each call is in record.pyx.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading

from tinyfin.backends.gpu.slabs import Slab
from tinyfin.backends.opengl.record import ADDRESS_SHIFT, FUNCTIONS, STAGED, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

INSTALL = "pip install 'tinyfin[opengl]'"
DRIVERS = "on Debian and Ubuntu: apt install libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri"
VERSION = 430
"""The first OpenGL with compute shaders."""
SOFTWARE = ("llvmpipe", "softpipe", "SwiftShader")
COPY_WRITE, DYNAMIC_COPY, DYNAMIC_STORAGE = 0x8F37, 0x88EA, 0x100
MAP_READ, MAP_WRITE, PERSISTENT, COHERENT, CLIENT_STORAGE = 1, 2, 0x40, 0x80, 0x200
OUT_OF_MEMORY = 0x505
MOST_DEVICES = 16
LEAVING_SECONDS = 5.0


def api() -> Any:
    """The package `moderngl`."""
    from importlib import import_module

    return import_module("moderngl")


class State:
    """What this process found, when it was first asked for."""

    found: list[Physical] | None = None
    reason: str | None = None


def context(settings: dict[str, Any]) -> Any:
    """A context without a window, current on this thread; an application's own stays moderngl's default."""
    moderngl = api()

    store = getattr(moderngl, "_store", None)
    default = getattr(store, "default_context", None)
    try:
        return moderngl.create_standalone_context(require=VERSION, **settings)
    finally:
        if store is not None:
            store.default_context = default


def leave(made: Any) -> None:
    """Destroys a context that is current on this thread."""
    made.__exit__(None, None, None)
    made.release()


def loader(made: Any) -> Callable[[str], int]:
    """The function that gives the addresses of a context's functions."""
    return made.mglo._context.load_opengl_function


class Physical:
    """A device of the machine, as a context showed it that is gone again."""

    def __init__(self, made: Any, settings: dict[str, Any]) -> None:
        info = made.info
        self.settings = settings
        self.name: str = info["GL_RENDERER"]
        self.driver: str = info["GL_VERSION"]
        self.version: int = made.version_code
        software = any(s in self.name for s in SOFTWARE)
        self.kind = "software" if software else "hardware"
        self.rank = int(software)
        # a signed number of 32 bits to moderngl, which larger limits overflow
        limit = info["GL_MAX_SHADER_STORAGE_BLOCK_SIZE"]
        self.largest: int = limit if limit > 0 else (1 << 31) - 1
        extensions = made.extensions
        self.int64 = "GL_ARB_gpu_shader_int64" in extensions
        self.float64 = "GL_ARB_gpu_shader_fp64" in extensions


def find() -> list[Physical]:
    """The devices that can be used; software only behind hardware."""
    if State.found is None:
        State.found, State.reason = look()
    return State.found


def look() -> tuple[list[Physical], str | None]:
    """(devices, why there are none)."""
    try:
        api()
    except ImportError:
        return [], f"the package 'moderngl' is not installed; {INSTALL}"
    found: list[Physical] = []
    reasons: list[str] = []

    def probe(settings: dict[str, Any]) -> bool:
        """Whether looking further makes sense."""
        try:
            made = context(settings)
        except Exception as error:  # glcontext raises plain Exception
            reasons.append(" ".join(str(error).split()))
            return "found" not in str(error) and "not loaded" not in str(error)
        try:
            found.append(Physical(made, settings))
        finally:
            leave(made)
        return True

    def every() -> None:
        if sys.platform.startswith("linux"):
            for i in range(MOST_DEVICES):
                if not probe({"backend": "egl", "device_index": i}):
                    break
        if not found:
            probe({})

    # on a thread of its own: this one's current context, which an application may have, stays
    thread = threading.Thread(target=every)
    thread.start()
    thread.join()
    if not found:
        why = "; ".join(dict.fromkeys(reasons))
        return [], f"no driver with OpenGL 4.3 answers ({why}); {DRIVERS}"
    return sorted(found, key=lambda p: p.rank), None


class Allocator:
    """Buffers of a context; to be called on its thread."""

    def __init__(self, load: Callable[[str], int]) -> None:
        from ctypes import CFUNCTYPE, c_ssize_t, c_uint, c_void_p

        self.generate = CFUNCTYPE(None, c_uint, c_void_p)(load("glGenBuffers"))
        self.delete = CFUNCTYPE(None, c_uint, c_void_p)(load("glDeleteBuffers"))
        self.bind = CFUNCTYPE(None, c_uint, c_uint)(load("glBindBuffer"))
        self.data = CFUNCTYPE(None, c_uint, c_ssize_t, c_void_p, c_uint)(load("glBufferData"))
        self.error = CFUNCTYPE(c_uint)(load("glGetError"))
        fixed = load(
            "glBufferStorage"
        )  # OpenGL 4.4: memory that only the device sees, or that both see
        self.storage = (
            CFUNCTYPE(None, c_uint, c_ssize_t, c_void_p, c_uint)(fixed) if fixed else None
        )

        self.flags = DYNAMIC_STORAGE
        self.map = CFUNCTYPE(c_void_p, c_uint, c_ssize_t, c_ssize_t, c_uint)(
            load("glMapBufferRange")
        )

    def staging(self) -> tuple[int, int, int, int] | None:
        """Buffers for bytes to and from the device, as `Stream.stage` takes them; None where the driver has none."""
        if self.storage is None:
            return None
        found = []
        for nbytes, way in zip(STAGED, (MAP_WRITE, MAP_READ | CLIENT_STORAGE)):
            number = self.allocate(nbytes, way | PERSISTENT | COHERENT)
            where = number and self.map(COPY_WRITE, 0, nbytes, way & 3 | PERSISTENT | COHERENT)
            if not number or not where:
                return None
            found += [number, where]
        self.flags = 0  # bytes reach other buffers through these
        return tuple(found)

    def allocate(self, nbytes: int, flags: int | None = None) -> int | None:
        """The number of a new buffer; None where the driver has no more. flags: of its storage, where not usual."""
        from ctypes import byref, c_uint

        number = c_uint()
        self.generate(1, byref(number))
        self.bind(COPY_WRITE, number.value)
        if self.storage is not None:
            self.storage(COPY_WRITE, nbytes, None, self.flags if flags is None else flags)
        else:
            self.data(COPY_WRITE, nbytes, None, DYNAMIC_COPY)
        failed = self.error()
        if failed:
            self.free(number.value)
            if failed != OUT_OF_MEMORY:
                raise RuntimeError(f"opengl: a buffer of {nbytes} bytes: error 0x{failed:x}")
            return None
        return number.value

    def free(self, number: int) -> None:
        """Deletes a buffer; the driver keeps its memory while it is used."""
        from ctypes import byref, c_uint

        self.delete(1, byref(c_uint(number)))


class Opened:
    """A device ready for compute: a context, and the thread that serves its stream."""

    def __init__(self, physical: Physical, seconds: float) -> None:
        self.physical = physical
        self.stream = Stream(physical.name, seconds)
        self.context: Any = None
        self.error: BaseException | None = None
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.serve, name="tinyfin-opengl", daemon=True)
        self.thread.start()
        self.ready.wait()
        if self.error is not None:
            raise RuntimeError(f"opengl: {physical.name} could not be opened: {self.error}")
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.stream.orphan)

    def serve(self) -> None:
        """What the context's thread does."""
        try:
            self.context = context(self.physical.settings)
            self.allocator = Allocator(loader(self.context))
            self.stream.connect([self.function(name) for name in FUNCTIONS])
            staging = self.allocator.staging()
            if staging is not None:
                self.stream.stage(*staging)
        except BaseException as error:
            self.error = error
            return
        finally:
            self.ready.set()
        self.stream.serve()
        leave(self.context)

    def function(self, name: str) -> int:
        """The address of a function; robust contexts tell of resets, others have no such function."""
        load = loader(self.context)
        if name == "GetGraphicsResetStatus":
            robust = self.physical.version >= 450
            return load("gl" + name) if robust else 0
        return load("gl" + name)

    def close(self) -> None:
        """Ends the thread before the driver's libraries are unloaded."""
        self.stream.stop()
        self.thread.join(LEAVING_SECONDS)

    def slab(self, nbytes: int) -> Slab:
        """One buffer of the driver.

        Raises:
            MemoryError: the driver has no more.
        """
        buffer = self.stream.call(lambda: self.allocator.allocate(nbytes))
        if buffer is None:
            raise MemoryError(f"{self.physical.name}: {nbytes} bytes refused")
        return Slab(buffer, buffer << ADDRESS_SHIFT, 0, nbytes)

    def free(self, slab: Slab) -> None:
        """Gives a buffer back."""
        self.stream.call(lambda: self.allocator.free(slab.buffer))
