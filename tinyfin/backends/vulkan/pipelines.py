"""Pipelines: SPIR-V modules of the package, specialised, made when first asked for."""

from __future__ import annotations

from tinyfin.backends.gpu import modules, reflect
from tinyfin.backends.gpu.text import PUSH_BYTES, device_constants
from tinyfin.backends.vulkan.device import api, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tinyfin.backends.vulkan.cache import PipelineCache
    from tinyfin.backends.vulkan.device import Opened

COMPUTE_STAGE = 0x20


class Pipelines:
    """Maker of one device's pipelines.

    Args:
        soft: take the modules that emulate fused multiply-add.
    """

    def __init__(self, opened: Opened, cache: PipelineCache, soft: bool = False) -> None:
        vk = api()

        self.device, self.limits, self.soft = opened.handle, opened.physical, soft
        self.cache = cache
        self.modules: dict[int, Any] = {}
        self.codes: dict[int, bytes] = {}
        self.made: dict[tuple[int, tuple[int, ...]], Any] = {}
        push = vk.VkPushConstantRange(stageFlags=COMPUTE_STAGE, offset=0, size=PUSH_BYTES)
        plan = vk.VkPipelineLayoutCreateInfo(pPushConstantRanges=[push])
        self.plan = vk.vkCreatePipelineLayout(self.device, plan, None)
        self.layout = number(self.plan)

    def make(self, shader: int, constants: tuple[int, ...]) -> int:
        """The handle of a compute pipeline of a module with its specialization constants."""
        vk = api()
        ffi = vk.ffi

        about = modules.shaders()[shader]
        constants = device_constants(
            about, modules.telling(shader, constants, behind=True), self.soft
        )
        if (shader, constants) in self.made:
            return number(self.made[shader, constants])
        shared = reflect.Module(self.code(shader), constants).shared_bytes
        if shared > self.limits.shared_bytes:
            # some drivers make it all the same, and are lost when it runs
            raise RuntimeError(
                f"{about['name']} needs {shared} bytes of shared memory, {self.limits.name} has "
                f"{self.limits.shared_bytes}"
            )
        values = ffi.new("uint32_t[]", list(constants))
        entries = [
            vk.VkSpecializationMapEntry(constantID=i, offset=4 * i, size=4)
            for i in range(len(constants))
        ]
        chosen = vk.VkSpecializationInfo(
            pMapEntries=entries, dataSize=4 * len(constants), pData=values
        )
        # the package frees what is built inside another structure: each has a name of its own
        stage = vk.VkPipelineShaderStageCreateInfo(
            stage=COMPUTE_STAGE,
            module=self.module(shader),
            pName="main",
            pSpecializationInfo=chosen,
        )
        info = vk.VkComputePipelineCreateInfo(stage=stage, layout=self.plan)
        self.cache.made += 1
        made = vk.vkCreateComputePipelines(self.device, self.cache.handle, 1, [info], None)
        self.made[shader, constants] = made[0]
        return number(made[0])

    def destroy(self) -> None:
        """Gives everything back to the driver; the device must be done with it."""
        vk = api()

        for pipeline in self.made.values():
            vk.vkDestroyPipeline(self.device, pipeline, None)
        for module in self.modules.values():
            vk.vkDestroyShaderModule(self.device, module, None)
        vk.vkDestroyPipelineLayout(self.device, self.plan, None)
        self.made.clear()
        self.modules.clear()

    def code(self, shader: int) -> bytes:
        """The SPIR-V of a number."""
        if shader not in self.codes:
            self.codes[shader] = modules.spirv(shader, self.soft)
        return self.codes[shader]

    def module(self, shader: int) -> Any:
        """The module of a number."""
        vk = api()

        if shader not in self.modules:
            code = self.code(shader)
            info = vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)
            self.modules[shader] = vk.vkCreateShaderModule(self.device, info, None)
        return self.modules[shader]
