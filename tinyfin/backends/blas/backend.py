"""Backend `blas`: the host, with products of matrices and convolutions by a library found at run time."""

from __future__ import annotations

from tinyfin.backends.base import Backend, kernels_in
from tinyfin.core.device import SLOTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tinyfin.backends.blas.library import Library

MODULES = ("matmul", "conv")
"""Modules of kernels that call the library; all other families stay the CPU's."""
BY_FORMULA = {"matmul_onto": None, "linear_relu": None}
"""Products with an epilogue: the library computes the product."""


class BlasBackend(Backend):
    """The processor, whose matrix products and convolutions a CBLAS library computes."""

    name, device = "blas", "cpu"
    deterministic = False
    library: Library | None = None
    """Loaded when it is first asked for."""
    active = forked = False
    former: int | None = None
    """The library's thread count before it became ours."""

    def missing(self, index: int = 0) -> str | None:
        """Why there is no library; None where there is one, which is loaded then."""
        if self.library is None:
            from tinyfin.backends.blas.library import Unusable, find

            try:
                self.library = find()
            except Unusable as error:
                return str(error)
            self.watch_forks()
        if self.forked and self.library.maker == "Accelerate":
            return "Accelerate does not work in a child of fork, whose parent has loaded it"
        return None

    def about(self) -> str:
        """The library's version, the width of its integers, its threads and its file."""
        from tinyfin.backends.cpu.threads import get_num_threads

        if self.missing() is not None or self.library is None:
            return ""
        threads = self.library.threads()
        if threads is not None and not self.active and self.library.parallel():
            threads = get_num_threads()
        count = "threads as it decides" if threads is None else f"threads: {threads}"
        return (
            f"{self.library.version()}; {self.library.bits}-bit integers, {count}; "
            f"{self.library.path}"
        )

    def activate(self) -> None:
        """Gives rows the library's kernels, and the library our thread count."""
        from tinyfin.backends.blas import cblas
        from tinyfin.backends.cpu import threads
        from tinyfin.ops import table

        found = self.library
        assert found is not None  # backend_set has asked missing()
        cblas.connect(*found.addresses(), found.bits == 64, found.parallel() == 0)
        cblas.connect_threads(*found.thread_setter(), found.for_all_threads())
        self.former, self.active = found.threads(), True
        self.set_threads(threads.get_num_threads())
        threads.WATCHERS.append(self.set_threads)
        kernels = kernels_in("blas", MODULES)
        table.connect(SLOTS[self.device], {**kernels, **BY_FORMULA}, inexact=kernels)

    def deactivate(self) -> None:
        """Gives rows the CPU's kernels, and the library the thread count that it had."""
        from tinyfin.backends.blas import cblas
        from tinyfin.backends.cpu import threads
        from tinyfin.ops import table

        table.connect(SLOTS[self.device], kernels_in("cpu", MODULES))
        threads.WATCHERS.remove(self.set_threads)
        cblas.disconnect()
        if self.former is not None:
            self.set_threads(self.former)
        self.active = False

    def set_threads(self, n: int) -> None:
        """Sets how many threads the library uses."""
        from tinyfin.backends.blas import cblas

        cblas.set_threads(1 if self.single() else n)

    def watch_forks(self) -> None:
        """Children of a fork have the library, but none of its threads."""
        import os

        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.after_fork)

    def after_fork(self) -> None:
        """Products go on in the child where the library can; else they are the CPU's own."""
        from tinyfin.backends.blas import cblas
        from tinyfin.backends.cpu.threads import get_num_threads

        self.forked = True
        if not self.active:
            return
        if self.missing() is not None:
            cblas.disconnect()
        elif cblas.forget_tasks() or self.single():
            self.set_threads(get_num_threads())

    def single(self) -> bool:
        """Whether the library is to keep to one thread: after a fork, threads of OpenMP and of
        libraries that do not tell may hang."""
        return self.forked and self.library is not None and self.library.parallel() == 2
