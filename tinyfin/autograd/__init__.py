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

__all__ = sorted(set(_HOME) | _MODULES)


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
