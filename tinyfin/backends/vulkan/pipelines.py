"""Pipelines: SPIR-V modules of the package, specialised and kept, made when first asked for."""

from __future__ import annotations

import pathlib

from tinyfin.backends.vulkan.device import api, number
from tinyfin.ops.row import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tinyfin.backends.vulkan.device import Opened

FOLDER = pathlib.Path(__file__).parent.parent / "gpu" / "spirv"
PUSH_BYTES = 128
COMPUTE_STAGE = 0x20
FLOAT_FROM = 6
"""Dtype ids from here on are computed in float."""


def built() -> bool:
    """Whether the shaders were compiled when the package was built."""
    return any(path.stat().st_size for path in FOLDER.glob("*.spv"))


class Pipelines(dict):
    """key of a call -> handle of its pipeline.

    A key holds what elementwise.pyx packs: row, dtype computed in, dense, number of operands, dtypes.
    """

    def __init__(self, opened: Opened) -> None:
        vk = api()

        self.device = opened.handle
        self.variant = ""
        self.modules: dict[str, Any] = {}
        self.names = [r.name for r in TABLE.values() if r.expr is not None]
        span = vk.VkPushConstantRange(stageFlags=COMPUTE_STAGE, offset=0, size=PUSH_BYTES)
        self.plan = vk.vkCreatePipelineLayout(
            self.device, vk.VkPipelineLayoutCreateInfo(pPushConstantRanges=[span]), None
        )
        self.layout = number(self.plan)

    def __missing__(self, key: int) -> int:
        operands = key >> 21 & 7
        compute = key >> 16 & 15
        types = [key >> (24 + 5 * k) & 31 for k in range(operands)]
        inputs = (types[1:] + [0, 0])[:3]
        kind = "f32" if compute >= FLOAT_FROM else "int"
        constants = (key & 0xFFFF, *inputs, types[0], compute, key >> 20 & 1)
        variant = self.variant if kind == "f32" else ""
        handle = self.build(f"elementwise_{kind}_{operands - 1}{variant}", constants)
        self[key] = number(handle)
        return self[key]

    def use(self, variant: str) -> None:
        """Takes float modules of another variant: `_soft` emulates fused multiply-add."""
        self.variant = variant
        self.clear()

    def build(self, module: str, constants: tuple[int, ...]) -> Any:
        """A compute pipeline of a module with its specialization constants."""
        vk = api()
        ffi = vk.ffi

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
            module=self.module(module),
            pName="main",
            pSpecializationInfo=chosen,
        )
        info = vk.VkComputePipelineCreateInfo(stage=stage, layout=self.plan)
        return vk.vkCreateComputePipelines(self.device, None, 1, [info], None)[0]

    def module(self, name: str) -> Any:
        """The module of a file beside this one."""
        vk = api()

        if name not in self.modules:
            code = (FOLDER / f"{name}.spv").read_bytes()
            info = vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)
            self.modules[name] = vk.vkCreateShaderModule(self.device, info, None)
        return self.modules[name]
