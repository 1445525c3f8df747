"""The table of backends: what there is, which one new tensors use, and what a missing one lacks."""

from __future__ import annotations

from tinyfin.core import storage, tensor
from tinyfin.core.device import SLOTS, Device, add_device_type, device_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any

    from tinyfin.core.device import DeviceLike

REGISTRY: dict[str, Backend] = {}
"""name -> Backend, in the order in which they are listed."""
WATCHERS: list[Callable[[Backend, int], None]] = []
"""Functions that are told of each device that is opened from now on: its backend, its number."""
REFUSED = (
    "refused in deterministic mode: the bits of its results may depend on the library, the processor and the "
    "number of threads; use backend_set('cpu'), or leave that mode with use_deterministic_algorithms(False) "
    "or without TINYFIN_DETERMINISTIC"
)
STATE: dict[str, Any] = {"name": "cpu", "warned": set(), "found": False}
DETERMINISTIC = 4
"""The mode word's bit."""


class Backend:
    """One entry of the table. Subclasses say how to open it and which kernels it has.

    A third party's backend is a subclass offered through the entry point group `tinyfin.backends`.
    """

    name: str = ""
    device: str = ""
    """Device type on which its tensors live; `cpu` for backends that share the host's memory."""
    inexact: Collection[str] = ()
    """Families whose kernels may give other bits from run to run, or than other devices: refused in
    deterministic mode."""
    deterministic = True
    """Whether deterministic mode may be on while the backend is the default; kernels for the host that
    give other bits rule it out."""
    has_memory = True
    """Whether tensors have bytes; where they have none, `allocate` is not asked for any."""
    opened = False

    def missing(self, index: int = 0) -> str | None:
        """Why the backend, or its device of a number, cannot be used here and what would help; None
        where it can."""
        return None

    def devices(self) -> list[str]:
        """What its devices are called, in the order of their numbers; nothing for the host itself."""
        return []

    def about(self) -> str:
        """What `tinyfin info` says of it besides its devices; nothing where there is nothing to say."""
        return ""

    def kernels(self) -> dict[str, Any]:
        """family -> kernel capsule, or (capsule, variant)."""
        return {}

    def allocate(self, nbytes: int, index: int) -> Any:
        """An object that owns `nbytes` bytes on the device.

        Where it has the buffer protocol, kernels find the bytes' address in `tf_view.data`; else its
        attribute `block`, a number, stands in `tf_view.block`.
        """
        raise NotImplementedError(f"backend {self.name} allocates nothing")

    def write(self, block: Any, offset: int, data: memoryview) -> None:
        """Writes bytes into a block that allocate gave, `offset` bytes from its first; the caller may
        change `data` afterwards."""
        memoryview(block).cast("B")[offset : offset + len(data)] = data

    def read(self, block: Any, offset: int, out: memoryview) -> None:
        """Fills `out` with a block's bytes from `offset` on, when all work on it is done."""
        out[:] = memoryview(block).cast("B")[offset : offset + len(out)]

    def synchronize(self, index: int) -> None:
        """Waits until a device has done what was asked of it."""

    def used(self) -> Iterable[int]:
        """Numbers of the devices that may have work; all of them, where the backend does not know."""
        return range(max(1, len(self.devices())))

    def time(self, index: int) -> bool:
        """Begins to take the time of each dispatch on a device; whether it can."""
        return False

    def untime(self, index: int) -> tuple[int, list[tuple[int, int]]]:
        """Ends it: (number of the first dispatch, begin and end of each in nanoseconds of perf_counter_ns())."""
        raise NotImplementedError(f"backend {self.name} takes no times")

    def memory_stats(self, index: int) -> dict[str, int | None]:
        """Counters of a device's memory, with the keys of `tinyfin.memory_stats`; the host's where the
        backend has no pool of its own."""
        return storage.memory_stats()

    def empty_cache(self, index: int) -> None:
        """Gives memory that no tensor uses back."""
        storage.empty_cache()

    def set_memory_limit(self, limit: int | None, index: int) -> None:
        """Sets the most bytes that living tensors may hold on a device; None removes the limit."""
        storage.set_memory_limit(limit)

    def activate(self) -> None:
        """Called when the backend becomes the default."""

    def deactivate(self) -> None:
        """Called when another backend becomes the default."""

    def open(self) -> None:
        """Connects the kernels; once."""
        if self.opened:
            return
        from tinyfin.ops import table

        slot = SLOTS[self.device]
        if slot != SLOTS["cpu"]:
            tensor.set_allocator(slot, self.allocate if self.has_memory else None)
        table.connect(slot, self.kernels(), self.inexact)
        self.opened = True


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
"""Modules of kernels: a family has the same home in `backends/cpu` and in `backends/gpu`."""
CPU_ALONE = ("copy", "pool_mean", "groupnorm", "resize", "recurrent")
"""Modules that only the processor has: other devices have these families' kernels elsewhere, or run the formulas."""


