"""Losses over classes, and checks of values."""
from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

KERNELS = {}
