"""Automatic differentiation: the public names, which load what they need on first use."""

_HOME = {
    "backward": "reverse",
    "grad": "reverse",
    "no_grad": "modes",
    "enable_grad": "modes",
    "set_grad_enabled": "modes",
    "inference_mode": "modes",
    "detect_anomaly": "modes",
    "set_detect_anomaly": "modes",
    "detect_nonfinite": "modes",
    "is_grad_enabled": "modes",
    "is_inference_mode_enabled": "modes",
    "Function": "function",
    "FunctionCtx": "function",
    "once_differentiable": "function",
    "custom_vjp": "custom",
    "gradcheck": "gradcheck",
    "gradgradcheck": "gradcheck",
    "GradcheckError": "gradcheck",
    "NonFiniteError": "check",
}
_MODULES = {
    "reverse",
    "modes",
    "function",
    "forward_ad",
    "functional",
    "graph",
    "checkpoint",
    "views",
    "engine",
}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tinyfin.autograd import checkpoint as checkpoint
    from tinyfin.autograd import engine as engine
    from tinyfin.autograd import forward_ad as forward_ad
    from tinyfin.autograd import functional as functional
    from tinyfin.autograd import graph as graph
    from tinyfin.autograd import views as views
    from tinyfin.autograd.check import NonFiniteError as NonFiniteError
    from tinyfin.autograd.custom import custom_vjp as custom_vjp
    from tinyfin.autograd.function import Function as Function
    from tinyfin.autograd.function import FunctionCtx as FunctionCtx
    from tinyfin.autograd.function import once_differentiable as once_differentiable
    from tinyfin.autograd.gradcheck import GradcheckError as GradcheckError
    from tinyfin.autograd.gradcheck import gradcheck as gradcheck
    from tinyfin.autograd.gradcheck import gradgradcheck as gradgradcheck
    from tinyfin.autograd.modes import detect_anomaly as detect_anomaly
    from tinyfin.autograd.modes import detect_nonfinite as detect_nonfinite
    from tinyfin.autograd.modes import enable_grad as enable_grad
    from tinyfin.autograd.modes import inference_mode as inference_mode
    from tinyfin.autograd.modes import is_grad_enabled as is_grad_enabled
    from tinyfin.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
    from tinyfin.autograd.modes import no_grad as no_grad
    from tinyfin.autograd.modes import set_detect_anomaly as set_detect_anomaly
    from tinyfin.autograd.modes import set_grad_enabled as set_grad_enabled
    from tinyfin.autograd.reverse import backward as backward
    from tinyfin.autograd.reverse import grad as grad

# a sum of tables, which checkers do not read; they have the imports above
__all__ = sorted(set(_HOME) | _MODULES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _HOME:
        value = getattr(import_module(f"tinyfin.autograd.{_HOME[name]}"), name)
        globals()[name] = value  # a module of the same name would stand here otherwise
        return value
    if name in _MODULES:
        return import_module(f"tinyfin.autograd.{name}")
    raise AttributeError(f"module 'tinyfin.autograd' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
