"""tinyfin: a small deep-learning library that trains and runs networks on any machine.

PyTorch's names and semantics, NumPy-like start-up, the same bits whatever the thread count.
"""
# ruff: noqa: E402, F401, I001  (the first lines stand in the order in which the parts must be loaded)

from tinyfin import config as _config

try:
    from tinyfin.ops import table as _table
except ImportError as _error:
    if (_error.name or "").startswith("tinyfin"):
        raise ImportError(
            f"tinyfin: the compiled parts are not in {__path__[0]}: this is the source folder, "
            "not the installed package. "
            "Run from another folder, or install it first with 'pip install .'"
        ) from None
    raise

_table.freeze()

from tinyfin.backends import base as _base
from tinyfin.backends.blas.backend import BlasBackend as _BlasBackend
from tinyfin.backends.cpu.kernels import CpuBackend as _CpuBackend
from tinyfin.backends.null import NullBackend as _NullBackend
from tinyfin.backends.opengl.backend import OpenGLBackend as _OpenGLBackend
from tinyfin.backends.vulkan.backend import VulkanBackend as _VulkanBackend

_base.register(_CpuBackend())
_base.register(_BlasBackend())
_base.register(_NullBackend())
_base.register(_VulkanBackend())
_base.register(_OpenGLBackend())
_base.REGISTRY["cpu"].open()

from tinyfin.autograd import reverse as _reverse, slow as _slow, views as _views
from tinyfin.autograd.modes import (
    deterministic,
    enable_grad,
    inference_mode,
    is_deterministic,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    use_deterministic_algorithms,
)
from tinyfin.backends.base import (
    Backend,
    backend_list,
    backend_name,
    backend_set,
    backend_support,
    default_device,
    empty_cache,
    memory_stats,
    set_memory_limit,
    synchronize,
)
from tinyfin.backends.cpu.isa import isa_list, isa_name
from tinyfin.backends.cpu.threads import get_num_threads, set_num_threads
from tinyfin.core import tensor as _tensor, printing as _printing
from tinyfin.core.device import Device as device
from tinyfin.core.dtype import (
    DType as dtype,
    all_dtypes as _all_dtypes,
    get_default_dtype,
    promote_types,
    set_default_dtype,
)
from tinyfin.core.exchange import from_dlpack
from tinyfin.core.size import Size
from tinyfin.core.storage import reset_peak_memory_stats
from tinyfin.core.tensor import Tensor
from tinyfin import (
    conversion as _conversion,
    creation as _creation,
    functional as _functional,
    indexing as _indexing,
    linalg,
    random as _random,
    shaping as _shaping,
)
from tinyfin.creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    frombuffer,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor_ as tensor,
    zeros,
    zeros_like,
)

__version__ = "0.1.0"

globals().update(_all_dtypes())
for _names in (
    _table.functions(),
    _conversion.PUBLIC,
    _functional.PUBLIC,
    _shaping.PUBLIC,
    _printing.PUBLIC,
    _random.PUBLIC,
    linalg.PUBLIC,
):
    globals().update(_names)
globals().update(
    {_new: globals()[_old] for _new, _old in _functional.ALIASES.items() if _old in globals()}
)
for _name, _value in list(globals().items()):
    if not _name.startswith("_"):
        _table.offer_missing(_name, _value)
for _value in _functional.RULE_HELPERS:
    _table.offer(_value.__name__, _value)
pi, e, inf, nan, newaxis = 3.141592653589793, 2.718281828459045, float("inf"), float("nan"), None
float, double, half, long, int, short = float32, float64, float16, int64, int32, int16  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

__all__ = sorted(_n for _n in globals() if _n[0] != "_")  # pyright: ignore[reportUnsupportedDunderAll]
_LAZY = {"nn", "optim", "data", "io", "utils", "func", "cli", "autograd", "cuda", "profiler"}
_FROM = {"save": "io", "load": "io", "finfo": "limits", "iinfo": "limits"}


def is_tensor(obj):
    """Whether obj is a Tensor."""
    return isinstance(obj, Tensor)


def __getattr__(name):
    from importlib import import_module

    if name in _LAZY:
        return import_module(f"tinyfin.{name}")
    if name in _FROM:
        return getattr(import_module(f"tinyfin.{_FROM[name]}"), name)
    raise AttributeError(f"module 'tinyfin' has no attribute '{name}'")


def __dir__():
    return sorted(set(globals()) | _LAZY | set(_FROM))


if _config.DETERMINISTIC:
    use_deterministic_algorithms(True)
if _config.BACKEND and _base.usable(_config.BACKEND):
    backend_set(_config.BACKEND)
