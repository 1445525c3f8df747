"""Backend `opengl`: tensors on any device with an OpenGL 4.3 driver, without a window."""

from __future__ import annotations

from tinyfin import config
from tinyfin.backends.gpu.backend import GPUBackend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tinyfin.backends.opengl.device import Physical
    from tinyfin.backends.opengl.memory import Device


class OpenGLBackend(GPUBackend):
    """Devices with an OpenGL driver."""

    name = device = "opengl"

    def find(self) -> tuple[list[Physical], str | None]:
        """The devices that can be used, best first, or why there are none."""
        from tinyfin.backends.gpu import modules
        from tinyfin.backends.opengl import device

        reason = modules.wrong()
        if reason is not None:
            return [], reason
        return device.find(), device.State.reason

    def new_device(self, physical: Physical) -> Device:
        """Opens a device."""
        from tinyfin.backends.opengl.device import Opened
        from tinyfin.backends.opengl.memory import Device

        return Device(Opened(physical, config.GPU_TIMEOUT))
