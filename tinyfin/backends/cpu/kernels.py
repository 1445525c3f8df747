"""Backend `cpu`: the table of its kernels, the only door of this folder."""

from importlib import import_module

from tinyfin.backends.base import Backend
from tinyfin.ops.row import hash_of_expressions

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
        from tinyfin.backends.cpu.isa import ROWS_HASH

        if hash_of_expressions() != ROWS_HASH:
            raise ImportError(
                "tinyfin: the compiled loops were generated from other rows than tinyfin/ops holds; "
                "install again with 'pip install .'"
            )
        found = {}
        for name in MODULES:
            found.update(import_module(f"tinyfin.backends.cpu.{name}").KERNELS)
        return found
