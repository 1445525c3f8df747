"""Backend `null`: shapes and dtypes only, no arithmetic; for dispatch benches and tests without a device."""

from tinyfin.backends.base import Backend
from tinyfin.core import tensor


class NullBackend(Backend):
    """Every row's shape rule runs, no kernel does; reading values is an error."""

    name = device = "null"

    def kernels(self):
        """One kernel that does nothing, for every family."""
        from tinyfin.ops.row import TABLE

        kernel = tensor.empty_kernel()
        return {row.family: kernel for row in TABLE.values() if row.family}

    has_memory = False