def kernels_in(folder: str, modules: Iterable[str] = MODULES) -> dict[str, Any]:
    """family -> kernel of modules of a folder, `cpu`, `gpu` or `blas`."""
    from importlib import import_module

    found: dict[str, Any] = {}
    for name in modules:
        found.update(import_module(f"tinyfin.backends.{folder}.{name}").KERNELS)
    return found


def register(backend: Backend) -> None:
    """Enters a backend into the table; a new device type takes a slot from 8 on."""
    if not isinstance(backend, Backend):
        raise TypeError(f"register: got {backend!r}, expected an instance of tinyfin.Backend")
    for what in (backend.name, backend.device):
        if not isinstance(what, str) or not what.isidentifier():
            raise ValueError(f"backend {backend!r}: {what!r} is no name for a backend or device")
    if backend.name in REGISTRY:
        raise ValueError(f"a backend named '{backend.name}' is registered already")
    if backend.device not in SLOTS:
        slot = max(8, *(s + 1 for s in SLOTS.values()))
        if slot > 15:
            raise RuntimeError("all device slots are taken: at most eight third-party backends fit")
        add_device_type(backend.device, slot)
    REGISTRY[backend.name] = backend


def find_plugins() -> None:
    """Backends that installed packages offer; looked up when first asked for."""
    if STATE["found"]:
        return
    STATE["found"] = True
    from importlib.metadata import entry_points

    for point in entry_points(group="tinyfin.backends"):
        if point.name not in REGISTRY:
            try:
                register(point.load()())
            except Exception as error:
                warn(f"backend {point.name} could not be loaded: {error}")


def warn(text: str) -> None:
    """One warning per text, at the line outside of the package that led to it."""
    if text not in STATE["warned"]:
        STATE["warned"].add(text)
        import warnings

        warnings.warn("tinyfin: " + text, RuntimeWarning, stacklevel=level_of_user())


def level_of_user() -> int:
    """How far above its caller the first frame lies that is not the package's; the machinery of import counts for
    nothing, as in `warnings`."""
    import sys

    frame, level = sys._getframe(1), 1
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__") or ""
        if module.partition(".")[0] == "tinyfin":
            level += 1
        elif not module.startswith("importlib._bootstrap"):
            break
        frame = frame.f_back
    return level


def backend_set(name: str) -> bool:
    """Makes a backend the default for everything created afterwards; False, with a warning, where it is not to be had.

    Args:
        name: `cpu`, `blas`, `vulkan`, `vulkan:1`, `opengl`, ...; see `backend_list()`.

    Raises:
        RuntimeError: deterministic mode is on, and the backend cannot keep it.

    >>> import tinyfin
    >>> tinyfin.backend_set("cpu")
    True
    """
    if not isinstance(name, str):
        raise TypeError(f"backend_set: name is {name!r}, expected a string such as 'cpu'")
    base, colon, number = name.partition(":")
    backend = REGISTRY.get(base)
    if backend is not None and tensor.mode() & DETERMINISTIC:
        check_deterministic(name, backend)
    if not usable(name):
        return False
    backend = REGISTRY[base]
    device = Device(backend.device + colon + number)
    backend.open()
    former = REGISTRY[STATE["name"].partition(":")[0]]
    former.deactivate()
    try:
        backend.activate()
    except Exception:
        former.activate()
        raise
    tensor.set_default_backend(device.slot, device.index or 0)
    STATE["name"] = name
    return True


def usable(name: str) -> bool:
    """Whether a backend is to be had now; warns where it is not."""
    reason = unavailable(name)
    if reason is not None:
        warn(reason)
    return reason is None


def check_deterministic(name: str | None = None, backend: Backend | None = None) -> None:
    """An error where deterministic mode and a backend, the default one if None, cannot be together."""
    if backend is None:
        name = STATE["name"]
        backend = REGISTRY[STATE["name"].partition(":")[0]]
    if not backend.deterministic:
        raise RuntimeError(f"backend {name} is {REFUSED}")


def unavailable(name: str) -> str | None:
    """A sentence on why a backend is not to be had; None where it is."""
    base, colon, number = name.partition(":")
    if base not in REGISTRY:
        find_plugins()
    backend = REGISTRY.get(base)
    if backend is None:
        return f"there is no backend named '{name}'; have {', '.join(REGISTRY)}"
    device = device_named(backend.device + colon + number)
    if device is None:
        return (
            f"there is no backend named '{name}'; its devices are named '{base}:0', '{base}:1', ..."
        )
    reason = missing(backend, device)
    return None if reason is None else f"backend {name} is not available: {reason}"


def missing(backend: Backend, device: Device) -> str | None:
    """Why a backend's device cannot be used now; backends with one device need not know of numbers."""
    if not backend.deterministic and tensor.mode() & DETERMINISTIC:
        return REFUSED
    return backend.missing(device.index) if device.index else backend.missing()


