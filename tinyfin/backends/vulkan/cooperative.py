"""Matrices that a group of invocations multiplies together: whether a device has those that kernels use.

These are halves of 16 x 16 with float32 sums, in groups of 32 (`shaders/matmul_cooperative.glsl`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HALVES, BFLOATS = 1, 2
"""Types of elements, as bits; the numbers that `set_device` takes."""
EXTENSION, BFLOAT_EXTENSION = "VK_KHR_cooperative_matrix", "VK_KHR_shader_bfloat16"
BFLOAT_FEATURES = BFLOAT_TYPE = 1000141000
"""Vulkan's numbers of a structure and of a type of elements, which the package `vulkan` lacks."""
COMPONENTS = {HALVES: 0, BFLOATS: BFLOAT_TYPE}
FLOAT32, SUBGROUP = 1, 3
GROUP = 32
SHARED_BYTES = 48 << 10
"""Shared memory that the largest tiles take, rounded up."""
CAPABILITIES = {
    0: (),
    HALVES: ("Float16",),
    BFLOATS: ("BFloat16TypeKHR", "BFloat16CooperativeMatrixKHR"),
}
SHARED = ("GroupNonUniform", "VulkanMemoryModel", "CooperativeMatrixKHR")


def bfloat_features(vk: Any, **more: Any) -> Any:
    """VkPhysicalDeviceShaderBfloat16FeaturesKHR: the first and the third member are of interest here.

    The package lacks it; this structure has the same members under other names.
    """
    return vk.VkPhysicalDevice8BitStorageFeatures(sType=BFLOAT_FEATURES, **more)


def offered(vk: Any, instance: Any, device: Any) -> int:
    """The types of elements that a device multiplies, as bits; `device` is one with Vulkan 1.2 at least."""
    names = {e.extensionName for e in vk.vkEnumerateDeviceExtensionProperties(device, None)}
    if EXTENSION not in names:
        return 0
    control = vk.VkPhysicalDeviceSubgroupSizeControlProperties()
    eleven = vk.VkPhysicalDeviceVulkan11Properties(pNext=control)
    vk.vkGetPhysicalDeviceProperties2(device, vk.VkPhysicalDeviceProperties2(pNext=eleven))
    bfloat = bfloat_features(vk)
    twelve = vk.VkPhysicalDeviceVulkan12Features(
        **({"pNext": bfloat} if BFLOAT_EXTENSION in names else {})
    )
    matrices = vk.VkPhysicalDeviceCooperativeMatrixFeaturesKHR(pNext=twelve)
    vk.vkGetPhysicalDeviceFeatures2(device, vk.VkPhysicalDeviceFeatures2(pNext=matrices))
    # pipelines may have any size in this range, and the bodies count on 32
    if {eleven.subgroupSize, control.minSubgroupSize, control.maxSubgroupSize} != {GROUP} or not (
        matrices.cooperativeMatrix and twelve.vulkanMemoryModel
    ):
        return 0
    if vk.vkGetPhysicalDeviceProperties(device).limits.maxComputeSharedMemorySize < SHARED_BYTES:
        return 0
    listed = sizes(vk, instance, device)
    found = HALVES if twelve.shaderFloat16 and COMPONENTS[HALVES] in listed else 0
    if bfloat.storageBuffer8BitAccess and bfloat.storagePushConstant8 and BFLOAT_TYPE in listed:
        found |= BFLOATS  # shaderBFloat16Type and shaderBFloat16CooperativeMatrix
    return found


def sizes(vk: Any, instance: Any, device: Any) -> set[int]:
    """The types of elements that come as matrices of 16 x 16 with float32 sums."""
    ffi = vk.ffi
    name = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"
    address = vk.lib.vkGetInstanceProcAddr(instance, name.encode())
    if address == ffi.NULL:
        return set()
    # the package's own function leaves the structures' types unset
    ask = ffi.cast("PFN_" + name, address)
    count = ffi.new("uint32_t *")
    if ask(device, count, ffi.NULL):
        return set()
    every = ffi.new("VkCooperativeMatrixPropertiesKHR[]", count[0])
    for one in every:
        one.sType = vk.VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR
    if ask(device, count, every):
        return set()
    return {
        int(p.AType)
        for p in every[0 : count[0]]
        if p.AType == p.BType
        and p.CType == p.ResultType == FLOAT32
        and p.scope == SUBGROUP
        and (p.MSize, p.NSize, p.KSize) == (16, 16, 16)
        and not p.saturatingAccumulation
    }


def switched_on(vk: Any, types: int) -> tuple[Any, dict[str, int], list[str]]:
    """(structures for the creation of a device, features of Vulkan 1.2, extensions) for types of elements."""
    if not types:
        return None, {}, []
    bfloat, names = None, [EXTENSION]
    if types & BFLOATS:
        bfloat = bfloat_features(vk, storageBuffer8BitAccess=1, storagePushConstant8=1)
        names.append(BFLOAT_EXTENSION)
    chain = vk.VkPhysicalDeviceCooperativeMatrixFeaturesKHR(
        cooperativeMatrix=1, **({} if bfloat is None else {"pNext": bfloat})
    )
    features = {"vulkanMemoryModel": 1, "shaderFloat16": int(bool(types & HALVES))}
    return chain, features, names


def capabilities(types: int) -> set[str]:
    """What SPIR-V may declare then."""
    if not types:
        return set()
    return {*SHARED, *CAPABILITIES[types & HALVES], *CAPABILITIES[types & BFLOATS]}
