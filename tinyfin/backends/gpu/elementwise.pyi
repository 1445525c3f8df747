"""Type stub of the compiled elementwise kernels for Vulkan."""

from typing import Any

KERNELS: dict[str, Any]