def device_named(text: str) -> Device | None:
    """The device, or None where the text names none."""
    try:
        return Device(text)
    except (RuntimeError, ValueError):
        return None


def backend_name() -> str:
    """The name of the default backend."""
    return STATE["name"]


def backend_list() -> dict[str, str | None]:
    """name -> None where the backend can be used, else why not and what would help."""
    find_plugins()
    return {name: missing(backend, Device(backend.device)) for name, backend in REGISTRY.items()}


def backend_support() -> dict[str, dict[str, str]]:
    """operation -> backend -> 'native', 'formula' or 'falls back'; rows that only record are left out."""
    from tinyfin.ops import table

    usable = {}
    for name, reason in backend_list().items():
        if reason is None:
            REGISTRY[name].open()
            usable[name] = SLOTS[REGISTRY[name].device]
    support = {}
    for name, op in table.OPS.items():
        plain = op.plain or op
        if plain.family is None and plain.formula is None and not plain.view:
            continue
        support[name] = {
            b: "native"
            if plain.has_kernel(slot)
            else "formula"
            if plain.formula is not None
            else "falls back"
            for b, slot in usable.items()
        }
    return support


def default_device() -> Device:
    """The device of everything created without naming one."""
    return device_object(*tensor.default_backend())


def place(device: DeviceLike | None) -> tuple[int, int]:
    """(slot, index) of a device, a string or None for the default; opens its backend."""
    if device is None:
        return tensor.default_backend()
    if not isinstance(device, Device):
        if isinstance(device, str) and device.partition(":")[0] not in (*SLOTS, "blas"):
            find_plugins()
        device = Device(device)
    if device.slot:
        for backend in REGISTRY.values():
            if backend.device == device.type:
                reason = missing(backend, device)
                if reason is not None:
                    raise RuntimeError(f"device {device} is not available: {reason}")
                backend.open()
                break
        else:
            raise RuntimeError(
                f"device {device}: this build has no backend for it; have {', '.join(REGISTRY)}"
            )
    return device.slot, device.index or 0


def backend_of(slot: int) -> Backend:
    """The opened backend whose tensors live on devices of a slot."""
    return next(b for b in REGISTRY.values() if SLOTS[b.device] == slot and b.opened)


def synchronize(device: DeviceLike | None = None) -> None:
    """Waits until a device has done what was asked of it; the CPU always has.

    Args:
        device: every device that was used if None.

    Raises:
        RuntimeError: there is no such device here.

    >>> import tinyfin
    >>> tinyfin.synchronize("cpu")
    """
    if device is not None:
        slot, index = place(device)
        backend_of(slot).synchronize(index)
        return
    for backend in REGISTRY.values():
        for index in backend.used() if backend.opened else ():
            backend.synchronize(index)


def memory_stats(device: DeviceLike | None = None) -> dict[str, int | None]:
    """Counters of a device's memory pool, in bytes: live, cached, peak, limit; requests and reused count blocks.

    `live` and `peak` are what tensors hold and held at most, `cached` is kept for the next ones.

    Args:
        device: the default device if None.

    >>> import tinyfin
    >>> sorted(tinyfin.memory_stats())
    ['cached', 'limit', 'live', 'peak', 'requests', 'reused']
    """
    slot, index = place(device)
    return backend_of(slot).memory_stats(index)


def empty_cache(device: DeviceLike | None = None) -> None:
    """Gives memory that no tensor uses back to the system or the driver.

    Args:
        device: the default device if None.

    >>> import tinyfin
    >>> tinyfin.empty_cache()
    """
    slot, index = place(device)
    backend_of(slot).empty_cache(index)


def set_memory_limit(limit: int | None, device: DeviceLike | None = None) -> None:
    """Sets the most bytes that living tensors may hold on a device; None removes the limit.

    Args:
        device: the default device if None.

    Raises:
        ValueError: `limit` is no number of bytes.

    >>> import tinyfin
    >>> tinyfin.set_memory_limit(1 << 40)
    >>> tinyfin.set_memory_limit(None)
    """
    slot, index = place(device)
    backend_of(slot).set_memory_limit(limit, index)


def meet(op: tensor.Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of an elementwise operation on one device: tensors of no dimension follow from the CPU, and
    gradients find the way back.

    Raises:
        RuntimeError: others are on different devices, or the operation is not elementwise.
    """
    tensors = [v for v in args if isinstance(v, tensor.Tensor)]
    places = {str(v.device) for v in tensors if v.device.slot or v.ndim}
    fixed = op.plain is not None and str(args[0].device) not in places
    if len(places) != 1 or not op.elementwise or fixed:
        where = ", ".join(str(v.device) for v in tensors)
        raise RuntimeError(
            f"{op.name}: the tensors are on different devices ({where}); move them with to()"
        )
    device = places.pop()
    return tuple(v.to(device) if isinstance(v, tensor.Tensor) else v for v in args)


tensor.install_hook("meet", meet)
