"""Backend `cpu`: the table of its kernels, the only door of this folder."""

from tinyfin.backends.base import CPU_ALONE, MODULES, Backend, kernels_in
from tinyfin.ops.row import hash_of_expressions


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
        return kernels_in("cpu", MODULES + CPU_ALONE)

    def empty_cache(self, index):
        """Gives the pool's memory back, and that for kernels' temporaries which threads keep."""
        from tinyfin.backends.cpu.threads import release_scratch

        release_scratch()
        super().empty_cache(index)
