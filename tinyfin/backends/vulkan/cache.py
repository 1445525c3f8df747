"""The driver's compiled pipelines on disk, one file for each device and driver.

A file is a CRC32 of our shaders and the driver's data, and that data; one that does not match is left unread,
and written over by the next process that makes pipelines.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pathlib
import zlib

from tinyfin import config
from tinyfin.backends.base import warn
from tinyfin.backends.gpu import modules
from tinyfin.backends.vulkan.device import api

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tinyfin.backends.vulkan.device import Opened


class PipelineCache:
    """What the driver keeps of the pipelines that it compiled for one device."""

    def __init__(self, opened: Opened) -> None:
        vk = api()

        self.device, self.path = opened.handle, path_for(opened)
        data = read(self.path)
        start = vk.ffi.from_buffer(data)
        info = vk.VkPipelineCacheCreateInfo(initialDataSize=len(data), pInitialData=start)
        self.handle = vk.vkCreatePipelineCache(self.device, info, None)
        self.process = os.getpid()  # a forked child has no say
        self.made = 0
        """Pipelines since the file was read or written."""
        if self.path is not None:
            atexit.register(self.save)

    def data(self) -> bytes:
        """What the driver would have written."""
        vk = api()
        ffi, lib = vk.ffi, vk.lib

        size = ffi.new("size_t *")
        if lib.vkGetPipelineCacheData(self.device, self.handle, size, ffi.NULL) or not size[0]:
            return b""
        room = ffi.new("char[]", size[0])
        if lib.vkGetPipelineCacheData(self.device, self.handle, size, room):
            return b""
        return bytes(ffi.buffer(room, size[0]))

    def save(self) -> None:
        """Writes the file where pipelines were made; a full or forbidden disk costs only the file, and is told."""
        if self.path is None or not self.made or os.getpid() != self.process:
            return
        data = self.data()
        unfinished = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(mark(data) + data)
            unfinished.replace(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            warn(
                f"compiled pipelines cannot be kept in {self.path.parent} ({error.strerror or error}), so that each "
                "process makes them anew; set TINYFIN_CACHE to a folder that can be written, or to nothing"
            )
        self.made = 0


def path_for(opened: Opened) -> pathlib.Path | None:
    """The file of a device and its driver; None where nothing is to be kept."""
    if not config.CACHE:
        return None
    physical = opened.physical
    name = f"vulkan-{physical.cache_id}-{physical.driver:08x}.bin"
    return pathlib.Path(config.CACHE).expanduser() / name


def mark(data: bytes) -> bytes:
    """What stands before the data: it changes with the shaders and with the data."""
    check = zlib.crc32(data)
    for info in modules.archive().infolist():
        check = zlib.crc32(info.CRC.to_bytes(4, "little"), check)
    return check.to_bytes(4, "little")


def read(path: pathlib.Path | None) -> bytes:
    """A file's data, or nothing."""
    try:
        content = b"" if path is None else path.read_bytes()
    except OSError:
        return b""
    found, data = content[:4], content[4:]
    return data if found == mark(data) else b""
