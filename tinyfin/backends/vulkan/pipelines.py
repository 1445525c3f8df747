"""Pipelines: SPIR-V modules of the package, specialised, made when first asked for."""

from __future__ import annotations

from tinyfin.backends.gpu import modules
from tinyfin.backends.gpu.text import PUSH_BYTES
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
        push = vk.VkPushConstantRange(stageFlags=COMPUTE_STAGE, offset=0, size=PUSH_BYTES)
        plan = vk.VkPipelineLayoutCreateInfo(pPushConstantRanges=[push])
        self.plan = vk.vkCreatePipelineLayout(self.device, plan, None)
        self.layout = number(self.plan)

    def make(self, shader: int, constants: tuple[int, ...]) -> int:
        """The handle of a compute pipeline of a module with its specialization constants."""
        vk = api()
        ffi = vk.ffi

        constants = constants[: len(modules.shaders()[shader]["constants"])]
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
        return number(made[0])

    def module(self, shader: int) -> Any:
        """The module of a number."""
        vk = api()

        if shader not in self.modules:
            code = modules.spirv(shader, self.soft)
            info = vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)
            self.modules[shader] = vk.vkCreateShaderModule(self.device, info, None)
        return self.modules[shader]
