"""Vulkan devices: which there are, what they can do, and one opened for compute.

Everything here runs once and goes through the package `vulkan`; what runs at each call is in record.pyx.
"""

from __future__ import annotations

from tinyfin.backends.gpu.slabs import Slab
from tinyfin.backends.vulkan import cooperative
from tinyfin.backends.vulkan.record import FUNCTIONS, QUERIES, RING, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

INSTALL = "pip install 'tinyfin[vulkan]'"
DRIVERS = "on Debian and Ubuntu: apt install libvulkan1 mesa-vulkan-drivers"
BASIC = ("shaderInt16",)
ELEVEN = ("storageBuffer16BitAccess",)
TWELVE = (
    "bufferDeviceAddress",
    "timelineSemaphore",
    "scalarBlockLayout",
    "storageBuffer8BitAccess",
    "shaderInt8",
)
"""Features of Vulkan 1.0, 1.1 and 1.2 without which a device is passed over."""
CAPABILITIES = (
    "Matrix",
    "Shader",
    "Int16",
    "Int8",
    "StorageBuffer16BitAccess",
    "StorageBuffer8BitAccess",
    "PhysicalStorageBufferAddresses",
)
"""What SPIR-V may declare with these features on."""
INVOCATIONS = 256
"""Of the kernels' largest work groups."""
RANK = {2: 0, 1: 1, 3: 2, 0: 3, 4: 4}
"""Device types in the order in which they are numbered: discrete, integrated, virtual, other, software."""
KINDS = {0: "other", 1: "integrated", 2: "discrete", 3: "virtual", 4: "software"}

DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT, HOST_CACHED = 1, 2, 4, 8
UNIFIED = DEVICE_LOCAL | HOST_VISIBLE | HOST_COHERENT | HOST_CACHED
STORAGE, TRANSFER_SOURCE, TRANSFER_TARGET, ADDRESS = 0x20, 1, 2, 0x20000
"""Usages of buffers; the package lacks the last name."""
ALLOCATE_ADDRESS = 2
RESETTABLE, TIMELINE = 2, 1


def api() -> Any:
    """The package `vulkan`: bindings to the loader that it finds on the machine."""
    from importlib import import_module

    return import_module("vulkan")


class State:
    """The instance of this process, made when first asked for."""

    instance: Any = None
    found: list[Physical] | None = None
    reason: str | None = None


class Physical:
    """A device of the machine, before it is opened."""

    def __init__(self, handle: Any) -> None:
        vk = api()

        properties = vk.vkGetPhysicalDeviceProperties(handle)
        self.handle = handle
        self.name: str = properties.deviceName
        self.kind = KINDS.get(properties.deviceType, "other")
        self.rank = RANK.get(properties.deviceType, 3)
        self.version = (properties.apiVersion >> 22 & 0x7F, properties.apiVersion >> 12 & 0x3FF)
        self.driver: int = properties.driverVersion
        self.cache_id = bytes(properties.pipelineCacheUUID).hex()
        limits = properties.limits
        self.shared_bytes: int = limits.maxComputeSharedMemorySize
        self.push_bytes: int = limits.maxPushConstantsSize
        self.groups = tuple(limits.maxComputeWorkGroupCount)
        self.invocations: int = limits.maxComputeWorkGroupInvocations
        self.group = tuple(limits.maxComputeWorkGroupSize)
        self.tick: float = limits.timestampPeriod
        self.float64 = self.int64 = False
        self.cooperative = 0

    def lacks(self) -> str | None:
        """What tinyfin needs and the device has not; None where it can be used."""
        vk = api()

        if self.version < (1, 3):
            return f"{self.name} has Vulkan {self.version[0]}.{self.version[1]}, 1.3 is needed"
        twelve = vk.VkPhysicalDeviceVulkan12Features()
        eleven = vk.VkPhysicalDeviceVulkan11Features(pNext=twelve)
        every = vk.VkPhysicalDeviceFeatures2(pNext=eleven)
        vk.vkGetPhysicalDeviceFeatures2(self.handle, every)
        self.float64 = bool(every.features.shaderFloat64)
        self.int64 = bool(every.features.shaderInt64)
        self.cooperative = cooperative.offered(vk, State.instance, self.handle)
        missing = [
            name
            for have, names in ((every.features, BASIC), (eleven, ELEVEN), (twelve, TWELVE))
            for name in names
            if not getattr(have, name)
        ]
        if self.invocations < INVOCATIONS:
            missing.append(f"work groups of {INVOCATIONS} invocations (it has {self.invocations})")
        return f"{self.name} lacks {', '.join(missing)}" if missing else None

    def limits(self) -> dict[str, Any]:
        """What modules may ask for, as gpu/reflect.py compares it."""
        return {
            "shared_bytes": self.shared_bytes,
            "push_bytes": self.push_bytes,
            "invocations": self.invocations,
            "group": self.group,
            "capabilities": {
                *CAPABILITIES,
                *(["Int64"] if self.int64 else []),
                *(["Float64"] if self.float64 else []),
                *cooperative.capabilities(self.cooperative),
            },
        }


