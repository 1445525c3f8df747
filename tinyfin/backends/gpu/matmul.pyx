"""Matrix products."""
from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

KERNELS = {}
