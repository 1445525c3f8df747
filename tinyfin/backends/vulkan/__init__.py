"""Backend `vulkan`: compute through any Vulkan 1.3 driver."""