def find() -> list[Physical]:
    """The devices that can be used, best first; software only behind hardware."""
    if State.found is None:
        State.found, State.reason = look()
    return State.found


def look() -> tuple[list[Physical], str | None]:
    """(devices, why there are none)."""
    try:
        vk = api()
    except ImportError:
        return [], f"the package 'vulkan' is not installed; {INSTALL}"
    except OSError as error:
        return [], f"the Vulkan loader is missing ({error}); {DRIVERS}"
    try:
        about = vk.VkApplicationInfo(
            pApplicationName="tinyfin",
            applicationVersion=1,
            pEngineName="tinyfin",
            engineVersion=1,
            apiVersion=vk.VK_MAKE_VERSION(1, 3, 0),
        )
        State.instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=about), None)
        handles = vk.vkEnumeratePhysicalDevices(State.instance)
    except Exception as error:  # the package has a class of its own for each result code
        return [], f"no Vulkan driver answers ({type(error).__name__}); {DRIVERS}"
    every = [Physical(h) for h in handles]
    usable = sorted((p for p in every if p.lacks() is None), key=lambda p: p.rank)
    if usable:
        return usable, None
    why = "; ".join(str(p.lacks()) for p in every) or f"no device was found; {DRIVERS}"
    return [], f"{why}; the backend opengl asks for less"


