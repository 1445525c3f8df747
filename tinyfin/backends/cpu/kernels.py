"""Backend `cpu`: the table of its kernels, the only door of this folder."""

from importlib import import_module

from tinyfin.backends.base import Backend

MODULES = (
    "elementwise",
    "reduce",
    "extremum",
    "scan",
    "sort",
    "index",
    "gather",
    "join",
    "random",
    "matmul",
    "conv",
    "pool",
    "norm",
    "batchnorm",
    "loss",
    "attention",
    "step",
)


class CpuBackend(Backend):
    """The processor, with kernels for the best instruction set it has."""

    name = device = "cpu"

    def kernels(self):
        """family -> kernel of all modules."""
        found = {}
        for name in MODULES:
            found.update(import_module(f"tinyfin.backends.cpu.{name}").KERNELS)
        return found