class Opened:
    """A device ready for compute: queue, memory types, and its functions' addresses for record.pyx."""

    def __init__(self, physical: Physical) -> None:
        vk = api()

        self.physical = physical
        self.family = compute_family(physical)
        queue = vk.VkDeviceQueueCreateInfo(
            queueFamilyIndex=self.family, queueCount=1, pQueuePriorities=[1.0]
        )
        # float64 also serves to emulate fused multiply-add where the driver does not fuse
        basic = vk.VkPhysicalDeviceFeatures(
            shaderFloat64=int(physical.float64), shaderInt64=int(physical.int64), shaderInt16=1
        )
        chain, more, extensions = cooperative.switched_on(vk, physical.cooperative)
        twelve = vk.VkPhysicalDeviceVulkan12Features(
            pNext=chain, **dict.fromkeys(TWELVE, 1), **more
        )
        eleven = vk.VkPhysicalDeviceVulkan11Features(pNext=twelve, **dict.fromkeys(ELEVEN, 1))
        info = vk.VkDeviceCreateInfo(
            pNext=eleven,
            pQueueCreateInfos=[queue],
            pEnabledFeatures=basic,
            ppEnabledExtensionNames=extensions,
        )
        self.handle = vk.vkCreateDevice(physical.handle, info, None)
        self.queue = vk.vkGetDeviceQueue(self.handle, self.family, 0)
        memory = vk.vkGetPhysicalDeviceMemoryProperties(physical.handle)
        self.types = [
            (memory.memoryTypes[i].propertyFlags, memory.memoryTypes[i].heapIndex)
            for i in range(memory.memoryTypeCount)
        ]
        self.heaps = [memory.memoryHeaps[i].size for i in range(memory.memoryHeapCount)]

    def function(self, name: str) -> int:
        """The address of one of the device's functions."""
        ffi, lib = api().ffi, api().lib

        found = lib.vkGetDeviceProcAddr(self.handle, name.encode())
        if found == ffi.NULL:
            raise RuntimeError(f"vulkan: {self.physical.name} has no function {name}")
        return int(ffi.cast("uintptr_t", found))

    def memory_type(self, wishes: Sequence[int], allowed: int = -1) -> int | None:
        """The first type with all the properties of the first wish that can be had.

        Args:
            allowed: the types that may be taken, as bits.
        """
        for wanted in wishes:
            for i, (flags, _) in enumerate(self.types):
                if flags & wanted == wanted and allowed >> i & 1:
                    return i
        return None

    def slab(self, nbytes: int, wishes: Sequence[int], mapped: bool) -> Slab:
        """One allocation with a buffer over it, addressable by kernels.

        Args:
            wishes: properties of the memory, the best first.

        Raises:
            MemoryError: the driver has no more, or none of the kinds.
        """
        vk = api()
        ffi, lib = vk.ffi, vk.lib

        usage = STORAGE | TRANSFER_SOURCE | TRANSFER_TARGET | ADDRESS
        info = vk.VkBufferCreateInfo(size=nbytes, usage=usage, sharingMode=0)
        buffer = memory = None
        try:
            buffer = vk.vkCreateBuffer(self.handle, info, None)
            needed = vk.vkGetBufferMemoryRequirements(self.handle, buffer)
            kind = self.memory_type(wishes, needed.memoryTypeBits)
            if kind is None:
                raise MemoryError(
                    f"{self.physical.name}: no memory of the kinds {wishes} for buffers"
                )
            flags = vk.VkMemoryAllocateFlagsInfo(flags=ALLOCATE_ADDRESS)
            ask = vk.VkMemoryAllocateInfo(
                pNext=flags, allocationSize=needed.size, memoryTypeIndex=kind
            )
            memory = vk.vkAllocateMemory(self.handle, ask, None)
            vk.vkBindBufferMemory(self.handle, buffer, memory, 0)
            host = 0
            if mapped:
                place = ffi.new("void **")
                if lib.vkMapMemory(self.handle, memory, 0, nbytes, 0, place):
                    raise MemoryError(f"{self.physical.name}: {nbytes} bytes could not be mapped")
                host = number(place[0])
        except BaseException as error:
            if buffer is not None:
                vk.vkDestroyBuffer(self.handle, buffer, None)
            if memory is not None:
                vk.vkFreeMemory(self.handle, memory, None)
            if isinstance(error, (vk.VkErrorOutOfDeviceMemory, vk.VkErrorOutOfHostMemory)):
                raise MemoryError(f"{self.physical.name}: {nbytes} bytes refused") from None
            raise
        where = vk.VkBufferDeviceAddressInfo(buffer=buffer)
        address = lib.vkGetBufferDeviceAddress(self.handle, ffi.addressof(where))
        return Slab(number(buffer), address, host, nbytes, (buffer, memory))

    def free(self, slab: Slab) -> None:
        """Gives an allocation back; the device must be done with it."""
        vk = api()

        buffer, memory = slab.owner
        vk.vkDestroyBuffer(self.handle, buffer, None)
        vk.vkFreeMemory(self.handle, memory, None)

    def stream(self, seconds: float) -> Stream:
        """The device's queue, with a ring of command buffers and a timeline."""
        vk = api()

        pool = vk.vkCreateCommandPool(
            self.handle,
            vk.VkCommandPoolCreateInfo(flags=RESETTABLE, queueFamilyIndex=self.family),
            None,
        )
        ask = vk.VkCommandBufferAllocateInfo(commandPool=pool, level=0, commandBufferCount=RING)
        buffers = vk.vkAllocateCommandBuffers(self.handle, ask)
        kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=TIMELINE, initialValue=0)
        semaphore = vk.vkCreateSemaphore(self.handle, vk.VkSemaphoreCreateInfo(pNext=kind), None)
        return Stream(
            self.physical.name,
            [self.function("vk" + name) for name in FUNCTIONS],
            number(self.handle),
            number(self.queue),
            number(semaphore),
            [number(b) for b in buffers],
            seconds,
        )

    @property
    def tick(self) -> float:
        """Nanoseconds of a timestamp's unit; 0 where the queue takes none."""
        vk = api()

        families = vk.vkGetPhysicalDeviceQueueFamilyProperties(self.physical.handle)
        return self.physical.tick if families[self.family].timestampValidBits else 0.0

    def query_pool(self) -> int:
        """A pool of as many timestamps as a stream takes."""
        vk = api()

        info = vk.VkQueryPoolCreateInfo(queryType=vk.VK_QUERY_TYPE_TIMESTAMP, queryCount=QUERIES)
        return number(vk.vkCreateQueryPool(self.handle, info, None))

    def destroy_query_pool(self, pool: int) -> None:
        """Gives a pool back that no work uses any more."""
        vk = api()

        vk.vkDestroyQueryPool(self.handle, vk.ffi.cast("VkQueryPool", pool), None)

    @property
    def unified(self) -> int | None:
        """The type of memory that both the device and the host use at full speed, if there is one."""
        return self.memory_type((UNIFIED,))


def compute_family(physical: Physical) -> int:
    """The first queue family that computes."""
    vk = api()

    for i, f in enumerate(vk.vkGetPhysicalDeviceQueueFamilyProperties(physical.handle)):
        if f.queueFlags & vk.VK_QUEUE_COMPUTE_BIT:
            return i
    raise RuntimeError(f"vulkan: {physical.name} has no queue that computes")


def number(handle: Any) -> int:
    """A handle of the package as a number."""
    ffi = api().ffi

    return int(ffi.cast("uintptr_t", handle))
